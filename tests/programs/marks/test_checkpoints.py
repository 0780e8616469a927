"""``checkpoint``, ``stop_gradient`` and ``value``."""

import contextlib

import numpy as np
import pytest
from tests.programs.policies import MARKED, UNTOLD, X

import pullback as pb

pytestmark = pytest.mark.filterwarnings(UNTOLD)


# checkpoint and stop_gradient.
def test_checkpoint_changes_no_bit():
    def layer(u, x):
        v = np.tanh(u * x)
        v[1:] += u[:-1]
        return np.exp(-v * v) + u

    def f(x, wrap):
        u = x * 1
        for _ in range(4):
            u = wrap(layer)(u, x)
        return np.sum(u * x)

    expected = pb.grad(lambda x: f(x, lambda g: g))(X)
    for wrap in (
        pb.checkpoint,
        lambda g: pb.checkpoint(g, policy=pb.Binomial(1)),
        lambda g: pb.checkpoint(pb.checkpoint(g)),
    ):
        assert pb.grad(lambda x, wrap=wrap: f(x, wrap))(X).tobytes() == expected.tobytes()
        for policy in MARKED:
            assert pb.grad(lambda x, wrap=wrap: f(x, wrap), policy=policy)(X).tobytes() == expected.tobytes()
        assert f(X, wrap) == f(X, lambda g: g)


def test_checkpoint_holds_less_and_calls_once():
    calls = []

    def layer(u):
        calls.append(1)
        for _ in range(20):
            u = np.sin(u)
        return u

    def f(x, wrap):
        for _ in range(5):
            x = wrap(layer)(x)
        return np.sum(x)

    x = np.ones(1000)
    _, plain = pb.vjp(lambda a: f(a, lambda g: g), x)
    calls.clear()
    _, pull = pb.vjp(lambda a: f(a, pb.checkpoint), x)
    assert pull.report.live_bytes <= 10 * x.nbytes < plain.report.live_bytes
    assert pull(1.0)[0].tobytes() == plain(1.0)[0].tobytes()
    assert len(calls) == 5
    assert pull(1.0)[0].tobytes() == plain(1.0)[0].tobytes()
    pull.close()
    assert pull.report.live_bytes == 0


def test_checkpoint_that_raises():
    def bad(u):
        u = np.sin(u)
        raise KeyError("here")

    def f(x):
        with contextlib.suppress(KeyError):
            pb.checkpoint(bad)(x)
        return np.sum(np.sin(x) * x)

    np.testing.assert_array_equal(pb.grad(f)(X), pb.grad(lambda x: np.sum(np.sin(x) * x))(X))


def test_stop_gradient():
    np.testing.assert_array_equal(pb.grad(lambda x: np.sum(pb.stop_gradient(x) * x))(X), X)
    np.testing.assert_array_equal(pb.grad(lambda x: np.sum(pb.stop_gradient({"a": x * x})["a"] * x))(X), X * X)
    assert pb.grad(lambda x: pb.stop_gradient(x) * x)(3.0) == 3.0
    np.testing.assert_array_equal(pb.stop_gradient(X), X)

    def written(x):
        y = pb.stop_gradient(x * 2)
        y[0] = x[1]
        return np.sum(y * x)

    np.testing.assert_allclose(pb.grad(written)(X), [X[1], X[0] + 2 * X[1], 2 * X[2]])

    def inner(x):
        return pb.grad(lambda y: np.sum(pb.stop_gradient(y) * y * x))(x)

    np.testing.assert_allclose(pb.grad(lambda x: np.sum(inner(x)))(X), X)  # it stops every level
    for policy in MARKED:
        assert pb.grad(written, policy=policy)(X).tobytes() == pb.grad(written)(X).tobytes()


def test_value_leaves_the_derivative_behind():
    np.testing.assert_array_equal(pb.grad(lambda x: np.sum(pb.value(x) * x))(X), X)


@pytest.mark.parametrize("n", [5.0, np.float64(5), np.array(5.0), np.float32(5), None])
def test_what_is_no_whole_number_is_refused_by_name(n):
    with pytest.raises(pb.StructureError, match="takes a whole number or something to iterate over"):
        pb.grad(lambda x: [x := x * 2.0 for _ in pb.steps(n)][-1])(1.0)


@pytest.mark.parametrize("policy", [pb.Binomial(2), pb.Recompute(), pb.Budget("1 MB")], ids=repr)
def test_an_iterator_of_steps_that_an_error_keeps_ends_after_the_trace(policy):
    """Its ``finally`` finds the trace closed; nothing is raised where nobody would see it."""

    def f(x):
        items = pb.steps(3)  # a variable of the frame, which the error keeps
        for _ in items:
            x = np.sin(x)
            raise ZeroDivisionError
        return x

    for _ in range(3):
        with pytest.raises(ZeroDivisionError) as caught:
            pb.grad(f, policy=policy)(0.5)
        del caught
    assert pb.grad(np.sin, policy=policy)(0.0) == 1.0
