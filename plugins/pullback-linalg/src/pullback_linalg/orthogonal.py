"""linalg.qr in every mode.

r has a real diagonal, whose signs LAPACK chooses, so that q and r of a matrix with independent columns are functions of
it. So are the columns of q that ``mode="complete"`` adds, and the reflectors of ``mode="raw"``. Where the columns (of a
wide matrix the first ones) are dependent, the factors have no derivative, and the pullback raises.
"""

import warnings
from typing import Any

import numpy as np

import pullback as pb
from pullback_linalg.cholesky import hermitian_from_lower
from pullback_linalg.gauge import adjoint, rounding
from pullback_linalg.products import conj, transposed
from pullback_linalg.singular import basis_free
from pullback_linalg.triangular import triangular_solve
from pullback_linalg.unguarded import primitive


# -------------------------------------------------------------------------------------------------------------- q and r
# Gradients g are conjugate cotangents, as in the papers. With m = r g_r^H - g_q^H q and h the Hermitian matrix of m's
# lower triangle, g = (g_q + q h) r^-H (Walter and Lehmann, "Algorithmic differentiation of linear algebra functions
# with application in optimum experimental design", arXiv:1001.1654; Seeger et al., "Auto-differentiating linear
# algebra", arXiv:1710.08717, for lq).
def _square(g_q: Any, g_r: Any, q: Any, r: Any) -> Any:
    """The gradient of a matrix that is not wide; ``r`` is square."""
    pivots, columns = np.abs(np.diagonal(pb.value(r), axis1=-2, axis2=-1)), np.linalg.norm(pb.value(r), axis=-2)
    if np.any(pivots <= 4 * np.sqrt(r.shape[-1]) * rounding(pivots) * columns):
        message = (
            "numpy.linalg.qr of a matrix whose columns are dependent (of one nothing but rounding is left beside "
            "those before it) has no derivative: q is not determined; take independent columns, or a function that is "
            "smooth there, such as a.T @ a"
        )
        raise pb.NotDifferentiableError(message)
    parts = ([] if g_r is None else [r @ adjoint(g_r)]) + ([] if g_q is None else [-(adjoint(g_q) @ q)])
    right = q @ hermitian_from_lower(sum(parts[1:], parts[0]))
    if g_q is not None:
        right = right + g_q
    return adjoint(triangular_solve(r, adjoint(right), lower=False, transpose=False))


def _reduced(g_q: Any, g_r: Any, q: Any, r: Any) -> Any:
    """The gradient from those of the reduced factors. A wide matrix is [q r1, q r2] with r1 square: two functions of
    q."""
    k = q.shape[-1]
    if r.shape[-1] == k:
        return _square(g_q, g_r, q, r)
    if g_r is None:
        first, wide = _square(g_q, None, q, r[..., :k]), pb.value(r).shape
        return np.concatenate([first, np.zeros((*wide[:-1], wide[-1] - k), pb.value(r).dtype)], axis=-1)
    last = g_r[..., k:]
    from_last = q @ (r[..., k:] @ adjoint(last))
    first = _square(from_last if g_q is None else g_q + from_last, g_r[..., :k], q, r[..., :k])
    return np.concatenate([first, q @ last], axis=-1)


# LAPACK's q = h_1 ... h_n is 1 - v t v^H with v = [v1; v2] unit lower trapezoidal. So its first columns q1 = [qa; qb]
# give w = qa - 1 = -v1 t v1^H and qb = -v2 t v1^H, and its last ones are q2 = [w; qb] z + [0; 1] with z = w^-H qb^H
# (cf. Ballard et al., "Reconstructing Householder vectors from tall-skinny QR", 2014). |det w| >= 1, unless a column
# was reduced already, in which case its reflector is 1 and jumps nearby: then q2 counts as any basis of its space, and
# -q2 g_q2^H q1 is what it adds to the gradient of q1.
def _from_completion(g2: Any, q1: Any, q2: Any) -> Any:
    """What the gradient of the completing columns ``q2`` amounts to on ``q1``."""
    n = q1.shape[-1]
    one = np.eye(*q1.shape[-2:], dtype=q1.dtype)
    off = q1 - one
    w, qb = off[..., :n, :], q1[..., n:, :]
    if np.any(np.abs(np.linalg.det(pb.value(w))) < 0.5):
        name = "Q of numpy.linalg.qr with mode='complete' past the columns of a, one of which was triangular already,"
        basis_free(q2, g2, name, "mode='reduced'")
        return -(q2 @ (adjoint(g2) @ q1))
    z = np.linalg.solve(adjoint(w), adjoint(qb))
    h = np.linalg.solve(w, adjoint(off) @ g2)
    return g2 @ adjoint(z) + np.concatenate([-(z @ adjoint(h)), adjoint(h)], axis=-2)


