"""A stage: a step that is known, as generated functions; used once these have given the bytes of the recorded step."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import define, field

from pullback.memory.sweep import Sweep, sweep
from pullback.recording.crossing import CAPTURE
from pullback.recording.tape import Tape
from pullback.rules.forms import FORMS
from pullback.staging.forward_statements import Forward, NotStageableError, forward_statements
from pullback.staging.operations import Operation, Result, entering
from pullback.staging.placing import plan_of
from pullback.staging.quick_operators import Known
from pullback.staging.reverse_statements import SymbolSweep, reverse_statements, skeleton
from pullback.staging.symbols import Program, Symbol
from pullback.staging.text import Fresh, Generated, generate
from pullback.staging.valueless import CLASSES
from pullback.words.digests import same_bits
from pullback.words.sniffs import quiet


@define(eq=False)
class Recorded:
    """A step that was recorded in the ordinary way, with what its shadow run wrote down: what a stage is made from."""

    tape: Tape
    operations: list[Operation]
    ranges: list[tuple[int, int]]
    inputs: list[Any]
    captured: list[tuple[int, Any]]
    constants: list[Any]
    kinds: list[Result | None]
    """Of the leaves of the state; None for one without derivative."""
    places: tuple[list[int | None], list[int | None]]
    """Records of the leaves that enter, and of those of ``xs``."""
    left: list[tuple[int, Any] | None]
    """Record and spec of each leaf and output that leaves, None where it does not depend on the inputs."""
    returned: list[Any]
    """Values of the leaves and outputs."""
    after: list[Any]
    """The state after the step, in which Python's numbers are such again."""
    masks: bool

    @property
    def entered(self) -> list[int]:
        """Record of each input."""
        return [i for part in self.places for i in part if i is not None]


@define(eq=False)
class Workspace:
    """The arrays that the functions of a stage work in, of one execution of a loop; ``steps`` are those of the loop."""

    steps: Any = None
    arrays: dict[str, tuple[tuple[Any, ...], tuple[Any, ...]]] = field(factory=dict)

    def of(self, generated: Generated) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The buffers, and the makers of what leaves, of one function."""
        found = self.arrays.get(generated.name)
        if found is None:
            plan = generated.plan
            buffers = tuple(np.empty(shape, dtype) for shape, dtype in plan.buffers)
            found = self.arrays[generated.name] = buffers, tuple(Fresh(*kind) for kind in plan.fresh)
        return found


@define(eq=False)
class Stage:
    """The functions of a step, and what is needed to make an ordinary tape of what was recorded by them."""

    known: Known
    record: Generated
    advance: Generated
    reverse: Generated
    reverse_own: Generated
    """The same, which may write to the seeds: those that it has returned for the step after."""
    slots: tuple[int, ...]
    """The numbers of the values that the reverse reads, in their order among the slots."""
    records: list[Any] = field(repr=False)
    """The records, with symbols in the place of values."""
    n_inputs: int
    captured: tuple[int, ...]
    """The ids of the captured values, in the loop that the stage was made in."""
    seeded: tuple[bool, ...]
    """Which leaves and outputs have a cotangent."""
    specs: tuple[Any, ...]
    """The specs of these cotangents."""
    entered: tuple[bool, ...]
    """Which inputs get one."""
    gathered: tuple[bool, ...]
    """Which captured values get one."""
    masks: bool
    places: tuple[list[int | None], list[int | None]] = field(default=([], []), init=False)
    """Record ids of the leaves that enter, and of those of ``xs``."""
    left: list[tuple[int, Any] | None] = field(factory=list, init=False)
    """Record and spec of each leaf and output that leaves."""
    returns_seeds: bool = field(default=False, init=False)
    """Whether the cotangents that the reverse gives are what it takes."""
    closed: bool = field(default=False, init=False)
    """Whether what it returns is of the kind that entered it."""
    repeats: bool = field(default=False, init=False)
    """Whether it is so once Python's numbers are such again."""

    def thawed(self, tape: Tape, slots: Sequence[Any], captured: Sequence[int]) -> Tape:
        """``tape`` with the records that the ordinary way would have made."""
        by_number, outer = dict(zip(self.slots, slots, strict=True)), dict(zip(self.captured, captured, strict=True))
        for record in self.records:
            form = FORMS[record[0]]
            if record[0] == CAPTURE.opcode:
                record = (record[0], outer[record[1]], *record[2:])  # noqa: PLW2901
            elif form.saved:
                first = 1 + len(form.active)
                last = first + len(form.saved)
                held = [_valued(x, by_number) for x in record[first:last]]
                record = (*record[:first], *held, *record[last:])  # noqa: PLW2901
            tape.records.append(record)
        tape.n_inputs = self.n_inputs
        return tape


