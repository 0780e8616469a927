"""The derivative of a solution x of f(x, p) = 0 by p, by the implicit function theorem; and ``custom_linear_solve``.

With A = df/dx, forward mode solves A dx = -(df/dp) dp, reverse mode solves with the transpose of A (Christianson,
Reverse accumulation and attractive fixed points, Optim. Methods Softw. 3, 1994; Blondel et al., Efficient and modular
implicit differentiation, NeurIPS 35, 2022). The solver itself runs on plain values, and is not differentiated.

A tape records f once, at the solution, with x as an input of its own. Then it records the solution, whose pull solves
with the transpose of A; products with the transpose are sweeps over the records of f. The traces under way do this one
after the other, the outermost first. So a linear solve that a pull makes is itself an operation of the trace around it,
and can be differentiated again, to every order.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any
from weakref import ref

import numpy as np
from attrs import astuple, frozen

from pullback.loops.bodies.closures import detached_function
from pullback.loops.functions.loop_functions import scan
from pullback.memory.in_force import innermost
from pullback.memory.reverse_sweep import Sweep, innermost_of, sweep
from pullback.policies.save_all import SaveAll
from pullback.recording.copies import faithful_copy
from pullback.recording.crossing import CAPTURE, by_value, present
from pullback.recording.handles import SHARED, Handle, active_id, kind_of, make, plain_value, resolve, twin_of
from pullback.recording.recorder import form_of
from pullback.recording.results import component
from pullback.recording.tape import CAPTURED, FORWARD, PAUSED, RECORDING, REPLAYABLE, Tape
from pullback.rules.cotangent_sums import send
from pullback.rules.forms import Form, special_form
from pullback.rules.unbroadcast import settle
from pullback.tracing.running import open_input
from pullback.transforms.derivatives.forward import jvp
from pullback.words.call_sites import public, site_here
from pullback.words.digests import same_bits
from pullback.words.errors import ConvergenceError, NotDifferentiableError, StructureError
from pullback.words.specs import ArraySpec, carries_derivative, spec_of
from pullback.words.structures import flatten, map_leaves, unflatten

Function = Callable[..., Any]


@public
def custom_linear_solve(
    matvec: Function, b: Any, solve: Function, transpose_solve: Function | None = None, *, symmetric: bool = False
) -> Any:
    """``x`` with ``matvec(x) = b``; differentiable by ``b`` and by whatever ``matvec`` closes over.

    Parameters
    ----------
    matvec
        Linear; ``matvec(x)`` has the structure and shapes of ``b`` and of ``x``.
    b
        The right-hand side, an array or a structure.
    solve
        ``solve(matvec, b)`` computes ``x``. It gets plain arrays, at any order of differentiation.
    transpose_solve
        ``transpose_solve(vecmat, ct)`` solves with the transpose, on plain arrays.
    symmetric
        ``solve`` solves with the transpose, too.

    Returns
    -------
    ``x``, with the structure of ``b``.

    Raises
    ------
    NotDifferentiableError
        In reverse mode, where neither ``transpose_solve`` nor ``symmetric`` is given.
    StructureError
        Where ``x`` or ``matvec(x)`` has another structure or shape than ``b``.

    Example
    -------
    >>> import numpy as np, pullback as pb
    >>> def solve(matvec, b):  # any method will do, here for a diagonal
    ...     return b / matvec(np.ones(2))
    >>> def f(d):
    ...     return np.sum(pb.custom_linear_solve(lambda x: d * x, np.array([2.0, 3.0]), solve, symmetric=True))
    >>> pb.grad(f)(np.array([1.0, 2.0]))
    array([-2.  , -0.75])
    """
    transposed = solve if symmetric else transpose_solve

    def compute() -> Any:
        right_side = map_leaves(lambda leaf: twin_of(plain_value(leaf)), b)
        x = map_leaves(in_c_order, solve(lambda v: map_leaves(by_value, matvec(v)), right_side))
        require_finite("custom_linear_solve", x)
        (leaves, definition), (sides, like) = flatten(x), flatten(b)
        if definition != like or any(np.shape(u) != np.shape(v) for u, v in zip(leaves, sides, strict=True)):
            shapes = [", ".join(map(str, map(spec_of, each))) for each in (leaves, sides)]
            raise StructureError(
                f"custom_linear_solve: solve returned {definition} of {shapes[0]}, b is {like} of {shapes[1]}; "
                "return its like"
            )
        return x

    def residual(x: Any) -> Any:
        return leafwise("custom_linear_solve", np.subtract, matvec(x), b)

    return solution(Equation("custom_linear_solve", residual, matvec, solve, transposed), compute)


@frozen(eq=False)
class Equation:
    """``residual(x) = 0``, with solvers of linear systems in its derivative A and in the transpose of A.

    ``linear`` is the function x -> A x where the residual is ``A x - b``, and None for other residuals.
    """

    name: str
    residual: Function
    linear: Function | None
    solve: Function
    transpose_solve: Function | None


@frozen(eq=False)
class System:
    """The linear system of one solution, by where its equation stands on the tape.

    The reference to the tape is weak: the tape holds the record that holds this, and a cycle would keep it alive.
    """

    name: str
    solve: Function
    transpose_solve: Function | None
    tape: Any
    unknowns: tuple[int, ...]
    """Ids of the leaves of the unknown."""
    stop: int
    """The records of the equation stand between the unknowns and this place."""
    residuals: tuple[int | None, ...]
    """Ids of the leaves of the residual."""
    specs: tuple[ArraySpec, ...]
    definition: Any

    def transposed(self, v: Any, masks: bool) -> Any:
        """A' v, by a sweep that keeps the records of the equation."""
        leaves = flatten(v)[0]
        cts = self.swept(
            leaves, Sweep(_Sparse(), outer=innermost_of(_recording(self.tape().outer), leaves), masks=masks)
        )
        parts = [
            np.zeros(spec.shape, spec.dtype) if cts[ident] is None else cts[ident]
            for ident, spec in zip(self.unknowns, self.specs, strict=True)
        ]
        return unflatten(self.definition, parts)

    def swept(self, leaves: list[Any], run: Sweep) -> Any:
        """The cotangents by id after a sweep over the records of the equation; ``leaves`` are those of the residual."""
        cts = run.cts
        for ident, leaf in zip(self.residuals, leaves, strict=True):
            if ident is not None:
                cts[ident] = leaf if cts[ident] is None else cts[ident] + leaf
        sweep(self.tape(), self.unknowns[-1] + 1, self.stop, (run,))
        return cts

    def pull(self, cts: list[Any], masks: bool) -> list[Any]:
        """-A'^-1 ct: the cotangents of the leaves of the residual, from those of the leaves of the solution, of which
        None stands for 0."""
        if self.transpose_solve is None:
            raise NotDifferentiableError(
                f"{self.name}: reverse mode solves with the transpose; pass transpose_solve=, or symmetric=True"
            )
        parts = [
            np.zeros(spec.shape, spec.dtype) if ct is None else -ct for ct, spec in zip(cts, self.specs, strict=True)
        ]
        y = unflatten(self.definition, parts)
        return flatten(custom_linear_solve(lambda v: self.transposed(v, masks), y, self.transpose_solve, self.solve))[0]


