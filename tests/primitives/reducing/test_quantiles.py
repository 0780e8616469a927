"""Medians and quantiles: ties, NaN, methods, traced q, weights."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.primitives.gradients import same

import pullback as pb
from pullback.primitives.reducing.quantiles import METHODS

NAN, INF = np.nan, np.inf
UP = np.arange(1.0, 10.0)


# ------------------------------------------------------------------------------------------------------------ quantiles
def test_median_of_an_even_count_is_shared():
    same(pb.grad(np.median)(np.array([4.0, 1.0, 3.0, 2.0])), [0, 0, 0.5, 0.5])
    same(pb.grad(np.median)(np.array([5.0, 1.0, 3.0])), [0, 0, 1])


def test_median_of_equal_numbers_has_gradient_one_in_all():
    assert np.sum(pb.grad(np.median)(np.full(6, 2.0))) == 1.0


def test_median_with_nan_goes_to_a_nan_and_nanmedian_does_not():
    x = np.array([1.0, NAN, 3.0, 2.0])
    same(pb.grad(np.median)(x), [0, 1, 0, 0])
    same(pb.grad(np.nanmedian)(x), [0, 0, 0, 1])


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("inverted_cdf", [0, 0, 1, 0, 0]),
        ("averaged_inverted_cdf", [0, 0.5, 0.5, 0, 0]),
        ("closest_observation", [0, 1, 0, 0, 0]),
        ("interpolated_inverted_cdf", [0, 1, 0, 0, 0]),
        ("hazen", [0, 0.5, 0.5, 0, 0]),
        ("weibull", [0, 0.6, 0.4, 0, 0]),
        ("linear", [0, 0.4, 0.6, 0, 0]),
        ("median_unbiased", [0, 8 / 15, 7 / 15, 0, 0]),
        ("normal_unbiased", [0, 0.525, 0.475, 0, 0]),
        ("lower", [0, 1, 0, 0, 0]),
        ("higher", [0, 0, 1, 0, 0]),
        ("nearest", [0, 0, 1, 0, 0]),
        ("midpoint", [0, 0.5, 0.5, 0, 0]),
    ],
)
def test_each_method_splits_by_its_own_weights(method, expected):
    x = np.array([10.0, 20.0, 30.0, 40.0, 50.0])
    gradient = pb.grad(lambda x: np.quantile(x, 0.4 + 1e-12 * (method == "inverted_cdf"), method=method))(x)
    np.testing.assert_allclose(gradient, expected, atol=1e-10)
    assert gradient @ x == pytest.approx(np.quantile(x, 0.4 + 1e-12 * (method == "inverted_cdf"), method=method))


def test_quantile_by_q_is_the_gap_times_the_number_of_gaps():
    x = np.array([1.0, 2.0, 4.0, 8.0])
    assert pb.grad(lambda q: np.quantile(x, q))(0.5) == pytest.approx(6.0)
    assert pb.grad(lambda q: np.percentile(x, q))(50.0) == pytest.approx(0.06)
    assert pb.grad(lambda q: np.quantile(x, q, method="weibull"))(0.01) == 0.0  # below the first element
    same(pb.grad(lambda q: np.sum(np.quantile(x, q, method="lower")))(np.array([0.2, 0.7])), [0, 0])


def test_quantile_by_q_between_infinities_is_finite_where_it_can_be():
    x = np.array([-INF, 1.0, 2.0, INF, INF])
    same(pb.grad(lambda q: np.sum(np.quantile(x, q)))(np.array([0.3])), [4.0])
    with np.errstate(invalid="ignore"):
        assert pb.grad(lambda q: np.quantile(x, q))(0.7) == INF


def test_the_second_derivative_of_quantile_by_element_and_q():
    x = np.array([1.0, 2.0, 4.0, 8.0])

    def slope(q, k):
        return pb.grad(lambda x: np.quantile(x, q))(x)[k]

    np.testing.assert_allclose([pb.grad(slope)(0.5, k) for k in range(4)], [0, -3, 3, 0])


def test_weights_of_a_quantile_choose_and_have_no_derivative():
    x, weights = np.array([3.0, 1.0, 2.0]), np.array([0.0, 1.0, 5.0])
    by_x, by_weights = pb.grad(lambda x, w: np.quantile(x, 0.5, method="inverted_cdf", weights=w), argnums=(0, 1))(
        x, weights
    )
    same(by_x, [0, 0, 1])
    same(by_weights, [0, 0, 0])
    with pytest.raises(ValueError, match="Only method 'inverted_cdf' supports weights"):
        pb.grad(lambda x: np.quantile(x, 0.5, weights=weights))(x)


def test_what_numpy_refuses_is_refused():
    with pytest.raises(ValueError, match="Quantiles must be in the range"):
        pb.grad(lambda x: np.quantile(x, 1.5))(UP)
    with pytest.raises(ValueError, match="is not a valid method"):
        pb.grad(lambda x: np.quantile(x, 0.5, method="mine"))(UP)


# ------------------------------------------------------------------------------------------------- the dtype of q
@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(sorted(METHODS)), st.sampled_from(["quantile", "percentile", "nanquantile", "nanpercentile"]),
    st.sampled_from([np.float16, np.float32, np.float64]), st.sampled_from([np.float16, np.float32, np.float64]),
    st.lists(st.floats(0, 1), min_size=1, max_size=4), st.integers(1, 900), st.integers(0, 99),
)  # fmt: skip
def test_the_gradient_is_that_of_numpys_value_whatever_the_dtype_of_q(method, name, kind, of_x, q, n, seed):
    x = np.random.default_rng(seed).normal(size=n).astype(of_x)
    if name.startswith("nan") and n > 2:
        x[n // 2] = NAN
    q = (np.array(q) * (100 if "perc" in name else 1)).astype(kind)
    value = getattr(np, name)(x, q, method=method)
    jacobian = pb.jacobian(lambda x: getattr(np, name)(x, q, method=method))(x)
    tol = 8 * max(np.finfo(of_x).eps, 1e-15)  # the value is linear in the two elements that it lies between
    found = np.asarray(jacobian, float) @ np.nan_to_num(x.astype(float))
    np.testing.assert_allclose(found, value, rtol=tol, atol=tol * np.nanmax(np.abs(x)))


@pytest.mark.parametrize("scalar", [np.float16(0.3), np.array(0.3, np.float16), np.array([0.3, 0.77], np.float16)])
def test_a_narrow_q_of_many_elements(scalar):
    x = np.random.default_rng(0).normal(size=(1500, 2))
    for f in (lambda x: np.quantile(x, scalar, axis=0), lambda x: np.nanquantile(x, scalar)):
        value, found = np.sum(f(x)), np.sum(pb.grad(lambda x, f=f: np.sum(f(x)))(x) * x)
        assert abs(found - value) < 1e-12


def test_a_narrow_q_that_is_traced_twice():
    x, q = UP[::-1] ** 2, np.float32(0.3)
    expected = pb.grad(lambda q: pb.grad(np.quantile)(x, q) @ UP)(0.3)
    np.testing.assert_allclose(pb.grad(lambda q: pb.grad(np.quantile)(x, q) @ UP)(q), expected, rtol=1e-6)


def test_a_narrow_q_of_too_many_elements_is_refused_by_name():
    x, q = np.arange(70_000.0), np.array([0.0], np.float16)
    with np.errstate(all="ignore"), pytest.raises((pb.NotDifferentiableError, ValueError, IndexError)) as caught:
        pb.grad(lambda x: np.quantile(x, q)[0])(x)
    if isinstance(caught.value, pb.NotDifferentiableError):
        assert "q.astype(float)" in str(caught.value)
    assert np.sum(pb.grad(lambda x: np.quantile(x, q.astype(float))[0])(x)) == 1
