"""One ``Budget`` over loop functions in the steps of loop functions: the least figure is enough at the first retry,
tracemalloc's peak stays within the bytes, more bytes never cost forward steps, and ample ones cost nothing."""

from functools import lru_cache
from itertools import count, pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.programs.measured import peak_of
from tests.promises.test_budgets_bind import PARTS, SLACK, C, X, body_of
from tests.promises.test_budgets_in_a_row import looped

import pullback as pb

body = lru_cache(None)(body_of)
TOLD, RUNS = (-1,), count()
"""A statement that counts its runs."""
FORMS = ("fori", "scan", "while")


def run(items, u, v, c):
    """Statements, and loops of ``(form, n, items)``, one after the other."""
    for item in items:
        if type(item[0]) is str:
            form, n, within = item
            u, v = looped(form, n, lambda u, v, within=within: run(within, u, v, c), u, v)
        elif item == TOLD:
            next(RUNS)
        else:
            u, v = body(item)(u, v, c)
    return u, v


def program(items):
    def f(x, c):
        u, v = run(items, x * 1.5, np.cos(x), c)
        return np.sum(u * v)

    return f


def gradient(f, policy, x=X):
    with np.errstate(all="ignore"):
        out, pull = pb.vjp(f, x, C, policy=policy)
        return (out, *pull(1.0)), pull.report


def enough(f, nbytes):
    """These bytes, or what the error says, which is enough."""
    try:
        gradient(f, pb.Budget(nbytes))
    except pb.BudgetError as error:
        nbytes = error.minimum_bytes
        gradient(f, pb.Budget(nbytes))
    return nbytes


def assert_binds(loop, arrays, staging):
    f = program([loop])
    with pb.using(staging=staging):
        budget = enough(f, arrays * X.nbytes)
        for x in (X, X[::-1].copy()):
            wanted, _ = gradient(f, pb.SaveAll(), x)
            (found, _), peak = peak_of(gradient, f, pb.Budget(budget), x)
            assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(found, wanted, strict=True))
            assert peak <= budget + SLACK, (peak / X.nbytes, budget / X.nbytes)


statements = st.lists(st.integers(0, len(PARTS) - 1), min_size=1, max_size=3).map(tuple)


def loops(within):
    return st.tuples(st.sampled_from(FORMS), st.integers(1, 8), within)


innermost = loops(st.lists(statements, min_size=1, max_size=1))
nested = loops(st.lists(statements | innermost, min_size=1, max_size=4))
deep = loops(st.lists(statements | nested, min_size=1, max_size=3))
drawn = {"arrays": st.integers(8, 200), "staging": st.sampled_from(["auto", "off"])}
checked = settings(deadline=None, suppress_health_check=list(HealthCheck))
TWO = ("fori", 6, [(0,), ("fori", 8, [(3,)]), (5,)])


@given(loop=nested, **drawn)
@example(loop=TWO, arrays=8, staging="off")
@example(loop=("scan", 5, [(2,), ("while", 6, [(0, 1)])]), arrays=8, staging="auto")
@example(loop=("fori", 4, [("fori", 2, [(7,)]), (1,), ("scan", 7, [(3,)])]), arrays=8, staging="off")  # step 0 again
@example(loop=("fori", 3, [("fori", 3, [(3,), ("fori", 4, [(3,)])])]), arrays=60, staging="auto")
@settings(checked, max_examples=3)
def test_drawn_nests(loop, arrays, staging):
    assert_binds(loop, arrays, staging)


@pytest.mark.slow
@given(loop=nested | deep, **drawn)
@settings(checked, max_examples=100)
def test_many_drawn_nests(loop, arrays, staging):
    assert_binds(loop, arrays, staging)


def runs(f, policy):
    before = next(RUNS)
    gradient(f, policy)
    return next(RUNS) - before - 1


def assert_monotone(loop, factors):
    f = program([loop])
    with pb.using(verify="off", staging="off"):
        least = enough(f, 1)
        steps = [runs(f, pb.Budget(int(least * factor))) for factor in factors]
        once = steps[-1] // loop[1]  # step 0 may be run a second time
        assert all(later <= earlier + once for earlier, later in pairwise(steps)), steps
        assert steps[-1] == runs(f, pb.SaveAll())
    return steps


def test_more_bytes_never_cost_steps_and_ample_ones_nothing():
    steps = assert_monotone(("fori", 6, [(0,), ("fori", 8, [(3,), TOLD]), (5,)]), (1, 1.3, 2, 4, 40))
    assert steps[0] > 100
    assert steps[-1] == 48


within = st.tuples(st.sampled_from(["fori", "scan"]), st.integers(1, 8), statements.map(lambda one: [one, TOLD]))


@pytest.mark.slow
@given(loop=st.tuples(st.just("scan"), st.integers(1, 8), st.lists(within, min_size=1, max_size=2)))
@settings(checked, max_examples=60)
def test_drawn_nests_are_monotone(loop):
    assert_monotone(loop, (1, 1.2, 1.5, 2, 3, 5, 60))
