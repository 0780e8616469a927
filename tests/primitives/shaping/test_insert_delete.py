"""Editing where it goes wrong: repeats, booleans, and calls that NumPy refuses, too."""

import numpy as np
import pytest
from tests.primitives.case import since
from tests.primitives.gradients import weighted

import pullback as pb


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: np.pad(x, 1.5), TypeError, "must be of integral type"),
        (lambda x: np.pad(x, -1), ValueError, "can't contain negative values"),
        (lambda x: np.pad(x, ((1, 1), (1, 1))), ValueError, "broadcast"),
        (lambda x: np.pad(x, 1, "mirror"), ValueError, "mode 'mirror' is not supported"),
        (lambda x: np.pad(x, 1, "edge", stat_length=2), ValueError, "unsupported keyword arguments for mode 'edge'"),
        (lambda x: np.pad(x, 1, "maximum", stat_length=0), ValueError, "stat_length of 0 yields no value"),
        (lambda x: np.pad(x[:0], 1, "wrap"), ValueError, "can't extend empty axis 0"),
        (lambda x: np.insert(x, 9, 1.0), IndexError, "index 9 is out of bounds"),
        (lambda x: np.insert(x, [[1]], 1.0), ValueError, "must be one dimensional"),
        (lambda x: np.insert(x, 1, x, axis=1), np.exceptions.AxisError, "axis 1 is out of bounds"),
        (lambda x: np.delete(x, 5), IndexError, "index 5 is out of bounds for axis 0 with size 5"),
        (lambda x: np.delete(x, [7]), IndexError, "index 7 is out of bounds"),
        (lambda x: np.delete(x, [True, False]), ValueError, "must be one dimensional and match"),
        (lambda x: np.resize(x, (-1,)), ValueError, "must be non-negative"),
        (lambda x: np.compress([[True]], x), ValueError, "must be a 1-d array"),
        (lambda x: np.compress([False] * 5 + [True], x), IndexError, "out of bounds"),
        (lambda x: np.extract(np.ones(6), x), IndexError, "out of bounds"),
        (lambda x: np.take_along_axis(x, np.array([0.0]), 0), IndexError, "must be an integer array"),
        (lambda x: np.take_along_axis(x, np.array([[0]]), 0), ValueError, "same number of dimensions"),
        (lambda x: np.take_along_axis(x, np.array([[0]]), None), ValueError, ("single dimension|same number of "
                                                                             "dimensions")),
        (lambda x: np.take(x, [0], mode="near"), ValueError, "must be one of"),
        (lambda x: np.tile(x, 1.5), TypeError, "cannot be interpreted as an integer"),
        *since("2.1.0", (lambda x: np.astype(x, "f4", device="gpu"), ValueError, 'Only "cpu" is allowed')),
        *since("2.1.0", (lambda x: np.reshape(np.stack((x, x)).T, 10, copy=False), ValueError, ("Unable to avoid "
                                                                                               "creating a copy"))),
    ],
)  # fmt: skip
def test_what_numpy_refuses_is_refused(call, error, words):
    with pytest.raises(error, match=words):
        call(np.ones(5))
    with pytest.raises(error, match=words):
        pb.grad(lambda x: np.sum(call(x)))(np.ones(5))


# ----------------------------------------------------------------------------------------------- insert, delete, resize
def test_the_gradient_of_an_insertion_is_split_between_array_and_values():
    weights = np.arange(1.0, 9.0)
    array, values = pb.grad(lambda x, v: np.sum(np.insert(x, [3, 0, 3], v) * weights), (0, 1))(np.ones(5), np.ones(3))
    np.testing.assert_array_equal(array, [2, 3, 4, 7, 8])
    np.testing.assert_array_equal(values, [5, 1, 6])


def test_an_insertion_into_integers_gives_integers():
    inserted = []
    gradient = pb.grad(lambda v: inserted.append(np.insert(np.arange(3), 1, v)) or np.sum(v))(np.array([1.7]))
    np.testing.assert_array_equal(inserted[0], [0, 1, 1, 2])
    np.testing.assert_array_equal(gradient, [1])


@pytest.mark.filterwarnings("ignore:in the future insert will treat boolean:FutureWarning")
def test_booleans_insert_as_they_do_in_numpy():
    where = np.array([True, False, True])
    value, gradient = pb.value_and_grad(weighted(lambda x: np.insert(x, where, 5.0)))(np.ones(3))
    assert value == weighted(lambda x: np.insert(x, where, 5.0))(np.ones(3))
    plain = np.insert(np.arange(1.0, 4.0), where, 0.0)
    np.testing.assert_array_equal(gradient, np.flatnonzero(plain) + 1)


@pytest.mark.parametrize("shape", [3, 6, 7, (2, 9), (5, 5)])
def test_every_copy_in_a_resized_array_counts(shape):
    x = np.arange(6.0).reshape(2, 3)
    places = np.resize(np.arange(6), shape)
    expected = np.bincount(places.ravel(), np.arange(1.0, places.size + 1), 6).reshape(2, 3)
    np.testing.assert_array_equal(pb.grad(weighted(lambda x: np.resize(x, shape)))(x), expected)


def test_trim_zeros_is_a_view_and_keeps_nan():
    def f(x):
        y = x * 1.0
        part = np.trim_zeros(y, "f")
        part *= 3.0
        return np.sum(y)

    np.testing.assert_array_equal(pb.grad(f)(np.array([0.0, 2.0, 0.0])), [1, 3, 3])
    with np.errstate(invalid="ignore"):
        assert pb.vjp(np.trim_zeros, np.array([0.0, np.nan, 0.0]))[0].shape == (1,)


def test_trim_zeros_of_planes():
    if np.lib.NumpyVersion(np.__version__) < "2.2.0":
        pytest.skip("trim_zeros takes one axis only before NumPy 2.2")
    plane = np.pad([[1.0, 0.0], [2.0, 3.0]], ((1, 2), (0, 1)))
    for axis in (None, 0, -1, (0, 1)):
        for trim in ("fb", "f", "b"):
            out, pull = pb.vjp(lambda x, t=trim, a=axis: np.trim_zeros(x, t, a), plane)
            np.testing.assert_array_equal(out, np.trim_zeros(plane, trim, axis))
            assert pull(np.ones(out.shape))[0].sum() == out.size
