"""Sampled functions, interpolation, convolution, ranges, polynomials and fits where a formula goes wrong; the right
answers are stated."""

import numpy as np
import pytest

import pullback as pb
from pullback.words.errors import ConversionError, NotDifferentiableError

GRID = np.array([0.0, 1.0, 3.0, 4.0])
HEIGHT = np.array([1.0, 3.0, -1.0, 0.0])  # slopes 2, -2, 1


def same(gradient, expected, dtype=np.float64):
    assert gradient.dtype == dtype
    np.testing.assert_array_equal(gradient, np.asarray(expected, dtype))


def jacobian(f, x):
    """The rows of the Jacobian: one pull for each output."""
    out, pull = pb.vjp(f, x)
    return np.stack([pull(row)[0] for row in np.eye(len(out), dtype=out.dtype)])


def close(gradient, expected):
    np.testing.assert_allclose(gradient, expected, rtol=1e-12, atol=1e-14)


# --------------------------------------------------------------------------------------------------------------- interp
def test_interp_slopes_inside_at_knots_and_outside():
    x = np.array([-1.0, 0.0, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0])
    same(pb.grad(lambda x: np.sum(np.interp(x, GRID, HEIGHT)))(x), [0, 2, 2, -2, -2, 1, 1, 0])


def test_interp_just_below_a_knot_has_the_slope_of_its_own_interval():
    xp = np.linspace(0.0, 1.0, 100_001) + 1e3  # the number of such a point rounds to that of the knot
    x = np.nextafter(xp[50_000:50_010], 0.0)
    slope = pb.grad(lambda x: np.sum(np.interp(x, xp, xp**2)))(x)
    k = np.searchsorted(xp, x, "right") - 1
    close(slope, (xp[k + 1] ** 2 - xp[k] ** 2) / (xp[k + 1] - xp[k]))


def test_interp_of_values_at_knots_and_outside_goes_to_that_value_alone():
    weights = np.array([1.0, 10.0, 100.0, 1000.0])
    same(
        pb.grad(lambda fp: np.sum(weights * np.interp(np.array([-5.0, 1.0, 4.0, 9.0]), GRID, fp)))(HEIGHT),
        [1, 10, 0, 1100],
    )


def test_interp_sends_what_lies_outside_to_left_and_right():
    x = np.array([-2.0, -1.0, 0.5, 7.0])
    assert pb.grad(lambda a, b: np.sum(np.interp(x * a, GRID, HEIGHT, left=a, right=b)), (0, 1))(1.0, 2.0) == (
        2.0 + 0.5 * 2.0,
        1.0,
    )


def test_interp_of_one_knot_and_of_knots_that_coincide():
    same(pb.grad(lambda fp: np.sum(np.interp([0.0, 1.0, 2.0], [1.0], fp)))(np.array([7.0])), [3])
    knots = np.array([0.0, 1.0, 1.0, 1.0])
    same(pb.grad(lambda fp: np.sum(np.interp([1.0], knots, fp)))(HEIGHT), [0, 0, 0, 1])
    same(pb.grad(lambda x: np.sum(np.interp(x, knots, HEIGHT)))(np.array([0.5, 1.0])), [2, 0])


def test_interp_at_infinity_takes_the_ends_and_at_nan_gives_nothing_to_the_knots():
    x, weights = np.array([np.nan, 0.5, np.inf, -np.inf]), np.array([7.0, 1.0, 10.0, 100.0])
    to_x, to_xp, to_fp = pb.vjp(np.interp, x, GRID, HEIGHT)[1](weights)
    same(to_x, [0, 2, 0, 0])
    same(to_xp, [-1, -1, 0, 0])
    same(to_fp, [100.5, 0.5, 0, 10])


def test_interp_with_a_period_wraps_points_and_knots():
    same(pb.grad(lambda x: np.sum(np.interp(x, GRID, HEIGHT, period=5.0)))(np.array([4.5, 5.5, -4.5])), [1, 2, 2])
    with pytest.raises(ValueError, match="the period is 0"):
        pb.grad(lambda x: np.interp(x, GRID, HEIGHT, period=0))(1.0)


def test_interp_in_single_precision_computes_its_shares_in_double():
    x, xp = np.float32([0.1]), np.float32([0.0, 0.3])
    got = pb.grad(lambda fp: np.interp(x, xp, fp)[0])(np.array([1.0, 2.0]))
    share = float(x[0]) / float(xp[1])
    close(got, [1 - share, share])


