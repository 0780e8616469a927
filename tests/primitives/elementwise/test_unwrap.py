"""``np.unwrap`` adds constants; a traced period counts its turns."""

import numpy as np
import pytest
from tests.primitives.gradients import pulled

import pullback as pb


# --------------------------------------------------------------------------------------------------------------- unwrap
def test_unwrapping_adds_constants():
    angles = np.array([0.0, 3.0, 6.5, 1.0, -2.0, -6.0])
    assert pulled(np.unwrap, angles, 2.0)[1].tolist() == [2.0] * 6


def test_the_period_counts_its_turns():
    """The second and third angle are one turn less, the last is one more."""
    angles = np.array([0.0, 0.9, 0.7, 0.15, 0.05, -0.7])
    turns = np.unwrap(angles, period=1.0) - angles
    np.testing.assert_allclose(turns, [0, -1, -1, 0, 0, 1], atol=1e-15)
    weights = np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0])
    given = pb.grad(lambda angles, t: np.sum(weights * np.unwrap(angles, period=t)), (0, 1))(angles, 1.0)
    assert given[0].tolist() == weights.tolist()
    assert given[1] == -2 - 4 + 32


def test_a_traced_period_of_plain_angles_is_refused():
    """NumPy asks the angles alone who shall compute."""
    with pytest.raises(pb.ConversionError, match="would drop the derivative"):
        pb.grad(lambda t: np.sum(np.unwrap(np.array([0.0, 0.9]), period=t)))(1.0)
