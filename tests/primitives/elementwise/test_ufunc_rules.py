"""Points where a textbook rule gives NaN, the wrong infinity or a warning, and what is right there. A warning fails
a test."""

import numpy as np
import pytest
from scipy import special
from tests.primitives.gradients import slopes

import pullback as pb

INF, NAN = np.inf, np.nan


def second(f, x):
    """The elementwise second derivative."""
    return pb.grad(lambda x: np.sum(pb.grad(lambda y: np.sum(f(y)))(x)))(np.asarray(x))


def masked(f):
    """``f`` where x > 0, else 0, without warnings of the forward."""

    def chosen(x):
        with np.errstate(all="ignore"):
            return np.where(x > 0, f(x), 0.0)

    return chosen


@pytest.mark.parametrize(
    ("f", "x", "right"),
    [
        (np.sqrt, [0.0, 4.0], [INF, 0.25]),
        (lambda x: x**0.5, [0.0, 4.0], [INF, 0.25]),
        (np.log, [0.0, 2.0], [INF, 0.5]),
        (np.reciprocal, [0.0, 2.0], [-INF, -0.25]),
        (lambda x: 1 / x, [0.0, 2.0], [-INF, -0.25]),
        (np.cbrt, [0.0, -8.0], [INF, 1 / 12]),
        (np.arcsin, [-1.0, 1.0], [INF, INF]),
        (np.arccos, [-1.0, 1.0], [-INF, -INF]),
        (np.arctanh, [-1.0, 1.0], [INF, INF]),
        (np.arccosh, [1.0], [INF]),
        (np.log1p, [-1.0, 1e-20], [INF, 1.0]),
    ],
)
def test_an_infinite_derivative_is_the_infinity(f, x, right):
    np.testing.assert_allclose(slopes(f, x), right, rtol=1e-15)


@pytest.mark.parametrize(
    "f",
    [
        np.log, np.log2, np.log10, np.sqrt, np.cbrt, np.reciprocal, lambda x: 1 / x, lambda x: x**-0.5, lambda x: x**x,
        lambda x: x ** np.array([[-1.0], [0.5], [-0.3]]), lambda x: np.arccosh(1 + x), lambda x: np.log(np.sqrt(x)),
        lambda x: np.arcsin(1 - x / 2), lambda x: np.arctanh(1 - x / 3), lambda x: np.exp(1 / x),
        lambda x: np.exp(-1000 * x),
        lambda x: np.sinh(400 * (1 - x)),
    ],
)  # fmt: skip
def test_a_masked_branch_has_gradient_0_to_second_order(f):
    x = np.array([-1.0, 0.0, 0.5, 2.0])
    with np.errstate(all="ignore"):
        first = slopes(masked(f), x)
        assert (first[:2] == 0).all()
        np.testing.assert_array_equal(first[2:], slopes(f, x[2:]))
        again = second(masked(f), x)
    assert (again[:2] == 0).all()
    assert np.isfinite(again[2:]).all()


def test_a_masked_overflow_has_gradient_0():
    softplus = lambda x: np.where(x > 30, x, np.log1p(np.exp(x)))  # noqa: E731
    np.testing.assert_allclose(slopes(softplus, [0.0, 1000.0, -1000.0]), [0.5, 1.0, 0.0])


@pytest.mark.parametrize("n", [0, 0.0, np.array(0.0), np.array([0, 0, 0])])
def test_the_power_0_has_derivative_0_everywhere(n):
    np.testing.assert_array_equal(slopes(lambda x: np.power(x, n), [0.0, 2.0, -3.0]), 0)


def test_powers_at_a_base_of_0():
    x, n = np.zeros(5), np.array([0.0, 2.0, -1.0, 1.0, 0.5])
    np.testing.assert_array_equal(slopes(np.power, x, n), [0, 0, -INF, 1, INF])
    np.testing.assert_array_equal(slopes(np.power, x[:2], n[:2], by=1), 0)
    np.testing.assert_array_equal(slopes(lambda x: x**x, [0.0, 1.0]), [0, 1])
    np.testing.assert_array_equal(slopes(lambda y: 0.0**y, [0.0, 2.0]), 0)
    assert np.isnan(slopes(lambda y: (-2.0) ** y, [2.0])).all()


