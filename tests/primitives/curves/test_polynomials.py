"""Polynomials where a formula goes wrong: dropped coefficients, double roots, lists of tracers."""

import numpy as np
import pytest
from tests.primitives.gradients import close, jacobian, same

import pullback as pb
from pullback.words.errors import ConversionError


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


@pytest.mark.filterwarnings("ignore::pullback.RefusalWarning")  # of the error that is asked for
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
