"""The store: what a schedule has saved and not yet deleted, in tiers, each entry booked in the ledger.

A tier is a place where entries are stored. ``TIERS`` has the tiers by the names that actions use; a policy adds others,
or puts them in the place of these, by ``MemoryPolicy.tiers``. The values of both tables are tiers, or *places*:
descriptions that a store opens when the first entry goes there, and closes when it is cleared.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, Final, Protocol, TypeAlias

from attrs import Factory, define, field, frozen

from pullback.memory.ledger import Item, Ledger
from pullback.policies.save_all import SaveAll
from pullback.scheduling.machine.actions import DISK, MEMORY, Save, Transfer
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
        """Whether an entry is stored as it is, and so is booked; else the tier books what it holds, and the store what
        stays of the entry (:meth:`look`)."""

    def prepare(self) -> None:
        """An entry is about to be made, and taken."""

    def take(self, entry: Any, label: str) -> Any:
        """What is stored for an entry; ``label`` says in messages what it is."""

    def give(self, stored: Any) -> Any:
        """The entry; it stays stored."""

    def look(self, stored: Any) -> Any:
        """What is in memory of the entry, without moving anything. A tier with ``takes_apart = True`` keeps its shell
        (:mod:`pullback.memory.entry_parts`), which may still grow."""

    def drop(self, stored: Any) -> None:
        """What is stored is needed no more."""

    def close(self) -> None:
        """Nothing will be stored any more: nothing is left behind."""


class Place(Protocol):
    """What a policy says of a tier (:mod:`pullback.stores`)."""

    @property
    def lossy(self) -> bool:
        """Whether other bits may come back."""

    def opened(self, ledger: Ledger, tier: str) -> Any:
        """The tier."""

    def planned(self, ledger: Ledger, tier: str) -> Any:
        """A tier that stores names of buffers and books the same; None: as by reference."""


@frozen
class ByReference:
    """The tier that holds the entries themselves."""

    in_memory: bool = True

    def prepare(self) -> None:
        """There is room."""

    def take(self, entry: Any, label: str) -> Any:  # noqa: ARG002 - it needs no name
        """The entry itself."""
        return entry

    def give(self, stored: Any) -> Any:
        """The entry itself."""
        return stored

    def look(self, stored: Any) -> Any:
        """The entry itself."""
        return stored

    def drop(self, stored: Any) -> None:
        """The memory goes with the last reference."""

    def close(self) -> None:
        """Nothing is left."""


@frozen
class TemporaryFolder:
    """The place ``"disk"`` of every policy that names no other one, and that of a directory that a policy names."""

    directory: Any = None
    lossy: bool = False

    def opened(self, ledger: Ledger, tier: str) -> Any:
        """The tier of ``Disk()``."""
        return self._disk().opened(ledger, tier)

    def planned(self, ledger: Ledger, tier: str) -> Any:
        """The tier of ``Disk()`` for names."""
        return self._disk().planned(ledger, tier)

    def _disk(self) -> Any:
        from pullback.stores.disk import Disk  # noqa: PLC0415 - its imports are for those who use it

        return Disk(self.directory)


TIERS: Final[dict[str, Any]] = {MEMORY: ByReference(), DISK: TemporaryFolder()}


def tiers_of(policy: Any) -> Mapping[str, Any]:
    """The tiers, or places, that a policy can name."""
    own = getattr(policy, "tiers", None) or {}
    return {**TIERS, **{name: _as_place(x) for name, x in own.items()}}


def _as_place(given: Any) -> Any:
    if isinstance(given, str | PathLike):
        return TemporaryFolder(given)
    if not hasattr(given, "encode"):
        return given
    from pullback.stores.in_memory import InMemory  # noqa: PLC0415 - its imports are for those who use it

    return InMemory(given)


def is_lossy(policy: Any) -> bool:
    """Whether a policy may give other bits than save-all: one of its own tiers is declared lossy."""
    own = getattr(policy, "tiers", None) or {}
    return any(getattr(place, "lossy", False) for place in own.values())


@define(eq=False)
class Store:
    """The entries of one schedule, by kind, step and tier. ``policy`` is for messages."""

    ledger: Ledger
    policy: Any
    tiers: Mapping[str, Any] = field(default=Factory(lambda self: tiers_of(self.policy), takes_self=True))
    open: dict[str, Tier] = field(factory=dict, init=False)
    """The tiers that something was stored in."""
    entries: dict[Key, Any] = field(factory=dict, init=False)
    """What the tiers have made of the entries."""
    booked: dict[Key, Sequence[Item]] = field(factory=dict, init=False)

    def planned(self) -> "Store":
        """A store for names of buffers, which books the same."""
        tiers = {name: self._planned(name, place) for name, place in self.tiers.items()}
        return Store(self.ledger, self.policy, tiers)

    def _planned(self, name: str, place: Any) -> Tier:
        if not hasattr(place, "opened"):
            return ByReference(place.in_memory)
        return place.planned(self.ledger, name) or ByReference()

    def tier(self, name: str) -> Tier:
        """A tier, opened."""
        found = self.open.get(name)
        if found is None:
            place: Any = self.tiers[name]
            found = self.open[name] = place.opened(self.ledger, name) if hasattr(place, "opened") else place
            figures = getattr(found, "figures", None)
            if figures is not None:
                self.ledger.stores.append(figures)
        return found

    def goes_on(self, name: str) -> bool:
        """Whether what is stored there may still grow."""
        return name not in self.tiers or isinstance(tier := self.tier(name), ByReference) or _takes_apart(tier)

    def prepare(self, name: str) -> None:
        """An entry is about to be made for this tier."""
        if name in self.tiers:
            self.tier(name).prepare()

    def put(self, kind: Any, step: int, tier: str, entry: Entry) -> None:
        """Store an entry; raises :class:`PolicyError` for a tier that does not exist."""
        self._put((kind, step, tier), entry)

    def put_tapes(self, first: int, tapes: Sequence[Entry]) -> None:
        """Store the tapes of steps one after the other, from ``first`` on, in memory."""
        place, entries = self.tier(MEMORY), self.entries
        as_it_is = type(place) is ByReference
        for step, tape in enumerate(tapes, first):
            key = "tape", step, MEMORY
            entries[key] = tape if as_it_is else place.take(tape, "")
            if tape.items and place.in_memory:
                self.booked[key] = tape.items
                self.ledger.hold(tape.items)

    def get(self, kind: str, step: int, tier: str) -> Any:
        """The entry, which stays stored."""
        return self.tier(tier).give(self.entries[kind, step, tier])

    def look(self, kind: str, step: int, tier: str) -> Any:
        """What is in memory of the entry: with parts in the place of arrays that are elsewhere."""
        return self.tier(tier).look(self.entries[kind, step, tier])

    def take_out(self, kind: str, step: int, tier: str) -> Any:
        """The entry, which is stored no more, but stays booked: for whoever works with it now."""
        key, place = (kind, step, tier), self.tier(tier)
        entry = place.give(stored := self.entries[key])
        place.drop(stored)
        del self.entries[key]
        booked = self.booked.pop(key, ())
        if not place.in_memory:
            self.ledger.hold(entry.items)
            self.ledger.release(booked)
        return entry

    def drop(self, kind: str, step: int, tier: str) -> None:
        """Release an entry."""
        key = kind, step, tier
        self.tier(tier).drop(self.entries.pop(key))
        self.ledger.release(self.booked.pop(key, ()))

    def transfer(self, kind: Any, step: int, source: str, target: str) -> None:
        """Store in ``target`` what is stored in ``source``, where it stays; raises :class:`PolicyError` as ``put``."""
        entry = self.get(kind, step, source)
        self._put((kind, step, target), getattr(entry, "for_another", lambda: entry)(), source)

    def holds(self, kind: str, step: int) -> bool:
        """Whether some tier holds this."""
        return any((kind, step, tier) in self.entries for tier in self.tiers)

    def of(self, kind: str) -> dict[int, Any]:
        """Step to what is in memory of the entry, for all entries of a kind."""
        return {key[1]: self.look(*key) for key in self.entries if key[0] == kind}

    def found(self, kind: str, step: int) -> Any:
        """The entry, in whatever tier; None where there is none."""
        tier = next((tier for tier in self.tiers if (kind, step, tier) in self.entries), None)
        return None if tier is None else self.get(kind, step, tier)

    def clear(self) -> None:
        """Release everything, and leave nothing behind."""
        try:
            for key in list(self.entries):
                self.drop(*key)
        finally:
            for tier in self.open.values():
                _close(tier)
            self.open.clear()

    def _put(self, key: Key, entry: Entry, source: str = "") -> None:
        kind: Any
        kind, step, target = key
        if target not in self.tiers:
            wanted = Transfer(kind, step, source, target) if source else Save(kind, step, target)
            raise PolicyError(
                f"{self.policy!r} wants {wanted!r}, and there is no tier {key[2]!r}: there is "
                f"{', '.join(map(repr, self.tiers))}. Name one of these in the action, or leave the tier out"
            )
        tier = self.tier(target)
        self.entries[key] = stored = tier.take(entry, f"{kind} of step {step}")
        items = entry.items if tier.in_memory else tier.look(stored).items if _takes_apart(tier) else ()
        self.booked[key] = items
        self.ledger.hold(items)


def _close(tier: Tier) -> None:
    try:
        tier.close()
    except BaseException:  # an interrupt: what it has broken off is done again
        tier.close()
        raise


def _takes_apart(tier: Tier) -> bool:
    return getattr(tier, "takes_apart", False)


@define(eq=False)
class Storing(ABC):
    """A chain as far as it stores: tapes move between its ``work`` and the store, states are copied by the chain."""

    store: Store
    work: Any = field(default=None, init=False)
    state_bytes: int = field(default=0, kw_only=True)
    """Bytes of the running state: it is booked from the first one that is loaded until :meth:`rests`."""

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
            self.store.put(kind, step, tier, self.work)  # after an error it is still in WORK, and let go of with it
            self.store.ledger.release(self.take_tape().items)
        else:
            self.store.prepare(tier)
            self.store.put(kind, step, tier, self.snapshot(step))

    def load(self, kind: str, step: int, tier: str) -> None:
        """A snapshot becomes the live state; a tape comes into WORK."""
        entry = self.store.get(kind, step, tier)
        if kind == "tape":
            self.work = entry
            self.store.ledger.hold(entry.items)
        else:
            self.runs()
            self.restore(entry, step)

    def runs_forward(self, schedule: Any, machine: Any) -> None:
        """The forward pass begins. Where nobody knows the length the state before the newest is kept beside it, unless
        every step is recorded as it comes."""
        records_all = type(getattr(schedule, "policy", None)) is SaveAll
        self.runs(1 + (machine.n is None and not records_all))

    def runs(self, n_states: int = 1) -> None:
        """Steps are run from a live state, with so many of them at once."""
        self.store.ledger.runs(id(self), n_states * self.state_bytes)

    def rests(self) -> None:
        """No step is run for now."""
        self.store.ledger.runs(id(self), 0)

    def transfer(self, kind: str, step: int, source: str, target: str) -> None:
        """Copy an entry from one tier to another."""
        self.store.transfer(kind, step, source, target)

    def delete(self, kind: str, step: int, tier: str) -> None:
        """Release an entry; a tape in WORK stays there."""
        self.store.drop(kind, step, tier)
