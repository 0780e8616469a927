"""Tapes in place of snapshots: a snapshot gives way to the tapes of the steps that it serves, where these take fewer
bytes.

Policies that count snapshots take a state to be small. But a step that reads little of it, such as a linear one, has a
tape that is smaller still; holding the tapes of all steps that a snapshot serves then takes fewer bytes and no more
steps. A snapshot that stays takes no more than the tapes of its steps, so never more is held than under save-all.
"""

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, Final

from attrs import define, field

from pullback.scheduling.machine.actions import (
    MEMORY,
    Action,
    Advance,
    Delete,
    EndForward,
    EndReverse,
    Load,
    Record,
    Reverse,
    Save,
    Transfer,
)
from pullback.scheduling.machine.schedule import Schedule
from pullback.scheduling.machine.tapes_first import TapesFirst

OBJECT_BYTES: Final = 1024
"""What Python's own objects take for a tape that is held, however little it holds."""


def tapes_for_states(schedule: Schedule, state_bytes: int, tape_bytes: int) -> Schedule:
    """The schedule, changed; as it was where a tape is no smaller than a state.

    Where the length is not known, nor how many steps a state will serve, this holds for the first steps alone, and only
    while their tapes are empty.
    """
    most = most_steps(state_bytes, tape_bytes)
    if most == 0 or (schedule.n is None and tape_bytes):
        return schedule
    if schedule.n is not None:
        return TapesForStates(schedule, state_bytes, tape_bytes).changed()
    larger = list[int]()  # the bytes of tapes that are not empty
    first = TapesFirst(None, lambda kept: schedule if larger or kept >= most else None)
    return first.schedule(schedule.policy, larger=lambda **sizes: larger.append(sizes["tape_bytes"]))


