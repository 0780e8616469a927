"""``policy="auto"``: decided within the run, from the sizes of its first steps and the memory that is free."""

import time
from collections.abc import Callable
from functools import partial
from sys import maxsize
from typing import Any, Final, Protocol

from attrs import evolve, field, frozen

from pullback.policies.base import MemoryPolicy
from pullback.policies.binomial import Binomial
from pullback.policies.budget import Budget
from pullback.policies.by_leaves import MANY
from pullback.policies.recompute import Recompute, best_segments
from pullback.policies.run_again import RunAgain
from pullback.policies.save_all import SaveAll
from pullback.scheduling.machine.schedule import Schedule
from pullback.scheduling.machine.tapes_first import TapesFirst
from pullback.words.byte_sizes import available_bytes
from pullback.words.errors import BudgetError, PolicyError

MOST_SLOTS: Final = 1000
"""Snapshots at most: where the length is unknown, the rule looks at each of them now and then."""
TAPES_SHARE: Final = 0.75
"""The part of the room that tapes get where the length is unknown or steps are recorded; snapshots get the rest."""
FEW_SNAPSHOTS: Final = 20
"""Snapshots for which room is kept beside tapes: 10,000 steps take 4.8 n forward steps with them."""
LEAST: Final = Binomial(8)
"""The policy where nothing fits: 3 n forward steps for n = 45, 5 n for n = 1,287."""
AGAIN: Final = 0.1
"""Seconds for which a reading of what is free serves: a reading takes half a millisecond."""


@frozen
class LoopSizes:
    """A loop as a policy sees it that decides within the run."""

    name: str
    n: int | None
    """Its steps; None where that is unknown."""
    state_bytes: int
    tape_bytes: int
    reserved: int
    """Bytes that are held beside snapshots and tapes."""
    start_held: bool
    """Whether the initial state is among these."""
    site: int = -1
    """The call site: two loops may stand on one line."""

    @property
    def all_bytes(self) -> int:
        """What save-all holds at the peak; a loop of unknown length may end after its first step."""
        return self.reserved + (1 if self.n is None else self.n) * self.tape_bytes


class Gauge(Protocol):
    """What recorded steps have held so far."""

    name: str
    site: int
    """The call site of the marks."""
    ledger: Any
    share: Any
    """What a pool has given, to be closed at the end; None at first."""
    limit: int
    """The bytes of that."""
    saves_all: bool
    """Whether all steps will be kept, so that nothing more need be asked; whoever decides sets it."""
    fits: str
    """Why all is kept, as far as it is known; whoever decides sets it."""

    def held(self) -> int:
        """All bytes that are booked now, and what the program saved before."""

    def limit_of(self, nbytes: int) -> int:
        """How many of the bytes that there are to hold all count: others may have fewer."""

    def state_bytes(self, step: int) -> int:
        """Bytes of the saved state before ``step``, without what was made before the first step."""

    def tape_bytes(self, step: int) -> int:
        """Bytes of the tape of ``step``, without what that of the step before holds."""

    def keep(self, nbytes: int) -> None:
        """Give back what a pool has given beyond this."""

    def tell(self, choice: "Choice") -> None:
        """Note the choice for the report."""


@frozen
class Choice:
    """What ``policy="auto"`` or a pool has taken for a loop, and why."""

    loop: str
    policy: MemoryPolicy
    why: str
    site: int = field(default=-1, repr=False)
    """The call of the loop: two may stand on one line."""

    def __str__(self) -> str:
        return f"{self.loop}: {self.policy!r}, since {self.why}"


