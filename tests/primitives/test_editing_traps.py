"""Padding, editing, indexing and ``like=`` where they go wrong: long pads, ties, repeats, booleans, and calls that
NumPy refuses, too."""

import numpy as np
import pytest
from tests.primitives.case import since

import pullback as pb
from pullback.primitives.selecting import indexing

_rng = np.random.default_rng(5)
LINEAR = [
    ("constant", {}), ("edge", {}), ("wrap", {}), ("mean", {}), ("mean", {"stat_length": (1, 2)}), ("linear_ramp", {}),
    ("reflect", {}), ("reflect", {"reflect_type": "odd"}), ("symmetric", {}), ("symmetric", {"reflect_type": "odd"}),
]  # fmt: skip


def weighted(function):
    """A scalar that weighs every element of the result differently, so that a misplaced one shows."""

    def scalar(x):
        y = function(x)
        return np.sum(y * np.arange(1.0, y.size + 1).reshape(y.shape))

    return scalar


def columns(function, x):
    """The gradient of ``weighted`` of a linear function, by applying it to every unit array."""
    units = np.eye(x.size).reshape((x.size, *x.shape))
    return np.array([weighted(function)(unit) for unit in units]).reshape(x.shape)


# ------------------------------------------------------------------------------------------------------------------ pad
@pytest.mark.parametrize(("mode", "options"), LINEAR)
@pytest.mark.parametrize("n", [1, 2, 3, 6])
def test_pads_of_any_length_give_back_what_they_took(mode, options, n):
    for widths in ((0, 0), (1, 0), (n, n), (n + 1, 2 * n), (3 * n, 4), (40, 63)):
        pad = lambda x, w=widths: np.pad(x, (w,), mode, **options)  # noqa: E731 - used twice, on the next line
        np.testing.assert_allclose(pb.grad(weighted(pad))(np.ones(n)), columns(pad, np.ones(n)), rtol=1e-12)


@pytest.mark.parametrize(("mode", "options"), LINEAR)
@pytest.mark.parametrize("shape", [(2, 3), (1, 4), (3, 1, 2)])
def test_corners_are_made_of_the_pads_before_them(mode, options, shape):
    pad = lambda x: np.pad(x, (3, 2), mode, **options)  # noqa: E731 - used twice, on the next line
    np.testing.assert_allclose(pb.grad(weighted(pad))(np.ones(shape)), columns(pad, np.ones(shape)), rtol=1e-12)


def test_a_constant_is_counted_where_it_stands_at_last():
    padded = lambda v: np.pad(v[0] * np.zeros((2, 3)), (1, 2), constant_values=(v[1], v[2]))  # noqa: E731 - as the others
    gradient = pb.grad(lambda v: np.sum(padded(v)))(np.array([1.0, 3.0, 5.0]))
    np.testing.assert_array_equal(gradient, [0, 3 + 5, 2 * 3 + 2 * 5])  # axis 1 comes last, and overwrites the corners


def test_ties_of_a_padded_maximum_share():
    np.testing.assert_array_equal(
        pb.grad(lambda x: np.sum(np.pad(x, (2, 0), "maximum")))(np.array([4.0, 1.0, 4.0])), [2, 1, 2]
    )
    np.testing.assert_array_equal(
        pb.grad(lambda x: np.sum(np.pad(x, (0, 4), "minimum")))(np.array([1.0, 1.0, 2.0])), [3, 3, 1]
    )


def test_a_padded_median_splits_between_the_two_in_the_middle():
    np.testing.assert_array_equal(
        pb.grad(lambda x: np.sum(np.pad(x, (2, 0), "median")))(np.array([4.0, 1.0, 3.0, 9.0])), [2, 1, 2, 1]
    )
    np.testing.assert_array_equal(
        pb.grad(lambda x: np.sum(np.pad(x, (1, 0), "median")))(np.array([2.0, 2.0, 9.0])), [1.5, 1.5, 1]
    )


@pytest.mark.parametrize("mode", ["maximum", "minimum", "median"])
def test_nan_gets_the_cotangent_of_the_pad_that_it_made(mode):
    gradient = pb.grad(lambda x: np.sum(np.pad(x, (2, 0), mode)))(np.array([1.0, np.nan, 3.0]))
    np.testing.assert_array_equal(gradient, [1, 3, 1])


def test_a_mean_of_no_elements_owes_nothing():
    with pytest.warns(RuntimeWarning, match="Mean of empty slice|invalid value"):
        gradient = pb.grad(lambda x: np.sum(np.pad(x, 1, "mean", stat_length=(0, 2))))(np.ones(3))
    np.testing.assert_array_equal(gradient, [1, 1.5, 1.5])


def test_what_empty_leaves_is_zero():
    value, gradient = pb.value_and_grad(lambda x: np.sum(np.pad(x, 2, "empty")))(np.ones((2, 2)))
    assert value == 4
    np.testing.assert_array_equal(gradient, np.ones((2, 2)))


