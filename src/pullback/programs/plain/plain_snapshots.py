"""The snapshots of plain code, filled as the program goes: when a record reads a value from before a snapshot's cut,
the snapshot takes that value by reference.

So a snapshot holds what the steps after it read, and nothing that died unread.
"""

from collections.abc import Iterator
from typing import Any, ClassVar, Final

from attrs import define, field

from pullback.memory.entry_parts import Taken, held_bytes, put_in
from pullback.memory.ledger import Item, value_items
from pullback.memory.store import ByReference, Store
from pullback.recording.handles import FREE, SHARED, WRITTEN, WRITTEN_SHARED, root_of
from pullback.scheduling.machine.actions import MEMORY, Save
from pullback.words.errors import PolicyError

INITIAL: Final = -1
"""What stands in the place of a step for the snapshot that is kept for another reverse pass."""


@define(eq=False)
class PlainSnapshot:
    """The values that steps from a cut on read from before it, by id."""

    cut: int
    values: dict[int, Any] = field(factory=dict)
    items: list[Item] = field(factory=list)
    booked: bool = False
    """Whether what it takes from now on is booked, too."""
    never_changes: ClassVar[bool] = True
    """An array stands for one value for good: two snapshots that hold it hold the same bits."""

    def book(self) -> None:
        """It is to be stored."""
        self.booked, self.items = True, value_items(self.values.values(), "snapshot")

    def split(self) -> tuple["PlainSnapshot", list[Any]]:
        """What stays in memory, and takes the values that are read later; the arrays so far."""
        taken = Taken()
        values = {ident: taken.out(value) for ident, value in self.values.items()}
        return PlainSnapshot(self.cut, values, [], self.booked), taken.arrays

    def joined(self, arrays: list[Any]) -> "PlainSnapshot":
        """The snapshot, with these arrays again."""
        values = {ident: put_in(value, arrays) for ident, value in self.values.items()}
        return PlainSnapshot(self.cut, values, value_items(values.values(), "snapshot"), self.booked)


