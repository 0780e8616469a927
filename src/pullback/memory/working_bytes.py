"""The working bytes of a step: what it needs while it runs, beside what is held: temporaries, forward and back.

They are not booked one by one, but bounded from one recorded step: each handle tells its bytes when it is made and when
it goes, and the records say which cotangents live at once.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final
from weakref import ref

import numpy as np
from attrs import define, evolve, field, frozen

from pullback.memory.ledger import record_items
from pullback.memory.temporaries import on_the_way
from pullback.recording.handles import plain_value, root_of
from pullback.recording.regions import Region
from pullback.rules.forms import FORMS
from pullback.words.specs import buffer_of

RECORD_BYTES = 320
"""Bytes of Python's own objects, for each record of a tape that is held."""
TAPE_BYTES, BUFFER_BYTES = 1_700, 100
"""The same for the tape of a step of a loop function, and for each array that it holds."""
STATE_BYTES, LEAF_BYTES = 750, 260
"""The same for a snapshot of a loop function, and for each leaf of it."""
OBJECTS_BYTES = 16_384
"""Bytes of Python's own objects for a loop that a tape holds."""
FREE_BOOKS = 64 * 1024
"""Bytes of Python's own objects that are not counted."""
DIGESTS, DIGESTS_LEAST, DIGESTS_SHARE = 100_000, 256, 32
"""The most and the fewest steps of a loop that have digests of its states; the part of a number of bytes that they take
is one in ``DIGESTS_SHARE``."""
STAGING_FACTOR = 4
"""Making the functions of a step takes at most so many times all that the step computes."""


NONE: Final[Mapping[int, int]] = {}
BESIDE = 3
"""Arrays as large as the one that is made which may be there with it: what enters, and what a rule makes."""


