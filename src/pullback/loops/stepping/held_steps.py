"""What is held of a step of a loop function: its snapshot, its tape, or what a stage has recorded; and what the ledger
books of it."""

from collections.abc import Collection, Hashable, Iterable, Sequence
from copy import copy
from itertools import compress
from typing import Any, Final, NamedTuple

import numpy as np
from attrs import define, evolve, field

from pullback.memory.entry_parts import Taken, put_in
from pullback.memory.ledger import Item, record_items, value_items
from pullback.memory.reverse_sweep import release_records
from pullback.recording.copies import faithful_copy
from pullback.recording.handles import active_id, plain_value
from pullback.recording.recorder import form_of
from pullback.recording.tape import Tape
from pullback.staging.generated.generated import Generated, say_line
from pullback.staging.generated.stages import Stage, slot_items
from pullback.staging.generated.workspaces import Workspace
from pullback.words.errors import say_where
from pullback.words.specs import buffer_of, spec_of
from pullback.words.undocumented import quiet


class Snapshot(NamedTuple):
    """A state at the start of a step, in memory of its own, with the random states of that moment."""

    leaves: list[Any]
    random: tuple[Any, ...]
    items: list[Item]

    def split(self) -> tuple["Snapshot", list[Any]]:
        """What stays in memory, and the arrays of the state."""
        taken = Taken()
        return Snapshot(taken.out(self.leaves), self.random, []), taken.arrays

    def joined(self, arrays: list[Any]) -> "Snapshot":
        """The snapshot, of these arrays again."""
        leaves = put_in(self.leaves, arrays)
        return Snapshot(leaves, self.random, value_items(leaves, "snapshot"))


def exits_of(leaves: list[Any], tape: Tape) -> list[tuple[int, Any] | None]:
    """Where leaves leave a step's tape, with the spec a cotangent must have there."""
    ids = [active_id(leaf, tape) for leaf in leaves]
    return [None if i is None else (i, spec_of(leaf._value)) for i, leaf in zip(ids, leaves, strict=True)]


@define(eq=False)
class StepTape:
    """The recorded form of one step: its tape, where the state enters and leaves it, and what it costs to hold."""

    tape: Tape
    entered: list[int | None]
    """Record ids of the state leaves at the start of the step; None for leaves without derivative."""
    x_entered: list[int | None]
    left: list[tuple[int, Any] | None]
    """Record id and spec of the state leaves after the step."""
    ys: list[tuple[int, Any] | None]
    items: list[Item] = field(factory=list)
    """What holding the tape costs, as the ledger books it."""
    xs: Sequence[Any] = ()
    """The ``xs`` of the loop: a row is a part of them."""
    governor: Any = None
    """What makes the records again as they are reversed, and books what it keeps, where only some values are kept."""

    def own_bytes(self, shared: Collection[Hashable]) -> int:
        """What it holds beside the buffers that all tapes share, loops within the step too."""
        records = self.tape.records
        loops: int = sum(record[2].kept_bytes for record in records if record and form_of(record).steps)
        return loops + sum(nbytes for key, nbytes, _ in record_items(records) if key not in shared)

    def release(self) -> None:
        """Dropped unreversed, its records let go of what they book."""
        release_records(self.tape.records)
        if self.governor is not None:
            self.governor.close()

    def split(self) -> tuple["StepTape", list[Any]]:
        """What stays in memory, and the arrays that it has let go of: all but captured values, constants and rows,
        which lie in what the loop holds anyway."""
        tape = self.tape
        shared = [*(value for _, value in (tape.captures or {}).values()), *self.xs]
        taken = Taken(_shared(shared, record_items(tape.records)))
        tape.records = [None if record is None else taken.out(record) for record in tape.records]
        return evolve(self, items=record_items(tape.records)), taken.arrays

    def joined(self, arrays: list[Any]) -> "StepTape":
        """The tape, with these arrays again."""
        self.tape.records = put_in(self.tape.records, arrays)
        return evolve(self, items=record_items(self.tape.records))

    def for_another(self) -> "StepTape":
        """The tape once more, to be stored a second time."""
        return evolve(self, tape=copy(self.tape))


def same_tape(one: Any, other: Any) -> bool:
    """Whether both are the tape of one run of a step, stored or not."""
    return one is other or (type(one) is type(other) is StepTape and one.tape is other.tape)


