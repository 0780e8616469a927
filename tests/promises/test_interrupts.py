"""An interrupt may come at any instruction: no policy and no trace stays in force, and the next gradient is right."""

import signal

import numpy as np
import pytest

import pullback as pb
from pullback.memory.in_force import depth, policy_in_force

X = np.array([0.3, 0.5, -0.2])


def interrupted(call, seconds):
    """Call, unless KeyboardInterrupt comes before it is over."""

    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, seconds)
            call()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        pass
    signal.signal(signal.SIGALRM, before)


def nested(x):
    inner = lambda u: pb.fori_loop(0, 3, lambda _, v: np.sin(v) * x, u)  # noqa: E731
    u = pb.fori_loop(0, 6, lambda _, u: inner(u) + 0.1, x)
    for _ in pb.steps(3):
        u = np.cos(u) * x
    return np.sum(u)


# An interrupt may also come in a callback of the collector or a finaliser, where Python prints it and goes on.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timer raises a signal on this system")
@pytest.mark.parametrize("times", [12, pytest.param(400, marks=pytest.mark.slow)])
@pytest.mark.parametrize("policy", [pb.SaveAll(), pb.Recompute(), pb.Binomial(2)], ids=repr)
def test_an_interrupt_leaves_nothing_in_force(policy, times):
    gradient = pb.grad(nested, policy=policy)
    expected, _ = gradient(X), pb.jvp(nested, (X,), (X,))  # what is imported late is imported here
    for k in np.linspace(0, 60, times):
        interrupted(lambda: gradient(X), 1e-4 + 2e-4 * k)
        assert depth() == 0
        assert policy_in_force() == pb.SaveAll()
        interrupted(lambda: pb.jvp(nested, (X,), (X,)), 1e-4 + 1e-5 * k)
        assert depth() == 0
    assert np.array_equal(gradient(X), expected)
