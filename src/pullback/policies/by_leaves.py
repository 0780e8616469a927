"""The schedules of ``Budget``: snapshots, and between them *leaves*, runs of steps whose tapes are all recorded. For a
known length and for an unknown one."""

from collections.abc import Generator, Iterator

from attrs import define, field

from pullback.scheduling.machine.actions import (
    Action,
    Advance,
    Delete,
    EndForward,
    EndReverse,
    Load,
    Record,
    Reverse,
    Save,
)
from pullback.scheduling.machine.tapes_first import Tapes
from pullback.scheduling.optimal.online import Rule
from pullback.scheduling.optimal.unified import Splits
from pullback.scheduling.optimal.unknown_length import Units


def by_leaves(n: int, splits: Splits, *, lends: bool) -> Iterator[Action]:
    """Sweep, record the last leaf whole, and so on from the newest snapshot. One that ``lends`` has a snapshot of the
    initial state, too, where all tapes are held: others may need their bytes."""
    snapshots: list[int] = []
    first = 0
    if n:
        if lends and n <= splits.leaves[0]:
            yield Save("state", 0)
        first = yield from _leaf(0, n, snapshots, splits, stored=False)
        if lends and not snapshots:
            snapshots.append(0)
    yield EndForward()
    yield from rest(n, first, snapshots, splits)


def rest(n: int, first: int, snapshots: list[int], splits: Splits, *, in_work: bool = True) -> Iterator[Action]:
    """What follows EndForward: the steps from ``first`` on have tapes, those before it come from the snapshots. The
    newest tape is ``in_work``, or stored as the others are. Where the length was unknown, a snapshot may be of a step
    that has a tape."""
    while snapshots and snapshots[-1] > first:
        yield Delete("state", snapshots.pop())
    if not in_work:
        yield from Tapes(first, n).reverse(n)
        n = first
        if snapshots and n:
            start = snapshots.pop()
            yield Load("state", start)
            first = yield from _leaf(start, n, snapshots, splits, stored=True)
    yield from _back(0, n, first, snapshots, splits)
    for step in snapshots:
        yield Delete("state", step)
    yield EndReverse()


def _leaf(start: int, stop: int, snapshots: list[int], splits: Splits, *, stored: bool) -> Generator[Action, None, int]:
    """Advance from ``start`` until the steps up to ``stop`` can be recorded whole, and record them: the first of
    them."""
    while stop - start > splits.leaves[len(snapshots)]:
        if not stored:
            yield Save("state", start)
        m = splits.split(stop - start, len(snapshots))
        yield Advance(start, start + m)
        snapshots.append(start)
        start, stored = start + m, False
    if stored:
        yield Delete("state", start)
    yield from Tapes().record(start, stop)
    return start


def _back(begin: int, stop: int, first: int, snapshots: list[int], splits: Splits) -> Iterator[Action]:
    """Steps stop-1 .. ``begin``: those whose tapes are held, and the others from the snapshots, the newest first."""
    while stop > begin:
        yield from Tapes(first, max(first, stop - 1)).reverse(stop)
        stop = first
        if stop > begin:
            start = snapshots.pop()
            yield Load("state", start)
            first = yield from _leaf(start, stop, snapshots, splits, stored=True)


MANY = 256
"""Steps that a loop of unknown length may go as under save-all before anything has to give way."""