@frozen(repr=False)
class Auto(MemoryPolicy):
    """Save-all where it fits into half of the memory that is free when the call begins, else :class:`Budget` of that.

    Decided for each loop function when its first step has run. Where the length is unknown, and in marked steps and
    plain code, tapes are kept until three quarters of the room are taken; the steps after that run again.
    ``pull.report.choices`` tells what was taken and why. Raises :class:`PolicyError` where the system does not tell
    what is free.
    """

    max_bytes: int | None = None
    """None: not asked yet."""
    loop: LoopSizes | None = None
    """The loop of unknown length that it was decided for."""
    looks = True
    counts_bytes = True

    def at_call(self) -> MemoryPolicy:
        """The policy with the bytes of this moment."""
        return evolve(self, max_bytes=_free() // 2) if self.max_bytes is None else self

    def common(self, least: Callable[[int], int]) -> MemoryPolicy:
        """The policy with the fewest bytes that a rank has free."""
        return evolve(self, max_bytes=least(self._limit))

    def decided(self, loop: LoopSizes, ledger: Any) -> tuple[MemoryPolicy, Any]:
        """Save-all or :class:`Budget`; itself, for this loop, where the length is unknown."""
        limit, policy = self._limit, _within(loop, self._limit)
        needs = f"its {loop.n} tapes and what else is held take {loop.all_bytes:,} bytes of"
        if type(policy) is SaveAll:
            why = f"{needs} {limit:,}"
        elif type(policy) is Budget:
            why = f"{needs} {limit:,}, too many"
        elif policy is LEAST:
            why = f"not even a snapshot and a tape fit into {limit:,} bytes"
        else:
            why = f"its length is unknown: tapes in {TAPES_SHARE:.0%} of {limit:,} bytes, then snapshots"
            policy = evolve(self, loop=loop)
        note(ledger, Choice(loop.name, policy, why, loop.site))
        return policy, None

    @property
    def unlooked_bytes(self) -> int:
        """What plain code without marks may make before anybody looks at what it holds: half of the room."""
        return self._limit // 2

    @property
    def ample_bytes(self) -> int | None:
        """Half of what was free when the call began."""
        return self.max_bytes

    def kept_unlooked(self, ledger: Any) -> None:
        """Where nothing else was told, all was kept."""
        if not ledger.choices:
            note(ledger, Choice("the program", SaveAll(), f"what it made fits into {self._limit:,} bytes"))

    @property
    def _limit(self) -> int:
        return _free() // 2 if self.max_bytes is None else self.max_bytes

    def reserving(self, nbytes: int, *, start_held: bool = False, digests: int = 0) -> MemoryPolicy:  # noqa: ARG002
        """The policy, told once more what is held."""
        return (
            self if self.loop is None else evolve(self, loop=evolve(self.loop, reserved=nbytes, start_held=start_held))
        )

    def affords(self, nbytes: int, least: int) -> bool:
        """What a :class:`Budget` says of these bytes."""
        return Budget(self._limit).affords(nbytes, least)

    def begin(self, n: int | None, *, state_bytes: int, tape_bytes: int) -> Schedule:
        """Actions for ``n`` steps of these sizes."""
        before = self.loop or LoopSizes("", n, state_bytes, tape_bytes, 0, False)
        loop = evolve(before, n=n, state_bytes=state_bytes, tape_bytes=tape_bytes)
        policy = _within(loop, self._limit)
        if policy is not None:
            return policy.reserving(loop.reserved, start_held=loop.start_held).schedule(
                n, state_bytes=state_bytes, tape_bytes=tape_bytes
            )
        room = self._limit - loop.reserved - 2 * state_bytes - tape_bytes
        kept = _tapes_room(room, state_bytes) // tape_bytes if tape_bytes else None
        if kept == 0:
            least = Budget(self._limit, reserved=loop.reserved, start_held=loop.start_held)
            return least.begin(None, state_bytes=state_bytes, tape_bytes=tape_bytes)
        whole = maxsize if kept is None else kept if kept >= MANY else 0
        first = TapesFirst(None, partial(_rest_of_unknown, loop=loop, kept=kept, room=room))
        return first.schedule(self, n_whole=whole)

    def measuring(self, n: int | None, gauge: Gauge) -> Schedule:
        """Actions for steps whose sizes show as they run."""
        found = _Measured(n, self._limit, gauge)
        return TapesFirst(n, found.rest, found.again).schedule(self)

    def __repr__(self) -> str:
        return '"auto"'


AUTO: Final = Auto()
"""What ``policy="auto"`` stands for."""


def note(ledger: Any, choice: Choice) -> None:
    """Note the choice for the report, once: a loop in a loop begins many times."""
    told = choice.loop, choice.policy, choice.site
    if all((known.loop, known.policy, known.site) != told for known in ledger.choices):
        ledger.choices.append(choice)


def _within(loop: LoopSizes, limit: int) -> MemoryPolicy | None:
    """The policy for a loop of known length; None where the length is unknown and more than a step fits."""
    if loop.n is not None and loop.all_bytes <= limit:
        return SaveAll()
    budget = Budget(limit, reserved=loop.reserved, start_held=loop.start_held)
    try:
        budget.begin(loop.n, state_bytes=loop.state_bytes, tape_bytes=loop.tape_bytes)
    except BudgetError:
        return LEAST
    return None if loop.n is None else Budget(limit)


def _rest_of_unknown(k: int, *, loop: LoopSizes, kept: int | None, room: int) -> Schedule | None:
    """The snapshots that fit beside ``kept`` tapes, as a policy for the steps after these."""
    if kept is None or k < kept:
        return None
    left = room - k * loop.tape_bytes
    return _snapshots(left, loop.state_bytes, 1).begin(None, state_bytes=loop.state_bytes, tape_bytes=loop.tape_bytes)


def _tapes_room(room: int, state_bytes: int) -> int:
    """What tapes may take of a room, so that a number of snapshots fits beside them."""
    return max(0, min(int(TAPES_SHARE * room), room - FEW_SNAPSHOTS * state_bytes))


def _snapshots(room: int, state_bytes: int, least: int) -> Binomial:
    slots = room // state_bytes if state_bytes else MOST_SLOTS
    return Binomial(min(max(slots, least), MOST_SLOTS))


class _Measured:
    """Recorded steps: how long their tapes are kept, and what serves the others."""

    def __init__(self, n: int | None, limit: int, gauge: Gauge) -> None:
        self.n, self.limit, self.gauge = n, limit, gauge
        self.state_bytes = self.held = 0
        gauge.fits = "it has one or two steps"

    def rest(self, k: int) -> Schedule | None:
        """None while there is room for another tape."""
        gauge, n = self.gauge, self.n
        if gauge.saves_all:
            return None
        if k == 1:
            self.limit = gauge.limit_of(self.limit)
        held = gauge.held()
        grown, self.held = held - self.held, held
        if k == 2:
            self.state_bytes = gauge.state_bytes(1)
            grown -= self.state_bytes
        tape_bytes = gauge.tape_bytes(k - 1)
        if k > 1:  # with what loops in the step have kept
            tape_bytes = max(tape_bytes, grown)
        if k < 2 and n != k + 1:
            return None
        gauge.fits = f"{k if n is None else n} tapes of about {tape_bytes:,} bytes fit into {self.limit:,}"
        if n is not None and held + (n - k) * tape_bytes <= self.limit:
            gauge.saves_all = True
            gauge.keep(held + (n - k) * tape_bytes)
        elif held + tape_bytes > _tapes_room(self.limit, self.state_bytes):
            return self._later(k, held, tape_bytes)
        return None

    def again(self) -> bool:
        """Whether a single step, such as the inside of a ``checkpoint``, is too large to be kept."""
        held = self.gauge.held()
        if self.gauge.saves_all or held <= self.limit:
            return False
        why = f"with its tape {held:,} bytes would be held, of {self.limit:,}"
        self.gauge.tell(Choice(self.gauge.name, RunAgain(), why, self.gauge.site))
        return True

    def _later(self, k: int, held: int, tape_bytes: int) -> Schedule:
        room, state = max(0, self.limit - held - tape_bytes), self.state_bytes
        left = None if self.n is None else self.n - k
        policy: MemoryPolicy = _snapshots(room, state, LEAST.snapshots)
        if left is not None:
            segments = best_segments(left, state, tape_bytes)
            if (segments - 1) * state + -(-left // segments) * tape_bytes <= room:
                policy = Recompute()
        why = f"{k} tapes of about {tape_bytes:,} bytes have taken {held:,} of {self.limit:,}"
        self.gauge.tell(Choice(f"{self.gauge.name}, from step {k} on", policy, why, self.gauge.site))
        return policy.schedule(left, state_bytes=state, tape_bytes=tape_bytes)


_READ: list[tuple[float, int]] = []
"""The last reading: when, and what was free."""


def _free() -> int:
    now = time.monotonic()
    if _READ and now - _READ[0][0] < AGAIN:
        return _READ[0][1]
    free = available_bytes()
    if free is None:
        raise PolicyError(
            'policy="auto": nothing here tells how much memory is free; pass a policy with a number of bytes, such as '
            'pullback.Budget("2 GB")'
        )
    _READ[:] = [(now, free)]
    return free
