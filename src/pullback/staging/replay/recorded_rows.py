"""Steps in a row whose records say the same, found on a tape that holds all of them.

Records are compared by column: those at one place of all steps, at once. Two steps do the same where the same
primitives stand on the same values, as these are counted from the start of the step, with the same parameters, and
where what they hold is of the same kinds. The lines of the program are not compared, and neither are the numbers that
are held.
"""

from collections.abc import Callable, Sequence
from itertools import repeat
from operator import attrgetter, is_
from typing import Any, Final

import numpy as np
from attrs import define, field, frozen

from pullback.programs.replay.step_recipes import AROUND, FAR
from pullback.recording.regions import Region
from pullback.recording.tape import Tape
from pullback.rules.forms import FORMS
from pullback.words.sameness import WHOLE, same_content

NUMBERS: Final = (float, int, complex)
"""The types of Python's numbers, which a record may hold: they may differ from step to step."""


_KIND, _ENDS = attrgetter("shape", "dtype", "strides"), attrgetter("start", "stop", "step")
_REGION = attrgetter("steps", "key", "fancy", "repeats", "subtracts")


@frozen
class HeldOfRow:
    """What stands in a record for the value of that number among those that the step holds."""

    number: int


@define(eq=False)
class AlikeRow:
    """``n`` steps of ``length`` records each, from record ``start`` on, which say the same."""

    start: int
    length: int
    n: int
    records: list[tuple[Any, ...]] = field(factory=list)
    """The records of one step, without the line: ids from before it as recipes have them, and a :class:`HeldOfRow`
    in the place of each value."""
    kinds: list[tuple[Any, ...]] = field(factory=list)
    """The kinds of the values that a record holds: type, shape, dtype and strides."""
    places: list[tuple[int, int]] = field(factory=list)
    """The place of each of them: that of the record in the step, and that within the record."""
    around: list[int] = field(factory=list)
    """The ids of the values from before all steps."""

    def held(self, records: Sequence[Any], step: int) -> list[Any]:
        """The values that a step holds."""
        start = self.start + step * self.length
        return [records[start + place][k] for place, k in self.places]

    def ident(self, coded: int, step: int) -> int:
        """The id of what stands so in the records."""
        return self.around[coded + AROUND] if coded < FAR else coded + self.start + step * self.length


def row_before(tape: Tape, cuts: Sequence[int], fewest: int, n_alike: Callable[[int, int], int]) -> AlikeRow | None:
    """The longest row of steps that ends with the last of ``cuts``; None where it has less than ``fewest``.
    ``n_alike(stop, length)`` of the last are known to be written in one way (``MarkedSteps``)."""
    length, n = cuts[-1] - cuts[-2], 1
    while n + 1 < len(cuts) and cuts[-n - 1] - cuts[-n - 2] == length:
        n += 1
    if not length or n < fewest:
        return None
    columns = _Columns(tape.records, cuts[-1], length, fewest)
    few = columns.row()
    if few is None or few.n < fewest:  # told from few of them, since most of them differ, or none
        return None
    alike = min(n, n_alike(cuts[-1], length))
    if alike > fewest and (longer := columns.of_alike(alike)) is not None and longer.n >= fewest:
        return longer
    row = few if n == fewest else _Columns(tape.records, cuts[-1], length, n).row()
    return row if row is not None and row.n >= fewest else None


