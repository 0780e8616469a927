"""The engine of implicit differentiation: a solution found on plain values gets its dependence on what its equation
closes over.

For each trace under way, from the outermost inwards: f(x, p) = 0 gives A dx = -(df/dp) dp with A = df/dx (Christianson,
Reverse accumulation and attractive fixed points, Optim. Methods Softw. 3, 1994; Blondel et al., Efficient and modular
implicit differentiation, NeurIPS 35, 2022). A tape records f once at the solution, with x as an input of its own; then
the solution, whose rule is a solve with the transpose of A, by sweeps over these records. Such a solve is one of the
trace outside, hence differentiable in its turn, to every order.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any
from weakref import ref

import numpy as np
from attrs import astuple, frozen

from pullback.loops.closures import detached_function
from pullback.loops.loop_functions import scan
from pullback.memory.in_force import innermost
from pullback.memory.sweep import Sweep, innermost_of, sweep
from pullback.policies.save_all import SaveAll
from pullback.recording.copies import faithful_copy
from pullback.recording.crossing import CAPTURE, captured
from pullback.recording.handles import SHARED, Handle, freeze, kind_of, make, plain_value, resolve
from pullback.recording.recorder import component, form_of
from pullback.recording.tape import CAPTURED, FORWARD, PAUSED, REPLAYABLE, Tape
from pullback.rules.forms import Form, special_form
from pullback.rules.unbroadcast import join, settle
from pullback.tracing.running import open_input
from pullback.transforms.forward import jvp
from pullback.transforms.tangents import Tangent
from pullback.words.call_sites import site_here
from pullback.words.digests import same_bits
from pullback.words.errors import ConvergenceError, NotDifferentiableError, StructureError
from pullback.words.specs import ArraySpec, carries_derivative, spec_of
from pullback.words.structures import flatten, map_leaves, unflatten

Function = Callable[..., Any]


def custom_linear_solve(
    matvec: Function, b: Any, solve: Function, transpose_solve: Function | None = None, *, symmetric: bool = False
) -> Any:
    """``x`` with ``matvec(x) = b``, as ``solve(matvec, b)`` finds it; differentiable by ``b`` and by whatever
    ``matvec`` closes over.

    ``matvec`` is linear, and ``matvec(x)`` has the structure and shapes of ``b`` and of ``x``.
    ``transpose_solve(vecmat, ct)`` solves with the transpose; with ``symmetric`` it is ``solve``. Both get plain
    arrays, at any order of differentiation. Reverse mode raises :class:`NotDifferentiableError` where neither is given.
    """
    transposed = solve if symmetric else transpose_solve

    def found() -> Any:
        x = map_leaves(
            settled, solve(lambda v: map_leaves(lowered_now, matvec(v)), map_leaves(own, map_leaves(plain_value, b)))
        )
        require_finite("custom_linear_solve", x)
        (leaves, definition), (given, wanted) = flatten(x), flatten(b)
        if definition != wanted or any(np.shape(u) != np.shape(v) for u, v in zip(leaves, given, strict=True)):
            shapes = [", ".join(map(str, map(spec_of, each))) for each in (leaves, given)]
            message = (
                f"custom_linear_solve: solve returned {definition} of {shapes[0]}, b is {wanted} of {shapes[1]}; "
                "return its like"
            )
            raise StructureError(message)
        return x

    def residual(x: Any) -> Any:
        return leafwise("custom_linear_solve", np.subtract, matvec(x), b)

    return solution(Equation("custom_linear_solve", residual, matvec, solve, transposed), found)


@frozen(eq=False)
class Equation:
    """``residual(x) = 0``, and how linear systems with its derivative A and with the transpose of A are solved.

    ``linear`` is A where the residual is ``A x - b``.
    """

    name: str
    residual: Function
    linear: Function | None
    solve: Function
    transpose_solve: Function | None


@frozen(eq=False)
class System:
    """The linear system of one solution: where on the tape its equation was recorded, with the unknowns as inputs of
    their own.

    The tape is named weakly: it holds the record that holds this.
    """

    name: str
    solve: Function
    transpose_solve: Function | None
    tape: Any
    unknowns: tuple[int, ...]
    """Ids of the leaves of the unknown."""
    stop: int
    """The records of the equation are those after the unknowns and before this one."""
    residuals: tuple[int | None, ...]
    """Ids of the leaves of the residual."""
    specs: tuple[ArraySpec, ...]
    definition: Any

    def transposed(self, v: Any, masks: bool) -> Any:
        """A' v, by a sweep over the records of the equation, which stay."""
        leaves = flatten(v)[0]
        cts = self.swept(
            leaves, Sweep(_Sparse(), outer=innermost_of(_recording(self.tape().outer), leaves), masks=masks)
        )
        found = [cts[ident] for ident in self.unknowns]
        parts = [
            np.zeros(spec.shape, spec.dtype) if ct is None else ct for ct, spec in zip(found, self.specs, strict=True)
        ]
        return unflatten(self.definition, parts)

    def swept(self, leaves: list[Any], run: Sweep) -> Any:
        """The cotangents by id after a sweep over the records of the equation, given those of the residual."""
        cts = run.cts
        for ident, leaf in zip(self.residuals, leaves, strict=True):
            if ident is not None:
                cts[ident] = leaf if cts[ident] is None else cts[ident] + leaf
        sweep(self.tape(), self.unknowns[-1] + 1, self.stop, (run,))
        return cts

    def pull(self, given: list[Any], masks: bool) -> list[Any]:
        """-A'^-1 ct: the cotangents of the residual's leaves, given those of the solution's, None where there is
        none."""
        if self.transpose_solve is None:
            message = f"{self.name}: reverse mode solves with the transpose; pass transpose_solve=, or symmetric=True"
            raise NotDifferentiableError(message)
        parts = [
            np.zeros(spec.shape, spec.dtype) if ct is None else -ct for ct, spec in zip(given, self.specs, strict=True)
        ]
        y = unflatten(self.definition, parts)
        return flatten(custom_linear_solve(lambda v: self.transposed(v, masks), y, self.transpose_solve, self.solve))[0]


