"""A stage: the generated functions of a step that repeats (advance, record, reverse). They are used only after they
have given the bytes of the recorded step. ``shelf`` keeps them; loops and staged functions call them."""

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
from attrs import define, field

from pullback.backends.plans import Backend, Kernel
from pullback.memory.ledger import Item
from pullback.recording.copies import faithful, faithful_copy
from pullback.recording.crossing import CAPTURE
from pullback.recording.tape import Tape
from pullback.rules.forms import FORMS
from pullback.staging.generated.forward_statements import Forward, NotStageableError, forward_statements
from pullback.staging.generated.generated import Generated
from pullback.staging.generated.placing import plan_of
from pullback.staging.generated.recorded_steps import (
    RecordedStep,
    gives_seeds,
    n_carried,
    own_seeds,
    require_equal,
    require_same,
    seeds_of,
    share_memory,
)
from pullback.staging.generated.reverse_statements import SymbolSweep, reverse_statements, skeleton, valued
from pullback.staging.generated.text import Draft
from pullback.staging.generated.told_backends import Description
from pullback.staging.generated.workspaces import Workspace, buffer_bytes
from pullback.staging.shadow.collective_pulls import ComparedPull, draw, is_taken_part_in
from pullback.staging.shadow.quick_operators import KnownStep
from pullback.staging.statements.symbols import Program, Symbol, mapped
from pullback.words.ordered_calls import fed
from pullback.words.specs import buffer_of
from pullback.words.undocumented import quiet

MOST_AT_ONCE = 2**26
"""Bytes of all values of a step up to which it has a function that records and reverses it: where they are more, what
it would save is little."""


@define(eq=False)
class Stage:
    """The functions of a step, and what is needed to make an ordinary tape of what was recorded by them."""

    known: KnownStep
    record: Generated
    reverse: Generated
    advance: Generated
    """``record`` without the slots; the same where no step is run that is not kept."""
    reverse_own: Generated
    """``reverse``, but it may write to the seeds, which it has returned itself for the step after; of a call of a
    function the same."""
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
    masks_itself: bool
    both: Generated | None = None
    """``record`` and ``reverse_own`` as one function, which is given the sums of the cotangents of captured values as
    well, and adds to them: of a step that is recorded to be reversed immediately. None where that has little to gain.
    Where kernels compute parts of it, it is for where nobody hears of what NumPy warns of."""
    leaf: Generated | None = None
    """``both`` without the state after the step, where nobody asks for it, nor for what NumPy warns of."""
    booked: tuple[tuple[int, str], ...] = field(init=False)
    """The places of the slots that records hold, with the reasons."""
    marked: bool = field(init=False)
    """Whether values are marked in it (``pullback.name``)."""
    collective: bool = field(init=False)
    """Whether calls of others take part in it."""
    held: tuple[bool, ...] = field(default=(), init=False)
    """Which inputs lie in memory that a slot has, too."""
    notes: list[str] = field(factory=list, init=False)
    """Why functions are not those of the backend that was asked for."""
    places: tuple[list[int | None], list[int | None]] = field(default=([], []), init=False)
    """Record ids of the leaves that enter, and of those of ``xs``."""
    left: list[tuple[int, Any] | None] = field(factory=list, init=False)
    """Record and spec of each leaf and output that leaves."""
    ranges: list[tuple[int, int]] = field(factory=list, init=False)
    """The records of each operation."""
    lacks_both: bool = field(default=False, init=False)
    """Whether ``both`` and ``leaf`` are still to be made: of a stage for fewer seeds than the step was recorded with,
    when such a step is at hand."""
    returns_seeds: bool = field(default=False, init=False)
    """Whether the cotangents that the reverse gives are what it takes."""
    others: dict[tuple[bool, ...], "Stage | None"] = field(factory=dict, init=False)
    """The same with reverses for fewer seeds, by which leaves have one; None where there is none."""
    closed: bool = field(default=False, init=False)
    """Whether the state that it returns has the types, shapes and dtypes of the one that entered, and is its own."""
    repeats: bool = field(default=False, init=False)
    """The same, once numbers that NumPy has returned in the place of Python's are Python's again."""
    numbers: tuple[int, ...] = field(default=(), init=False)
    """The places of these numbers in the state, where it is its own otherwise."""

    def __attrs_post_init__(self) -> None:
        self.booked = booked_slots(self.records, self.slots)
        self.marked = any(FORMS[record[0]].passes for record in self.records)
        self.collective = any(map(is_taken_part_in, self.records[self.n_inputs :]))

    @property
    def buffer_bytes(self) -> int:
        """What its functions work in."""
        functions = self.record, self.reverse, self.advance, self.reverse_own, self.both, self.leaf
        return buffer_bytes(each for each in functions if each is not None)

    def with_numbers(self, _: Sequence[Any], after: Sequence[Any]) -> list[Any]:
        """The state after a step, with Python's numbers in the place of NumPy's."""
        found = list(after)
        for place in self.numbers:
            found[place] = float(found[place])
        return found

    def thawed(self, tape: Tape, slots: Sequence[Any], captured: Sequence[int]) -> Tape:
        """``tape`` with the records that the ordinary way would have made."""
        by_number, outer = dict(zip(self.slots, slots, strict=True)), dict(zip(self.captured, captured, strict=True))
        for record in self.records:
            form = FORMS[record[0]]
            if record[0] == CAPTURE.opcode:
                record = (record[0], outer[record[1]], *record[2:])  # noqa: PLW2901
            elif form.saved:
                held = [valued(x, by_number) for x in form.saved_values(record)]
                record = form.with_saved(record, held)  # noqa: PLW2901
            tape.records.append(record)
        tape.n_inputs, tape.collective = self.n_inputs, self.collective
        return tape


