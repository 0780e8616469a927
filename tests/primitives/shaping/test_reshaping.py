"""Shaping where views, orders and negative axes go wrong; writes through views; errors that NumPy raises too."""

import numpy as np
import pytest
from tests.primitives.case import since
from tests.primitives.gradients import weighted

import pullback as pb

CUBE = np.arange(24.0).reshape(2, 3, 4)


def moved(function, x):
    """The gradient of ``weighted``, from the places to which ``function`` takes the elements."""
    y = function(np.arange(x.size).reshape(x.shape))
    return np.bincount(y.ravel(), np.arange(1.0, y.size + 1), x.size).reshape(x.shape)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.transpose(x, (-1, 0, 1)),
        lambda x: np.moveaxis(x, -1, -3),
        lambda x: np.rollaxis(x, -1, -2),
        lambda x: np.swapaxes(x, -1, 0),
        lambda x: np.repeat(x, 2, axis=-1),
        lambda x: np.repeat(x, [0, 2, 1], axis=-2),
        lambda x: np.roll(x, (1, 2), (-1, -3)),
        lambda x: np.expand_dims(x, (-1, 0)),
        lambda x: np.flip(x, -2),
        lambda x: np.rot90(x, 3, (-1, -2)),
        lambda x: np.tile(x, (2, 1, 1, 2)),
        lambda x: np.diagonal(x, 1, -1, -2),
        lambda x: np.stack((x, x), -2),
        lambda x: np.array_split(x, 3, -1)[1],
        *since("2.1.0", lambda x: np.unstack(x, axis=-1)[2]),
        lambda x: np.block([[x, x], [x, x]]),
    ],
)
def test_every_element_goes_back_to_its_place(function):
    np.testing.assert_array_equal(pb.grad(weighted(function))(CUBE), moved(function, CUBE))


@pytest.mark.parametrize("order", ["C", "F", "A", "K"])
@pytest.mark.parametrize(
    "layout", [np.asfortranarray, lambda x: x[::-1, :, ::-1], lambda x: x.transpose(1, 2, 0), lambda x: x[:, ::2]]
)
def test_order_follows_the_memory_of_the_input(order, layout):
    x = layout(CUBE)
    places = x.ravel(order)
    weights = dict(zip(places, np.arange(1.0, x.size + 1), strict=True))
    gradient = pb.grad(weighted(lambda x: np.ravel(x, order)))(x)
    np.testing.assert_array_equal(gradient, np.vectorize(weights.get)(x))


@pytest.mark.parametrize(
    "view",
    [
        lambda y: y.reshape(6, 4),
        lambda y: y.T,
        lambda y: np.swapaxes(y, 0, 2),
        np.ravel,
        lambda y: np.flip(y, 1),
        lambda y: np.expand_dims(y, 0),
        lambda y: np.split(y, 2, axis=2)[1],
        lambda y: np.rot90(y)[0],
        *since("2.1.0", lambda y: np.unstack(y, axis=1)[2]),
        lambda y: np.squeeze(y[:, :1]),
    ],
)
def test_a_write_through_a_view_reaches_the_array(view):
    def f(x):
        y = x * 1.0
        part = view(y)
        part *= 3.0
        return np.sum(y * y)

    plain = CUBE * 1.0
    part = view(plain)
    part *= 3.0
    value, gradient = pb.value_and_grad(f)(CUBE)
    assert value == np.sum(plain * plain)
    np.testing.assert_array_equal(gradient, np.where(plain == CUBE, 2.0, 18.0) * CUBE)


@pytest.mark.parametrize(
    "copies",
    [np.copy, lambda y: np.roll(y, 0), lambda y: np.tile(y, 1), lambda y: np.repeat(y, 1, 0), lambda y: y.flatten()],
)
def test_a_write_to_a_copy_leaves_the_array_alone(copies):
    def f(x):
        y = x * 1.0
        part = copies(y)
        part *= 3.0
        return np.sum(y * y)

    np.testing.assert_array_equal(pb.grad(f)(CUBE), 2 * CUBE)


def test_astype_int_carries_no_derivative():
    np.testing.assert_array_equal(pb.grad(lambda x: np.sum(x * x.astype(int)))(np.array([1.5, -2.5])), [1, -2])


def test_astype_complex_and_back_is_real():
    gradient = pb.grad(lambda x: np.sum((x.astype(np.complex128) * (2 + 1j)).real))(np.ones(3))
    assert gradient.dtype == np.float64
    np.testing.assert_array_equal(gradient, [2, 2, 2])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: np.reshape(x, (5, 5)), "cannot reshape array of size 24"),
        (lambda x: np.transpose(x, (0, 0, 1)), "repeated axis"),
        (lambda x: np.squeeze(x, 0), "cannot select an axis to squeeze"),
        (lambda x: np.swapaxes(x, 0, 3), "axis 3 is out of bounds"),
        (lambda x: np.moveaxis(x, (0, 1), 0), "as many destinations as sources"),
        (lambda x: np.concatenate((x, x[0])), "3 axes at place 0 and 2 at place 1"),
        (lambda x: np.split(x, 3, 2), "4 elements do not split into 3 equal parts"),
        (lambda x: np.array_split(x, 0), "must be at least 1"),
        (lambda x: np.block([x, [x]]), "nested to the depths"),
        (lambda x: np.block([x, (x, x)]), "found a tuple"),
        (np.diag, "1 or 2 axes, not 3"),
        (lambda x: np.diff(x, -1), "must not be negative"),
        *since("2.1.0", (lambda x: np.cumulative_sum(x), "3 axes need axis=")),  # noqa: PLW0108 - absent from NumPy 2.0
    ],
)
def test_a_call_that_cannot_be_is_refused(call, words):
    with pytest.raises((ValueError, TypeError), match=words):
        pb.grad(lambda x: np.sum(call(x)))(CUBE)


@pytest.mark.parametrize("shape", [(3, 1), (3, 2), (1, 1), (4,)])
@pytest.mark.parametrize("layout", ["strided", "reversed", "dense"])
def test_ravel_in_memory_order_is_a_view_exactly_where_numpy_gives_one(shape, layout):
    x = np.arange(1.0, 1 + np.prod(shape)).reshape(shape)
    x = {"strided": np.repeat(x, 2, -1)[..., ::2], "reversed": x[::-1], "dense": x}[layout]

    def written(x):
        line = np.ravel(x, "K")
        line[0] = 7.0
        return line, x

    expected = written(
        x.copy("K")
        if layout == "dense"
        else np.repeat(x, 2, -1)[..., ::2]
        if layout == "strided"
        else x[::-1].copy()[::-1]
    )
    got = []
    pb.grad(lambda x: (got.extend(np.array(pb.value(y)) for y in written(x)), np.sum(x))[1])(x)
    for ours, numpys in zip(got, expected, strict=True):
        np.testing.assert_array_equal(ours, numpys)
