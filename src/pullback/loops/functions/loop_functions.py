"""Loop functions: ``scan``, ``fori_loop``, ``while_loop``. A loop is one operation of the program around it.

The body is called again where a policy recomputes, so its closure is frozen when the loop begins, random generators are
put back, and every state that a re-run reaches again is compared with the first run's.
"""

from collections.abc import Callable
from traceback import walk_tb
from typing import Any

from pullback.loops.bodies.effects import Effects
from pullback.loops.functions.loop_call import LoopCall, scan_length, whole
from pullback.loops.stepping.rerun import plain_leaves
from pullback.policies.base import PolicyOrAuto
from pullback.words.call_sites import public
from pullback.words.errors import StructureError, say_where
from pullback.words.structures import flatten, unflatten


@public
def fori_loop(
    lower: int,
    upper: int,
    body: Callable[[Any, Any], Any],
    init: Any,
    *,
    policy: PolicyOrAuto = None,
    verify: Any = None,
    staging: Any = None,
    threads: Any = None,
    progress: bool | None = None,
) -> Any:
    """The carry after ``for k in range(lower, upper): carry = body(k, carry)``, differentiable under any policy.

    Under a policy the steps between snapshots run at NumPy's own speed, and what is held does not grow with the number
    of steps.

    Parameters
    ----------
    lower, upper
        The numbers of the steps.
    body
        ``body(k, carry)`` returns the same structure with the same shapes and dtypes. It may write to its carry in
        place; it may not write to traced values it captures, and must do the same when called again.
    init
        The first carry, any structure.
    policy
        What is kept between forward and reverse (default: the policy in force).
    verify
        What is compared where steps are run again (default: that of :func:`using`, else ``"all"``): ``"all"`` the
        states that are reached, outputs, what step 0 reads, and the arrays and containers that the body can reach;
        ``"state"`` states and outputs alone, so that what a zero or a tie hides is not seen; ``"off"`` nothing.
    staging
        How steps that repeat are computed, with the same bits (default: that of :func:`using`, else ``"auto"``):
        ``"auto"`` by generated functions where the loop is long enough for that to pay, ``"numpy"`` by these from the
        first step that repeats, the name of a backend by its own, ``"off"`` by recording every step.
    threads
        Among how many threads these functions divide large arrays (default: that of :func:`using`, else 1).
    progress
        True shows how far the loop is, forward and back (default: that of :func:`using`).

    Returns
    -------
    The last carry.

    Raises
    ------
    StructureError
        For a carry of another structure, shape or dtype, and for a bound that is no whole number.
    ReplayError
        Where a step that is run again does something else.
    PolicyError
        For another word of ``verify`` or ``staging``, and fewer threads than 1.

    Example
    -------
    >>> import numpy as np, pullback as pb
    >>> def last(u):
    ...     return np.sum(pb.fori_loop(0, 100, lambda k, u: u + 0.1 * np.sin(u), u, policy=pb.Binomial(5)))
    >>> pb.grad(last)(np.array([0.0, 0.1])).round(3).tolist()
    [13780.612, 0.016]
    """
    loop = LoopCall("fori_loop", policy, verify, staging, threads, progress)
    frozen, effects = loop.frozen(body), Effects()
    loop.lower, upper = whole("fori_loop: lower", lower), whole("fori_loop: upper", upper)

    def step_of_loop(k: Any, carry: Any, _: Any) -> tuple[Any, Any]:
        effects.runs += 1
        return frozen(k, carry), None

    return _run(loop, "body(k, carry)", step_of_loop, init, max(0, upper - loop.lower))[0]


