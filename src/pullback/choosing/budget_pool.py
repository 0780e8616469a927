"""BudgetPool: one number of bytes for the gradients of several threads, or processes of one machine."""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from weakref import WeakValueDictionary

from attrs import define, evolve, field, frozen

from pullback.choosing.auto import Auto, Choice, Gauge, LoopSizes, note
from pullback.choosing.pool_files import Book, Holding
from pullback.policies.base import MemoryPolicy
from pullback.policies.budget import Budget
from pullback.policies.save_all import SaveAll
from pullback.scheduling.machine.schedule import Schedule
from pullback.words.byte_sizes import as_bytes, limit_of_groups
from pullback.words.errors import BudgetError, PolicyError, TravelError

LOOKS_AGAIN: Final = 0.05
"""Seconds after which a thread looks again what other processes have given back."""
UNLOOKED: Final = 16
"""Plain code may make this part of a pool before it takes a share."""


def _as_max_bytes(value: float | str) -> int:
    limit = limit_of_groups()
    nbytes = as_bytes(value, "max_bytes")
    return nbytes if limit is None else min(nbytes, limit)


def _as_path(value: str | os.PathLike[str] | None) -> Path | None:
    return None if value is None else Path(value).resolve()


def _as_most(value: float | str | None) -> int | None:
    return None if value is None else as_bytes(value, "max_bytes")


def _as_timeout(value: float | None) -> float | None:
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool) and value >= 0):
        return value
    raise PolicyError(f"timeout={value!r} is no number of seconds; pass one, at least 0, or None to wait for ever")


@define(eq=False)
class Share:
    """What one loop has taken of a pool, until it is closed."""

    shares: "Shares"
    nbytes: int
    ledger: Any
    """Whose gradient it is for."""
    loop: str
    thread: threading.Thread = field(factory=threading.current_thread)

    def keep(self, nbytes: int) -> None:
        """Give back what is more."""
        more, self.nbytes = max(0, self.nbytes - nbytes), min(self.nbytes, nbytes)
        if more:
            self.shares.give_back(self, more)

    def close(self) -> None:
        """Give it back, once."""
        self.keep(0)

    def __del__(self) -> None:
        if hasattr(self, "thread") and not sys.is_finalizing():
            self.close()

    def __str__(self) -> str:
        return f"{self.thread.name} {self.nbytes:,} for {self.loop}"


