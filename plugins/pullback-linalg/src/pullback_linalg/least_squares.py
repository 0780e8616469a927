"""pinv and lstsq, of any shape and rank.

With P = a^+ of constant rank, dP = -P da P + P P^H da^H (I - a P) + (I - P a) da^H P^H P (Golub and Pereyra, "The
differentiation of pseudo-inverses and nonlinear least squares problems whose variables separate", 1973, theorem 4.3).
Where the cutoff discards singular values that are not 0, the pairs of a kept s_i and a discarded s_j add what
:func:`_discarded` gives: the same derivation with 1 / (s_i^2 - s_j^2) in the place of 1 / s_i^2.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

import pullback as pb
from pullback_linalg.gauge import adjoint
from pullback_linalg.products import as_array, conj, transposed
from pullback_linalg.unguarded import primitive


def _discards(a: NDArray[Any], p: NDArray[Any], cutoff: Any) -> bool:
    """Whether a singular value beyond rounding falls below ``cutoff`` times the largest. ``p`` is the
    pseudo-inverse."""
    rounding = 8 * max(a.shape[-2:]) * np.finfo(a.dtype).eps
    rest = a - ((a @ p) @ a if a.shape[-2] < a.shape[-1] else a @ (p @ a))
    axes = (-2, -1)
    # No more than rounding times the largest singular value:
    least = np.linalg.norm(a, axis=axes) * (rounding / max(1, min(a.shape[-2:])) ** 0.5)
    if np.all(np.linalg.norm(rest, axis=axes) <= least):
        return False
    s = np.linalg.svd(a, compute_uv=False)
    top = s.max(axis=-1, keepdims=True, initial=0)
    return bool(((s <= np.asarray(cutoff)[..., None] * top) & (s > rounding * top)).any())


def _discarded(a: Any, cutoff: Any, left: Any, right: Any) -> Any:
    """What discarded singular values add to the cotangent of a, where that of the pseudo-inverse is right left^T.

    In the bases U, V of a, with E = U^H da V, dP gains V (d (r E^H + E)) U^H: d = s_j / (s_i (s_i^2 - s_j^2)) and r =
    s_j / s_i for s_i kept and s_j discarded, or the other way round; 0 for two of one kind.
    """
    u, s, vh = np.linalg.svd(a, full_matrices=False)
    plain = pb.value(s)
    kept = plain > np.asarray(cutoff)[..., None] * plain.max(axis=-1, keepdims=True, initial=0)
    mixed = kept[..., :, None] != kept[..., None, :]
    si, sj = s[..., :, None], s[..., None, :]
    high = np.where(mixed, np.where(kept[..., :, None], si, sj), 1)
    low = np.where(mixed, np.where(kept[..., :, None], sj, si), 0)
    r = low / high
    d = r / (high * high * (1 - r * r))  # d is 0 where r is
    m = (adjoint(u) @ left) @ (transposed(right) @ adjoint(vh))
    return conj(u) @ (d * (r * conj(m) + transposed(m))) @ conj(vh)


# ----------------------------------------------------------------------------------------------------------------- pinv
def _pinv_cotangent(ct: Any, a: Any, p: Any) -> Any:
    """The formula above, transposed; a wide matrix by its transpose, so that the square products are of the shorter
    side."""
    if a.shape[-2] < a.shape[-1]:
        return transposed(_pinv_cotangent(transposed(ct), transposed(a), transposed(p)))
    pt, g = transposed(p), adjoint(ct)
    result = -(pt @ ct) @ pt
    y = g @ (conj(p) @ pt)
    z = g - g @ (conj(p) @ conj(a))
    return result + (y - conj(a) @ (conj(p) @ y)) + pt @ (conj(p) @ z)


def _pinv_rule(ct: Any, a: Any, out: Any, rcond: Any) -> Any:
    given = _pinv_cotangent(ct, a, out)
    if _discards(pb.value(a), pb.value(out), rcond):
        given = given + _discarded(a, rcond, transposed(ct), np.eye(a.shape[-1], dtype=a.dtype))
    return given


def _hermitian_rule(ct: Any, a: Any, out: Any, rcond: Any) -> Any:
    """NumPy reads the lower triangle alone; the cotangent is the Hermitian one."""
    lower = np.tril(a)
    whole = lower + adjoint(np.tril(a, -1))
    given = _pinv_rule(ct, whole, out, rcond)
    return (given + adjoint(given)) / 2


pseudo_inverse = primitive(lambda a, *, rcond: np.linalg.pinv(a, rcond), name="pseudo_inverse", vjps={"a": _pinv_rule})
hermitian_pseudo_inverse = primitive(
    lambda a, *, rcond: np.linalg.pinv(a, rcond, hermitian=True),
    name="hermitian_pseudo_inverse",
    vjps={"a": _hermitian_rule},
)
ABSENT: Any = getattr(np, "_NoValue", object())  # the default in NumPy's own signature


@pb.composite(np.linalg.pinv, name="linalg.pinv")
def linalg_pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = ABSENT) -> Any:
    """numpy.linalg.pinv: singular values up to ``rcond`` times the largest count as 0."""
    if rcond is not None and rtol is not ABSENT:
        raise ValueError("`rtol` and `rcond` can't be both set.")
    if rcond is None:
        rcond = 1e-15 if rtol is ABSENT else max(a.shape[-2:]) * np.finfo(a.dtype).eps if rtol is None else rtol
    return (hermitian_pseudo_inverse if hermitian else pseudo_inverse)(
        a, rcond=_constant(np.asarray(pb.value(rcond)).tolist())
    )


def _constant(rcond: Any) -> Any:
    """A static parameter: a number, or nested tuples of numbers, one for each matrix of a stack."""
    return tuple(map(_constant, rcond)) if isinstance(rcond, list) else rcond


# ---------------------------------------------------------------------------------------------------------------- lstsq
def _cutoff(s: NDArray[Any], rank: int) -> float:
    """A relative cutoff that keeps ``rank`` of the singular values ``s``."""
    if rank == 0 or s.size == 0:
        return 2.0
    return float((s[rank - 1] + (s[rank] if rank < s.size else 0)) / 2 / s[0])


def _lstsq_rule(ct: Any, a: Any, b: Any, x: Any, rank: Any, s: Any, needed: frozenset[str]) -> tuple[Any, Any]:
    """The solution is P b; residuals are the squares of b - a x, summed over rows; the singular values go by U diag
    V^H."""
    of_x, of_residuals, _, of_s = ct
    if (dtype := np.result_type(a.dtype, x.real.dtype)) != a.dtype:
        a = a.astype(dtype)  # in the precision of the result
    single = b.ndim == 1
    if single:
        b, x = b[:, None], x[:, None]
        of_x = None if of_x is None else of_x[:, None]
    a_ct, b_ct = np.zeros(a.shape, x.dtype), np.zeros(b.shape, x.dtype)
    if of_x is not None:
        count = int(pb.value(rank))
        cutoff = _cutoff(pb.value(s), count)
        p = np.linalg.pinv(a, cutoff)
        b_ct = transposed(p) @ of_x
        if "a" in needed:
            a_ct = _matrix_cotangent(of_x, b_ct, a, b, x, p, count, cutoff)
    if of_residuals is not None and of_residuals.size:
        g = 2 * conj(b - a @ x) * of_residuals
        a_ct, b_ct = a_ct - g @ transposed(x), b_ct + g
    if of_s is not None:
        u, _, vh = np.linalg.svd(a, full_matrices=False)
        a_ct = a_ct + (conj(u) * of_s) @ conj(vh)
    return a_ct, b_ct[:, 0] if single else b_ct


def _matrix_cotangent(ct: Any, b_ct: Any, a: Any, b: Any, x: Any, p: Any, rank: int, cutoff: float) -> Any:
    m, n = a.shape
    a_ct = -b_ct @ transposed(x)
    if rank < m:  # else nothing is left of b
        a_ct = a_ct + conj(b - a @ x) @ transposed(p @ conj(b_ct))
    if rank < n:  # else P a is I
        a_ct = a_ct + (transposed(p) @ conj(x)) @ transposed(conj(ct) - p @ (a @ conj(ct)))
    if rank < min(m, n) and _discards(pb.value(a), pb.value(p), cutoff):
        a_ct = a_ct + _discarded(a, cutoff, b, ct)
    return a_ct


least_squares = primitive(
    lambda a, b, *, rcond: np.linalg.lstsq(a, b, rcond), name="least_squares", outputs=("x", "residuals", "rank", "s")
)  # fmt: skip
least_squares.vjp("a", "b", fn=_lstsq_rule)


@pb.composite(np.linalg.lstsq, name="linalg.lstsq")
def linalg_lstsq(a: Any, b: Any, rcond: Any = None) -> tuple[Any, Any, Any, Any]:
    """numpy.linalg.lstsq: (x, residuals, rank, s); the rank is a plain integer."""
    x, residuals, rank, s = least_squares(as_array(a), as_array(b), rcond=pb.value(rcond))
    return x, residuals, pb.value(rank), s


LEAST_SQUARES = (pseudo_inverse, hermitian_pseudo_inverse, linalg_pinv, least_squares, linalg_lstsq)
