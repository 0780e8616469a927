"""Budget: as few forward steps as a number of bytes allows."""

from collections.abc import Iterator
from typing import Final

from attrs import evolve, field, frozen

from pullback.optima.unified import Plan, plan
from pullback.policies.actions import Action, Advance, Delete, EndForward, EndReverse, Load, Save
from pullback.policies.base import MemoryPolicy, Schedule
from pullback.policies.binomial import Binomial
from pullback.policies.save_all import Tapes
from pullback.words.byte_sizes import as_bytes
from pullback.words.errors import BudgetError

MOST_SLOTS: Final = 1000
"""Where the length is unknown: the rule looks at each of them now and then."""


def _as_max_bytes(value: object) -> int:
    return as_bytes(value, "max_bytes")


@frozen(repr=False)
class Budget(MemoryPolicy):
    """Reverse n steps within ``max_bytes`` of snapshots and tapes, with as few forward steps as these bytes allow.

    ``max_bytes`` is an integer or a text: ``Budget("200 MB")``; ``Budget("50 %")`` is half of the memory that is
    available when it is made, the limits of control groups respected. Snapshots of states and whole runs of tapes
    share the bytes (:mod:`pullback.optima.unified`): with room for all tapes this is ``SaveAll``, with room for few it
    is revolve. At most state_bytes / tape_bytes forward steps more than the fewest are run, and none more where a state
    and a tape are of one size, where no tape can be kept and where n^2 state-sized entries are few (a table). Never
    more than ``Mixed``, ``Binomial``, ``Recompute`` and ``SaveAll`` run at the same bytes.

    Of the bytes of a loop function, the cotangents of its state take one state, and another is kept free for what
    follows the loop, which may hold its result. The sizes are those of step 0: a loop whose later steps hold more
    exceeds the bytes, and so may what the program holds after the loop beyond its result. Raises :class:`BudgetError`
    with ``minimum_bytes`` before step 1 where nothing fits.

    >>> from pullback.schedules import simulate
    >>> simulate(Budget(500).schedule(10, state_bytes=100, tape_bytes=100), 10).n_forward
    15

    Length unknown: snapshots alone, as many as the bytes hold beside the two newest states, by the rule of
    ``Binomial(..., online="greedy")``.

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

    def begin(self, n: int | None, *, state_bytes: int, tape_bytes: int) -> Schedule:
        """Actions for ``n`` steps; raises :class:`BudgetError` at once."""
        snapshot = 0 if self.start_held else state_bytes
        if n is None:
            least = self.reserved + snapshot + state_bytes + tape_bytes
            self._need("a loop of unknown length", least, state_bytes, tape_bytes)
            room = self.max_bytes - self.reserved - state_bytes - tape_bytes
            slots = room // state_bytes + self.start_held if state_bytes else MOST_SLOTS
            return Binomial(min(slots, MOST_SLOTS)).begin(None, state_bytes=state_bytes, tape_bytes=tape_bytes)
        least = self.reserved + min(n, 1) * tape_bytes + min(max(0, n - 1) * tape_bytes, snapshot if n > 1 else 0)
        self._need(f"{n} steps", least, state_bytes, tape_bytes)
        storage = max(0, self.max_bytes - self.reserved - tape_bytes)
        splits = plan(n, state_bytes, tape_bytes, storage, start_held=self.start_held)
        return Schedule(_actions(n, splits), n, policy=self)

    def _need(self, steps: str, least: int, state_bytes: int, tape_bytes: int) -> None:
        if self.max_bytes < least:
            raise BudgetError(
                f"{self!r} is too little for {steps}: a snapshot takes {state_bytes:,} bytes, the tape of a step "
                f"{tape_bytes:,} and what the loop holds besides {self.reserved:,}. Allow at least {least:,} bytes.",
                least,
            )

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
