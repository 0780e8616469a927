"""Tangents of ``jvp`` and ``linearize``: of floating dtype, and no memory shared."""

import numpy as np
import pytest

import pullback as pb
from pullback import NotDifferentiableError

X = np.array([0.3, -0.7, 1.1, 0.4])
T = np.array([1.0, -2.0, 0.5, 3.0])


@pytest.mark.parametrize(
    "transform", [pb.jvp, pb.hvp, lambda f, primals, tangents: pb.linearize(f, *primals)[1](*tangents)]
)
def test_a_tangent_of_an_integer_argument(transform):
    """Like the gradient by an integer, it would be 0 for want of a float."""
    with pytest.raises(
        NotDifferentiableError,
        match=r"argument 0 at .* is int64\[4\], which carries no derivative, and its tangent is not 0",
    ):
        transform(lambda n: np.sum(n * 2.0), (np.arange(4),), (np.ones(4),))
    for tangent in (None, np.zeros(4, int)):
        assert pb.jvp(lambda n, x: np.sum(n * x), (np.arange(4), X), (tangent, T))[1] == np.arange(4) @ T


def test_tangents_share_no_memory():
    tangent = T.copy()
    _, sent = pb.jvp(lambda x: (x, x, x[1:], {"reversed": x[::-1]}), (X,), (tangent,))
    leaves = [*sent[:3], sent[3]["reversed"], tangent]
    assert not any(np.shares_memory(a, b) for k, a in enumerate(leaves) for b in leaves[:k])
