"""Sums and means: dtypes of accumulators, masks, views as cotangents, nothing at all."""

import numpy as np
import pytest
from tests.primitives.gradients import same

import pullback as pb
from pullback.primitives.reducing.sums import sum_
from pullback.words.specs import ArraySpec


@pytest.mark.parametrize("function", [np.sum, np.prod, np.cumsum, np.cumprod, np.diff])
def test_nothing_has_an_empty_gradient(function):
    same(pb.grad(lambda x: np.sum(function(x)))(np.zeros(0)), [])


def test_masked_elements_get_exactly_zero_even_from_an_infinite_cotangent():
    mask = np.array([True, False, True])

    def overflowing(x):
        return np.sum(x, where=mask) * np.inf

    with np.errstate(invalid="ignore"):
        gradient = pb.grad(overflowing)(np.ones(3))
    same(gradient, [np.inf, 0.0, np.inf])


def test_what_is_masked_is_not_read():
    x = np.array([1.0, np.nan, 3.0])
    seen = ~np.isnan(x)
    same(pb.grad(lambda x: np.mean(x, where=seen))(x), [0.5, 0.0, 0.5])
    same(pb.grad(lambda x: np.var(x, where=seen))(x), [-1.0, 0.0, 1.0])
    same(pb.grad(lambda x: np.prod(x, where=seen))(x), [3.0, 0.0, 1.0])
    same(pb.grad(lambda x: np.max(x, where=seen, initial=0.0))(x), [0.0, 0.0, 1.0])


@pytest.mark.parametrize("function", [np.sum, np.mean, np.prod, np.max, np.var, np.std])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.complex64])
def test_the_gradient_has_the_dtype_of_the_argument(function, dtype):
    x = np.array([[1, 2, 4], [3, 5, 7]], dtype)
    gradient = pb.grad(lambda x: np.sum(function(x, axis=0).real))(x)
    assert gradient.dtype == dtype
    assert gradient.shape == x.shape


def test_dtype_of_an_accumulator_does_not_reach_the_gradient():
    assert pb.grad(lambda x: np.sum(x, dtype=np.float64))(np.ones(3, np.float32)).dtype == np.float32


def test_an_integer_accumulator_carries_no_derivative():
    same(pb.grad(lambda x: np.sum(x) * np.sum(x, dtype=int))(np.array([1.0, 2.5])), [3.0, 3.0])


def test_a_python_float_stays_a_scalar():
    gradient = pb.grad(lambda x: np.sum(x) * np.max(x))(3.0)
    assert np.shape(gradient) == ()
    assert gradient == 6.0


def test_the_cotangent_of_sum_is_a_view_without_elements_of_its_own():
    rule = sum_.rules["x"][0]
    cotangent = rule.fn(np.array(2.0), ArraySpec((1000, 1000), np.float64), None)
    assert cotangent.shape == (1000, 1000)
    assert cotangent.strides == (0, 0)
    assert not cotangent.flags.writeable


@pytest.mark.parametrize("mask", [np.array([2, 0, -1]), np.array([True, False, True]), np.array([0.5, 0.0, np.nan])])
def test_where_by_any_kind_of_mask_leaves_nothing_of_what_is_masked(mask):
    _, pull = pb.vjp(lambda x, y: np.where(mask, x, y), np.ones(3), np.ones(3))
    x, y = pull(np.array([3.0, np.nan, np.inf]))
    same(x, [3.0, 0.0, np.inf])
    same(y, [0.0, np.nan, 0.0])


def test_sum_mean_and_max_give_nothing_to_masked_elements():
    x, mask = np.array([[1.0, 5.0], [7.0, 2.0]]), np.array([[True, False], [False, True]])
    same(pb.grad(lambda x: np.sum(np.sum(x, 0, where=mask, initial=3.0, keepdims=True)))(x), mask)
    same(pb.grad(lambda x: np.sum(np.mean(x, (0, 1), dtype=np.float64, where=mask)))(x), mask / 2)
    same(pb.grad(lambda x: np.sum(np.max(x, where=mask, initial=0.0)))(x), [[0, 0], [0, 1]])
