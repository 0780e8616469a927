"""Running sums and products and differences: zeros, large numbers, more orders than elements."""

import numpy as np
import pytest
from tests.primitives.gradients import same

import pullback as pb


def test_diff_of_more_orders_than_elements_is_empty_and_its_gradient_zero():
    for x in (np.array([1.0, 2.0, 4.0]), np.zeros(0)):
        out, pull = pb.vjp(lambda x: np.diff(x, n=5), x)
        assert out.shape == (0,)
        same(pull(out)[0], np.zeros(x.shape))
    with pytest.raises(ValueError, match="order must not be negative"):
        pb.grad(lambda x: np.sum(np.diff(x, n=-1)))(np.ones(3))


def test_cumprod_with_zeros():
    same(pb.grad(lambda x: np.sum(np.cumprod(x)))(np.array([2.0, 0.0, 3.0, 4.0])), [1.0, 32.0, 0.0, 0.0])


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128])
@pytest.mark.parametrize("many", [4, 5, 8, 9, 16, 17])
def test_the_pull_of_diff_is_its_transpose_whatever_the_strides(many, dtype):
    # NumPy 2.4 negates doubles wrongly from some strides into others (np.negative with out=), a row of eight into a row
    # of nine among them.
    x = np.arange(2.0 * 3 * many).reshape(2, 3, many).astype(dtype)
    out, pull = pb.vjp(lambda x: np.diff(x, axis=-1), x)
    ct = (1 + np.arange(out.size)).reshape(out.shape).astype(dtype)
    padded = np.pad(ct, [(0, 0), (0, 0), (1, 1)])
    same(pull(ct)[0], padded[..., :-1] - padded[..., 1:], dtype)


def test_cumprod_with_zeros_far_apart():
    x = np.ones(100)
    x[[40, 90]] = 0.0
    expected = np.where(np.arange(100) < 40, 40.0 - np.arange(100), 0.0)
    expected[40] = 50.0
    same(pb.grad(lambda x: np.sum(np.cumprod(x)))(x), expected)


def test_cumprod_of_large_numbers_of_which_the_end_is_not_used():
    x = np.full(100, 1e30)
    with np.errstate(over="ignore"):
        gradient = pb.grad(lambda x: np.cumprod(x)[1])(x)
    same(gradient, np.where(np.arange(100) < 2, 1e30, 0.0))


def test_cumsum_of_a_table_along_either_axis_and_of_all():
    x = np.ones((2, 3))
    same(pb.grad(lambda x: np.sum(np.cumsum(x)))(x), [[6, 5, 4], [3, 2, 1]])
    same(pb.grad(lambda x: np.sum(np.cumsum(x, -1)))(x), [[3, 2, 1], [3, 2, 1]])
    same(pb.grad(lambda x: np.sum(np.cumsum(x, 0)))(x), [[2, 2, 2], [1, 1, 1]])
