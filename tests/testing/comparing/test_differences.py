"""Numeric derivatives: exact where the complex step applies, close elsewhere, and honest about where there is none."""

import numpy as np
import pytest

from pullback.testing.comparing.differences import (
    COMPLEX_STEP,
    DIFFERENCES,
    complex_step,
    derivatives,
    flatten,
    inner,
    richardson,
    tolerance,
)

X = np.array([0.3, 0.9, 2.5])
V = np.array([1.0, -0.5, 2.0])


def path(f, x=X, v=V):
    return lambda t: np.atleast_1d(f(x + t * v))


ANALYTIC = {
    "sin": (np.sin, np.cos),
    "exp": (np.exp, np.exp),
    "log": (np.log, np.reciprocal),
    "sqrt": (np.sqrt, lambda x: 0.5 / np.sqrt(x)),
}


@pytest.mark.parametrize("name", ANALYTIC)
def test_the_complex_step_is_exact(name):
    f, slope = ANALYTIC[name]
    found = derivatives([path(f)])[0]
    assert found.method == COMPLEX_STEP
    np.testing.assert_allclose(found.value, slope(X) * V, rtol=1e-15)


@pytest.mark.parametrize("name", ANALYTIC)
def test_differences_are_close_and_say_how_close(name):
    f, slope = ANALYTIC[name]
    found = richardson(path(f))
    gap = np.abs(found.value - slope(X) * V)
    assert np.all(gap <= 1e-9 * np.abs(slope(X) * V))
    assert np.all(gap <= 10 * found.error)


@pytest.mark.parametrize(
    "f",
    [np.abs, lambda x: np.real(x) ** 2, lambda x: np.abs(x) * x, lambda x: x * np.conj(x)],
    ids=["abs", "real", "abs x", "conj"],
)
def test_the_complex_step_is_not_believed_where_the_function_is_not_analytic(f):
    found = derivatives([path(f, -X)])[0]
    assert found.method == DIFFERENCES
    steps = (f(-X + 1e-6 * V) - f(-X - 1e-6 * V)) / 2e-6
    np.testing.assert_allclose(found.value, steps, rtol=1e-6)


@pytest.mark.parametrize("f", [np.cbrt, np.floor, lambda x: np.array([float(v) for v in x])])
def test_functions_that_refuse_complex_numbers_have_no_complex_step(f):
    assert complex_step(path(f)) is None


def test_a_path_through_the_complex_plane():
    z, v = X + 0.4j, V + 1j
    found = derivatives([path(np.exp, z, v)])[0]
    np.testing.assert_allclose(found.value, np.exp(z) * v, rtol=1e-9)
    found = derivatives([path(lambda z: np.abs(z) ** 2, z, v)])[0]
    np.testing.assert_allclose(found.value, 2 * (z.real * v.real + z.imag * v.imag), rtol=1e-9)


def test_beside_the_edge_of_a_domain_small_steps_are_taken():
    x = np.array([1e-4, 1.0])
    found = richardson(path(np.log, x, np.ones(2)))
    np.testing.assert_allclose(found.value, 1 / x, rtol=1e-4)


def test_a_sawtooth_has_the_slope_of_its_teeth():
    found = richardson(path(lambda x: np.remainder(x, 1e-3) + 5 * x, X + 3e-4, V))
    np.testing.assert_allclose(found.value, 6 * V, rtol=1e-6)


def test_where_there_is_no_derivative_the_error_is_infinite():
    found = derivatives([path(np.sqrt, np.zeros(2), np.ones(2))])[0]
    assert np.all(np.isinf(found.error))


def test_float32_differences_know_their_rounding():
    x = X.astype(np.float32)
    found = richardson(lambda t: np.sin((x + t * V).astype(np.float32)), eps=2.0**-23)
    gap = np.abs(found.value - np.cos(X) * V)
    assert np.all(gap < 1e-2)
    assert np.all(gap <= 10 * found.error)


def test_flatten_leaves_out_what_has_no_derivative():
    assert flatten([1.0, None, np.array([2, 3]), np.array([4.0])]).tolist() == [1.0, 4.0]
    assert flatten([]).size == 0


def test_the_pairing_takes_no_conjugate():
    assert inner(np.array([1j]), np.array([1j])) == -1.0


def test_the_least_precise_value_sets_the_tolerance():
    assert (
        tolerance(np.zeros(1, np.float32), np.zeros(1))
        == tolerance(np.zeros(1, np.complex64))
        > tolerance(1.0, np.zeros(1, int))
    )


def test_the_complex_step_is_borne_out_along_every_path():
    """As where LAPACK gives an eigenvector another sign for complex numbers along some of the paths."""

    def other_sign(x):
        return np.sin(x) * (-3.0 if np.iscomplexobj(x) else 1.0)

    first, second = derivatives([path(np.sin), path(other_sign)])
    assert (first.method, second.method) == (COMPLEX_STEP, DIFFERENCES)
    np.testing.assert_allclose(second.value, np.cos(X) * V, rtol=1e-9)


def test_a_jump_of_one_output_does_not_hide_that_another_is_not_analytic():
    def jumping(t):
        sign = -1.0 if 0 < np.real(t) < 1e-6 else 1.0  # at the smallest steps alone
        return np.array([sign * np.cos(t), np.abs(t - 0.5)])

    (found,) = derivatives([jumping])
    assert found.method == DIFFERENCES
    np.testing.assert_allclose(found.value[1], -1.0, rtol=1e-9)


def test_the_complex_step_of_an_output_that_does_not_move_is_compared_though_another_is_zero():
    def still(t):
        return np.array([0.0, 1.0]) if np.isrealobj(t) else np.array([0.0, 1.0 + 3.0 * t])

    (found,) = derivatives([still])
    assert found.method == DIFFERENCES
    np.testing.assert_array_equal(found.value, 0.0)


def test_few_steps_are_taken_where_they_do():
    calls = []

    def counted(t):
        calls.append(t)
        return np.sin(X + t * V)

    richardson(counted)
    assert len(calls) <= 13
