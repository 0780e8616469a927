"""Matrices with a pattern, laid out from vectors and blocks: every element is one of the operands', moved."""

from typing import Any

import numpy as np
from scipy import linalg

from pullback_scipy.mirroring import as_array, mirror, single


def _vector(x: Any) -> Any:
    return np.ravel(as_array(x))


def _vectors(x: Any) -> Any:
    x = as_array(x)
    return x if x.ndim else np.reshape(x, 1)


@mirror(linalg.block_diag, "arrs")
def block_diag(*arrs: Any) -> Any:
    """The matrices along a diagonal, zeros elsewhere."""
    blocks = [as_array(x) for x in arrs]
    single("scipy.linalg.block_diag", *blocks)
    blocks = [np.reshape(x, (1, -1)) if x.ndim < 2 else x for x in blocks]
    dtype = np.result_type(*(x.dtype for x in blocks))
    width, before, rows = sum(x.shape[1] for x in blocks), 0, []
    for x in blocks:
        left, right = np.zeros((x.shape[0], before), dtype), np.zeros((x.shape[0], width - before - x.shape[1]), dtype)
        rows.append(np.concatenate((left, x, right), axis=1))
        before += x.shape[1]
    return np.concatenate(rows, axis=0)


@mirror(linalg.toeplitz, "c r")
def toeplitz(c: Any, r: Any = None) -> Any:
    """The matrix with first column c and first row r, constant along diagonals; r[0] is not read."""
    c = _vectors(c)
    r = np.conjugate(c) if r is None else _vectors(r)
    if c.ndim != r.ndim or c.shape[:-1] != r.shape[:-1]:
        stack = np.broadcast_shapes(c.shape[:-1], r.shape[:-1])
        c, r = (np.broadcast_to(x, (*stack, x.shape[-1])) for x in (c, r))
    both = np.concatenate((r[..., :0:-1], c), axis=-1)
    return both[..., np.arange(c.shape[-1])[:, None] - np.arange(r.shape[-1]) + r.shape[-1] - 1]


@mirror(linalg.hankel, "c r")
def hankel(c: Any, r: Any = None) -> Any:
    """The matrix with first column c and last row r, constant along anti-diagonals; r[0] is not read."""
    c = _vector(c)
    r = np.zeros(c.shape, c.dtype) if r is None else _vector(r)
    return np.concatenate((c, r[1:]))[np.arange(c.shape[0])[:, None] + np.arange(r.shape[0])]


@mirror(linalg.circulant, "c")
def circulant(c: Any) -> Any:
    """The matrix whose columns are c, turned round by one more place each."""
    c = _vectors(c)
    n = c.shape[-1]
    return c[..., (np.arange(n)[:, None] - np.arange(n)) % max(n, 1)]


@mirror(linalg.companion, "a")
def companion(a: Any) -> Any:
    """The companion matrix of the polynomial with coefficients a, the highest power first."""
    a = _vectors(a)
    n = a.shape[-1] - 1
    below = np.broadcast_to(np.eye(n, dtype=a.dtype)[:-1], (*a.shape[:-1], n - 1, n))
    return np.concatenate(((-a[..., 1:] / (1.0 * a[..., :1]))[..., None, :], below), axis=-2)


@mirror(linalg.khatri_rao, "a b")
def khatri_rao(a: Any, b: Any) -> Any:
    """The Kronecker products of the columns."""
    a, b = as_array(a), as_array(b)
    single("scipy.linalg.khatri_rao", a, b)
    return np.reshape(a[:, None, :] * b[None, :, :], (a.shape[0] * b.shape[0], a.shape[1]))


kron = np.kron  # NumPy's, which has a derivative; SciPy has it no more
