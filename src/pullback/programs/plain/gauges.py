"""How much recorded steps have held so far: for policies that decide while the steps run."""

from collections.abc import Hashable, Mapping
from contextlib import suppress
from math import inf
from typing import Any

from attrs import define, field

from pullback.choosing.agreement import agreed
from pullback.memory.executor import carry_out
from pullback.memory.ledger import Ledger, record_items, value_items
from pullback.memory.working_bytes import RECORD_BYTES, books_of
from pullback.programs.plain.first_steps import OWN_BYTES, WATCHED_BYTES, agrees, tape_bytes, told_of
from pullback.programs.replay.step_recipes import BOOK_BYTES
from pullback.recording.tape import Tape
from pullback.words.call_sites import site_here, site_text
from pullback.words.errors import BudgetError

LOOKS = 16
"""The most often that a chain is asked to give way before nothing is left to be let go of."""


@define(eq=False)
class Gauge:
    """The :class:`pullback.choosing.auto.Gauge` of one chain of steps of plain code."""

    name: str
    site: int
    ledger: Ledger
    before: int
    """Bytes that the program saved before the chain."""
    counted: bool
    """Whether the ledger counted before: now it does, for the bytes are needed."""
    chain: Any = None
    share: Any = None
    """What a pool has given; None where it is no pool."""
    limit: int = 0
    saves_all: bool = False
    fits: str = ""
    """Why all is kept, as far as it is known."""
    told: bool = field(default=False, init=False)

    def held(self) -> int:
        """All bytes that are booked now, and what the program saved before."""
        return self._of_all(self.held_here)

    @property
    def held_here(self) -> int:
        """The bytes that are held now, of this rank alone."""
        return self.ledger.total + self.before

    def limit_of(self, nbytes: int) -> int:
        """The bytes that there are to hold all, on the rank that has fewest."""
        return -self._of_all(-nbytes)

    def _of_all(self, nbytes: int) -> int:
        """What is largest over all ranks, where they run the steps together. Raises :class:`PolicyError` for those of a
        pool."""
        if not agrees(self.chain):
            return nbytes
        self.chain.agreed = True
        if self.share is not None:
            self.chain.policy.common(int)
        return agreed(self.chain.tape.agreement, told_of(self.chain), (nbytes,))[0]

    def state_bytes(self, step: int) -> int:
        """Bytes of the saved state before ``step``, without what was made before the first step."""
        first, values = self.chain.cuts[0], self.chain.store.found("state", step).values
        own = [values[i] for i in values if i >= first]
        return self._of_all(sum(nbytes for _, nbytes, _ in value_items(own, "snapshot")))

    def tape_bytes(self, step: int) -> int:
        """Bytes of the tape of ``step``, without what that of the step before holds."""
        items = self.chain.work_items
        before = {key for key, _, _ in items.get(step - 1, ())}
        return self._of_all(sum(nbytes for key, nbytes, _ in items[step] if key not in before))

    def tell(self, choice: Any) -> None:
        """Note the choice for the report, once: another reverse pass decides in the same way."""
        if not self.told:
            self.told = True
            told = choice.loop, choice.policy, choice.site
            if all((known.loop, known.policy, known.site) != told for known in self.ledger.choices):
                self.ledger.choices.append(choice)

    def keep(self, nbytes: int) -> None:
        """Give back what a pool has given beyond this."""
        if self.share is not None:
            self.share.keep(nbytes)

    def ended(self) -> None:
        """The chain has ended, and all was kept where nothing else was told."""
        if self.fits:
            from pullback.choosing.auto import Choice  # noqa: PLC0415 - for those who use it
            from pullback.policies.save_all import SaveAll  # noqa: PLC0415 - as the above

            self.tell(Choice(self.name, SaveAll(), self.fits, self.site))


def gauge_of(policy: Any, name: str, ledger: Ledger, tape: Tape) -> Gauge | None:
    """The gauge of a chain that begins now; None for a policy that asks for none."""
    if not policy.looks:
        return None
    site = site_here()
    gauge = Gauge(
        f"{name} at {site_text(site)}", site, ledger, sum(ledger.plain_bytes(tape.records).values()), ledger.counted
    )
    ledger.counted = True
    return gauge


