"""Singular values and vectors: linalg.svd, svdvals.

Each pair of singular vectors is defined up to a common sign, or phase: LAPACK makes the first component of every row of
vh real, or, where the matrix is wider than high, that of every column of u. With ``full_matrices=True`` the columns of
u (or the rows of vh) past the singular values are any basis of their space; a function that depends on the choice
raises. Equal singular values, and singular values that are zero: :mod:`pullback_linalg.gauge`. A function of the
singular values alone has a finite gradient everywhere, at zero and at equal values that of one choice of vectors, which
is an element of the subdifferential of the nuclear or the spectral norm.
"""

from typing import Any

import numpy as np

import pullback as pb
from pullback_linalg.eigen import eigh_cotangent, with_diagonal
from pullback_linalg.gauge import (
    adjoint,
    hold_phase,
    level,
    reciprocal,
    reciprocal_gaps,
    rounding,
    row_of,
    skew,
    touched,
    turn,
    turning,
)
from pullback_linalg.products import as_array, conj, transposed
from pullback_linalg.unguarded import primitive


# -------------------------------------------------------------------------------------------------------------- vectors
def basis_free(extra: Any, g: Any, name: str, instead: str) -> None:
    """Raise if a function with the gradient ``g`` for ``extra``, the basis of a space, depends on which basis it is."""
    rotation, size = skew(adjoint(pb.value(extra)) @ pb.value(g)), np.linalg.norm(pb.value(g))
    if np.any(np.abs(rotation) > np.sqrt(rounding(rotation)) * size):
        message = (
            f"{name} is any basis of its space, and the result depends on which one LAPACK chose; use it as a "
            f"projector only, x @ x.conj().T of one and the same x, or leave it out ({instead})"
        )
        raise pb.NotDifferentiableError(message)


def _one_phase(ct_u: Any, ct_vh: Any, u: Any, vh: Any) -> tuple[Any, Any]:
    """The cotangents with the phase common to u_k and v_k held: see :func:`pullback_linalg.gauge.hold_phase`."""
    if u.dtype.kind != "c":
        return ct_u, ct_vh
    rows, ct_rows = transposed(vh), _transposed(ct_vh)
    pairs = [(sign, ct, v) for sign, ct, v in ((1, ct_u, u), (-1, ct_rows, rows)) if ct is not None]
    turned: Any = sum(sign * turn(ct, v) for sign, ct, v in pairs)
    size: Any = sum(turning(ct, v) for _, ct, v in pairs)
    if u.shape[-2] >= vh.shape[-1]:
        ct_rows = np.zeros_like(pb.value(rows)) if ct_vh is None else ct_rows
        return ct_u, transposed(hold_phase(ct_rows, rows, -turned, size, row_of(rows, 0)))
    ct_u = np.zeros_like(pb.value(u)) if ct_u is None else ct_u
    return hold_phase(ct_u, u, turned, size, row_of(u, 0)), ct_vh


def _outside(g: Any, v: Any, m: Any, s: Any, ct_s: Any) -> Any:
    """(1 - v v^H) g / s: what moves v out of its space."""
    off = g - v @ m
    zero = s[..., None, :] <= level(s)
    if not np.any(pb.value(zero)):
        return off / s[..., None, :]
    used = np.any(pb.value(g) != 0, axis=-2, keepdims=True)
    used |= False if ct_s is None else pb.value(ct_s)[..., None, :] != 0
    return off * reciprocal(s[..., None, :], zero, used)


def _core(g_u: Any, g_v: Any, m_u: Any, m_v: Any, s: Any, ct_s: Any) -> Any:
    """The gradient within the spaces of u and v: ((x + y) / (s_j - s_i) + (x - y) / (s_j + s_i)) / 2 with ct_s on the
    diagonal.

    x = skew(m_u) with m_u = u^H g_u, and y = skew(m_v) likewise. This is (x s_j + s_i y) / (s_j^2 - s_i^2), split so
    that equal and vanishing singular values are told apart. On the diagonal stays x_kk / 2 s_k, imaginary: u_k turned
    against v_k.
    """
    x, y = (0 if m is None else skew(m) for m in (m_u, m_v))
    total = s[..., None, :] + s[..., :, None]
    vanish = total <= level(s)
    turns = 0
    if np.any(pb.value(vanish)):
        moved = pb.value(ct_s) != 0 if ct_s is not None else np.zeros(s.shape, bool)
        rotates = touched(g_u, g_v) | moved[..., None, :] | moved[..., :, None]
        turned = np.abs(pb.value(x - y)) > 0
        turns = (x - y) * reciprocal(total, vanish, np.where(np.eye(s.shape[-1], dtype=bool), turned, rotates))
    else:
        turns = (x - y) / total
    inner = ((x + y) * reciprocal_gaps(s, ct_s, g_u, g_v) + turns) / 2
    return inner if ct_s is None else inner + with_diagonal(ct_s, np.zeros(inner.shape, pb.value(s).dtype))


