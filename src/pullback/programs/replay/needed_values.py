"""Which values a replay must compute, and until when: ancestors of what the pullbacks read, no more.

Steps that do the same, and after which the same is needed, share one :class:`StepNeeds`.
"""

from collections.abc import Iterable
from typing import Any, Final

from attrs import define, field, frozen

from pullback.programs.replay.recipes import Pattern
from pullback.programs.replay.step_recipes import FAR, HORIZON, StepRecipes

LATER: Final = 1 << 62
"""The place of a use that comes after the step."""


@frozen(eq=False)
class StepNeeds:
    """The needs of one step; ids count from its first record."""

    pattern: Pattern = field(repr=False)
    after: frozenset[int]
    """The values of the step, or from before it, that later steps read."""
    values: frozenset[int]
    """The places of what is computed."""
    last_use: dict[int, int]
    """Id to the place of the last recipe that computes or saves with it."""
    dropped: tuple[tuple[int, ...], ...]
    """The ids that nothing reads any more after each place."""
    before: frozenset[int]
    """What is read, here or later, of the values that the steps before have made, but for the far ones."""
    far: tuple[tuple[int, int], ...]
    """The far values that are read here, each with the place of its last use."""


@define(eq=False)
class Needs:
    """The needs of all steps of a chain."""

    steps: list[StepNeeds] = field(factory=list)
    far: dict[int, tuple[int, int]] = field(factory=dict)
    """Values that are read from far: id to the step and place of the last recipe that does."""

    @classmethod
    def of(cls, recipes: StepRecipes) -> "Needs":
        """The needs of the steps that are over."""
        needs = cls()
        known: dict[Any, StepNeeds] = {}
        after: frozenset[int] = frozenset()
        still_near: dict[int, set[int]] = {}
        for step in range(len(recipes.cuts) - 2, -1, -1):  # an interrupt may have come before the last cut
            pattern, start = recipes.patterns[step], recipes.cuts[step]
            length = recipes.cuts[step + 1] - start
            read = {k + length for k in after}
            read |= {k - start for k in still_near.pop(step, ())}
            key = pattern, frozenset(read)
            found = known.get(key) or pattern.kept.get(key[1])
            if found is None:
                found = known[key] = _of_step(pattern, key[1])
                if recipes.calls is not None:
                    pattern.kept[key[1]] = found
            needs.steps.append(found)
            needs._read_far(recipes, step, found, still_near)
            after = found.before
        needs.steps.reverse()
        return needs

    def _read_far(self, recipes: StepRecipes, step: int, found: StepNeeds, still_near: dict[int, set[int]]) -> None:
        """Enter the far values that a step reads; ``still_near`` gets each at the last step from which it is not
        far."""
        for coded, place in found.far:
            ident = recipes.ident(coded, 0)
            if ident not in self.far:
                self.far[ident] = step, place
                if ident >= recipes.cuts[0]:
                    still_near.setdefault(recipes.step_of(ident) + HORIZON, set()).add(ident)

    def reads_from(self, step: int, ident: int, recipes: StepRecipes) -> bool:
        """Whether a step from ``step`` on reads a value."""
        if step < len(self.steps) and ident >= recipes.floor(step):
            return ident - recipes.cuts[step] in self.steps[step].before
        return self.far.get(ident, (-1, -1))[0] >= step

    def last_use(self, step: int, ident: int, recipes: StepRecipes) -> int:
        """The place in ``step`` of the last use of a value, -1 where that was before."""
        if ident >= recipes.floor(step):
            return self.steps[step].last_use.get(ident - recipes.cuts[step], -1)
        at, place = self.far.get(ident, (-1, -1))
        return LATER if at > step else place if at == step else -1


def _of_step(pattern: Pattern, after: frozenset[int]) -> StepNeeds:
    """The needs of a step, where the values ``after`` are read later."""
    values, last_use = set(after), dict.fromkeys(after, LATER)
    for place in range(len(pattern.recipes) - 1, -1, -1):
        recipe = pattern.recipes[place]
        if recipe is None:
            continue
        saved = recipe.saved_ids(place)
        values |= saved
        if recipe.collective:
            values.add(place)
        used: Iterable[int] = saved
        if place in values:
            used = (*saved, *recipe.ids())
            values.update(recipe.ids())
        for value in used:
            last_use.setdefault(value, place)
    dropped = (
        () if recipe is None else tuple(k for k in {*recipe.ids(), place} if k >= FAR and last_use.get(k, -1) <= place)
        for place, recipe in enumerate(pattern.recipes)
    )
    return StepNeeds(
        pattern=pattern,
        after=after,
        values=frozenset(k for k in values if k >= 0),
        last_use=last_use,
        dropped=tuple(dropped),
        before=frozenset(k for k in last_use if FAR <= k < 0),
        far=tuple((k, place) for k, place in last_use.items() if k < FAR),
    )