@define(eq=False)
class LaterSteps:
    """What steps take that run after the schedule of their ``chain`` is known: where more is there than was reserved,
    and it is more than is free, loops before the chain and the chain itself give up what they can."""

    chain: Any
    cutter: Any
    outside: Mapping[Hashable, int]
    """What records from before the chain hold."""
    reserved: int
    """What a step may make, for which the schedule leaves room."""
    gave: bool = field(default=False, init=False)
    """Whether it has given up something in the step under way."""

    def begin(self) -> None:
        """A step begins."""
        self.gave, self.cutter.most = False, self.cutter.made + self.reserved

    def look(self) -> None:
        """More is there than was reserved."""
        from pullback.memory.lending import cheapest  # noqa: PLC0415 - for who passes a number of bytes

        chain, cutter, ledger = self.chain, self.cutter, self.chain.ledger
        if chain.ended:
            cutter.most = inf
            return
        governor, records = chain.tape.governor, chain.tape.records[chain.cuts[-1] :]
        alive, held = cutter.alive(chain.tape.n_inputs), {key: nbytes for key, nbytes, _ in record_items(records)}
        there = {**self.outside, **alive, **chain.snapshots.filled, **held}
        taken = sum(nbytes for key, nbytes in there.items() if key not in ledger.held)
        books = OWN_BYTES * len(records) + WATCHED_BYTES * len(cutter.watched) + chain.recipes.nbytes
        taken += books_of(chain.tape.records[: chain.cuts[0]], books)
        largest = max(alive.values(), default=0)
        while (free := chain.policy.room - ledger.total - taken) < largest and (lender := cheapest(ledger.lenders)):
            lender.give(lender.level + 1)
        asked, limit = 0, chain.policy.room
        while free < largest and asked <= limit:  # what it reserves is less than is there
            asked += max(largest - free, *chain.sizes.values(), limit // LOOKS)
            self._gives_way(asked)
            free = limit - ledger.total - taken
        if free < 0:
            governor.floor = max(governor.floor, taken + ledger.total)
        cutter.most = cutter.made + max(0, free - largest)

    def _gives_way(self, nbytes: int) -> None:
        """The chain lets go of tapes of earlier steps."""
        chain, self.gave = self.chain, True
        with suppress(BudgetError):  # told when the step is over, and its sizes are known
            for action in _larger(chain, chain.freed - nbytes, now=True):
                carry_out(action, chain.machine, chain)


def look_again(chain: Any, step: int) -> None:
    """Tell the schedule where ``step``, which has just ended, is larger than all before it."""
    if step >= chain.books[1]:
        _leave_to_books(chain, step)
    pattern, governor = id(chain.recipes.patterns[step]), chain.tape.governor
    if governor.unmarked is chain and chain.working is not None and governor.cutter is not None:
        _begin_step(chain, governor.cutter)
    if pattern in chain.seen or step <= chain.drawn_at:
        return
    if governor.unmarked is not chain and (agrees(chain) or not chain.policy.counts_states):
        return
    chain.seen.add(pattern)
    found, cuts = dict(chain.sizes), chain.cuts
    records = chain.tape.records[cuts[step] : cuts[step + 1]]
    tape = tape_bytes(records, chain.known)
    read = chain.snapshots.filling.get(step)
    values = [] if read is None else [value for ident, value in read.values.items() if ident >= cuts[0]]
    state = sum(nbytes for _, nbytes, _ in value_items(values, "snapshot"))
    found["tape_bytes"] = max(found["tape_bytes"], tape + RECORD_BYTES * len(records) * chain.policy.counts_bytes)
    found["state_bytes"] = max(found["state_bytes"], state)
    if found != chain.sizes:
        chain.sizes = found
        _tell_larger(chain)


def _begin_step(chain: Any, cutter: Any) -> None:
    """Another step begins of code that is cut by itself: it is looked at where it makes more than was reserved."""
    later = cutter.later
    if later is None or later.chain is not chain:
        outside = {key: nbytes for key, nbytes, _ in record_items(chain.tape.records[: chain.cuts[0]])}
        cutter.later = later = LaterSteps(chain, cutter, outside, chain.working - 2 * chain.sizes["state_bytes"])
    elif later.gave:  # for a step as large as those before it there may be room again
        _tell_larger(chain)
    later.begin()


def _leave_to_books(chain: Any, step: int) -> None:
    """Where nobody knows how many steps there will be, the schedule is told what the books of those so far take, as far
    as it can do with the rest; and again after an eighth more."""
    told, policy = chain.books[0], getattr(chain.schedule, "policy", None)
    chain.books = told, step * 9 // 8
    if chain.n is not None or policy is None or policy.room is None:
        return
    least = policy.least(None, **chain.sizes) + told
    books = min((chain.recipes.nbytes + BOOK_BYTES * step * 2 // 3) * 9 // 8, policy.max_bytes - least)
    if books > told:
        chain.books, chain.freed = (books, chain.books[1]), chain.freed + told - books
        _tell_larger(chain)


def _larger(chain: Any, freed: int, **how: bool) -> Any:
    """Tell the schedule the sizes of the chain, where ``freed`` bytes are there beside those that it had. Code that is
    cut by itself is refused when the trace has ended, and what it takes is known: until then it holds the least."""
    if chain.recipes.told_at_end:
        policy = chain.schedule.policy
        freed = max(freed, policy.least(None, **chain.sizes) - policy.max_bytes)
    return chain.schedule.larger(freed=freed, **how, **chain.sizes)


def _tell_larger(chain: Any) -> None:
    """Tell the schedule the sizes of the chain; where there is too little room, loops before it give up all they
    can."""
    try:
        try:
            chain.schedule.larger(freed=chain.freed, **chain.sizes)
        except BudgetError:
            before, chain.freed, chain.books = chain.freed, chain.freed + chain.books[0], (0, chain.books[1])
            if chain.ledger.lenders:
                from pullback.memory.lending import give_all  # noqa: PLC0415 - for those who have several loops

                chain.freed += give_all(chain.ledger)
            if chain.freed == before and not chain.recipes.told_at_end:
                raise
            _larger(chain, chain.freed)
    except Exception:
        chain.ended = True
        raise