@define
class Growing:
    """A loop of unknown length, by :mod:`pullback.scheduling.optimal.unknown_length`: its sweep, which never ends, and
    what follows when it has ended."""

    units: Units
    snapshots: list[int] = field(factory=list)
    tapes: Tapes = field(factory=Tapes)
    advanced: int | None = None
    """The first step that no tape was made of."""
    rule: Rule | None = None
    """Which snapshots replace one another."""

    def larger(self, units: Units, now: bool = False) -> list[Action]:
        """Steps are larger than they were thought to be: between two actions of the sweep. What is to be let go of
        before the step under way is over, where it is to be ``now``."""
        self.units, self.rule = units, None
        if not now:
            return []
        snapshots = [Delete("state", step) for step in self._too_many(self.snapshots[-1] + 1 if self.snapshots else 0)]
        return [*self._drop(units.leaf(len(self.snapshots)) - 1), *snapshots]

    @property
    def n_whole(self) -> int:
        """The steps that are recorded and kept first, after x_0, before anything gives way and anything else is saved;
        0 where they are few, since the states of such steps are compared seldom when they run again."""
        n = min(self.units.leaf(0), self.units.leaf(1) - 1)
        return n if n >= MANY else 0

    @property
    def due(self) -> int:
        """Where the next snapshot comes."""
        held = len(self.snapshots)
        return self.snapshots[-1] + self.units.leaf(held - 1) if held else 0

    def sweep(self) -> Iterator[Action]:
        """Tapes and snapshots while there is room for another, then snapshots that replace one another."""
        snapshots, tapes, k = self.snapshots, self.tapes, 0
        while True:
            if k >= self.due:
                leaf = self.units.leaf(len(snapshots) + 1)
                yield from self._drop(leaf - 1)
                if leaf < 2:
                    break
                snapshots.append(k)
                yield Save("state", k)
            yield Record(k)
            yield from self._drop(self.units.leaf(len(snapshots)) - 2)
            tapes.stop = k + 1
            yield Save("tape", k)
            k += 1
            if self.units.leaf(len(snapshots)) < 2:
                break
        yield from self._drop(0)
        yield from self._without_tapes(k)

    def _without_tapes(self, k: int) -> Iterator[Action]:
        """The actions from step ``k`` on. x_k is judged after step k has run: it is still in WORK, and the loop is
        known to go on."""
        snapshots, self.advanced = self.snapshots, k
        while True:
            yield Advance(k, k + 1)
            for dropped in self._too_many(k):
                yield Delete("state", dropped)
            evicted, keeps = self._judge(k)
            if evicted is not None:
                snapshots.remove(evicted)
                yield Delete("state", evicted)
            if keeps:
                snapshots.append(k)
                yield Save("state", k)
            k += 1

    def _too_many(self, k: int) -> Iterator[int]:
        """The snapshots that larger steps leave no room for: those with the nearest neighbours."""
        snapshots = self.snapshots
        while len(snapshots) > max(1, self.units.slots):
            ends = [*snapshots, k]
            yield snapshots.pop(min(range(1, len(snapshots)), key=lambda j: ends[j + 1] - ends[j - 1]))

    def _judge(self, k: int) -> tuple[int | None, bool]:
        """Which snapshot gives way, and whether x_k is saved."""
        if len(self.snapshots) < self.units.slots:
            return None, True
        if self.rule is None:
            self.rule = self.units.rule(self.snapshots)
        return self.rule(k)

    def _drop(self, most: int) -> Iterator[Action]:
        """The oldest tapes, until there are no more than so many."""
        tapes = self.tapes
        while tapes.stop - tapes.first > max(0, most):
            tapes.first += 1
            yield Delete("tape", tapes.first - 1)

    def finish(self, n: int) -> Iterator[Action]:
        """The loop has ended after ``n`` steps."""
        r = n
        if self.advanced is not None and n > self.advanced:
            yield Record(n - 1)
            yield EndForward()
            yield Reverse(n - 1)
            r = n - 1
        else:
            yield EndForward()
            tapes = self.tapes
            if n > tapes.stop:  # the newest is in WORK
                yield Reverse(n - 1)
                r = n - 1
            yield from tapes.reverse(r)
            r = min(r, tapes.first) if tapes.stop > tapes.first else r
        yield from self._of_snapshots(r)
        yield EndReverse()

    def _of_snapshots(self, r: int) -> Iterator[Action]:
        """Steps r-1 .. 0."""
        while self.snapshots:
            start = self.snapshots.pop()
            if start < r:
                yield Load("state", start)
                splits, newer = self.units.plan(r - start, len(self.snapshots)), list[int]()
                first = yield from _leaf(start, r, newer, splits, stored=True)
                yield from _back(start, r, first, newer, splits)
                r = start
            else:
                yield Delete("state", start)
