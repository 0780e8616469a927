"""What judges an online rule: the fewest forward steps of a loop, given the snapshots that it holds at its end."""

from collections.abc import Sequence
from itertools import pairwise

from pullback.scheduling.optimal.binomial_split import advances


def held_forward_steps(snapshots: Sequence[int], n: int, s: int, *, lookback: bool) -> int:
    """Forward steps of a loop that ended after n >= 1 steps with these snapshots and is reversed with the fewest
    advances.

    Freed slots are used again. With ``lookback`` the tape of step n-1 comes out of the sweep, so
    n + (n-1) + sum_i A(p_(i+1) - p_i, s-i) + A(n-1 - p_last, s-k+1), A = ``advances``; without it step n-1 is run again
    from the newest snapshot: n + n + sum + A(n - p_last, s-k+1). Snapshots at n or later do not count.
    """
    end = n - 1 if lookback else n
    ends = [p for p in snapshots if p < end]
    assert ends or end <= 0, f"no snapshot is held below step {end}: {list(snapshots)}"
    return n + end + sum(advances(after - p, s - i) for i, (p, after) in enumerate(pairwise([*ends, end])))
