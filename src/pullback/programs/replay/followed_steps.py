"""Steps of plain code that do what the step before did: each record is compared with the recipe expected next, and only
what differs is stored.

The comparison is that of :meth:`Recipe.says`. Where a record says something else, the step is treated as a new one.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
from attrs import define, field

from pullback.programs.replay.recipes import Operand, Pattern, Recipe
from pullback.programs.replay.step_recipes import AROUND, FAR, StepRecipes
from pullback.recording.handles import Handle
from pullback.recording.tape import Ident, Tape
from pullback.recording.writes import WRITE_OPCODES
from pullback.rules.forms import Form
from pullback.rules.rule_names import positions
from pullback.words.sameness import same_content


class Reads(Protocol):
    """Who is told of what is read from before a step: the snapshots."""

    @property
    def newest(self) -> Any:
        """The newest snapshot that is being filled; None where there is none."""

    def read(self, ident: int, value: Any, operand: Any) -> None:
        """A record reads a value."""


class ToldRecipe(NamedTuple):
    """A recipe, as a record is compared with it."""

    opcode: int
    site: Any
    """The call site, where the record tells nothing else beside ids and values; else None."""
    own: tuple[tuple[int, int], ...]
    """The values of the step: place in the record, and id from the first of the step."""
    before: tuple[tuple[int, int, bool, int], ...]
    """The values from before the step: place and id likewise, whether it is far, so that the id is its own, and the
    place among the operands; -1 where it is written and not read."""
    plain: tuple[tuple[int, int, Any, int], ...]
    """The plain operands: place among the operands and in the step, what it was in the first, and the place in the
    record where a held copy of it is, too; else 0."""
    recipe: Recipe


NOTHING: Final = (None,)


@define(eq=False)
class FollowedRecipes(StepRecipes):
    """The recipes of steps of which many do what the last two did."""

    tape: Tape = field(kw_only=True)
    reads: Reads = field(kw_only=True)
    told: Sequence[ToldRecipe | None] = NOTHING
    """What the records of the step under way are compared with; None behind the last. Then nothing is ``open``."""
    at: int = 0
    """How many of them have come."""
    differ: list[tuple[int, Any]] = field(factory=list)
    """The plain operands that are not those of the pattern: place and value."""
    tables: dict[Pattern, tuple[Sequence[ToldRecipe | None], int] | None] = field(factory=dict)
    """The table of each pattern that came twice in a row, with the lowest id that counts from the step."""

    def follow(self) -> None:
        """A step begins, and the snapshots that it fills have begun."""
        patterns = self.patterns
        pattern = patterns[-1]
        if len(patterns) < 2 or patterns[-2] is not pattern:
            return
        if pattern not in self.tables:
            self.tables[pattern] = _table(pattern)
        found = self.tables[pattern]
        if found is None or self.start + found[1] < self.near:
            return
        self.told, self.at, self.differ = found[0], 0, []

    def meets(self, record: tuple[Any, ...], operands: Any, values: Any, params: Any, governor: Any) -> bool:
        """Whether a record is the one that is expected. Else nothing has been done."""
        told = self.told[self.at]
        if told is None:
            return self.leave()
        opcode, site, own, before, plain, recipe = told
        start = self.start
        if (
            record[0] != opcode
            or len(operands) != len(recipe.arguments)
            or len(self.tape.records) != start + self.at
            or (record[-1] != site if site is not None else not recipe.says_the_rest(record))
            or (params and not (recipe.rest_holds_params or same_content(recipe.params, params)))
        ):
            return self.leave()
        for place, ident in own:
            if record[place] != start + ident:
                return self.leave()
        for place, ident, far, _ in before:
            if record[place] != (ident if far else start + ident):
                return self.leave()
        for k, place, wanted, held in plain:
            operand = operands[k]
            if operand is not wanted:
                if isinstance(operand, Handle | Ident):
                    return self.leave()
                if held and record[held] is wanted:  # the copy that is held of it
                    continue
                value = values[k]
                if isinstance(value, np.ndarray):
                    value = governor.constant(value, record[-1])
                if value is not wanted and not same_content(wanted, value):
                    self.differ.append((place, value))
        newest = self.reads.newest if before else None
        if newest is not None:
            for place, _, _, k in before:
                ident = record[place]
                if k >= 0 and ident < newest.cut and ident not in newest.values:
                    self.reads.read(ident, values[k], None if type(operands[k]) is Ident else operands[k])
        self.at += 1
        return True

    def leave(self) -> bool:
        """The step is followed no more; what has come of it is ``open``. False."""
        told, at, self.told, self.at = self.told, self.at, NOTHING, 0
        if told is not NOTHING:
            met = [one for one in told[:at] if one is not None]
            self.open = [one.recipe for one in met]
            self.operands = [value for one in met for _, _, value, _ in one.plain]
            for place, value in self.differ:
                if place < len(self.operands):  # else of the record that is told again
                    self.operands[place] = value
        return False

    def cut(self, ident: int) -> bool:
        """As of any recipes, sooner for a step that was followed to its end."""
        if self.told is NOTHING or self.told[self.at] is not None:
            self.leave()
            return StepRecipes.cut(self, ident)
        self.told, self.at = NOTHING, 0
        self.ends(self.patterns[-1], self.apart(self.differ), ident)
        return True

    def recipes_of(self, step: int) -> Sequence[Recipe | None]:
        """The recipes of a step, as far as it has come."""
        if step >= len(self.patterns):
            self.leave()
        return StepRecipes.recipes_of(self, step)


def _table(pattern: Pattern) -> tuple[Sequence[ToldRecipe | None], int] | None:
    """What the records of a step are compared with; None where something in it cannot be."""
    table: list[ToldRecipe | None] = []
    lowest = 0
    for recipe in pattern.recipes:
        if recipe is None or recipe.rest is None:
            return None
        form, opcode = recipe.form, recipe.skeleton[0]
        own, before, plain = [], [], []
        for k, argument in enumerate(recipe.arguments):
            if type(argument) is Operand:
                if k in form.active:
                    return None
                plain.append((
                    k,
                    argument.place,
                    pattern.operands[argument.place],
                    _held(form, k, len(recipe.arguments)),
                ))
                continue
            if k not in form.active:
                return None
            place, read = 1 + form.active.index(k), not (opcode in WRITE_OPCODES and k == 0)
            if recipe.skeleton[place] != argument:
                return None
            if argument >= 0:
                own.append((place, argument))
            elif argument >= FAR:
                before.append((place, argument, False, k if read else -1))
                lowest = min(lowest, argument)
            else:
                before.append((place, argument + AROUND, True, k if read else -1))
        site = recipe.skeleton[-1] if recipe.short else None
        table.append(ToldRecipe(opcode, site, tuple(own), tuple(before), tuple(plain), recipe))
    return (*table, None), lowest


def _held(form: Form, k: int, arity: int) -> int:
    """The place in a record where a plain operand is held; 0 where it is not."""
    for n, name in enumerate(form.saved, 1 + len(form.active)):
        if [*positions(form.primitive, name, arity)] == [k]:
            return n
    return 0
