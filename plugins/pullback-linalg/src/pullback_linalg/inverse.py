"""The inverse, and the functions that NumPy makes of inverses and solutions: tensorinv, tensorsolve, matrix_power.

With ``out = a^-1`` the cotangent of a is -out^T ct out^T (Giles, "Collected matrix derivative results", 2008, section
2.2.3), without conjugation: it reads the inverse alone, and the matrix may be let go.
"""

from math import prod
from operator import index
from typing import Any

import numpy as np

import pullback as pb
from pullback_linalg.products import as_array, transposed
from pullback_linalg.unguarded import primitive


def inverse_rule(ct: Any, out: Any) -> Any:
    """The cotangent of a matrix from that of its inverse, ``out``."""
    flipped = transposed(out)
    return -(flipped @ ct) @ flipped


inverse = primitive(np.linalg.inv, name="inverse", operands=("a",), vjps={"a": inverse_rule})


@pb.composite(np.linalg.inv, name="linalg.inv")
def linalg_inv(a: Any) -> Any:
    """numpy.linalg.inv: of every matrix in the stack."""
    return inverse(a)


@pb.composite(np.linalg.tensorinv, name="linalg.tensorinv")
def linalg_tensorinv(a: Any, ind: int = 2) -> Any:
    """numpy.linalg.tensorinv: the inverse of the matrix whose rows are the first ``ind`` axes."""
    if ind <= 0:
        message = (
            f"tensorinv of an array with {a.ndim} axes: ind is {ind}; it counts the axes that are rows, so give "
            "a positive one"
        )
        raise ValueError(message)
    rows, columns = a.shape[:ind], a.shape[ind:]
    return inverse(a.reshape(prod(columns), -1)).reshape((*columns, *rows))


@pb.composite(np.linalg.tensorsolve, name="linalg.tensorsolve")
def linalg_tensorsolve(a: Any, b: Any, axes: Any = None) -> Any:
    """numpy.linalg.tensorsolve: x with tensordot(a, x, x.ndim) = b; ``axes`` of a are moved to its end first."""
    a, b = as_array(a), as_array(b)
    if axes is not None:
        order = list(range(a.ndim))
        for axis in axes:
            order.remove(axis)
            order.append(axis)
        a = a.transpose(order)
    unknowns = a.shape[b.ndim - a.ndim :]
    n = prod(unknowns)
    if a.size != n**2:
        message = (
            f"tensorsolve: a has {a.size} elements and {n} unknowns of shape {unknowns}; prod(a.shape[b.ndim:]) "
            "and b.size must agree"
        )
        raise np.linalg.LinAlgError(message)
    return np.linalg.solve(a.reshape(n, n), b.ravel()).reshape(unknowns)


@pb.composite(np.linalg.matrix_power, name="linalg.matrix_power")
def linalg_matrix_power(a: Any, n: Any) -> Any:
    """numpy.linalg.matrix_power: products in NumPy's order, by the bits of n; the power 0 has no derivative and is a
    plain array."""
    try:
        n = index(n)
    except TypeError as error:
        raise TypeError("exponent must be an integer") from error
    unit = np.linalg.matrix_power(pb.value(a), 0)  # names what is wrong with the shape, too
    if n == 0:
        return unit
    square, n = (np.linalg.inv(a), -n) if n < 0 else (a, n)
    if n == 3:
        return square @ square @ square
    result = square if n & 1 else None
    while n := n >> 1:
        square = square @ square
        if n & 1:
            result = square if result is None else result @ square
    return result


INVERSES = (inverse, linalg_inv, linalg_tensorinv, linalg_tensorsolve, linalg_matrix_power)
