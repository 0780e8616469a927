"""Checkpointed functions that are called again: generated functions execute them again and reverse them, same bits."""

from collections import Counter

import numpy as np
import pytest

import pullback as pb
from pullback.programs.marks import checkpoints
from pullback.staging.generated import shelf
from pullback.staging.replay import pattern_shelf
from pullback.testing.comparing.bits import same_bits

X = np.array([0.3, -0.8, 0.9, 0.2])


@pytest.fixture(autouse=True)
def _anew():
    shelf.forget()
    checkpoints._CALLS.clear()


def stages():
    found = [known for shelf in pattern_shelf._SHELF.values() for known in shelf]
    return [stage for known in found for stage in known.stages]


def reverses():
    return [reverse for stage in stages() for reverse in stage.reverses]


def block(u, w):
    v = np.tanh(u @ w)
    v = v * u + 0.3
    return np.sin(v) / (1 + v * v)


def writing(u, w):
    v = u * w[0]
    v[1:] += 0.1 * u[:-1]
    v[0] *= 0.5
    return v * w[1] + u


def branching(u, w):
    return np.sin(u) if pb.value(u)[0] > 0.2 else np.cos(u) * w[1]


def with_an_array_of_its_own(u, w):
    return u * np.arange(4.0) + w[2] * np.float64(0.5)


def two_results(u, w):
    v = u @ w
    return np.sin(v) + v * u


def program(inside, n, policy=None):
    def f(x):
        w = np.outer(x, x) * 0.1 + 0.1
        u = x
        for _ in range(n):
            u = pb.checkpoint(inside, policy)(u, w) + u * 0.5
        return np.sum(u)

    return f


@pytest.mark.parametrize("inside", [block, writing, branching, with_an_array_of_its_own, two_results])
@pytest.mark.parametrize("policy", [None, pb.Recompute(2), pb.Binomial(2)])
@pytest.mark.parametrize("n", [1, 7])
def test_the_bits_are_those_of_calls_that_are_executed_one_by_one(inside, policy, n):
    f = program(inside, n, policy)
    for x in (X, X[::-1] * 1.5 + 0.1, X):
        with pb.using(staging="off"):
            wanted = pb.value_and_grad(f)(x)
        for staging in ("numpy", "auto"):
            for _ in range(3):
                with pb.using(staging=staging):
                    assert same_bits(pb.value_and_grad(f)(x), wanted)
    if policy is None:
        assert stages()
        assert reverses()


def test_all_calls_in_a_program_and_in_the_next_one_share_their_functions():
    with pb.using(staging="numpy"):
        pb.grad(program(two_results, 9))(X)
        assert len(stages()) == 1
        pb.grad(program(two_results, 5))(X * 0.5)
        pb.grad(lambda x: np.sum(pb.checkpoint(two_results)(np.exp(x), np.outer(x, x))))(X)
    assert len(stages()) == 1


def test_the_second_call_of_a_kind_is_the_first_that_is_staged():
    f = program(lambda u, w: np.sin(u) * w[0], 1)
    with pb.using(staging="numpy"):
        pb.grad(f)(X)
        assert not stages()
        pb.grad(f)(X)
        assert len(stages()) == 1


def test_by_itself_it_takes_24_calls():
    f = program(lambda u, w: np.sin(u) * w[0], 1)
    for _ in range(23):
        pb.grad(f)(X)
    assert not stages()
    for _ in range(3):
        pb.grad(f)(X)
    assert len(stages()) == 1


def test_off_learns_nothing():
    with pb.using(staging="off"):
        for _ in range(3):
            pb.grad(program(block, 9))(X)
    assert not stages()


def test_calls_that_all_differ_are_left_alone_after_a_while():
    def inside(u, k):
        return u[k:] * 2.0 + np.sin(u[:-k])

    def f(x):
        return sum(np.sum(pb.checkpoint(inside)(x, k)) for k in range(1, 90))

    x = np.linspace(0.0, 1.0, 100)
    with pb.using(staging="off"):
        wanted = pb.grad(f)(x)
    for _ in range(2):
        with pb.using(staging="numpy"):
            assert same_bits(pb.grad(f)(x), wanted)
    assert not stages()


def test_the_user_function_is_called_once_and_generators_are_drawn_from_once():
    calls = Counter()
    rng = np.random.default_rng(3)

    def noisy(u, w):
        calls["n"] += 1
        return np.sin(u * rng.standard_normal(4)) * w[0]

    f, found = program(noisy, 6), []
    for staging in ("off", "numpy", "numpy"):
        rng = np.random.default_rng(3)
        calls.clear()
        with pb.using(staging=staging):
            found.append(pb.value_and_grad(f)(X))
        assert calls["n"] == 6
    assert same_bits(found[0], found[1])
    assert same_bits(found[0], found[2])
    assert stages()


def test_a_loop_within_is_run_again_as_before():
    def inside(u, w):
        return pb.fori_loop(0, 3, lambda k, v: np.sin(v) * w[0], u)

    f = program(inside, 4)
    with pb.using(staging="off"):
        wanted = pb.grad(f)(X)
    for _ in range(2):
        with pb.using(staging="numpy"):
            assert same_bits(pb.grad(f)(X), wanted)
    assert not stages()


def test_vjp_may_be_pulled_again_and_the_second_order_is_right():
    f = program(block, 3)
    with pb.using(staging="off"):
        wanted = pb.vjp(f, X)[1](1.0), pb.hessian(f)(X)
    with pb.using(staging="numpy"):
        for _ in range(2):
            _, pull = pb.vjp(f, X)
            assert same_bits(pull(1.0), wanted[0])
            assert same_bits(pull(1.0), wanted[0])
            pull.close()
            assert same_bits(pb.hessian(f)(X), wanted[1])


def test_what_is_held_is_what_is_held_without_stages():
    peaks = []
    f = program(block, 6)
    for staging in ("off", "numpy", "numpy"):
        with pb.using(staging=staging):
            _, pull = pb.vjp(f, X)
            pull(1.0)
            peaks.append(pull.report.peak_bytes - pull.report.bytes_by_reason["bookkeeping"])
            pull.close()
    assert peaks[0] == peaks[1] == peaks[2]