@define(eq=False)
class Lifetimes:
    """The values of the handles of a step, while it is recorded."""

    sizes: dict[int, int] = field(factory=dict)
    """Bytes by the id of a value."""
    events: list[tuple[int, int, int | None]] = field(factory=list)
    """What happened, in order: the ``id`` of a buffer, its bytes where a handle came to it, or less these where one
    left it, and the id of the value that came."""
    watched: dict[int, Any] = field(factory=dict)
    """References to handles that own their memory, by ``id``."""
    lies_in: dict[int, tuple[int, int]] = field(factory=dict)
    """The buffer of each of these, and its bytes."""
    made: int = 0
    """All bytes that were made."""
    apart: int = 0
    """What was made besides, as the outputs of all steps."""
    asks: Callable[[int], float] | None = None
    """Who is asked for room where more may be there at once than ``room``; it says how much there is then."""
    asked: int = 0
    """The most that has been there at once."""
    room: float = -1

    def watch(self, handle: Any) -> None:
        """A handle was made, or stands for another value now."""
        value, key = plain_value(handle._value), id(handle)
        if handle._id is not None:
            self.sizes[handle._id] = getattr(value, "nbytes", 0)
        if not isinstance(value, np.ndarray) or root_of(handle) is not handle:
            self.events.append((0, 0, handle._id))
            return
        array = buffer_of(value)
        buffer, nbytes = id(array), array.nbytes
        before = self.lies_in.get(key)
        if before is None:
            self.watched[key] = ref(handle, partial(self._gone, key))
        elif before[0] == buffer:
            return
        self.events.append((buffer, nbytes, handle._id))
        if before is not None:
            self.events.append((before[0], -before[1], None))
        self.lies_in[key] = buffer, nbytes
        self.made += nbytes
        self._ask(BESIDE * nbytes)

    def comes(self, nbytes: int) -> None:
        """So much will be made that is the value of no handle."""
        self.apart += nbytes
        self._ask(0)

    def _ask(self, beside: int) -> None:
        self.asked = max(self.asked, self.made + self.apart + beside)
        if self.asks is not None and self.asked > self.room:
            self.room = self.asks(self.asked)

    def _gone(self, key: int, _: Any) -> None:
        if key in self.lies_in:
            buffer, nbytes = self.lies_in.pop(key)
            self.events.append((buffer, -nbytes, None))
            self.watched.pop(key, None)

    def values_of(self, idents: Collection[int]) -> list[Any]:
        """The values with these ids whose handles are there."""
        alive = (handle for handle in map(_call, self.watched.values()) if handle is not None)
        return [plain_value(handle._value) for handle in alive if handle._id in idents]

    def forward_bytes(self, held: Collection[Hashable], records: Sequence[Any], *, margin: bool = True) -> int:
        """The most bytes that lived at once and are not among the buffers ``held``, with what operations make on their
        way; without a ``margin`` their result is not counted once more."""
        live = peak = 0
        holders: dict[int, int] = {}
        for buffer, nbytes, ident in self.events:
            if nbytes and buffer not in held:
                before = holders.get(buffer, 0)
                after = holders[buffer] = before + (1 if nbytes > 0 else -1)
                live += nbytes if not before or not after else 0
            if ident is not None and (record := records[ident]) is not None:
                largest = max(self.sizes.get(i, 0) for i in (ident, *_ids(record)))
                beside = on_the_way(record)[0] - (0 if margin else 1)  # the result is one of them
                peak = max(peak, live + int(largest * max(0, beside)))
            peak = max(peak, live)
        return peak

    def reverse_bytes(
        self, records: Sequence[Any], first: int, stop: int, seeds: Collection[int], freed: Mapping[int, int] = NONE
    ) -> int:
        """The most bytes that the cotangents of the records ``first .. stop-1`` take at once, with what their rules
        make on the way, and less what has been let go of by then: ``freed`` with each record. ``seeds`` are the ids of
        what the step hands on."""
        sizes, live, peak, gone = self.sizes, dict[int, int](), 0, 0
        live = {ident: sizes.get(ident, 0) for ident in seeds}
        for ident in range(stop - 1, first - 1, -1):
            record = records[ident]
            if record is None or ident not in live:
                gone += freed.get(ident, 0)
                continue
            ids = _ids(record)
            known = [sizes.setdefault(i, live[ident]) for i in ids]
            new = {i: nbytes for i, nbytes in zip(ids, known, strict=True) if i not in live}
            added = max(0, len(ids) - len(new) - (len(ids) > 1))  # another lies beside a cotangent first
            temporary = (on_the_way(record)[1] + added) * max((live[ident], *known))
            peak = max(peak, sum(live.values()) + sum(new.values()) + int(temporary) - gone)
            gone += freed.get(ident, 0)
            del live[ident]
            live |= new
        return peak

    @property
    def computed_again(self) -> int:
        """What it takes at most to make all values once more and to pull them back, beside cotangents of all."""
        return self.made + sum(self.sizes.values()) + BESIDE * max(self.sizes.values(), default=0)

    def needed(
        self,
        records: Sequence[Any],
        first: int,
        seeds: Collection[int] | None = None,
        freed: Mapping[int, int] = NONE,
        *,
        margin: bool = True,
    ) -> "Needed":
        """What the steps need that have made the records from ``first`` on; ``seeds`` are the ids of what they hand on,
        if not those of the handles that are there; ``freed`` is let go of with each record; ``margin`` as in
        ``forward_bytes``."""
        if seeds is None:
            seeds = {handle._id for handle in map(_call, self.watched.values()) if handle is not None}
        held = {key for key, _, _ in record_items(records[first:])}
        forward = self.forward_bytes(held, records, margin=margin)
        back = self.reverse_bytes(records, first, len(records), {ident for ident in seeds if ident is not None}, freed)
        self.watched.clear()
        self.lies_in.clear()
        return Needed(forward, back, self.made, len(records) - first, asked=self.asked)


def freed_by(records: Sequence[Any], first: int, stays: Collection[Hashable]) -> dict[int, int]:
    """What the reverse lets go of with each of the records from ``first`` on, where no other reverse will come: the
    last of those that hold an array, unless it is among ``stays``."""
    held = {key for key, _, _ in record_items(records[:first])}.union(stays)
    found: dict[int, int] = {}
    for ident in range(first, len(records)):
        items = [item for item in record_items(records[ident : ident + 1]) if item[0] not in held]
        held.update(key for key, _, _ in items)
        found[ident] = sum(nbytes for _, nbytes, _ in items)
    return found


def parts_of_keys(records: Sequence[Any]) -> dict[int, int]:
    """What records hold as a part of their parameters, as indices: bytes by the ``id`` of a buffer. The ledger books it
    nowhere."""
    held = {key for key, _, _ in record_items(records)}
    found: dict[int, int] = {}
    for record in records:
        parts = list(record[1:-1]) if record is not None else []
        while parts:
            part = parts.pop()
            if type(part) is tuple:
                parts += part
            elif type(part) is Region:
                parts.append(part.key)
            elif isinstance(part, np.ndarray):
                buffer = buffer_of(part)
                if id(buffer) not in held:
                    found[id(buffer)] = buffer.nbytes
    return found


def books_of(records: Iterable[Any], more: int = 0) -> int:
    """What Python takes for the steps that the loops among the records hold, those within these, and ``more``; a part
    of each is not counted, as nowhere else."""
    return max(0, sum(map(_books, _loops(records))) - FREE_BOOKS) + max(0, more - OBJECTS_BYTES)


