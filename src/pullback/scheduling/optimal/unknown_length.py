"""States and tapes in one storage while the length of the loop is unknown: which tapes and snapshots to hold.

The tapes of the newest steps are held, as many as there is room for. A snapshot comes where the steps since the last
one are as many as could be recorded at once when its turn comes: with i snapshots held that are c_i = (S - i a) // tau
+ 1 steps. So every step is advanced once at most until there is no room for another snapshot, after c_0 + c_1 + ..
steps; and as the places do not depend on the length, this is the optimum of every length up to there, but for the room
that the snapshots take before they are needed. After that snapshots replace one another by the greedy rule of
:mod:`pullback.scheduling.optimal.online`.

More bytes never cost steps. That holds where a state is a whole number of tapes or the other way round, so the storage
is counted in the smaller of the two, and the larger is rounded: a tape up; a state is taken for a whole number of
larger tapes. As measured for all storages up to 24 of the larger, and lengths up to 260; it is not proven.
"""

from itertools import accumulate

from attrs import field, frozen

from pullback.scheduling.optimal.online import Rule, greedy_by
from pullback.scheduling.optimal.unified import Splits, plan

_NEARLY = 5
"""A tape that is larger than a state by no more than one in so many counts as equal."""
_FEW = 8
"""The number of states below which room is counted in whole states."""

_MOST = 1000
"""Snapshots that take nothing: the rule looks at each of them now and then."""

_ALL = 1 << 62
"""Tapes that take nothing."""


@frozen
class Units:
    """The storage, a state and a tape as small whole numbers: one of the last two is 1, or both are."""

    storage: int
    state: int
    tape: int
    free: int = 0
    """How many of the first snapshots take nothing."""
    cost_rows: list[list[int]] = field(factory=list, eq=False, repr=False)

    @classmethod
    def of(cls, storage: int, state_bytes: int, tape_bytes: int, *, start_held: bool = False) -> "Units":
        """The units for a storage in bytes."""
        state, tape, free = state_bytes, tape_bytes, int(start_held)
        if not tape:
            return cls(_ALL, 1, 1, free)
        if not state:
            return cls(storage // tape, 0, 1, free)
        if state < tape <= state + state // _NEARLY and storage >= _FEW * tape:
            state = tape
        if state < tape:
            return cls(storage // state, 1, -(-tape // state), free)
        ratio = state // tape
        room = storage * ratio // state
        return cls(room if room >= _FEW * ratio else room // ratio * ratio, ratio, 1, free)

    @property
    def slots(self) -> int:
        """The most snapshots."""
        return max(1, self.storage // self.state + self.free) if self.state else _MOST

    def room(self, held: int) -> int:
        """What that many snapshots leave."""
        return self.storage - max(0, held - self.free) * self.state

    def leaf(self, held: int) -> int:
        """The most steps that can be recorded at once beside them."""
        return self.room(held) // self.tape + 1

    def plan(self, n: int, held: int) -> Splits:
        """How to reverse ``n`` steps from a state that is loaded, beside so many snapshots."""
        least = 0 if held < self.free else self.state  # steps may have turned out larger than there is room for
        return plan(n, self.state, self.tape, max(least, self.room(held)), start_held=held < self.free)

    def rule(self, snapshots: list[int]) -> Rule:
        """Which of them give way to another."""
        return greedy_by(self.slots, self.advances, snapshots)

    def advances(self, n: int, slots: int) -> int:
        """What reversing ``n`` steps with so many slots left costs beside recording each once: a lower bound.

        With N_0 = c_i and N_t the sum of the N_(t-1) of i, i+1, .. snapshots, the advances are at least the sum over t
        of n - N_t where that is positive: no more than N_t steps are advanced t times at most.
        """
        if not self.cost_rows:
            self.cost_rows.append([self.leaf(held) for held in range(self.slots, -2, -1)])
        least = self.cost_rows[0]
        if n <= least[slots]:
            return 0
        if slots == 1:  # N_t = c_1 + t c_0
            times = -(-(n - least[1]) // least[0])
            return times * (n - least[1]) - least[0] * times * (times - 1) // 2
        found, t = 0, 0
        while True:
            if t == len(self.cost_rows):
                self.cost_rows.append(list(accumulate(self.cost_rows[-1])))
            over = n - self.cost_rows[t][slots]
            if over <= 0:
                return found
            found, t = found + over, t + 1