class _Sparse(dict[int, Any]):
    """Cotangents by id, for a long tape of which few records have one."""

    def __missing__(self, ident: int) -> None:
        return None


def _recording(tape: Tape | None) -> Tape | None:
    """The trace on which operations on handles of ``tape`` are recorded now."""
    while tape is not None and tape.mode in (PAUSED, CAPTURED):
        tape = tape.outer if tape.mode == PAUSED else tape.inner
    return tape


def _pull_solution(record: tuple[Any, ...], ct: Any, cts: Any, run: Any) -> None:
    """Solve with the transpose and sweep the equation with the result: the cotangents of all values that it reads.

    Each value gets one sum, in the order of ids, as from a loop function: a replay runs the solution as a loop of one
    step (:func:`_replayed`), and its gradient must have the same bits.
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
        send(cts, ident, sent[ident], run)


@cache
def _solution_form(n_ids: int) -> Form:
    """The form of the record of a solution; ``n_ids`` leaves of its residual depend on the inputs."""
    return special_form("implicit_solution", _pull_solution, n_ids=n_ids)


def solution(equation: Equation, compute: Callable[[], Any]) -> Any:
    """The solution that ``compute`` returns on plain values, with its derivative in every trace under way."""
    top = innermost()
    if top is None:
        return compute()
    if top.mode == REPLAYABLE and top.governor.replays:
        return _replayed(equation, compute)
    with paused(top):
        x = solution(equation, compute)
    return _pushed(equation, top, x) if top.mode == FORWARD else _recorded(equation, top, x)


def _replayed(equation: Equation, compute: Callable[[], Any]) -> Any:
    """The solution on a tape whose records will be executed again: a loop of one step, since only the body of a loop
    is called again in a replay."""
    # One name for each function: a loop freezes the functions that its body names, but not those in a structure.
    name, residual, linear, solve, transpose_solve = astuple(equation, recurse=False)

    def body(carry: Any, _: Any) -> Any:
        return carry, solution(Equation(name, residual, linear, solve, transpose_solve), compute)

    _, stacked = scan(body, (), length=1, policy=SaveAll())
    return map_leaves(lambda leaf: leaf.reshape(leaf.shape[1:]) if len(leaf.shape) > 1 else leaf[0], stacked)


def _pushed(equation: Equation, tape: Tape, x: Any) -> Any:
    """The solution in a forward trace: its tangent is -A^-1 t, where t is the tangent of the residual."""
    leaves, definition = flatten(x)
    unknowns = [
        make(tape.kinds.buffer, leaf, None, tape, SHARED) if isinstance(leaf, np.ndarray | Handle) else leaf
        for leaf in leaves
    ]
    residual = equation.residual(unflatten(definition, unknowns))
    require_alike(equation.name, x, residual)
    residual_tangents = [
        None if t is None else t.value for t in (active_id(leaf, tape) for leaf in flatten(residual)[0])
    ]
    if all(t is None for t in residual_tangents):
        return x
    with paused(tape):
        linear = equation.linear or (lambda v: jvp(equation.residual, (writable_copy(x),), (v,))[1])

        def matvec(parts: list[Any]) -> list[Any]:
            return flatten(linear(unflatten(definition, parts)))[0]

        def solve(parts: list[Any]) -> list[Any]:
            return flatten(
                custom_linear_solve(linear, unflatten(definition, parts), equation.solve, equation.transpose_solve)
            )[0]

        tangents = tape.tangents.solution(leaves, residual_tangents, matvec, solve)
    handles = [
        make(kind_of(tape, leaf), twin_of(leaf), tangent, tape) for leaf, tangent in zip(leaves, tangents, strict=True)
    ]
    return unflatten(definition, handles)


def _recorded(equation: Equation, tape: Tape, x: Any) -> Any:
    """The solution on a tape: the records of the residual at the solution, one record for the solution itself, and one
    for each of its leaves."""
    leaves, definition = flatten(x)
    unknowns = [open_input(tape, leaf) for leaf in flatten(writable_copy(x))[0]]
    ids = tuple(u._id for u in unknowns)
    before = tape.repeatable, tape.mode
    tape.repeatable = True  # loops in the equation are reversed again and again
    if tape.mode == REPLAYABLE and not tape.governor.joins:  # who decides of values one by one drops records
        tape.mode = RECORDING
    try:
        residual = equation.residual(unflatten(definition, unknowns))
    finally:
        tape.repeatable, tape.mode = before
    require_alike(equation.name, x, residual)
    residuals = (present(leaf, tape) for leaf in flatten(residual)[0])
    reached = tuple(active_id(resolve(leaf) if isinstance(leaf, Handle) else leaf, tape) for leaf in residuals)
    if not ids or not _depends(tape, ids):
        return x
    # What the solvers close over may be rebound before the reverse, hence the copies. The equation is not stored: the
    # tape would then keep alive the handles that the equation closes over, and through them itself.
    solve, transpose_solve = (
        detached_function(f, lambda array: _solver_constant(tape, array))
        for f in (equation.solve, equation.transpose_solve)
    )
    specs = tuple(map(spec_of, leaves))
    system = System(
        equation.name, solve, transpose_solve, ref(tape), ids, len(tape.records), reached, specs, definition
    )
    sources = [ident for ident in reached if ident is not None]
    ident = len(tape.records)
    tape.records.append((_solution_form(len(sources)).opcode, *sources, system, site_here()))
    return unflatten(
        definition, [component(tape, ident, k, twin_of(leaf), len(leaves)) for k, leaf in enumerate(leaves)]
    )


def _solver_constant(tape: Tape, array: Any) -> Any:
    """A copy of an array that a solver closes over, since the user may overwrite it before the reverse. While the array
    stays equal, all solutions share one copy.

    The tape shares that copy with nothing else: the solver may write to it.
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
    """Whether the equation just recorded reads anything that depends on the inputs."""
    for record in tape.records[unknowns[-1] + 1 :]:
        assert record is not None  # nothing is dropped while it is recorded
        if record[0] == CAPTURE.opcode or any(i < unknowns[0] for i in form_of(record).ids(record)):
            return True
    return False


