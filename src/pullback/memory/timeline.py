"""The timeline of a call: what was held after each event of its forward and its reverse pass, and when.

It is kept by a ledger that notes what is booked (:class:`TimedLedger`), which a call gets within ``with timed()``
alone; the ordinary ledger knows nothing of it. What a plain tape under save-all holds is booked by nobody: it is read
from the records when the forward pass is over, and spread evenly over the seconds between the events in which it was
recorded.
"""

from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import wraps
from itertools import accumulate
from time import perf_counter
from typing import Any, ClassVar, Final, NamedTuple, TypeVar

from attrs import define, field, frozen

from pullback.memory.ledger import LEDGERS, REASONS, Item, Ledger, mib, tape_holdings, weight
from pullback.recording.handles import Handle
from pullback.words.structures import flatten

FORWARD, RECOMPUTE, REVERSE = "forward", "recompute", "reverse"
L = TypeVar("L", bound=Ledger)
MOST: Final = 4000
"""Events that are kept: of more, every other one goes, the larger of two stays."""
BETWEEN: Final = 200
"""Events at most for what plain records hold."""


class Event(NamedTuple):
    """What is held when something was booked: in ``phase`` up to then, at ``step`` of the loop under way (None outside
    loops), after ``n_forward`` forward steps."""

    seconds: float
    phase: str
    step: int | None
    n_forward: int
    held: dict[str, int]
    """Bytes by reason."""
    n_records: int = 0
    """Records on the tape of the program."""

    @property
    def nbytes(self) -> int:
        """Bytes together."""
        return sum(self.held.values())


@frozen
class Timeline:
    """The events of one forward and one reverse pass, and the seconds at which the reverse began. Prints as a
    sentence."""

    events: tuple[Event, ...]
    turned: float

    @property
    def peak(self) -> Event:
        """The event after which most was held: of several the one whose reasons the report tells, the last of these."""
        most = max(event.nbytes for event in self.events)
        return max((e for e in reversed(self.events) if e.nbytes == most), key=lambda event: weight(event.held))

    @property
    def reasons(self) -> tuple[str, ...]:
        """What is ever held, in the order of the ledger."""
        return tuple(reason for reason in REASONS if any(event.held.get(reason) for event in self.events))

    def to_dict(self) -> dict[str, Any]:
        """Everything in it as plain values, column by column, ready for ``json.dump``."""
        return {
            "turned": self.turned,
            "seconds": [round(event.seconds, 7) for event in self.events],
            "phase": [event.phase for event in self.events],
            "step": [event.step for event in self.events],
            "n_forward": [event.n_forward for event in self.events],
            "held": {reason: [event.held.get(reason, 0) for event in self.events] for reason in self.reasons},
        }

    def __str__(self) -> str:
        peak = self.peak
        at = "" if peak.step is None else f" at step {peak.step}"
        parts = ", ".join(f"{reason} {mib(n)}" for reason, n in peak.held.items() if n)
        return f"peak {mib(peak.nbytes)} after {peak.seconds:.3g} s, {peak.phase}{at}: {parts or 'nothing'}"