def booked_slots(records: Sequence[Any], slots: Sequence[int]) -> tuple[tuple[int, str], ...]:
    """The places of the slots that records hold, each with the reason for which one holds it first."""
    place, found = {number: k for k, number in enumerate(slots)}, dict[int, str]()
    for record in records:
        form = FORMS[record[0]]
        for (_, reason), saved in zip(form.held, form.saved_values(record), strict=True):
            for x in saved if type(saved) is tuple else (saved,):
                if type(x) is Symbol:
                    found.setdefault(place[x.number], reason)
    return tuple(found.items())


def slot_items(booked: Sequence[tuple[int, str]], slots: Sequence[Any], slab: Any = None) -> list[Item]:
    """What holding the slots costs, as the ledger books the records; of a ``slab`` for many steps, each part."""
    items: dict[int, Item] = {}
    for k, reason in booked:
        value = slots[k]
        if isinstance(value, np.ndarray):
            base = value.base
            buffer = value if base is None or base is slab else buffer_of(value)
            items.setdefault(id(buffer), (id(buffer), buffer.nbytes, reason))
    return list(items.values())


def stage_of(step: RecordedStep, backend: Backend | None = None) -> Stage:
    """The stage of a recorded step, compared with it byte for byte, with the kernels of a backend where these give the
    same. Raises :class:`NotStageableError`."""
    program = Program(felt=False)
    try:
        return _stage_of(step, backend, program)
    except Exception:
        if not program.unfelt:
            raise
    return _stage_of(step, backend, Program())


def _stage_of(step: RecordedStep, backend: Backend | None, program: Program) -> Stage:
    records, ranges = step.tape.records, step.ranges
    covered = {k for start, stop in ranges for k in range(start, stop)}
    if covered != set(range(step.tape.n_inputs, len(records))):
        raise NotStageableError("records that no operation has made")
    sites = [records[start][-1] if stop > start else 0 for start, stop in ranges]  # type: ignore[index]
    values = [value for _, value in step.captured]
    with fed(step.ordered):
        forward = forward_statements(step.operations, step.inputs, values, step.constants, sites, program=program)
    held = skeleton(records, ranges, step.operations, forward)
    n_forward = len(forward.program.statements)
    slots = tuple(dict.fromkeys(n for record in held for n in numbers_held(record)))
    seeds, given = seeds_of(forward.program, [at for at in step.left if at is not None])
    reverse = reverse_statements(forward, held, step.tape.n_inputs, seeds, masks=step.masks)
    drafts = _drafts(step, forward, n_forward, reverse, slots, given)
    holds = frozenset(k for k, symbol in enumerate(forward.constants) if symbol.number in slots)
    stage = _generated(step, KnownStep(step.operations, holds), drafts, reverse, held, slots)
    stage.both, stage.leaf, quietly = _both(step, forward, n_forward, reverse, given, by=backend)
    cts = [reverse.cts[ident] for ident in step.entered]
    samples = [forward.program.samples[ct.number] for ct in cts if ct is not None]
    stage.places, stage.left, stage.ranges = step.places, step.left, ranges
    stage.returns_seeds = gives_seeds(stage, samples)
    stage.closed, stage.repeats = step.returns_own and step.enters_again(step.returned), step.enters_again(step.after)
    stage.numbers = step.numbers if step.returns_own and stage.repeats else ()
    del samples
    if backend is None:  # before the functions are tried: all values of a step are felt in memory
        forward.program.samples.clear()
    read, seeded = require_same(stage, step)
    stage.held = tuple(any(share_memory(x, other) for other in read) for x in step.inputs)
    if backend is not None:
        forwards, backwards = (step.inputs, values, step.constants), (read, seeded)
        for draft in drafts:
            _take_kernels(stage, draft, backend, forwards if draft.plan.warns else backwards, step.ordered)
        if stage.record.kernels or stage.reverse_own.kernels:
            stage.both, stage.leaf = both_by(backend, quietly, (*forwards, seeded), stage.notes)
    forward.program.samples.clear()
    return stage