def qr_cotangent(ct: Any, q: Any, r: Any) -> Any:
    """The cotangent of a matrix from those of q and r, reduced or complete; either may be None."""
    g_q, g_r = (None if part is None else conj(part) for part in ct)
    n = r.shape[-1]
    if q.shape[-1] <= n:
        return conj(_reduced(g_q, g_r, q, r))
    q1, q2, r1 = q[..., :n], q[..., n:], r[..., :n, :]
    g_r = None if g_r is None else g_r[..., :n, :]
    if g_q is not None:
        g_q = g_q[..., :n] + _from_completion(g_q[..., n:], q1, q2)
    return conj(_reduced(g_q, g_r, q1, r1))


qr = primitive(lambda a, *, mode: np.linalg.qr(a, mode), name="qr", outputs=("q", "r"), vjps={"a": qr_cotangent})
qr_r = primitive(
    lambda a: np.linalg.qr(a, "r"), name="qr_r", vjps={"a": lambda ct, a: qr_cotangent((None, ct), *np.linalg.qr(a))}
)  # r alone: q is found in the pullback


# ----------------------------------------------------------------------------------------------------------- reflectors
# h^T holds r in its upper triangle and v below the diagonal. In the notation above u = -t v1^H is upper triangular with
# diagonal -tau, so that w = v1 u is a factorisation without pivots and v2 = qb u^-1: the gradient of w is v1^-H
# (tril(v1^H g_v1, -1) + triu(g_u u^H)) u^-H (de Hoog, Anderssen and Lukas, "Differentiation of matrix functionals using
# triangular factorization", 2011). The last reflector of a real matrix that is not high is 1.
def _raw_rule(ct: Any, a: Any, h: Any) -> Any:
    q, r = np.linalg.qr(a)
    g_h, g_tau = (None if part is None else conj(part) for part in ct)
    m, k = q.shape[-2:]
    count = k if m > k or q.dtype.kind == "c" else k - 1
    g = None if g_h is None else transposed(g_h)
    if count < 1:
        return conj(_reduced(None, np.zeros_like(pb.value(r)) if g is None else g[..., :k, :], q, r))
    g_q = _from_reflectors(None if g is None else g[..., :count], g_tau, transposed(h)[..., :count], q[..., :count])
    if count < k:
        g_q = np.concatenate([g_q, np.zeros((*q.shape[:-1], 1), q.dtype)], axis=-1)
    return conj(_reduced(g_q, None if g is None else g[..., :k, :], q, r))


def _from_reflectors(g_v: Any, g_tau: Any, v: Any, q: Any) -> Any:
    """The gradient of ``q`` from those of the vectors, which stand below the diagonal of ``v``, and of tau."""
    n = v.shape[-1]
    one = np.eye(*v.shape[-2:], dtype=v.dtype)
    v, w = np.tril(v, -1) + one, q[..., :n, :] - one[:n]
    v1, v2 = v[..., :n, :], v[..., n:, :]
    u = np.triu(triangular_solve(v1, w, lower=True, transpose=False))
    if np.any(np.abs(np.diagonal(pb.value(u), axis1=-2, axis2=-1)) < 0.5):  # |tau| >= 1 but for a reflector that is 1
        message = (
            "numpy.linalg.qr with mode='raw' of a matrix with a column that is triangular already has no derivative: "
            "LAPACK's reflector is 1 there and jumps nearby; use mode='reduced'"
        )
        raise pb.NotDifferentiableError(message)

    def over_u(x: Any) -> Any:  # x u^-H
        return adjoint(triangular_solve(u, adjoint(x), lower=False, transpose=False))

    g_v = np.zeros_like(pb.value(v)) if g_v is None else g_v
    g_qb = over_u(g_v[..., n:, :])
    g_u = -(adjoint(v2) @ g_qb)
    if g_tau is not None:
        g_u = g_u - g_tau[..., :n, None] * one[:n]
    inner = np.tril(adjoint(v1) @ g_v[..., :n, :], -1) + np.triu(g_u @ adjoint(u))
    g_w = conj(triangular_solve(v1, conj(over_u(inner)), lower=True, transpose=True))
    return np.concatenate([g_w, g_qb], axis=-2)


qr_raw = primitive(lambda a: np.linalg.qr(a, "raw"), name="qr_raw", outputs=("h", "tau"), vjps={"a": _raw_rule})


@pb.composite(np.linalg.qr, name="linalg.qr")
def np_qr(a: Any, mode: str = "reduced") -> Any:
    """numpy.linalg.qr; also its deprecated modes, with NumPy's warning."""
    if mode in ("f", "full", "e", "economic"):
        same = "reduced" if mode[0] == "f" else "raw"
        instead = "'reduced'" if same == "reduced" else "'raw', whose first result is its transpose"
        warnings.warn(f"The {mode!r} option is deprecated; use {instead}", DeprecationWarning, stacklevel=2)
        return qr(a, mode=same) if same == "reduced" else transposed(qr_raw(a)[0])
    if mode == "r":
        return qr_r(a)
    return qr_raw(a) if mode == "raw" else qr(a, mode=mode)


ORTHOGONAL = (qr, qr_r, qr_raw, np_qr)
