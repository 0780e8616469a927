"""Marked steps under a policy that goes by bytes: they tell the sizes, and the bytes bind."""

import numpy as np
import pytest
from attrs import frozen
from hypothesis import given, settings
from hypothesis import strategies as st

import pullback as pb

U = np.linspace(0.1, 1.0, 1000)
STATE = U.nbytes


def marked(n, *, known=True):
    """``n`` steps whose tapes take two arrays, which read ``c`` throughout."""

    def f(u, c):
        for _ in pb.steps(n if known else iter(range(n))):
            u = np.sin(u) * c + u * 0.5
        return np.sum(u * u)

    return f


def run(f, policy):
    out, pull = pb.vjp(f, U, U[::-1].copy(), policy=policy)
    return out, pull(1.0), pull.report


@settings(max_examples=40, deadline=None)
@given(n=st.integers(1, 40), states=st.integers(0, 90), known=st.booleans())
def test_the_bytes_of_a_budget_bind(n, states, known):
    f = marked(n, known=known)
    out, gradients, _ = run(f, pb.SaveAll())
    budget = asked = states * STATE
    try:
        run(f, pb.Budget(budget))
    except pb.BudgetError as error:
        budget = error.minimum_bytes
    found, pulled, report = run(f, pb.Budget(budget))
    assert budget >= asked
    assert found == out
    assert all(np.array_equal(a, b) for a, b in zip(pulled, gradients, strict=True))
    assert report.peak_bytes <= budget


def test_with_room_for_all_tapes_no_step_runs_twice():
    *_, report = run(marked(30), pb.Budget(200 * STATE))
    assert report.n_forward == 30


def test_more_bytes_run_fewer_steps():
    counts = [run(marked(40), pb.Budget(k * STATE))[2].n_forward for k in (14, 20, 30, 50, 100)]
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] < counts[0]


def test_a_policy_of_the_user_is_told_the_sizes():
    told = []

    @frozen
    class Noting(pb.MemoryPolicy):
        def begin(self, n, *, state_bytes, tape_bytes):
            told.append((n, state_bytes, tape_bytes))
            return pb.SaveAll().begin(n, state_bytes=state_bytes, tape_bytes=tape_bytes)

    run(marked(5), Noting())
    assert told[0] == (5, STATE, 2 * STATE)  # not c, which every step reads


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_few_steps(n):
    wanted = run(marked(n), pb.SaveAll())
    found = run(marked(n), pb.Mixed(2))
    assert all(np.array_equal(a, b) for a, b in zip(found[1], wanted[1], strict=True))


def test_steps_that_end_early():
    def f(u):
        for k in pb.steps(20):
            u = np.sin(u)
            if k == 1:
                break
        return np.sum(u)

    for policy in (pb.Binomial(2), pb.Mixed(2), pb.Budget(20 * STATE)):
        assert np.array_equal(pb.grad(f, policy=policy)(U), pb.grad(f)(U))


def test_the_books_of_many_small_steps_count():
    """Of 3,000 steps they take more than all arrays of the snapshots."""

    def f(x):
        for _ in pb.steps(3_000):
            x = x - 0.01 * np.sin(x)
        return np.sum(x)

    with pytest.raises(pb.BudgetError) as caught:
        pb.grad(f, policy=pb.Budget(10_000))(np.ones(16))
    assert 100 * 3_000 < caught.value.minimum_bytes < 200 * 3_000