def most_steps(state_bytes: int, tape_bytes: int) -> int:
    """The most steps whose tapes take less than a state."""
    return max(0, (state_bytes - 1) // (tape_bytes + OBJECT_BYTES))


@define
class Span:
    """Steps ``first .. stop-1``, whose tapes are held instead of the state before them."""

    first: int
    stop: int
    state_after: bool = False
    """Whether the state before ``stop`` is held for the steps from there on, which were to be of this span, too."""


@define(eq=False)
class TapesForStates:
    """A schedule of known length, in which tapes take the place of states in memory. Of what the schedule says of the
    steps of a span, and of states within them, only that they are reversed is left."""

    schedule: Schedule
    state_bytes: int
    tape_bytes: int
    spans: list[Span] = field(factory=list, init=False)  # ascending
    gone: set[int] = field(factory=set, init=False)  # states that the schedule takes for stored
    work: int = field(default=-1, init=False)  # the step of a span whose tape is in WORK

    def changed(self) -> Schedule:
        """The schedule, changed."""
        n, policy = self.schedule.n, self.schedule.policy
        return Schedule(self.actions(), n, policy=policy, finish=self.finish, larger=self.larger)

    @property
    def most(self) -> int:
        """The most steps whose tapes take less than a state, as far as is known."""
        return most_steps(self.state_bytes, self.tape_bytes)

    def larger(self, *, state_bytes: int, tape_bytes: int, freed: int = 0) -> None:  # noqa: ARG002 - no bytes bind it
        """A step is larger than was told: the next states stay, and so does one within the span under way."""
        self.state_bytes, self.tape_bytes = state_bytes, max(self.tape_bytes, tape_bytes)

    def finish(self, n: int) -> Iterator[Action]:
        """The loop has ended after ``n`` steps."""
        self.schedule.finalize(n)
        if self.spans and self.spans[-1].state_after and self.spans[-1].stop >= n:
            yield self._drop_after()
        yield from self.actions()

    def actions(self) -> Iterator[Action]:
        """What is left of the schedule, changed."""
        before: Any = None  # a state that comes before what may be recorded from it: its Save waits
        for action in self.schedule:
            served = before is not None and type(action) is Advance and action.start == before.step
            if served and action.stop - action.start <= self.most:  # type: ignore[union-attr]  # served says it
                if type(before) is Load:
                    yield Delete("state", before.step)
                yield from self._recorded(action.start, action.stop)  # type: ignore[union-attr]
                before = None
                continue
            if type(before) is Save:
                yield before
            before = None
            for changed in self._changed(action):
                if type(changed) in (Save, Load) and changed.kind == "state" and changed.tier == MEMORY:
                    before = changed
                if type(changed) is not Save or before is not changed:
                    yield changed

    def _changed(self, action: Any) -> Iterator[Any]:
        """An action where no span begins with it."""
        kind = type(action)
        if kind in (EndForward, EndReverse, Transfer):
            yield action
        elif kind is Reverse:
            yield from self._reversed(action)
        elif kind is Delete and action.kind == "state" and action.step in self.gone:
            self.gone.remove(action.step)
        else:
            span = self._span_of(action.start if kind is Advance else action.step)
            if kind is Save and action.kind == "state" and self._after(action.step):
                self.spans[-1].state_after = False  # the schedule takes it over
            elif span is None:
                yield action
            elif span.state_after and kind is Load and action.kind == "state":
                yield Load("state", span.stop)
            elif kind is Advance and action.stop > span.stop:
                yield Advance(span.stop, action.stop)

    def _recorded(self, first: int, stop: int) -> Iterator[Action]:
        """Record a span. Where its tapes turn out larger, a state takes the place of those to come."""
        span = Span(first, stop)
        self.spans.append(span)
        self.gone.add(first)
        for step in range(first, stop):
            self.work = step
            yield Record(step)
            if step + 1 == self.schedule.n:  # it is the first to be reversed
                return
            self.work = -1
            yield Save("tape", step)
            if step + 1 < stop and stop - step - 1 > self.most:
                span.stop, span.state_after = step + 1, True
                yield Save("state", step + 1)
                yield Advance(step + 1, stop)
                return

    def _reversed(self, action: Reverse) -> Iterator[Action]:
        step, span = action.step, self._span_of(action.step)
        if span is not None and step != self.work:
            yield Load("tape", step)
            yield Delete("tape", step)
        yield action
        if self._after(step):
            yield self._drop_after()
        elif span is not None and step == span.first:
            self.spans.pop()

    def _after(self, step: int) -> bool:
        """Whether the state before ``step`` is held since the newest span was cut short there."""
        return bool(self.spans) and self.spans[-1].state_after and self.spans[-1].stop == step

    def _drop_after(self) -> Delete:
        self.spans[-1].state_after = False
        return Delete("state", self.spans[-1].stop)

    def _span_of(self, step: int) -> Span | None:
        at = bisect_right(self.spans, step, key=_first) - 1
        return self.spans[at] if at >= 0 and step < self.spans[at].stop else None


def _first(span: Span) -> int:
    return span.first


@define(eq=False)
class TapeSizes:
    """What a schedule was told, and whom to tell of a tape that is ``larger``. The buffers that are ``shared`` by all
    tapes now do not count."""

    larger: Callable[..., None]
    state_bytes: int
    tape_bytes: int
    shared: Callable[[], Collection[Any]]
    seen: set[Any] = field(factory=set, init=False)
    """The kinds of tapes that have been looked at: all of one kind hold as much."""

    def look(self, tapes: Iterable[Any]) -> None:
        """Look at tapes that have come, since a later step may hold more than was told."""
        for tape in tapes:
            kind = getattr(tape, "kind", None)
            if kind is not None and kind in self.seen:
                continue
            self.seen.add(kind)
            nbytes = tape.own_bytes(self.shared())
            if nbytes > self.tape_bytes:
                self.tape_bytes = nbytes
                self.larger(state_bytes=self.state_bytes, tape_bytes=nbytes)
