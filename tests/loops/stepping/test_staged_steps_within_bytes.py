"""Stages of loops whose policy counts bytes: made of the first steps, before much is held, and with the same bytes."""

import tracemalloc

import numpy as np
import pytest

import pullback as pb
from pullback.loops.stepping.staged_steps import StagedSteps
from pullback.staging.generated import shelf

X = np.linspace(0.2, 0.9, 20_000)
C = np.linspace(0.5, 1.0, 20_000)


def heat(u, v):
    w = u.copy()
    w[1:-1] += 0.1 * C[1:-1] * (u[2:] - 2.0 * u[1:-1] + u[:-2]) + 0.01 * np.sin(v[1:-1])
    return w, 0.5 * v + 0.1 * u * u


def by_fori(x):
    u, v = pb.fori_loop(0, 60, lambda k, s: heat(*s), (x, np.cos(x)))
    return np.sum(u * v)


def by_scan(x):
    (u, v), ys = pb.scan(lambda s, k: (heat(*s), s[0][:3]), (x, np.cos(x)), np.arange(60))
    return np.sum(u * v) + np.sum(ys)


def by_while(x):
    u, v, _ = pb.while_loop(lambda s: s[2] < 60, lambda s: (*heat(*s[:2]), s[2] + 1), (x, np.cos(x), 0))
    return np.sum(u * v)


def by_two(x):
    u, v = pb.fori_loop(0, 30, lambda k, s: heat(*s), (x, np.cos(x)))
    u, v = pb.fori_loop(0, 30, lambda k, s: heat(*s), (np.tanh(u), v))
    return np.sum(u * v)


def measured(f, policy):
    """The gradient, and the most bytes that were there meanwhile."""
    tracemalloc.start()
    try:
        return pb.grad(f, policy=policy)(X), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.fixture
def staged(monkeypatch):
    """The steps that stages have computed where bytes are counted."""
    steps, computed = [], StagedSteps._computed

    def told(self, k, *args, **kwargs):
        steps.append((k, self.at_work))
        return computed(self, k, *args, **kwargs)

    monkeypatch.setattr(StagedSteps, "_computed", told)
    return steps


@pytest.mark.usefixtures("all_loaded")
@pytest.mark.parametrize("n_arrays", [50, 80, 120, 170])
@pytest.mark.parametrize("f", [by_fori, by_scan, by_while, by_two])
def test_bits_and_bytes(f, n_arrays, staged):
    wanted, policy = pb.grad(f)(X), pb.Budget(n_arrays * X.nbytes)
    _, without = pb.vjp(f, X, policy=policy)
    without(1.0)
    with pb.using(staging="off"):
        _, off = pb.vjp(f, X, policy=policy)
        off(1.0)
    assert without.report.n_forward == off.report.n_forward  # nothing is kept free for them
    shelf.forget()
    del staged[:]
    for _ in range(2):  # with its making, and without
        found, peak = measured(f, policy)
        np.testing.assert_array_equal(found, wanted)
        assert peak <= n_arrays * X.nbytes + 2**18, (peak / X.nbytes, n_arrays)
    assert bool(staged) or n_arrays < 170
    assert all(at_work < 30 * X.nbytes for _, at_work in staged)


@pytest.mark.usefixtures("all_loaded")
def test_arrays_that_stages_work_in_go_when_the_pass_is_over():
    policy = pb.Budget(170 * X.nbytes)
    _, pull = pb.vjp(by_fori, X, policy=policy)
    pull(1.0)
    pull.close()
    tracemalloc.start()
    try:
        _, pull = pb.vjp(by_fori, X, policy=policy)
        after_forward = tracemalloc.get_traced_memory()[0]
        pull(1.0)
        after = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    held = pull.report.peak_bytes
    assert after_forward <= held + 2**18
    assert after <= 12 * X.nbytes, after / X.nbytes


def test_stages_of_large_steps_are_made_before_much_is_held():
    """Under a policy that counts states as well: at the end of the forward pass all of them would be there."""

    def f(x):
        return np.sum(pb.fori_loop(0, 60, lambda k, s: heat(*s), (x, np.cos(x)))[0])

    made, where = shelf.stage_of, []

    def told(step, backend=None):
        where.append(tracemalloc.get_traced_memory()[0])
        return made(step, backend)

    shelf.forget()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shelf, "stage_of", told)
        measured(f, pb.Binomial(40))
    assert where
    assert max(where) < 30 * X.nbytes  # of more than eighty at the end
