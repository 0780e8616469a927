"""Programs that take far less than their budget: as an earlier call has shown, the next one is recorded as under
save-all, at its price, for as long as it does no more than that."""

from collections.abc import Callable
from types import CellType
from typing import Any, Final
from weakref import ref

import numpy as np
from attrs import define, field, frozen

from pullback.memory.in_force import depth, planned
from pullback.recording.results import COMPONENT
from pullback.recording.tape import RECORDING, Tape
from pullback.recording.traps import TRAPPED
from pullback.rules.forms import FORMS

MOST_PROGRAMS: Final = 256
MARGIN: Final = 2
"""What is foreseen leaves so much of the bytes free: a program that goes on, or another, is governed within the
rest."""
RECORD_BYTES: Final = 1_200
BESIDE: Final = 8
"""Arrays that are there at once beside values and cotangents: what a rule makes on its way."""


@frozen
class Extent:
    """How much a program has at most: so many records, none with an array of more bytes than ``largest``."""

    n_records: int = 0
    largest: int = 0

    @property
    def nbytes(self) -> int:
        """Enough to save all: values, copies of plain arrays and cotangents, each as if it were the largest."""
        return self.n_records * (3 * self.largest + RECORD_BYTES) + BESIDE * self.largest

    def or_more(self, other: "Extent") -> "Extent":
        """What both keep to."""
        return Extent(max(self.n_records, other.n_records), max(self.largest, other.largest))


_KNOWN: Final[dict[Any, Extent]] = {}
"""What programs have done, each by its code and the shapes and types of its arguments and of what it captures."""


@define(eq=False)
class Seen:
    """One call of such a program, and what is known of those before it."""

    program: Any
    max_bytes: int
    largest: int = 0
    """Bytes of the largest array that a record holds, or that was made."""
    alone: bool = True
    """Whether all records so far are of single operations, or of loops that take little of the bytes."""
    known: Extent | None = field(init=False)

    def __attrs_post_init__(self) -> None:
        known = _KNOWN.get(self.program)
        self.known = known if known is not None and MARGIN * known.nbytes <= self.max_bytes else None

    def leaves(self, tape: Tape, govern: Callable[[Tape], None]) -> bool:
        """Whether a trace that begins is left to itself: if it does more than is known, ``govern`` is called."""
        known, self.known = self.known, None
        if known is not None:
            self.largest = known.largest
            tape.records = WatchedRecords(known, tape, govern)
            tape.mode, tape.governor = RECORDING, None  # type: ignore[assignment]  # nobody asks in this mode
        return known is not None

    def met(self, record: tuple[Any, ...], tape: Any) -> None:
        """A record is about to be appended to a tape."""
        if record[0] == COMPONENT.opcode and getattr(loop := tape.records[record[1]][2], "little", False):
            self.largest = max(self.largest, loop.kept_bytes)
            return
        self.alone &= FORMS[record[0]].execute is None
        self.largest = max(self.largest, largest_in(record))

    def made(self, value: Any) -> None:
        """So is the handle of a value."""
        self.largest = max(self.largest, getattr(value, "nbytes", 0))

    def ended(self, tape: Tape) -> None:
        """The program has ended: another call will do no more. Where others take part, each would know another thing
        of it."""
        if self.alone and not tape.collective:
            extent = Extent(len(tape.records), self.largest)
            before = _KNOWN.pop(self.program, extent)
            while len(_KNOWN) >= MOST_PROGRAMS:
                _KNOWN.pop(next(iter(_KNOWN), None), None)
            _KNOWN[self.program] = extent.or_more(before)


def seen(policy: Any, f: Any, args: tuple[Any, ...], kwargs: Any) -> Seen | None:
    """What is known of a call under a policy that counts bytes; None where it asks for more than the gradient of plain
    code."""
    code = getattr(f, "__code__", None)
    if code is None or policy.within is not None or policy.ample_bytes is None:
        return None
    if depth() or TRAPPED.get() or planned() is not None:
        return None
    read = [*args, *kwargs.values(), *_captured(f)]
    return Seen((code, *map(_kind, read)), policy.ample_bytes)


def _captured(f: Any) -> list[Any]:
    """What stands in the cells of a function: arrays of another size there make it another program."""
    cells = getattr(f, "__closure__", None) or ()
    return [cell.cell_contents for cell in cells if cell != _EMPTY]


_EMPTY: Final = CellType()
"""Unequal to every cell that holds something, whatever that is."""


def _kind(leaf: Any) -> Any:
    return (leaf.shape, leaf.dtype) if isinstance(leaf, np.ndarray) else type(leaf)


def largest_in(record: tuple[Any, ...]) -> int:
    """Bytes of the largest array that a record holds."""
    return max((part.nbytes for part in record if isinstance(part, np.ndarray)), default=0)


class WatchedRecords(list[Any]):
    """The records of a tape that nobody governs; ``told`` is called when there are more, or one holds a larger array,
    than was foreseen. Each is looked at: what a program reads besides its arguments may be of another size than in the
    call before, and so may all that it makes of it."""

    __slots__ = ("largest", "most", "tape", "told")

    def __init__(self, extent: Extent, tape: Tape, told: Callable[[Tape], None]) -> None:
        super().__init__()
        self.most, self.largest, self.tape, self.told = extent.n_records, extent.largest, ref(tape), told

    def append(self, record: Any, add: Any = list.append, count: Any = len, array: Any = np.ndarray) -> None:
        """Another record."""
        add(self, record)
        if count(self) > self.most:
            self.tell()
        for part in record:
            if part.__class__ is array and part.nbytes > self.largest:
                self.tell()

    def tell(self) -> None:
        """The program is governed from here on; so says a loop, too, that takes more than little."""
        tape = self.tape()
        if tape is not None and tape.mode == RECORDING:
            self.most = self.largest = 1 << 62
            self.told(tape)


def forget() -> None:
    """Nothing is known: for tests."""
    _KNOWN.clear()
