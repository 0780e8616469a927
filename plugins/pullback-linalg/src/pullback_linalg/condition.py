"""cond, and matrix_rank, which has no slope.

cond is the quotient of two singular values, or the product of a norm and the norm of the inverse. It is infinite at a
singular matrix, and has no derivative there: NaN, and 0 where nothing is asked.
"""

from typing import Any

import numpy as np

import pullback as pb
from pullback_linalg.inverse import inverse_rule
from pullback_linalg.norms import matrix_slope
from pullback_linalg.polar import parts
from pullback_linalg.products import conj
from pullback_linalg.unguarded import primitive


def _safe(ct: Any, x: Any, out: Any) -> tuple[Any, Any]:
    """The matrices, an identity in the place of each whose condition is not finite; and what their cotangents are
    multiplied with."""
    lost = ~np.isfinite(pb.value(out))[..., None, None]
    if not lost.any():
        return x, 1
    return np.where(lost, np.eye(*x.shape[-2:], dtype=x.dtype), x), np.where(
        lost & (pb.value(ct)[..., None, None] != 0), np.nan, 1
    )


def _of_singular_values(ct: Any, x: Any, out: Any, p: Any) -> Any:
    x, undefined = _safe(ct, x, out)
    u, s, vh = np.linalg.svd(x, full_matrices=False)
    plain, n = pb.value(s), max(x.shape[-2:])
    last = (np.arange(plain.shape[-1]) == plain.shape[-1] - 1).astype(plain.dtype)
    least = parts(plain, -2, n)
    least = np.where(least.any(-1, keepdims=True), least, last)  # one that is all rounding is divided by all the same
    w = parts(plain, 2, n) / s[..., :1] - least / s[..., -1:]
    w = (ct * np.where(np.isinf(pb.value(out)), 0, out))[..., None] * (-w if p == -2 else w)
    return (conj(u) * w[..., None, :]) @ conj(vh) * undefined


def _of_inverse(ct: Any, x: Any, out: Any, p: Any) -> Any:
    x, undefined = _safe(ct, x, out)
    inverse = np.linalg.inv(x)
    direct = matrix_slope(ct * np.linalg.norm(inverse, p, (-2, -1)), x, p)
    back = matrix_slope(ct * np.linalg.norm(x, p, (-2, -1)), inverse, p)
    return (direct + inverse_rule(back, inverse)) * undefined


def _cond(x: Any, *, p: Any) -> Any:
    return np.linalg.cond(x, p)


quotient = primitive(_cond, name="condition_of_singular_values", vjps={"x": _of_singular_values})
product = primitive(_cond, name="condition_of_inverse", vjps={"x": _of_inverse})


@pb.composite(np.linalg.cond, name="linalg.cond")
def linalg_cond(x: Any, p: Any = None) -> Any:
    """numpy.linalg.cond, by every norm."""
    return quotient(x, p=p) if p in {None, 2, -2} else product(x, p=p)


@pb.composite(np.linalg.matrix_rank, name="linalg.matrix_rank")
def linalg_matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    """numpy.linalg.matrix_rank, a plain integer."""
    return np.linalg.matrix_rank(pb.value(A), pb.value(tol), hermitian, rtol=pb.value(rtol))


CONDITIONS = (quotient, product, linalg_cond, linalg_matrix_rank)
