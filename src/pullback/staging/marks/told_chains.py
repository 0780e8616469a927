"""What a policy's chain is told of a step that was followed: which recipes execute it again, its plain operands, and
what it has read from before it."""

from collections.abc import Sequence
from typing import Any

from attrs import frozen

from pullback.programs.replay.followed_steps import NOTHING
from pullback.programs.replay.recipes import Operand, Pattern
from pullback.recording.writes import WRITE_OPCODES
from pullback.staging.shadow.operations import CAPTURE
from pullback.words.sameness import same_content


@frozen(eq=False)
class Side:
    """A followed step, as its chain knows it."""

    pattern: Pattern
    operands: tuple[int, ...]
    """The place of each plain operand of the step among those of the pattern."""
    reads: tuple[tuple[bool, int, int], ...]
    """What it reads from before it: whether it is captured, the place among what is, or among what enters, and how it
    stands in the recipes."""

    @classmethod
    def of(cls, recipes: Any, stage: Any, done: Any) -> "Side | None":
        """The side of the stage of a step that was recorded last; None where its recipes say another thing."""
        operations, ranges, constants, captured, ids, start = done
        step = len(recipes.patterns) - 1
        if step < 0 or recipes.cuts[step] != start:
            return None
        pattern, given = recipes.patterns[step], iter(constants)
        values = recipes.operands_of(step)
        if len(pattern.recipes) != stage.n_records or None in pattern.recipes:
            return None
        operands: list[int] = []
        for op, (first, last) in zip(operations, ranges, strict=True):
            mine = [next(given) for o in op.operands if type(o) is not int and op.what is not CAPTURE]
            places = [a.place for e in pattern.recipes[first - start : last - start] for a in e.arguments
                      if type(a) is Operand]  # fmt: skip
            if len(places) != len(mine) or not all(_alike(values[p], x) for p, x in zip(places, mine, strict=True)):
                return None
            operands += places
        if sorted(operands) != list(range(len(pattern.operands))):
            return None
        reads = _reads(recipes, pattern, start, captured, ids)
        return None if reads is None else cls(pattern, tuple(operands), reads)

    def is_expected(self, recipes: Any) -> bool:
        """Whether the step under way is compared with this pattern."""
        return recipes.told is not NOTHING and recipes.at == 0 and recipes.patterns[-1] is self.pattern

    def says(self, recipes: Any, ids: Sequence[int], captured: Sequence[int]) -> bool:
        """Whether the step under way, which values of these ids have entered, reads what the recipes say."""
        for is_captured, place, coded in self.reads:
            if (captured if is_captured else ids)[place] != recipes.ident(coded, recipes.start):
                return False
        return True

    def tell(self, chain: Any, ids: Sequence[int], run: Any, n_records: int) -> None:
        """The step is over."""
        recipes, snapshots = chain.recipes, chain.snapshots
        wanted = self.pattern.operands
        recipes.differ = [
            (place, value)
            for place, value in zip(self.operands, run.constants, strict=True)
            if value is not wanted[place] and not same_content(wanted[place], value)
        ]
        recipes.at = n_records
        newest = snapshots.newest
        if newest is None:
            return
        for is_captured, place, _ in self.reads:
            ident = run.captured[place] if is_captured else ids[place]
            if ident < newest.cut and ident not in newest.values:
                handle = run.outside[place] if is_captured else None
                snapshots.read(ident, run.values[place] if is_captured else run.inputs[place], handle)


def _reads(
    recipes: Any, pattern: Pattern, start: int, captured: Sequence[int], ids: Sequence[int]
) -> tuple[tuple[bool, int, int], ...] | None:
    """See :class:`Side`; None where a value is read that has not come in."""
    found: dict[tuple[bool, int, int], None] = {}
    for recipe in pattern.recipes:
        for k, argument in enumerate(recipe.arguments):  # type: ignore[union-attr]  # None is not among them
            if type(argument) is not int or argument >= 0:
                continue
            if recipe.skeleton[0] in WRITE_OPCODES and k == 0:  # type: ignore[union-attr]
                return None  # what is from before the step is written
            ident = recipes.ident(argument, start)
            if ident in ids:
                found[False, list(ids).index(ident), argument] = None
            elif ident in captured:
                found[True, list(captured).index(ident), argument] = None
            else:
                return None
    return tuple(found)


def _alike(held: Any, given: Any) -> bool:
    return held is given or same_content(held, given)