def test_the_mixed_derivative_of_a_power_at_exponent_0():
    x, y = np.array([2.0]), np.array([0.0])
    by_x_then_y = pb.grad(lambda y: np.sum(pb.grad(lambda x: np.sum(x**y))(x)))(y)
    by_y_then_x = pb.grad(lambda x: np.sum(pb.grad(lambda y: np.sum(x**y))(y)))(x)
    np.testing.assert_allclose([by_x_then_y, by_y_then_x], 0.5)


@pytest.mark.parametrize("f", [np.absolute, np.fabs])
def test_the_absolute_value_has_slope_0_at_0(f):
    np.testing.assert_array_equal(slopes(f, [0.0, -0.0, -2.0]), [0, 0, -1])


def test_ties_share_and_add_up_to_one():
    x = np.array([1.0, 2.0])
    for f in (np.maximum, np.minimum, np.fmax, np.fmin):
        np.testing.assert_array_equal(slopes(f, x, x), 0.5)
        np.testing.assert_array_equal(slopes(lambda x, f=f: f(x, x), x), 1)


def test_the_nan_takes_the_cotangent_of_maximum_and_loses_that_of_fmax():
    x, y = [NAN, 0.0, NAN, 3.0], [1.0, NAN, NAN, 2.0]
    np.testing.assert_array_equal(slopes(np.maximum, x, y), [1, 0, 0.5, 1])
    np.testing.assert_array_equal(slopes(np.maximum, x, y, by=1), [0, 1, 0.5, 0])
    np.testing.assert_array_equal(slopes(np.fmax, x, y), [0, 1, 0.5, 1])
    np.testing.assert_array_equal(slopes(np.fmin, x, y, by=1), [1, 0, 0.5, 1])


def test_norms_and_angles_at_the_origin_and_far_away():
    x, y = [0.0, 1e200, 3.0], [0.0, 1e200, 4.0]
    np.testing.assert_allclose(slopes(np.hypot, x, y), [0, np.sqrt(0.5), 0.6])
    np.testing.assert_allclose(slopes(np.arctan2, x, y), [0, 5e-201, 0.16])
    np.testing.assert_allclose(slopes(np.arctan2, x, y, by=1), [0, -5e-201, -0.12])
    np.testing.assert_allclose(slopes(np.arcsinh, [1e200, 0.0]), [1e-200, 1])
    np.testing.assert_array_equal(slopes(np.arctan, [1e200]), 0)


def test_logaddexp_at_infinities():
    x, y = [-INF, INF, INF, 1e4, -1e4], [-INF, 0.0, INF, -1e4, 1e4]
    for f in (np.logaddexp, np.logaddexp2):
        np.testing.assert_array_equal(slopes(f, x, y), [0.5, 1, 0.5, 1, 0])
        np.testing.assert_array_equal(slopes(f, x, y, by=1), [0.5, 0, 0.5, 0, 1])


def test_saturated_and_tiny_arguments():
    np.testing.assert_array_equal(slopes(np.tanh, [800.0, -800.0]), 0)
    np.testing.assert_allclose(slopes(lambda x: np.log1p(np.expm1(x)), [1e-20, 3.0]), 1, rtol=1e-15)
    np.testing.assert_allclose(slopes(np.expm1, [-40.0]), np.exp(-40.0), rtol=1e-15)


