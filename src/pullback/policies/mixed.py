"""Mixed: slots that hold a snapshot or a tape, and the fewest forward steps that they allow."""

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from attrs import define, field, frozen

from pullback.policies.base import MemoryPolicy
from pullback.scheduling.machine.actions import (
    Action,
    Advance,
    Delete,
    EndForward,
    EndReverse,
    Kind,
    Load,
    Record,
    Reverse,
    Save,
)
from pullback.scheduling.machine.schedule import Schedule, whole_number
from pullback.scheduling.optimal.binomial_split import split
from pullback.scheduling.optimal.mixed_table import TAPE, first_moves, longest

MOST_UNITS: Final = 256
"""The most units of the table below, where slots are cut into parts because tapes are small."""

Choice: TypeAlias = Callable[[int, int], int]
"""(steps left, units of room free) -> ``TAPE``, or how far to advance from a state that is kept."""


def _as_snapshots(value: int) -> int:
    return whole_number(
        value, "snapshots", 1, "Pass the number of slots to fill, at least 1: each holds a state or a tape"
    )


@frozen(repr=False)
class Mixed(MemoryPolicy):
    """The fewest forward steps with ``snapshots`` slots of which each holds a state or the tape of a step: 237 for 100
    steps and 10 slots, where ``Binomial`` needs 322.

    x_0 takes a slot only while it is kept; the tape of one step is held besides. n <= snapshots + 1 steps are run once.

    A slot has the size of a state. Where the sizes are known, a tape takes as many slots as it is states large, rounded
    to the nearest (up to 1.5 states: one slot), and floor(state_bytes / tape_bytes) tapes share a slot where they are
    smaller. So at most snapshots * max(state_bytes, tape_bytes) bytes are held besides the one tape. Sizes unknown: one
    slot each.

    The optimum comes from a table of (n + 1) (snapshots + 1) numbers of 4 bytes, 12 while it is made, in
    O(n snapshots^2) time; two tables are kept for later schedules. A table has 2^18 cells at most, which 5,100
    steps fill with 50 slots. Longer loops are cut as ``Binomial`` would cut them until the parts fit: never dearer than
    ``Binomial``, the optimum no more. The length must be known.

    Source: J. R. Maddison, "Step-based checkpointing with high-level algorithmic differentiation", J. Comput. Sci. 82
    (2024), 102405.

    Parameters
    ----------
    snapshots
        How many slots there are, at least 1.

    Raises
    ------
    PolicyError
        Where ``snapshots`` is no integer of at least 1, and for a loop whose length is not known.

    Example
    -------
    >>> from pullback.schedules import simulate
    >>> simulate(Mixed(10).schedule(100), 100).n_forward
    237
    """

    counts_states = True

    snapshots: int = field(converter=_as_snapshots)

    def begin(self, n: int | None, *, state_bytes: int, tape_bytes: int) -> Schedule:
        """Actions for ``n`` steps; :meth:`~pullback.policies.base.MemoryPolicy.schedule` checks ``n``."""
        if n is None:
            return super().begin(n, state_bytes=state_bytes, tape_bytes=tape_bytes)
        state, tape = units_of(self.snapshots, state_bytes, tape_bytes)
        room = self.snapshots * state
        held = _Held(n, room, _choice(n, room, state, tape), {"state": state, "tape": tape})
        return Schedule(held.actions(), n, policy=self, finish=held.finish)


def units_of(slots: int, state_bytes: int, tape_bytes: int) -> tuple[int, int]:
    """The room that a state and a tape take, one of them 1."""
    if state_bytes <= 0 or tape_bytes <= 0:
        return 1, 1
    if tape_bytes > state_bytes:
        return 1, (2 * tape_bytes + state_bytes) // (2 * state_bytes)
    return min(state_bytes // tape_bytes, max(1, MOST_UNITS // slots)), 1


@define(eq=False)
class _Held:
    """What a schedule holds: ``entries``, ascending, say at each yield what is stored."""

    n: int
    free: int
    choice: Choice
    units: dict[Kind, int]
    entries: list[tuple[Kind, int]] = field(factory=list)
    work: int = -1
    """The step whose tape is in WORK, during the sweep."""

    def actions(self) -> Iterator[Action]:
        """The whole schedule."""
        n = self.n
        if n:
            yield from self._forward(0, n)
        yield from self.finish(n)

    def finish(self, n: int) -> Iterator[Action]:
        """Reverse n steps, which may be fewer than were planned."""
        yield EndForward()
        r = n
        while self.entries and self.entries[-1][1] >= r:
            yield self._delete()
        if 0 <= self.work == r - 1:
            yield Reverse(r - 1)
            r -= 1
        while r > 0:
            kind, step = self.entries[-1]
            yield Load(kind, step)
            if kind == "tape":
                yield self._delete()
            else:
                yield from self._again(step, r)
            r -= 1
            yield Reverse(r)
        yield EndReverse()

    def _again(self, start: int, r: int) -> Iterator[Action]:
        """The actions from the newest state, loaded just now, to the tape of step r - 1 in WORK."""
        left = r - start
        move = TAPE if left == 1 else self.choice(left, self.free + self.units["state"])
        if move == TAPE:
            yield self._delete()
        else:
            yield Advance(start, start + move)
            start += move
        yield from self._forward(start, r)

    def _forward(self, cursor: int, r: int) -> Iterator[Action]:
        """The actions from the live x_cursor to the tape of step r - 1 in WORK."""
        while cursor < r - 1:
            move = self.choice(r - cursor, self.free)
            if move == TAPE:
                self.work = cursor
                yield Record(cursor)
                self.work = -1
                yield self._save("tape", cursor)
                cursor += 1
            else:
                yield self._save("state", cursor)
                yield Advance(cursor, cursor + move)
                cursor += move
        self.work = r - 1
        yield Record(r - 1)

    def _save(self, kind: Kind, step: int) -> Save:
        self.entries.append((kind, step))
        self.free -= self.units[kind]
        return Save(kind, step)

    def _delete(self) -> Delete:
        kind, step = self.entries.pop()
        self.free += self.units[kind]
        return Delete(kind, step)


def _choice(n: int, room: int, state: int, tape: int) -> Choice:
    """What to do first, for up to ``n`` steps and ``room`` units."""
    if (n - 1) * tape <= room:
        return lambda _left, _free: TAPE
    rows = min(n, longest(room))
    moves = first_moves(rows, room, state, tape)

    def choose(left: int, free: int) -> int:
        return int(moves[left, free]) if left <= rows else split(left, free // state)

    return choose