@contextmanager
def paused(tape: Tape) -> Iterator[None]:
    """Within the block, operations on handles of the tape run on the values alone, and are not recorded."""
    before, tape.mode = tape.mode, PAUSED
    try:
        yield
    finally:
        tape.mode = before


def in_c_order(leaf: Any) -> Any:
    """A leaf of a solution as an array in C order or a NumPy scalar, so that a replay has it in the same strides."""
    leaf = plain_value(leaf)
    return np.array(leaf, order="C")[()] if isinstance(leaf, np.ndarray | int | float | complex) else leaf


def writable_copy(x: Any) -> Any:
    """A copy of the solution: a function of the user that writes to it does not change the solution."""
    return map_leaves(twin_of, x)


def leafwise(name: str, operation: Function, a: Any, b: Any) -> Any:
    """``operation`` on the leaves of two structures, which must be alike."""
    require_alike(name, a, b)
    first, definition = flatten(a)
    return unflatten(definition, [operation(u, v) for u, v in zip(first, flatten(b)[0], strict=True)])


def require_alike(name: str, x: Any, y: Any) -> None:
    """Raise :class:`StructureError` unless both have the same structure and shapes: as many equations as unknowns."""
    (leaves, definition), (others, other) = flatten(x), flatten(y)
    if definition != other:
        raise StructureError(
            f"{name}: the unknown has structure {definition}, the function gives {other}; as many equations as "
            "unknowns are needed"
        )
    for a, b in zip(leaves, others, strict=True):
        if spec_of(a).shape != spec_of(b).shape:
            raise StructureError(
                f"{name}: an unknown is {spec_of(a)}, the function gives {spec_of(b)}; as many equations as "
                "unknowns are needed"
            )


def require_finite(name: str, x: Any) -> None:
    """Raise :class:`ConvergenceError` where a solver returned infinities or NaN, :class:`StructureError` where it
    returned integers."""
    for leaf in flatten(x)[0]:
        if not carries_derivative(leaf):
            raise StructureError(
                f"{name}: the solver returned {spec_of(leaf)}, which carries no derivative; return floating or "
                "complex numbers"
            )
        wrong = int(np.count_nonzero(~np.isfinite(leaf)))
        if wrong:
            raise ConvergenceError(
                f"{name}: {wrong} of the {np.size(leaf)} elements that the solver returned are not finite; it "
                "did not converge",
                np.inf,
            )
