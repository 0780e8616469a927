"""States and tapes in one storage: the least forward steps for n equal steps, a state of a bytes, a tape of tau and a
storage of S bytes.

M(n, S) = min(1 + M(n-1, S - tau), min over m of m + M(n-m, S - a) + M(m, S)). A kept tape
can always be moved to the end of the sweep, behind every snapshot, at no cost: room for one more tape saves a forward
step wherever not everything is kept. So tapes stand only in *leaves*, runs of steps that are recorded whole. With i
snapshots held, a leaf has up to c_i = (S - i a) // tau + 1 steps (one tape is in WORK), and
M_i(n) = n for n <= c_i, else min over m of m + M_(i+1)(n - m) + M_i(m).

So a schedule is a binary tree that grows from a single leaf. A leaf with i snapshots held, whose steps are advanced t
times, is *parted* into two: one of c_(i+1) steps to the right, and one of c_i steps to the left, which are advanced
once more. The schedule gets c_(i+1) steps longer, for (t + 1) c_(i+1) + (c_i - c_(i+1)) advances. The partings with the
fewest advances for each step that they win are done first, until there are n steps: this is the optimum of the linear
program in which leaves may be parted by fractions. Only the last parting is done for fewer steps than it wins, so at
most max(c_i - c_(i+1)) - 1 advances are lost to the true optimum: none where a state is as large as a tape
or tapes are too large to be stored. Which partings pay at a price per step follows from the profit of a node,

    P(i, t) = max(0, c_(i+1) (price - t - 1) - (c_i - c_(i+1)) + P(i+1, t) + P(i, t+1)).
"""

from functools import lru_cache
from itertools import pairwise
from typing import Any, Final

import numpy as np
from attrs import field, frozen

_EXACT_CELLS: Final = 2_500
_EXACT_WORK: Final = 200_000_000
"""The work of a table at most, in cells times steps: half a second."""
_NEVER: Final = 1 << 29
"""More than the steps of all of them, and twice as many with those are a number of 32 bits."""
_HALVINGS: Final = 64
"""Halvings at most of the interval in which the price lies: until its ends are neighbours."""

Sizes = list[list[int]]
"""The steps of the tree below a node, at a price, by t and by the number of snapshots held."""


@frozen
class Splits:
    """Where to split ``n`` steps."""

    n: int
    leaves: tuple[int, ...]
    """The longest run that is recorded whole while 0, 1, .. snapshots are held."""
    below: Sizes = field(repr=False)
    """The sizes at the highest price at which ``n`` steps are too many."""
    above: Sizes = field(repr=False)
    """The sizes at the lowest price at which they are not."""
    table: Any = field(eq=False, repr=False)
    """M_i(k) at [k, i], int32, where it is small and needed; empty otherwise."""

    @property
    def exact(self) -> bool:
        """Whether the forward steps are the fewest for certain."""
        lost = [one - other for one, other in pairwise(self.leaves)]
        regular = lost == sorted(lost) and max(lost, default=0) <= 1
        return self.n <= self.leaves[0] or self.table.size > 0 or regular

    @property
    def feasible(self) -> bool:
        """Whether some schedule fits at all."""
        return self.n <= self.leaves[0] or len(self.leaves) > 1

    def split(self, n: int, held: int) -> int:
        """How far to advance from a new snapshot, with ``held`` others, to reverse ``n`` steps."""
        leaves = self.leaves
        if held + 2 == len(leaves):  # one snapshot is left: it stays where it is
            return n - min(leaves[held + 1], n - 1)
        if self.table.size:
            costs = self.table[1:n, held] + self.table[n - 1 : 0 : -1, held + 1] + np.arange(1, n)
            return 1 + int(costs.argmin())
        t = max((t for t, row in enumerate(self.above) if row[held] >= n), default=0)
        left = self.below[t + 1][held] if t + 1 < len(self.below) else leaves[held]
        right = max(leaves[held + 1], min(self.above[t][held + 1], n - left))
        return n - min(right, n - 1)


def forward_steps(found: Splits, n: int | None = None, held: int = 0) -> int:
    """What a plan runs, recorded steps included; or for ``n`` of its steps while other snapshots are ``held``.

    >>> forward_steps(plan(10, 100, 100, 400))
    15
    """
    counts: dict[tuple[int, int], int] = {}
    whole = found.n if n is None else n, held
    open_parts = [whole]
    while open_parts:
        n, held = part = open_parts[-1]
        if part in counts or n <= found.leaves[held]:
            counts.setdefault(part, n)
            open_parts.pop()
            continue
        if held + 2 == len(found.leaves):
            counts[part] = _from_one(n, *found.leaves[held:])
            open_parts.pop()
            continue
        m = found.split(n, held)
        parts = (n - m, held + 1), (m, held)
        missing = [each for each in parts if each not in counts]
        open_parts += missing
        if not missing:
            counts[part] = m + counts[parts[0]] + counts[parts[1]]
    return counts[whole]


