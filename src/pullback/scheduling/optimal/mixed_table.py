"""The optimum for slots that hold a state or a tape, as a table of what to do first.

M(n, S) is the fewest forward steps that reverse n steps from a live x_0, which takes no room yet, in S units of room; a
state takes a units and the tape of a step b. M(1, S) = 1 and

    M(n, S) = min( 1 + M(n-1, S-b)                                where b <= S: keep the tape of the first step
                   min over 1 <= m < n of m + M(n-m, S-a) + M(m, S)  where a <= S: keep the state, advance m )

Source: J. R. Maddison, "Step-based checkpointing with high-level algorithmic differentiation", J. Comput. Sci. 82
(2024), 102405, for a = b = 1; M. Zhang and E. Constantinescu, arXiv:2106.13879, for slots of either kind.
"""

from functools import lru_cache
from typing import Any, Final

import numpy as np

MOST_CELLS: Final = 2**18
"""The most cells of a table, 4 bytes each when it is done, 12 while it is made."""
MOST_WORK: Final = 2**28
"""Candidates looked at for a table: a few seconds at most."""
INFINITE: Final = 2**60
TAPE: Final = 0
NO_ROOM: Final = -1


def longest(units: int) -> int:
    """The most steps for which a table with ``units`` units of room is made."""
    return max(1, min(MOST_CELLS // (units + 1), MOST_WORK // ((units + 1) * (2 * reach(units) + 1))))


def reach(units: int) -> int:
    """How far from the best m for n - 1 the best one for n is looked for, on either side."""
    return units + 2


@lru_cache(maxsize=2)
def first_moves(n: int, units: int, state_units: int = 1, tape_units: int = 1) -> Any:
    """``moves[k, S]``: ``TAPE`` to keep the tape of the first of k steps, m >= 1 to keep the state and advance m,
    ``NO_ROOM`` where S is too little.

    int32, (n + 1) x (units + 1). O(n units^2) time. The window is exact in every case tried: all n <= 3000, units <= 12
    with equal sizes, and the cases of ``tests/policies/test_mixed.py``.
    """
    return fewest_and_moves(n, units, state_units, tape_units, reach(units))[1]


def fewest_and_moves(n: int, units: int, state_units: int, tape_units: int, width: int) -> tuple[Any, Any]:
    """M as int64 beside the moves; ``width`` >= n looks at every m."""
    a, b, columns = state_units, tape_units, units + 1
    fewest = np.full((n + 1, columns), INFINITE, np.int64)
    moves = np.full((n + 1, columns), NO_ROOM, np.int32)
    fewest[1] = 1
    centre = np.ones(max(columns - a, 0), np.int64)  # by room from a on: the best m so far
    for k in range(2, n + 1):
        row, move = fewest[k], moves[k]
        if columns > a:
            row[a:], centre = _states(fewest, k, a, centre, width)
            move[a:] = centre
        if columns > b:
            tape = fewest[k - 1, : columns - b] + 1
            better = tape < row[b:]
            row[b:][better] = tape[better]
            move[b:][better] = TAPE
        np.minimum(row, INFINITE, out=row)
    moves[fewest >= INFINITE] = NO_ROOM
    return fewest, moves


def _states(fewest: Any, k: int, a: int, centre: Any, width: int) -> tuple[Any, Any]:
    """Fewest steps when the state is kept, and the largest m that gives them, by room from ``a`` on."""
    columns = fewest.shape[1]
    low, high = max(1, int(centre.min()) - width), min(k - 1, int(centre.max()) + width)
    rooms = np.arange(columns - a)
    if high - low <= 4 * width:  # the windows lie together: one block is faster than gathering
        ms = np.arange(low, high + 1)
        costs = fewest[low : high + 1, a:] + fewest[k - high : k - low + 1, : columns - a][::-1]
        costs += ms[:, None]
        best = ms.size - 1 - costs[::-1].argmin(axis=0)
        return costs[best, rooms], ms[best]
    tried = np.clip(centre[:, None] + np.arange(-width, width + 1), 1, k - 1)
    flat = fewest.reshape(-1)
    costs = tried + flat[tried * columns + (rooms[:, None] + a)] + flat[(k - tried) * columns + rooms[:, None]]
    best = tried.shape[1] - 1 - costs[:, ::-1].argmin(axis=1)
    return costs[rooms, best], tried[rooms, best]