@define(eq=False)
class Shares:
    """Who holds what of a pool."""

    max_bytes: int
    held: int = 0
    changed: threading.Condition = field(factory=threading.Condition)
    """Reentrant: a share may be collected while another is taken."""
    of_ledger: dict[int, int] = field(factory=dict)
    """The bytes of the gradient of each ledger, by its ``id``."""
    holders: dict[int, Share] = field(factory=dict)
    """The shares, by ``id``."""
    waiting: set[threading.Thread] = field(factory=set)
    """Threads that hold shares and wait for more."""
    book: Book | None = None
    """The book in which other processes say what they hold of the pool; None for a pool of one process."""

    @contextmanager
    def turn(self) -> Iterator[list[Holding]]:
        """What other processes hold, which stays so within the block; what changes here is told to them after it."""
        with self.changed:
            if self.book is None:
                yield []
            else:
                with self.book.turn(self._own_holding) as others:
                    yield others

    def _own_holding(self) -> Holding:
        return Holding(self.max_bytes, self.held, len(self._holding() - self.waiting))

    def _holding(self) -> set[threading.Thread]:
        return {share.thread for share in list(self.holders.values())}

    def take(self, asked: "Asked", ledger: Any, most: int, timeout: float | None) -> tuple[Share | None, int]:
        """A share that makes ``asked`` possible, None where the gradient holds enough, and the bytes that the gradient
        holds with it. Raises :class:`BudgetError`."""
        until = None if timeout is None else time.monotonic() + timeout
        with self.changed:
            while True:
                with self.turn() as others:
                    mine = self.of_ledger.get(id(ledger), 0)
                    free = min(self._left(others), max(0, most - mine))
                    if asked.least <= mine + free:
                        return self._taken(asked, ledger, mine, free)
                    left = self._must_wait(asked, free, until, others)
                self._wait(left)

    def _left(self, others: list[Holding]) -> int:
        """Where processes have named different numbers, of the least of them."""
        whole = min([self.max_bytes, *(other.max_bytes for other in others)])
        return max(0, whole - self.held - sum(other.held for other in others))

    def _taken(self, asked: "Asked", ledger: Any, mine: int, free: int) -> tuple[Share | None, int]:
        """Half of what is free at most, so that others find room; but what is needed."""
        total = max(asked.least, min(asked.most, mine + free // 2), mine)
        extra = total - mine
        if not extra:
            return None, total
        share = Share(self, extra, ledger, asked.loop)
        self.held += extra
        self.of_ledger[id(ledger)] = total
        self.holders[id(share)] = share
        return share, total

    def _must_wait(self, asked: "Asked", free: int, until: float | None, others: list[Holding]) -> float | None:
        """How long, at most. Who holds shares waits as long as another holds some who does not wait: the last one is
        refused, and gives back what it has."""
        me, holding = threading.current_thread(), self._holding()
        left = None if until is None else until - time.monotonic()
        beside = bool(holding - {me} - self.waiting) or any(other.n_active for other in others)
        stuck = me in holding and not beside
        if stuck or (left is not None and left <= 0):
            raise self._refused(asked, free, others, timed=not stuck)
        if me in holding:
            self.waiting.add(me)
            self.changed.notify_all()
        return left

    def _wait(self, left: float | None) -> None:
        """Wait until something is given back, or so long: nobody tells what other processes give back."""
        if self.book is not None:
            left = LOOKS_AGAIN if left is None else min(left, LOOKS_AGAIN)
        try:
            self.changed.wait(left)
        finally:
            self.waiting.discard(threading.current_thread())

    def _refused(self, asked: "Asked", free: int, others: list[Holding], *, timed: bool) -> BudgetError:
        held = [*map(str, self.holders.values()), *(f"another process {one.held:,}" for one in others if one.held)]
        who = ", ".join(held) or "nobody holds any"
        why = "waited as long as timeout= says" if timed else "nobody will give any back who does not wait for more"
        return BudgetError(
            f"{asked.loop} needs at least {asked.least:,} of the {self.max_bytes:,} bytes of a pool, and {free:,} are "
            f"free; {why}. Held: {who}. Close pulls that are not needed, run fewer threads, or make the pool larger.",
            asked.least,
        )

    def give_back(self, share: Share, nbytes: int) -> None:
        """A share is closed, or part of it is given back."""
        with self.turn():
            if not share.nbytes:
                self.holders.pop(id(share), None)
            self.held -= nbytes
            left = self.of_ledger.get(id(share.ledger), 0) - nbytes
            if left > 0:
                self.of_ledger[id(share.ledger)] = left
            else:
                self.of_ledger.pop(id(share.ledger), None)
            self.changed.notify_all()


@frozen
class Asked:
    """What a loop needs."""

    loop: str
    least: int
    most: int
    """The most that it can use: with more it would do nothing else."""


_JOINING = threading.Lock()
_OF_PATH: WeakValueDictionary[Path, Shares] = WeakValueDictionary()
"""What this process holds of however many pools that name a lock file, by that file."""


@frozen(repr=False, eq=False)
class BudgetPool(MemoryPolicy):
    """One limit for the gradients of several threads: ``policy=pool`` in each of them; with ``path``, a lock file on
    this machine, for the threads of all processes that name it.

    A loop function takes a share when its first step has run: what save-all needs where that is no more than half of
    what is free, else half of what is free, but no less than the least that :class:`Budget` can do with; it runs under
    :class:`SaveAll` or ``Budget`` of its share. Where less than that is free it waits, at most ``timeout`` seconds
    (None: for ever), and raises :class:`BudgetError` that says who holds what. The share is given back when the loop
    has been reversed, when the pull is closed or dropped, and after an error. A gradient that holds a share takes
    more only if there is, and else plans within what it holds; where that is too little it waits while another thread
    that does not wait holds some, so threads never wait for each other. The peaks of all gradients under way never
    sum up to more than ``max_bytes``, as far as each keeps its ``Budget``.

    A control group (a container, a job) that has less memory than ``max_bytes`` is the limit in its place. Processes
    that name different numbers share the least. What a process held that was killed is free again at the next look, 20
    times a second. A pool with ``path`` may be pickled, so each worker is sent one; without, it is that of the threads
    of one process (:class:`TravelError`).

    Marked steps and plain code take half of what is free when they begin, and keep to it as ``policy="auto"`` does.

    Parameters
    ----------
    max_bytes
        The limit, as :class:`Budget` takes it.
    path
        A lock file of this machine, by which processes share the limit; None: the threads of this process.
    timeout
        Seconds that a gradient waits for its share; None: for ever.
    most
        What one gradient may take; None: everything.
    shares
        Left alone by users: the books of a pool that is made again.

    Raises
    ------
    PolicyError
        Where ``max_bytes`` or ``most`` is no number of bytes, or ``timeout`` is negative.

    Example
    -------
    >>> pool = BudgetPool("2 GB")
    >>> pool.share("500 MB", timeout=60)
    BudgetPool(2000000000).share(500000000)
    """

    max_bytes: int = field(converter=_as_max_bytes)
    path: Path | None = field(default=None, converter=_as_path)
    timeout: float | None = field(default=None, kw_only=True, converter=_as_timeout)
    most: int | None = field(default=None, kw_only=True, converter=_as_most)
    shares: Shares = field(kw_only=True)
    looks = True
    counts_bytes = True

    @shares.default
    def _shares(self) -> Shares:
        if self.path is None:
            return Shares(self.max_bytes)
        with _JOINING:
            found = _OF_PATH.get(self.path)
            if found is None:
                found = _OF_PATH[self.path] = Shares(self.max_bytes, book=Book(self.path))
            found.max_bytes = min(found.max_bytes, self.max_bytes)
            with found.turn():  # by which the others hear of it
                return found

    def __reduce__(self) -> Any:
        if self.path is None:
            raise TravelError(
                "a BudgetPool without path= is one of the threads of its process; give each process "
                "BudgetPool(max_bytes, path=...) with one lock file of the machine"
            )
        return _pool_again, (self.max_bytes, self.path, self.timeout, self.most)

    @property
    def held_bytes(self) -> int:
        """What has been taken, by all processes that share it."""
        with self.shares.turn() as others:
            return self.shares.held + sum(other.held for other in others)

    def share(self, max_bytes: Any = None, *, timeout: Any = None) -> "BudgetPool":
        """The same pool, for a gradient that takes ``max_bytes`` at most, or waits no longer than ``timeout``."""
        return evolve(
            self,
            most=self.most if max_bytes is None else max_bytes,
            timeout=self.timeout if timeout is None else timeout,
        )

    def common(self, least: Callable[[int], int]) -> MemoryPolicy:  # noqa: ARG002
        """Raises :class:`PolicyError`: who waits for bytes would keep other ranks waiting."""
        raise PolicyError(
            f"{self!r} is shared by threads that wait for each other, and ranks that run one program together cannot "
            "agree on what each gets; give every rank a Budget"
        )

    def decided(self, loop: LoopSizes, ledger: Any) -> tuple[MemoryPolicy, Any]:
        """Save-all or :class:`Budget` of a share, and the share."""
        least, limit = _least(loop), self.max_bytes if self.most is None else min(self.most, self.max_bytes)
        if least > limit:
            Budget(limit, reserved=loop.reserved, start_held=loop.start_held).begin(
                loop.n, state_bytes=loop.state_bytes, tape_bytes=loop.tape_bytes
            )
        wanted = limit if loop.n is None else min(limit, max(least, loop.all_bytes))
        share, total = self.shares.take(Asked(loop.name, least, wanted), ledger, limit, self.timeout)
        fits = loop.n is not None and loop.all_bytes <= total
        policy = SaveAll() if fits else Budget(total)
        note(ledger, Choice(loop.name, policy, f"{total:,} bytes of {self.max_bytes:,} are its share", loop.site))
        return policy, share

    @property
    def unlooked_bytes(self) -> int:
        """What plain code without marks may make before it takes a share."""
        return self.max_bytes // UNLOOKED

    def measuring(self, n: int | None, gauge: Gauge) -> Schedule:
        """Decides as ``policy="auto"`` within half of what is free."""
        if gauge.share is None:
            limit = self.max_bytes if self.most is None else min(self.most, self.max_bytes)
            asked = Asked(gauge.name, min(gauge.held(), limit), limit)
            gauge.share, gauge.limit = self.shares.take(asked, gauge.ledger, limit, self.timeout)
        return Auto(gauge.limit).measuring(n, gauge)

    def schedule(self, n: int | None, *, state_bytes: int | None = None, tape_bytes: int | None = None) -> Schedule:
        """That of a :class:`Budget` of the whole pool."""
        return Budget(self.max_bytes).schedule(n, state_bytes=state_bytes, tape_bytes=tape_bytes)

    def __repr__(self) -> str:
        where = "" if self.path is None else f", path={str(self.path)!r}"
        return f"BudgetPool({self.max_bytes}{where})" + ("" if self.most is None else f".share({self.most})")


def _pool_again(max_bytes: int, path: Path, timeout: float | None, most: int | None) -> BudgetPool:
    return BudgetPool(max_bytes, path, timeout=timeout, most=most)


def _least(loop: LoopSizes) -> int:
    """The bytes that a :class:`Budget` needs for it."""
    try:
        Budget(0, reserved=loop.reserved, start_held=loop.start_held).begin(
            loop.n, state_bytes=loop.state_bytes, tape_bytes=loop.tape_bytes
        )
    except BudgetError as error:
        return error.minimum_bytes
    return 0