@define(eq=False)
class _Columns:
    """The comparison of the last ``n`` steps, of which fewer may be left."""

    records: Sequence[Any]
    stop: int
    length: int
    n: int
    made: list[tuple[Any, ...]] = field(factory=list)
    kinds: list[tuple[Any, ...]] = field(factory=list)
    places: list[tuple[int, int]] = field(factory=list)
    numbers: dict[int, tuple[HeldOfRow, list[Any]]] = field(factory=dict)
    """The numbers by the ``id`` of a value that the last step holds."""
    around: dict[int, int] = field(factory=dict)
    again: list[tuple[int, int, int]] = field(factory=list)
    """The places of values that stand at another place before: place of the record, and that within it, and number."""
    literal: list[tuple[int, int]] = field(factory=list)
    """The places of something that is the same in all steps, though it is held."""

    def row(self) -> AlikeRow | None:
        """The row; None where a record is of no kind that is compared."""
        for place in range(self.length):
            if not self.column(place):
                return None
        return self._told()

    def of_alike(self, n: int) -> AlikeRow | None:
        """A row of ``n`` steps that were written in one way, of which the last have been compared: they differ in
        nothing but what they hold. None where what is one value in these, or the same in all, is not so in others."""
        self.n, start = n, self.stop - n * self.length
        for place, k, number in self.again:
            first, j = self.places[number]
            column, other = (self.records[start + at : self.stop : self.length] for at in (place, first))
            if not all(a[k] is b[j] for a, b in zip(column, other, strict=True)):
                return None
        for place, k in self.literal:
            column = self.records[start + place : self.stop : self.length]
            if not all(a[k] is column[-1][k] for a in column):
                return None
        return self._told()

    def _told(self) -> AlikeRow | None:
        start = self.stop - self.n * self.length
        if any(ident >= start for ident in self.around):  # of a step before these, which is one of them
            return None
        self._tell_apart(start)
        start = self.stop - self.n * self.length
        return AlikeRow(start, self.length, self.n, self.made, self.kinds, self.places, list(self.around))

    def _tell_apart(self, start: int) -> None:
        """Steps are left in which no value from before all steps is also one that counts from the step: the first ones
        may read the initial state by both ways."""
        counted = {k for made in self.made for k in made[1 : 1 + len(FORMS[made[0]].active)] if FAR <= k < 0}
        both = [ident - start - k for ident in self.around for k in counted]
        same = [gap // self.length for gap in both if gap >= 0 and gap % self.length == 0]
        self.n -= min(self.n, max(same, default=-1) + 1)

    def column(self, place: int) -> bool:
        """The records at one place of the steps; False where they are not compared."""
        column = self.records[self.stop - self.n * self.length + place : self.stop : self.length]
        try:
            parts = list(zip(*column, strict=False))
        except TypeError:  # a record that was dropped
            return False
        last, form = column[-1], FORMS[column[-1][0]]
        opcode = form.opcode
        if form.wide:
            return False
        if parts[0].count(opcode) < self.n:
            self._keep([record[0] == opcode for record in column])
            parts = list(zip(*column[-self.n :], strict=False)) if self.n else []
        first = 1 + len(form.active)
        told: list[Any] = [opcode, *(self._ident(ids) for ids in parts[1:first])]
        for k, part in enumerate(parts[first:-1], first):
            if form.passes and k == first:
                told.append("")  # a tag, of which nobody hears where steps go by a row
            elif first <= k < first + len(form.saved):
                told.append(self._held(part[-self.n :], place, k))
            elif form.own and k == len(parts) + form.own:
                told.append(place)  # the own id
            else:
                told.append(last[k])
                self._same(part, last[k])
        self.made.append(tuple(told))
        return None not in told[1 : first + len(form.saved)]

    def _same(self, parts: Sequence[Any], last: Any) -> None:
        """What a record says beside ids and values is to be the same in all steps: structures part by part, so that
        what they have in common is found at once."""
        if all(map(is_, parts, repeat(last))):
            return
        kind, kinds = type(last), list(map(type, parts))
        if kind is slice and kinds.count(slice) == len(kinds) and WHOLE.issuperset(map(type, _ENDS(last))):
            ends = list(map(_ENDS, parts))
            if ends.count(_ENDS(last)) == len(ends):
                return  # of whole numbers, True among them, which is one here
        elif kind is Region and kinds.count(Region) == len(kinds):
            self._same(list(map(_REGION, parts)), _REGION(last))
            return
        elif kind is tuple and kinds.count(tuple) == len(kinds) and set(map(len, parts)) == {len(last)}:
            for column in list(zip(*parts, strict=True)):
                self._same(column, column[-1])
            return
        self._keep([x is last or same_content(last, x) for x in parts])

    def _keep(self, same: list[bool]) -> None:
        """Keep the last steps in a row that are the ``same``."""
        if not all(same):
            self.n = min(self.n, same[::-1].index(False))

    def _ident(self, ids: tuple[Any, ...]) -> Any:
        """How the ids of a column stand in the records: counted from the step, or one that is the same in all steps."""
        ids, last = ids[-self.n :], ids[-1]
        moving = ids == tuple(range(last - (self.n - 1) * self.length, last + 1, self.length))
        if not moving and ids.count(last) < self.n:
            moved, stayed = (
                [ident == last - k * each for k, ident in enumerate(reversed(ids))][::-1] for each in (self.length, 0)
            )
            moving = (*moved[::-1], False).index(False) > (*stayed[::-1], False).index(False)
            self._keep(moved if moving else stayed)
        if moving:
            return last - self.stop + self.length
        return self.around.setdefault(last, len(self.around)) - AROUND

    def _held(self, values: tuple[Any, ...], place: int, k: int) -> Any:
        """What stands for a held value; None where it is of no kind that a function takes."""
        last = values[-1]
        kind = type(last)
        if kind not in NUMBERS and kind is not np.ndarray and not isinstance(last, np.generic):
            self._keep([x is last for x in values])
            self.literal.append((place, k))
            return last if kind in (bool, str) else None
        found = self.numbers.get(id(last))
        if found is not None:
            self.again.append((place, k, found[0].number))
            self._keep(list(map(is_, values, found[1][-len(values) :])))
            return found[0]
        kinds: list[Any] = list(map(type, values))
        if kinds.count(kind) < len(kinds):
            self._keep([x is kind for x in kinds])
            values = values[-self.n :] if self.n else ()
        if kind is np.ndarray:
            kinds, wanted = list(map(_KIND, values)), _KIND(last)
            if kinds.count(wanted) < len(kinds):
                self._keep([x == wanted for x in kinds])
            self.kinds.append((kind, *wanted))
        else:
            self.kinds.append((kind,))
        held = HeldOfRow(len(self.places))
        self.places.append((place, k))
        if kind not in NUMBERS:
            self.numbers[id(last)] = held, list(values)
        return held