def _n_carried(step: RecordedStep, swept: SymbolSweep) -> int:
    return n_carried([at is not None for at in step.left], step.places[0], swept.cts)


def numbers_held(record: Any) -> list[int]:
    """The numbers of the values that a record with symbols holds."""
    form = FORMS[record[0]]
    saved = form.saved_values(record) if form.saved else ()
    return [x.number for part in saved for x in (part if type(part) is tuple else (part,)) if type(x) is Symbol]


def _drafts(
    step: RecordedStep,
    forward: Forward,
    n_forward: int,
    swept: SymbolSweep,
    slots: tuple[int, ...],
    given: list[Symbol],
) -> list[Draft]:
    """The functions ``record`` and ``reverse``; of a loop's step ``reverse_own``, and ``advance`` if that is run."""
    program = forward.program
    returned = [x.number for x in forward.returned]
    before, after = program.statements[:n_forward], program.statements[n_forward:]
    if len(given) != sum(at is not None for at in step.left):
        raise NotStageableError("cotangents that do not fit")
    arguments = [
        (name, [x.number for x in part])
        for name, part in (("inputs", forward.inputs), ("captured", forward.captured), ("constants", forward.constants))
    ]
    recording = plan_of(program, before, (*returned, *slots), all_of=True, slots={*slots}.difference(returned))
    record = Draft(program, "record", recording, arguments, (returned, slots))
    forwards = arguments
    cts = [swept.cts[ident] for ident in step.entered]
    gathered = [swept.gathered.get(ident) for ident, _ in step.captured]
    parts = [[x.number for x in part if x is not None] for part in (cts, gathered)]
    arguments = [("slots", list(slots)), ("seeds", [x.number for x in given])]
    leaving = (*parts[0], *parts[1])
    backward = Draft(program, "reverse", plan_of(program, after, leaving), arguments, parts)
    if not step.of_loop:
        return [record, backward]
    ours = own_seeds(program, parts, given, _n_carried(step, swept))
    own = Draft(program, "reverse_own", plan_of(program, after, leaving, ours), arguments, parts)
    if not step.advances:
        return [record, backward, own]
    advance = Draft(program, "advance", plan_of(program, before, returned, all_of=True), forwards, (returned,))
    return [record, backward, own, advance]


def _both(
    step: RecordedStep, forward: Forward, n_forward: int, swept: SymbolSweep, given: list[Symbol], *, by: Backend | None
) -> tuple[Generated | None, Generated | None, Sequence[Draft]]:
    """The functions ``both`` and ``leaf``, of a step whose values are small; and from what a backend makes them,
    where nobody hears of what NumPy warns of."""
    nbytes = sum(getattr(sample, "nbytes", 0) for sample in forward.program.samples)
    if not step.advances or nbytes > MOST_AT_ONCE or step.read or step.ordered:
        return None, None, ()
    gathered = [x for x in (swept.gathered.get(ident) for ident, _ in step.captured) if x is not None]
    cts = [x for x in (swept.cts[ident] for ident in step.entered) if x is not None]
    return at_once(forward, n_forward, (cts, gathered), given, _n_carried(step, swept), by=by)


def at_once(
    forward: Forward, n_forward: int, found: tuple[list[Symbol], list[Symbol]], given: list[Symbol], n: int,
    *, by: Backend | None,
) -> tuple[Generated, Generated, Sequence[Draft]]:  # fmt: skip
    """The functions ``both`` and ``leaf`` of a program that ends with the reverse, after ``n_forward`` statements: it
    has ``found`` the cotangents of what enters and of captured values, for the seeds ``given``, ``n`` of the state."""
    program, (entered, gathered) = forward.program, found
    totals = [program.value(faithful_copy(program.samples[x.number])) for x in gathered]
    sums = [program.call(np.add, (total, x), {}) for total, x in zip(totals, gathered, strict=True)]
    parts = [[x.number for x in part] for part in (forward.returned, entered, sums)]
    before, after = program.statements[:n_forward], program.statements[n_forward:]
    own = own_seeds(program, [parts[1], [x.number for x in gathered]], given, n)
    whole = [total.number for total in totals if isinstance(program.samples[total.number], np.ndarray)]
    arguments = [
        (name, [x.number for x in part])
        for name, part in (
            ("inputs", forward.inputs),
            ("captured", forward.captured),
            ("constants", forward.constants),
            ("seeds", given),
            ("sums", totals),
        )
    ]
    untold = frozenset(s.makes for s in after)
    plan = plan_of(program, before, chain(*parts), (*own, *whole), all_of=True, swept=after)
    both = Draft(program, "both", plan, arguments, parts, untold).generated()
    plan = plan_of(program, [*before, *after], chain(*parts[1:]), (*own, *whole))
    leaf = Draft(program, "leaf", plan, arguments, parts[1:], untold)
    if by is None:
        return both, leaf.generated(), ()
    plan = plan_of(program, [*before, *after], chain(*parts), (*own, *whole))
    return both, leaf.generated(), (Draft(program, "both", plan, arguments, parts, untold), leaf)


