"""What is alive at each step of the reverse sweep of a chain, as the recipes of its steps and the sizes of their values
tell: the values that a replay has, the tape of a step, and the cotangents of this step, of what earlier steps hand on
and of what waits."""

from array import array
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from attrs import define, field, frozen

from pullback.memory.ledger import nbytes_of, record_items
from pullback.memory.temporaries import on_the_way
from pullback.memory.working_bytes import RECORD_BYTES
from pullback.programs.replay.needed_values import Needs, StepNeeds
from pullback.programs.replay.recipes import Pattern
from pullback.programs.replay.step_recipes import HORIZON, StepRecipes
from pullback.recording.handles import plain_value, root_of
from pullback.recording.writes import WRITE_OPCODES
from pullback.rules.forms import FORMS

SIZES_BYTES: Final = 1000
"""Bytes of the sizes of the values of one pattern, beside each size: of the array, its place, and their part of the
rest."""


@define(eq=False)
class ValueBytes:
    """The bytes of the values of the steps that are over, the most for each place of a pattern."""

    patterns: dict[int, "array[int]"] = field(factory=dict)
    """The bytes for each place, by the ``id`` of a pattern; less than 0 for a view, which lies in another value."""
    residuals: dict[int, int] = field(factory=dict)
    """What the records of a step hold that is no value of it."""

    def ended(self, pattern: Pattern, made: "array[int]", residuals: int) -> None:
        """A step is over that has ``made`` values of these bytes."""
        n = len(pattern.recipes)
        found = made[:n] + array("q", [0] * (n - len(made)))
        known = self.patterns.get(id(pattern), found)
        if known is not found and known != found:
            found = array("q", [max(pair, key=abs) for pair in zip(known, found, strict=True)])
        self.patterns[id(pattern)] = found
        self.residuals[id(pattern)] = max(residuals, self.residuals.get(id(pattern), 0))


@define(eq=False)
class MeasuredRecipes(StepRecipes):
    """The recipes of steps whose values are measured."""

    told_at_end: ClassVar[bool] = True
    tape: Any = None
    made: "array[int]" = field(factory=lambda: array("q"))
    """The bytes of the values of the step under way; less than 0 for a view."""
    sizes: ValueBytes = field(factory=ValueBytes)
    whole: int | None = None
    """The bytes in which the steps would be held whole, where that was asked after the last one."""

    @property
    def nbytes(self) -> int:
        """What Python takes for these, about, with the sizes of the values."""
        return super().nbytes + sum(SIZES_BYTES + 8 * len(each) for each in (self.made, *self.sizes.patterns.values()))

    def stands(self, handle: Any) -> None:
        """A handle stands for another value, which is measured."""
        place, made, nbytes = handle._id - self.start, self.made, nbytes_of(plain_value(handle._value))
        if place >= len(made):
            made.extend([0] * (place + 1 - len(made)))
        if place >= 0:
            made[place] = nbytes if root_of(handle) is handle else -nbytes

    def ends(self, pattern: Pattern, others: tuple[Any, ...] | None, ident: int) -> None:
        """The step under way is of this pattern: what its values take is known."""
        residuals = 0
        if id(pattern) not in self.sizes.patterns:
            items = record_items(self.tape.records[self.start : ident])
            residuals = sum(nbytes for _, nbytes, reason in items if reason == "residual")
        self.sizes.ended(pattern, self.made, residuals)
        self.made = array("q")
        super().ends(pattern, others, ident)


@frozen
class Executed:
    """What executing a step again makes, beside what is there when it begins."""

    advanced: int
    """The most at once where its values alone are wanted."""
    recorded: int
    """The most at once where it is recorded."""
    tape: int
    """What its records hold then."""
    freed: Mapping[int, int]
    """The bytes of these that the sweep lets go of with the record at each place."""


