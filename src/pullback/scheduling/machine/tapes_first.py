"""Tapes of consecutive steps; and *tapes first*: every step's tape is kept as long as there is room, and another
schedule serves the steps after."""

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

from attrs import define, evolve, field

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
from pullback.scheduling.machine.schedule import Schedule


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


@define
class TapesFirst:
    """The schedule of ``n`` steps (None: unknown). With k tapes kept, ``rest(k)`` says None where there is room for
    another, else the schedule of the steps from k on, which is not asked for their length where that is unknown.

    With ``again`` steps are recorded in the user's own run: the state before step 1 is saved while that step runs, so
    that its size shows when ``rest(2)`` is asked; and ``again()`` says of a single step, in a length that was unknown,
    whether it is to let go of its tape and to be run again.
    """

    n: int | None
    rest: Callable[[int], Schedule | None]
    again: Callable[[], bool] | None = None
    tapes: Tapes = field(factory=Tapes, init=False)
    later: Schedule | None = field(default=None, init=False)
    probing: bool = field(default=False, init=False)
    begun: bool = field(default=False, init=False)
    """Whether the initial state is saved, for a single step."""

    def schedule(self, policy: Any, larger: Callable[..., None] | None = None, n_whole: int = 0) -> Schedule:
        """It, as that of ``policy``; ``larger`` is told of steps that are larger than those before; tapes of the first
        ``n_whole`` steps are kept in any case."""
        held = "tapes" if n_whole else ""
        return Schedule(
            self._actions(), self.n, policy=policy, finish=self._finish, larger=larger, held=held, n_whole=n_whole
        )

    def _actions(self) -> Iterator[Action]:
        probes = self.again is not None and (self.n is None or self.n > 2)
        if self.again is not None and self.n is None:
            self.begun = True
            yield Save("state", 0)
        for action in self.tapes.record(0, self.n):
            if probes and action == Record(1):
                self.probing = True
                yield Save("state", 1)
            yield action
            if type(action) is not Save:
                continue
            if self.begun:
                self.begun = False
                yield Delete("state", 0)
            self.later = self.rest(action.step + 1)
            if self.probing:
                self.probing = False
                yield Delete("state", 1)
            if self.later is not None:
                break
        if self.later is not None:
            yield from self._of_later()
        if self.n is not None:
            yield from self._end(self.n)

    def _finish(self, n: int) -> Iterator[Action]:
        """The loop has ended after ``n`` steps."""
        if self.begun and n == 1 and self.again is not None and self.again():
            yield from _again()
            return
        if self.begun:
            yield Delete("state", 0)
        if self.probing:
            yield Delete("state", 1)
        if self.later is not None:
            self.later.finalize(n - self.tapes.stop)
            yield from self._of_later()
        yield from self._end(n)

    def _of_later(self) -> Iterator[Action]:
        """What is left of the later schedule, in the numbers of all steps."""
        assert self.later is not None
        by = self.tapes.stop
        for action in self.later:
            moved: Any = action
            if type(action) is Advance:
                moved = Advance(action.start + by, action.stop + by)
            elif type(action) is not EndForward:
                moved = None if type(action) is EndReverse else evolve(moved, step=moved.step + by)
            if moved is not None:
                yield moved

    def _end(self, n: int) -> Iterator[Action]:
        """Reverse the steps whose tapes are kept."""
        if self.later is None:
            yield from self.tapes.finish(n)
            return
        yield from self.tapes.reverse(self.tapes.stop)
        yield EndReverse()


def _again() -> Iterator[Action]:
    """A single step, of which x_0 is saved, lets go of its tape and is run again."""
    yield Save("tape", 0)
    yield Delete("tape", 0)
    yield EndForward()
    yield Load("state", 0)
    yield Delete("state", 0)
    yield Record(0)
    yield Reverse(0)
    yield EndReverse()
