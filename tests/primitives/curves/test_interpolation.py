"""``np.interp`` at knots, outside, at infinities, with a period and traced ends: the right answers are stated."""

import numpy as np
import pytest
from tests.primitives.gradients import close, same

import pullback as pb
from pullback.words.errors import ConversionError

GRID = np.array([0.0, 1.0, 3.0, 4.0])
HEIGHT = np.array([1.0, 3.0, -1.0, 0.0])  # slopes 2, -2, 1


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