def test_a_mode_of_the_users_own_writes_into_traced_lines():
    def fade(vector, widths, axis, options):
        vector[: widths[0]] = vector[widths[0]] * options["by"]

    value, gradient = pb.value_and_grad(lambda x: np.sum(np.pad(x, ((1, 0), (2, 0)), fade, by=0.5)))(np.ones((2, 2)))
    assert value == np.pad(np.ones((2, 2)), ((1, 0), (2, 0)), fade, by=0.5).sum()
    np.testing.assert_array_equal(gradient, [[3, 1.5], [2, 1]])


def test_a_pad_is_a_copy():
    def f(x):
        y = x * 1.0
        padded = np.pad(y, 0)
        padded *= 3.0
        return np.sum(y * y)

    np.testing.assert_array_equal(pb.grad(f)(np.ones(2)), [2, 2])


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


def test_unstacked_lines_are_scalars():
    if not hasattr(np, "unstack"):
        pytest.skip("numpy.unstack is new in NumPy 2.1")
    out, _ = pb.vjp(np.unstack, np.ones(2))
    assert [type(part) for part in out] == [np.float64, np.float64]


def test_nothing_repeated_less_than_never():
    np.testing.assert_array_equal(pb.grad(lambda x: np.sum(np.repeat(x, -1)) + 1.0)(np.ones((0, 3))), np.ones((0, 3)))


# ---------------------------------------------------------------------------------------------------------------- like=
def created(function):
    """What ``function`` gives within a trace."""
    found = []
    pb.grad(lambda x: found.append(function(x)) or np.sum(x))(np.arange(1.0, 5.0))
    return found[0]


@pytest.mark.parametrize(
    "function",
    [
        lambda **like: np.zeros((2, 3), **like),
        lambda **like: np.ones(3, np.float32, **like),
        lambda **like: np.eye(3, 2, 1, **like),
        lambda **like: np.identity(3, complex, **like),
        lambda **like: np.tri(3, 4, **like),
        lambda **like: np.arange(0.0, 2.0, 0.5, **like),
        lambda **like: np.full((2, 2), 1.5, **like),
        lambda **like: np.fromfunction(lambda i, j: i + j, (2, 3), **like),
        lambda **like: np.frombuffer(bytes(16), **like),
        lambda **like: np.fromiter([1.0, 2.0], float, **like),
        lambda **like: np.loadtxt(["1 2", "3 4"], **like),
        lambda **like: np.array([[1.0], [2.0]], np.float32, ndmin=3, order="F", **like),
        lambda **like: np.asarray([1.0, 2.0], **like),
        lambda **like: np.ascontiguousarray([1.0, 2.0], **like),
        lambda **like: np.require([[1.0, 2.0]], np.float32, ["F"], **like),
    ],
)
def test_like_gives_a_traced_buffer_with_the_values_of_numpy(function):
    plain, traced = function(), created(lambda x: function(like=x))
    assert "inactive tracer" in repr(traced)
    assert (traced.shape, traced.dtype) == (plain.shape, plain.dtype)
    out, _ = pb.vjp(lambda x: function(like=x), np.ones(2))
    np.testing.assert_array_equal(out, plain)
    assert out.flags.f_contiguous == plain.flags.f_contiguous


@pytest.mark.parametrize("function", [np.zeros, np.ones, np.identity, np.arange])
@pytest.mark.parametrize("dtype", [int, bool])
def test_like_of_integers_is_plain(function, dtype):
    made = created(lambda x: function(2, dtype=dtype, like=x))
    assert type(made) is np.ndarray
    np.testing.assert_array_equal(made, function(2, dtype=dtype))


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: np.array([x, 2 * x], like=x), [3, 3]),
        (lambda x: np.array([[x[0], 1.0], [x[1], x[0]]], like=x), [2, 1]),
        (lambda x: np.asarray(x, like=x), [1, 1]),
        (lambda x: np.asanyarray([x[0], 3], np.float32, like=x), [1, 0]),
        (lambda x: np.asfortranarray([[x], [x]], like=x), [2, 2]),
        (lambda x: np.require(x, np.float32, "O", like=x), [1, 1]),
        (lambda x: np.full((3, 2), x, like=x), [3, 3]),
        (lambda x: np.full(shape=4, fill_value=x[1], dtype=np.float32, like=x), [0, 4]),
        (lambda x: np.fromfunction(lambda i: x * i, (2,), like=x), [0, 1]),
    ],
)
def test_traced_contents_keep_their_derivative_under_like(function, expected):
    np.testing.assert_array_equal(pb.grad(lambda x: np.sum(function(x)))(np.array([1.5, 2.5])), expected)


def test_a_buffer_over_the_users_array_is_copied_before_it_is_written():
    mine = np.ones(3)

    def f(x):
        buffer = np.asarray(mine, like=x)
        buffer[1] = x[0]
        return np.sum(buffer * x)

    np.testing.assert_array_equal(pb.grad(f)(np.array([2.0, 3.0, 5.0])), [1 + 3, 2, 1])
    np.testing.assert_array_equal(mine, np.ones(3))
