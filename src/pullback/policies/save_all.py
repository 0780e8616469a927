"""Save all: the schedule without recomputation."""

from collections.abc import Iterator
from itertools import count

from attrs import define, frozen

from pullback.machine.actions import Action, Delete, EndForward, EndReverse, Load, Record, Reverse, Save
from pullback.machine.schedule import Schedule
from pullback.policies.base import MemoryPolicy


@frozen(repr=False)
class SaveAll(MemoryPolicy):
    """n forward steps and n tapes: every step is recorded in the sweep and its tape kept. The length may be unknown.

    Example
    -------
    >>> from pullback.schedules import simulate
    >>> simulate(SaveAll().schedule(100), 100).n_forward
    100
    """

    needs_sizes = False

    # Sizes change nothing here.
    def begin(self, n: int | None, *, state_bytes: int, tape_bytes: int) -> Schedule:  # noqa: ARG002
        """Actions for ``n`` steps; :meth:`~pullback.policies.base.MemoryPolicy.schedule` checks ``n``."""
        saved = Tapes()
        return Schedule(_all_actions(n, saved), n, policy=self, finish=saved.finish)


@define
class Tapes:
    """Which tapes of consecutive steps exist: first .. stop-1 are stored; that of ``stop`` may be in WORK."""

    first: int = 0
    stop: int = 0

    def record(self, first: int, n: int | None) -> Iterator[Action]:
        """Record steps first .. n-1 and store their tapes, save that of step n-1, which stays in WORK."""
        self.first = self.stop = first
        for step in count(first) if n is None else range(first, n):
            yield Record(step)
            if n is None or step < n - 1:
                self.stop = step + 1
                yield Save("tape", step)

    def reverse(self, r: int) -> Iterator[Action]:
        """Reverse steps r-1 .. first; the tape of step r-1 is in WORK unless it is stored."""
        for step in range(r - 1, self.first - 1, -1):
            if step < self.stop:
                yield Load("tape", step)
                yield Delete("tape", step)
            yield Reverse(step)

    def finish(self, n: int) -> Iterator[Action]:
        """What is left when all of the n steps from 0 on are recorded."""
        yield EndForward()
        yield from self.reverse(n)
        yield EndReverse()


def _all_actions(n: int | None, saved: Tapes) -> Iterator[Action]:
    yield from saved.record(0, n)
    if n is not None:  # otherwise the line above never ends by itself
        yield from saved.finish(n)
