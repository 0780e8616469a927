"""Spread of equal numbers, of one, and without degrees of freedom."""

import numpy as np
import pytest
from tests.primitives.gradients import same

import pullback as pb


@pytest.mark.parametrize("x", [np.full(3, 2.5), np.ones(1), np.ones((2, 3))])
def test_std_of_equal_numbers_has_gradient_zero(x):
    same(pb.grad(np.std)(x), np.zeros(x.shape))


def test_std_is_zero_in_one_slice_only():
    x = np.array([[1.0, 1.0], [1.0, 3.0]])
    same(pb.grad(lambda x: np.sum(np.std(x, axis=1)))(x), [[0.0, 0.0], [-0.5, 0.5]])


@pytest.mark.filterwarnings(
    "ignore:Degrees of freedom:RuntimeWarning", "ignore:divide by zero encountered:RuntimeWarning"
)
def test_var_without_degrees_of_freedom_is_nan():
    assert np.isnan(pb.grad(lambda x: np.var(x, ddof=2))(np.array([1.0, 2.0]))).all()


def test_ddof_and_correction_together_are_refused():
    with pytest.raises(ValueError, match="ddof=1 and correction=1 mean the same"):
        pb.grad(lambda x: np.var(x, ddof=1, correction=1))(np.ones(3))


def test_std_of_one_element_along_an_axis_is_flat():
    same(pb.grad(lambda x: np.sum(np.std(x, axis=1, keepdims=True)))(np.ones((3, 1))), np.zeros((3, 1)))
