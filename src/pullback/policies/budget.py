"""Budget: as few forward steps as a number of bytes allows."""

from collections.abc import Iterator

from attrs import evolve, field, frozen

from pullback.optima.unified import Plan, plan
from pullback.policies.actions import Action, Advance, Delete, EndForward, EndReverse, Load, Save
from pullback.policies.base import MemoryPolicy
from pullback.policies.save_all import Tapes
from pullback.words.byte_sizes import as_bytes
from pullback.words.errors import BudgetError


def _as_max_bytes(value: object) -> int:
    return as_bytes(value, "max_bytes")


@frozen(repr=False)
class Budget(MemoryPolicy):
    """Reverse n steps within ``max_bytes`` of snapshots and tapes, with as few forward steps as these bytes allow.

    ``max_bytes`` is an integer or a text: ``Budget("200 MB")``. Snapshots of states and whole runs of tapes share the
    bytes (:mod:`pullback.optima.unified`): with room for all tapes this is ``SaveAll``, with room for few it is
    revolve. Where the program is too large for a table, and steps are advanced more than once, the steps were at most
    1.084 times the fewest in all cases tried. For loop functions of known length. The sizes are those of step 0: a
    loop whose later steps hold more exceeds the bytes, and so may what the program holds after the loop. Raises
    :class:`BudgetError` with ``minimum_bytes`` before step 1 where nothing fits.

    >>> from pullback.schedules import simulate
    >>> simulate(Budget(500).schedule(10, state_bytes=100, tape_bytes=100), 10).n_forward
    15

    Source: J. R. Maddison, "Step-based checkpointing with high-level algorithmic differentiation" (2024), for equal
    sizes.
    """

    max_bytes: int = field(converter=_as_max_bytes)
    reserved: int = field(default=0, kw_only=True)
    """Bytes that others hold: of these the loop tells (:meth:`reserving`)."""
    start_held: bool = field(default=False, kw_only=True)
    """Whether the initial state is among these: its snapshot takes nothing more then."""

    def reserving(self, nbytes: int, *, start_held: bool = False) -> "Budget":
        """The policy for a loop that holds ``nbytes`` beside snapshots and tapes."""
        return evolve(self, reserved=nbytes, start_held=start_held)

    def actions(self, n: int, *, state_bytes: int, tape_bytes: int) -> Iterator[Action]:
        """Actions for ``n`` steps; raises :class:`BudgetError` at once."""
        snapshot = 0 if self.start_held else state_bytes
        least = self.reserved + min(n, 1) * tape_bytes + min(max(0, n - 1) * tape_bytes, snapshot if n > 1 else 0)
        if self.max_bytes < least:
            raise BudgetError(
                f"{self!r} is too little for {n} steps: a snapshot takes {state_bytes:,} bytes, the tape of a step "
                f"{tape_bytes:,} and what the loop holds besides {self.reserved:,}. Allow at least {least:,} bytes.",
                least,
            )
        storage = max(0, self.max_bytes - self.reserved - tape_bytes)
        return _actions(n, plan(n, state_bytes, tape_bytes, storage, start_held=self.start_held))

    def __repr__(self) -> str:
        return f"Budget({self.max_bytes})"


def _actions(n: int, splits: Plan) -> Iterator[Action]:
    """Sweep, record the last leaf whole, and so on from the newest snapshot."""
    snapshots: list[int] = []
    start, stop, swept, stored = 0, n, False, False
    while stop > 0:
        held = len(snapshots)
        while stop - start > splits.leaves[held]:
            if not stored:
                yield Save("state", start)
            m = splits.split(stop - start, held)
            yield Advance(start, start + m)
            snapshots.append(start)
            start, held, stored = start + m, held + 1, False
        if stored:
            yield Delete("state", start)
        tapes = Tapes()
        yield from tapes.record(start, stop)
        if not swept:
            yield EndForward()
            swept = True
        yield from tapes.reverse(stop)
        stop = start
        if snapshots:
            start, stored = snapshots.pop(), True
            yield Load("state", start)
    if not swept:
        yield EndForward()
    yield EndReverse()
