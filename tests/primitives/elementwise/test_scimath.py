"""``numpy.emath`` where a real array turns complex: exact gradients, refusals."""

import numpy as np
import pytest
from tests.primitives.gradients import pulled

import pullback as pb


# ---------------------------------------------------------------------------------------------------------------- emath
def test_a_real_argument_that_becomes_complex_has_a_real_gradient():
    x = np.array([-4.0, 9.0])
    out, real = pulled(np.emath.sqrt, x, 1.0)
    assert (out.dtype, real.dtype) == (np.complex128, np.float64)
    np.testing.assert_allclose(real, [0, 1 / 6])
    # The imaginary part of sqrt(-4) is 2, and falls by 1/4 as x rises; ct = -1j picks it out, and gives 9 nothing.
    np.testing.assert_allclose(pulled(np.emath.sqrt, x, -1j)[1], [-1 / 4, 0])


def test_all_elements_inside_stay_real():
    out, ct = pulled(np.emath.arccos, np.array([0.5, -0.5], np.float32), 1.0)
    assert (out.dtype, ct.dtype) == (np.float32, np.float32)


@pytest.mark.parametrize(
    ("name", "x", "expected"),
    [
        ("sqrt", [0.0, 4.0], [np.inf, 0.25]),
        ("sqrt", [0.0, -4.0], [np.inf, 0.0]),
        ("log", [0.0, -4.0], [np.inf, -0.25]),
        ("log2", [0.0, 1.0], [np.inf, 1 / np.log(2)]),
        ("log10", [0.0, -1.0], [np.inf, -1 / np.log(10)]),
        ("arccos", [1.0, 0.0], [-np.inf, -1.0]),
        ("arccos", [-1.0, 2.0], [-np.inf, 0.0]),
        ("arcsin", [1.0, 2.0], [np.inf, 0.0]),
        ("arctanh", [1.0, 2.0], [np.inf, -1 / 3]),
    ],
)
def test_an_infinite_slope_is_infinite(name, x, expected):
    np.testing.assert_allclose(pulled(getattr(np.emath, name), np.array(x), 1.0)[1], expected, atol=1e-15)


@pytest.mark.parametrize("name", ["sqrt", "log", "log2", "log10", "arccos", "arcsin", "arctanh"])
@pytest.mark.parametrize("ct", [1.0, -1j, 0.5 + 2j])
@pytest.mark.parametrize("x", [-2.3, -0.4, 0.6, 1.7])
def test_a_real_argument_sees_what_a_complex_one_on_the_same_side_sees(name, ct, x):
    """NumPy gives a real x the value of x + 0j; its slope along the real line is that of differences there."""
    f, h = getattr(np.emath, name), 1e-6
    line = np.array([x, -3.5])  # the second element makes the result complex
    slope = (f(line + h) - f(line - h))[0] / (2 * h)
    real, plane = pulled(f, line, ct)[1], pulled(f, line + 0j, ct)[1]
    np.testing.assert_allclose(real[0], (ct * slope).real, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(real, plane.real, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("name", ["arccos", "arcsin"])
@pytest.mark.parametrize("x", [-2.3, 1.7])
def test_below_the_branch_cut_the_slope_is_the_conjugate_of_that_above(name, x):
    above = pulled(getattr(np.emath, name), np.array([complex(x, 0.0)]), 1.0)[1]
    below = pulled(getattr(np.emath, name), np.array([complex(x, -0.0)]), 1.0)[1]
    np.testing.assert_allclose(below, above.conj(), atol=1e-15)


def test_a_power_of_zero_beside_a_negative_number():
    x, p = np.array([0.0, 0.0, 0.0, -1.0]), np.array([2.5, 1.0, 0.5, 2.0])
    out, pull = pb.vjp(np.emath.power, x, p)
    with np.errstate(all="ignore"):
        x_ct, p_ct = pull(np.ones_like(out))
    np.testing.assert_allclose(x_ct, [0, 1, np.inf, -2], atol=1e-15)
    np.testing.assert_allclose(p_ct, [0, 0, 0, 0], atol=1e-15)  # Re((-1)**2 i pi)


def test_the_energy_of_a_root_has_a_slope_where_the_root_has_none():
    given = pb.grad(lambda x: np.sum(np.abs(np.emath.sqrt(x)) ** 4))(np.array([-3.0, 0.0, 2.0]))
    np.testing.assert_allclose(given, [-6.0, 0.0, 4.0], rtol=1e-14)


def test_a_python_number_counts_as_an_array_of_double_precision():
    x = np.array([2.0, 3.0], np.float32)
    for f in (lambda p: np.emath.power(x, p), lambda p: np.emath.logn(p, x)):
        out, pull = pb.vjp(f, 3.0)
        assert (out.dtype, out.tobytes()) == (np.float64, f(3.0).tobytes())
        assert isinstance(pull(np.ones(2))[0], float)
    x_ct, p_ct = pb.grad(lambda x, p: np.sum(np.emath.power(x, p).real), (0, 1))(-3.0, 2.0)
    np.testing.assert_allclose([x_ct, p_ct], [-6.0, 9 * np.log(3)])


@pytest.mark.parametrize("name", ["sqrt", "log2", "arcsin", "arctanh"])
def test_a_python_number_has_the_gradient_of_an_array_of_one(name):
    function = getattr(np.emath, name)
    given = pb.grad(lambda x: np.abs(function(x)) ** 2)(1.5)
    line = pb.grad(lambda x: np.sum(np.abs(function(x)) ** 2))(np.array([1.5]))
    assert isinstance(given, float)
    np.testing.assert_allclose(given, line[0], rtol=1e-14)


def test_promotion_follows_the_values_of_each_iteration():
    def program(x, policy=None):
        return np.sum(np.abs(pb.fori_loop(0, 6, lambda k, x: np.emath.sqrt(x - k).real + 0.5 * x, x, policy=policy)))

    x = np.array([2.5, 7.5])
    expected = pb.grad(program)(x)
    assert np.isfinite(expected).all()
    assert pb.grad(lambda x: program(x, pb.Binomial(1)))(x).tobytes() == expected.tobytes()
