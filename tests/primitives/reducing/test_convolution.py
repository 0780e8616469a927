"""Convolution and correlation of known lines, of nothing, and by modes that NumPy refuses."""

import numpy as np
import pytest
from tests.primitives.gradients import same

import pullback as pb


# ---------------------------------------------------------------------------------------------------------- convolution
def test_convolve_and_correlate_of_known_lines():
    same(
        pb.grad(lambda a: np.convolve(a, [1.0, 2.0, 3.0], "same") @ np.array([1.0, 0, 0, 0]))(np.ones(4)), [2, 1, 0, 0]
    )
    same(pb.grad(lambda a: np.correlate(a, [1.0, 2.0], "valid")[1])(np.ones(3)), [0, 1, 2])
    same(pb.grad(lambda v: np.correlate([1.0, 2.0, 3.0], v)[0])(np.ones(2)), [1, 2])


def test_convolution_of_nothing_and_by_an_unknown_mode_is_refused_as_by_numpy():
    with pytest.raises(ValueError, match="cannot be empty"):
        pb.vjp(lambda a: np.convolve(a, np.zeros(0)), np.ones(3))
    with pytest.raises(ValueError, match="mode"):
        pb.vjp(lambda a: np.convolve(a, a, "middle"), np.ones(3))
