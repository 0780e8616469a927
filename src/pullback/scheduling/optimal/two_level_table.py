"""Snapshots in memory and on disk: the least steps, writes and reads together, as tables of what to do first.

A(n) are the advances of n steps with the snapshots of the memory alone
(:mod:`pullback.scheduling.optimal.binomial_split`). In units of one forward step, with m snapshots on disk, a write of
w and a read of r,

    D(0, n)  = A(n)
    D'(m, n) = min(A(n), min over 1 <= j < n of j + D(m-1, n-j) + r + D'(m, j))       x_0 is on disk, in one of the m
    D(m, n)  = min(A(n), w + D'(m, n))                                                x_0 is live only

and with a disk without bound D and D' stand on the right as well. Every m <= n of the last line is looked at.

Source: J. Herrmann and G. Pallez, "H-Revolve", ACM TOMS 46 (2020), for two levels; G. Aupy et al., "Optimal multistage
algorithm for adjoint computation", SIAM J. Sci. Comput. 38 (2016), for a disk without bound.
"""

from functools import lru_cache
from math import comb, isqrt
from typing import Any, Final

import numpy as np
from attrs import evolve, field, frozen

from pullback.scheduling.optimal.binomial_split import split

MOST_ROWS: Final = 20_000
"""Steps of a table for a disk without bound: a quarter of a second."""
MOST_WORK: Final = 1_000_000_000
"""Steps squared times snapshots on disk: about a second."""
MEMORY_ONLY: Final = 0


@frozen
class TwoLevel:
    """What to do first, for up to ``rows`` steps as the tables say."""

    ram: int
    rows: int
    unbounded: Any = field(eq=False, repr=False)
    """int32, 2 x (rows + 1): the j of D and of D' for a disk without bound; ``MEMORY_ONLY`` for A."""
    needed: Any = field(eq=False, repr=False)
    """int32, of the same shape: how many snapshots on disk these take."""
    bounded: Any = field(eq=False, repr=False)
    """int32, (disk + 1) x 2 x (rows + 1); empty where nothing needs it."""
    most_needed: int
    """The greatest of ``needed``."""
    period: int
    """The distance of fewest costs a step in a long loop."""

    def move(self, left: int, free: int | None, *, stored: bool) -> int:
        """How far to advance after x_0 of ``left`` steps is on disk, or ``MEMORY_ONLY``.

        ``free`` counts the snapshots that the disk can take, that of x_0 among them where it is ``stored``; None:
        without bound. Beyond the tables the snapshots on disk are ``period`` apart where they fit, or else as one
        binomial schedule of all snapshots sets them.
        """
        if left <= self.rows:
            which = int(stored)  # a bool would be a mask
            if free is None or free >= self.needed[which, left]:
                return int(self.unbounded[which, left])
            return int(self.bounded[free, which, left])
        if free is None or free >= left // self.period + 1 + self.most_needed:
            return self.period
        return split(left, free + self.ram) if free else MEMORY_ONLY


def advances_up_to(n: int, s: int) -> Any:
    """A(0 .. n) with s snapshots, float64; infinite where no snapshot is allowed."""
    if s == 0:
        return np.where(np.arange(n + 1) < 2, 0.0, np.inf)
    more, low, t = np.zeros(n + 1), 1, 1
    while low < n:  # A(k) - A(k-1) is the repetition number of k
        high = min(comb(s + t, s), n)
        more[low + 1 : high + 1] = t
        low, t = high, t + 1
    return np.cumsum(more)


@lru_cache(maxsize=4)
def two_level(n: int, ram: int, disk: int | None, write_cost: float, read_cost: float) -> TwoLevel:
    """The tables for loops of up to ``n`` steps, or as many as are made."""
    rows = max(1, min(n, MOST_ROWS))
    whole = _unbounded(rows, ram, write_cost, read_cost)
    if disk is not None and whole.most_needed > disk:
        rows = min(rows, max(1, isqrt(MOST_WORK // max(disk, 1))))
        bounded = _bounded(rows, ram, disk, write_cost, read_cost)
        whole = evolve(whole, rows=rows, bounded=bounded)
    return whole


def _unbounded(n: int, ram: int, write_cost: float, read_cost: float) -> TwoLevel:
    memory = advances_up_to(n, ram)
    live, again, steps = memory.copy(), memory.copy(), np.arange(n + 1)
    left = steps + read_cost + again  # j + r + D'(j)
    moves, needed = np.zeros((2, n + 1), np.int32), np.zeros((2, n + 1), np.int32)
    needed[1] = 1
    for k in range(2, n + 1):
        costs = left[1:k] + live[k - 1 : 0 : -1]
        j = int(costs.argmin()) + 1
        if costs[j - 1] < memory[k]:
            again[k], moves[1, k] = costs[j - 1], j
            left[k] = k + read_cost + again[k]
            needed[1, k] = max(1 + needed[0, k - j], needed[1, j])
            if write_cost + again[k] < memory[k]:
                live[k], moves[0, k], needed[0, k] = write_cost + again[k], j, needed[1, k]
    period = 1 + int(((left[1:] + write_cost) / steps[1:]).argmin())
    return TwoLevel(ram, n, moves, needed, np.zeros((0, 2, n + 1), np.int32), int(needed.max()), period)


def _bounded(n: int, ram: int, disk: int, write_cost: float, read_cost: float) -> Any:
    memory, steps = advances_up_to(n, ram), np.arange(n + 1)
    moves = np.zeros((disk + 1, 2, n + 1), np.int32)
    before = memory  # D(m-1)
    for m in range(1, disk + 1):
        again = memory.copy()
        left = steps + read_cost + again
        reverse = np.ascontiguousarray(before[::-1])
        for k in range(2, n + 1):
            costs = left[1:k] + reverse[n - k + 1 : n]
            j = int(costs.argmin()) + 1
            if costs[j - 1] < memory[k]:
                again[k], moves[m, 1, k] = costs[j - 1], j
                left[k] = k + read_cost + again[k]
        cheaper = write_cost + again < memory
        moves[m, 0][cheaper] = moves[m, 1][cheaper]
        before = np.where(cheaper, write_cost + again, memory)
    return moves
