"""Where the seconds of a forward and a reverse pass go, and what is executed again: a ledger that looks at the clocks.

A call gets this ledger within ``with in_phases()`` alone; the ordinary one knows nothing of it. What the loops book and
count tells what the time before was for: in the reverse pass a forward step, or something held, was computed again; a
release ends a step that was reversed.
"""

from collections import Counter
from collections.abc import Iterable
from contextlib import AbstractContextManager
from time import perf_counter, process_time
from typing import Any, Final

from attrs import frozen

from pullback.memory.ledger import Item, Ledger
from pullback.memory.timeline import booking_in

FORWARD: Final = "forward"
RECOMPUTE: Final = "recompute"
REVERSE: Final = "reverse"
_LEDGER: Any = Ledger


@frozen
class Spent:
    """Seconds by the clock on the wall, and of the processor."""

    seconds: float = 0.0
    cpu_seconds: float = 0.0


class PhaseLedger(Ledger):
    """A ledger that adds up seconds by phase."""

    separates = True

    def __init__(self, *, heard: bool = True) -> None:
        self.spent = {FORWARD: [0.0, 0.0], RECOMPUTE: [0.0, 0.0], REVERSE: [0.0, 0.0]}
        self.turned = False
        self.operations: Counter[str] = Counter()
        """How many times each primitive of plain code was executed again."""
        self.last = perf_counter(), process_time()
        super().__init__(heard=heard)

    def spend(self, phase: str) -> None:
        """What has passed since the last event was for this phase."""
        now = perf_counter(), process_time()
        spent = self.spent[phase if self.turned else FORWARD]
        spent[0] += now[0] - self.last[0]
        spent[1] += now[1] - self.last[1]
        self.last = now

    @property
    def n_forward(self) -> int:
        """Forward steps executed."""
        return int(_LEDGER.n_forward.__get__(self))

    @n_forward.setter
    def n_forward(self, n: int) -> None:
        _LEDGER.n_forward.__set__(self, n)
        self.spend(RECOMPUTE)

    def hold(self, items: Iterable[Item]) -> None:
        """As the ledger does; what is held besides cotangents was computed again."""
        items = list(items)
        self.spend(REVERSE if all(reason == "cotangent" for _, _, reason in items) else RECOMPUTE)
        super().hold(items)

    def release(self, items: Iterable[Item]) -> None:
        """As the ledger does."""
        self.spend(REVERSE)
        super().release(items)

    def ran(self, chain: Any, start: int, stop: int) -> None:
        """As the ledger does; what the pullbacks need was computed."""
        super().ran(chain, start, stop)
        for step in range(start, stop):
            recipes, needed = chain.recipes.patterns[step].recipes, chain.needs.steps[step].values
            self.operations.update(recipes[place].form.name for place in needed if recipes[place] is not None)

    def turn(self) -> None:
        """The forward pass is over, and the reverse begins."""
        self.spend(FORWARD)
        self.turned = True

    def by_phase(self) -> dict[str, Spent]:
        """The seconds up to now."""
        self.spend(REVERSE)
        return {phase: Spent(*spent) for phase, spent in self.spent.items()}


def in_phases() -> AbstractContextManager[PhaseLedger]:
    """Within the block a ``vjp`` books what it holds in this ledger, which times it; for one call."""
    return booking_in(PhaseLedger())
