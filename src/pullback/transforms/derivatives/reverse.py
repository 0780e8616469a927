"""Reverse-mode transforms: ``grad``, ``value_and_grad``, ``vjp``. They compose the floors below and add no rule of
their own."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any, NamedTuple
from weakref import ref

import numpy as np

from pullback.memory.in_force import depth, planned, policy_in_force, progress_in_force, resumed, using, watchers
from pullback.memory.ledger import LEDGERS, Ledger
from pullback.memory.reverse_sweep import Releasing, given_out, seeded, sweep
from pullback.policies.base import PolicyOrAuto
from pullback.policies.save_all import SaveAll
from pullback.recording.handles import Handle
from pullback.recording.traps import TRAPPED
from pullback.staging.calls.hot_gradients import LARGE, SELDOM, Hot
from pullback.staging.calls.known_functions import CARRIED
from pullback.tracing.running import Called, Purpose, Traced, lowered, run_traced
from pullback.transforms.derivatives.argnums import Chosen, chosen
from pullback.transforms.derivatives.called_again import gradient_by_caller, gradient_called
from pullback.transforms.derivatives.pulls import Pull, sweep_of_steps
from pullback.transforms.derivatives.seed_checks import conjugate, require_complex_linear, scalar_seed
from pullback.travelling.made_functions import made
from pullback.words.call_sites import public
from pullback.words.errors import StructureError
from pullback.words.structures import flatten, map_leaves, unflatten

# The seed of most scalar outputs, and the types of these.
ONE, FLOATS = np.float64(1), frozenset((np.float64, float))
NOTHING: Any = nullcontext()
PULLED, SWEPT = Purpose(allow_int=True, repeatable=True, joins=True), Purpose(joins=True)
UNWRITTEN = SWEPT._replace(unwritten=True)


class GradientSettings(NamedTuple):
    """What ``grad`` and ``value_and_grad`` are told beside the function and its arguments."""

    policy: Any
    has_aux: bool
    holomorphic: bool
    allow_int: bool
    conj: bool
    on_adjoint: Mapping[str, Callable[[Any, Any], Any]] | None
    progress: bool | None


def value_and_grad(
    f: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    *,
    argnames: str | Sequence[str] | None = None,
    policy: PolicyOrAuto = None,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    conj: bool = False,
    on_adjoint: Mapping[str, Callable[[Any, Any], Any]] | None = None,
    progress: bool | None = None,
) -> Callable[..., Any]:
    """A function that returns ``(f(...), gradient)``: the value of ``f`` and its gradient.

    Parameters
    ----------
    f
        Returns a real scalar (a complex one with ``holomorphic``), or ``(scalar, aux)`` with ``has_aux``.
    argnums
        The number of the argument by which it is differentiated, or several numbers: then the gradient is a tuple.
    argnames
        The same by name, for arguments given by position or by keyword: one name, or several for a dict of gradients.
    policy
        What is kept between forward and reverse (default: the policy in force). It changes memory and time, never a bit
        of the result.
    has_aux
        ``f`` returns ``(scalar, aux)``, and the result is ``((scalar, aux), gradient)``.
    holomorphic
        ``f`` is a complex function with a complex derivative, which is compared: the derivative along i with i times
        that along 1.
    allow_int
        An integer argument has the gradient None instead of raising.
    conj
        The gradient by a complex argument is df/dx + i df/dy (as torch) in the place of df/dx - i df/dy.
    on_adjoint
        ``{"u": fn}`` calls ``fn(step, ct)`` with the cotangent of every value marked ``pullback.name(u, "u")``, the
        last first.
    progress
        Shows how far a call is, see :func:`using`.

    Returns
    -------
    A function of the arguments of ``f``. The gradient has the structure, shapes and dtypes of the argument, and shares
    no memory with anything.

    Raises
    ------
    NotDifferentiableError
        When it is called: for an output that is no scalar, an integer argument unless ``allow_int``, and with
        ``holomorphic`` for a function that is not.

    Example
    -------
    >>> import numpy as np, pullback as pb
    >>> def misfit(c, data):
    ...     return np.sum((np.sin(c) - data) ** 2)
    >>> value, gradient = pb.value_and_grad(misfit)(np.array([0.0, 0.5]), 0.0)
    >>> float(round(value, 4)), gradient.round(4).tolist()
    (0.2298, [0.0, 0.8415])
    """
    asked = GradientSettings(policy, has_aux, holomorphic, allow_int, conj, on_adjoint, progress)
    both, hot = _gradient_of(f, chosen(argnums, argnames), with_value=True, asked=asked)
    return _made("value_and_grad", f, public(both, like=f, first=hot.first), argnums, argnames, asked)


def grad(
    f: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    *,
    argnames: str | Sequence[str] | None = None,
    policy: PolicyOrAuto = None,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    conj: bool = False,
    on_adjoint: Mapping[str, Callable[[Any, Any], Any]] | None = None,
    progress: bool | None = None,
) -> Callable[..., Any]:
    """A function that returns the gradient of ``f`` (``(gradient, aux)`` with ``has_aux``).

    Parameters
    ----------
    f, argnums, argnames, policy, has_aux, holomorphic, allow_int, conj, on_adjoint, progress
        As in :func:`value_and_grad`.

    Returns
    -------
    A function of the arguments of ``f``. The gradient has the structure, shapes and dtypes of the argument, and shares
    no memory with anything.

    Raises
    ------
    NotDifferentiableError
        When it is called, as in :func:`value_and_grad`.

    Example
    -------
    >>> import numpy as np, pullback as pb
    >>> def energy(u):
    ...     for _ in pb.steps(100):
    ...         u = u + 0.01 * np.roll(u, 1) * u
    ...     return np.sum(u**2)
    >>> u = np.linspace(0.0, 1.0, 5)
    >>> bool(np.all(pb.grad(energy, policy=pb.Binomial(5))(u) == pb.grad(energy)(u)))
    True
    """
    asked = GradientSettings(policy, has_aux, holomorphic, allow_int, conj, on_adjoint, progress)
    gradient, hot = _gradient_of(f, chosen(argnums, argnames), with_value=False, asked=asked)
    made_of_f = _made("grad", f, public(gradient, like=f, first=hot.first), argnums, argnames, asked)
    return hot.named(made_of_f)  # type: ignore[no-any-return]  # the very function


def _made(
    transform: str, f: Any, call: Any, argnums: Any, argnames: Any, asked: GradientSettings
) -> Callable[..., Any]:
    """What ``transform`` gives, which can be pickled as ``f`` and the settings."""
    policy, has_aux, holomorphic, allow_int, conj, on_adjoint, progress = asked
    return made(
        transform, f, call, argnums=argnums, argnames=argnames, policy=policy, has_aux=has_aux, holomorphic=holomorphic,
        allow_int=allow_int, conj=conj, on_adjoint=on_adjoint, progress=progress,
    )  # fmt: skip


def _gradient_of(
    f: Callable[..., Any], which: Chosen, *, with_value: bool, asked: GradientSettings
) -> tuple[Callable[..., Any], Hot]:
    """What ``grad`` and, ``with_value``, ``value_and_grad`` return; the aux stands beside the first of the results."""
    policy, has_aux, holomorphic, allow_int, conj, on_adjoint, progress = asked
    usual = not (policy or has_aux or holomorphic or conj or on_adjoint or progress) and callable(f)
    plainly = usual and not allow_int
    purpose = SWEPT if plainly else Purpose(allow_int, holomorphic, not (holomorphic or on_adjoint))
    hot = Hot(f, which, with_value, plainly, partial(_gradient_of, which=which, with_value=with_value, asked=asked))
    if hot.comes_again and plainly:
        hot.first.append(partial(gradient_by_caller, ref(hot)))  # which holds the list
    seldom = iter(range(SELDOM if hot.by_itself else 0))

    def gradient(*args: Any, **kwargs: Any) -> Any:
        called, at_once, where = f, None, which.numbers
        if not 0 <= which.last < len(args):
            called, args, kwargs, where = which.call(f, args, kwargs)
        elif plainly and not kwargs and (depth() or (hot.by_itself and next(hot.others, None) is not None)) and (
            given := gradient_called(hot, args, where)
        ) is not None:
            return given[0]
        elif usual and not kwargs and (next(seldom, None) is None or CARRIED.get() is not None):
            given, at_once, called = hot.gradient(args, where)
            if given is not None:
                return given[0]
        large = plainly and not kwargs and any(type(arg) is np.ndarray and arg.nbytes >= LARGE for arg in args)
        aim = UNWRITTEN if large and called is f and hot.writes_nothing(args, where) else purpose
        traced, ledger = at_once or traced_under((called, args, kwargs), where, policy, aim, progress)
        with traced.agrees():
            try:
                out, aux = split_aux(traced.out, has_aux=has_aux)
                plain = out._value if isinstance(out, Handle) and not holomorphic else None
                seed = ONE if type(plain) in FLOATS else scalar_seed(out, f, holomorphic=holomorphic)
                traced.require_unchanged()
            except BaseException:
                Pull(traced, ledger).close()
                raise
            if holomorphic or ledger.heard or ledger.counted or on_adjoint:
                cts = _pulled_once(Pull(traced, ledger), f, out, seed, asked)
            else:
                cts = _swept_once(traced, out, seed)
        gradients = traced.structured([conjugate(ct) for ct in cts] if conj else cts)
        found = which.structured(gradients) if which.several else gradients[0]
        aux = map_leaves(lambda leaf: lowered(leaf, traced.tape), aux) if has_aux else None
        if not with_value:
            return (found, aux) if has_aux else found
        result = lowered(out, traced.tape)
        return ((result, aux) if has_aux else result), found

    return gradient, hot


def _pulled_once(pull: Pull, f: Any, out: Any, seed: Any, asked: GradientSettings) -> list[Any]:
    """The cotangent of every input, of a pull that is used up."""
    pull.conj = asked.conj
    pull.listen(asked.on_adjoint, keeps=False)
    cts = pull.once([out], [seed], free=not asked.holomorphic)
    if asked.holomorphic:
        pull.listen(None, keeps=False)
        require_complex_linear(f, pull.input_specs, cts, pull.once([out], [1j * seed], free=False))
    pull.close()  # who is told of marked values knows the pull: a cycle, which would wait for the collector
    return cts


def _swept_once(traced: Traced, out: Any, seed: Any) -> list[Any]:
    """The cotangents of a trace of which nobody hears: the sweep alone, which uses up the tape."""
    tape, governor = traced.tape, traced.governor
    one = seeded(tape, (out,), (seed,))
    one.frees = True
    try:
        with Releasing(tape):
            if governor is None:
                (sweep_of_steps() if tape.marked else sweep)(tape, tape.n_inputs, len(tape.records), (one,))
            else:
                governor.reverse([one])
    finally:
        if governor is not None:
            governor.close()
    return [given_out(one.cts, k, given) for k, given in enumerate(traced.inputs)]


@public
def vjp(
    f: Callable[..., Any],
    *primals: Any,
    policy: PolicyOrAuto = None,
    has_aux: bool = False,
    conj: bool = False,
    progress: bool | None = None,
) -> Any:
    """``(out, pull)``: the value of ``f`` and the function that takes a cotangent of it to the cotangents of the
    primals.

    Parameters
    ----------
    f
        Returns an array or a structure of arrays, or ``(out, aux)`` with ``has_aux``.
    *primals
        Its arguments: arrays or structures.
    policy
        What is kept between forward and reverse (default: the policy in force).
    has_aux
        The result is ``(out, pull, aux)``.
    conj
        Cotangents of complex values, those given and those returned, are df/dx + i df/dy (as torch) in the place of
        df/dx - i df/dy.
    progress
        Shows how far a pass is, see :func:`using`.

    Returns
    -------
    ``pull(ct)`` takes a cotangent with the structure, shapes and dtypes of the output, and returns a tuple with a
    cotangent for each primal. It may be called again, and keeps what that needs until ``pull.close()``. ``pull([ct,
    ct2])`` gives a list of answers, and what the policy runs again is run once for all of them. ``pull.report`` says
    what the reverse held.

    Raises
    ------
    StructureError
        By ``pull``, for a cotangent of another structure, shape or dtype.

    Example
    -------
    >>> import numpy as np, pullback as pb
    >>> out, pull = pb.vjp(lambda x, y: x * y, np.array([1.0, 2.0]), 3.0)
    >>> [ct.tolist() for ct in pull(np.array([1.0, 10.0]))]
    [[3.0, 30.0], 21.0]
    """
    traced, pull = forward((f, primals, {}), range(len(primals)), policy, progress=progress)
    out, aux = split_aux(traced.out, has_aux=has_aux)
    pull.conj = conj
    pull.out_leaves, pull.out_definition = flatten(out)
    result = unflatten(pull.out_definition, [lowered(leaf, traced.tape) for leaf in pull.out_leaves])
    if has_aux:
        return result, pull, map_leaves(lambda leaf: lowered(leaf, traced.tape), aux)
    return result, pull


def forward(
    call: Called, argnums: Any, policy: Any, purpose: Purpose = PULLED, progress: bool | None = None
) -> tuple[Traced, Pull]:
    """Run a function on tracers under a policy: the finished trace, and the pull that reverses it."""
    traced, ledger = traced_under(call, argnums, policy, purpose, progress)
    return traced, Pull(traced, ledger)


def traced_under(
    call: Called, argnums: Any, policy: Any, purpose: Purpose, progress: bool | None = None
) -> tuple[Traced, Ledger]:
    """Run a function on tracers under a policy: the finished trace, and where what it holds is booked."""
    ledger: Any = LEDGERS.get()(heard=purpose.repeatable or bool(watchers()))
    shown = progress_in_force(progress)
    if shown and not depth() and planned() is None:
        from pullback.instruments.watching.progress import told  # noqa: PLC0415 - for those who watch

        ledger = told(ledger)
    chosen = policy_in_force(policy)
    saves_all = isinstance(chosen, SaveAll)
    if not saves_all:
        chosen = chosen.at_call()
    before = None if (session := resumed()) is None else session.n_loops
    governor = None
    if not saves_all or TRAPPED.get():
        # What runs programs again is a quarter of the import, and most programs run under save-all.
        from pullback.programs.plain.plain_code import PlainCode  # noqa: PLC0415 - as above

        governor = PlainCode.of(chosen, ledger, purpose.repeatable, call, marked=saves_all or session is not None)
    try:
        with using(progress=progress) if progress is not None else NOTHING:
            traced = run_traced(call, argnums, purpose, policy=chosen, ledger=ledger, governor=governor)
    finally:
        if shown:
            ledger.rests()
    if session is not None and not saves_all and session.n_loops == before and not depth() and planned() is None:
        Pull(traced, ledger).close()
        session.refuse(f"there is no loop function for {chosen!r} to govern", "write the loop as pullback.fori_loop")
    return traced, ledger


def split_aux(out: Any, *, has_aux: bool) -> tuple[Any, Any]:
    """What the function returned, and beside it the aux that it promised."""
    if not has_aux:
        return out, None
    if not isinstance(out, tuple) or len(out) != 2:
        raise StructureError(f"with has_aux=True the function returns (output, aux), got {type(out).__name__}")
    return out