class _Sparse(dict[int, Any]):
    """Cotangents by id where few records of a long tape have one."""

    def __missing__(self, ident: int) -> None:
        return None


def _recording(tape: Tape | None) -> Tape | None:
    """The trace on which operations on handles of ``tape`` are recorded now."""
    while tape is not None and tape.mode in (PAUSED, CAPTURED):
        tape = tape.outer if tape.mode == PAUSED else tape.inner
    return tape


def _pull_solution(record: tuple[Any, ...], ct: Any, cts: Any, run: Any) -> None:
    """Solve with the transpose, sweep the equation with the result, and send to what it reads the sum of what it reads
    it for.

    One sum for each value, in the order of ids, as a loop function sends them: a replay runs the solution as a loop of
    one step (:func:`_replayed`), and its gradient must have the same bits.
    """
    form, system = form_of(record), record[-2]
    leaves = [
        settle(g, spec, form, 0, record[-1], g)
        for g, spec in zip(system.pull(ct, run.masks), system.specs, strict=True)
    ]
    own = Sweep(_Sparse(), outer=run.outer, masks=run.masks, place=run.place, told=run.told, step=run.step)
    own.gathered, own.own_gathered = run.gathered, run.own_gathered
    sent = system.swept(leaves, own)
    for ident in sorted(i for i, g in sent.items() if i < system.unknowns[0] and g is not None):
        before = cts[ident]
        cts[ident] = sent[ident] if before is None else join(before, sent[ident], ident, run)


@cache
def _solution_form(n_ids: int) -> Form:
    """The form of solutions of which this many leaves of the residual depend on the inputs."""
    return special_form("implicit_solution", _pull_solution, n_ids=n_ids)


def solution(equation: Equation, found: Callable[[], Any]) -> Any:
    """What ``found`` returns on plain values, with its dependence on the inputs of every trace under way."""
    top = innermost()
    if top is None:
        return found()
    if top.mode == REPLAYABLE and (top.chain.active is not None or not top.chain.marked):
        return _replayed(equation, found)
    with paused(top):
        x = solution(equation, found)
    return _pushed(equation, top, x) if top.mode == FORWARD else _recorded(equation, top, x)


