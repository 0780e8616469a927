"""The ledger: every byte held between forward and reverse, by reason, with its high-water mark.

Loops and step regions book their holdings as they carry out actions. A save-all tape is its own storage: its bytes are
summed from its records when somebody asks, never per operation.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np
from attrs import define, field, frozen

from pullback.recording.handles import Handle
from pullback.rules.forms import FORMS, Form
from pullback.words.specs import buffer_of

REASONS = ("snapshot", "saved", "residual", "constant", "cotangent", "state", "transient", "queue", "bookkeeping")


def weight(held: Mapping[str, int]) -> tuple[int, ...]:
    """Orders moments at which equally many bytes are held: the greatest is reported as the peak. The first one would
    not do: where entries are read ahead, threads decide which comes first."""
    return tuple(held.get(reason, 0) for reason in ("saved", *REASONS))


class Held(NamedTuple):
    """One buffer that a record holds."""

    buffer: Any
    nbytes: int
    reason: str
    form: Form
    name: str
    site: int
    ident: int


Item = tuple[Hashable, int, str]
"""One buffer as the ledger books it: a key that is the buffer's own, its bytes, the reason."""


@define(eq=False)
class Ledger:
    """Bytes by reason now and at the peak, and what the schedule has executed. A buffer held twice counts once."""

    held: dict[Hashable, list[Any]] = field(factory=dict, repr=False)
    """Key to [times held, bytes, reason]."""
    now: dict[str, int] = field(factory=dict)
    at_peak: dict[str, int] = field(factory=dict)
    peak_bytes: int = 0
    n_forward: int = 0
    elapsed_seconds: float = 0.0
    total: int = 0
    states: dict[Hashable, int] = field(factory=dict, repr=False)
    """The bytes of running states by whose they are. They count at the peak, and are no part of ``total``: policies
    that share out bytes leave room for them by themselves."""
    state_bytes: int = 0
    """The sum of these."""
    before_stretch: tuple[int, dict[str, int]] = field(default=(0, {}), repr=False)
    """The peak when the plain code under way began, and what was held then."""
    books_of: dict[Hashable, int] = field(factory=dict, repr=False)
    """What Python takes for the books of steps, by chain; reported on top of what arrays take at their peak."""
    most_books: int = 0
    """The most that these were together when a reverse pass began."""
    stores: list[Any] = field(factory=list)
    """The figures of tiers that do more than hold a reference (``stores.figures``)."""
    decided: dict[Any, Any] = field(factory=dict)
    """What each ``Keep`` of the call has decided (``memory.kept_rules``)."""
    choices: list[Any] = field(factory=list)
    """What policies have decided within the run (``choosing.auto.Choice``)."""
    working_bytes: int | None = None
    """What a step takes at most while it runs, beside what is held; where a policy or a plan has asked."""
    within_steps: bool = False
    """Whether marked steps of save-all are under way, which count those within as part of them."""
    lenders: list[Any] = field(factory=list)
    """Loops that wait for their reverse and can do with fewer bytes (``memory.lending``)."""
    lent_bytes: int = 0
    """What these have given up so far."""
    heard: bool = True
    """Whether anybody can ask for the report: of ``grad`` nobody can unless he watches, and its loops' steps need
    not be booked."""
    counted: bool = False
    """Whether a policy that counts bytes has to know what plain code holds, though nobody asks for the report."""
    step: int | None = None
    """The step of a loop that was run or reversed last: for the timeline (``memory.timeline``)."""

    separates: ClassVar[bool] = False
    """Whether a step is recorded and reversed each for itself where one function could do both: who times it asks."""

    @property
    def books(self) -> bool:
        """Whether it is booked what plain code holds. Loops book what they hold as one item where nobody hears."""
        return self.heard or self.counted

    @property
    def untold(self) -> "Ledger":
        """The ledger itself, told to nobody: of loops inside steps."""
        return self

    def begins(self, n: int | None, schedule: Any, sizes: dict[str, int], done: int = 0) -> None:
        """A loop begins, under save-all without a schedule: for who shows how far it is
        (``instruments.watching.progress``)."""

    def sweeps(self, n: int | None, *, anew: bool = True) -> None:
        """A loop begins that is not reversed: for the same."""

    def waits(self, why: str) -> None:
        """What comes takes time and is no step, for the same; "" says that it is over."""

    def rests(self) -> None:
        """A pass is over: for the same."""

    def reversed_one(self, items: Iterable[Item]) -> None:
        """A step was reversed, and its tape is let go."""
        self.release(items)

    def ran(self, chain: Any, start: int, stop: int) -> None:  # noqa: ARG002 - who counts operations asks it
        """Steps of the chain of plain code were executed again."""
        self.n_forward += stop - start

    def hold(self, items: Iterable[Item]) -> None:
        """Book buffers; what is booked already gets one holder more."""
        for key, nbytes, reason in items:
            booked = self.held.get(key)
            if booked is not None:
                booked[0] += 1
                continue
            self.held[key] = [1, nbytes, reason]
            self.now[reason] = self.now.get(reason, 0) + nbytes
            self.total += nbytes
        if self.total + self.state_bytes >= self.peak_bytes:
            self._rises()

    def held_once(self, items: Iterable[Item]) -> None:
        """Book buffers of a step that is recorded and reversed by one function, and let go of them."""
        self.hold(items)
        self.release(items)

    def _rises(self) -> None:
        """As much is held as ever: note it as the peak, if it is."""
        nbytes = self.total + self.state_bytes
        if nbytes > self.peak_bytes or weight(self.now) > weight(self.at_peak):
            self.peak_bytes = nbytes
            self.at_peak = {name: n for name, n in self.now.items() if n}

    def stretch_begins(self) -> None:
        """What is booked from now on may be counted as plain code in the end."""
        self.before_stretch = self.peak_bytes, self.at_peak

    def stretch_is_plain(self) -> None:
        """What was booked since is let go of, and counts as what plain code holds, which is asked for when somebody
        wants to know: it is no part of the peak that is booked."""
        self.peak_bytes, self.at_peak = self.before_stretch
        self._rises()

    def runs(self, who: Hashable, nbytes: int) -> None:
        """The running state of ``who`` is so large now; 0: nothing runs."""
        before = self.states.get(who, 0)
        if nbytes != before:
            self.states[who] = nbytes
            if not nbytes:
                del self.states[who]
            self.now["state"] = self.now.get("state", 0) + nbytes - before
            self.state_bytes += nbytes - before
            if self.total + self.state_bytes >= self.peak_bytes:
                self._rises()

    @property
    def book_bytes(self) -> int:
        """What the books of steps take at most."""
        return max(self.most_books, sum(self.books_of.values()))

    def release(self, items: Iterable[Item]) -> None:
        """One holder fewer for each buffer; the last one takes its bytes off. What is not held is passed over: an
        interrupt may have come while it was booked."""
        for key, _, _ in items:
            booked = self.held.get(key)
            if booked is None:
                continue
            booked[0] -= 1
            if booked[0] == 0:
                del self.held[key]
                self.now[booked[2]] -= booked[1]
                self.total -= booked[1]

    def returns_to(self, run: Any, agreement: Any = None, told: Callable[[], str] = str) -> None:
        """The reverse of a loop begins: it lends no more. Where ranks have agreed on its schedule by an ``agreement``,
        they do so on what it has lent; ``told`` says what it is."""
        for lender in self.lenders:
            if lender.run is run:
                if agreement is not None:
                    lender.agrees(agreement, told())
                lender.returns()
        self.lends_no_more(run)

    def lends_no_more(self, run: Any) -> None:
        """The reverse of a loop has begun, or will not come."""
        if self.lenders:
            self.lenders[:] = [lender for lender in self.lenders if lender.run is not run]

    @contextmanager
    def holding(self, items: Sequence[Item]) -> Iterator[None]:
        """Within the block the buffers are booked."""
        self.hold(items)
        try:
            yield
        finally:
            self.release(items)

    def works(self, nbytes: int) -> None:
        """The steps of a loop take so much while they run."""
        self.working_bytes = max(nbytes, self.working_bytes or 0)

    def plain_bytes(self, records: Iterable[Any]) -> dict[str, int]:
        """What the records of a plain tape hold beside what is booked, by reason, each buffer counted once."""
        plain: dict[str, int] = {}
        for buffer, nbytes, reason, _, _, _ in _holdings(records, booked=self.held):
            if id(buffer) not in self.held:  # else it is booked by a loop or a step region
                plain[reason] = plain.get(reason, 0) + nbytes
        return plain

    def report(self, plain: dict[str, int]) -> "Report":
        """The figures, together with those of a plain tape (:meth:`plain_bytes`)."""
        stores: tuple[Any, ...] = ()
        if self.stores:
            from pullback.stores.figures import reports  # noqa: PLC0415 - for those who use such stores

            stores = reports(self.stores)
        by_reason = {r: self.at_peak.get(r, 0) + plain.get(r, 0) for r in REASONS}
        by_reason["bookkeeping"] += self.book_bytes
        return Report(
            n_forward=self.n_forward,
            peak_bytes=self.peak_bytes + self.book_bytes + sum(plain.values()),
            bytes_by_reason={r: n for r, n in by_reason.items() if n},
            live_bytes=self.total + sum(plain.values()),
            seconds=self.elapsed_seconds,
            stores=stores,
            choices=tuple(self.choices),
            working_bytes=self.working_bytes,
        )


