"""A call of a staged function as one record of the trace around, and its pull.

The cotangents have the bits that the records of its operations would give, standing in the place of that one: where
the order of additions would be another, these records are made and swept.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import define, field

from pullback.continued_sums.arriving_cotangents import Arriving
from pullback.continued_sums.onward_reverses import captured
from pullback.memory.reverse_sweep import Sweep, sweep
from pullback.recording.handles import SHARED, make
from pullback.recording.results import component
from pullback.recording.tape import Tape
from pullback.rules.cotangent_sums import send
from pullback.rules.declaration import Primitive
from pullback.rules.forms import FORMS, Form, new_form
from pullback.rules.nan_masking import MASKED_PULLS
from pullback.staging.generated.stages import Stage
from pullback.staging.generated.workspaces import Workspace
from pullback.tracing.tracer import KINDS

MOST_IDLE = 4
"""How many workspaces of a function are kept."""


@define(eq=False)
class Exits:
    """Where the values that a stage computes go: how a call hands out its results, and takes their cotangents."""

    stage: Stage
    threads: int | None = None
    """The number of threads among which its reverse is divided; None for the number in force."""
    places: list[int | None] = field(init=False)
    """The place of each leaf of what is returned among the outputs of the record; None where it is no output."""
    outside: list[int | None] = field(init=False)
    """The place of the argument, or of the captured value after these, that each leaf is."""
    kinds: list[str] = field(init=False)
    """The kind of handle of each leaf; ``plain`` where it is no handle."""
    n_outputs: int = field(init=False)
    sums_alone: tuple[bool, ...] = field(init=False)
    """Whether the function adds at most one cotangent to those that come from after it, for each argument, then each
    captured value."""
    idle: list[Workspace] = field(factory=list, init=False)
    """What reverse functions work in, while none runs."""
    arriving: Arriving = field(init=False)
    """The reverse functions that go on with cotangents that have come."""

    def __attrs_post_init__(self) -> None:
        stage, operations = self.stage, self.stage.known.operations
        made: dict[int, str] = dict.fromkeys(range(stage.n_inputs), "tracer")
        around = list(range(stage.n_inputs))
        for op in operations[:-1]:
            made |= {number: result.kind for number, result in zip(op.makes, op.results, strict=True)}
            if op.what == CAPTURED_ONE:
                around.append(op.makes[0])
        places: dict[Any, int] = {}
        self.places, self.outside, self.kinds = [], [], []
        for end, seeded in zip(operations[-1].operands, stage.seeded, strict=True):
            number = end if type(end) is int else None
            self.outside.append(around.index(number) if number in around else None)
            self.kinds.append("plain" if number is None else made[number])
            self.places.append(places.setdefault(number, len(places)) if seeded or number in places else None)
        self.n_outputs = len(places)
        self.sums_alone, self.arriving = _sums_alone(stage), Arriving(stage)

    def handed_out(self, tape: Tape, ident: int, values: Sequence[Any], given: Sequence[Any]) -> list[Any]:
        """A handle for each leaf that is one: those of the record ``ident``, and those that were ``given``."""
        if self.n_outputs == 1 and len(values) == 1:
            kind = tape.kinds.weak if self.kinds[0] == "weak" else tape.kinds.tracer
            return [make(kind, values[0], ident, tape, SHARED)]
        by_place: dict[int, Any] = {}
        found = []
        for value, place, outside, kind_name in zip(values, self.places, self.outside, self.kinds, strict=True):
            kinds = tape.kinds
            kind = {"weak": kinds.weak, "buffer": kinds.buffer}.get(kind_name, kinds.tracer)
            if outside is not None:
                found.append(given[outside])
            elif kind_name == "plain":
                found.append(None)
            elif place is None:
                found.append(make(kind, value, None, tape, SHARED))
            elif place in by_place:
                found.append(by_place[place])
            else:
                if self.n_outputs == 1:
                    handle = make(kind, value, ident, tape, SHARED)
                else:
                    handle = component(tape, ident, place, value, self.n_outputs)
                    handle._flag = SHARED
                found.append(by_place.setdefault(place, handle))
        return found

    def recorded(
        self, tape: Tape, ids: Sequence[int], values: Sequence[Any], slots: Any, given: Sequence[Any], site: int = 0
    ) -> list[Any]:
        """The handles of a call that is appended to ``tape`` as one record."""
        ident = len(tape.records)
        if self.n_outputs:
            tape.records.append((CALL.opcode, slots, StageCall(self, ids), site))
        return self.handed_out(tape, ident, values, given)

    def accepts(self, seeds: Sequence[Any]) -> bool:
        """Whether the reverse function was made for such cotangents, where all have come."""
        for ct, spec in zip(seeds, self.stage.specs, strict=True):
            if ct is None:
                continue
            if type(ct) is np.ndarray:
                if not spec.shape or not ct.flags.c_contiguous:
                    return False
            elif spec.shape or not isinstance(ct, np.generic):
                return False
            if ct.shape != spec.shape or ct.dtype != spec.dtype:
                return False
        return True

    def begins(self, seeds: Sequence[Any], ids: Sequence[int], cts: Sequence[Any]) -> bool:
        """Whether the reverse function serves, which has all seeds, and begins with no other cotangent."""
        for ident, alone in zip(ids, self.sums_alone):  # noqa: B905 - there are as many
            if not alone and cts[ident] is not None:
                return False
        return all(ct is not None for ct in seeds)

    def pulled(self, slots: Sequence[Any], seeds: Sequence[Any]) -> Any:
        """The cotangents of the arguments, and those of captured values."""
        try:
            work = self.idle.pop()
        except IndexError:
            work = Workspace(threads=self.threads, hands_over=True)
        generated = self.stage.reverse
        found = generated.function(slots, seeds, *work.of(generated))
        if len(self.idle) < MOST_IDLE:
            self.idle.append(work)
        return found


CAPTURED_ONE = "capture"


@define(eq=False)
class StageCall:
    """One call, beside its slots: the ids of what entered it."""

    exits: Exits
    ids: Sequence[int]
    """The ids of the arguments, then of the captured values, in the trace around."""


def _sums_alone(stage: Stage) -> tuple[bool, ...]:
    """See :class:`Exits`. A read adds into a part of what is there, which is no sum of two."""
    uses = dict.fromkeys((*range(len(stage.entered)), *(captured(stage).values())), 0)
    for record in stage.records[stage.n_inputs :]:
        form = FORMS[record[0]]
        for ident in form.ids(record):
            if ident in uses:
                uses[ident] += 1 if form.rules else 2
    return tuple(n <= 1 for n in uses.values())


def _pull(record: tuple[Any, ...], ct: Any, cts: list[Any], sweep: Any) -> None:
    _pull_call(record, ct, cts, sweep, False)


def _pull_masked(record: tuple[Any, ...], ct: Any, cts: list[Any], sweep: Any) -> None:
    _pull_call(record, ct, cts, sweep, True)


def _pull_call(record: tuple[Any, ...], ct: Any, cts: list[Any], sweep: Any, masks: bool) -> None:
    _, slots, call, _ = record
    exits: Exits = call.exits
    stage, ids = exits.stage, call.ids
    seeds = (ct,) if exits.n_outputs == 1 else ct
    if sweep.outer is None and masks == stage.masks and exits.accepts(seeds):
        if exits.begins(seeds, ids, cts):
            entered, gathered = exits.pulled(slots, seeds)
            parts = iter((*entered, *gathered))
            for ident, wanted in zip(ids, (*stage.entered, *stage.gathered), strict=True):
                if wanted:
                    if cts[ident] is None:
                        cts[ident] = next(parts)
                    else:
                        send(cts, ident, next(parts), sweep)
            return
        exits.arriving.go_on(slots, seeds, ids, cts, lambda: _swept(exits, slots, ids, seeds, cts, sweep, masks))
        sweep.owned.difference_update(ids)
        return
    _swept(exits, slots, ids, seeds, cts, sweep, masks)


def _swept(
    exits: Exits, slots: Any, ids: Sequence[int], seeds: Sequence[Any], cts: list[Any], around: Any, masks: bool
) -> None:
    """The records of the operations are swept, with the cotangents that have come so far."""
    stage = exits.stage
    tape = Tape(0, KINDS)
    tape.close()
    n, standing = len(stage.entered), captured(stage)
    stage.thawed(tape, slots, ids[n:])
    local: list[Any] = [None] * len(tape.records)
    places = (*range(n), *standing.values())
    for ident, k in zip(ids, places, strict=True):
        local[k], cts[ident] = cts[ident], None
    seeded = (at for at in stage.left if at is not None)
    for (ident, _), ct in zip(seeded, seeds, strict=True):
        local[ident] = ct
    one = Sweep(local, outer=around.outer, masks=masks, place=around.place)
    one.told, one.step = around.told, around.step
    sweep(tape, stage.n_inputs, len(tape.records), (one,))
    for ident, k in zip(ids, places, strict=True):
        cts[ident] = local[k] if k < n else one.gathered.get(ident)


def _form(opcode: int) -> tuple[Form, Any]:
    prim = Primitive(name="staged function", forward=lambda x: x, operands=("x",), guarded=False)
    return Form(opcode, prim, (), 0, (), ("slots",), entering=lambda record: tuple(record[2].ids)), _pull


CALL = new_form(_form)
MASKED_PULLS[CALL.opcode] = _pull_masked