@define(eq=False)
class TimedLedger(Ledger):
    """A ledger that notes what is held whenever that changes."""

    separates: ClassVar[bool] = True
    events: list[Event] = field(factory=list, repr=False)
    began: float = field(factory=perf_counter)
    turned: float | None = None
    stretch: int = 0
    """The first event of the plain code under way."""
    tape: Any = field(default=None, repr=False)
    plain: list[tuple[int, str, int]] = field(factory=list, repr=False)
    """(record, reason, bytes) of what plain records hold, when the forward pass was over, or had failed."""

    def hold(self, items: Iterable[Item]) -> None:
        """As the ledger does."""
        before = self.total
        super().hold(items)
        if self.total != before:
            self.note(made=True)

    def release(self, items: Iterable[Item]) -> None:
        """As the ledger does."""
        before = self.total
        super().release(items)
        if self.total != before:
            self.note(made=False)

    def runs(self, who: Hashable, nbytes: int) -> None:
        """As the ledger does."""
        before = self.state_bytes
        super().runs(who, nbytes)
        if self.state_bytes != before:
            self.note(made=self.state_bytes > before)

    def stretch_begins(self) -> None:
        """As the ledger does."""
        super().stretch_begins()
        self.stretch = len(self.events)

    def stretch_is_plain(self) -> None:
        """As the ledger does: what was held meanwhile is told by the records."""
        super().stretch_is_plain()
        del self.events[self.stretch :]
        self.note(made=False)

    def note(self, *, made: bool) -> None:
        """What is held now. In the reverse pass, what ended in something to hold or in forward steps was to compute
        again."""
        last = self.events[-1] if self.events else None
        phase = FORWARD
        if self.turned is not None:
            stepped = last is None or self.n_forward > last.n_forward
            cotangents = last is None or self.now.get("cotangent", 0) != last.held.get("cotangent", 0)
            phase = RECOMPUTE if stepped or (made and not cotangents) else REVERSE
        held = {reason: n for reason, n in self.now.items() if n}
        n_records = 0 if self.tape is None else len(self.tape.records)
        self.events.append(Event(perf_counter() - self.began, phase, self.step, self.n_forward, held, n_records))
        if len(self.events) > 2 * MOST:
            self.events[:] = _thinned(self.events)

    def watched(self, f: Callable[..., Any]) -> Callable[..., Any]:
        """``f``, from whose traced arguments the tape of the program is known."""

        @wraps(f, updated=())
        def called(*args: Any) -> Any:
            self.tape = next((leaf._tape for leaf in flatten(args)[0] if isinstance(leaf, Handle)), None)
            self.began = perf_counter()
            self.note(made=True)
            try:
                return f(*args)
            except BaseException:
                self._note_plain()
                raise

        return called

    def turn(self) -> None:
        """The forward pass is over, and the reverse begins."""
        self.step = None
        self._note_plain()
        self.turned = perf_counter() - self.began

    def _note_plain(self) -> None:
        """The forward pass has come to its end, or to an error: what plain records hold then."""
        self.note(made=True)
        records = () if self.tape is None else self.tape.records
        unbooked = (held for held in tape_holdings(records) if id(held.buffer) not in self.held)
        self.plain = [(held.ident, held.reason, held.nbytes) for held in unbooked]

    def timeline(self) -> Timeline:
        """The events up to now, as far as the passes came."""
        self.step = None
        self.note(made=False)
        events = self.events
        while len(events) > MOST:
            events = _thinned(events)
        self.tape = None
        if self.book_bytes:
            books = {"bookkeeping": self.book_bytes}
            events = [event._replace(held=event.held and {**event.held, **books}) for event in events]
        turned = self.turned if self.turned is not None else events[-1].seconds
        return Timeline(tuple(_with_plain(events, self.plain)), turned)


def _thinned(events: list[Event]) -> list[Event]:
    """The events without half of them: of two that follow each other, the one after which more was held."""
    pairs = zip(events[::2], events[1::2], strict=False)
    rest = events[-1:] if len(events) % 2 else []
    return [*(max(pair, key=lambda event: event.nbytes) for pair in pairs), *rest]


def _with_plain(events: list[Event], plain: list[tuple[int, str, int]]) -> Iterator[Event]:
    """The events, with those of what plain records hold between them."""
    if not plain:
        yield from events
        return
    places = [ident for ident, _, _ in plain]
    nothing: dict[str, int] = {}
    sums = list(accumulate(({reason: n} for _, reason, n in plain), _added, initial=nothing))
    shown = set(range(0, len(plain), max(1, len(plain) // BETWEEN)))
    before = None
    for event in events:
        first = 0 if before is None else bisect_right(places, before.n_records - 1)
        # A tape that is closed has no records, not even those of its inputs; until then all of it is held.
        closed = event.phase == FORWARD or event.n_records == 0
        upto = bisect_right(places, event.n_records - 1) if closed else len(plain)
        if before is not None and event.phase == FORWARD:
            for k in (k for k in range(first, upto) if k in shown):
                part = (places[k] - before.n_records + 1) / max(1, event.n_records - before.n_records)
                seconds = before.seconds + part * (event.seconds - before.seconds)
                held = _added(before.held, sums[k + 1])
                yield Event(seconds, FORWARD, None, event.n_forward, held)
        yield event._replace(held=_added(event.held, sums[upto]))
        before = event


def _added(some: dict[str, int], more: dict[str, int]) -> dict[str, int]:
    return {reason: some.get(reason, 0) + more.get(reason, 0) for reason in {**some, **more}}


@contextmanager
def booking_in(ledger: L) -> Iterator[L]:
    """Within the block one ``vjp`` books what it holds in this ledger; a gradient within its function has its own."""

    def the_one(*, heard: bool) -> Ledger:
        LEDGERS.set(Ledger)
        ledger.heard = heard
        return ledger

    token = LEDGERS.set(the_one)
    try:
        yield ledger
    finally:
        LEDGERS.reset(token)


def timed() -> AbstractContextManager[TimedLedger]:
    """Within the block a ``vjp`` books what it holds in this ledger, which notes when; for one call.

    ``watched`` wraps the function, ``turn`` is called between the forward and the reverse pass, ``timeline`` at the
    end.
    """
    return booking_in(TimedLedger())