@define(eq=False)
class SweepBytes:
    """The bytes that are there during the reverse pass of a chain whose steps are all executed again from its first
    snapshot, beside that."""

    recipes: StepRecipes
    needs: Needs
    sizes: ValueBytes
    before: Mapping[int, int]
    """The bytes of values from before the chain, by id."""
    executed: dict[int, Executed] = field(factory=dict, init=False)
    state: int = field(default=0, init=False)
    """The most bytes of values of the steps that one of them begins with."""
    views: dict[int, dict[int, int]] = field(factory=dict, init=False)
    """The value that each view looks at, as it stands in the recipes, by its place and the ``id`` of a pattern."""

    def __attrs_post_init__(self) -> None:
        for pattern in set(self.recipes.patterns):
            values = self.sizes.patterns[id(pattern)]
            self.views[id(pattern)] = {
                place: recipe.arguments[0]
                for place, recipe in enumerate(pattern.recipes)
                if recipe is not None and values[place] < 0 and type(recipe.arguments[0]) is int
            }

    def nbytes(self, ident: int) -> int:
        """The bytes of a value, or of the part that a view has of one."""
        recipes = self.recipes
        if ident < recipes.cuts[0]:
            return self.before.get(ident, 0)
        step = recipes.step_of(ident)
        if step >= len(recipes.patterns):
            return 0
        return abs(self.sizes.patterns[id(recipes.patterns[step])][ident - recipes.cuts[step]])

    def most(self, waiting: Mapping[int, int]) -> tuple[int, "array[int]"]:
        """The most bytes at once; and by step, while it is reversed. ``waiting`` are the cotangents that come to the
        chain: id to bytes."""
        runs, before = self._far_bytes(), 0
        for step in range(len(runs)):
            env, found = runs[step] + self._near_bytes(step), self._executed(step)
            self.state = max(self.state, env)
            runs[step], before = max(before, env + found.recorded), max(before, env + found.advanced)
        live, most = dict(waiting), 0
        for step in range(len(runs) - 1, -1, -1):
            most = max(most, runs[step] + sum(live.values()))
            runs[step] = self._back(step, live)
            most = max(most, runs[step])
        return most, runs

    def _far_bytes(self) -> "array[int]":
        """By step: what the replay has as it begins of values that were made more than ``HORIZON`` steps before."""
        n, first = len(self.needs.steps), self.recipes.cuts[0]
        changes = array("q", bytes(8 * (n + 1)))
        for ident, (last, _) in self.needs.far.items():
            if ident >= first and (begins := self.recipes.step_of(ident) + HORIZON + 1) <= last:
                nbytes = self.nbytes(self._root(ident))
                changes[begins] += nbytes
                changes[last + 1] -= nbytes
        for step in range(n):
            changes[step + 1] += changes[step]
        changes.pop()
        return changes

    def _near_bytes(self, step: int) -> int:
        """The same of the others."""
        start, first = self.recipes.cuts[step], self.recipes.cuts[0]
        found = {self._root(start + k) for k in self.needs.steps[step].before}
        return sum(self.nbytes(ident) for ident in found if ident >= first)

    def _executed(self, step: int) -> Executed:
        needs = self.needs.steps[step]
        found = self.executed.get(id(needs))
        if found is None:
            advanced, _, _ = self._execute(step, needs, records=False)
            recorded, freed, tape = self._execute(step, needs, records=True)
            found = self.executed[id(needs)] = Executed(advanced, recorded, tape, freed)
        return found

    def _execute(self, step: int, needs: StepNeeds, *, records: bool) -> tuple[int, dict[int, int], int]:
        """The most bytes that a step makes at once; those that go with the record at each place; what records hold."""
        pattern, start, first = self.recipes.patterns[step], self.recipes.cuts[step], self.recipes.cuts[0]
        holders: dict[int, int] = {}
        pinned: dict[int, int] = {}
        for coded in needs.before:
            self._hold(holders, start + coded)
        live = most = 0
        for place, recipe in enumerate(pattern.recipes):
            if recipe is None:
                continue
            ident, ids = start + place, [self.recipes.ident(a, start) for a in recipe.ids()]
            dropped = [self._root(start + coded) for coded in needs.dropped[place]]
            if place in needs.values:
                made = self.nbytes(ident) if self._root(ident) == ident else 0
                if recipe.skeleton[0] in WRITE_OPCODES and _goes_in_place(ids, holders, pinned, dropped):
                    most = max(most, live)
                else:
                    largest = max(map(self.nbytes, (ident, *ids)), default=0)
                    most = max(most, live + int(largest * on_the_way(recipe.skeleton)[0]), live + made)
                live += made
                self._hold(holders, ident)
            for coded in recipe.saved_ids(place) if records else ():
                pinned.setdefault(self._root(self.recipes.ident(coded, start)), place)
            for root in dropped:
                if root in holders:
                    holders[root] -= 1
                    if not holders[root]:
                        del holders[root]
                        live -= self.nbytes(root) if root >= first and root not in pinned else 0
        freed: dict[int, int] = {}
        for root, place in pinned.items():
            freed[place] = freed.get(place, 0) + (self.nbytes(root) if root >= first else 0)
        tape = sum(freed.values()) + self.sizes.residuals.get(id(pattern), 0) + RECORD_BYTES * len(pattern.recipes)
        return most, freed, tape

    def _root(self, ident: int) -> int:
        """The id of the value in whose memory another lies."""
        recipes, first = self.recipes, self.recipes.cuts[0]
        while ident >= first and (step := recipes.step_of(ident)) < len(recipes.patterns):
            start = recipes.cuts[step]
            coded = self.views[id(recipes.patterns[step])].get(ident - start)
            if coded is None:
                break
            ident = recipes.ident(coded, start)
        return ident

    def _hold(self, holders: dict[int, int], ident: int) -> None:
        root = self._root(ident)
        holders[root] = holders.get(root, 0) + 1

    def _back(self, step: int, live: dict[int, int]) -> int:
        """The most bytes while a step is reversed: of its tape, as far as that is there, and of the cotangents
        ``live``, which become those of the step before."""
        found, start = self._executed(step), self.recipes.cuts[step]
        total, tape = sum(live.values()), found.tape
        most = total + tape
        recipes = self.recipes.patterns[step].recipes
        for place in range(len(recipes) - 1, -1, -1):
            recipe, ident = recipes[place], start + place
            if recipe is not None and ident in live:
                ids = [self.recipes.ident(a, start) for a in FORMS[recipe.skeleton[0]].ids(recipe.skeleton)]
                known = [self.nbytes(i) or live[ident] for i in ids]
                new = {i: nbytes for i, nbytes in zip(ids, known, strict=True) if i not in live}
                added = max(0, len(ids) - len(new) - (len(ids) > 1))  # another lies beside a cotangent first
                temporary = (on_the_way(recipe.skeleton)[1] + added) * max((live[ident], *known))
                most = max(most, tape + total + sum(new.values()) + int(temporary))
                total += sum(new.values()) - live.pop(ident)
                live.update(new)
            tape -= found.freed.get(place, 0)
        return most


def _goes_in_place(
    ids: Sequence[int], holders: Mapping[int, int], pinned: Mapping[int, int], dropped: Sequence[int]
) -> bool:
    """Whether a write goes into the array that it is for: nothing else reads or holds that."""
    return bool(ids) and ids[0] in dropped and holders.get(ids[0]) == 1 and ids[0] not in pinned
