"""Reverse over reverse has the same bits under every pair of policies, and runs no step twice: what is recorded
around it is held there."""

import numpy as np
import pytest
from tests.programs.step_programs import POLICIES, PROGRAMS, N, X, move

import pullback as pb

W = np.arange(4.0)


def product(f, inner, outer, x=X):
    """The Hessian of the number that ``f`` returns, times ``W``."""
    return pb.grad(lambda x: np.sum(W * pb.grad(lambda x: f(x)[1], policy=inner)(x)), policy=outer)(x)


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_every_pair_of_policies_has_the_bits_of_save_all(f):
    expected = product(f, pb.SaveAll(), pb.SaveAll())
    np.testing.assert_allclose(expected, pb.hvp(lambda x: f(x)[1], (X,), (W,)), rtol=1e-11, atol=1e-13)
    for inner in POLICIES:
        for outer in POLICIES:
            assert product(f, inner, outer).tobytes() == expected.tobytes(), (inner, outer)


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_a_trace_closed_over_is_found_too(policy):
    def slope(theta, policy):
        def loss(u):
            for _ in pb.steps(N):
                u = move(u, theta)
            return np.sum(u * u)

        return np.sum(W * pb.grad(loss, policy=policy)(X))

    expected = pb.grad(lambda theta: slope(theta, pb.SaveAll()))(X)
    assert pb.grad(lambda theta: slope(theta, policy))(X).tobytes() == expected.tobytes()


def test_no_step_is_run_twice_where_everything_is_recorded_around_it():
    calls = []

    def loss(x):
        def body(_, u):
            calls.append(1)
            return move(u, x)

        return np.sum(pb.fori_loop(0, N, body, x))

    inner = pb.grad(loss, policy=pb.Binomial(1))
    pb.grad(lambda x: np.sum(W * inner(x)))(X)
    assert len(calls) == N
    calls.clear()
    inner(X)
    assert len(calls) > 2 * N  # alone it does what it was told
    calls.clear()
    pb.jvp(inner, (X,), (W,))
    assert len(calls) > 2 * N  # and under forward mode, which holds nothing
