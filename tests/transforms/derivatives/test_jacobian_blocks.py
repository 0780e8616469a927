"""A block is filled by plain and traced parts alike."""

import numpy as np
import pytest

import pullback as pb
from pullback.transforms.derivatives.jacobian_blocks import Block
from pullback.words.specs import spec_of

X = np.array([0.3, -0.7, 1.1, 0.4])
T = np.array([1.0, -2.0, 0.5, 3.0])
A = np.array([[1.0, 2.0, -1.0, 0.5], [0.0, 1.5, 4.0, -2.0], [3.0, -1.0, 0.25, 1.0]])


@pytest.mark.parametrize("column", [False, True])
def test_a_block_of_plain_and_traced_parts(column):
    """The first parts may be plain and the later ones traced: those that came before are kept."""

    def f(a):
        block = Block(spec_of(X), spec_of(X))
        for k, part in enumerate((X, a * X, T, a * a * T)):
            block.put(k, part, column=column)
        return np.sum(block.array() * (A[0] if column else A[0][:, None]))

    assert pb.value(f(2.0)) == pytest.approx(A[0] @ [np.sum(X), 2 * np.sum(X), np.sum(T), 4 * np.sum(T)], rel=1e-14)
    assert pb.grad(f)(2.0) == pytest.approx(A[0, 1] * np.sum(X) + 4 * A[0, 3] * np.sum(T), rel=1e-14)
    assert pb.value_and_grad(f)(2.0)[0] == pytest.approx(f(2.0), rel=1e-14)