@public
def scan(
    step: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    *,
    policy: PolicyOrAuto = None,
    verify: Any = None,
    staging: Any = None,
    threads: Any = None,
    progress: bool | None = None,
) -> tuple[Any, Any]:
    """``(carry, ys)`` of ``for x in xs: carry, y = step(carry, x)``, where ``ys`` stacks the ``y`` along a new first
    axis.

    Per-step outputs are written once, outside the state: they enter no snapshot.

    Parameters
    ----------
    step
        ``step(carry, x)`` returns the next carry, of the same structure, shapes and dtypes, and an output of any
        structure.
    init
        The first carry, any structure.
    xs
        A structure of arrays with one leading axis of equal length, or None with ``length``.
    length
        The number of steps.
    policy, verify, staging, threads, progress
        As in :func:`fori_loop`.

    Returns
    -------
    The last carry, and the outputs.

    Raises
    ------
    StructureError
        For a carry or an output of another structure, shape or dtype, and for axes of other lengths. Else as
        :func:`fori_loop`.

    Example
    -------
    >>> import numpy as np, pullback as pb
    >>> def sums(x):
    ...     return pb.scan(lambda total, x: (total + x, total * x), 0.0, x)[1]
    >>> sums(np.array([1.0, 2.0, 3.0])), pb.grad(lambda x: np.sum(sums(x)))(np.array([1.0, 2.0, 3.0]))
    (array([0., 2., 9.]), array([5., 4., 3.]))
    """
    x_leaves, x_definition = flatten(xs)
    x_leaves = plain_leaves(x_leaves)
    n = scan_length(x_leaves, length)
    loop = LoopCall("scan", policy, verify, staging, threads, progress)
    frozen, effects = loop.frozen(step), Effects()

    def step_of_loop(k: Any, carry: Any, x: Any) -> tuple[Any, Any]:
        effects.runs += 1
        result = frozen(carry, unflatten(x_definition, x) if x is not None else None)
        if not isinstance(result, tuple) or len(result) != 2:
            raise StructureError(
                f"scan: step {k} returned {type(result).__name__}; return (carry, y), with None for y where "
                "there is none"
            )
        return result

    loop.x_definition = x_definition
    return _run(loop, "step(carry, x)", step_of_loop, init, n, x_leaves if xs is not None else None)


@public
def while_loop(
    condition: Callable[[Any], Any],
    body: Callable[[Any], Any],
    init: Any,
    *,
    policy: PolicyOrAuto = None,
    verify: Any = None,
    staging: Any = None,
    threads: Any = None,
    progress: bool | None = None,
) -> Any:
    """The carry after ``while condition(carry): carry = body(carry)``. The length need not be known: policies decide as
    the loop goes.

    Parameters
    ----------
    condition
        Sees plain values.
    body
        Returns the same structure with the same shapes and dtypes, as that of :func:`fori_loop`.
    init
        The first carry, any structure.
    policy, verify, staging, threads, progress
        As in :func:`fori_loop`.

    Returns
    -------
    The last carry.

    Raises
    ------
    StructureError, ReplayError, PolicyError
        As :func:`fori_loop`.

    Example
    -------
    >>> import pullback as pb
    >>> float(pb.grad(lambda x: pb.while_loop(lambda u: u < 100.0, lambda u: 3 * u, x))(1.0))
    243.0
    """
    loop = LoopCall("while_loop", policy, verify, staging, threads, progress)
    frozen, loop.condition = loop.frozen(body), _before_step(loop.frozen(condition))
    effects = Effects()

    def step_of_loop(k: Any, carry: Any, _: Any) -> tuple[Any, Any]:
        effects.runs += 1
        return frozen(carry), None

    return _run(loop, "body(carry)", step_of_loop, init, None)[0]


def _run(loop: LoopCall, call: str, step: Callable[..., Any], *how: Any) -> tuple[Any, Any]:
    """What the loop gives. Where the user's function takes other arguments, the error says which it is called with."""
    try:
        return loop.run(step, *how)
    except TypeError as error:
        *_, (last, _) = walk_tb(error.__traceback__)
        if type(error) is TypeError and last.f_code is step.__code__:
            say_where(error, f"{loop.name} calls {call}; write the function with these arguments")
        raise


def _before_step(condition: Callable[[Any], Any]) -> Callable[[int, Any], Any]:
    """The condition, as a step of its own to the effects in it: it is asked again where steps are run again."""
    effects = Effects()

    def step_of_loop(k: int, carry: Any) -> Any:
        effects.runs += 1
        return condition(carry)

    return step_of_loop