def _valued(x: Any, by_number: dict[int, Any]) -> Any:
    if type(x) is tuple:
        return tuple(_valued(part, by_number) for part in x)
    return by_number[x.number] if type(x) is Symbol else x


def stage_of(step: Recorded) -> Stage:
    """The stage of a recorded step, compared with it byte for byte. Raises :class:`NotStageableError`."""
    records, ranges = step.tape.records, step.ranges
    covered = {k for start, stop in ranges for k in range(start, stop)}
    if covered != set(range(step.tape.n_inputs, len(records))):
        raise NotStageableError("records that no operation has made")
    sites = [records[start][-1] if stop > start else 0 for start, stop in ranges]  # type: ignore[index]
    values = [value for _, value in step.captured]
    forward = forward_statements(step.operations, step.inputs, values, step.constants, sites)
    held = skeleton(records, ranges, step.operations, forward)
    n_forward = len(forward.program.statements)
    slots = tuple(dict.fromkeys(n for record in held for n in _numbers(record)))
    seeds, given = _seeds(forward, step)
    reverse = reverse_statements(forward, held, step.tape.n_inputs, seeds, masks=step.masks)
    stage = _generated(step, forward, n_forward, reverse, held, slots, given)
    _require_same(stage, step)
    cts = [reverse.cts[ident] for ident in step.entered]
    samples = [forward.program.samples[ct.number] for ct in cts if ct is not None]
    stage.places, stage.left = step.places, step.left
    stage.returns_seeds = (
        not step.places[1]
        and len(samples) == len(step.left) == len(stage.specs) == len(step.places[0])
        and all(
            type(x) is np.ndarray and x.flags.c_contiguous and x.shape == spec.shape and x.dtype == spec.dtype
            for x, spec in zip(samples, stage.specs, strict=True)
        )
    )
    stage.closed, stage.repeats = _enters_again(step, step.returned), _enters_again(step, step.after)
    forward.program.samples.clear()
    return stage


def _apart(program: Program, parts: list[list[int]], given: list[Symbol]) -> list[int]:
    """The seeds that may be written to when they are what the function has returned for the step after: those whose
    memory nothing else has that it returns, and that is no seed handed on."""
    if len(parts[0]) != len(given):
        return []
    samples = [program.samples[number] for part in parts for number in part]
    return [
        seed.number
        for k, seed in enumerate(given)
        if isinstance(samples[k], np.ndarray)
        and samples[k].base is None
        and parts[0][k] not in [x.number for x in given]
        and not any(_share(samples[k], other) for j, other in enumerate(samples) if j != k)
    ]


def _share(array: Any, other: Any) -> bool:
    return isinstance(other, np.ndarray) and np.may_share_memory(array, other)


def _enters_again(step: Recorded, leaves: list[Any]) -> bool:
    """Whether leaves are of the kinds that have entered the step."""
    return all(kind is None or entering(x) == kind for kind, x in zip(step.kinds, leaves, strict=False))


def _numbers(record: Any) -> list[int]:
    form = FORMS[record[0]]
    saved = form.saved_values(record) if form.saved else ()
    return [x.number for part in saved for x in (part if type(part) is tuple else (part,)) if type(x) is Symbol]


def _seeds(forward: Forward, step: Recorded) -> tuple[dict[int, Symbol], list[Symbol]]:
    seeds: dict[int, Symbol] = {}
    given = []
    for at in step.left:
        if at is not None:
            ident, spec = at
            seed = forward.program.value(np.ones(spec.shape, spec.dtype)[()])
            given.append(seed)
            seeds[ident] = seed if ident not in seeds else seeds[ident] + seed
    return seeds, given


