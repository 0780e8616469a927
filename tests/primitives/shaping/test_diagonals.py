"""Diagonals of wide matrices and of lines."""

import numpy as np
from tests.primitives.gradients import weighted

import pullback as pb


def test_a_diagonal_of_a_wide_matrix_has_a_gradient_of_its_shape():
    np.testing.assert_array_equal(pb.grad(lambda x: np.sum(np.diag(x, 1)))(np.ones((2, 3))), [[0, 1, 0], [0, 0, 1]])


def test_the_gradient_of_diag_of_a_line_is_its_diagonal():
    np.testing.assert_array_equal(pb.grad(weighted(lambda x: np.diag(x, -1)))(np.ones(2)), [4, 8])
