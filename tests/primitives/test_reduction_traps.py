"""Gradients of reductions and scans where a formula goes wrong: zeros, ties, NaN, infinities, constants, masks, nothing at all.

The right answers are stated, since differences say nothing at a kink.
"""

import numpy as np
import pytest

import pullback as pb
from pullback.arrays import ArraySpec
from pullback.primitives.reductions import sum_


def same(gradient, expected, dtype=np.float64):
    assert gradient.dtype == dtype
    np.testing.assert_array_equal(gradient, np.asarray(expected, dtype))


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        ([2.0, 0.0, 3.0], [0.0, 6.0, 0.0]),
        ([0.0, 5.0, 0.0], [0.0, 0.0, 0.0]),
        ([1e-200, 1e-200, 1e200], [1.0, 1.0, 0.0]),  # the product of all underflows, those of the others do not
        ([4.0], [1.0]),
        ([], []),
    ],
)
def test_prod_multiplies_the_others_and_never_divides(x, expected):
    same(pb.grad(np.prod)(np.array(x)), expected)


def test_the_second_derivative_of_prod_at_zeros_is_right():
    def slope(x):
        return pb.grad(np.prod)(x)[0]

    same(pb.grad(slope)(np.array([2.0, 0.0, 3.0])), [0.0, 3.0, 0.0])
    same(pb.grad(slope)(np.array([0.0, 0.0, 3.0])), [0.0, 3.0, 0.0])


def test_cumprod_with_zeros():
    same(pb.grad(lambda x: np.sum(np.cumprod(x)))(np.array([2.0, 0.0, 3.0, 4.0])), [1.0, 32.0, 0.0, 0.0])


@pytest.mark.parametrize("function", [np.max, np.amax, np.maximum.reduce])
def test_ties_of_max_share_equally(function):
    same(pb.grad(function)(np.array([1.0, 3.0, 3.0, 2.0])), [0.0, 0.5, 0.5, 0.0])


def test_ties_of_min_share_equally_in_every_slice():
    x = np.array([[1.0, 1.0, 2.0], [4.0, 4.0, 4.0]])
    same(pb.grad(lambda x: np.sum(np.min(x, axis=1)))(x), [[0.5, 0.5, 0.0], [1 / 3, 1 / 3, 1 / 3]])


def test_the_cotangent_of_max_goes_to_the_nan_that_wins():
    x = np.array([[1.0, np.nan, 5.0], [1.0, 7.0, 5.0]])
    same(pb.grad(lambda x: np.sum(np.max(x, axis=1)))(x), [[0.0, 1.0, 0.0], [0.0, 1.0, 0.0]])


@pytest.mark.parametrize(("initial", "expected"), [(5.0, [0.0, 0.0, 0.0]), (2.0, [0.0, 1 / 3, 1 / 3]), (0.0, [0.0, 0.5, 0.5])])
def test_initial_of_max_is_one_more_element(initial, expected):
    x = np.array([1.0, 2.0, 2.0])
    same(pb.grad(lambda x: np.max(x, initial=initial))(x), expected)
    own = pb.grad(lambda start: np.max(x + 0 * start, initial=start))(np.array(initial))
    assert own == pytest.approx(1 - sum(expected))


def test_max_of_nothing_raises_as_numpy_does():
    with pytest.raises(ValueError, match="zero-size array to reduction operation maximum"):
        pb.grad(np.max)(np.zeros(0))


def test_max_where_needs_an_initial_value():
    with pytest.raises(ValueError, match="no identity, so where= needs initial="):
        pb.grad(lambda x: np.max(x, where=x > 0))(np.ones(3))


@pytest.mark.parametrize("function", [np.sum, np.prod, np.cumsum, np.cumprod, np.diff])
def test_nothing_has_an_empty_gradient(function):
    same(pb.grad(lambda x: np.sum(function(x)))(np.zeros(0)), [])


@pytest.mark.parametrize("x", [np.full(3, 2.5), np.ones(1), np.ones((2, 3))])
def test_std_of_equal_numbers_has_gradient_zero(x):
    same(pb.grad(np.std)(x), np.zeros(x.shape))


def test_std_is_zero_in_one_slice_only():
    x = np.array([[1.0, 1.0], [1.0, 3.0]])
    same(pb.grad(lambda x: np.sum(np.std(x, axis=1)))(x), [[0.0, 0.0], [-0.5, 0.5]])


@pytest.mark.filterwarnings("ignore:Degrees of freedom:RuntimeWarning", "ignore:divide by zero encountered:RuntimeWarning")
def test_var_without_degrees_of_freedom_is_nan():
    assert np.isnan(pb.grad(lambda x: np.var(x, ddof=2))(np.array([1.0, 2.0]))).all()


def test_ddof_and_correction_together_are_refused():
    with pytest.raises(ValueError, match="ddof=1 and correction=1 mean the same"):
        pb.grad(lambda x: np.var(x, ddof=1, correction=1))(np.ones(3))


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


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        ([-np.inf, -np.inf], [0.5, 0.5]),
        ([np.inf, 0.0], [1.0, 0.0]),
        ([-np.inf, 0.0], [0.0, 1.0]),
        ([1e4, -1e4], [1.0, 0.0]),
    ],
)
def test_logaddexp_at_the_ends_of_the_line(x, expected):
    same(pb.grad(np.logaddexp.reduce)(np.array(x)), expected)


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
