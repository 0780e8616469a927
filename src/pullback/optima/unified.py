"""States and tapes in one storage: the least forward steps for n equal steps, a state of a bytes, a tape of tau and a
storage of S bytes.

M(n, S) = min(1 + M(n-1, S - tau), min over m of m + M(n-m, S - a) + M(m, S)). A kept tape
can always be moved to the end of the sweep, behind every snapshot, at no cost: room for one more tape saves a forward
step wherever not everything is kept. So tapes stand only in *leaves*, runs of steps that are recorded whole. With i
snapshots held, a leaf has up to c_i = (S - i a) // tau + 1 steps (one tape is in WORK), and
M_i(n) = n for n <= c_i, else min over m of m + M_(i+1)(n - m) + M_i(m): one column for each snapshot, bytes exact.
"""

from functools import lru_cache
from itertools import pairwise
from typing import Final

import numpy as np
from attrs import field, frozen

_EXACT_CELLS: Final = 30_000
_EXACT_WORK: Final = 30_000_000
_CLOSED: Final = 2
"""t = 0 and t = 1: every step is advanced once at most."""


@frozen
class Plan:
    """Where to split ``n`` steps."""

    n: int
    leaves: tuple[int, ...]
    """The longest run that is recorded whole while 0, 1, .. snapshots are held."""
    reach: tuple[tuple[int, ...], ...]
    """For t = 0, 1, ..: the most steps for each number of snapshots with no step advanced more than t times."""
    table: tuple[np.ndarray, ...] = field(eq=False, repr=False)

    @property
    def exact(self) -> bool:
        """Whether the forward steps are the fewest: by the table, or where no step is advanced more than once."""
        return bool(self.table) or len(self.reach) <= _CLOSED

    @property
    def feasible(self) -> bool:
        """Whether some schedule fits at all."""
        return self.reach[-1][0] >= self.n

    def split(self, n: int, held: int) -> int:
        """How far to advance from a new snapshot, with ``held`` others, to reverse ``n`` steps."""
        if self.table:
            left, right = self.table[held], self.table[held + 1]
            return 1 + int(np.argmin(np.arange(1, n) + left[1:n] + right[n - 1 : 0 : -1]))
        t = next(t for t, row in enumerate(self.reach) if row[held] >= n)
        below = self.reach[t - 1]
        return max(1, min(below[held], n - below[held + 1]))


@lru_cache(maxsize=8)
def plan(n: int, state_bytes: int, tape_bytes: int, storage: int) -> Plan:
    """The splits for ``n`` steps: the optimum where the table is small or no step need be advanced twice.

    Elsewhere each snapshot is set as far on as the repetitions allow: no proof, and in the rows of the oracle at most
    1.084 times the optimum.

    >>> plan(1000, 320_000, 320_000, 100_000_000).leaves[:2]
    (313, 312)
    """
    most = max(0, n - 1)
    levels = min(storage // state_bytes if state_bytes else most, most)
    leaves = tuple(
        min(n, (storage - i * state_bytes) // tape_bytes + 1) if tape_bytes else n for i in range(levels + 1)
    )
    reach = _reach(n, leaves)
    large = n * len(leaves) > _EXACT_CELLS or n * n * len(leaves) > _EXACT_WORK
    feasible = reach[-1][0] >= n
    return Plan(n, leaves, reach, () if large or not feasible or len(reach) <= _CLOSED else _table(n, leaves))


def _reach(n: int, leaves: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    rows = [leaves]
    while rows[-1][0] < n and len(leaves) > 1:
        row = [leaves[-1]]
        for before in rows[-1][-2::-1]:
            row.append(min(n, before + row[-1]))
        rows.append(tuple(reversed(row)))
    return tuple(rows)


def _table(n: int, leaves: tuple[int, ...]) -> tuple[np.ndarray, ...]:
    """M_i(0 .. n) for each number i of snapshots held."""
    steps, never = np.arange(n + 1), np.int64(2**60)
    columns: list[np.ndarray] = []
    for leaf in reversed(leaves):
        column = np.where(steps <= leaf, steps, never)
        if columns:
            right = columns[-1]
            for k in range(leaf + 1, n + 1):
                column[k] = (steps[1:k] + column[1:k] + right[k - 1 : 0 : -1]).min()
        columns.append(column)
    assert all(one[n] >= other[n] for one, other in pairwise(columns))  # more snapshots held leave less room
    return tuple(reversed(columns))
