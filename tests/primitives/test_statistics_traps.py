"""Gradients of sorting, quantiles, statistics, sets, histograms and folds where a convention decides: ties, NaN, zeros,
nothing at all.

The right answers are stated, since differences say nothing at a kink. Warnings are errors here, so a rule that made
noise would fail.
"""

import numpy as np
import pytest

import pullback as pb
from pullback.words.errors import NotDifferentiableError

NAN, INF = np.nan, np.inf
UP = np.arange(1.0, 10.0)


def same(gradient, expected, dtype=np.float64):
    assert gradient.dtype == dtype
    np.testing.assert_array_equal(gradient, np.asarray(expected, dtype))


def weighted(function, weights):
    """A loss that tells the elements of the function's result apart."""
    return lambda x: np.sum(function(x) * np.asarray(weights))


# -------------------------------------------------------------------------------------------------------------- sorting
@pytest.mark.parametrize("kind", [None, "quicksort", "heapsort", "stable"])
def test_sort_of_ties_keeps_their_order_whatever_the_kind(kind):
    x = np.array([2.0, 1.0, 2.0, 1.0, 2.0])
    same(pb.grad(weighted(lambda x: np.sort(x, kind=kind), [1, 2, 3, 4, 5]))(x), [3, 1, 4, 2, 5])


def test_sort_of_many_ties_is_stable():
    x = np.tile([3.0, 1.0, 2.0], 40)
    same(pb.grad(weighted(np.sort, np.arange(120)))(x), np.argsort(np.argsort(x, kind="stable")))


def test_partition_is_a_permutation():
    x = np.array([2.0, 1.0, 2.0, 0.0, 2.0])
    gradient = pb.grad(weighted(lambda x: np.partition(x, 2), [1, 2, 3, 4, 5]))(x)
    assert sorted(gradient) == [1, 2, 3, 4, 5]
    np.testing.assert_array_equal(x[np.argsort(gradient)], np.partition(x, 2))


def test_nan_stands_last_in_sort():
    same(pb.grad(weighted(np.sort, [1, 2, 3, 4]))(np.array([NAN, 2.0, NAN, 1.0])), [3, 2, 4, 1])


def test_sort_of_all_axes_and_of_one():
    x = np.array([[3.0, 1.0], [2.0, 0.0]])
    same(pb.grad(weighted(lambda x: np.sort(x, None), [1, 2, 3, 4]))(x), [[4, 2], [3, 1]])
    same(pb.grad(weighted(lambda x: np.sort(x, 0), [[1, 2], [3, 4]]))(x), [[3, 4], [1, 2]])


def test_complex_numbers_are_sorted_by_real_then_imaginary_part():
    z = np.array([1 + 2j, 0 + 5j, 1 - 1j])
    same(pb.grad(lambda z: np.sum(np.sort(z).real * np.array([1, 2, 3])))(z), [3, 1, 2], np.complex128)


def test_argsort_is_plain():
    same(pb.grad(lambda x: np.sum(x[np.argsort(x)] * np.array([1, 2, 3])))(np.array([3.0, 1.0, 2.0])), [3, 1, 2])


def test_sort_and_partition_of_an_array_are_in_place():
    def f(x):
        y = x * 1
        y.sort()
        z = -y
        z.partition(1)
        return np.sum(y * np.array([1, 10, 100])) + z[0]

    same(pb.grad(f)(np.array([3.0, 1.0, 2.0])), [99, 1, 10])


def test_fields_cannot_order_numbers():
    with pytest.raises(ValueError, match="Cannot specify order"):
        pb.grad(lambda x: np.sum(np.sort(x, order="a")))(UP)


# ------------------------------------------------------------------------------------------------------ extrema and ptp
def test_ptp_shares_on_either_end():
    same(pb.grad(np.ptp)(np.array([4.0, 1.0, 1.0, 4.0, 2.0])), [0.5, -0.5, -0.5, 0.5, 0])
    same(pb.grad(np.ptp)(np.array([3.0, 3.0])), [0, 0])


