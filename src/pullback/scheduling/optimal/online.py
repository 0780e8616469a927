"""Which snapshots to keep while the length of the loop is unknown: rules that judge each state before it leaves WORK.

A rule is called with x = 0, 1, 2, ... once step x has run and the loop is known to go on. It answers with a pair: the
snapshot to delete first, or ``None``, and whether to save the state x_x. The reverse is always the optimal one for the
snapshots that are stored.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from math import isqrt
from operator import add
from typing import TypeAlias

from pullback.scheduling.optimal.binomial_split import advances

Rule: TypeAlias = Callable[[int], tuple[int | None, bool]]
Cost: TypeAlias = Callable[[int, int], int]
"""How many advances reverse a gap of so many steps, while so many slots are free."""


def greedy(slots: int) -> Rule:
    """The exact greedy: keep the set, or let x replace one snapshot, whichever would cost least if the loop ended one
    step later.

    Cost of a set p_0 < .. < p_(k-1), ending at n, with A = ``advances``: sum_i A(p_(i+1) - p_i, s-i) + A(n-1 - p_(k-1),
    s-k+1). Ties: keep first, then the smallest index, so that schedules repeat. At most 1.042 times the
    known-length optimum for s >= 5 and n <= 5000, as measured; not proven. O(s) memory; O(1) a step, O(s) when the set
    changes.
    """
    return _Greedy(slots).place


def greedy_by(slots: int, cost: Cost, snapshots: Sequence[int]) -> Rule:
    """:func:`greedy` for another cost of a gap than :func:`advances`, where these ``snapshots`` are held already."""
    return _Greedy(slots, cost, snapshots).place


class _Greedy:
    """Gap i is p_(i+1) - p_i. Every list is indexed by it: O(s) memory, and an eviction at j reprices the gaps from
    j-1 on only."""

    __slots__ = (
        "_alone", "_base", "_beside", "_best", "_best_index", "_cost", "_gaps", "_here", "_merged", "_newest",
        "_shifted", "slots", "snapshots",
    )  # fmt: skip

    def __init__(self, slots: int, cost: Cost = advances, snapshots: Sequence[int] = ()) -> None:
        self.slots = slots
        self.snapshots: list[int] = list(snapshots)
        self._gaps: list[int] = []
        self._here: list[int] = []  # A(gap i, s-i)
        self._shifted: list[int] = []  # A(gap i, s-i+1): once a snapshot before it is evicted
        self._merged: list[int] = []  # A(gap i + gap i+1, s-i): once the snapshot between them is evicted
        self._cost = cached = lru_cache(maxsize=8 * slots)(cost)  # the same gaps come again and again
        self._alone, self._beside = _advances_with_one, _advances_with_two
        if cost is not advances:
            self._alone, self._beside = (lambda n: cached(n, 1)), (lambda n: cached(n, 2))
        if len(self.snapshots) == slots:
            self._measure()

    def place(self, x: int) -> tuple[int | None, bool]:
        snapshots = self.snapshots
        if len(snapshots) < self.slots:
            # A free slot is always worth using: A(L-1, s) + A(1, s-1) < A(L, s) for L >= 2.
            snapshots.append(x)
            if len(snapshots) == self.slots:
                self._measure()
            return None, True
        if self.slots == 1:
            return None, False  # x_0 is never given up
        length = x - snapshots[-1]
        least, index = self._base + self._alone(length + 1), 0
        if self._best_index > 0:
            cost = self._best + self._beside(length)
            if cost < least:
                least, index = cost, self._best_index
        if self._newest + self._beside(x - snapshots[-2]) < least:
            index = self.slots - 1
        if index == 0:
            return None, False
        evicted = snapshots[index]
        self._replace(index, x)
        return evicted, True

    def _measure(self) -> None:
        """All slots are taken."""
        self._gaps = [after - before for before, after in pairwise(self.snapshots)]
        self._here = [self._cost(gap, self.slots - i) for i, gap in enumerate(self._gaps)]
        self._price(0)

    def _replace(self, j: int, x: int) -> None:
        """Evict p_j, append x: the two gaps at p_j become one, and those after it move down by one."""
        snapshots, gaps = self.snapshots, self._gaps
        new = x - snapshots[-1]
        if j == len(gaps):
            new += gaps.pop()
            self._here.pop()
        else:
            gaps[j - 1 : j + 1] = [gaps[j - 1] + gaps[j]]
            self._here[j - 1 :] = [self._merged[j - 1], *self._shifted[j + 1 :]]
        snapshots.pop(j)
        snapshots.append(x)
        gaps.append(new)
        self._here.append(self._cost(new, 2))
        self._price(max(j - 2, 0))

    def _price(self, first: int) -> None:
        """The part of every choice's cost that does not depend on x. Gaps before ``first`` and their neighbours have
        not changed."""
        cost, gaps, s = self._cost, self._gaps, self.slots
        self._shifted[first:] = map(cost, gaps[first:], range(s - first + 1, 0, -1))
        self._merged[first:] = map(cost, map(add, gaps[first:], gaps[first + 1 :]), range(s - first, 0, -1))
        before = list(accumulate(self._here, initial=0))
        after = list(accumulate(reversed(self._shifted), initial=0))  # after[k]: the last k gaps
        self._base = before[-1]
        self._newest = before[-2] if gaps else 0
        # evicting p_j: gaps before j-1, the two around p_j as one, the gaps after j shifted
        choices = list(map(add, map(add, before, self._merged), after[-3::-1])) if len(gaps) > 1 else []
        self._best = min(choices, default=0)
        self._best_index = choices.index(self._best) + 1 if choices else 0


def _advances_with_one(n: int) -> int:
    return n * (n - 1) // 2


def _advances_with_two(n: int) -> int:
    """``advances(n, 2)`` = t n - t (t+1) (t+2) / 6, t the least integer with (t+1) (t+2) / 2 >= n."""
    if n <= 1:
        return 0
    t = (isqrt(8 * n - 7) - 1) // 2
    if (t + 1) * (t + 2) < 2 * n:
        t += 1
    return t * n - t * (t + 1) * (t + 2) // 6


def wang_moin_iaccarino(slots: int) -> Rule:
    """Bounded repetition, as published: the newest state takes one of the ``slots``, so ``slots`` - 1 others are
    stored.

    x_0 has infinite level. A new state takes a free place at level 0. Without one it takes the place of the latest
    dispensable snapshot, at level 0; dispensable is a snapshot with a later one of higher level. Without that either it
    takes the place of the newest state, at its level plus one. The reverse uses all slots. As measured for n < 600, no
    step is advanced more often than t(n, s) + 1 times, t as if n had been known. O(s) memory and time a step.

    Source: Q. Wang, P. Moin and G. Iaccarino, SIAM J. Sci. Comput. 31 (2009), 2549-2567, algorithm 1.
    """
    return _by_levels(max(slots - 1, 1))


def wang_moin_iaccarino_beside(slots: int) -> Rule:
    """:func:`wang_moin_iaccarino` with the newest state in WORK, so that all ``slots`` are snapshots besides.

    As measured for n < 600, no step is advanced more often than t(n, s) times. Mostly cheaper than as published; up to
    11 % dearer (34 of the 366 rows of the oracle).
    """
    return _by_levels(slots)


def _by_levels(slots: int) -> Rule:
    """The algorithm with ``slots`` snapshots beside the newest state."""
    # (position, level), oldest first; the last is the newest state, in WORK until x comes.
    places: list[tuple[int, float]] = []

    def place(x: int) -> tuple[int | None, bool]:
        # Called when x leaves WORK because x+1 has come: judge x+1, then see what became of x.
        if not places:
            places.append((0, float("inf")))
        if len(places) <= slots:
            places.append((x + 1, 0))
            return None, True
        highest = places[-1][1]
        for i in range(len(places) - 2, -1, -1):
            if places[i][1] < highest:
                evicted = places.pop(i)[0]
                places.append((x + 1, 0))
                return evicted, True
            highest = max(highest, places[i][1])
        places[-1] = (x + 1, places[-1][1] + 1)
        return None, False

    return place
