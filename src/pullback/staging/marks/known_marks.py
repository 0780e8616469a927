"""What is known of loops over marked steps, by their place in a program, from one run to the next."""

from typing import Any, Final

from attrs import define, field

from pullback.staging.generated.shelf import Recent
from pullback.staging.marks.marked_functions import MarkedStage
from pullback.staging.shadow.operations import Operation

MOST_LOOPS: Final = 256


@define(eq=False)
class KnownMarks:
    """What is known of the steps of one loop in a program, from one run to the next."""

    stages: list[tuple[Any, MarkedStage]] = field(factory=list)
    """The stages, each with the kinds of what enters."""
    seen: list[tuple[Any, list[Operation], Any]] = field(factory=list)
    """Steps that have come once: what enters, what they do, what lives on."""
    n_seen: int = 0
    """How many steps there were."""
    n_failed: int = 0
    """How many runs in a row have followed none."""
    why: list[str] = field(factory=list)
    """Why steps are recorded, the newest last."""


_SHELF = Recent(MOST_LOOPS)


def known_marks(key: Any) -> KnownMarks:
    """What is known of the steps of the loop at a place in a program."""
    with _SHELF.changing:
        found: KnownMarks = _SHELF.of(key, KnownMarks)
        return found


def marks_in(code: Any) -> list[KnownMarks]:
    """What is known of the loops in the function of that code."""
    with _SHELF.changing:
        return [known for key, known in _SHELF.items() if key[0] is code]
