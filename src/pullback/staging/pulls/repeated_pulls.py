"""The generated reverse of a tape, for pulls that are called again and again.

It is made after enough calls, tried on drawn cotangents, and used if it gives the same bytes: from then on for every
tape that says the same, such as the rows of a Jacobian.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import define, field, frozen

from pullback.recording.tape import Tape
from pullback.recording.traps import TRAPPED
from pullback.rules.forms import FORMS
from pullback.staging.generated.shelf import Recent
from pullback.staging.generated.workspaces import Workspace
from pullback.staging.pulls.reverse_functions import NUMBERS, ReverseFunction, made_reverse
from pullback.words.sameness import same_parts

MOST_RECORDS = 5_000
MOST_SEEDED = 2
"""The most choices of what is seeded for which a pull looks for functions."""
MOST_LAYOUTS, MOST_ALIKE = 64, 4
"""How many layouts are remembered, and how many of tapes of one sequence of primitives: those that came last."""
MOST_WIDTHS = 4
"""The most numbers of seeds at once for which one layout has functions."""
TIMES = 3
"""How many times as many seeds as are given at once must have come before a function for all of them pays."""
AT_ONCE = 64
"""How many seeds go through a function at once, at most."""
STACKED_BYTES = 2**22
"""What the seeds that go through a function at once, and their cotangents, may hold."""


@define(eq=False)
class TapeLayout:
    """What records say beside the values that they hold, which generated functions do not depend on: two tapes of one
    layout have the same reverse."""

    records: list[Any]
    """The records with a :class:`HeldOfTape` in the place of values, and without the user's lines."""
    kinds: list[Any]
    """Type, shape, dtype and strides of each value."""
    rest: tuple[Any, ...]
    """Number of inputs, whether something is masked, and records and specs of the seeds."""

    def is_of(self, other: "TapeLayout") -> bool:
        """Whether both are one."""
        same = self.rest == other.rest and self.kinds == other.kinds and len(self.records) == len(other.records)
        return same and all(map(same_parts, self.records, other.records))


@frozen
class HeldOfTape:
    """What stands in a record for the value of that number."""

    number: int


@define(eq=False)
class KnownTapes:
    """What is known of the reverse of tapes of one layout."""

    layout: TapeLayout
    count: int = 0
    """How many times they have been swept, once it was counted."""
    over: bool = False
    """Whether nothing more is to be made."""
    reverse: ReverseFunction | None = None
    stacked: dict[int, ReverseFunction | None] = field(factory=dict)
    """The functions for several seeds at once, by their number; None where there is none."""
    pushes: dict[Any, Any] = field(factory=dict)
    """The functions of the derivative of the pull, by the groups of directions (``push_functions``)."""


_SHELF = Recent(MOST_LAYOUTS)


def known_of(layout: TapeLayout) -> KnownTapes:
    """What is known of tapes of a layout."""
    key = len(layout.records), tuple(record[0] for record in layout.records), layout.rest
    with _SHELF.changing:
        alike: list[KnownTapes] = _SHELF.of(key, list)
        for number in reversed(range(len(alike))):
            known = alike[number]
            if known.layout.is_of(layout):
                alike.append(alike.pop(number))
                return known
        known = KnownTapes(layout)
        alike.append(known)
        del alike[:-MOST_ALIKE]
        return known