@define(eq=False)
class StepKind:
    """What staged steps of one loop share."""

    stage: Stage
    captured: list[int]
    """Ids of the captured values in the trace around."""
    work: Workspace
    n_leaves: int
    family: object = field(factory=object)
    """What kinds share that stand for the same steps, for more seeds or fewer."""
    fewer: dict[tuple[bool, ...], "StepKind"] = field(factory=dict, init=False)
    """Kinds for fewer seeds, by which leaves and outputs have one."""
    n_missed: int = field(default=0, init=False)
    """Steps that had other seeds than any reverse function takes."""
    goes_on: bool = field(init=False)
    """Whether the cotangents of the state that it gives are the seeds of the step before."""
    ids: list[int] = field(init=False)
    """Ids of the captured values that get a cotangent."""
    seeded: tuple[bool, ...] | None = field(init=False)
    """Which leaves have a cotangent; None for all of them."""
    active: tuple[bool, ...] | None = field(init=False)
    """Which leaves enter the functions; None for all of them."""
    n_cts: int = field(init=False)
    """How many of the leaves get a cotangent."""
    x_places: tuple[int, ...] = field(init=False)
    """The places of the leaves of ``xs`` whose rows get one."""

    def __attrs_post_init__(self) -> None:
        stage = self.stage
        self.goes_on = stage.returns_seeds
        leaves = stage.seeded[: self.n_leaves]
        self.seeded = None if all(leaves) else leaves
        self.active = None if None not in stage.places[0] else tuple(ident is not None for ident in stage.places[0])
        entered = iter(stage.entered)
        self.n_cts = sum(next(entered) for ident in stage.places[0] if ident is not None)
        self.x_places = tuple(k for k, ident in enumerate(stage.places[1]) if ident is not None and next(entered))
        self.ids = list(compress(self.captured, stage.gathered))

    @property
    def own(self) -> tuple[Any, Any]:
        """What pulls cotangents of its own back, and the arrays that this works in."""
        return self.stage.reverse_own.function, self.work.of(self.stage.reverse_own)

    def seeds(self, cts: list[Any]) -> list[Any] | None:
        """The cotangents that the reverse function takes, from those of leaves and outputs; None where it was made for
        others."""
        seeds, specs = [], iter(self.stage.specs)
        for ct, wanted in zip(cts, self.stage.seeded, strict=True):
            if not wanted:
                continue
            spec = next(specs)
            kind = np.ndarray if spec.shape else np.generic
            if not isinstance(ct, kind) or ct.shape != spec.shape or ct.dtype != spec.dtype:
                return None
            if not ct.flags.c_contiguous:  # other strides may have other sums, and one element in many places
                return None
            seeds.append(ct)
        return seeds

    def reverse(self, step: "StagedStep", seeds: Sequence[Any], *, own: bool) -> tuple[Sequence[Any], Any]:
        """The cotangents of what has entered a step, and those of captured values with their ids. ``own`` says that the
        seeds are what this has returned for the step after."""
        stage = self.stage
        generated = stage.reverse_own if own else stage.reverse
        try:
            with quiet():
                cts, gathered = generated.function(step.slots, seeds, *self.work.of(generated))
        except Exception as error:
            self.say_step(error, generated, step.k)
            raise
        if False in stage.entered:
            found = iter(cts)
            cts = [next(found) if wanted else None for wanted in stage.entered]
        return cts, zip(self.ids, gathered, strict=True)

    def inputs(self, state: Sequence[Any], rows: Sequence[Any] = ()) -> Sequence[Any]:
        """What enters the functions, of a state and of the ``rows`` that are differentiated by."""
        entering = state if self.active is None else list(compress(state, self.active))
        return [*entering, *rows] if rows else entering

    def standing(self, state: Sequence[Any]) -> list[Any]:
        """The leaves of a state that do not enter them."""
        return [] if self.active is None else [x for x, enters in zip(state, self.active, strict=True) if not enters]

    def packed(self, cts: Sequence[Any]) -> Sequence[Any]:
        """The cotangents of those leaves that have one."""
        return cts if self.seeded is None else list(compress(cts, self.seeded))

    def of_leaves(self, cts: Sequence[Any]) -> Sequence[Any]:
        """One for each leaf, from those that there are."""
        if self.seeded is None:
            return cts
        found = iter(cts)
        return [next(found) if wanted else None for wanted in self.seeded]

    def say_step(self, error: Exception, generated: Generated, k: int) -> None:
        """Note the user's line in an error of a reverse function, and the step that it has come from."""
        say_line(error, generated)
        say_where(error, f"in the reverse pass of {self.work.steps.place(k)}")


