"""Binomial checkpointing in exact integers: where to put the next snapshot (:func:`split`), and the fewest steps.

n is the number of steps, s the number of snapshots stored at once, of which x_0 takes one. *Advances* are executions
that record nothing. Every step is recorded once, so forward steps = n + advances. The first sweep records the last
step.

Source: [GW] A. Griewank and A. Walther, "Algorithm 799: revolve", ACM TOMS 26 (2000), 19-45, equations (1)-(3).
"""

from functools import lru_cache
from math import comb

from pullback.words.errors import PolicyError

_LINEAR = 16
"""Repetition numbers up to which trying one after the other is faster than bisection."""


def beta(s: int, t: int) -> int:
    """C(s + t, s): the most steps that s snapshots reverse when none is advanced more than t times ([GW] equation
    1)."""
    return comb(s + t, s) if s >= 0 and t >= 0 else 0


def _repetition(n: int, s: int) -> tuple[int, int]:
    """(t, beta(s, t)) for the least t >= 1 with n <= beta(s, t). Needs 1 <= s, 2 <= n. O(log t) binomial
    coefficients."""
    t, edge = 1, s + 1
    while edge < n and t < _LINEAR:
        t += 1
        edge = edge * (s + t) // t  # beta(s, t) = beta(s, t-1) (s+t) / t
    if edge >= n:
        return t, edge
    low, high = t, 2 * t  # beta(s, low) < n: few snapshots, many repetitions
    while comb(s + high, s) < n:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if comb(s + middle, s) < n:
            low = middle
        else:
            high = middle
    return high, comb(s + high, s)


def repetitions(n: int, s: int) -> int:
    """t(n, s), the repetition number: beta(s, t-1) < n <= beta(s, t) ([GW] equation 2). No step is advanced more
    often. 0 for n <= 1."""
    if n <= 1:
        return 0
    _need_slots(n, s)
    return _repetition(n, s)[0]


def advances(n: int, s: int) -> int:
    """Fewest advances that reverse n steps with s snapshots, x_0 being in one: t n - beta(s+1, t-1) ([GW] equation
    3). 0 for n <= 1."""
    if n <= 1:
        return 0
    if s == 1:
        return n * (n - 1) // 2
    if s >= n - 1:
        return n - 1
    _need_slots(n, s)
    t, edge = _repetition(n, s)
    # beta(s+1, t-1) = beta(s, t) t / (s+1), saves a binomial coefficient
    return t * n - edge * t // (s + 1)


def forward_steps(n: int, s: int) -> int:
    """Fewest forward executions, recordings included: (t+1) n - beta(s+1, t-1) ([GW] equation 3 plus one recording
    of each step)."""
    return n + advances(n, s)


def writes(n: int, s: int) -> int:
    """Fewest snapshots that are written where the advances are fewest, that of x_0 included; 0 for n <= 1.

    n - 1 up to n = s + 1. Then, as n grows from beta(s, t-1) to beta(s, t), none more for the first beta(s-1, t-1)
    steps and one more for each of the others: from beta(s-1, t-1) writes to beta(s-1, t). Found by counting along
    :func:`split`; tests/scheduling/optimal and tests/instruments/planning count again.
    """
    if n <= 1:
        return 0
    _need_slots(n, s)
    if n <= s + 1:
        return n - 1
    t, edge = _repetition(n, s)
    fewer = edge * t // (s + t)  # beta(s, t-1)
    least = fewer * s // (s + t - 1)  # beta(s-1, t-1)
    return least + max(0, n - fewer - least)


@lru_cache(maxsize=4096)
def split(n: int, s: int) -> int:
    """Steps m to advance from x_0, stored, to the next snapshot x_m: the largest m with fewest advances and then fewest
    writes.

    1 <= m < n. All optimal m satisfy max(beta(s,t-2), n - beta(s-1,t)) <= m <= min(beta(s,t-1), n - beta(s-1,t-1)); of
    these, the cases below also write the fewest snapshots ([GW] section 3, the 'maximum' trajectory).
    """
    if n - 1 <= s:
        return 1
    if s == 1:
        return n - 1
    _need_slots(n, s)
    t, edge = _repetition(n, s)  # t >= 2 because n > s + 1
    s_t1 = edge * t // (s + t)  # beta(s, t-1)
    s_t2 = s_t1 * (t - 1) // (s + t - 1)  # beta(s, t-2)
    s1_t1 = s_t1 - s_t2  # beta(s-1, t-1), by Pascal's rule
    s1_t2 = s_t2 * s // (s + t - 2)  # beta(s-1, t-2)
    s2_t1 = s1_t1 - s1_t2  # beta(s-2, t-1), by Pascal's rule
    if n <= s_t1 + s1_t2:
        return n - s_t1 + s_t2
    if n <= s_t1 + s2_t1 + s1_t2:
        return s_t2 + s1_t2
    if n <= s_t1 + s1_t1 + s2_t1:
        return n - s1_t1 - s2_t1
    return s_t1


def _need_slots(n: int, s: int) -> None:
    if s < 1:
        raise PolicyError(f"{n} steps cannot be reversed with {s} snapshots. Allow at least 1: x_0 takes it.")
