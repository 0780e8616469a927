"""Gradients of reductions and scans where a formula goes wrong: zeros, ties, NaN, infinities, constants, masks, nothing
at all.

The right answers are stated, since differences say nothing at a kink.
"""

import numpy as np
import pytest

import pullback as pb
from pullback.primitives.reducing.sums import sum_
from pullback.words.specs import ArraySpec


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


@pytest.mark.parametrize(
    ("initial", "expected"), [(5.0, [0.0, 0.0, 0.0]), (2.0, [0.0, 1 / 3, 1 / 3]), (0.0, [0.0, 0.5, 0.5])]
)
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


@pytest.mark.filterwarnings(
    "ignore:Degrees of freedom:RuntimeWarning", "ignore:divide by zero encountered:RuntimeWarning"
)
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


@pytest.mark.parametrize("axis", [0, -1, None, ()])
def test_a_fold_of_a_number_is_the_number_along_any_axis(axis):
    assert pb.grad(lambda x: np.hypot.reduce(x, axis=axis))(np.float32(-0.7)) == -1
    assert pb.grad(lambda x: np.subtract.reduce(x, axis=axis))(np.array(0.7)) == 1


@pytest.mark.parametrize("ufunc", [np.subtract, np.divide, np.hypot, np.copysign])
@pytest.mark.parametrize(("shape", "axis"), [((0, 3), 1), ((0, 3), (0, 1)), ((2, 0, 3), -1), ((2, 0, 3), None)])
def test_folds_of_nothing_have_an_empty_gradient(ufunc, shape, axis):
    if ufunc is not np.hypot and axis in (None, (0, 1)):  # no identity
        axis = len(shape) - 1
    same(pb.grad(lambda x: np.sum(ufunc.reduce(x, axis=axis)))(np.zeros(shape)), np.zeros(shape))


@pytest.mark.parametrize("mask", [np.array([2, 0, -1]), np.array([True, False, True]), np.array([0.5, 0.0, np.nan])])
def test_where_by_any_kind_of_mask_leaves_nothing_of_what_is_masked(mask):
    _, pull = pb.vjp(lambda x, y: np.where(mask, x, y), np.ones(3), np.ones(3))
    x, y = pull(np.array([3.0, np.nan, np.inf]))
    same(x, [3.0, 0.0, np.inf])
    same(y, [0.0, np.nan, 0.0])


@pytest.mark.parametrize("bounds", [(-1.0, 1.0), (None, 1.0), (-1.0, None)])
def test_an_infinite_cotangent_does_not_reach_what_clip_cuts_off(bounds):
    cut = [k for k, (x, bound) in enumerate(zip((-2.0, 2.0), bounds, strict=True)) if bound is not None]
    gradient = pb.vjp(lambda x: np.clip(x, *bounds), np.array([-2.0, 2.0, 0.0]))[1](np.array([np.inf, np.nan, np.inf]))[
        0
    ]
    same(gradient[cut], np.zeros(len(cut)))
    assert gradient[2] == np.inf


@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1)])
@pytest.mark.parametrize("function", [np.max, np.min, np.ptp])
def test_extrema_share_among_many_and_among_few_and_give_nan_what_is_its(function, axis):
    rng = np.random.default_rng(0)
    for x in (
        rng.normal(size=(30, 40)),
        rng.integers(0, 3, (30, 40)).astype(float),
        np.where(rng.random((30, 40)) < 0.01, np.nan, 1.0),
    ):
        out, pull = pb.vjp(lambda x: function(x, axis=axis), x)
        expected = np.zeros_like(x)
        for extreme, sign in {np.max: ((np.max, 1),), np.min: ((np.min, 1),), np.ptp: ((np.max, 1), (np.min, -1))}[
            function
        ]:
            top = extreme(x, axis=axis, keepdims=True)
            hit = (x == top) | np.isnan(x)
            expected += sign * hit / hit.sum(axis=axis, keepdims=True)
        np.testing.assert_allclose(pull(np.ones_like(out))[0], expected, rtol=1e-15)


def test_a_long_product_and_its_scan_divide_where_that_is_safe_only():
    x = 1 + np.random.default_rng(0).normal(size=500) * 0.1
    np.testing.assert_allclose(pb.grad(np.prod)(x), [np.prod(np.delete(x, k)) for k in range(500)], rtol=1e-12)
    weights = np.random.default_rng(1).normal(size=500)
    expected = [np.sum(weights[k:] * np.cumprod(x)[k:]) / x[k] for k in range(500)]
    np.testing.assert_allclose(pb.grad(lambda x: np.sum(weights * np.cumprod(x)))(x), expected, rtol=1e-10)
    tiny = np.array([1e-200, 1e-120, 1e100])
    np.testing.assert_allclose(pb.grad(np.prod)(tiny), [1e-20, 1e-100, 0], rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(pb.grad(lambda x: np.cumprod(x)[2])(tiny), [1e-20, 1e-100, 0], rtol=1e-12, atol=1e-300)
