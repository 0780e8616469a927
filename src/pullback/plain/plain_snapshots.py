"""The snapshots of plain code, filled as the program goes: when a record reads a value from before a snapshot's cut,
the snapshot takes that value by reference.

So a snapshot holds what the steps after it read, and nothing that died unread.
"""

from typing import Any, Final, NamedTuple

from attrs import define, field

from pullback.memory.ledger import Item, value_items
from pullback.memory.store import Store
from pullback.recording.handles import FREE, SHARED, WRITTEN, WRITTEN_SHARED, root_of

INITIAL: Final = -1
"""In the place of a step: the snapshot that is kept for another reverse pass."""


class TapeInPlace(NamedTuple):
    """The tape of a step: its records stay where they are, and are booked there."""

    step: int
    items: tuple[Item, ...] = ()


@define(eq=False)
class PlainSnapshot:
    """The values that steps from a cut on read from before it, by id."""

    cut: int
    values: dict[int, Any] = field(factory=dict)
    items: list[Item] = field(factory=list)
    booked: bool = False
    """Whether what it takes from now on is booked, too."""

    def book(self) -> None:
        """It is to be stored."""
        self.booked, self.items = True, value_items(self.values.values(), "snapshot")


@define(eq=False)
class PlainSnapshots:
    """The snapshots being filled, by step: those saved, the newest two while the length is unknown, and ``INITIAL``."""

    store: Store
    filling: dict[int, PlainSnapshot] = field(factory=dict, init=False)
    newest: PlainSnapshot | None = field(default=None, init=False)

    @property
    def initial(self) -> PlainSnapshot | None:
        """The snapshot at the first cut that is kept for another reverse pass, if it is."""
        return self.filling.get(INITIAL)

    def begin(self, step: int, cut: int) -> None:
        """From ``cut`` on a snapshot is filled, if none is for that step."""
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

    def forget_unsaved(self, newest: int = INITIAL) -> None:
        """Those that nobody saved are dropped; while the length is unknown the ``newest`` may still be asked for."""
        for step in [s for s in self.filling if s not in (INITIAL, newest) and not self.store.holds("state", s)]:
            del self.filling[step]
        self.newest = max(self.filling.values(), key=lambda snapshot: snapshot.cut, default=None)

    def finish(self) -> None:
        """The program reads no more."""
        self.forget_unsaved()
        self.newest = None

    def close(self) -> None:
        """Release everything."""
        self.store.clear()
        if self.initial is not None:
            self.store.ledger.release(self.initial.items)
        self.filling = {}
