"""Rows shuffled in place: NumPy's shuffles are served where they exchange numbers, and refused where they would
exchange views; Python's own does with views what it does with NumPy's arrays."""

import operator
import random
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pullback as pb

pytestmark = pytest.mark.filterwarnings("ignore:.*you are shuffling")
POLICIES = (pb.SaveAll(), pb.Recompute(2), pb.Binomial(2))
SHUFFLES = {
    "Generator": lambda seed: np.random.default_rng(seed).shuffle,
    "RandomState": lambda seed: np.random.RandomState(seed).shuffle,
    "np.random": lambda seed: (np.random.seed(seed), np.random.shuffle)[1],  # noqa: NPY002
}
NAMES = st.sampled_from(sorted(SHUFFLES))
SHAPES = st.sampled_from([(6,), (7,), (2, 3), (5, 2), (4, 2, 3), (1, 3), (3, 0)])


def by_pythons_own(y, seed):
    random.Random(seed).shuffle(y)  # noqa: S311


def shuffling(name, seed):
    """That shuffle, begun anew at each call."""

    def shuffle(y):
        SHUFFLES[name](seed)(y)

    return shuffle


def weighted(shuffle, *, copies):
    """A program that shuffles a copy of its argument, the argument itself, or a view of a copy."""

    def f(x):
        y = x if copies == 0 else x * 1.0
        shuffle(y[1:] if copies == 2 else y)
        return np.sum(y * y * np.cos(np.arange(float(x.size))).reshape(x.shape))

    return f


def expected_gradient(f, x):
    """By differences: a permutation does not depend on the values."""
    steps = np.eye(x.size).reshape(x.size, *x.shape)
    return np.array([f(x + 0.5 * d) - f(x - 0.5 * d) for d in steps]).reshape(x.shape)  # exact for squares


@settings(max_examples=60)
@given(name=NAMES, shape=SHAPES, seed=st.integers(0, 99), copies=st.integers(0, 2))
def test_a_shuffle_of_numpys_is_numpys_or_refused(name, shape, seed, copies):
    x = np.arange(1.0, 1.0 + np.prod(shape)).reshape(shape)
    f = weighted(shuffling(name, seed), copies=copies)
    for policy in POLICIES:
        try:
            value, gradient = pb.value_and_grad(f, policy=policy)(x.copy())
        except pb.WriteError as error:
            assert len(shape) > 1
            assert "permutation" in str(error)  # noqa: PT017
        else:
            assert value == f(x.copy())
            np.testing.assert_allclose(gradient, expected_gradient(lambda x: f(x.copy()), x), atol=1e-9)


@settings(max_examples=30)
@given(shape=SHAPES, seed=st.integers(0, 99), copies=st.integers(0, 2))
def test_pythons_shuffle_does_with_rows_what_it_does_with_numpys(shape, seed, copies):
    x = np.arange(1.0, 1.0 + np.prod(shape)).reshape(shape)
    f = weighted(lambda y: by_pythons_own(y, seed), copies=copies)
    for policy in POLICIES:
        value, gradient = pb.value_and_grad(f, policy=policy)(x.copy())
        assert value == f(x.copy())
        np.testing.assert_allclose(gradient, expected_gradient(lambda x: f(x.copy()), x), atol=1e-9)


@pytest.mark.parametrize("name", SHUFFLES)
def test_the_remedies_work_and_draw_the_same(name):
    x = np.arange(12.0).reshape(4, 3)
    rng = {"Generator": np.random.default_rng, "RandomState": np.random.RandomState}.get(name)
    if rng is None:
        np.random.seed(3)  # noqa: NPY002
    order = (rng(3) if rng else np.random).permutation(len(x))
    shuffled = x.copy()
    SHUFFLES[name](3)(shuffled)
    np.testing.assert_array_equal(shuffled, x[order])

    def in_place(x):
        y = x * 1.0
        y[:] = y[order]
        return np.sum(y * y * shuffled)

    np.testing.assert_array_equal(pb.grad(in_place)(x), pb.grad(lambda x: np.sum(x[order] ** 2 * shuffled))(x))


