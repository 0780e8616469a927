from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pullback.policies.recompute import best_segments
from pullback.scheduling.optimal import binomial_split as costs
from pullback.words.errors import PolicyError

# checkpointing by hand: rows of forward steps for s = 1, 2, 3, 5, 10, 50
BY_HAND = {
    10: (55, 30, 25, 23, 19, 19),
    50: (1275, 335, 230, 172, 138, 99),
    100: (5050, 945, 590, 416, 322, 248),
    1000: (500500, 29820, 13155, 7284, 4636, 2948),
}


@cache
def least_advances(n, s):
    """The dynamic program itself: x_0 is stored, advance m, store x_m."""
    if n <= 1:
        return 0
    if s == 1:
        return n * (n - 1) // 2
    return min(m + least_advances(n - m, s - 1) + least_advances(m, s) for m in range(1, n))


@cache
def least_writes(n, s):
    """Fewest snapshots written (x_0 not counted) among the schedules of fewest advances."""
    if n <= 1:
        return 0
    if s == 1:
        return 0
    best = least_advances(n, s)
    choices = [m for m in range(1, n) if m + least_advances(n - m, s - 1) + least_advances(m, s) == best]
    return min((m < n - 1) + least_writes(n - m, s - 1) + least_writes(m, s) for m in choices)


@pytest.mark.parametrize("n", range(1, 41))
def test_advances_are_the_optimum_of_the_dynamic_program(n):
    for s in range(1, 9):
        assert costs.advances(n, s) == least_advances(n, s), (n, s)
        assert costs.forward_steps(n, s) == n + least_advances(n, s)
        assert costs.writes(n, s) == (n > 1) + least_writes(n, s)


@pytest.mark.parametrize("n", range(2, 41))
def test_split_is_the_farthest_optimal_one_with_fewest_writes(n):
    for s in range(2, 9):
        if s >= n - 1:
            assert costs.split(n, s) == 1
            continue
        best = [
            m for m in range(1, n) if m + least_advances(n - m, s - 1) + least_advances(m, s) == least_advances(n, s)
        ]
        wrote = {m: (m < n - 1) + least_writes(n - m, s - 1) + least_writes(m, s) for m in best}
        assert costs.split(n, s) == max(m for m in best if wrote[m] == min(wrote.values())), (n, s)


@pytest.mark.parametrize("n", BY_HAND)
def test_forward_steps_by_hand(n):
    assert tuple(costs.forward_steps(n, s) for s in (1, 2, 3, 5, 10, 50)) == BY_HAND[n]


@pytest.mark.parametrize(("s", "t", "total"), [(10, 31, 28_840_538_032), (50, 8, 8_699_325_912)])
def test_a_billion_steps(s, t, total):
    assert costs.repetitions(10**9, s) == t
    assert costs.forward_steps(10**9, s) == total


@given(n=st.integers(2, 10**12), s=st.integers(1, 1000))
def test_repetition_number_brackets_n(n, s):
    t = costs.repetitions(n, s)
    assert costs.beta(s, t - 1) < n <= costs.beta(s, t)
    assert costs.forward_steps(n, s) == (t + 1) * n - costs.beta(s + 1, t - 1)


@given(n=st.integers(2, 10**12), s=st.integers(1, 1000))
def test_split_satisfies_the_recurrence(n, s):
    m = costs.split(n, s)
    assert 1 <= m < n
    if s > 1:
        assert m + costs.advances(n - m, s - 1) + costs.advances(m, s) == costs.advances(n, s)


def test_beta_outside_its_range_is_zero():
    assert [costs.beta(3, -1), costs.beta(-1, 3), costs.beta(0, 5), costs.beta(2, 2)] == [0, 0, 1, 6]


def test_short_loops():
    assert [costs.forward_steps(n, 1) for n in (0, 1, 2)] == [0, 1, 3]
    assert costs.repetitions(1, 1) == 0


def test_no_snapshot_cannot_reverse():
    for function in (costs.advances, costs.repetitions):
        with pytest.raises(PolicyError, match=r"5 steps cannot be reversed with 0 snapshots.*x_0"):
            function(5, 0)


@given(n=st.integers(1, 400), state=st.integers(1, 50), tape=st.integers(1, 50))
def test_best_segments_is_within_a_twentieth_of_the_fewest_bytes(n, state, tape):
    def held(k):
        return (k - 1) * state + -(-n // k) * tape

    k = best_segments(n, state, tape)
    assert 1 <= k <= n
    assert held(k) <= 1.05 * min(map(held, range(1, n + 1))) + max(state, tape)


def test_best_segments_with_unknown_sizes_is_the_root():
    assert [best_segments(n) for n in (0, 1, 2, 9, 100, 10_000)] == [1, 1, 1, 3, 10, 100]
    assert best_segments(100, 800, 0) == 10
