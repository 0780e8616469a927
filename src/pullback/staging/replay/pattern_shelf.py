"""What is known of the patterns of plain code, kept from one run of a program to the next."""

from typing import Any

from attrs import define

from pullback.programs.replay.needed_values import StepNeeds
from pullback.programs.replay.recipes import Pattern
from pullback.staging.generated.shelf import Recent
from pullback.staging.replay.pattern_stages import PatternStage
from pullback.staging.statements.symbols import Program
from pullback.words.call_sites import site_code

MOST_PATTERNS = 256
MOST_LESSONS = 8
"""How many times a step of one pattern is written down."""


@define(eq=False)
class KnownPattern:
    """What is known of the steps of one pattern after which the same is needed."""

    pattern: Pattern
    after: frozenset[int]
    stages: tuple[PatternStage, ...] = ()
    """One for each kind of values that entered."""
    large: bool = False
    """Whether one of them held more than a step may that is written down by itself."""
    takes_bytes: int = 0
    """What it takes to make functions of large steps, where that waits."""
    waited: int = 0
    """How many steps it has waited."""
    lessons: int = 0
    """How many times such a step was written down."""
    felt: bool = False
    """Whether it is written down from all values that it computes (``staging.statements.symbols.Program``)."""
    wanting: bool = False
    """Whether a step has met cotangents for which there is no reverse."""
    why: str = ""
    """Why these steps are executed from their recipes."""

    @property
    def over(self) -> bool:
        """Whether no more is learned."""
        return self.lessons >= MOST_LESSONS

    def failed(self, error: Exception, program: Program, stage: PatternStage | None = None) -> None:
        """These steps cannot be written down, or only from all values that the next of them computes: then a ``stage``
        that was made without goes."""
        if program.unfelt:
            self.felt = True
            self.stages = tuple(other for other in self.stages if other is not stage)
        else:
            self.lessons, self.why = MOST_LESSONS, str(error) or type(error).__name__

    def add(self, stage: PatternStage) -> None:
        """Another stage."""
        self.stages = (stage, *self.stages)


NOTHING: Any = KnownPattern(Pattern((), ()), frozenset(), lessons=MOST_LESSONS)
"""What is known of steps that are too few."""
_SHELF = Recent(MOST_PATTERNS)


def known_of(needs: StepNeeds, backend: str) -> KnownPattern:
    """What is known of the steps with these needs, for NumPy's functions or those of a backend."""
    pattern = needs.pattern
    first = next((recipe for recipe in pattern.recipes if recipe is not None), None)
    key = backend, len(pattern.recipes), None if first is None else first.skeleton[-1], len(needs.after)
    with _SHELF.changing:
        shelf: list[KnownPattern] = _SHELF.of(key, list)
        for known in shelf:
            if known.after == needs.after and _same(known.pattern, pattern):
                return known
        made = KnownPattern(Pattern(pattern.recipes, ()), needs.after)
        shelf.append(made)
        del shelf[:-MOST_LESSONS]
        return made


def patterns_in(code: Any) -> list[KnownPattern]:
    """What is known of patterns of which an operation stands in the function of that code."""
    with _SHELF.changing:
        found = [known for shelf in _SHELF.values() for known in shelf]
    return [
        known
        for known in found
        if any(recipe is not None and site_code(recipe.skeleton[-1])[0] is code for recipe in known.pattern.recipes)
    ]


def _same(a: Pattern, b: Pattern) -> bool:
    """Whether the recipes are the same, but for the operands."""
    return a.recipes is b.recipes or (
        len(a.recipes) == len(b.recipes)
        and all(
            x is y or (x is not None and y is not None and x.says(y.skeleton, y.arguments, y.params))
            for x, y in zip(a.recipes, b.recipes, strict=True)
        )
    )