@define(eq=False)
class StagedStep:
    """A step that a stage has recorded: what its reverse reads, and, when it is asked for, its tape."""

    kind: StepKind
    slots: tuple[Any, ...]
    k: int
    items: Sequence[Item] = ()
    thawed: Tape | None = field(default=None, init=False)

    @property
    def tape(self) -> Tape:
        """The tape as the ordinary way would have recorded the step."""
        if self.thawed is None:
            tape = self.kind.work.steps.opened(self.k)
            tape.close()
            self.thawed = self.kind.stage.thawed(tape, self.slots, self.kind.captured)
        return self.thawed

    @property
    def entered(self) -> list[int | None]:
        """Record ids of the state leaves at the start."""
        return self.kind.stage.places[0]

    @property
    def x_entered(self) -> list[int | None]:
        """Record ids of the leaves of ``xs`` at the start."""
        return self.kind.stage.places[1]

    @property
    def left(self) -> list[tuple[int, Any] | None]:
        """Record id and spec of the leaves after the step."""
        return self.kind.stage.left[: self.kind.n_leaves]

    @property
    def ys(self) -> list[tuple[int, Any] | None]:
        """Record id and spec of the outputs of the step."""
        return self.kind.stage.left[self.kind.n_leaves :]

    def own_bytes(self, shared: Collection[Hashable]) -> int:
        """What it holds beside the buffers that all tapes share: as much as others of its kind."""
        items = slot_items(self.kind.stage.booked, self.slots)
        return sum(nbytes for key, nbytes, _ in items if key not in shared)

    def release(self) -> None:
        """Nothing in it books anything."""

    def split(self) -> tuple["StagedStep", list[Any]]:
        """What stays in memory, and the arrays that its reverse reads."""
        booked, steps = self.kind.stage.booked, self.kind.work.steps
        taken = Taken(_shared((*steps.captured_values.values(), *(steps.xs or ())), slot_items(booked, self.slots)))
        slots = taken.out(self.slots)
        return StagedStep(self.kind, slots, self.k, slot_items(booked, slots)), taken.arrays

    def joined(self, arrays: list[Any]) -> "StagedStep":
        """The step, with these arrays again."""
        slots = put_in(self.slots, arrays)
        return StagedStep(self.kind, slots, self.k, slot_items(self.kind.stage.booked, slots))


@define(eq=False)
class Booking:
    """What the ledger books of steps of one kind that are recorded and reversed immediately: the buffers that such a
    step would hold in between. What it makes is known by its size alone."""

    parts: list[tuple[tuple[int, int] | None, Item]]
    """What is booked, in the order of the ledger: from which list it comes, and the place there; None for what the step
    makes. The lists are the state, the captured values, and the constants."""

    def items(self, *given: Sequence[Any]) -> list[Item]:
        """What is booked for a step that begins with these lists."""
        found: dict[Hashable, Item] = {}
        for source, item in self.parts:
            if source is None:
                found[item[0]] = item
                continue
            which, place = source
            value = given[which][place]
            key, nbytes = _as_kept(value) if which == _CONSTANTS else _as_given(value)
            found.setdefault(key, (key, nbytes, item[2]))
        return list(found.values())


def _as_given(value: Any) -> tuple[Hashable, int]:
    buffer = buffer_of(value)
    return id(buffer), buffer.nbytes


def _as_kept(constant: Any) -> tuple[Hashable, int]:
    """The key and the bytes of a constant, of which a step keeps a copy where it is a part of a larger array."""
    if constant.base is None or constant.flags.c_contiguous or constant.flags.f_contiguous:
        return id(constant), constant.nbytes
    return ("copy", id(constant)), buffer_of(faithful_copy(constant)).nbytes


def booking_of(work: Any, before: Sequence[Any], run: Any, xs: Sequence[Any]) -> Booking | None:
    """That of steps like ``work``, which ``run`` has just followed, from the state ``before``, with rows of ``xs``,
    which lie in one buffer for all steps. None where two of what such a step is given lie in one buffer: which of them
    it holds would not be told."""
    places: dict[int, tuple[int, int]] = {}
    for which, values in enumerate((before, run.values, run.constants)):
        for place, value in enumerate(values):
            if isinstance(value, np.ndarray) and places.setdefault(id(buffer_of(value)), (which, place)) != (
                which,
                place,
            ):
                return None
    stay = {id(buffer_of(x)) for x in map(plain_value, xs) if isinstance(x, np.ndarray)}
    return Booking([
        (places.get(key), (key if key in places or key in stay else ("made", k), nbytes, why))
        for k, (key, nbytes, why) in enumerate(work.items)
    ])


_CONSTANTS: Final = 2


def _shared(values: Iterable[Any], items: Iterable[Item]) -> frozenset[Any]:
    """The ids of the buffers that every step holds: of these values, and of the constants among the items."""
    constants = {key for key, _, reason in items if reason == "constant"}
    return frozenset(constants | {id(buffer_of(x)) for x in map(plain_value, values) if isinstance(x, np.ndarray)})