@define(eq=False)
class RepeatedPulls:
    """What is known of the calls of one pull."""

    tape: Tape
    known: dict[tuple[int, ...], tuple[KnownTapes, list[Any]] | None] = field(factory=dict, init=False)
    """What is known, with the values that the records hold, by the records that are seeded."""
    work: dict[ReverseFunction, Workspace] = field(factory=dict, init=False)

    def of(self, several: Sequence[list[Any]], enough: int) -> list[list[Any] | None]:
        """The cotangents of the inputs for each seed, None where there is none, from those of the records; None where
        the tape has to be swept. A function is made after ``enough`` sweeps of such tapes."""
        tape, found = self.tape, list[list[Any] | None]([None] * len(several))
        if tape.outer is not None or tape.marks is not None or TRAPPED.get():
            return found
        alike: dict[tuple[int, ...], list[int]] = {}
        for number, cts in enumerate(several):
            seeded = tuple(i for i, ct in enumerate(cts) if ct is not None)
            if all(i >= tape.n_inputs for i in seeded):
                alike.setdefault(seeded, []).append(number)
        for seeded, numbers in alike.items():
            if seeded not in self.known:
                first = several[numbers[0]]
                self.known[seeded] = self._looked_up(first, seeded) if len(self.known) < MOST_SEEDED else None
            known = self.known[seeded]
            if known is not None:
                seeds = [[several[number][i] for i in seeded] for number in numbers]
                for number, answer in zip(numbers, self._of_known(*known, seeded, seeds, enough), strict=True):
                    found[number] = answer
        return found

    def _of_known(
        self, known: KnownTapes, values: list[Any], seeded: tuple[int, ...], seeds: list[list[Any]], enough: int
    ) -> list[list[Any] | None]:
        found = list[list[Any] | None]([None] * len(seeds))
        known.count += len(seeds)
        if known.count <= enough and known.reverse is None and not known.stacked:
            return found
        first = dict(zip(seeded, seeds[0], strict=True))
        n = at_once(values, seeds)
        if n > 1:
            pays = known.count > max(enough, TIMES * len(seeds)) and len(known.stacked) < MOST_WIDTHS
            if n not in known.stacked and pays:
                known.stacked[n] = made_reverse(self.tape, first, n)
            together = known.stacked.get(n)
            if together is not None and all(map(together.takes, seeds)):
                work = self._work_of(together)
                for start in range(0, len(seeds), n):
                    answers = together.each(values, seeds[start : start + n], work)
                    for number, cts in enumerate(answers or (), start):
                        found[number] = cts
        for number, parts in enumerate(seeds):
            if found[number] is None:
                found[number] = self._alone(known, values, parts, first)
        return found

    def _alone(self, known: KnownTapes, values: list[Any], parts: list[Any], first: dict[int, Any]) -> list[Any] | None:
        if known.reverse is None and not known.over:
            known.over, known.reverse = True, made_reverse(self.tape, first)
        one = known.reverse
        if one is None or not one.takes(parts):
            return None
        answers = one.each(values, [parts], self._work_of(one))
        return None if answers is None else answers[0]

    def _work_of(self, reverse: ReverseFunction) -> Workspace:
        if reverse not in self.work:
            self.work[reverse] = Workspace()
        return self.work[reverse]

    def _looked_up(self, cts: list[Any], seeded: tuple[int, ...]) -> Any:
        if len(self.tape.records) > MOST_RECORDS:
            return None
        values: list[Any] = []
        layout = layout_of_tape(self.tape, tuple((i, np.shape(cts[i]), cts[i].dtype) for i in seeded), values)
        return None if layout is None else (known_of(layout), values)


def at_once(values: list[Any], seeds: list[list[Any]]) -> int:
    """How many seeds go through a function at once: as many parts of one size, none with more than it may hold."""
    largest = max(x.nbytes for x in (*values, *seeds[0], np.float64()))
    most = min(AT_ONCE, STACKED_BYTES // largest)
    return -(-len(seeds) // -(-len(seeds) // most)) if most > 1 else 1


def layout_of_tape(tape: Tape, seeds: tuple[Any, ...], values: list[Any]) -> TapeLayout | None:
    """The layout of a tape, whose values are gathered; None where something is held that is no array."""
    numbers: dict[int, HeldOfTape] = {}
    kinds: list[Any] = []

    def held(value: Any) -> Any:
        if type(value) is tuple:
            return tuple(map(held, value))
        if isinstance(value, NUMBERS) and not isinstance(value, np.generic):
            return value
        found = numbers.get(id(value))
        if found is None:
            kinds.append((type(value), value.shape, value.dtype, value.strides))
            values.append(value)
            found = numbers[id(value)] = HeldOfTape(len(numbers))
        return found

    records = []
    for record in tape.records:
        form = FORMS[record[0]]  # type: ignore[index]  # a tape that is pulled again has all its records
        if form.wide or (form.saved and not form.rules):
            return None
        told: Any = record
        try:
            if form.saved:
                told = form.with_saved(told, map(held, form.saved_values(told)))
        except AttributeError:
            return None
        records.append(told[:-1])
    return TapeLayout(records, kinds, (tape.n_inputs, tape.masks, seeds))