@pytest.mark.parametrize("policy", POLICIES)
def test_in_loops_and_buffers_and_traces_within(policy):
    rng = np.random.default_rng

    def body(k, u):
        rng(0).shuffle(u)
        return np.sin(u) * np.arange(1.0, 4.0)

    x = np.array([0.3, -0.7, 1.1])
    plain = x.copy()
    for _ in range(4):
        plain = body(0, plain)

    def marked(x):
        for k in pb.steps(4):
            x = body(k, x * 1.0)
        return np.sum(x)

    for f in (lambda x: np.sum(pb.fori_loop(0, 4, body, x)), marked):
        value, gradient = pb.value_and_grad(f, policy=policy)(x)
        assert value == np.sum(plain)
        assert gradient.tobytes() == pb.grad(f)(x).tobytes()

    def buffer(x):
        y = np.zeros_like(x, shape=(3, 3))
        y[1] = x
        rng(0).shuffle(y)
        return np.sum(y)

    def within(x):
        return np.sum(pb.grad(lambda z: np.sum(swapped(z) * x[0]))(np.stack([x, x, 2 * x])))

    def swapped(z):
        z = z * 1.0
        rng(0).shuffle(z)
        return z

    for f in (buffer, within, lambda x: np.sum(pb.fori_loop(0, 3, body, np.stack([x, x])))):
        with pytest.raises(pb.WriteError, match="duplicate"):
            pb.grad(f, policy=policy)(x)
    with pytest.raises(pb.WriteError, match="duplicate"):
        pb.jvp(buffer, (x,), (x,))


def test_lists_of_rows_are_shuffled():
    def f(x):
        rows = list(x)
        np.random.default_rng(0).shuffle(rows)
        random.Random(0).shuffle(rows)  # noqa: S311
        return np.sum(np.stack(rows) * np.arange(12.0).reshape(4, 3))

    x = np.arange(12.0).reshape(4, 3)
    value, gradient = pb.value_and_grad(f)(x)
    assert value == f(x)
    np.testing.assert_allclose(gradient, expected_gradient(f, x))


def test_what_is_refused_says_what_to_write():
    x = np.ones((4, 3))
    rng = np.random.default_rng(0)
    for f, text in (
        (lambda x: np.sum(rng.permutation(x)), "x = x[rng.permutation(len(x))]"),
        (lambda x: rng.permuted(x, axis=0), "take_along_axis"),
        (lambda x: rng.permuted(x, out=x), "rng.permuted(np.arange(x.size))"),
        (lambda x: rng.choice(x, 3), "x[rng.choice(len(x), size=n)]"),
    ):
        with pytest.raises(pb.ConversionError, match=re.escape(text)):
            pb.grad(f)(x)
    with pytest.raises(pb.WriteError, match=re.escape("x[i] = x[j]")):
        pb.grad(lambda x: (operator.setitem(x, 0, x[1]), np.sum(x))[1])(x)
    with pytest.raises(NotImplementedError) as caught:
        pb.grad(lambda x: (rng.shuffle(x, axis=1), np.sum(x))[1])(x)
    assert "x[:, rng.permutation(x.shape[1])]" in caught.value.__notes__[0]


def test_assignments_of_rows_to_rows():
    """Python's own assignments are none of these, however they are written."""

    def f(x):
        x[0] = x[1]
        x[1], x[2] = x[2], x[1]
        rows = list(x[2:])
        for x[0] in rows:
            x[3] = x[0]
        x[-1] += x[1]
        return np.sum(x * np.arange(12.0).reshape(4, 3))

    x = np.arange(12.0).reshape(4, 3) ** 2
    value, gradient = pb.value_and_grad(f)(x)
    assert value == f(x.copy())
    np.testing.assert_allclose(gradient, expected_gradient(lambda x: f(x.copy()), x))
