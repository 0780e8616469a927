"""Large arguments are compared after the call, unless the function is proved to leave them as they are."""

import threading

import numpy as np
import pytest

import pullback as pb
from pullback.loops.bodies import unwritten_arguments
from pullback.loops.bodies.unwritten_arguments import BEFORE, MOST_MADE
from pullback.tracing import running

X = np.linspace(0.1, 1.0, 20_000)
PART = X[:4]
SCALE = 2.0
CALLS = BEFORE + 4


@pytest.fixture
def digested(monkeypatch):
    """The arrays of which a digest was taken."""
    found, ordinary = [], running.digest
    monkeypatch.setattr(running, "digest", lambda array: found.append(array) or ordinary(array))
    return found


@pytest.fixture(autouse=True)
def threads_of_before_are_none(monkeypatch):
    """Other tests of the process may have left some."""
    counted, before = unwritten_arguments._count, unwritten_arguments._count()
    monkeypatch.setattr(unwritten_arguments, "_count", lambda: max(0, counted() - before))


@pytest.fixture(autouse=True)
def x_is_as_it_was():
    before = X.copy()
    yield
    X[:] = before


def scaled(x):
    return np.sum(np.sin(x) * SCALE)


def of_two(x, y):
    return np.sum(x * x * y)


def test_of_a_proved_function_no_digest_is_taken(digested):
    gradient, both = pb.grad(scaled), pb.value_and_grad(of_two, argnums=(0, 1))
    wanted = np.cos(X) * 2.0
    for _ in range(CALLS):
        assert gradient(X).tobytes() == wanted.tobytes()
        both(X, X)
    taken = len(digested)
    gradient(X)
    both(X, X)
    assert 0 < taken == len(digested)


def test_under_a_policy_and_within_a_trace_they_are(digested):
    gradient = pb.grad(scaled)
    for _ in range(CALLS):
        gradient(X)
    taken = len(digested)
    with pb.using(policy=pb.Recompute()):
        gradient(X)
    assert len(digested) > taken
    taken = len(digested)
    pb.grad(lambda x: np.sum(gradient(x) * x))(X)
    assert len(digested) > taken


def through_a_part(x):
    np.add(1.0, 2.0, PART)
    return np.sum(x * x)


def through_a_method(x):
    PART.clip(0.0, 0.5, PART)
    return np.sum(x * x)


def by_item(x):
    PART[0] += 1.0
    return np.sum(x * x)


@pytest.mark.parametrize("f", [through_a_part, through_a_method, by_item], ids=lambda f: f.__name__)
def test_who_writes_to_the_argument_is_told(f):
    gradient = pb.grad(f)
    for k in range(CALLS):
        X[:4] = 0.7 + k
        with pytest.raises(pb.ConstantChangedError, match="argument 0"):
            gradient(X)


def test_who_writes_to_a_plain_argument_that_is_a_part_of_it_is_told():
    def f(x, y):
        total = np.sum(x * x)
        np.multiply(2.0, y, y)
        return total

    gradient = pb.grad(f)
    for _ in range(CALLS):
        gradient(X, np.ones(3))  # nothing to tell
    with pytest.raises(pb.ConstantChangedError, match="argument 0"):
        gradient(X, X[5:8])


class Writing:
    def sum(self):
        X[0] += 1.0
        return 1.0


def test_an_argument_whose_methods_may_do_anything_is_no_reason_to_trust():
    gradient = pb.grad(lambda x, y: np.sum(x * x) * y.sum())
    for _ in range(CALLS):
        gradient(X, np.ones(2))
        with pytest.raises(pb.ConstantChangedError, match="argument 0"):
            gradient(X, Writing())


def test_where_there_are_threads_they_are_compared(digested):
    gradient, ready = pb.grad(scaled), threading.Event()
    for _ in range(CALLS):
        gradient(X)
    taken = len(digested)
    thread = threading.Thread(target=ready.wait)
    thread.start()
    try:
        gradient(X)
    finally:
        ready.set()
        thread.join()
    assert len(digested) > taken


def test_what_the_function_reads_may_change(digested, monkeypatch):
    gradient = pb.grad(scaled)
    for k in range(CALLS + MOST_MADE):
        monkeypatch.setitem(globals(), "SCALE", 0.5 + k)
        assert gradient(X).tobytes() == (np.cos(X) * (0.5 + k)).tobytes()
    taken = len(digested)
    gradient(X)
    assert len(digested) > taken  # it changes too often
