"""Steps of a loop of unknown length: its condition is asked once before each, whether the body runs or rests."""

import gc
import warnings

import numpy as np
import pytest

import pullback as pb
from pullback.loops.stepping.staged_steps import StagedSteps
from pullback.testing.comparing.bits import same_bits

pytestmark = pytest.mark.usefixtures("nothing_is_known")
X = np.linspace(0.1, 1.0, 5)
POLICIES = [pb.SaveAll(), pb.Binomial(4), pb.Recompute(), pb.Budget(20_000)]


def until(n, asked=None, body=lambda s, x: (s[0] + 1.0, np.sin(s[1]) * 1.01 + 0.1 * x)):
    def goes_on(s):
        if asked is not None:
            asked.append(float(s[0]))
        return s[0] < n

    return lambda x: np.sum(pb.while_loop(goes_on, lambda s: body(s, x), (0.0, x))[1] ** 2)


def recorded(f, x):
    with pb.using(staging="off"):
        return pb.value_and_grad(f)(x)


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
@pytest.mark.parametrize("n", [0, 1, 2, 23, 24, 25, 32, 33, 60, 200])
def test_the_bits_are_those_of_recorded_steps(n, policy):
    f = until(n)
    for x in (X, X, 0.5 * X):
        for given, wanted in zip(pb.value_and_grad(f, policy=policy)(x), recorded(f, x), strict=True):
            assert same_bits(given, wanted)


@pytest.mark.parametrize("n", [1, 24, 80])
def test_the_condition_is_asked_once_before_each_step(n):
    asked = []
    for _ in range(3):
        asked.clear()
        pb.grad(until(n, asked))(X)
        assert asked == [float(k) for k in range(n + 1)]


def test_steps_that_are_alike_are_not_looked_at_one_by_one(monkeypatch):
    f, seen = until(100), []
    pb.grad(f)(X)
    ordinary = StagedSteps.recorded

    def counted(self, k, *args, **kwargs):
        seen.append(k)
        return ordinary(self, k, *args, **kwargs)

    monkeypatch.setattr(StagedSteps, "recorded", counted)
    pb.grad(f)(X)
    assert len(seen) <= 2


def test_a_body_that_does_something_else_now_and_then():
    calls = [0]

    def body(s, x):
        calls[0] += 1
        u = np.cos(s[1]) * x if calls[0] % 7 == 0 else np.sin(s[1]) + x
        return s[0] + 1.0, u

    f = until(90, body=body)
    for _ in range(3):
        calls[0] = 0
        given = pb.value_and_grad(f)(X)
        assert calls[0] == 90
        calls[0] = 0
        assert all(map(same_bits, given, recorded(f, X)))


def test_a_condition_that_fails_leaves_nothing():
    fails = [True]

    def goes_on(s):
        if fails[0] and s[0] >= 50.0:
            raise ValueError("told by the condition")
        return s[0] < 100

    def f(x):
        return np.sum(pb.while_loop(goes_on, lambda s: (s[0] + 1.0, np.sin(s[1]) + x), (0.0, x))[1])

    gradient = pb.grad(f)
    for _ in range(2):
        with pytest.raises(ValueError, match="told by the condition"):
            gradient(X)
    gc.collect()
    gc.disable()
    try:
        with pytest.raises(ValueError, match="told by the condition") as told:
            gradient(X)
        del told
        assert gc.collect() == 0
    finally:
        gc.enable()
    fails[0] = False
    assert same_bits(gradient(X), recorded(f, X)[1])


def test_warnings_of_the_condition_name_its_own_line():
    def goes_on(s):
        return s[0] < 60.0 and np.log(50.0 - s[0]) is not None

    def f(x):
        return np.sum(pb.while_loop(goes_on, lambda s: (s[0] + 1.0, np.sin(s[1]) + x), (0.0, x))[1])

    for _ in range(3):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            pb.grad(f)(X)
        assert {(w.filename, w.lineno) for w in told} == {(__file__, goes_on.__code__.co_firstlineno + 1)}


def test_a_condition_without_a_return():
    def goes_on(s):
        return True if s[0] < 40 else None

    with pytest.raises(pb.StructureError, match="the condition returned None"):
        pb.grad(lambda x: np.sum(pb.while_loop(goes_on, lambda s: (s[0] + 1.0, np.sin(s[1]) + x), (0.0, x))[1]))(X)


def test_a_condition_that_draws_and_one_that_has_an_effect():
    rng, told = np.random.default_rng(0), []

    def f(x):
        def goes_on(s):
            pb.effect(told.append)(float(s[0]))
            return rng.random() < 0.98 and s[0] < 300

        return np.sum(pb.while_loop(goes_on, lambda s: (s[0] + 1.0, np.sin(s[1]) + x), (0.0, x))[1])

    state = rng.bit_generator.state
    wanted = recorded(f, X)
    n, told[:] = len(told), []
    for policy in POLICIES:
        for _ in range(2):
            rng.bit_generator.state = state
            assert all(map(same_bits, pb.value_and_grad(f, policy=policy)(X), wanted))
            assert len(told) == n
            told.clear()
