"""The stage of a derivative (a gradient, or a tangent) that is asked for within another derivative.

The operations of the function are carried out once more, in the traces of the derivative, on handles without values:
this gives the operations of the derivative as a list, of which a stage is made. Plain operands stand in it with their
content, since rules compute with it unseen; whoever asks for a value ends the attempt.

A sweep gives no warnings: until the stage is made, operations of a sweep are marked by the complement of their call
site.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np
from attrs import define, evolve, field

from pullback.memory.in_force import Tracing, next_level
from pullback.memory.reverse_sweep import seeded, sweep
from pullback.recording.copies import faithful, faithful_copy
from pullback.recording.crossing import entered
from pullback.recording.handles import FREE, SHARED, Handle, is_array, kind_of, layout_of, make, resolve
from pullback.recording.recorder import INPUT
from pullback.recording.tape import DEFERRED, FORWARD, NOTHING_KEPT, Tape
from pullback.staging.calls.call_record import Exits
from pullback.staging.generated.forward_statements import NotStageableError
from pullback.staging.generated.recorded_steps import RecordedStep, require_equal
from pullback.staging.generated.stages import stage_of
from pullback.staging.shadow.operations import CAPTURE, FROZEN, Constant, Operation, result_of, same, values_nbytes
from pullback.staging.shadow.quick_operators import KnownStep
from pullback.staging.shadow.shadow_run import ShadowRun
from pullback.staging.shadow.twins import Twins
from pullback.staging.shadow.valueless import VALUELESS
from pullback.tracing.tracer import KINDS
from pullback.words.sameness import same_content
from pullback.words.specs import spec_of
from pullback.words.undocumented import quiet

ONE = np.float64(1)
MOST_OPERATIONS = 400
"""The most operations of a function; the derivative of a derivative has ten times as many, and to make a stage takes
long."""
MOST_NBYTES = 1 << 22
"""Bytes of all values of a derivative that becomes a stage where nobody has asked for one."""
MOST_FAILED = 4
MOST_CONTENTS = 4
"""The most contents of the plain operands for which there are stages."""


@define(eq=False)
class Derived:
    """The stage of one derivative, for plain operands of one content."""

    operands: list[Any]
    """The plain operands of the function."""
    exits: Exits
    constants: list[Any]
    """The constants of the derivative."""

    def fits(self, operands: Sequence[Any]) -> bool:
        """Whether these are the operands that it was made for."""
        return len(operands) == len(self.operands) and all(map(same_content, self.operands, operands))


@define(eq=False)
class Derivatives:
    """What is known of one kind of derivative, of calls that values of one kind enter."""

    program: "Program"
    seen: list[list[Operation]] = field(factory=list)
    """The operations of calls that have come once."""
    known: list[KnownStep] = field(factory=list)
    made: dict[KnownStep, list[Derived]] = field(factory=dict)
    n_failed: int = 0
    why: str = ""
    """Why there is no stage."""

    @property
    def over(self) -> bool:
        """Whether it is computed in the ordinary way for good."""
        return self.n_failed + len(self.seen) + len(self.known) > MOST_FAILED

    def of(self, known: KnownStep, operands: Sequence[Any]) -> Derived | None:
        """The stage for a call that has done what is known."""
        for derived in self.made[known]:
            if derived.fits(operands):
                return derived
        return None

    def refuses(self, why: str) -> bool:
        """Whether there is a reason for which such calls have no stage; there is none then for good."""
        if why:
            self.why, self.n_failed = why, MOST_FAILED + 1
        return bool(why)

    def learn(self, operations: list[Operation], inputs: list[Any], operands: list[Any], result: Any) -> None:
        """A call has done this, and was computed in the ordinary way, with this result."""
        for known in self.known:
            if known.operations is operations or all(map(same, known.operations, operations)):
                break
        else:
            for other in self.seen:
                if len(other) == len(operations) and all(map(same, other, operations)):
                    self.seen = [one for one in self.seen if one is not other]
                    break
            else:
                self.seen = [*self.seen, operations]
                return
            known = KnownStep(operations)
            self.made[known] = []
            self.known.append(known)
        if len(self.made[known]) >= MOST_CONTENTS:
            self.n_failed += 1
            self.made[known] = []
            return
        try:
            derived = _derived(self.program, operations, inputs, operands, result)
        except Exception as error:  # noqa: BLE001 - whatever a rule does with what has no value
            self.refuses(str(error) if isinstance(error, NotStageableError) else f"{type(error).__name__}: {error}")
            return
        self.made[known] = [*self.made[known], derived]


Program = Callable[[list[Any], list[Operation], list[Any]], list[Any]]
"""A function of what enters, the operations of a function and their plain operands that gives the values of the
derivative."""


def gradient(
    xs: list[Any], operations: list[Operation], operands: list[Any], *, with_value: bool, n_wanted: int
) -> list[Any]:
    """The cotangent of each of the first ``n_wanted`` arguments, as ``grad`` computes it, after the value if that is
    asked for."""
    # All enter the trace, as they do where nothing is known; what only the others need is left out of the stage.
    value, cts = swept(xs, lambda tape, given: _carried_out(tape, given, operations, operands))
    return [*([value] if with_value else []), *cts[:n_wanted]]


def swept(xs: list[Any], compute: Callable[[Tape, list[Any]], Any]) -> tuple[Any, list[Any]]:
    """What ``compute`` gives of handles of a trace, and the cotangent of each."""
    tape = Tape(next_level(), KINDS)
    given = []
    for x in xs:
        value = entered(x, tape)
        given.append(make(kind_of(tape, value), value, len(tape.records), tape, SHARED))
        tape.records.append((INPUT.opcode, 0))
    tape.n_inputs = len(given)
    with Tracing(tape):
        out = compute(tape, given)
    tape.close()
    found = layout_of(out)
    if is_array(out) or found.shape != () or found.dtype != np.float64:
        raise NotStageableError("a result that is no number of that kind")
    one = seeded(tape, (out,), (ONE,))
    one.frees = True
    run: Any = found._tape.shadow if isinstance(found, Handle) else None
    before = run is not None and run.sweeps
    if run is not None:
        run.sweeps = True
    sweep(tape, tape.n_inputs, len(tape.records), (one,))
    if run is not None:
        run.sweeps = before
    return out._value, one.cts[: tape.n_inputs]


def pushed(tangents: Any, kind: Any, program: Program | None = None) -> Program:
    """The program of a forward trace, whose ``Tape.tangents`` are of that type and hold tangents of that ``kind``:
    value and tangent of the function, or of each of the values that ``program`` computes."""

    def forward(entering: list[Any], operations: list[Operation], operands: list[Any]) -> list[Any]:
        tape, n = Tape(next_level(), KINDS), len(entering) // 2
        tape.mode, tape.tangents = FORWARD, tangents(tape)
        given = []
        for x, t in zip(entering[:n], entering[n:], strict=True):
            value = entered(x, tape)
            given.append(make(kind_of(tape, value), value, kind(t), tape, SHARED))
        with Tracing(tape):
            if program is None:
                outs = [_carried_out(tape, given, operations, operands)]
            else:
                outs = program(given, operations, operands)
        tape.close()
        for out in outs:
            if not isinstance(out, Handle) or out._tape is not tape or out._id is None:
                raise NotStageableError("a value that has no tangent")
        tape.tangents = None  # a cycle with the tape
        return [part for out in outs for part in (out._value, out._id.value)]

    return forward


def _carried_out(tape: Tape, given: list[Any], operations: list[Operation], operands: list[Any]) -> Any:
    """What the function returns, a single handle, as these operations give it on a trace."""
    twins = Twins(lambda: tape, tape.level)
    twins.by_number = dict(enumerate(given))
    left = iter(operands)
    for op in operations[:-1]:
        if op.what is CAPTURE:
            raise NotStageableError("a captured value")
        values = tuple(twins.by_number[o] if type(o) is int else next(left) for o in op.operands)
        twins.place(op, twins.run(op.what, values, op.params))
    (end,) = operations[-1].operands
    return resolve(twins.by_number[end])


def _derived(
    program: Program, operations: list[Operation], inputs: list[Any], operands: list[Any], result: Any
) -> Derived:
    """The stage of a derivative; raises where there is none."""
    if len(operations) > MOST_OPERATIONS:
        raise NotStageableError("too many operations")
    with quiet():
        _require_result(inputs[: _n_arguments(operations)], operations, operands, result)
    exits, constants = exits_of(lambda xs: program(xs, operations, list(map(faithful, operands))), inputs, asked=True)
    return Derived(list(map(faithful, operands)), exits, constants)


def exits_of(
    program: Callable[[list[Any]], list[Any]],
    inputs: list[Any],
    n_active: int | None = None,
    moves: Sequence[bool] | None = None,
    most: int | None = None,
    *,
    asked: bool = False,
) -> tuple[Exits, list[Any]]:
    """The stage of a program, and its constants; raises where there is none, and after ``most`` operations; unless
    somebody has ``asked`` for a stage, also where its values are large, since it keeps memory for them.

    The first ``n_active`` inputs have cotangents, and those of the values that ``moves`` names; all of both where none
    are given.
    """
    with quiet():
        wanted = program(list(map(faithful, inputs)))
        with nesting_of(inputs) as run:
            run.most, run.asked = most, asked
            with Tracing(run.tape):
                returned = program([run.enter(faithful(x)) for x in inputs])
            run.finish(returned, [])
            recorded = _recorded(run, returned, wanted, n_active, moves)
    stage = stage_of(recorded)
    stage.records = [record if record[-1] >= 0 else (*record[:-1], ~record[-1]) for record in stage.records]
    sites = stage.record.sites
    sites.update((line, (~site, "")) for line, (site, _) in list(sites.items()) if site < 0)
    return Exits(stage), run.constants


def _n_arguments(operations: list[Operation]) -> int:
    """How many values enter the function."""
    return min((op.makes[0] for op in operations if op.makes), default=0)


def _require_result(xs: list[Any], operations: list[Operation], operands: list[Any], result: Any) -> None:
    """The operations have to give what the function has returned."""
    tape = Tape(next_level(), KINDS)
    given = [make(kind_of(tape, x), faithful(x), k, tape, SHARED) for k, x in enumerate(xs)]
    tape.records += [(INPUT.opcode, 0) for _ in given]
    with Tracing(tape):
        out = _carried_out(tape, given, operations, list(map(faithful, operands)))
    tape.close()
    require_equal([out._value], [result], "the function")


@contextmanager
def nesting_of(inputs: list[Any]) -> Iterator["Nesting"]:
    """A run that these values enter, and that is over after the block: it, its tapes and their values would keep one
    another."""
    level = next_level()
    tape = Tape(level, VALUELESS)
    tape.mode, tape.captures = DEFERRED, {}
    run = Nesting(tape, Twins(lambda: Tape(level, KINDS), level))
    run.begin((), [result_of(x, "tracer") for x in inputs])
    try:
        yield run
    finally:
        tape.shadow, tape.kept = None, NOTHING_KEPT  # type: ignore[assignment]  # as ``HotRun.over`` does
        run.eager.by_number.clear()


def _recorded(
    run: "Nesting", returned: list[Any], wanted: list[Any], n_active: int | None, moves: Sequence[bool] | None
) -> RecordedStep:
    """What was carried out as a step. Raises unless it has given the values ``wanted``, which come from the same
    without a trace around."""
    if run.why:
        raise NotStageableError(run.why)
    tape, found = run.eager.opened(), [run.twin(leaf) for leaf in returned]
    left: list[Any] = []
    for handle in found:
        if not isinstance(handle, Handle) or handle._id is None or handle._id < tape.n_inputs:
            raise NotStageableError("a value that depends on nothing, or is an argument")
        left.append((handle._id, spec_of(handle._value)))
    if len({ident for ident, _ in left}) < len(left):
        raise NotStageableError("one value twice")
    if moves is not None:
        left = [at if moving else None for at, moving in zip(left, moves, strict=True)]
    tape.close()
    n = tape.n_inputs
    return RecordedStep(
        tape, run.operations, run.ranges, run.inputs, [], run.constants, [None] * n,
        (list(range(n if n_active is None else n_active)), []), left,
        wanted, wanted, tape.masks, of_loop=False, advances=False,
    )  # fmt: skip


@define(eq=False)
class Nesting(ShadowRun):
    """A run in which handles without values are the values of traces within."""

    nests: ClassVar[bool] = True
    sweeps: bool = field(default=False, init=False)
    """Whether it is in a sweep, which warns of nothing."""
    most: int | None = field(default=None, init=False)
    """How many operations it may have."""
    asked: bool = field(default=True, init=False)
    """Whether somebody has asked for a stage, however large the values."""
    nbytes: int = field(default=0, init=False)
    """Bytes of the values so far."""

    @property
    def holds(self) -> bool:
        """Whether the state of NumPy's errors is as it was; in a sweep rules may change it."""
        return self.sweeps or super().holds

    def frozen(self, handle: Any) -> Any:
        """A handle for the value as it is now."""
        self.resolve(handle)
        result = handle._flag
        return self._made(handle._id, evolve(result, kind="tracer") if result.kind == "view" else result)

    def lifted(self, value: Any) -> Any:
        """A plain array that becomes one of this trace, and may be written to."""
        number, result, start = self.n_values, result_of(value, "buffer"), len(self.eager.opened().records)
        self.constants.append(faithful_copy(value))
        self.operations.append(Operation(FROZEN, (Constant.of(value),), None, (number,), (result,)))
        self.ranges.append((start, start))
        tape = self.eager.opened()
        self.eager.by_number[number] = make(tape.kinds.buffer, faithful_copy(value), None, tape, FREE)
        return self._made(number, result)

    def _carried_out(self, what: Any, operands: tuple[Any, ...], params: Any) -> Any:
        """A plain value that comes of what depends on no input is none that was asked for."""
        if self.most is not None and len(self.operations) >= self.most:
            raise NotStageableError("too many operations")
        twins = [self.twin(operand) for operand in operands]
        before, records = self.why, self.eager.opened().records
        start = len(records)
        given = super()._carried_out(what, operands, params)
        if self.sweeps:
            records[start:] = [(*record[:-1], ~record[-1]) for record in records[start:]]  # type: ignore[index]
        if not any(isinstance(twin, Handle) and twin._id is not None for twin in twins):
            self.why = before
        if not self.asked:
            self.nbytes += values_nbytes(self.operations[-1:])
            if self.nbytes > MOST_NBYTES:
                raise NotStageableError("it would keep much memory, which nobody has asked for")
        return given

    def value(self, handle: Any) -> Any:  # noqa: ARG002
        """Nobody may ask: what depends on it would be frozen."""
        raise NotStageableError("a value is asked for")

    def surrender(self) -> Tape:
        """There is nothing to go on with."""
        raise NotStageableError("an operation that is not followed")