def both_by(
    backend: Backend, drafts: Sequence[Draft], given: tuple[Any, ...], notes: list[str]
) -> tuple[Generated | None, Generated | None]:
    """The functions ``both`` and ``leaf`` by kernels, for where nobody hears of what NumPy warns of; None where
    there are none."""
    found: list[Generated | None] = []
    for draft in drafts:
        sums = [draft.program.samples[n] for n in dict(draft.arguments)["sums"]]
        made, why = with_kernels(draft, draft.generated(), backend, (*given, sums))
        notes += [why] if why else []
        found.append(made if made.kernels else None)
    return (found[0], found[1]) if None not in found and found else (None, None)


def _generated(
    step: RecordedStep, known: KnownStep, drafts: list[Draft], swept: SymbolSweep, held: list[Any],
    slots: tuple[int, ...],
) -> Stage:  # fmt: skip
    cts, made = [swept.cts[ident] for ident in step.entered], {draft.name: draft.generated() for draft in drafts}
    gathered = [swept.gathered.get(ident) for ident, _ in step.captured]
    record, backward = made["record"], made["reverse"]
    return Stage(
        known, record, backward, made.get("advance", record), made.get("reverse_own", backward), slots, held,
        step.tape.n_inputs, tuple(ident for ident, _ in step.captured), tuple(at is not None for at in step.left),
        tuple(at[1] for at in step.left if at is not None), tuple(x is not None for x in cts),
        tuple(x is not None for x in gathered), step.masks, step.masks_itself,
    )  # fmt: skip


def _take_kernels(stage: Stage, draft: Draft, backend: Backend, given: tuple[Any, ...], ordered: Sequence[Any]) -> None:
    made, why = with_kernels(draft, getattr(stage, draft.name), backend, given, ordered)
    setattr(stage, draft.name, made)
    stage.notes += [why] if why else []


def with_kernels(
    draft: Draft, plain: Generated, backend: Backend, given: tuple[Any, ...], ordered: Sequence[Any] = ()
) -> tuple[Generated, str]:
    """The function of a draft by the kernels of a backend, if it gives the bytes of the ``plain`` one, on the values
    ``given`` and on drawn ones; else the plain one, and why. Calls that have an effect give what is ``ordered``."""
    try:
        told = Description(draft).told()
        order = told.checked(backend(told))
        if not any(isinstance(item, Kernel) for item in order):
            return plain, ""
        made = draft.generated(order, divided=plain.plan.divided)
        if made.plan.divided and not plain.plan.divided:
            plain = draft.generated(divided=True)
        random = np.random.default_rng(1)
        for arguments in (given, mapped(given, lambda leaf: _like(random, leaf))):
            trial = ComparedPull()
            with quiet(), fed(ordered), trial.run():
                seen, wanted = plain.whole(*mapped(arguments, faithful), *Workspace().of(plain))
            with quiet(), fed(ordered), trial.run():
                read, found = made.whole(*mapped(arguments, faithful), *Workspace().of(made))
            for one, other in zip((*found, read), (*wanted, seen), strict=True):
                require_equal(one, other, f"{draft.name} by kernels", nans_alike=not draft.plan.warns)
    except Exception as error:  # noqa: BLE001 - whatever a backend does: NumPy's functions are there
        said = str(error) if isinstance(error, NotStageableError) else f"{type(error).__name__}: {error}"
        return plain, f"{draft.name} is NumPy's, since {said}"
    made.plain = plain
    return made, ""


def _like(random: np.random.Generator, leaf: Any) -> Any:
    """Another value of the same kind, drawn, with zeros of both signs; what holds no floating numbers as it is."""
    if type(leaf) is float:
        return float(random.standard_normal())
    if not isinstance(leaf, np.ndarray | np.generic) or leaf.dtype.kind not in "fc":
        return leaf
    drawn = np.asarray(draw(random, leaf))
    drawn[random.random(drawn.shape) < 0.05] = 0.0
    drawn[random.random(drawn.shape) < 0.05] = -0.0
    if not isinstance(leaf, np.ndarray):
        return drawn[()]
    made = faithful_copy(leaf)
    made[...] = drawn
    return made