def test_interp_alone_with_a_traced_end_is_refused():
    with pytest.raises(ConversionError, match="would drop the derivative"):
        pb.grad(lambda left: np.interp(-1.0, GRID, HEIGHT, left=left))(2.0)


# ---------------------------------------------------------------------------------- gradient, differences and integrals
def test_gradient_of_two_and_of_three():
    same(jacobian(np.gradient, np.array([1.0, 4.0])), [[-1, 1], [-1, 1]])
    same(jacobian(np.gradient, np.array([1.0, 4.0, 9.0])), [[-1, 1, 0], [-0.5, 0, 0.5], [0, -1, 1]])
    parabola = jacobian(lambda f: np.gradient(f, edge_order=2), np.array([1.0, 4.0, 9.0]))
    same(parabola, [[-1.5, 2, -0.5], [-0.5, 0, 0.5], [0.5, -2, 1.5]])


def test_gradient_too_short_or_with_too_many_spacings_is_refused_as_by_numpy():
    for n, order in ((1, 1), (2, 2)):
        with pytest.raises(ValueError, match="too small to calculate a numerical gradient"):
            pb.vjp(lambda f, order=order: np.gradient(f, edge_order=order), np.ones(n))
    with pytest.raises(TypeError, match="3 spacings for 2 axes"):
        pb.vjp(lambda f: np.gradient(f, 1.0, 2.0, 3.0), np.ones((3, 3)))
    with pytest.raises(ValueError, match="distances must match"):
        pb.vjp(lambda f: np.gradient(f, np.ones(4)), np.ones(3))


def test_gradient_gives_a_tuple_where_numpy_does():
    f = np.ones((3, 4))
    for axis, kind in ((None, tuple), (0, np.ndarray), ((1,), np.ndarray), ((), tuple), ((1, 0), tuple)):
        assert (
            type(pb.vjp(lambda f, axis=axis: np.gradient(f, axis=axis), f)[0])
            is kind
            is type(np.gradient(f, axis=axis))
        )


def test_even_coordinates_are_differentiated_as_any_others():
    even, uneven = np.arange(5.0), np.arange(5.0) + 1e-9 * np.array([0, 1, -1, 2, 1])
    f = np.array([1.0, 3.0, -2.0, 0.5, 4.0])

    def slope(x):
        return np.sum(np.gradient(f, x) * f)

    np.testing.assert_allclose(pb.grad(slope)(even), pb.grad(slope)(uneven), rtol=1e-6)


def test_trapezoid_by_traced_points_and_by_a_traced_step():
    y = np.array([1.0, 3.0, 2.0])
    same(pb.grad(lambda y: np.trapezoid(y, dx=2.0))(y), [1, 2, 1])
    same(pb.grad(lambda x: np.trapezoid(y, x))(np.array([0.0, 1.0, 4.0])), [-2, -0.5, 2.5])
    assert pb.grad(lambda dx: np.trapezoid(y, dx=dx))(0.7) == pytest.approx(4.5)


def test_diff_of_more_orders_than_elements_is_empty_and_its_gradient_zero():
    for x in (np.array([1.0, 2.0, 4.0]), np.zeros(0)):
        out, pull = pb.vjp(lambda x: np.diff(x, n=5), x)
        assert out.shape == (0,)
        same(pull(out)[0], np.zeros(x.shape))
    with pytest.raises(ValueError, match="order must not be negative"):
        pb.grad(lambda x: np.sum(np.diff(x, n=-1)))(np.ones(3))


def test_ediff1d_refuses_what_numpy_refuses():
    with pytest.raises(TypeError, match="to_end of dtype complex128"):
        pb.vjp(lambda x: np.ediff1d(x, to_end=1j), np.ones(3))


# ---------------------------------------------------------------------------------------------------------- convolution
def test_convolve_and_correlate_of_known_lines():
    same(
        pb.grad(lambda a: np.convolve(a, [1.0, 2.0, 3.0], "same") @ np.array([1.0, 0, 0, 0]))(np.ones(4)), [2, 1, 0, 0]
    )
    same(pb.grad(lambda a: np.correlate(a, [1.0, 2.0], "valid")[1])(np.ones(3)), [0, 1, 2])
    same(pb.grad(lambda v: np.correlate([1.0, 2.0, 3.0], v)[0])(np.ones(2)), [1, 2])


