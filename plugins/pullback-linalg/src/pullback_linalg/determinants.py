"""det and slogdet. The derivative of a determinant is the matrix of its cofactors, which a singular matrix has, too.

Where the matrix is regular the cofactors are det(a) a^-T. Else they come from the singular value decomposition a = U S
V^H, in which nothing is divided: cof(a) = det(U) det(V^H) conj(U) cof(S) V^T, and cof(S) is diagonal with the products
of all singular values but one. Rank n - 1 leaves one of them, rank n - 2 none (Giles, "Collected matrix derivative
results", 2008, section 2.2.4; Magnus and Neudecker, "Matrix Differential Calculus", chapter 8, section 3).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

import pullback as pb
from pullback_linalg.gauge import adjoint
from pullback_linalg.products import conj, transposed
from pullback_linalg.unguarded import primitive

CONDITION = 1e7
"""The condition number up to which the derivative of the cofactors is written with the inverse; it loses twice its
digits."""


def _regular(det: NDArray[Any]) -> Any:
    """Where a determinant, times the inverse, gives the cofactors: it is neither 0 nor beyond the range of its
    dtype."""
    size, range_ = np.abs(det), np.finfo(det.dtype)
    return (size > range_.tiny / range_.eps) & (size < range_.max * range_.eps)


def _all_but_one(s: NDArray[Any]) -> Any:
    """The product of all other elements, for each place on the last axis."""
    one = np.ones_like(s[..., :1])
    before = np.cumprod(np.concatenate([one, s[..., :-1]], -1), -1)[..., : s.shape[-1]]
    after = np.cumprod(np.concatenate([one, s[..., :0:-1]], -1), -1)[..., s.shape[-1] - 1 :: -1]
    return before * after


# ------------------------------------------------------------------------------------------------------------ cofactors
@np.errstate(all="ignore")
def _cofactors(a: NDArray[Any]) -> Any:
    """The matrix of cofactors of every matrix in the stack; NaN where a matrix is not finite."""
    det = np.asarray(np.linalg.det(a))
    regular = _regular(det)
    if regular.all():
        return det[..., None, None] * transposed(np.linalg.inv(a))
    out = det[..., None, None] * transposed(
        np.linalg.inv(np.where(regular[..., None, None], a, np.eye(a.shape[-1], dtype=a.dtype)))
    )
    finite = np.isfinite(a).all((-2, -1))
    out[~finite] = np.nan
    u, s, vh = np.linalg.svd(a[finite & ~regular])
    turn = np.linalg.det(u) * np.linalg.det(vh)
    out[finite & ~regular] = (u.conj() * (turn[..., None] * _all_but_one(s))[..., None, :]) @ vh.conj()
    return out


def _cofactors_rule(ct: Any, a: Any, out: Any) -> Any:
    """The derivative of the cofactors: with the inverse where that is well conditioned, else from the singular
    values."""
    value = pb.value(a)
    if np.all(_regular(np.asarray(np.linalg.det(value)))):
        flipped = transposed(np.linalg.inv(a))
        if np.all(np.linalg.norm(value, axis=(-2, -1)) * np.linalg.norm(pb.value(flipped), axis=(-2, -1)) < CONDITION):
            return (
                np.sum(ct * out, axis=(-2, -1))[..., None, None] * np.eye(a.shape[-1], dtype=a.dtype)
                - out @ transposed(ct)
            ) @ flipped
    if not np.isfinite(value).all():
        return ct * np.nan
    return _cofactors_rule_by_singular_values(ct, a)


def _cofactors_rule_by_singular_values(ct: Any, a: Any) -> Any:
    """Near a diagonal S: d cof_ii = sum_k h_ik e_kk and d cof_ij = -h_ij e_ji, with h_ij the product of all singular
    values but i and j."""
    u, s, vh = np.linalg.svd(a)
    unit = np.eye(a.shape[-1], dtype=s.dtype)
    others = np.where(unit == 1, 1, s[..., None, :])  # row i: the singular values, with 1 in the place of i
    h = np.stack([np.prod(np.where(row == 1, 1, others), axis=-1) for row in unit], axis=-1) * (1 - unit)
    w = (np.linalg.det(u) * np.linalg.det(vh))[..., None, None] * (adjoint(u) @ ct @ adjoint(vh))
    along = np.matmul(h, np.diagonal(w, 0, -2, -1)[..., None])
    return conj(u) @ (unit * along - transposed(h * w)) @ conj(vh)


cofactors: pb.Primitive = primitive(_cofactors, name="cofactors", vjps={"a": _cofactors_rule})


# --------------------------------------------------------------------------------------------------------- det, slogdet
det = primitive(
    np.linalg.det, name="determinant", operands=("a",), vjps={"a": lambda ct, a: ct[..., None, None] * cofactors(a)}
)


def _inverse_transposed(a: Any, singular: NDArray[np.bool_]) -> Any:
    """a^-T, which is the derivative of log det(a); infinite, with the signs of the cofactors, where a is singular."""
    if not singular.any():
        return transposed(np.linalg.inv(a))
    singular, unit = singular[..., None, None], np.eye(a.shape[-1], dtype=a.dtype)
    limit = pb.value(cofactors(np.where(singular, pb.value(a), unit)))
    limit = np.where(limit == 0, 0, np.where(limit.real < 0, -np.inf, np.inf)).astype(limit.real.dtype)
    return np.where(singular, limit, transposed(np.linalg.inv(np.where(singular, unit, a))))


def _slogdet_rule(ct: Any, a: Any, sign: Any) -> Any:
    """Re t for logdet and i sign Im t for the sign, with t = tr(a^-1 da): the latter is 0 for a real matrix."""
    of_sign, of_logdet = (None if part is None else np.expand_dims(part, (-2, -1)) for part in ct)
    weight: Any = 0.0 if of_logdet is None else of_logdet
    if a.dtype.kind == "c" and of_sign is not None:
        weight = weight + 1j * np.imag(of_sign * np.expand_dims(sign, (-2, -1)))
    elif of_logdet is None:
        return np.zeros(a.shape, a.dtype)
    slope = _inverse_transposed(a, np.asarray(pb.value(sign)) == 0)
    return weight * np.where((weight == 0) & np.isinf(slope), 0, slope)


slogdet = primitive(
    np.linalg.slogdet, name="sign_and_logdet", operands=("a",), outputs=("sign", "logdet"), vjps={"a": _slogdet_rule}
)


@pb.composite(np.linalg.det, name="linalg.det")
def linalg_det(a: Any) -> Any:
    """numpy.linalg.det: of every matrix in the stack."""
    return det(a)


@pb.composite(np.linalg.slogdet, name="linalg.slogdet")
def linalg_slogdet(a: Any) -> Any:
    """numpy.linalg.slogdet: SlogdetResult(sign, logabsdet)."""
    return slogdet(a)


DETERMINANTS = (cofactors, det, slogdet, linalg_det, linalg_slogdet)