def _books(loop: Any) -> int:
    entries, needed, nest = loop.chain.store.entries, loop.needed, loop.chain.steps.nest
    each = 0 if needed is None else max(needed.with_records({"state_bytes": 0, "tape_bytes": 0}).values())
    within: list[Any] = []
    if nest is not None and nest.loops:
        tapes = (getattr(entry, "tape", None) for entry in entries.values())
        within = [inner for tape in tapes if tape is not None for inner in _loops(tape.records)]
    return OBJECTS_BYTES + len(entries) * each + sum(map(_books, within))


def _loops(records: Iterable[Any]) -> list[Any]:
    return [record[2] for record in records if record is not None and FORMS[record[0]].steps]


@frozen
class Variables:
    """What variables of the program had when a loop began, of values from before it."""

    ids: Mapping[int, int] = field(factory=dict)
    """Bytes by the ids of these values."""
    buffers: Sequence[tuple[Any, int, bool]] = ()
    """A reference, the bytes, and whether others can reach it: of each array that nobody has booked."""

    def left(self, records_stay: bool) -> dict[int, int]:
        """Bytes by the ``id`` of those that are there when the reverse comes to the loop: which others can reach, and
        which records hold, where these stay."""
        there = ((reference(), nbytes) for reference, nbytes, stays in self.buffers if stays or records_stay)
        return {id(buffer): nbytes for buffer, nbytes in there if buffer is not None}

    def waiting(self, records: Iterable[Any], more: Iterable[int] = ()) -> int:
        """What the cotangents of these values take that ``records`` after the loop will have sent, and those after it
        that have let go of what they read: the ids ``more``."""
        read = {ident for record in records if record is not None for ident in FORMS[record[0]].ids(record)}.union(more)
        return sum(nbytes for ident, nbytes in self.ids.items() if ident in read)


@frozen
class Needed:
    """Bytes that steps need beside what they hold."""

    forward: int
    back: int
    made: int
    n_records: int
    lasting: int = 0
    """Copies of plain arrays that all tapes share."""
    of_tape: int = 0
    """What a tape holds beyond what is booked for it, and that it does not share."""
    n_leaves: int = 0
    """The number of leaves of the state of a loop function."""
    asked: int = 0
    """What there may be at once when they are recorded for the first time."""

    @property
    def of_state(self) -> int:
        """What Python takes for a snapshot of a loop function."""
        return STATE_BYTES + LEAF_BYTES * self.n_leaves if self.n_leaves else 0

    def digests_within(self, room: int | None, n: int | None) -> tuple[int, int]:
        """How many of the ``n`` steps of a loop have digests, where it may take ``room`` bytes, and the bytes of these
        in any room."""
        most = DIGESTS
        if room is not None:
            most = min(most, max(DIGESTS_LEAST, room // DIGESTS_SHARE // 8 // max(1, self.n_leaves)))
        return most, 9 * self.n_leaves * (DIGESTS if n is None else min(n, DIGESTS))

    def with_records(self, sizes: Mapping[str, int], n_steps: int = 1) -> dict[str, int]:
        """The sizes of a state and a tape, with what Python takes for the records of this; these are of so many
        steps."""
        besides = RECORD_BYTES * self.n_records // n_steps + self.of_tape
        return {
            "state_bytes": sizes["state_bytes"] + self.of_state, "tape_bytes": max(0, sizes["tape_bytes"] + besides)
        }  # fmt: skip

    def computing_again(self, sizes: Iterable[int], records: Iterable[Any], made: int | None = None) -> "Needed":
        """What a step needs where what the pullbacks of the ``records`` read is computed again, all of it at worst,
        beside cotangents of all: the values' ``sizes`` say what these take; ``made`` where it is not all that was."""
        known = list(sizes)
        temporaries = max((on_the_way(record)[1] for record in records if record is not None), default=0)
        computed = self.made if made is None else made
        return evolve(self, back=computed + sum(known) + int(temporaries * max(known, default=0)))

    def beside(self, state_bytes: int) -> int:
        """What a step takes with the running state, the cotangents of the state, and its result after the loop, which
        somebody may hold."""
        return 2 * state_bytes + self.at_work

    @property
    def at_work(self) -> int:
        """What it takes with the temporaries of its operations, or of their rules."""
        return max(self.forward, self.back)

    @property
    def staging_bytes(self) -> int:
        """What it takes beyond that to make functions of a step at any time, and to work with them."""
        return max(self.making_bytes, self.forward + self.back)

    @property
    def making_bytes(self) -> int:
        """What it takes to make functions of a step."""
        return STAGING_FACTOR * self.made


def _ids(record: Any) -> list[int]:
    return [i for i in FORMS[record[0]].ids(record) if i is not None]


def _call(reference: Any) -> Any:
    return reference()
