"""One pull, several threads: one after the other, each with the bits of a call alone."""

import sys
import threading

import numpy as np
import pytest

import pullback as pb

X = np.linspace(0.1, 1.0, 20)


def plain(x):
    for _ in range(12):
        x = np.sin(x) * x
    return np.sum(x)


def steps(x):
    u = x * 1.0
    for _ in pb.steps(12):
        u = np.sin(u) * x
    return np.sum(u)


def loop(x):
    return np.sum(pb.fori_loop(0, 12, lambda _, u: np.sin(u) * x, x))


@pytest.fixture
def restless():
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize("policy", [pb.SaveAll(), pb.Recompute(), pb.Binomial(3)], ids=repr)
@pytest.mark.parametrize("f", [plain, steps, loop])
def test_threads_that_share_a_pull_get_the_bits_of_one(f, policy, restless):
    expected = pb.grad(f)(X)
    _, pull = pb.vjp(f, X, policy=policy)
    got, start = [], threading.Barrier(4)

    def pulls():
        start.wait()
        got.extend(pull(1.0)[0] for _ in range(3))

    threads = [threading.Thread(target=pulls) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 12  # no thread has raised
    for g in got:
        np.testing.assert_array_equal(g, expected)
    pull.close()
    assert pull.report.live_bytes == 0


def test_a_pull_called_by_what_it_calls_is_refused():
    _, pull = pb.vjp(lambda x: np.sum(pb.name(x * 2.0, "u") ** 2), X)
    with pytest.raises(pb.TracerError, match=r"called while it pulls .*make a vjp of its own"):
        pull(1.0, on_adjoint={"u": lambda step, ct: pull(1.0)})
    np.testing.assert_array_equal(pull(1.0)[0], 8.0 * X)  # and goes on working
