"""Joined parts of other dtypes get gradients of their own; parted lines are scalars."""

import numpy as np
import pytest

import pullback as pb


def test_unstacked_lines_are_scalars():
    if not hasattr(np, "unstack"):
        pytest.skip("numpy.unstack is new in NumPy 2.1")
    out, _ = pb.vjp(np.unstack, np.ones(2))
    assert [type(part) for part in out] == [np.float64, np.float64]


def test_parts_of_other_dtypes_get_gradients_of_their_own():
    single, double = np.ones(2, np.float32), np.ones(3)
    ours, theirs = pb.grad(lambda a, b: np.sum(np.concatenate((a, b)) ** 2), (0, 1))(single, double)
    assert (ours.dtype, theirs.dtype) == (np.float32, np.float64)
