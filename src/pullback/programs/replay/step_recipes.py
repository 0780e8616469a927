"""What re-executes the steps of a recorded program: recipes, one for each record, shared between the steps that do the
same.

An id in a recipe counts from the first record of its step, or, of a value made more than ``HORIZON`` steps before,
stands as :data:`AROUND` below its own. So the recipes of two steps that do the same are equal, and the same: a step
beyond the first costs its cut, a pattern by reference, and the plain operands that differ from those of the pattern.
Where a chain is one call of a function, values of the program around are numbered as they are met, in the place of
their ids: then the recipes of the next call are the same, too.
"""

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import starmap
from operator import is_
from typing import Any, ClassVar, Final

from attrs import define, field

from pullback.programs.replay.recipes import Calls, Operand, Pattern, Recipe, operand_at
from pullback.rules.forms import FORMS
from pullback.words.call_sites import site_text
from pullback.words.sameness import same_content

AROUND: Final = 1 << 62
"""Taken from an id that does not count from the step."""
FAR: Final = -(1 << 61)
"""What is below this is such an id."""
HORIZON: Final = 16
"""How many steps back ids count from the step that reads them."""
MOST_PATTERNS: Final = 8
"""How many of the newest patterns a step is compared with."""
MOST_CALLED: Final = 24
"""How many of them a call is compared with."""
STEP_BYTES: Final = 40
"""Bytes of a step that is over: its cut, and its places in lists of patterns, of operands, of needs and of sizes."""
BOOK_BYTES: Final = 120
"""Bytes of a step while the way back is gone: what its tape and its replay are known by."""
SLOT_BYTES: Final = 8
"""Bytes of a record that has let go of its values: its place on the tape."""
RECIPE_BYTES: Final = 700
"""About those of a recipe and what it is needed for, its tuples and ints included."""
OPERANDS_BYTES, OPERAND_BYTES = 48, 40
"""Bytes of the plain operands of a step: of their tuple, and of each with its place there."""
NOTHING: Final = object()