LEDGERS: Final[ContextVar[Callable[..., Ledger]]] = ContextVar("pullback_ledgers", default=Ledger)
"""What makes the ledger of a ``vjp``: another one where a timeline is kept (``memory.timeline``)."""


@frozen
class Report:
    """What a reverse pass held and did: peak bytes by reason, forward steps executed, live bytes now, seconds in the
    reverse."""

    n_forward: int
    peak_bytes: int
    bytes_by_reason: dict[str, int]
    live_bytes: int
    seconds: float
    stores: tuple[Any, ...] = ()
    """What tiers other than plain memory did, a :class:`~pullback.stores.figures.StoreReport` each."""
    choices: tuple[Any, ...] = ()
    """What ``policy="auto"`` or a pool has taken for each loop, and why: a :class:`~pullback.choosing.auto.Choice`
    each."""
    working_bytes: int | None = None
    """What a step of a loop takes at most while it runs, beside what is booked: its result, cotangents, temporaries.
    Known where the policy counts bytes (``Budget``, ``"auto"``)."""

    def __str__(self) -> str:
        text = (
            f"{peak_text(self.peak_bytes, self.bytes_by_reason, self.working_bytes)}, {self.n_forward} forward steps, "
            f"{mib(self.live_bytes)} still held, {self.seconds:.3g} s in the reverse"
        )
        return "; ".join((text, *map(str, self.stores), *map(str, self.choices)))


