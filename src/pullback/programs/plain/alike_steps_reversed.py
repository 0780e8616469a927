"""The reverse pass of steps that do the same: states go from step to step, and cotangents, as tuples of what the
generated functions take, past the environment of a replay and the cotangents of the sweep.

What is asked of a step by itself (``staging.replay.staged_patterns``) is asked once of steps of one kind in a row.
Where one is of another kind, everything is put back in its place, and the chain carries the action out as it does
without.
"""

from typing import Any

from attrs import define, field

from pullback.memory.ledger import Item
from pullback.memory.reverse_sweep import Sweep
from pullback.memory.store import ByReference
from pullback.programs.plain.plain_snapshots import PlainSnapshot
from pullback.programs.replay.replayer import Replayer
from pullback.scheduling.machine.actions import MEMORY
from pullback.staging.replay.alike_steps import Alike, Handed


@define(eq=False)
class AlikeSteps:
    """A :class:`~pullback.programs.plain.plain_chain.PlainChain` in its reverse pass."""

    chain: Any
    one: Sweep
    states: dict[int, tuple[Alike, tuple[Any, ...]]] = field(factory=dict)
    """What snapshots hold, as the functions take it, by step."""
    alike: Alike | None = None
    """The steps among which ``at`` is; None while the chain goes on by itself."""
    state: tuple[Any, ...] = ()
    """What enters ``at``."""
    at: int = 0
    handed: Handed | None = None
    """The cotangents that the step before has to take, while the sweep does not have them."""

    @property
    def goes_on(self) -> Any:
        """As of the chain."""
        return self.chain.goes_on

    def load(self, kind: str, step: int, tier: str) -> None:
        """Go on from a snapshot."""
        found = self.states.get(step)
        if found is None and kind == "state" and tier == MEMORY:
            found = self._found(step)
        if found is None or kind != "state":
            self.alike = None
            self._hand_back()
            self.chain.load(kind, step, tier)
            return
        self.alike, self.state = self.states[step] = found
        self.at = step
        self.chain.snapshots.stands(step, self.chain.store.get("state", step, MEMORY).values, MEMORY)

    def _found(self, step: int) -> tuple[Alike, tuple[Any, ...]] | None:
        """The steps that a snapshot stands among, and what it holds, where functions are for it."""
        chain = self.chain
        if not isinstance(chain.store.tier(MEMORY), ByReference):
            return None
        values = chain.store.get("state", step, MEMORY).values
        found: tuple[Alike, tuple[Any, ...]] | None = chain.staged.alike(step, values)
        return found

    def _enter(self, step: int) -> None:
        """The chain has reached a step: it may be one of many."""
        found = self.chain.staged.alike(step, self.chain.replayer.env)
        if found is not None:
            self.alike, self.state = found
            self.at = step

    def advance(self, start: int, stop: int) -> int:
        """Compute states alone."""
        at, chain = start, self.chain
        chain.snapshots.runs(stop, chain)
        while at < stop:
            alike = self.alike
            if alike is not None:
                self.at, self.state = alike.advance(at, min(stop, alike.last), self.state)
                chain.ledger.ran(chain, at, self.at)
                at = self.at
                if at == stop and alike.closes is not False:
                    return stop
                self._put_back()
            if at < stop:
                before, at = at, min(stop, chain.staged.row_of(at)[1])
                chain.advance(before, at)
            self._enter(at)
        return stop

    def record_and_reverse(self, step: int) -> None:
        """Execute a step, and take the cotangents back through it."""
        alike, chain, ledger = self.alike, self.chain, self.chain.ledger
        chain.snapshots.runs(step, chain)
        slots = None if alike is None or not self._repeats(step) else alike.slots(step, self.state)
        if alike is None or slots is None:
            self._put_back()
            self._hand_back()
            chain.record(step)
            chain.reverse(step)
            return
        ledger.ran(chain, step, step + 1)
        if chain.entered:
            chain.entered.pop(step + 1, None)
        items: list[Item] = []
        if ledger.books:
            items, ledger.step = alike.items(slots), step
            ledger.hold(items)
        handed, self.handed = self.handed, None
        if handed is not None and handed.alike is not alike:
            handed.back(self.one)
            handed = None
        handed = handed or alike.seeded(step, self.one, chain.staged.seeds_of)
        if handed is None:
            chain.staged.slots[step], chain.work_items[step], chain.work = (alike.stage, slots), items, step
            self._put_back()
            chain.reverse(step)
            return
        self.handed = alike.reverse(step, slots, handed, self.one)
        ledger.reversed_one(items)

    def _repeats(self, step: int) -> bool:
        """Whether it need not be compared what enters a step."""
        chain = self.chain
        return not step or not chain.verifies or chain.staged.repeats_surely(step - 1)

    def record(self, step: int) -> None:
        """As the chain does."""
        self._put_back()
        self.chain.record(step)

    def reverse(self, step: int) -> None:
        """As the chain does."""
        self._hand_back()
        self.chain.reverse(step)

    def save(self, kind: str, step: int, tier: str) -> None:
        """Keep the values that later steps read."""
        alike, chain = self.alike, self.chain
        if alike is None or kind != "state" or tier != MEMORY or not alike.first <= step < alike.stop:
            self._put_back()
            chain.save(kind, step, tier)
            return
        snapshot = PlainSnapshot(chain.cuts[step], alike.values(step, self.state))
        if chain.ledger.books:
            snapshot.book()
        chain.store.put(kind, step, tier, snapshot)
        self.states[step] = alike, self.state

    def delete(self, kind: str, step: int, tier: str) -> None:
        """Release an entry."""
        if kind == "state":
            self.states.pop(step, None)
        self.chain.delete(kind, step, tier)

    def transfer(self, kind: str, step: int, source: str, target: str) -> None:
        """As the chain does."""
        self.chain.transfer(kind, step, source, target)

    def end(self) -> None:
        """All steps have been reversed: the sweep has the cotangents."""
        self._hand_back()

    def _put_back(self) -> None:
        """The chain has the state."""
        alike, chain = self.alike, self.chain
        if alike is not None:
            env = alike.values(self.at, self.state)
            chain.replayer = Replayer(chain.recipes, chain.needs, env, self.at, chain.staged)
            self.alike, self.state = None, ()

    def _hand_back(self) -> None:
        """The sweep has the cotangents."""
        handed, self.handed = self.handed, None
        if handed is not None:
            handed.back(self.one)
