"""The store: what a schedule has saved and not yet deleted, in tiers, each entry booked in the ledger.

A tier is a place where entries are stored. ``TIERS`` is the one table of them, by the names that actions use: another
place, on disk say, is one more line there.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol, TypeAlias

from attrs import define, field, frozen

from pullback.memory.ledger import Item, Ledger
from pullback.policies.actions import MEMORY, Save, Transfer
from pullback.words.errors import PolicyError

Key: TypeAlias = tuple[str, int, str]
"""Kind, step and tier of an entry."""


class Entry(Protocol):
    """What is stored: a snapshot of a state, or the tape of a step."""

    @property
    def items(self) -> Sequence[Item]:
        """What holding it in memory costs, as the ledger books it."""


class Tier(Protocol):
    """A place where entries are stored: what it gives is what it took, and what it makes of it is its own business."""

    @property
    def in_memory(self) -> bool:
        """Whether what is stored takes memory, and so is booked."""

    def take(self, entry: Any) -> Any:
        """What is stored for an entry."""

    def give(self, stored: Any) -> Any:
        """The entry; it stays stored."""

    def drop(self, stored: Any) -> None:
        """What is stored is needed no more."""


@frozen
class ByReference:
    """The tier that holds the entries themselves."""

    in_memory: bool = True

    def take(self, entry: Any) -> Any:
        """The entry itself."""
        return entry

    def give(self, stored: Any) -> Any:
        """The entry itself."""
        return stored

    def drop(self, stored: Any) -> None:
        """The memory goes with the last reference."""


TIERS: Final[dict[str, Tier]] = {MEMORY: ByReference()}


@define(eq=False)
class Store:
    """The entries of one schedule, by kind, step and tier. ``policy`` is for messages."""

    ledger: Ledger
    policy: Any
    tiers: Mapping[str, Tier] = field(factory=lambda: TIERS)
    entries: dict[Key, Any] = field(factory=dict, init=False)
    """What the tiers have made of the entries."""
    booked: dict[Key, Sequence[Item]] = field(factory=dict, init=False)

    def put(self, kind: Any, step: int, tier: str, entry: Entry) -> None:
        """Store an entry; raises :class:`PolicyError` for a tier that does not exist."""
        self._put((kind, step, tier), entry)

    def put_tapes(self, first: int, tier: str, tapes: Sequence[Entry]) -> None:
        """Store the tapes of steps one after the other, from ``first`` on."""
        place, entries = self.tiers[tier], self.entries
        for step, tape in enumerate(tapes, first):
            key = "tape", step, tier
            entries[key] = place.take(tape)
            if place.in_memory and tape.items:
                self.booked[key] = tape.items
                self.ledger.hold(tape.items)

    def get(self, kind: str, step: int, tier: str) -> Any:
        """The entry, which stays stored."""
        return self.tiers[tier].give(self.entries[kind, step, tier])

    def take_out(self, kind: str, step: int, tier: str) -> Any:
        """The entry, which is stored no more, but stays booked: for whoever works with it now."""
        key, place = (kind, step, tier), self.tiers[tier]
        entry = place.give(stored := self.entries[key])
        place.drop(stored)
        del self.entries[key]
        self.booked.pop(key, None)
        return entry

    def drop(self, kind: str, step: int, tier: str) -> None:
        """Release an entry."""
        key = kind, step, tier
        self.tiers[tier].drop(self.entries.pop(key))
        self.ledger.release(self.booked.pop(key, ()))

    def transfer(self, kind: Any, step: int, source: str, target: str) -> None:
        """Store in ``target`` what is stored in ``source``, where it stays; raises :class:`PolicyError` as ``put``."""
        self._put((kind, step, target), self.get(kind, step, source), source)

    def holds(self, kind: str, step: int) -> bool:
        """Whether some tier holds this."""
        return any((kind, step, tier) in self.entries for tier in self.tiers)

    def of(self, kind: str) -> dict[int, Any]:
        """Step to entry, for all entries of a kind."""
        return {key[1]: self.get(*key) for key in self.entries if key[0] == kind}

    def clear(self) -> None:
        """Release everything."""
        for key in list(self.entries):
            self.drop(*key)

    def _put(self, key: Key, entry: Entry, source: str = "") -> None:
        tier = self.tiers.get(key[2])
        if tier is None:
            kind: Any
            kind, step, target = key
            wanted = Transfer(kind, step, source, target) if source else Save(kind, step, target)
            raise PolicyError(
                f"{self.policy!r} wants {wanted!r}, and there is no tier {key[2]!r}: there is "
                f"{', '.join(map(repr, self.tiers))}. Name one of these in the action, or leave the tier out"
            )
        self.entries[key] = tier.take(entry)
        if tier.in_memory:
            self.booked[key] = entry.items
            self.ledger.hold(entry.items)


@define(eq=False)
class Storing(ABC):
    """A chain as far as it stores: tapes move between its ``work`` and the store, states are copied by the chain."""

    store: Store
    work: Any = field(default=None, init=False)

    @abstractmethod
    def snapshot(self, step: int) -> Entry:
        """The state before ``step``, to be stored."""

    @abstractmethod
    def restore(self, entry: Any, step: int) -> None:
        """A stored state becomes the live one."""

    def take_tape(self) -> Any:
        """The tape, out of WORK."""
        work, self.work = self.work, None
        return work

    def save(self, kind: str, step: int, tier: str) -> None:
        """A snapshot copies the live state; a tape moves out of WORK."""
        if kind == "tape":
            work = self.take_tape()
            self.store.put(kind, step, tier, work)
            self.store.ledger.release(work.items)
        else:
            self.store.put(kind, step, tier, self.snapshot(step))

    def load(self, kind: str, step: int, tier: str) -> None:
        """A snapshot becomes the live state; a tape comes into WORK."""
        entry = self.store.get(kind, step, tier)
        if kind == "tape":
            self.work = entry
            self.store.ledger.hold(entry.items)
        else:
            self.restore(entry, step)

    def transfer(self, kind: str, step: int, source: str, target: str) -> None:
        """Copy an entry from one tier to another."""
        self.store.transfer(kind, step, source, target)

    def delete(self, kind: str, step: int, tier: str) -> None:
        """Release an entry; a tape in WORK stays there."""
        self.store.drop(kind, step, tier)