@define(eq=False)
class StepRecipes:
    """The recipes of one chain, step by step; those of the step under way are ``open``."""

    cuts: "array[int]" = field(factory=lambda: array("q"))
    """The first record of each step; behind the last, where the chain ends."""
    patterns: list[Pattern] = field(factory=list)
    """The pattern of each step that is over."""
    others: list[tuple[Any, ...] | None] = field(factory=list)
    """The places of the plain operands of each step that are not those of the pattern, as one tuple, and these."""
    open: list[Recipe | None] = field(factory=list)
    operands: list[Any] = field(factory=list)
    """The plain operands of the step under way."""
    start: int = 0
    """Its first record."""
    near: int = 0
    """The first record of those whose ids count from it."""
    followed: Pattern | None = None
    """What the step under way is compared with."""
    recent: list[Pattern] = field(factory=list)
    places: dict[tuple[int, ...], tuple[int, ...]] = field(factory=dict)
    calls: Calls | None = None
    """The calls of a chain that is one call of a function."""
    numbers: dict[int, int] = field(factory=dict)
    """There: the number of each value of the program around, by its id."""
    around: list[int] = field(factory=list)
    """The ids of these."""
    told_at_end: ClassVar[bool] = False
    """Whether it is not known before the trace has ended what their reverse pass takes."""
    most: int | None = None
    """The most bytes of a reverse pass that executes all steps again from the first snapshot, beside what is held when
    it begins. None before that is known, which takes the end of the trace, and for recipes that are not measured."""

    @property
    def nbytes(self) -> int:
        """What Python takes for these, about: arrays among the operands are not in it, nor what calls share."""
        patterns = {id(each): each for each in self.patterns} if self.calls is None else {}
        n_recipes = sum(len(pattern.recipes) for pattern in patterns.values())
        own = [len(others) - 1 for others in self.others if others is not None]
        n_records = self.cuts[-1] - self.cuts[0] if self.cuts else 0
        return (
            STEP_BYTES * len(self.patterns)
            + SLOT_BYTES * n_records
            + RECIPE_BYTES * n_recipes
            + OPERANDS_BYTES * len(own)
            + OPERAND_BYTES * sum(own)
        )

    def first_line(self) -> str:
        """The user's line of the first operation."""
        first = next((recipe for pattern in self.patterns for recipe in pattern.recipes if recipe), None)
        return "an unknown line" if first is None else site_text(first.skeleton[-1])

    def begin(self, ident: int) -> None:
        """The first step starts at record ``ident``."""
        self.cuts.append(ident)
        self.start = self.near = ident
        if self.calls is not None and self.calls.patterns:
            self.recent = [*self.calls.patterns]
            self.followed = self.recent[0]

    def cut(self, ident: int) -> bool:
        """The step under way is over, and another starts. Whether it is known that it did what the last two did."""
        pattern = self._pattern()
        self.ends(pattern, self._others(pattern), ident)
        self.open, self.operands = [], []
        return False

    def ends(self, pattern: Pattern, others: tuple[Any, ...] | None, ident: int) -> None:
        """The step under way is of this pattern, with these operands of its own."""
        self.patterns.append(pattern)
        self.others.append(others)
        self.cuts.append(ident)
        self.followed = pattern
        self.start, self.near = ident, self.floor(len(self.patterns))

    def _pattern(self) -> Pattern:
        mine = self.open
        for pattern in (self.followed, *self.recent):
            if pattern is not None and len(pattern.recipes) == len(mine) and _are(pattern.recipes, mine):
                if self.calls is not None:
                    self.calls.n_new, pattern.n = 0, pattern.n + 1
                return pattern
        operands = self.operands if self.calls is None else [NOTHING] * len(self.operands)
        made = Pattern(tuple(mine), tuple(operands))
        self.recent = [made, *self.recent[: MOST_PATTERNS - 1]]
        if self.calls is not None:
            self.calls.n_new += 1
            # a loop function runs again on what its own call closes over
            if all(not (e.rerun and e.form.steps) if e is not None else self.calls.may_miss for e in mine):
                self.calls.patterns = (made, *self.calls.patterns[: MOST_CALLED - 1])
        return made

    def _others(self, pattern: Pattern) -> tuple[Any, ...] | None:
        pairs = enumerate(zip(pattern.operands, self.operands, strict=True))
        return self.apart([(k, b) for k, (a, b) in pairs if a is not b and not same_content(a, b)])

    def follow(self) -> None:
        """A step begins: whoever compares its records immediately may do so."""

    def apart(self, differ: list[tuple[int, Any]]) -> tuple[Any, ...] | None:
        """Plain operands of a step, each with its place, as ``others`` has them."""
        if not differ:
            return None
        places = tuple([place for place, _ in differ])
        return self.places.setdefault(places, places), *[value for _, value in differ]

    def stands(self, handle: Any) -> None:
        """A handle stands for another value: whoever measures these may do so."""

    # The step under way.
    def add(self, ident: int, record: tuple[Any, ...], arguments: Any, params: Any, rerun: Any = None) -> None:
        """``record`` is made. ``arguments`` are its operands, as :meth:`coded` and :meth:`operand` give them."""
        mine, place = self.open, ident - self.start
        while len(mine) < place:
            mine.append(None)
        recipe, followed = None, self.followed
        if followed is not None and place < len(followed.recipes):
            recipe = followed.recipes[place]
            if recipe is not None and not recipe.says(record, arguments, params, rerun):
                recipe = None
        recipe = recipe or self._other(place, record, arguments, params, rerun)
        mine.append(recipe or Recipe(self._skeleton(record), arguments, params, rerun))

    def coded(self, ident: int) -> int:
        """How a value stands in the recipes of the step under way."""
        if ident >= self.near:
            return ident - self.start
        if self.calls is None:
            return ident - AROUND
        number = self.numbers.get(ident)
        if number is None:
            number = self.numbers[ident] = len(self.around)
            self.around.append(ident)
        return number - AROUND

    def ident(self, coded: int, start: int) -> int:
        """The id that stands for a value in a recipe of the step that starts at ``start``."""
        if coded >= FAR:
            return coded + start
        return coded + AROUND if self.calls is None else self.around[coded + AROUND]

    def _skeleton(self, record: tuple[Any, ...]) -> tuple[Any, ...]:
        """A record with its ids as they stand in recipes, and without the values it holds."""
        form = FORMS[record[0]]
        if form.wide:
            return (record[0], tuple(map(self.coded, record[1])), *record[2:])
        first = 1 + len(form.active)
        made = (record[0], *map(self.coded, record[1:first]), *(None,) * len(form.saved), *record[form.first_spec :])
        return _moved(made, form.own, -self.start)

    def operand(self, value: Any) -> Operand:
        """A plain operand is met."""
        self.operands.append(value)
        return operand_at(len(self.operands) - 1)

    def _other(self, place: int, record: Any, arguments: Any, params: Any, rerun: Any) -> Recipe | None:
        """The recipe of another pattern that begins as the step does, where it is this; that is followed then."""
        for other in self.recent:
            if other is not self.followed and place < len(other.recipes):
                recipe = other.recipes[place]
                says = recipe is not None and recipe.says(record, arguments, params, rerun)
                if says and _are(other.recipes, self.open):
                    self.followed = other
                    return recipe
        return None

    # The steps that are over.
    def read_before(self) -> set[int]:
        """The ids of the values from before the steps to which they send cotangents."""
        each = {recipe for pattern in set(self.patterns) for recipe in pattern.recipes if recipe is not None}
        coded = {k for recipe in each if not recipe.form.entering for k in recipe.form.ids(recipe.skeleton) if k < FAR}
        return {ident for ident in (self.ident(k, 0) for k in coded) if ident < self.cuts[0]}

    def floor(self, step: int) -> int:
        """The first record of those whose ids count from ``step``."""
        return self.cuts[max(step - HORIZON, 0)]

    def operands_of(self, step: int) -> tuple[Any, ...]:
        """The plain operands of a step."""
        operands, others = self.patterns[step].operands, self.others[step]
        if others is None:
            return operands
        mixed = list(operands)
        for place, value in zip(others[0], others[1:], strict=True):
            mixed[place] = value
        return tuple(mixed)

    def step_of(self, ident: int) -> int:
        """The step that a record is of."""
        return bisect_right(self.cuts, ident) - 1

    def get(self, ident: int) -> Recipe | None:
        """The recipe of a record; None where nothing re-executes it."""
        if not self.cuts or not self.cuts[0] <= ident:
            return None
        step = self.step_of(ident)
        recipes = self.recipes_of(step)
        place = ident - self.cuts[step]
        return recipes[place] if place < len(recipes) else None

    def record_of(self, ident: int) -> tuple[Any, ...] | None:
        """The record ``ident`` without the values it holds."""
        recipe = self.get(ident)
        return None if recipe is None else self.recorded(recipe, self.cuts[self.step_of(ident)])

    def recorded(self, recipe: Recipe, start: int) -> tuple[Any, ...]:
        """The skeleton of a recipe with its own ids, in the step that starts at ``start``."""
        skeleton, form = recipe.skeleton, recipe.form
        if form.wide:
            return (skeleton[0], tuple(self.ident(a, start) for a in skeleton[1]), *skeleton[2:])
        last = 1 + len(form.active)
        made = skeleton[0], *(self.ident(a, start) for a in skeleton[1:last]), *skeleton[last:]
        return _moved(made, form.own, start)

    def __iter__(self) -> Iterator[int]:
        """The ids of all records that are re-executed."""
        for step, start in enumerate(self.cuts):
            yield from (start + place for place, recipe in enumerate(self.recipes_of(step)) if recipe is not None)

    def recipes_of(self, step: int) -> Sequence[Recipe | None]:
        """The recipes of a step, as far as it has come."""
        return self.patterns[step].recipes if step < len(self.patterns) else self.open


def _moved(record: tuple[Any, ...], own: int, by: int) -> tuple[Any, ...]:
    """A record whose own id, where it holds that, counts from elsewhere."""
    return (*record[:own], record[own] + by, *record[own + 1 :]) if own else record


def _are(recipes: Any, others: Any) -> bool:
    """Whether the recipes begin with these others."""
    return all(starmap(is_, zip(recipes, others, strict=False)))
