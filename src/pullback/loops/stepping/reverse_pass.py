"""The way back through the steps of a loop: the cotangents that go from a step to the one before it, and what each
gathers of all of them."""

from collections.abc import Sequence
from typing import Any

from attrs import define, field

from pullback.loops.stepping.held_steps import StagedStep, StepKind, StepTape
from pullback.loops.stepping.rows import Rows, row_of, rows_of
from pullback.memory.ledger import lasting_buffers
from pullback.memory.reverse_sweep import Sweep, sweep
from pullback.recording.handles import Handle, make
from pullback.recording.recorder import form_of
from pullback.recording.tape import Tape
from pullback.rules.cotangent_sums import send
from pullback.rules.unbroadcast import settle
from pullback.words.specs import fits, new_zeros


def pull_back(work: Any, sweeps: Sequence[Sweep]) -> None:
    """Pull the cotangents of each sweep back through the tape of a step."""
    governor = getattr(work, "governor", None)
    held = lasting_buffers(work.tape.records) if work.items else []
    if governor is None:
        sweep(work.tape, work.tape.n_inputs, len(work.tape.records), sweeps)
    else:
        governor.reverse(sweeps)
    held.clear()


def record_of(work: Any, ident: int) -> Any:
    """A record of a step, be it with its values or without."""
    found = work.tape.records[ident]
    if found is None:
        found = next(filter(None, (chain.recipes.record_of(ident) for chain in work.governor.chains)))
    return found


@define(eq=False)
class Pass:
    """The way back of one seed: its cotangents between two steps. ``sweep`` is the one that came to the loop's own
    record."""

    sweep: Sweep
    outer: Tape | None
    """The trace that the pass is recorded on."""
    n: int
    """Steps of the loop."""
    cts: list[Any]
    """Cotangents of the carry."""
    y_cts: list[Any]
    """Cotangents of the stacked per-step outputs."""
    x_cts: list[Any]
    """Cotangents of ``xs``: buffers that are filled a row at a time."""
    told: Any
    """Who hears the cotangents of marked values."""
    gathered: dict[int, Any] = field(factory=dict)
    """Cotangents of the captured values, by their id in the enclosing trace."""
    own_gathered: set[int] = field(factory=set)
    after: Any = None
    """The kind of the last step, where a stage has reversed it."""
    kind: StepKind | None = field(default=None, init=False)
    """The kind whose reverse takes the seeds of the step that comes next."""
    rows: tuple[StepKind, Rows | None] | None = field(default=None, init=False)
    """What steps of the kind take and give beside (``rows_of``)."""
    sums: Sweep = field(init=False)
    """The sweep that gathers what staged steps give."""

    def __attrs_post_init__(self) -> None:
        self.sums = Sweep(None, gathered=self.gathered, own_gathered=self.own_gathered)

    def enter(self, work: StepTape, step: int, number: int, *, place: str, masks: bool) -> Sweep:
        """The sweep of a step's tape, seeded with the cotangents of the carry and of the step's outputs; ``number`` is
        the user's.

        The sweep alone holds the cotangents then, and may add to them in place.
        """
        cts: list[Any] = [None] * len(work.tape.records)
        within = Sweep(cts, outer=self.outer or work.tape.outer, frees=True, place=place, masks=masks)
        carry, self.cts, self.after = self.cts, [], None
        rows = [None if ct is None else row_of(ct, step) for ct in self.y_cts] or [None] * len(work.ys)
        for at, ct in zip((*work.left, *work.ys), (*carry, *rows), strict=True):
            if at is not None and ct is not None:
                ident, spec = at
                record: Any = record_of(work, ident)
                g = ct if fits(ct, spec) else settle(ct, spec, form_of(record), 0, record[-1], ct)
                if cts[ident] is None:  # as in nearly every loop: a leaf leaves the step once
                    cts[ident] = g
                else:
                    send(cts, ident, g, within)
        within.told, within.step = self.told, self.sweep.within(number)
        within.gathered, within.own_gathered = self.gathered, self.own_gathered
        return within

    def seeds(self, work: StagedStep, step: int) -> Sequence[Any] | None:
        """What the reverse function of a stage takes, or None where the step has to be reversed in the ordinary way."""
        if self.outer is not None or (self.told is not None and work.kind.stage.marked):
            return None
        after = self.after
        if after is not None and after.family is work.kind.family and after.goes_on:  # then they are its own
            beside = rows_of(self, after)
            if beside is not None:
                self.kind = after
                packed: Sequence[Any] = after.packed(self.cts)
                return beside.seeds(step, packed)
        rows = [None if ct is None else row_of(ct, step) for ct in self.y_cts] or [None] * len(work.ys)
        cts = [*self.cts, *rows]
        self.kind = work.kind
        found = work.kind.seeds(cts)
        if found is not None:
            return found
        from pullback.loops.stepping.fewer_seeds import kind_for  # noqa: PLC0415 - for steps that lack some

        self.kind = kind_for(work, cts)
        return None if self.kind is work.kind else self.kind.seeds(cts)

    def stepped(self, work: StagedStep, step: int, seeds: Sequence[Any]) -> None:
        """The cotangents go back through a staged step, as ``seeds`` gave them."""
        kind: Any = self.kind
        cts, gathered = kind.reverse(work, seeds, own=self.after is kind and kind.goes_on)
        entered, x_entered = kind.stage.places
        if not x_entered and len(cts) == len(entered):
            self.cts = cts
        else:
            found = iter(cts)
            self.cts = [None if ident is None else next(found) for ident in entered]
            self._rows([None if ident is None else next(found) for ident in x_entered], step)
        self.after = kind
        for ident, ct in gathered:
            self.sums.gather(ident, ct)

    def leave(self, work: StepTape, step: int, cts: list[Any]) -> None:
        """Take the cotangents of what entered the step."""
        self.cts = [None if ident is None else cts[ident] for ident in work.entered]
        self._rows([None if ident is None else cts[ident] for ident in work.x_entered], step)

    def _rows(self, cts: list[Any], step: int) -> None:
        """The cotangents of the rows of ``xs`` that entered the step."""
        for k, ct in enumerate(cts):
            if ct is None:
                continue
            if self.x_cts[k] is None:
                rows = new_zeros((self.n, *ct.shape), ct.dtype)
                self.x_cts[k] = make(ct._tape.kinds.buffer, rows, None, ct._tape) if isinstance(ct, Handle) else rows
            self.x_cts[k][step] = ct
