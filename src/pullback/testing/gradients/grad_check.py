"""check_grads: derivatives of a function, of any order, against numeric ones."""

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.testing.comparing.faults import Fault, raise_faults
from pullback.testing.comparing.inexact_leaves import inexact_leaves
from pullback.testing.gradients.hessian_check import hessian_faults
from pullback.testing.gradients.jacobian_check import level_faults, next_level, start_level
from pullback.words.call_sites import public
from pullback.words.specs import carries_derivative
from pullback.words.structures import flatten

MODES = ("fwd", "rev")


@public
def check_grads(
    f: Callable[..., Any],
    args: Any,
    order: int = 2,
    modes: tuple[str, ...] | str = MODES,
    *,
    policy: Any = None,
    seed: int = 0,
) -> None:
    """Nothing, if the derivatives of ``f`` at ``args`` up to ``order`` are right.

    "rev" compares <J'ct, v> from the pull with <ct, Jv>, where Jv is numeric: the complex step where f takes complex
    numbers and both agree, else central differences with Richardson extrapolation. "fwd" compares J v itself with the
    numeric one, as ``jvp`` carries it forward, and as the derivative of the pull with respect to its cotangent (in
    which it is linear), which shows whether rules may be applied to a traced cotangent. Order k looks at the pull of
    order k - 1 as a function of ``args``; with both modes also at every order of the two, up to forward over forward,
    which must agree to 1e-10 in float64. Tolerances: 1e-8 relative in float64, 3e-4 in float32, ten times more for each
    further order; at a kink or a tie there is nothing to compare with.

    Parameters
    ----------
    f
        Any function.
    args
        A tuple of arguments (anything else is one argument), structures included; their floating and complex leaves are
        moved.
    order
        The highest order of derivatives.
    modes
        ``"fwd"``, ``"rev"``, or both.
    policy
        That of the pulls.
    seed
        Of the random directions.

    Returns
    -------
    None.

    Raises
    ------
    CheckError
        With every fault.
    ValueError
        For an unknown mode or an order below 1.

    Example
    -------
    >>> import numpy as np, pullback as pb
    >>> pb.testing.check_grads(lambda x: np.sin(x) * x, (np.array([0.3, 1.2]),))
    """
    wanted = (modes,) if isinstance(modes, str) else tuple(modes)
    if unknown := [mode for mode in wanted if mode not in MODES]:
        raise ValueError(f"check_grads knows the modes {MODES}, got {unknown[0]!r}; pass one or both")
    if order < 1:
        raise ValueError(f"check_grads needs order >= 1, got {order}; pass 1 for gradients, 2 for Hessians as well")
    arguments = args if isinstance(args, tuple) else (args,)
    leaves, rebuild = inexact_leaves(arguments)
    name = str(getattr(f, "__name__", type(f).__name__))
    if not leaves:
        raise ValueError(
            f"no argument of {name} is floating or complex, so there is no derivative to check; pass float64 arrays"
        )

    def outputs(*xs: Any) -> tuple[Any, ...]:
        out = f(*rebuild(list(xs)))
        return tuple(leaf for leaf in flatten(out)[0] if carries_derivative(leaf))

    rng = np.random.default_rng(seed)
    faults: list[Fault] = []
    level = start_level(name, outputs, tuple(leaves), rng, policy)
    if not level.cts:
        faults.append(
            Fault("no output", f"{name} returned nothing floating or complex; return what is to be differentiated")
        )
    below = None
    while level.cts and not faults:  # a fault of one order shows again in the next
        faults += level_faults(level, wanted, rng)
        if below is not None and not faults and set(wanted) == set(MODES):
            faults += hessian_faults(below, rng)
        if level.order == order:
            break
        below, level = level, next_level(level, rng)
    raise_faults(f"check_grads({name})", faults)