def peak_text(peak_bytes: int, by_reason: Mapping[str, int], working_bytes: int | None) -> str:
    """What is held at most, for which reasons, and what a step takes beside it."""
    parts = ", ".join(f"{name} {mib(n)}" for name, n in by_reason.items())
    working = "" if working_bytes is None else f" and at most {mib(working_bytes)} at work"
    return f"peak {mib(peak_bytes)} ({parts or 'nothing held'}){working}"


def mib(nbytes: float) -> str:
    """Bytes for people: B, KiB, MiB or GiB with three figures."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(nbytes) < 1024 or unit == "GiB":
            break
        nbytes /= 1024
    return f"{nbytes:.0f} {unit}" if unit == "B" or abs(nbytes) >= 1000 else f"{nbytes:.3g} {unit}"


def tape_holdings(records: Iterable[Any]) -> Iterator[Held]:
    """Every buffer that records hold, once, with what it is held for."""
    for buffer, nbytes, reason, name, ident, record in _holdings(records):
        yield Held(buffer, nbytes, reason, FORMS[record[0]], name, record[-1], ident)


def lasting_buffers(records: Sequence[Any], values: Iterable[Any] = ()) -> list[Any]:
    """What records hold, and these values, where loops are among the records: to be held until it is booked no more.

    An array that went before would give its address, and so the name that it is booked by, to one that a loop makes.
    """
    if not any(record is not None and FORMS[record[0]].steps for record in records):
        return []
    return [*(held[0] for held in _holdings(records)), *values]


def record_items(records: Iterable[Any]) -> list[Item]:
    """What records hold, for booking."""
    return [(id(buffer), nbytes, reason) for buffer, nbytes, reason, _, _, _ in _holdings(records)]


def _holdings(
    records: Iterable[Any], booked: Collection[Hashable] = ()
) -> Iterator[tuple[Any, int, str, str, int, Any]]:
    """(buffer, bytes, reason, the name it is saved by, place of the record, record); every step of a loop is asked. Of
    buffers that are ``booked`` some are left out, which takes less time."""
    seen: set[int] = set()
    for ident, record in enumerate(records):
        if record is None:
            continue
        form = FORMS[record[0]]
        for place, (name, reason) in enumerate(form.held, 1 + len(form.active)):
            if type(saved := record[place]) is np.ndarray and (id(saved) in seen or id(saved) in booked):
                continue
            for value in saved if isinstance(saved, tuple) else (saved,):
                while isinstance(value, Handle):
                    value = value._value  # noqa: PLW2901 - what it stands for, innermost
                if isinstance(value, np.ndarray):
                    buffer = value if value.base is None else buffer_of(value)
                    nbytes = buffer.nbytes
                elif name in form.primitive.opaque:
                    buffer, nbytes = value, int(form.primitive.opaque[name](value))
                else:
                    continue
                if id(buffer) not in seen:
                    seen.add(id(buffer))
                    yield buffer, nbytes, reason, name, ident, record
        for buffer, nbytes, reason, name in () if form.holds is None else form.holds(record):
            if id(buffer) not in seen:
                seen.add(id(buffer))
                yield buffer, nbytes, reason, name, ident, record


def value_items(values: Iterable[Any], reason: str) -> list[Item]:
    """Arrays, each with its whole buffer, for booking; other values cost nothing."""
    items: dict[int, Item] = {}
    for value in values:
        if isinstance(value, np.ndarray):
            buffer = buffer_of(value)
            items[id(buffer)] = (id(buffer), buffer.nbytes, reason)
    return list(items.values())


def nbytes_of(value: Any) -> int:
    """Bytes of an array; nothing for a scalar."""
    return value.nbytes if isinstance(value, np.ndarray) else 0
