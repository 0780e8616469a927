"""One seed's way back through the steps of a loop: its cotangents between two steps, and how they enter and leave a
step's tape."""

from typing import Any

import numpy as np
from attrs import define, field

from pullback.memory.ledger import Item
from pullback.memory.sweep import Sweep
from pullback.recording.handles import Handle, make
from pullback.recording.recorder import form_of
from pullback.recording.tape import Tape
from pullback.rules.cotangent_sums import send
from pullback.rules.unbroadcast import settle


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


@define(eq=False)
class Pass:
    """The cotangents of one seed between two steps. ``run`` is the sweep that reversed the loop's own record."""

    run: Sweep
    outer: Tape | None
    """The trace that the pass is recorded on."""
    n: int
    """Steps of the loop."""
    cts: list[Any]
    """Of the carry."""
    y_cts: list[Any]
    """Of the stacked per-step outputs."""
    x_cts: list[Any]
    """Of ``xs``: buffers that are filled a row at a time."""
    gathered: dict[int, Any] = field(factory=dict)
    """Of the captured values, by their id in the enclosing trace."""
    own_gathered: set[int] = field(factory=set)

    def enter(self, work: StepTape, step: int, number: int, *, place: str, masks: bool) -> Sweep:
        """The sweep of a step's tape, seeded with the cotangents of the carry and of the step's outputs; ``number`` is
        the user's.

        The sweep alone holds the cotangents then, and may add to them in place.
        """
        cts: list[Any] = [None] * len(work.tape.records)
        run = Sweep(cts, outer=self.outer or work.tape.outer, frees=True, place=place, masks=masks)
        given, self.cts = self.cts, []
        rows = [None if ct is None else ct[step] for ct in self.y_cts] or [None] * len(work.ys)
        for at, ct in zip((*work.left, *work.ys), (*given, *rows), strict=True):
            if at is not None and ct is not None:
                ident, spec = at
                record: Any = work.tape.records[ident]
                g = settle(ct, spec, form_of(record), 0, record[-1], ct)
                send(cts, ident, g, run)
        run.told, run.step = self.run.told, self.run.within(number)
        run.gathered, run.own_gathered = self.gathered, self.own_gathered
        return run

    def leave(self, work: StepTape, step: int, cts: list[Any]) -> None:
        """Take the cotangents of what entered the step."""
        self.cts = [None if ident is None else cts[ident] for ident in work.entered]
        for k, ident in enumerate(work.x_entered):
            ct = None if ident is None else cts[ident]
            if ct is None:
                continue
            if self.x_cts[k] is None:
                rows = np.zeros((self.n, *ct.shape), ct.dtype)
                self.x_cts[k] = make(ct._tape.kinds.buffer, rows, None, ct._tape) if isinstance(ct, Handle) else rows
            self.x_cts[k][step] = ct