def _generated(
    step: Recorded,
    forward: Forward,
    n_forward: int,
    swept: SymbolSweep,
    held: list[Any],
    slots: tuple[int, ...],
    given: list[Symbol],
) -> Stage:
    program = forward.program
    returned = [x.number for x in forward.returned]
    before, after = program.statements[:n_forward], program.statements[n_forward:]
    if len(given) != sum(at is not None for at in step.left):
        raise NotStageableError("cotangents that do not fit")
    arguments = [
        (name, [x.number for x in part])
        for name, part in (("inputs", forward.inputs), ("captured", forward.captured), ("constants", forward.constants))
    ]
    record = generate(
        program, "record", plan_of(program, before, (*returned, *slots), all_of=True), arguments, (returned, slots)
    )
    advance = generate(program, "advance", plan_of(program, before, returned, all_of=True), arguments, (returned,))
    cts = [swept.cts[ident] for ident in step.entered]
    gathered = [swept.gathered.get(ident) for ident, _ in step.captured]
    parts = [[x.number for x in part if x is not None] for part in (cts, gathered)]
    arguments = [("slots", list(slots)), ("seeds", [x.number for x in given])]
    leaving = (*parts[0], *parts[1])
    backward = generate(program, "reverse", plan_of(program, after, leaving), arguments, parts)
    own = generate(
        program,
        "reverse_own",
        plan_of(program, after, leaving, _apart(program, parts, given)),
        arguments,
        parts,
    )
    return Stage(
        Known(step.operations, CLASSES), record, advance, backward, own, slots, held, step.tape.n_inputs,
        tuple(ident for ident, _ in step.captured), tuple(at is not None for at in step.left),
        tuple(at[1] for at in step.left if at is not None), tuple(x is not None for x in cts),
        tuple(x is not None for x in gathered), step.masks,
    )  # fmt: skip


def _require_same(stage: Stage, step: Recorded) -> None:
    """Run the functions on what the recorded step was run on: all that leaves must have the same bytes."""
    work = Workspace()
    captured = [value for _, value in step.captured]
    with quiet():  # what there is to be warned of has been warned of by the recorded step
        returned, slots = stage.record.function(step.inputs, captured, step.constants, *work.of(stage.record))
        (advanced,) = stage.advance.function(step.inputs, captured, step.constants, *work.of(stage.advance))
    require_equal(returned, step.returned, "what the step returns")
    require_equal(advanced, step.returned, "what the step returns")
    random = np.random.default_rng(0)
    seeds = [draw(random, spec) for spec in stage.specs]
    cts: list[Any] = [None] * len(step.tape.records)
    one = Sweep(cts, masks=step.masks)
    for at, seed in zip((at for at in step.left if at is not None), seeds, strict=True):
        cts[at[0]] = seed.copy() if cts[at[0]] is None else cts[at[0]] + seed
    sweep(step.tape, step.tape.n_inputs, len(step.tape.records), [one])
    for function in (stage.reverse, stage.reverse_own):
        with quiet():
            entered, gathered = function.function(slots, [seed.copy() for seed in seeds], *work.of(function))
        wanted = [cts[ident] for ident in step.entered]
        require_equal(entered, [ct for ct in wanted if ct is not None], "the cotangents")
        wanted = [one.gathered.get(ident) for ident, _ in step.captured]
        require_equal(gathered, [ct for ct in wanted if ct is not None], "the cotangents of captured values")


def draw(random: np.random.Generator, spec: Any) -> Any:
    """A drawn cotangent."""
    drawn = np.asarray(random.standard_normal(spec.shape))
    if spec.dtype.kind == "c":
        drawn = drawn + 1j * random.standard_normal(spec.shape)
    return drawn.astype(spec.dtype)[()]


def require_equal(found: Sequence[Any], wanted: Sequence[Any], what: str) -> None:
    """Raise :class:`NotStageableError` unless two lists of values have the same bytes and strides."""
    if len(found) != len(wanted):
        raise NotStageableError(f"{what}: {len(found)} values, {len(wanted)} were recorded")
    for a, b in zip(found, wanted, strict=True):
        a, b = np.asarray(a), np.asarray(b)  # noqa: PLW2901
        if a.shape != b.shape or a.dtype != b.dtype or a.strides != b.strides or not same_bits(a, b):
            raise NotStageableError(f"{what}: other bytes than were recorded")
