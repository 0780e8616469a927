"""Averages, covariances and ptp: conventions, and what NumPy refuses."""

import numpy as np
import pytest
from tests.primitives.gradients import same

import pullback as pb

UP = np.arange(1.0, 10.0)


# ------------------------------------------------------------------------------------------------------ extrema and ptp
def test_ptp_shares_on_either_end():
    same(pb.grad(np.ptp)(np.array([4.0, 1.0, 1.0, 4.0, 2.0])), [0.5, -0.5, -0.5, 0.5, 0])
    same(pb.grad(np.ptp)(np.array([3.0, 3.0])), [0, 0])


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