@pytest.mark.parametrize("axis", [0, -1, (0, 1), None])
@pytest.mark.parametrize("keepdims", [False, True])
def test_ties_of_max_share_for_every_axis(axis, keepdims):
    gradient = pb.grad(lambda x: np.sum(np.max(x, axis, keepdims=keepdims)))(np.full((2, 3), 7.0))
    count = {0: 2, -1: 3}.get(axis, 6)
    np.testing.assert_allclose(gradient, np.full((2, 3), 1 / count), rtol=1e-15)


def test_max_of_all_elements_gives_all_to_nan_and_shares_infinities():
    same(pb.grad(np.max)(np.array([1.0, NAN, 5.0])), [0, 1, 0])
    same(pb.grad(np.max)(np.array([INF, 1.0, INF])), [0.5, 0, 0.5])


def test_fmax_and_nanmax_ignore_nan():
    x = np.array([NAN, 2.0, 2.0, 1.0])
    for function in (np.fmax.reduce, np.nanmax):
        same(pb.grad(function)(x), [0, 0.5, 0.5, 0])
    same(pb.grad(np.nanmin)(x), [0, 0, 0, 1])
    same(pb.grad(lambda x: np.nanmax(x, initial=5.0))(x), [0, 0, 0, 0])
    same(pb.grad(lambda x: np.nanmax(x, initial=2.0))(x), [0, 1 / 3, 1 / 3, 0])


@pytest.mark.parametrize("ufunc", [np.maximum, np.fmax])
def test_a_running_maximum_goes_to_the_first_of_equals(ufunc):
    x = np.array([1.0, 3.0, 2.0, 3.0, 4.0])
    same(pb.grad(weighted(ufunc.accumulate, [1, 10, 100, 1000, 10000]))(x), [1, 1110, 0, 0, 10000])


def test_a_running_maximum_stays_at_the_first_nan_and_fmax_passes_over_it():
    x = np.array([1.0, NAN, 2.0, NAN])
    weights = [1, 10, 100, 1000]
    same(pb.grad(weighted(lambda x: np.nan_to_num(np.fmax.accumulate(x)), weights))(x), [11, 0, 1100, 0])
    _, pull = pb.vjp(np.maximum.accumulate, x)
    same(pull(np.array(weights, float))[0], [1, 1110, 0, 0])


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


# --------------------------------------------------------------------------------------------- averages and covariances
def test_average_by_weights():
    x, weights = np.array([1.0, 2.0, 6.0]), np.array([1.0, 1.0, 2.0])
    by_x, by_weights = pb.grad(lambda x, w: np.average(x, weights=w), argnums=(0, 1))(x, weights)
    same(by_x, [0.25, 0.25, 0.5])
    np.testing.assert_allclose(by_weights, (x - 3.75) / 4)


def test_the_returned_sum_of_weights_has_a_derivative():
    same(pb.grad(lambda w: np.average(UP, weights=w, returned=True)[1])(UP), np.ones(9))


def test_average_refuses_what_numpy_refuses():
    with pytest.raises(ZeroDivisionError, match="Weights sum to zero"):
        pb.grad(lambda w: np.average(np.ones(2), weights=w))(np.array([1.0, -1.0]))
    with pytest.raises(TypeError, match="Axis must be specified when shapes"):
        pb.grad(lambda w: np.average(np.ones((2, 3)), weights=w))(np.ones(3))
    with pytest.raises(ValueError, match="Shape of weights must be consistent"):
        pb.grad(lambda w: np.sum(np.average(np.ones((2, 3)), 0, weights=w)))(np.ones(3))


def test_the_diagonal_of_corrcoef_does_not_move():
    x = np.random.default_rng(3).normal(size=(3, 8))
    np.testing.assert_allclose(pb.grad(lambda x: np.sum(np.diag(np.corrcoef(x))))(x), 0, atol=1e-15)