def test_sinc_and_its_second_derivative_near_0():
    x = np.array([0.0, 1e-8, 1e-3, 0.31, 0.33, 1.0, 7.5])
    exact = np.append(
        -(np.pi**2) / 3 * x[:2], np.cos(np.pi * x[2:]) / x[2:] - np.sin(np.pi * x[2:]) / (np.pi * x[2:] ** 2)
    )
    np.testing.assert_allclose(slopes(np.sinc, x), exact, rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(second(np.sinc, x[:2]), -(np.pi**2) / 3, rtol=1e-12)


def test_the_bessel_function_against_scipy():
    x = np.array([-300.0, -20.0, -3.0, 0.0, 1e-9, 0.5, 8.0, 19.999, 20.0, 25.0, 600.0])
    np.testing.assert_allclose(slopes(np.i0, x), special.i1(x), rtol=1e-14)
    np.testing.assert_allclose(second(np.i0, x[2:8]), special.ivp(0, x[2:8], 2), rtol=1e-13)


def test_remainders_at_negative_divisors_and_multiples():
    x, y = [7.0, -7.0, 6.0, 7.5], [-2.0, 2.0, 2.0, 2.5]
    np.testing.assert_array_equal(slopes(np.remainder, x, y, by=1), [4, 4, -3, -3])
    np.testing.assert_array_equal(slopes(np.fmod, x, y, by=1), [3, 3, -3, -3])
    np.testing.assert_array_equal(slopes(lambda x, y: np.divmod(x, y)[1], x, y, by=1), [4, 4, -3, -3])
    np.testing.assert_array_equal(slopes(lambda x, y: np.divmod(x, y)[0], x, y), 0)


def test_numbers_taken_apart_and_replaced():
    x = [5.0, -0.75, 0.0]
    np.testing.assert_array_equal(slopes(lambda x: np.frexp(x)[0], x), [0.125, 1, 1])
    np.testing.assert_array_equal(slopes(lambda x: np.ldexp(x, 3), x), 8)
    np.testing.assert_array_equal(slopes(lambda x: np.modf(x)[0], x), 1)
    np.testing.assert_array_equal(slopes(np.nan_to_num, [NAN, INF, -INF, 2.0]), [0, 0, 0, 1])
    np.testing.assert_array_equal(slopes(np.copysign, [2.0, -2.0, 0.0], [-1.0, -0.0, 1.0]), [-1, 1, 0])
    np.testing.assert_array_equal(slopes(np.copysign, [2.0, -2.0, 0.0], [-1.0, -0.0, 1.0], by=1), 0)
    np.testing.assert_array_equal(slopes(np.heaviside, [0.0, 1.0], [0.3, 0.3], by=1), [1, 0])


def test_complex_derivatives_at_and_off_0():
    z = np.array([0j, 3 + 4j])
    np.testing.assert_allclose(slopes(np.absolute, z), [0, 0.6 - 0.8j])
    np.testing.assert_allclose(slopes(np.angle, z), [0, (-4 - 3j) / 25])
    np.testing.assert_array_equal(slopes(np.imag, z), -1j)
    np.testing.assert_allclose(slopes(lambda z: np.absolute(z) ** 2, np.array([1 + 2j])), [2 - 4j])
    np.testing.assert_array_equal(slopes(lambda z: np.sign(z).real, z)[0], 0)


@pytest.mark.parametrize(
    "f",
    [
        lambda y: 2.0**y,
        lambda x: x**2.5,
        lambda x: np.copysign(x, -1.0),
        lambda x: np.maximum(x, 0.0),
        lambda x: np.float_power(x, 2),
    ],
)
def test_numbers_do_not_widen_float32(f):
    assert slopes(f, np.array([0.5, 2.0], np.float32)).dtype == np.float32


CUTS = [complex(s * 2.3, t * 0.0) for s in (1, -1) for t in (1, -1)] + [
    complex(s * 0.0, t * 2.3) for s in (1, -1) for t in (1, -1)
]


@pytest.mark.parametrize(
    "function", [np.arcsin, np.arccos, np.arcsinh, np.arccosh, np.arctan, np.arctanh, np.log, np.sqrt]
)
@pytest.mark.parametrize("z", CUTS)
def test_on_a_branch_cut_the_derivative_is_that_of_its_side(function, z):
    step, left, right = 1e-6, np.array([z]), np.array([z])
    for sign, at in ((-1, left), (1, right)):  # part by part: a sum of complex numbers would lose the sign of a zero
        part = at.imag if z.real == 0 else at.real
        part += sign * step
    slope = (function(right) - function(left)) / (2 * step * (1j if z.real == 0 else 1))
    _, pull = pb.vjp(function, np.array([z]))
    np.testing.assert_allclose(pull(np.ones(1, complex))[0], slope, rtol=1e-8)


@pytest.mark.parametrize("base", [2, 2**70, -(2**65), -3, -3.0, True, 1.5])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
def test_a_base_that_is_a_number_of_pythons(base, dtype):
    """The slope is that for a base of the exponent's dtype, also of an int beyond 64 bits or a negative base."""
    x = np.array([0.25, 1.0, 0.4], dtype)
    with np.errstate(all="ignore"):
        gradient = pb.grad(lambda x: np.sum(np.real(base**x)))(x)
        expected = pb.grad(lambda x: np.sum(np.real(np.power(np.array(float(base), dtype), x))))(x)
    assert gradient.dtype == dtype
    np.testing.assert_allclose(gradient, expected, rtol=1e-4 if x.real.dtype == np.float32 else 1e-12)
