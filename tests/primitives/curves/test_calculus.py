"""Slopes, integrals and functions by pieces, where a formula goes wrong; the right answers are stated."""

import numpy as np
import pytest
from tests.primitives.gradients import jacobian, same

import pullback as pb
from pullback.words.errors import ConversionError


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


def test_ediff1d_refuses_what_numpy_refuses():
    with pytest.raises(TypeError, match="to_end of dtype complex128"):
        pb.vjp(lambda x: np.ediff1d(x, to_end=1j), np.ones(3))


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