def test_cov_refuses_what_numpy_refuses():
    table = np.ones((2, 3))
    with pytest.raises(TypeError, match="fweights must be integer"):
        pb.grad(lambda x: np.sum(np.cov(x, fweights=[1.0, 0.5, 1.0])))(table)
    with pytest.raises(ValueError, match="aweights cannot be negative"):
        pb.grad(lambda w: np.sum(np.cov(table, aweights=w)))(np.array([1.0, -1.0, 1.0]))
    with pytest.raises(RuntimeError, match="incompatible numbers of samples and aweights"):
        pb.grad(lambda w: np.sum(np.cov(table, aweights=w)))(np.ones(2))
    with pytest.raises(RuntimeError, match="cannot handle multidimensional aweights"):
        pb.grad(lambda w: np.sum(np.cov(table, aweights=w)))(np.ones((2, 2)))
    with pytest.raises(ValueError, match="more than 2 dimensions"):
        pb.grad(lambda x: np.sum(np.cov(x)))(np.ones((2, 2, 2)))
    with pytest.raises(ValueError, match="ddof must be integer"):
        pb.grad(lambda x: np.sum(np.cov(x, ddof=0.5)))(table)


@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value")
def test_cov_warns_without_degrees_of_freedom():
    with pytest.warns(RuntimeWarning, match="Degrees of freedom <= 0"):
        pb.vjp(np.cov, np.ones((2, 1)))


# ------------------------------------------------------------------------------------------------------------------ NaN
@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (np.nansum, [1, 0, 1, 1]),
        (np.nanprod, [6, 0, 3, 2]),
        (np.nanmean, [1 / 3, 0, 1 / 3, 1 / 3]),
        (np.nanvar, [-2 / 3, 0, 0, 2 / 3]),
        (np.nanmax, [0, 0, 0, 1]),
        (np.nanmin, [1, 0, 0, 0]),
        (np.nanmedian, [0, 0, 1, 0]),
        (lambda x: np.sum(np.nancumsum(x)), [4, 0, 2, 1]),
        (lambda x: np.sum(np.nancumprod(x)), [10, 0, 4, 2]),
    ],
)
def test_nan_has_no_part_and_gradient_zero(function, expected):
    np.testing.assert_allclose(pb.grad(function)(np.array([1.0, NAN, 2.0, 3.0])), expected, rtol=1e-15)


def test_a_column_of_nan_gives_numpys_warning_and_gradient_zero():
    x = np.array([[1.0, NAN], [4.0, NAN]])
    warnings = {
        np.nanmean: "Mean of empty slice", np.nanmax: "All-NaN slice", np.nanmin: "All-NaN slice",
        np.nanmedian: "All-NaN slice",
        np.nanvar: "Degrees of freedom", np.nanstd: "Degrees of freedom",
    }  # fmt: skip
    for function, text in warnings.items():
        with pytest.warns(RuntimeWarning, match=text):
            out, pull = pb.vjp(lambda x, f=function: f(x, 0), x)
        assert np.isnan(out[1])
        gradient = pull(np.ones(2))[0]
        assert np.isfinite(gradient).all()
        same(gradient[:, 1], [0, 0])


def test_nanstd_of_equal_numbers_has_gradient_zero():
    same(pb.grad(np.nanstd)(np.array([2.0, NAN, 2.0])), [0, 0, 0])


def test_nan_functions_of_a_degree_too_few_are_nan_only_where_numbers_are():
    with pytest.warns(RuntimeWarning, match="Degrees of freedom"):
        _, pull = pb.vjp(lambda x: np.nanvar(x, ddof=1), np.array([2.0, NAN]))
    np.testing.assert_array_equal(pull(1.0)[0], [NAN, 0])


def test_ddof_and_correction_together_are_refused():
    with pytest.raises(ValueError, match="ddof=1 and correction=1 mean the same"):
        pb.grad(lambda x: np.nanvar(x, ddof=1, correction=1))(UP)


