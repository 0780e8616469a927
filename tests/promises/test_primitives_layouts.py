"""Every row of every table with operands and cotangents in every layout: the same numbers as of contiguous ones."""

import warnings

import numpy as np
import pytest
from tests.primitives.rows import rows

import pullback as pb
from pullback.testing.comparing.differences import random_like

ROWS = tuple(row for row in rows() if row.arrays)


def contiguous(a):
    return np.array(a, order="C")


def fortran(a):
    return np.asfortranarray(a)


def reversed_(a):
    """The same numbers, every axis in negative strides."""
    back = (slice(None, None, -1),) * a.ndim
    return contiguous(a[back])[back]


def gapped(a):
    """Every second element of a wider array."""
    wide = np.zeros(tuple(2 * n + 1 for n in a.shape), a.dtype)
    view = wide[tuple(slice(1, 2 * n, 2) for n in a.shape)]
    view[...] = a
    return view


def frozen(a):
    """A read-only view."""
    view = contiguous(a)
    view.flags.writeable = False
    return view


LAYOUTS = {"fortran": fortran, "reversed": reversed_, "gapped": gapped, "frozen": frozen}


def laid(values, layout):
    return tuple(layout(value) if isinstance(value, np.ndarray) and value.ndim else value for value in values)


def seeds(outs):
    rng = np.random.default_rng(7)
    return tuple(random_like(rng, out) for out in outs)


def pull_quietly(pull, cts):
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pull(cts)


def close(found, right):
    for a, b in zip(found, right, strict=True):
        size = np.max(np.abs(np.nan_to_num(b)), initial=1.0)
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12 * size)
        assert np.shape(a) == np.shape(b)


def follows_memory(row, xs):
    """Whether NumPy's own result depends on the strides, as with order="K"; or NumPy itself refuses these strides."""
    try:
        values = row.outputs(*xs)
    except ValueError:
        return True
    plain = row.outputs(*laid(row.arrays, contiguous))
    return not all(
        np.shape(a) == np.shape(b) and np.allclose(a, b, equal_nan=True) for a, b in zip(values, plain, strict=True)
    )


@pytest.mark.share(7, of=lambda row: row.covers)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_operands_and_cotangents_in_every_layout(row):
    outs, pull = pb.vjp(row.outputs, *laid(row.arrays, contiguous))
    cts = seeds(outs)
    right = pull_quietly(pull, cts)
    for name, layout in LAYOUTS.items():
        laid_out = laid(cts, layout)
        close(pull_quietly(pull, laid_out), right)
        assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(laid_out, cts, strict=True)), (
            f"a cotangent was written: {name}"
        )
        xs = laid(row.arrays, layout)
        if follows_memory(row, xs):
            continue
        values, pull_laid = pb.vjp(row.outputs, *xs)
        assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(values, row.outputs(*xs), strict=True)), name
        close(pull_quietly(pull_laid, cts), right)


def spread(value):
    """A read-only array of one number, all strides 0."""
    if not isinstance(value, np.ndarray) or not value.size:
        return value
    return np.broadcast_to(value.flat[0], value.shape)


@pytest.mark.share(7, of=lambda row: row.covers, turn=1)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_cotangent_without_strides(row):
    outs, pull = pb.vjp(row.outputs, *row.arrays)
    cts = tuple(map(spread, seeds(outs)))
    close(pull_quietly(pull, cts), pull_quietly(pull, laid(cts, contiguous)))


def repeated(value):
    """The first line of an array again and again, by a stride of 0; read-only."""
    return (
        np.broadcast_to(value[:1], value.shape)
        if isinstance(value, np.ndarray) and value.ndim and value.size
        else value
    )


@pytest.mark.share(7, of=lambda row: row.covers)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_operands_of_which_one_line_is_repeated(row):
    xs = tuple(map(repeated, row.arrays))
    dense = laid(xs, contiguous)
    try:
        expected = row.outputs(*dense)
        outs, pull = pb.vjp(row.outputs, *dense)
        right, values = pull_quietly(pull, cts := seeds(outs)), row.outputs(*xs)
    except (ValueError, TypeError, np.linalg.LinAlgError, pb.PullbackError):
        return  # equal lines are no knots, no basis, no full rank: NumPy or the derivative says so
    if not all(
        np.shape(a) == np.shape(b) and np.allclose(a, b, equal_nan=True) for a, b in zip(values, expected, strict=True)
    ):
        return  # order="K"
    close(pull_quietly(pb.vjp(row.outputs, *xs)[1], cts), right)


def test_most_rows_do_not_follow_memory():
    follow = [row.name for row in ROWS if follows_memory(row, laid(row.arrays, fortran))]
    assert len(follow) <= 12, follow