def _replayed(equation: Equation, found: Callable[[], Any]) -> Any:
    """Where records are executed again: as a loop of one step, whose body is called again on the values of the
    replay."""
    # One name for each function: a loop freezes the closures of those that its body names, and not of those in a
    # structure.
    name, residual, linear, solve, transpose_solve = astuple(equation, recurse=False)
    body = lambda carry, _: (carry, solution(Equation(name, residual, linear, solve, transpose_solve), found))  # noqa: E731
    _, stacked = scan(body, (), length=1, policy=SaveAll())
    return map_leaves(lambda leaf: leaf.reshape(leaf.shape[1:]) if len(leaf.shape) > 1 else leaf[0], stacked)


def _pushed(equation: Equation, tape: Tape, x: Any) -> Any:
    """The solution in a forward trace: its tangent is -A^-1 t, where t is that of the residual."""
    leaves, definition = flatten(x)
    entered = [
        make(tape.kinds.buffer, leaf, None, tape, SHARED) if isinstance(leaf, np.ndarray | Handle) else leaf
        for leaf in leaves
    ]
    residual = equation.residual(unflatten(definition, entered))
    require_alike(equation.name, x, residual)
    given = [leaf._id.value if _active(leaf, tape) else None for leaf in flatten(residual)[0]]
    if all(t is None for t in given):
        return x
    with paused(tape):
        linear = equation.linear or (lambda v: jvp(equation.residual, (fresh(x),), (v,))[1])

        def matvec(parts: list[Any]) -> list[Any]:
            return flatten(linear(unflatten(definition, parts)))[0]

        def solve(parts: list[Any]) -> list[Any]:
            return flatten(
                custom_linear_solve(linear, unflatten(definition, parts), equation.solve, equation.transpose_solve)
            )[0]

        tangents = tape.tangents.solution(leaves, given, matvec, solve)
    return unflatten(definition, [_handle(leaf, t, tape) for leaf, t in zip(leaves, tangents, strict=True)])


def _recorded(equation: Equation, tape: Tape, x: Any) -> Any:
    """The solution on a tape: the record of the residual at it, then one record for the solution, and one for each
    of its leaves."""
    leaves, definition = flatten(x)
    unknowns = [open_input(tape, leaf) for leaf in flatten(fresh(x))[0]]
    ids = tuple(u._id for u in unknowns)
    repeatable, tape.repeatable = tape.repeatable, True  # loops in the equation are reversed again and again
    try:
        residual = equation.residual(unflatten(definition, unknowns))
    finally:
        tape.repeatable = repeatable
    require_alike(equation.name, x, residual)
    residuals = [captured(leaf, tape) for leaf in flatten(residual)[0]]
    reached = tuple(
        resolve(leaf)._id if isinstance(leaf, Handle) and leaf._tape is tape else None for leaf in residuals
    )
    if not ids or not _depends(tape, ids):
        return x
    # What the solvers close over may be rebound until the reverse; what the equation closes over must not be kept alive
    # by its own tape.
    solve, transpose_solve = (
        detached_function(f, lambda array: _kept(tape, array)) for f in (equation.solve, equation.transpose_solve)
    )
    specs = tuple(map(spec_of, leaves))
    system = System(
        equation.name, solve, transpose_solve, ref(tape), ids, len(tape.records), reached, specs, definition
    )
    sources = [ident for ident in reached if ident is not None]
    ident = len(tape.records)
    tape.records.append((_solution_form(len(sources)).opcode, *sources, system, site_here(2)))
    return unflatten(definition, [component(tape, ident, k, own(leaf), len(leaves)) for k, leaf in enumerate(leaves)])