# ----------------------------------------------------------------------------------- products, running sums, deviations
def test_prod_over_several_axes_with_zeros():
    x = np.array([[[2.0, 0.0], [3.0, 1.0]], [[0.0, 0.0], [5.0, 6.0]]])
    same(pb.grad(lambda x: np.sum(np.prod(x, (1, 2))))(x), [[[0, 6], [0, 0]], [[0, 0], [0, 0]]])


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


def test_std_of_one_element_along_an_axis_is_flat():
    same(pb.grad(lambda x: np.sum(np.std(x, axis=1, keepdims=True)))(np.ones((3, 1))), np.zeros((3, 1)))


def test_sum_mean_and_max_give_nothing_to_masked_elements():
    x, mask = np.array([[1.0, 5.0], [7.0, 2.0]]), np.array([[True, False], [False, True]])
    same(pb.grad(lambda x: np.sum(np.sum(x, 0, where=mask, initial=3.0, keepdims=True)))(x), mask)
    same(pb.grad(lambda x: np.sum(np.mean(x, (0, 1), dtype=np.float64, where=mask)))(x), mask / 2)
    same(pb.grad(lambda x: np.sum(np.max(x, where=mask, initial=0.0)))(x), [[0, 0], [0, 1]])


# ----------------------------------------------------------------------------------------------------------------- sets
def test_unique_gathers_from_the_first_of_equals():
    x = np.array([3.0, 1.0, 3.0, 2.0, 1.0])
    same(pb.grad(weighted(np.unique, [1, 10, 100]))(x), [100, 1, 0, 10, 0])


def test_unique_keeps_named_tuples_and_plain_indices():
    def f(x):
        result = np.unique_all(x)
        assert type(result).__name__ == "UniqueAllResult"
        assert isinstance(result.indices, np.ndarray)
        values, counts = np.unique_counts(x)
        return np.sum(result.values * values * counts)

    same(pb.grad(f)(np.array([3.0, 1.0, 3.0])), [12.0, 2.0, 0.0])


def test_unique_of_zeros_of_both_signs_has_numpys_bits():
    x = np.array([0.0, -0.0, 1.0, -0.0])
    out, pull = pb.vjp(np.unique, x)
    np.testing.assert_array_equal(np.signbit(out), np.signbit(np.unique(x)))
    same(pull(np.array([5.0, 7.0]))[0], [5, 0, 7, 0])


def test_set_operations_gather_from_their_operands():
    x, y = np.array([2.0, 1.0, 4.0]), np.array([4.0, 3.0])
    both = pb.grad(lambda x, y: np.sum(np.union1d(x, y) * np.array([1, 10, 100, 1000])), argnums=(0, 1))(x, y)
    same(both[0], [10, 1, 1000])
    same(both[1], [0, 100])
    both = pb.grad(lambda x, y: np.sum(np.intersect1d(x, y)), argnums=(0, 1))(x, y)
    same(both[0], [0, 0, 1])
    same(both[1], [0, 0])
    same(pb.grad(weighted(lambda x: np.setdiff1d(x, y), [1, 10]))(x), [10, 1, 0])
    same(pb.grad(weighted(lambda y: np.setxor1d(x, y), [1, 10, 100]))(y), [0, 100])


# ----------------------------------------------------------------------------------------------------------- histograms
def test_weights_get_the_cotangent_of_their_bin():
    weights = np.ones(4)
    same(pb.grad(lambda w: np.sum(np.bincount([0, 2, 2, 1], w, 5) * np.arange(5)))(weights), [0, 2, 2, 1])
    data = np.array([
        0.0,
        1.0,
        2.0,
        5.0,
    ])  # an edge belongs to the bin on its right, the last to the last bin; 5 is in none
    same(
        pb.grad(lambda w: np.sum(np.histogram(data, [0, 1, 2], weights=w)[0] * np.array([1, 10])))(weights),
        [1, 10, 10, 0],
    )
    same(
        pb.grad(lambda w: np.sum(np.histogram(data, 2, (0, 2), weights=w)[0] * np.array([1, 10])))(weights),
        [1, 10, 10, 0],
    )


