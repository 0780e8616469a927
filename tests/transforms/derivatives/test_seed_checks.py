"""Seeds of another shape, structure or kind: one clear error each."""

import numpy as np
import pytest

import pullback as pb
from pullback.words.errors import StructureError

X = np.array([1.0, 2.0, 3.0])


pytestmark = pytest.mark.usefixtures("state_restored")


# Structures and seeds.
def test_a_seed_of_another_shape_or_structure():
    _, pull = pb.vjp(lambda x: {"a": x * 2, "b": np.sum(x)}, X)
    with pytest.raises(
        StructureError, match=r"the cotangent has structure.*the output .* has.*one leaf per output leaf"
    ):
        pull(np.ones(3))
    with pytest.raises(StructureError, match=r"the cotangent has shape \(2,\), the output .* has \(3,\)"):
        pull({"a": np.ones(2), "b": 1.0})
    with pytest.raises(StructureError, match=r"one leaf per output leaf, None where an output is not used"):
        pull({"a": [1.0, 1.0, 1.0], "b": 1.0})
    np.testing.assert_array_equal(pull({"a": None, "b": 1.0})[0], [1, 1, 1])
    np.testing.assert_array_equal(pull({"a": np.ones(3), "b": 1.0})[0], [3, 3, 3])


@pytest.mark.parametrize(
    "ct",
    [np.ones(3) * 1j, np.array([1.0, None, 2.0], dtype=object), np.array(["a", "b", "c"])],
    ids=["1j", "object", "text"],
)
def test_a_seed_of_another_kind(ct):
    _, pull = pb.vjp(np.sin, np.ones(3))
    with pytest.raises(
        StructureError, match=r"the cotangent has dtype .*, the output of the function .* has float64; give a real one"
    ):
        pull(ct)
    with pytest.raises(
        StructureError,
        match=r"the cotangent has shape \(2,\), the output .* has \(3,\); give one of its shape, or None",
    ):
        pull(np.ones(2))
