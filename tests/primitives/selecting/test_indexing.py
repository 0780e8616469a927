"""Reads give back to every element as often as it was read, whatever the kind of key."""

import numpy as np
import pytest
from tests.primitives.gradients import weighted

import pullback as pb
from pullback.primitives.selecting import indexing

_rng = np.random.default_rng(5)


# ------------------------------------------------------------------------------------------------------------- indexing
def _keys():
    """Keys of an array of 60 x 40 x 8, each with what it is."""
    rows, columns, many = _rng.integers(0, 60, 50), _rng.integers(-40, 40, 50), _rng.integers(0, 60, 3000)
    half = _rng.random((60, 40, 8)) > 0.5
    return {
        "repeated rows": many, "different rows": _rng.permutation(60)[:30], "negative rows": many - 60,
        "a tuple of rows": (many,),
        "repeated columns": (slice(None), columns), "different columns": (slice(None), np.arange(39, -1, -3)),
        "repeated last": (slice(None), slice(None), rows % 8), "two axes": (rows, columns),
        "three axes": (rows, columns, rows % 8),
        "a grid": np.ix_(rows, columns, [0, 1, 1]), "about a slice": (rows, slice(None, None, 3), rows % 8),
        "beside a number": (3, columns), "a part": (slice(1, 50, 2), columns),
        "a new axis": (None, rows, None, columns),
        "2-d rows": many.reshape(60, 50), "one row": np.array(3), "unsigned": many.astype(np.uint16),
        "a list": many.tolist(),
        "a mask": half, "a mask of rows": half[:, 0, 0], "a mask of two axes": half[..., 0],
        "a mask of columns": (slice(None), half[0, :, 0]),
        "a mask of the last two": (slice(None), half[0]), "a mask after an ellipsis": (..., half[0, 0]), "True": True,
        "a mask and columns": (np.arange(60) < 50, columns), "no rows": np.zeros(0, int),
        "an empty mask": np.zeros(60, bool),
    }  # fmt: skip


@pytest.mark.parametrize(("name", "key"), _keys().items())
@pytest.mark.parametrize("turned", [False, True])
def test_reads_give_back_to_every_element_as_often_as_it_was_read(name, key, turned):
    x = _rng.normal(size=(60, 40, 8))
    x = np.asfortranarray(x) if turned else x
    out, pull = pb.vjp(lambda x: x[key], x)
    np.testing.assert_array_equal(out, x[key])
    weights = _rng.integers(1, 9, out.shape).astype(float)
    expected = np.zeros(x.shape)
    np.add.at(expected, key, weights)
    np.testing.assert_array_equal(pull(weights)[0], expected)
    both = pb.grad(lambda x: np.sum((x * x)[key] * weights) + np.sum(x[1:] * 2.0) + np.sum(x[key] * weights))(x)
    more = np.zeros(x.shape)
    more[1:] = 2.0
    np.testing.assert_allclose(both, expected * 2 * x + more + expected, rtol=1e-12)


def test_repeats_beyond_one_part_are_added(monkeypatch):
    monkeypatch.setattr(indexing, "PART", 7)
    monkeypatch.setattr(indexing, "SMALL", 0)
    x, rows = np.zeros((5, 3, 4)), _rng.integers(0, 3, 40)  # each row stands in more rounds than there are
    for key in ((slice(None), rows), (slice(None), slice(None), rows), (rows,), (slice(0, 1), rows)):
        weights = _rng.integers(1, 9, x[key].shape).astype(float)
        expected = np.zeros(x.shape)
        np.add.at(expected, key, weights)
        np.testing.assert_array_equal(pb.grad(lambda x, k=key, w=weights: np.sum(x[k] * w))(x), expected)


@pytest.mark.parametrize("dtype", ["float16", "float32", "longdouble", "complex64", "complex128"])
def test_reads_keep_the_dtype(dtype):
    x = np.ones((4, 3), dtype)
    for key in ([0, 0, 1], (slice(None), [2, 2]), ([1, 1], [2, 2]), x > 2, (Ellipsis, [0, 0])):
        out, pull = pb.vjp(lambda x, k=key: x[k], x)
        assert pull(np.ones_like(out))[0].dtype == dtype


def test_what_a_condition_leaves_out_gets_no_nan():
    x = np.array([-1.0, 4.0])
    with np.errstate(invalid="ignore"):
        for chosen in (lambda y: np.compress(x > 0, y), lambda y: np.extract(x > 0, y), lambda y: y[x > 0]):
            np.testing.assert_array_equal(pb.grad(lambda x, c=chosen: np.sum(c(np.sqrt(x))))(x), [0, 0.25])


def test_indices_of_take_are_numbers_even_where_they_are_booleans():
    np.testing.assert_array_equal(pb.grad(weighted(lambda x: np.take(x, [True, False, True])))(np.ones(2)), [2, 4])