@pytest.mark.parametrize("bins", [3, 7, 100])
def test_every_sample_on_an_edge_is_counted_where_numpy_counts_it(bins):
    edges = np.linspace(0.1, 0.7, bins + 1)
    data = np.concatenate((edges, np.nextafter(edges, -1), np.nextafter(edges, 1), [NAN]))
    out, pull = pb.vjp(lambda w: np.histogram(data, bins, (0.1, 0.7), weights=w)[0], np.ones(data.size))
    gradient = pull(np.arange(1.0, bins + 1))[0]
    np.testing.assert_array_equal(np.bincount(gradient.astype(int), minlength=bins + 1)[1:], out)


def test_counts_are_plain_and_edges_move_with_the_data():
    def f(x):
        counts, edges = np.histogram(x, 2)
        assert isinstance(counts, np.ndarray)
        return np.sum(edges * np.array([1, 10, 100]))

    same(pb.grad(f)(np.array([1.0, 4.0, 2.0])), [6.0, 105.0, 0.0])
    same(pb.grad(lambda x: np.sum(np.histogram(x, 2, (0, 5))[1]) + x[0])(np.ones(3)), [1, 0, 0])


def test_a_density_falls_as_its_bins_widen():
    x = np.array([0.0, 1.0, 4.0])
    np.testing.assert_allclose(pb.grad(lambda x: np.histogram(x, 1, density=True)[0][0])(x), [1 / 16, 0, -1 / 16])


def test_bincount_of_floats_is_refused_by_numpy():
    with pytest.raises(TypeError, match="Cannot cast"):
        pb.grad(lambda x: np.sum(np.bincount(x)))(np.array([1.0, 2.0]))


# ---------------------------------------------------------------------------------------------------------------- folds
@pytest.mark.parametrize("ufunc", [np.power, np.arctan2])
def test_a_reduction_that_numpy_gets_wrong_is_refused_and_never_differentiated(ufunc):
    x = np.array([1.3, 0.7, 1.9, 1.1])
    right = np.allclose(ufunc.reduce(x), ufunc.accumulate(x)[-1], 1e-9)
    if right:
        np.testing.assert_allclose(pb.grad(ufunc.reduce)(x), pb.grad(lambda x: ufunc.accumulate(x)[-1])(x))
    else:
        with pytest.raises(
            NotDifferentiableError, match=rf"numpy.{ufunc.__name__}.reduce of this array .* take the last of"
        ):
            pb.grad(ufunc.reduce)(x)


def test_hypot_reduce_is_a_norm():
    same(pb.grad(np.hypot.reduce)(np.array([3.0, -4.0])), [0.6, -0.8])
    same(pb.grad(np.hypot.reduce)(np.zeros(3)), [0, 0, 0])
    same(pb.grad(np.hypot.reduce)(np.array([-2.0])), [-1])


def test_a_fold_that_cannot_be_reordered_has_one_axis():
    with pytest.raises(ValueError, match="not reorderable"):
        pb.grad(lambda x: np.subtract.reduce(x, axis=(0, 1), initial=1.0))(np.ones((2, 2)))
    with pytest.raises(ValueError, match="does not have an identity"):
        pb.grad(lambda x: np.fmax.reduce(x, where=x > 0))(np.ones(3))


def test_reductions_of_questions_are_plain():
    def f(x):
        assert isinstance(np.logical_or.accumulate(x > 1), np.ndarray)
        return np.sum(x) * np.logical_and.reduce(x) + np.logical_xor.reduce(x)

    same(pb.grad(f)(UP), np.ones(9))


def test_logaddexp_accumulate_of_large_numbers():
    same(pb.grad(lambda x: np.logaddexp.accumulate(x)[-1])(np.array([1000.0, 1000.0, -1000.0])), [0.5, 0.5, 0])
