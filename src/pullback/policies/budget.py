"""Budget: as few forward steps as a number of bytes allows."""

from collections.abc import Sequence
from typing import Final

from attrs import evolve, field, frozen

from pullback.policies.base import MemoryPolicy
from pullback.policies.by_leaves import Growing, by_leaves, rest
from pullback.scheduling.machine.schedule import Schedule
from pullback.scheduling.optimal.unified import Splits, forward_steps, plan
from pullback.scheduling.optimal.unknown_length import Units
from pullback.words.byte_sizes import as_bytes
from pullback.words.errors import BudgetError

GUESSED: Final = 64
"""Steps of a loop of unknown length that has not ended yet."""
LITTLE: Final = 32
"""The share of the bytes that what only makes a loop faster may take."""

OWN_BYTES: Final = 64 * 1024
"""What Python's own objects take that belong to no step: schedule, chain, ledger, frames."""
OWN_SHARE, DIGESTS_SHARE = 16, 28
"""The share of the bytes that they may take, and the digests of a loop."""


def _as_max_bytes(value: float | str) -> int:
    return as_bytes(value, "max_bytes")


@frozen(repr=False)
class Budget(MemoryPolicy):
    """Reverse n steps within ``max_bytes`` of snapshots and tapes, with as few forward steps as these bytes allow.

    ``max_bytes`` is an integer or a text: ``Budget("200 MB")``; ``Budget("50 %")`` is half of the memory that is
    available when it is made, the limits of control groups respected. Snapshots of states and whole runs of tapes
    share the bytes (:mod:`pullback.scheduling.optimal.unified`): with room for all tapes this is ``SaveAll``, with room
    for few it is revolve. At most state_bytes / tape_bytes forward steps more than the fewest are run, and none more
    where a state and a tape are of one size, where no tape can be kept and where n^2 state-sized entries are few (a
    table). Never more than ``Mixed``, ``Binomial``, ``Recompute`` and ``SaveAll`` run at the same bytes.

    The bytes bind: what ``tracemalloc`` sees while a loop goes forward and back stays within them. Kept free for that
    are what the program holds already, the running state, its cotangents, those of what the steps read, the arrays that
    a step makes on its way, Python's own objects, and the result, which what follows may hold. This is known
    from step 0, of marked steps from the first two: a loop whose later steps need more exceeds the bytes. Code outside
    of loops is cut into steps by itself within the same bytes, that of checkpoints too. Code that is loaded on first
    use does not count. Functions of steps are made (``staging``) where that takes at most a 32nd of the bytes.

    ``exact``: code without marks is no chain of steps but a graph of values, of which single ones are computed again.
    Loops and marked steps go by the bytes as above.

    Length unknown: the tapes of the newest steps, and snapshots as far apart as can be recorded at once when their turn
    comes (:mod:`pullback.scheduling.optimal.unknown_length`), beside the two newest states. Where all tapes fit nothing
    is run again.

    Source: J. R. Maddison, "Step-based checkpointing with high-level algorithmic differentiation" (2024), for equal
    sizes.

    Parameters
    ----------
    max_bytes
        An integer, or a text: ``"200 MB"``, ``"2 GiB"``, ``"50 %"``.
    exact
        Whether code without marks is planned as a graph of values.
    reserved, start_held, spares, digests, begun
        Left alone by users: what a caller that divides its bytes among several loops tells of one of them.

    Raises
    ------
    PolicyError
        Where ``max_bytes`` is no number of bytes.
    BudgetError
        Before step 1, where nothing fits; ``minimum_bytes`` is the least that does.

    Example
    -------
    >>> from pullback.schedules import simulate
    >>> simulate(Budget(500).schedule(10, state_bytes=100, tape_bytes=100), 10).n_forward
    17
    """

    counts_bytes = True
    max_bytes: int = field(converter=_as_max_bytes)
    exact: bool = field(default=False, kw_only=True)
    """Whether code without marks is planned value by value, not cut into steps."""
    reserved: int = field(default=0, kw_only=True)
    """Bytes that others hold: of these the loop tells (:meth:`reserving`)."""
    start_held: bool = field(default=False, kw_only=True)
    """Whether the initial state is among these: its snapshot takes nothing more then."""
    spares: bool = field(default=False, kw_only=True)
    """Whether something is left to Python's own objects that belong to no entry, where there is room."""
    digests: int = field(default=0, kw_only=True)
    """What the digests of a loop take, in any number of bytes."""
    begun: int | None = field(default=None, kw_only=True)
    """What was booked when the loop began, where loops that follow may take what it holds: then it holds the initial
    state wherever there is room."""

    @property
    def plans_values(self) -> bool:
        """``exact``."""
        return self.exact

    @property
    def between(self) -> "Budget":
        """Between the steps of loops it is as any other."""
        return evolve(self, exact=False) if self.exact else self

    def reserving(self, nbytes: int, *, start_held: bool = False, digests: int = 0) -> "Budget":
        """The policy for a loop that holds ``nbytes`` beside snapshots and tapes."""
        return evolve(
            self, reserved=nbytes, start_held=start_held, spares=True, digests=digests or self.digests
        )  # fmt: skip

    def lending(self, begun: int) -> "Budget":
        """The policy for a loop that others may follow."""
        return evolve(self, begun=begun)

    @property
    def room(self) -> int | None:
        """What is not reserved."""
        return max(0, self.max_bytes - self.reserved)

    def parted(self, nbytes: int) -> "Budget":
        """A budget of these bytes, all of them for snapshots and tapes: the loop around has reserved the rest."""
        return Budget(nbytes)

    def affords(self, nbytes: int, least: int) -> bool:
        """Whether they are at most one in :data:`LITTLE`, and there is room for them."""
        return nbytes <= self.max_bytes // LITTLE and least + nbytes <= self.max_bytes

    def begin(self, n: int | None, *, state_bytes: int, tape_bytes: int) -> Schedule:
        """Actions for ``n`` steps; raises :class:`BudgetError` immediately."""
        self._need("a loop of unknown length" if n is None else f"{n} steps", n, state_bytes, tape_bytes)
        if n is None:
            growing = Growing(self._units(state_bytes, tape_bytes))
            larger = lambda freed=0, now=False, **sizes: growing.larger(self.larger(freed, **sizes), now)  # noqa: E731
            return Schedule(
                growing.sweep(), None, policy=self, finish=growing.finish, larger=larger, n_whole=growing.n_whole
            )
        all_bytes, snapshot = n * tape_bytes, 0 if self.start_held else state_bytes
        lends = self.begun is not None and snapshot < all_bytes <= self.max_bytes - self.reserved - snapshot
        splits = self.splits(n, state_bytes, tape_bytes)
        held = "" if n > splits.leaves[0] else "state and tapes" if lends else "tapes"
        return Schedule(by_leaves(n, splits, lends=lends), n, policy=self, held=held)

    def n_forward(self, n: int | None, state_bytes: int, tape_bytes: int) -> int | None:
        """The steps that ``n`` take (None: as if it were :data:`GUESSED`); None where the bytes are too few."""
        if self.max_bytes < self.least(n, state_bytes, tape_bytes):
            return None
        return forward_steps(self.splits(GUESSED if n is None else n, state_bytes, tape_bytes))

    def splits(self, n: int, state_bytes: int, tape_bytes: int) -> Splits:
        """Where ``n`` steps are parted."""
        storage = max(0, self.max_bytes - self.reserved - tape_bytes - self._spared(n, state_bytes, tape_bytes))
        snapshot, others = 0 if self.start_held else state_bytes, (n - 1) * tape_bytes
        all_bytes = snapshot + others + tape_bytes
        if self.begun is not None and snapshot < others and all_bytes > self.max_bytes - self.reserved:
            storage = min(storage, others - 1)  # with all tapes and no snapshot nothing could be given up
        return plan(n, state_bytes, tape_bytes, storage, start_held=self.start_held)

    def rest(self, n: int, first: int, snapshots: Sequence[int], splits: Splits, *, in_work: bool) -> Schedule:
        """What follows EndForward where these snapshots and the tapes from ``first`` on are held, the newest
        ``in_work`` or stored as well."""
        return Schedule(rest(n, first, [*snapshots], splits, in_work=in_work), n, policy=self)

    def least(self, n: int | None, state_bytes: int, tape_bytes: int) -> int:
        """The bytes that ``n`` steps can do with."""
        snapshot = 0 if self.start_held else state_bytes
        if n is None:
            return self.reserved + snapshot + state_bytes + tape_bytes
        return self.reserved + min(n, 1) * tape_bytes + min(max(0, n - 1) * tape_bytes, snapshot if n > 1 else 0)

    def _spared(self, n: int | None, state_bytes: int, tape_bytes: int) -> int:
        """What is left to Python's own objects. More bytes never leave less for steps."""
        if not self.spares:
            return 0
        wanted = min(OWN_BYTES, self.max_bytes // OWN_SHARE) + min(self.digests, self.max_bytes // DIGESTS_SHARE)
        return min(wanted, max(0, self.max_bytes - self.least(n, state_bytes, tape_bytes)))

    def _units(self, state_bytes: int, tape_bytes: int) -> Units:
        """The storage of a loop of unknown length."""
        spared = self._spared(None, state_bytes, tape_bytes)
        room = max(0, self.max_bytes - self.reserved - state_bytes - tape_bytes - spared)
        return Units.of(room, state_bytes, tape_bytes, start_held=self.start_held)

    def larger(self, freed: int, state_bytes: int, tape_bytes: int) -> Units:
        """The storage of a loop of unknown length for larger steps than were told first, where others hold so many
        bytes less than they did; what exceeds the bytes by little is Python's own objects."""
        if freed:
            return evolve(self, reserved=self.reserved - freed).larger(0, state_bytes, tape_bytes)
        if self.least(None, state_bytes, tape_bytes) > self.max_bytes + self.max_bytes // LITTLE:
            self._need("a loop whose later steps are larger", None, state_bytes, tape_bytes)
        return self._units(state_bytes, tape_bytes)

    def _need(self, steps: str, n: int | None, state_bytes: int, tape_bytes: int) -> None:
        least = self.least(n, state_bytes, tape_bytes)
        if self.max_bytes < least:
            raise BudgetError(
                f"{self!r} is too little for {steps}: a snapshot takes {state_bytes:,} bytes, the tape of a step "
                f"{tape_bytes:,} and what the loop holds besides {self.reserved:,}. Allow at least {least:,} bytes.",
                least,
            )

    def __repr__(self) -> str:
        return f"Budget({self.max_bytes}{', exact=True' if self.exact else ''})"