def test_convolution_of_nothing_and_by_an_unknown_mode_is_refused_as_by_numpy():
    with pytest.raises(ValueError, match="cannot be empty"):
        pb.vjp(lambda a: np.convolve(a, np.zeros(0)), np.ones(3))
    with pytest.raises(ValueError, match="mode"):
        pb.vjp(lambda a: np.convolve(a, a, "middle"), np.ones(3))


# --------------------------------------------------------------------------------------------------------------- ranges
def test_the_last_element_of_a_range_is_its_stop():
    same(np.asarray(pb.grad(lambda b: np.linspace(0.1, b, 7)[-1])(0.7)), 1)
    same(np.asarray(pb.grad(lambda a: np.linspace(a, 0.7, 7)[-1])(0.1)), 0)
    close(pb.grad(lambda b: np.geomspace(0.1, b, 7)[-1])(0.7), 1.0)


def test_ranges_of_integers_are_plain():
    def ranges(a):
        for line in (
            np.linspace(a, 9, 4, dtype=int),
            np.geomspace(a, 9, 4, dtype=int),
            np.logspace(a, 2, 4, dtype=int),
        ):
            assert type(line) is np.ndarray
        line, step = np.linspace(a, 9.0, 4, retstep=True, dtype=int)
        assert type(line) is np.ndarray
        return step

    close(pb.grad(ranges)(1.5), -1 / 3)


def test_geomspace_with_zero_is_refused_as_by_numpy():
    with pytest.raises(ValueError, match="cannot include zero"):
        pb.vjp(lambda a: np.geomspace(a, 1.0), 0.0)


def test_meshgrid_keeps_plain_lines_plain_and_numpys_containers():
    def grids(x):
        a, b = np.meshgrid(x, [1, 2])
        assert type(b) is np.ndarray
        assert type(np.meshgrid(x, x, sparse=True, copy=False)) is type(np.meshgrid([1], [1], sparse=True, copy=False))
        return np.sum(a)

    same(pb.grad(grids)(np.ones(3)), [2, 2, 2])
    with pytest.raises(ValueError, match="indexing='yx'"):
        pb.vjp(lambda x: np.meshgrid(x, x, indexing="yx"), np.ones(2))


def test_the_power_zero_of_zero_has_the_slope_zero():
    same(pb.grad(lambda x: np.sum(np.vander(x, 3)))(np.array([0.0, 2.0])), [1, 5])


# ---------------------------------------------------------------------------------------------------------- polynomials
def test_coefficients_that_polymul_drops_still_count():
    p, q = np.array([0.0, 2.0]), np.array([3.0, 5.0])  # (a x + 2)(3 x + 5): at a = 0 the term x has the slope 5 in a
    assert np.polymul(p, q).shape == (2,)
    same(pb.grad(lambda p: np.polymul(p, q)[0])(p), [5, 3])


def test_the_remainder_that_polydiv_shortens():
    u, v = np.array([1.0, -3.0, 2.0]), np.array([1.0, -1.0])
    out, _ = pb.vjp(np.polydiv, u, v)
    assert [part.shape for part in out] == [(2,), (1,)]
    close(pb.grad(lambda v: np.polydiv(u, v)[1][0])(v), [1.0, 1.0])  # r = u(-v1/v0) = v1**2/v0**2 + 3 v1/v0 + 2


def test_simple_roots_move_by_minus_the_power_over_the_slope():
    p = np.array([1.0, -3.0, 2.0])  # roots 2 and 1, slopes 1 and -1
    close(jacobian(np.roots, p), [[-4, -2, -1], [1, 1, 1]])


def test_a_double_root_moves_infinitely_fast():
    slope = pb.grad(lambda p: np.sum(np.roots(p)[:1].real))(np.array([1.0, 0.0, 0.0]))
    assert np.isinf(slope[2])
    assert not np.isnan(slope).any()


def test_lists_of_tracers_reach_poly_and_roots():
    close(pb.grad(lambda a: np.poly([a, 2.0])[2])(3.0), 2.0)
    close(pb.grad(lambda c: np.sum(np.roots([1.0, -3.0, c])[:1]))(2.0), -1.0)


def test_poly1d_keeps_tracers():
    def value(c):
        p = np.poly1d([1.0, 2.0])
        assert isinstance(np.polyadd(p, c), np.poly1d)
        product = np.polymul(c, p)
        with pytest.raises(ConversionError, match="would drop the derivative"):
            np.polyder(product)  # a poly1d is no tracer, so that NumPy does not ask; its method does
        assert isinstance(product.deriv(), np.poly1d)
        return np.polymul(p, c)(2.0) + np.polyadd(c, p)(1.0)

    same(pb.grad(value)(np.array([1.0, 1.0])), [9, 5])


