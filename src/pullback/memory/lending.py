"""Loops one after the other under one number of bytes: an earlier loop gives up what it holds where a later one needs
the bytes more.

The reverse pass comes to the later loop first, and when it comes to the earlier one all bytes are free again. So giving
up a tape costs one forward step, and giving up a snapshot the steps between it and the one before.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from attrs import define, field

from pullback.choosing.agreement import agreed
from pullback.memory.executor import carry_out
from pullback.memory.ledger import Item, record_items, value_items
from pullback.memory.working_bytes import Variables, books_of
from pullback.scheduling.machine.actions import MEMORY, Delete, Save
from pullback.scheduling.optimal.unified import forward_steps
from pullback.words.errors import BudgetError

PARTS: Final = 8
"""The number of parts in which tapes are given up."""

SPARE: Final = 4_096
"""Bytes that the minimum in an error has to spare: a run with more bytes does not hold quite the same."""


def ends_of_parts(first: int, n: int) -> list[int]:
    """The steps at which what is left may begin, where the tapes from ``first`` on are held. What lies in one array is
    let go of together."""
    return sorted({first - (first - n) * k // PARTS for k in range(PARTS + 1)})


class Level(NamedTuple):
    """What may be left of what a loop holds."""

    nbytes: int
    n_forward: int
    """The steps that its reverse pass will run."""
    first: int
    """The first step whose tape is held."""
    n_snapshots: int


@define(eq=False)
class Lender:
    """A loop of known length whose forward pass is over and whose reverse has not begun. ``run`` has its schedule and
    its machine."""

    run: Any
    chain: Any
    sizes: dict[str, int]
    told: Callable[[], object] = bool
    """A function that is called when something has been let go of."""
    tape: Any = None
    """The tape of the program which the loop stands in."""
    variables: Variables | None = None
    """What variables of the program had when it began."""
    place: int = 0
    """The first record after it."""
    shares: Any = None
    """What loops in its steps get of its bytes, where there are such."""
    stacked: int = 0  # the bytes of the outputs of its steps, a part of its result
    reserved_first: int = field(init=False)
    """What its schedule left free when its forward pass was over."""
    waiting: int = field(default=0, init=False)
    """What cotangents of these take at most while it is reversed."""
    snapshots: list[int] = field(init=False)
    level: int = field(default=0, init=False)
    levels: list[Level] = field(init=False)
    """The first is what it holds now."""
    splits: Any = field(init=False)
    own: int = field(init=False)
    """What it holds, as booked."""
    outside: int = field(init=False)
    """What was booked besides when its forward pass was over."""
    start_held: bool = field(init=False)
    """Whether what its first snapshot takes is left free."""
    told_at_end: bool = False
    """Whether it is not known before the trace has ended what its reverse pass takes."""
    agreed: int | None = field(default=None, init=False)
    """What its reverse pass leaves free on each rank, where they agree on that."""

    def __attrs_post_init__(self) -> None:
        policy = self.run.schedule.policy
        self.start_held = policy.start_held
        self._find_levels(policy)
        self.own, self.reserved_first = self.chain.store.ledger.total - policy.begun, int(policy.reserved)
        self.outside = self._outside() - self.own

    def _find_levels(self, policy: Any) -> None:
        """What may be left of what is held now, under a policy that leaves free what others hold."""
        machine = self.run.machine
        stored = machine.stored.get(MEMORY, set())
        self.snapshots = sorted(step for kind, step in stored if kind == "state")
        n, first = machine.n, 0
        if machine.whole:
            self.snapshots = [0]
        else:
            newest = n if machine.tape is None else machine.tape
            first = min((step for kind, step in stored if kind == "tape"), default=newest)
        self.splits = policy.splits(n, **self.sizes)
        tapes = ends_of_parts(first, n)
        count = len(self.snapshots)
        most = max(1, len(self.splits.leaves) - 1)  # of a loop of unknown length there may be more
        wanted = [(tapes[0], count), *((stop, min(count, most)) for stop in tapes[1:])]
        while count > 1:
            count = min(count // 2, most)
            wanted.append((n, count))
        if not self.splits.feasible:  # later steps were larger by a little than there is room for
            wanted = wanted[:1]
        self.level, self.levels = 0, []
        for stop, count in wanted:
            nbytes = (n - stop) * self.sizes["tape_bytes"] + count * self.sizes["state_bytes"]
            if not self.levels or nbytes < self.levels[-1].nbytes:
                self.levels.append(Level(nbytes, self._steps(stop, min(count, most)), stop, count))

    def _steps(self, stop: int, count: int) -> int:
        """What is run where ``count`` snapshots and the tapes from ``stop`` on are left."""
        if not self.splits.feasible:
            return int(self.run.machine.n)
        ends = [*self.snapshots[1:count], stop]
        gaps = [max(0, end - start) for start, end in zip(self.snapshots[:count], ends, strict=True)]
        return sum(forward_steps(self.splits, gap, held) for held, gap in enumerate(gaps) if gap)

    @property
    def now(self) -> Level:
        """What it holds."""
        return self.levels[self.level]

    def give(self, level: int) -> None:
        """Let go of what is not held at this level."""
        machine, before, after = self.run.machine, self.now, self.levels[level]
        actions: list[Any] = []
        for step in range(before.first, after.first):
            if step == machine.tape:
                actions.append(Save("tape", step))
            actions.append(Delete("tape", step))
        actions += [Delete("state", step) for step in self.snapshots[after.n_snapshots : before.n_snapshots]]
        ledger = self.chain.store.ledger
        booked = ledger.total
        for action in actions:
            carry_out(action, machine, self.chain)
        policy, left = self.run.schedule.policy, self.snapshots[: after.n_snapshots]
        self.run.schedule = policy.rest(machine.n, after.first, left, self.splits, in_work=machine.tape is not None)
        self.level = level
        self.told()
        self.own -= booked - ledger.total
        ledger.lent_bytes += booked - ledger.total

    def _outside(self) -> int:
        """What is booked besides, when the reverse pass comes to it."""
        lenders, ledger = self.chain.store.ledger.lenders, self.chain.store.ledger
        mine = lenders.index(self) if self in lenders else len(lenders)
        held = ledger.total - sum(lender.own for lender in lenders[mine:])
        if self.tape is not None and self.tape.repeatable:  # what records hold stays for the next reverse pass
            active = getattr(getattr(self.tape, "governor", None), "active", None)  # what is under way is no part of it
            records = self.tape.records if active is None else self.tape.records[: active.cuts[0]]
            left = {} if self.variables is None else self.variables.left(records_stay=True)  # left free already
            held += sum(n for key, n, _ in record_items(records) if key not in ledger.held and key not in left)
        return int(held)

    @property
    def reserved(self) -> int:
        """What its reverse pass has to leave free: with what later loops hold until the last reverse pass."""
        if self.agreed is not None:
            return self.agreed
        more = self._outside() - self.outside
        if self.tape is not None and self.tape.repeatable:
            more = beyond_result(more, self.sizes["state_bytes"] + self.stacked)
        return self.reserved_first + more + self._waiting_beside()

    def _waiting_beside(self) -> int:
        """What waiting cotangents take beyond what is left free: that of a variable which nobody else holds takes the
        place of its value, which is needed no more."""
        if not self.waiting or self.variables is None:
            return 0
        stays = self.tape is not None and self.tape.repeatable
        gone = sum(n for _, n, _ in self.variables.buffers) - sum(self.variables.left(stays).values())
        return max(0, self.waiting - gone)

    @property
    def takes(self) -> int:
        """What its reverse pass takes at least beyond what it holds, and beside what it needs while it runs: the tape
        of a step, where it gives up all that it can."""
        sizes, policy, n = self.least_sizes, self.run.schedule.policy.reserving(0), self.run.machine.n
        return int(max(policy.least(n, **sizes), self.levels[-1].nbytes + sizes["tape_bytes"]) - self.own)

    @property
    def least(self) -> int:
        """The bytes that its reverse pass can do with."""
        policy = self.run.schedule.policy.reserving(self.reserved, start_held=self.start_held)
        return int(policy.least(self.run.machine.n, **self.least_sizes))

    @property
    def least_sizes(self) -> dict[str, int]:
        """The sizes where loops in its steps get the least."""
        return self.sizes if self.shares is None else dict(self.shares.least(self.sizes))

    def takes_all(self, nbytes: int) -> None:
        """The trace has ended: it is known what its reverse pass takes at least, with all that is held besides and all
        cotangents."""
        policy, self.start_held = self.run.schedule.policy, True  # ``nbytes`` are with what the first snapshot takes
        least = policy.reserving(0, start_held=True).least(self.run.machine.n, **self.sizes)
        self.outside, self.variables, self.waiting = self._outside(), None, 0
        self.reserved_first = nbytes - int(least)
        if nbytes <= policy.max_bytes:
            self._find_levels(policy.reserving(self.reserved_first, start_held=True))

    def foresees(self) -> None:
        """The reverse pass begins: records after it tell which cotangents will wait, and it gives way to them now."""
        self.counts_waiting()
        if self._waiting_beside():
            self.returns()

    def counts_waiting(self) -> None:
        """The trace has ended: what cotangents will take that wait while it is reversed."""
        if self.variables is not None:
            governor = getattr(self.tape, "governor", None)
            more = () if governor is None else governor.sent_from(self.place)
            self.waiting = self.variables.waiting(self.tape.records[self.place :], more)

    def agrees(self, agreement: Any, told: str) -> None:
        """The reverse pass comes to a loop whose schedule is the same on all ranks: each gives up what one of them has
        given up, and leaves free what is held most. It lends on all of them, or on none."""
        level, self.agreed = agreed(agreement, told, (self.level, self.reserved))
        if level > self.level:
            self.give(level)

    def returns(self) -> None:
        """The reverse pass comes to it: what others hold by now is left free, and what it holds gives way to that."""
        before, machine, reserved = self.run.schedule.policy, self.run.machine, self.reserved
        if reserved == before.reserved and self.start_held == before.start_held:
            return
        policy = before.reserving(reserved, start_held=self.start_held)
        if self.shares is not None and policy.max_bytes < policy.least(machine.n, **self.sizes):
            self.give(max(self.level, next(k for k, level in enumerate(self.levels) if level.first == machine.n)))
            self.sizes = self.shares.anew(machine.n, self.sizes, policy.room)
        splits = policy.splits(machine.n, **self.sizes)
        most = max(1, len(splits.leaves) - 1)
        while reserved > before.reserved and not self._fits(policy, most) and gives(self):
            self.give(self.level + 1)
        now = self.now
        if policy.max_bytes < policy.least(machine.n, **self.sizes) or now.n_snapshots > most or not splits.feasible:
            return
        self.run.schedule = policy.rest(
            machine.n, now.first, self.snapshots[: now.n_snapshots], splits, in_work=machine.tape is not None
        )

    def _fits(self, policy: Any, most: int) -> bool:
        """Whether what it holds does."""
        now = self.now
        start = policy.start_held and now.n_snapshots > 0
        return bool(now.nbytes - start * self.sizes["state_bytes"] <= policy.room and now.n_snapshots <= most)


def beyond_result(more: int, state_bytes: int) -> int:
    """How much of what is held ``more`` than when a loop was planned goes beyond its result, for which room is left,
    since others may hold it."""
    return max(min(0, more), more - state_bytes)


def held_now(ledger: Any, tape: Any) -> int:
    """What is booked, and what the records of a tape hold."""
    return int(ledger.total + sum(ledger.plain_bytes(() if tape is None else tape.records).values()))


def cotangent_items(cts: Iterable[Any], records: Iterable[Any], others: Iterable[Any] = ()) -> list[Item]:
    """The cotangents in lists of them, for booking: without what records hold, and without ``others``."""
    items = value_items(_arrays(cts), "cotangent")
    if not items:
        return []
    known = {key for key, _, _ in (*record_items(records), *value_items(_arrays(others), "cotangent"))}
    return [item for item in items if item[0] not in known]


def _arrays(cts: Iterable[Any]) -> Iterator[Any]:
    """The cotangents in lists of them; those of an operation with several outputs are one list. One number that stands
    for all of an array, as a sum sends it, takes nothing."""
    for each in cts:
        if type(each) in (list, tuple):
            yield from _arrays(each)
        elif any(getattr(each, "strides", ())):
            yield each


def gives(lender: Lender) -> bool:
    """Whether it can do with fewer bytes than it holds."""
    return lender.level < len(lender.levels) - 1


def per_byte(lender: Lender) -> float:
    """What the next bytes that it gives up cost, each: a step as much as its tape takes."""
    now, after = lender.levels[lender.level : lender.level + 2]
    return (after.n_forward - now.n_forward) * lender.sizes["tape_bytes"] / (now.nbytes - after.nbytes)


def borrowed(
    ledger: Any, policy: Any, besides: int, n: int | None, sizes: dict[str, int], *, start_held: bool,
    refuses: bool = True,
) -> int:  # fmt: skip
    """The bytes that earlier loops have given up so that together with one of ``n`` steps, under ``policy`` and with
    ``besides`` bytes taken, they run the fewest forward steps; all that they can where the loop does not fit."""
    freed = 0
    while levels := _asked(ledger.lenders, partial(policy.reserving, start_held=start_held), besides - freed, n, sizes):
        pairs = zip(ledger.lenders, levels, strict=True)
        freed += sum(_freed_by(lender, level) for lender, level in pairs if level > lender.level)
    least = max((lender.least for lender in ledger.lenders if not lender.told_at_end), default=0)
    if refuses and least > policy.max_bytes and not ledger.choices:  # what was decided within the run does not refuse
        least = (
            SPARE
            + sum(lender.sizes["state_bytes"] for lender in ledger.lenders)
            + max(least, policy.reserving(besides - freed, start_held=start_held).least(n, **sizes))
        )
        raise BudgetError(
            f"{policy!r} is too little for loops that follow one another: what the later ones begin with is held until "
            f"the earlier ones are reversed. Allow at least {least:,} bytes.",
            least,
        )
    return freed


def make_room(ledger: Any, limit: int, records: Sequence[Any], made: int, books: int = 0) -> float:
    """What step 0 of a loop may make, whose arrays may take ``made`` bytes so far: where that is more than is free,
    beside the ``books`` of code under way, earlier loops give up what costs the fewest steps."""
    while True:
        free = int(limit - ledger.total - sum(ledger.plain_bytes(records).values()) - books_of(records, books))
        if made <= free:
            return free
        lender = cheapest(ledger.lenders)
        if lender is None:
            return float("inf")
        lender.give(lender.level + 1)


def room_beside(ledger: Any, limit: int, records: Sequence[Any], others: int, made: int) -> float:
    """The same where variables of the program have ``others`` besides."""
    return make_room(ledger, limit, records, made + others) - others


def cheapest(lenders: Iterable[Lender]) -> Lender | None:
    """The loop that gives up bytes at the fewest steps each; None where none can."""
    return min(filter(gives, lenders), key=per_byte, default=None)


def foresee_waiting(ledger: Any, room: int) -> int:
    """The bytes that the reverse passes of all loops can do with, as the trace has ended: cotangents that wait are
    known now, and the loops before one give up what they can where it needs more than the ``room`` there is."""
    for lender in ledger.lenders:
        lender.counts_waiting()
    for k, lender in enumerate(ledger.lenders):
        while lender.least > room and (earlier := cheapest(ledger.lenders[:k])) is not None:
            earlier.give(earlier.level + 1)
    return max((lender.least for lender in ledger.lenders), default=0)


def give_all(ledger: Any) -> int:
    """The bytes that earlier loops have given up, all that they can."""
    return sum(_freed_by(lender, len(lender.levels) - 1) for lender in ledger.lenders if gives(lender))


def _freed_by(lender: Lender, level: int) -> int:
    """The bytes that are free when a loop has let go of what is not held at this level: what variables of the program
    have of it stays."""
    before = _there(lender)
    lender.give(level)
    return before - _there(lender)


def _there(lender: Lender) -> int:
    governor, total = getattr(lender.tape, "governor", None), int(lender.chain.store.ledger.total)
    return total if governor is None else total + int(governor.bytes_beside((), len(lender.tape.records)))


def _asked(lenders: list[Lender], reserving: Any, besides: int, n: int | None, sizes: dict[str, int]) -> list[int]:
    """The levels to which they go; none where all stays as it is."""
    levels = [lender.level for lender in lenders]
    freed = cost = 0
    best: tuple[float, list[int]] | None = None
    while True:
        own = reserving(besides - freed).n_forward(n, **sizes)
        if own is not None and (best is None or cost + own < best[0]):
            best = cost + own, list(levels)
        if own is not None and own == n:
            break
        steps = [
            ((after.n_forward - now.n_forward) / (now.nbytes - after.nbytes), k)
            for k, (lender, level) in enumerate(zip(lenders, levels, strict=True))
            for now, after in [lender.levels[level : level + 2]] * (level + 1 < len(lender.levels))
        ]
        if not steps:
            break
        k = min(steps)[1]
        now, after = lenders[k].levels[levels[k] : levels[k] + 2]
        freed, cost = freed + now.nbytes - after.nbytes, cost + after.n_forward - now.n_forward
        levels[k] += 1
    found = levels if best is None else best[1]
    return [] if found == [lender.level for lender in lenders] else found