# Townsend, "Differentiating the singular value decomposition", 2016, for the real case; Wan and Zhang, "Automatic
# differentiation for complex valued SVD", arXiv:1909.02659, for the phase; the last columns of full matrices from
# d(u2^H u1) = 0, which is all that a projector on them needs. Gradients g are conjugate cotangents, as in the papers.
def svd_cotangent(ct: Any, u: Any, s: Any, vh: Any) -> Any:
    """The cotangent of a matrix from those of u, s, vh, any of which may be None."""
    ct_u, ct_s, ct_vh = ct
    if ct_u is None and ct_vh is None:
        k = s.shape[-1]
        return conj((u[..., :k] * ct_s[..., None, :]) @ vh[..., :k, :])
    g_u, u1 = _first_columns(ct_u, u, s, "U of numpy.linalg.svd past the singular values")
    g_v, v1 = _first_columns(_transposed(ct_vh), transposed(vh), s, "Vh of numpy.linalg.svd past the singular values")
    g_u, g_vh = _one_phase(g_u, _transposed(g_v), u1, transposed(v1))
    g_u, g_v, v1 = _conj(g_u), _transposed(g_vh), conj(v1)
    m_u, m_v = (None if g is None else adjoint(v) @ g for g, v in ((g_u, u1), (g_v, v1)))
    left = u1 @ _core(g_u, g_v, m_u, m_v, s, ct_s)
    if g_u is not None and u1.shape[-2] > u1.shape[-1]:
        left = left + _outside(g_u, u1, m_u, s, ct_s)
    gradient = left @ adjoint(v1)
    if g_v is not None and v1.shape[-2] > v1.shape[-1]:
        gradient = gradient + u1 @ adjoint(_outside(g_v, v1, m_v, s, ct_s))
    return conj(gradient)


def _conj(x: Any) -> Any:
    return None if x is None else conj(x)


def _transposed(x: Any) -> Any:
    return None if x is None else transposed(x)


def _first_columns(ct: Any, basis: Any, s: Any, name: str) -> tuple[Any, Any]:
    """Cotangent and columns that belong to singular values; what the other columns' cotangent amounts to is put onto
    these."""
    k = s.shape[-1]
    if basis.shape[-1] == k:
        return ct, basis
    first = basis[..., :k]
    if ct is None:
        return ct, first
    g, extra = conj(ct[..., k:]), basis[..., k:]
    basis_free(extra, g, name, "full_matrices=False")
    return ct[..., :k] - conj(extra @ (adjoint(g) @ first)), first


svd = primitive(
    lambda a, *, full_matrices: np.linalg.svd(a, full_matrices),
    name="svd",
    outputs=("u", "s", "vh"),
    vjps={"a": svd_cotangent},
)


# ------------------------------------------------------------------------------------------------------------ Hermitian
# u has eigenvectors of a, s the absolute values of its eigenvalues, and vh their signs.
def _svd_hermitian_rule(ct: Any, u: Any, s: Any, vh: Any) -> Any:
    ct_u, ct_s, ct_vh = ct
    sign = np.sign(np.sum(pb.value(u) * transposed(pb.value(vh)), axis=-2).real)
    if ct_vh is not None:
        back = adjoint(ct_vh) * sign[..., None, :]
        ct_u = back if ct_u is None else ct_u + back
    return eigh_cotangent(None if ct_s is None else ct_s * sign, ct_u, s * sign, u, 0)


svd_hermitian = primitive(
    lambda a: np.linalg.svd(a, hermitian=True),
    name="svd_hermitian",
    outputs=("u", "s", "vh"),
    vjps={"a": _svd_hermitian_rule},
)


# --------------------------------------------------------------------------------------------------------------- values
# The values alone are a third of the work: the vectors are found in the pullback.
def _svdvals_rule(ct: Any, a: Any, hermitian: bool) -> Any:
    return svd_cotangent((None, ct, None), *np.linalg.svd(a, full_matrices=False, hermitian=hermitian))


svdvals = primitive(
    lambda a, *, hermitian: np.linalg.svd(a, compute_uv=False, hermitian=hermitian),
    name="svdvals",
    vjps={"a": _svdvals_rule},
)


@pb.composite(np.linalg.svd, name="linalg.svd")
def np_svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    """numpy.linalg.svd."""
    if not compute_uv:
        return svdvals(a, hermitian=bool(hermitian))
    return svd_hermitian(a) if hermitian else svd(a, full_matrices=bool(full_matrices))


@pb.composite(np.linalg.svdvals, name="linalg.svdvals")
def np_svdvals(x: Any, /) -> Any:
    """numpy.linalg.svdvals."""
    return svdvals(as_array(x), hermitian=False)


SINGULAR = (svd, svd_hermitian, svdvals, np_svd, np_svdvals)