@define(eq=False)
class PlainSnapshots:
    """The snapshots being filled, by step: those saved, the newest two while the length is unknown, and ``INITIAL``."""

    store: Store
    filling: dict[int, PlainSnapshot] = field(factory=dict, init=False)
    newest: PlainSnapshot | None = field(default=None, init=False)
    due: dict[int, str] = field(factory=dict, init=False)
    """The tier other than memory, by step, to which a snapshot goes at the end of its step, when most of what it takes
    has been read."""
    at: int = field(default=0, init=False)
    """The step of the snapshot from which steps are executed again."""
    entered: dict[int, Any] = field(factory=dict, init=False)
    """What it holds, until a step is."""

    @property
    def initial(self) -> PlainSnapshot | None:
        """The snapshot at the first cut that is kept for another reverse pass, if it is."""
        return self.filling.get(INITIAL)

    def book_initial(self) -> None:
        """What it holds is booked from now on, if it is."""
        if self.initial is not None and not self.initial.booked:
            self.initial.book()
            self.store.ledger.hold(self.initial.items)

    def stands(self, step: int, values: dict[int, Any], tier: str) -> None:
        """Steps are to be executed again from what a snapshot holds. Its arrays are the running state, and booked by
        that, where it lies in memory by reference; else the state is arrays of its own."""
        lies, ledger = isinstance(self.store.tier(tier), ByReference), self.store.ledger
        self.at, self.entered = step, values if lies else {}
        state = () if lies or not ledger.heard else values.values()
        ledger.runs(id(self), sum(nbytes for _, nbytes, _ in value_items(state, "state")))

    def runs(self, step: int, chain: Any) -> None:
        """Steps before ``step`` are executed again: in the place of what no later step reads of the snapshot the state
        has other arrays, taken to be as large."""
        values, self.entered = self.entered if step > self.at else {}, {} if step > self.at else self.entered
        if values and self.store.ledger.heard:
            needs, recipes, after = chain.needs, chain.recipes, self.at + 1
            made = [x for ident, x in values.items() if not needs.reads_from(after, ident, recipes)]
            self.store.ledger.runs(id(self), sum(nbytes for _, nbytes, _ in value_items(made, "state")))

    def rests(self) -> None:
        """No step is executed again for now."""
        self.entered = {}
        self.store.ledger.runs(id(self), 0)

    @property
    def filled(self) -> dict[Any, int]:
        """The bytes of what the snapshots have taken so far, by the ``id`` of a buffer."""
        values = [value for snapshot in self.filling.values() for value in snapshot.values.values()]
        return {key: nbytes for key, nbytes, _ in value_items(values, "snapshot")}

    @property
    def reads_from(self) -> int:
        """Values below this are told to :meth:`read`."""
        return -1 if self.newest is None else self.newest.cut

    def held_values(self) -> Iterator[tuple[int, str, Any]]:
        """(id, name, value) of each value that a snapshot in memory holds."""
        for snapshot in (*self.store.of("state").values(), *self.filling.values()):
            for ident, value in snapshot.values.items():
                yield ident, "entering", value

    def begin(self, step: int, cut: int) -> None:
        """Fill a snapshot from ``cut`` on, if none is for that step."""
        if step not in self.filling:
            self.filling[step] = self.newest = PlainSnapshot(cut)

    def read(self, ident: int, value: Any, operand: Any) -> None:
        """A record reads value ``ident``: snapshots cut after it take it, by reference."""
        newest = self.newest
        if newest is None or ident >= newest.cut or ident in newest.values:
            return
        root = root_of(operand) if operand is not None else None
        if root is not None and root._flag in (FREE, WRITTEN):
            root._flag = SHARED if root._flag == FREE else WRITTEN_SHARED
        for snapshot in self.filling.values():
            if ident < snapshot.cut and ident not in snapshot.values:
                snapshot.values[ident] = value
                if snapshot.booked:
                    items = value_items((value,), "snapshot")
                    snapshot.items += items
                    self.store.ledger.hold(items)

    def save(self, step: int, tier: str) -> None:
        """The snapshot is to be stored."""
        snapshot = self.filling[step]
        snapshot.book()
        if tier not in self.store.tiers or isinstance(self.store.tier(tier), ByReference):
            self.store.put("state", step, tier, snapshot)
        else:
            self.store.prepare(tier)
            self.store.ledger.hold(snapshot.items)
            self.due[step] = tier

    def move(self) -> None:
        """The step under way has ended: what is to be elsewhere goes there."""
        store = self.store
        for step, tier in self.due.items():
            snapshot = self.filling[step]
            store.put("state", step, tier, snapshot)
            store.ledger.release(snapshot.items)
            self.filling[step] = shell = store.look("state", step, tier)
            if self.newest is snapshot:
                self.newest = shell
        self.due.clear()

    def drop(self, step: int, tier: str) -> None:
        """The snapshot is needed no more."""
        snapshot = self.filling.pop(step, None)
        if self.due.pop(step, None) is None:
            self.store.drop("state", step, tier)
        elif snapshot is not None:
            self.store.ledger.release(snapshot.items)

    def forget_unsaved(self, newest: int = INITIAL) -> None:
        """Drop the snapshots that nobody saved; while the length is unknown the ``newest`` may still be asked for."""
        kept = {INITIAL, newest, *self.due}
        for step in [s for s in self.filling if s not in kept and not self.store.holds("state", s)]:
            del self.filling[step]
        self.newest = max(self.filling.values(), key=lambda snapshot: snapshot.cut, default=None)

    def largest_bytes(self) -> int:
        """Bytes of the largest snapshot, wherever its arrays are: about those of a seed's cotangents there."""
        snapshots = [*self.store.of("state").values(), *self.filling.values()]
        return max((sum(map(held_bytes, each.values.values())) for each in snapshots), default=0)

    def finish(self) -> None:
        """The program reads no more."""
        self.move()
        self.forget_unsaved()
        self.newest = None

    def begin_again(self) -> None:
        """Release all but the initial snapshot that is kept, and what else is stored."""
        for step in self.due:
            self.store.ledger.release(self.filling[step].items)
        self.due.clear()
        self.store.clear()
        self.filling = {INITIAL: self.initial} if self.initial is not None else {}
        self.newest = None

    def close(self) -> None:
        """Release everything."""
        self.begin_again()
        if self.initial is not None:
            self.store.ledger.release(self.initial.items)
        self.filling = {}


def require_growing(store: Store, step: int, tier: str) -> None:
    """Raise :class:`PolicyError` where a snapshot that is being filled is to go to a tier that takes whole entries
    only."""
    if tier in store.tiers and not store.goes_on(tier):
        raise PolicyError(
            f"{store.policy!r} wants {Save('state', step, tier)!r}, but what a snapshot takes while the program runs "
            f"is not known at once: name {MEMORY!r} or a tier of pullback.stores, or use a loop function (fori_loop, "
            "scan)"
        )
