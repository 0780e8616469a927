"""The policy behind ``checkpoint``: hold what enters, and run again."""

from collections.abc import Iterator

from attrs import frozen

from pullback.policies.base import MemoryPolicy
from pullback.scheduling.machine.actions import Action, Advance, Delete, EndForward, EndReverse, Load, Save
from pullback.scheduling.machine.tapes_first import Tapes


@frozen(repr=False)
class RunAgain(MemoryPolicy):
    """2n forward steps, one snapshot and then n tapes: x_0 is held, and when the reverse comes every step is run again,
    once, and its tape kept."""

    needs_sizes = False

    # Sizes change nothing here.
    def actions(self, n: int, *, state_bytes: int, tape_bytes: int) -> Iterator[Action]:  # noqa: ARG002
        """Actions for ``n`` steps."""
        tapes = Tapes()
        if n:
            yield Save("state", 0)
            yield Advance(0, n)
        yield EndForward()
        if n:
            yield Load("state", 0)
            yield Delete("state", 0)
        yield from tapes.record(0, n)
        yield from tapes.reverse(n)
        yield EndReverse()
