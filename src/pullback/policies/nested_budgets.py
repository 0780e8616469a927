"""One number of bytes for loops in loops: how much each inner loop gets, so that all take the fewest steps together.

An inner loop is part of the tape of the step it stands in, and holds its snapshots and tapes until that step is
reversed. Each inner loop gets a *share* of the way from the least it can do with to the most it can use. A larger share
leaves fewer snapshots and tapes to the outer loop. All shares s of ``PARTS`` are tried.
"""

from collections.abc import Sequence
from typing import Final

from attrs import field, frozen

from pullback.policies.budget import GUESSED
from pullback.scheduling.optimal.binomial_split import forward_steps as binomial_steps
from pullback.scheduling.optimal.unified import forward_steps, plan

PARTS: Final = 16


@frozen(eq=False)
class NestedLoop:
    """A loop by its sizes, with the loops in its step.

    >>> inner = NestedLoop(8, state_bytes=1, own_bytes=2)
    >>> outer = NestedLoop(6, state_bytes=1, own_bytes=1, loops=[inner])
    >>> inner.least, inner.all, outer.least, outer.all
    (3, 16, 5, 102)
    >>> [outer.best(room)[1] for room in (5, 20, 101, 102)]
    [1, 14, 15, 16]
    """

    n: int | None
    """None: unknown."""
    state_bytes: int = field(kw_only=True)
    own_bytes: int = field(kw_only=True)
    """Bytes of the tape of a step, without what the loops in it hold."""
    loops: Sequence["NestedLoop"] = field(default=(), kw_only=True)
    start_held: bool = field(default=False, kw_only=True)
    """Whether the initial state is held by somebody else."""
    length: int = field(default=GUESSED, kw_only=True)
    """The length of a loop of unknown length."""
    holds: int = field(default=0, kw_only=True)
    """What it holds besides, from its forward to its reverse pass."""
    known: dict[int, tuple[float, int] | None] = field(factory=dict, init=False, repr=False)
    """What is best, by room."""

    parts = PARTS

    @property
    def least(self) -> int:
        """The bytes that it can do with."""
        return self.holds + self._least(0)

    @property
    def all(self) -> int:
        """The bytes of which it can make use."""
        tape = self.tape_bytes(PARTS)
        if self.n is None:
            return max(self.least, self.holds + (self.length + 1) * self.state_bytes + tape)
        return max(self.least, self.holds + self.n * tape)

    def share(self, part: int) -> int:
        """What it gets."""
        return self.least + (self.all - self.least) * part // PARTS

    def tape_bytes(self, part: int) -> int:
        """What the tape of a step holds where each loop in it has this share."""
        return self.own_bytes + sum(loop.share(part) for loop in self.loops)

    def best(self, room: int) -> tuple[float, int] | None:
        """The forward steps of the innermost loops, and the share of the loops in a step, with ``room`` bytes for what
        is held; None where that is too little."""
        if room not in self.known:
            parts = range(PARTS, -1, -1) if self.loops else (PARTS,)
            costs = [(cost, -part) for part in parts if (cost := self._steps(room, part)) is not None]
            cost, part = min(costs, default=(0.0, 1))
            self.known[room] = None if part > 0 else (cost, -part)
        return self.known[room]

    def _least(self, part: int) -> int:
        tape, snapshot = self.tape_bytes(part), 0 if self.start_held else self.state_bytes
        if self.n is None:
            return snapshot + self.state_bytes + tape
        return min(self.n, 1) * tape + min(max(0, self.n - 1) * tape, snapshot if self.n > 1 else 0)

    @property
    def once_within(self) -> float:
        """Forward steps of the innermost loops in one step."""
        return sum(loop.once() for loop in self.loops) or 1

    def once(self) -> float:
        """Forward steps of the innermost loops in one run."""
        n = self.length if self.n is None else self.n
        return n * self.once_within

    def _steps(self, room: int, part: int) -> float | None:
        tape, left = self.tape_bytes(part), room - self.holds
        if left < self._least(part):
            return None
        n = self.length if self.n is None else self.n
        if self.n is not None:
            runs = forward_steps(plan(n, self.state_bytes, tape, left - tape, start_held=self.start_held))
        else:
            slots = (left - tape - self.state_bytes) // self.state_bytes if self.state_bytes else n
            runs = binomial_steps(n, max(1, min(slots + self.start_held, n)))
        again = 0.0
        for loop in self.loops:
            found = loop.best(loop.share(part))
            assert found is not None  # it is the least at least
            again += found[0] - loop.once()
        return runs * self.once_within + n * again
