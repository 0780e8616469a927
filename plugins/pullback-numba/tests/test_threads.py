"""Nests whose rows are divided among threads: the same bits for any number of them."""

import warnings

import numpy as np
import pytest

import pullback as pb
from pullback.backends import threads
from pullback.testing.comparing.bits import same_bits
from pullback_numba import compiling


@pytest.fixture(autouse=True)
def few_points_are_divided(monkeypatch):
    monkeypatch.setattr(compiling, "FEWEST", 8)
    yield
    threads.end()


def wave(k, u, c):
    v = u * 0.9 + np.tanh(u) * 0.05
    v[1:-1, 1:-1] += c[1:-1, 1:-1] * (u[2:, 1:-1] - u[1:-1, :-2])
    return v


def test_the_bits_of_recorded_steps():
    """One test for all policies: what is compiled serves them all."""

    def f(u, c, **how):
        return np.sum(pb.fori_loop(0, 9, lambda k, u: wave(k, u, c), u, **how) ** 2)

    for policy in (pb.SaveAll(), pb.Recompute(3), pb.Binomial(2)):
        for seed in range(2):
            u, c = np.random.default_rng(seed).normal(size=(2, 41, 53)) * 0.1
            wanted = pb.value_and_grad(lambda u, c: f(u, c, staging="off"), (0, 1), policy=policy)(u, c)
            for n in (1, 2, 5):
                with pb.using(staging="numba", threads=n):
                    assert same_bits(pb.value_and_grad(f, (0, 1), policy=policy)(u, c), wanted), (policy, seed, n)


def test_a_warning_comes_once_whatever_thread_meets_its_cause():
    def body(k, u):
        return u * 3.0 - u / 7.0 * u

    def f(x):
        return np.sum(pb.fori_loop(0, 8, body, x, staging="numba"))

    def told(x, n):
        with warnings.catch_warnings(record=True) as found, pb.using(threads=n):
            warnings.simplefilter("always")
            pb.value_and_grad(f)(x)
        return [(str(w.message), w.lineno) for w in found]

    x = np.full(3000, 0.1)
    assert told(x, 1) == told(x, 2) == []
    for place in (5, 2990):
        y = x.copy()
        y[place] = 1e200
        assert told(y, 1) == told(y, 2) != []
