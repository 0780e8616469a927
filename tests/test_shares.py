"""The share of a table that is run by default: even, in step with no table, the whole of it in n turns."""

from collections import Counter
from itertools import pairwise

import pytest
from tests.shares import in_share


@pytest.mark.parametrize("n", [2, 3, 5])
def test_a_share_is_even_whatever_the_period_of_the_table(n):
    for period in range(1, 9):
        for turn in range(n):
            chosen = [k for k in range(1_000) if in_share(k, n, turn)]
            by_place = Counter(k % period for k in chosen)
            assert all(abs(by_place[place] * n * period - 1_000) < 200 for place in range(period)), (period, by_place)
            assert max(b - a for a, b in pairwise(chosen)) <= 2 * n


@pytest.mark.parametrize("n", [2, 3, 5])
def test_every_case_is_of_one_turn_and_the_first_of_all(n):
    turns = [sum(in_share(k, n, turn) for turn in range(n)) for k in range(1_000)]
    assert turns == [n] + [1] * 999