def _from_one(n: int, leaf: int, last: int) -> int:
    """The forward steps where one snapshot is left, from which the last steps are recorded whole as often as needed."""
    count = 0
    while n > leaf:
        count += n
        n -= min(last, n - 1)
    return count + n


@lru_cache(maxsize=8)
def plan(n: int, state_bytes: int, tape_bytes: int, storage: int, *, start_held: bool = False) -> Splits:
    """The splits for ``n`` steps: the optimum, or at most ceil(state_bytes / tape_bytes) - 1 forward steps more (1
    where the tape is larger and no whole number of states). ``start_held``: the snapshot of x_0 takes nothing.

    >>> plan(1000, 320_000, 320_000, 100_000_000).leaves[:2]
    (313, 312)
    """
    leaves = _leaves(n, state_bytes, tape_bytes, storage, int(start_held))
    below, above = _around(n, leaves)
    found = Splits(n, leaves, below, above, np.zeros(0))
    cells = (n + 1) * len(leaves)
    if not found.exact and found.feasible and cells <= _EXACT_CELLS and cells * n <= _EXACT_WORK:
        return Splits(n, leaves, below, above, _table(n, leaves))
    return found


def _leaves(n: int, state_bytes: int, tape_bytes: int, storage: int, free: int) -> tuple[int, ...]:
    """The sizes of leaves, as many as are of use: with more snapshots than these every step is advanced once at most.
    ``free`` of the snapshots take nothing."""
    most = max(0, n - 1)
    levels = min(storage // state_bytes + free if state_bytes else most, most)
    leaves, won = [], 0
    for i in range(levels + 1):
        leaves.append(min(n, (storage - max(0, i - free) * state_bytes) // tape_bytes + 1) if tape_bytes else n)
        won += leaves[-1]
        if won >= n:
            break
    return tuple(leaves)


def _around(n: int, leaves: tuple[int, ...]) -> tuple[Sizes, Sizes]:
    """The sizes just below and just above the price of the last of n steps."""
    if n <= leaves[0] or len(leaves) <= 2:  # a leaf, or one snapshot, needs no price
        return [], []
    low, high = 1.0, 2.0
    while _sizes(leaves, high, n)[0][0] < n:
        low, high = high, 2 * high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        if _sizes(leaves, middle, n)[0][0] < n:
            low = middle
        else:
            high = middle
    return _sizes(leaves, low, n), _sizes(leaves, high, n)


def _sizes(leaves: tuple[int, ...], price: float, most: int) -> Sizes:
    """The steps below each node, no more than ``most``, when everything that pays at ``price`` is parted."""
    levels = len(leaves) - 1
    rows: Sizes = []
    left, left_profit = list(leaves), [0.0] * (levels + 1)
    for t in range(int(price), -1, -1):
        row, profits = list(leaves), [0.0] * (levels + 1)
        size, profit, paid = leaves[levels], 0.0, price - t - 1
        if paid > 0:
            for i in range(levels - 1, -1, -1):
                won = leaves[i + 1]
                profit += won * paid - (leaves[i] - won) + left_profit[i]
                if profit > 0:
                    size = min(size + left[i], most)
                else:
                    size, profit = leaves[i], 0.0
                row[i], profits[i] = size, profit
        rows.append(row)
        left, left_profit = row, profits
    return rows[::-1]


def _table(n: int, leaves: tuple[int, ...]) -> Any:
    """M_i(0 .. n) for each number i of snapshots held, all of them at once for each n."""
    levels = len(leaves)
    table = np.full((n + 1, levels + 1), _NEVER, np.int32)
    table[:2] = [[0], [1]]
    table[:, levels] = _NEVER  # one more snapshot than there is room for
    ends, steps = np.array(leaves), np.arange(n + 1, dtype=np.int32)[:, None]
    room = np.empty((n, levels), np.int32)
    for k in range(2, n + 1):
        costs = np.add(table[1:k, :levels], table[k - 1 : 0 : -1, 1:], out=room[1:k])
        costs += steps[1:k]
        table[k, :levels] = np.where(k <= ends, k, costs.min(axis=0))
    return table