def _kept(tape: Tape, array: Any) -> Any:
    """A copy of an array that a solver closes over, which the user may overwrite before the reverse; the copy made
    last, while equal.

    It is shared with nothing else that the tape holds: the solver may write to it.
    """
    key = ("solver", id(array))
    copy: Any = tape.constants.get(key)
    if (
        copy is None
        or (copy.shape, copy.dtype, copy.strides) != (array.shape, array.dtype, array.strides)
        or not same_bits(copy, array)
    ):
        copy = tape.constants[key] = faithful_copy(array)
    return copy


def _depends(tape: Tape, unknowns: tuple[int, ...]) -> bool:
    """Whether an equation that was just recorded reads anything that depends on the inputs."""
    for record in tape.records[unknowns[-1] + 1 :]:
        assert record is not None  # nothing is dropped while it is recorded
        if record[0] == CAPTURE.opcode or any(i < unknowns[0] for i in form_of(record).ids(record)):
            return True
    return False


def _active(leaf: Any, tape: Tape) -> bool:
    return isinstance(leaf, Handle) and leaf._tape is tape and leaf._id is not None


def _handle(leaf: Any, tangent: Tangent, tape: Tape) -> Any:
    return make(kind_of(tape, leaf), freeze(leaf) if isinstance(leaf, Handle) else own(leaf), tangent, tape)  # type: ignore[arg-type]  # in the place of an id


@contextmanager
def paused(tape: Tape) -> Iterator[None]:
    """Operations on handles of the tape run on their values within the block."""
    before, tape.mode = tape.mode, PAUSED
    try:
        yield
    finally:
        tape.mode = before


def lowered_now(leaf: Any) -> Any:
    """A handle of a trace that is left alone as its value; those of traces that a solver has opened itself are its
    own."""
    while isinstance(leaf, Handle) and leaf._tape.mode == PAUSED:
        leaf = resolve(leaf)._value
    return leaf


def settled(leaf: Any) -> Any:
    """A leaf of a solution as an array in C order or a NumPy scalar: the same, however a replay stores it."""
    leaf = plain_value(leaf)
    return np.array(leaf, order="C")[()] if isinstance(leaf, np.ndarray | int | float | complex) else leaf


def own(leaf: Any) -> Any:
    """A leaf that may be written."""
    return leaf.copy() if isinstance(leaf, np.ndarray) else leaf


def fresh(x: Any) -> Any:
    """A structure that a function may write to without reaching the solution."""
    return map_leaves(lambda leaf: freeze(leaf) if isinstance(leaf, Handle) else own(leaf), x)


def leafwise(name: str, operation: Function, a: Any, b: Any) -> Any:
    """``operation`` on the leaves of two structures, which must be alike."""
    require_alike(name, a, b)
    first, definition = flatten(a)
    return unflatten(definition, [operation(u, v) for u, v in zip(first, flatten(b)[0], strict=True)])


def require_alike(name: str, x: Any, y: Any) -> None:
    """Raise :class:`StructureError` where a function does not map structures to such of the same shapes."""
    (leaves, definition), (others, other) = flatten(x), flatten(y)
    if definition != other:
        message = (
            f"{name}: the unknown has structure {definition}, the function gives {other}; as many equations as "
            "unknowns are needed"
        )
        raise StructureError(message)
    for a, b in zip(leaves, others, strict=True):
        if spec_of(a).shape != spec_of(b).shape:
            message = (
                f"{name}: an unknown is {spec_of(a)}, the function gives {spec_of(b)}; as many equations as "
                "unknowns are needed"
            )
            raise StructureError(message)


def require_finite(name: str, x: Any) -> None:
    """Raise :class:`ConvergenceError` where a solver has returned what is not finite, :class:`StructureError` where
    no floating number."""
    for leaf in flatten(x)[0]:
        if not carries_derivative(leaf):
            message = (
                f"{name}: the solver returned {spec_of(leaf)}, which carries no derivative; return floating or "
                "complex numbers"
            )
            raise StructureError(message)
        wrong = int(np.count_nonzero(~np.isfinite(leaf)))
        if wrong:
            message = (
                f"{name}: {wrong} of the {np.size(leaf)} elements that the solver returned are not finite; it "
                "did not converge"
            )
            raise ConvergenceError(message, np.inf)