def test_polyint_with_traced_constants_alone_is_refused():
    with pytest.raises(ConversionError, match="would drop the derivative"):
        pb.vjp(lambda k: np.polyint(np.ones(2), 1, k), np.ones(1))


def test_polyfit_warns_and_is_refused_where_the_fit_is_not_unique():
    x, y = np.array([1.0, 1.0, 2.0]), np.array([1.0, 2.0, 3.0])
    with pytest.warns(np.exceptions.RankWarning, match="poorly conditioned"):
        out, pull = pb.vjp(lambda y: np.polyfit(x, y, 2), y)
    np.testing.assert_allclose(pull(np.ones(3))[0] @ y, np.sum(out), rtol=1e-12)  # linear in y all the same
    with (
        pytest.warns(np.exceptions.RankWarning, match="poorly conditioned"),
        pytest.raises(NotDifferentiableError, match="the rank 2, so that the fit jumps"),
    ):
        pb.grad(lambda x: np.sum(np.polyfit(x, y, 2)))(x)


def test_the_rank_of_a_full_fit_is_plain():
    def fit(y):
        c, residuals, rank, _, rcond = np.polyfit(GRID, y, 1, full=True)
        assert type(rank) is np.int32
        assert type(rcond) is np.float64
        return np.sum(c) + residuals[0]

    assert np.isfinite(pb.grad(fit)(HEIGHT)).all()
    with pytest.raises(ValueError, match="more points than coefficients"):
        pb.vjp(lambda y: np.polyfit(GRID, y, 3, cov=True), HEIGHT)


# ------------------------------------------------------------------------------------------- by pieces and line by line
def test_piecewise_calls_no_function_on_elements_that_are_not_its_own():
    x = np.array([-1.0, 0.0, 4.0])
    same(pb.grad(lambda x: np.sum(np.piecewise(x, [x > 0], [np.sqrt, 0.0])))(x), [0, 0, 0.25])
    with pytest.raises(ValueError, match="1 conditions and 3 functions"):
        pb.vjp(lambda x: np.piecewise(x, [x > 0], [1, 2, 3]), x)


def test_traced_values_in_a_plain_piecewise_are_refused():
    with pytest.raises(ConversionError, match="would drop the derivative"):
        pb.grad(lambda c: np.sum(np.piecewise(np.ones(3), [np.ones(3) > 0], [lambda v: v * c])))(2.0)


def test_apply_along_axis_takes_the_dtype_of_the_first_line():
    def first_single(x):
        return np.apply_along_axis(lambda v: v.astype(np.float32) if v[0] < 1 else v, 1, x)

    x = np.array([[0.0, 1.0], [2.0, 3.0]])
    assert pb.vjp(first_single, x)[0].dtype == first_single(x).dtype == np.float32
    with pytest.raises(ValueError, match="no line along axis 1"):
        pb.vjp(lambda x: np.apply_along_axis(np.sum, 1, x), np.zeros((0, 3)))


def test_apply_over_axes_refuses_a_function_that_drops_two_axes():
    with pytest.raises(ValueError, match="must keep all, or all but one"):
        pb.vjp(lambda x: np.apply_over_axes(lambda a, axis: np.sum(a), x, [0]), np.ones((2, 2, 2)))


def test_vectorize_cannot_dispatch_and_is_refused():
    with pytest.raises(ConversionError, match="would drop the derivative"):
        pb.grad(lambda x: np.sum(np.vectorize(lambda v: v * v)(x)))(np.ones(3))


@pytest.mark.parametrize("policy", [pb.Recompute(), pb.Binomial(2)])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_gradient_by_a_python_number_has_the_same_bits_under_every_policy(policy, dtype):
    x = np.array([[1.1, 0.7, 0.3], [0.8, 0.05, 0.5]], dtype)

    def slopes(x, h):
        total = 0.0
        for _ in pb.steps(3):
            total = (
                total
                + np.sum(np.gradient(x, axis=-2) ** 2)
                + np.sum(np.gradient(x, h, axis=1) ** 2)
                + np.sum(np.gradient(x, 0.3)[0])
            )
        return total

    for ours, right in zip(
        pb.grad(slopes, (0, 1), policy=policy)(x, 0.7), pb.grad(slopes, (0, 1))(x, 0.7), strict=True
    ):
        assert np.asarray(ours).tobytes() == np.asarray(right).tobytes()
