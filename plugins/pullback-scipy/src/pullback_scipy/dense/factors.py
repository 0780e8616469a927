"""Factorisations that are handed out: lu_factor, cho_factor, cholesky, lu, and the solves with them.

The factors are arrays like others, with a derivative of their own: a program that factors once and solves often keeps
one factor, and a policy prices it by its bytes. All cotangents are without conjugation (see pullback-linalg).

Sources: Murray, "Differentiation of the Cholesky decomposition", arXiv:1602.07527; de Hoog, Anderssen and Lukas,
"Differentiation of matrix functionals using triangular factorization", Math. Comp. 80 (2011), for LU.
"""

from typing import Any

import numpy as np
from scipy import linalg

import pullback as pb
from pullback_linalg.gauge import adjoint, is_whole, of_triangle
from pullback_linalg.products import conj, transposed
from pullback_linalg.triangular import triangular_solve
from pullback_scipy.dense.solves import triangular_system
from pullback_scipy.mirroring import as_array, mirror, only, primitive, single


# ------------------------------------------------------------------------------------------------------------- Cholesky
def cholesky_rule(ct: Any, out: Any, lower: bool) -> Any:
    """The Hermitian cotangent of the matrix from that of its factor."""
    if not lower:
        out, ct = conj(transposed(out)), conj(transposed(ct))
    product = transposed(out) @ ct
    below = np.tril(product, -1)
    middle = below + adjoint(below) + np.where(np.eye(out.shape[-1], dtype=bool), product.real, 0)
    half = triangular_solve(out, middle, lower=True, transpose=True)
    return adjoint(triangular_solve(out, adjoint(half), lower=True, transpose=True)) / 2


def _factor_rule(ct: Any, out: Any, whole: Any, lower: bool) -> Any:
    return of_triangle(cholesky_rule(ct, out, lower), whole, lower)


def _factor_rule_again(ct: Any, a: Any, lower: bool) -> Any:
    return _factor_rule(ct, cholesky_factor(a, lower=lower), is_whole(pb.value(a)), lower)


def _packed_cholesky_rule(ct: Any, out: Any, whole: Any, lower: bool) -> Any:
    """As :func:`cholesky_rule`; the other triangle holds what stood there in the matrix."""
    here, there = (np.tril, np.triu) if lower else (np.triu, np.tril)
    return of_triangle(cholesky_rule(here(ct), here(out), lower), whole, lower) + there(ct, 1 if lower else -1)


def _packed_cholesky_rule_again(ct: Any, a: Any, lower: bool) -> Any:
    return _packed_cholesky_rule(ct, packed_cholesky(a, lower=lower), is_whole(pb.value(a)), lower)


# Of the triangles one bool is kept. The second rules are for a derivative of the derivative, and give the same bits.
cholesky_factor = primitive(
    lambda a, *, lower: (linalg.cholesky(a, lower=lower), {"whole": is_whole(a)}),
    name="scipy.cholesky", residuals=("whole",),
)  # fmt: skip
packed_cholesky = primitive(
    lambda a, *, lower: (linalg.cho_factor(a, lower=lower)[0], {"whole": is_whole(a)}),
    name="scipy.cho_factor", residuals=("whole",),
)  # fmt: skip
cholesky_factor.vjp("a", fn=_factor_rule)
cholesky_factor.vjp("a", fn=_factor_rule_again)
packed_cholesky.vjp("a", fn=_packed_cholesky_rule)
packed_cholesky.vjp("a", fn=_packed_cholesky_rule_again)


@mirror(linalg.cholesky, "a")
def cholesky(a: Any, lower: bool = False) -> Any:
    """The Cholesky factor; the cotangent of the matrix is Hermitian."""
    return cholesky_factor(as_array(a), lower=bool(lower))


@mirror(linalg.cho_factor, "a")
def cho_factor(a: Any, lower: bool = False) -> Any:
    """(c, lower), for :func:`cho_solve`."""
    a = as_array(a)
    single("scipy.linalg.cho_factor", a)
    return packed_cholesky(a, lower=bool(lower)), lower


def _cho_solve(c: Any, b: Any, *, lower: bool) -> Any:
    return linalg.cho_solve((c, lower), b)


def _cho_rule(ct: Any, c: Any, out: Any, lower: bool, needed: Any) -> tuple[Any, Any]:
    """That of b is g = a^-T ct with a = l l^H; that of l follows from the one of a, -g out^T: (m + m^H) l, with m its
    conjugate."""
    g = conj(cho_system(c, conj(ct), lower=lower))
    if "c" not in needed:
        return None, g
    m = -conj(columns(g) @ transposed(columns(out)))
    factor = np.tril(c) if lower else np.triu(c)
    both = m + adjoint(m)
    return conj(np.tril(both @ factor) if lower else np.triu(factor @ both)), g


def columns(x: Any) -> Any:
    """A vector as a matrix of one column."""
    return x[:, None] if x.ndim == 1 else x


cho_system = primitive(_cho_solve, name="scipy.cho_solve")
cho_system.vjp("c", "b", fn=_cho_rule)


@mirror(linalg.cho_solve, "c_and_lower b")
def cho_solve(c_and_lower: Any, b: Any) -> Any:
    """The solution of a x = b, by the factor of a."""
    c, lower = c_and_lower
    c, b = as_array(c), as_array(b)
    single("scipy.linalg.cho_solve", c, b)
    return cho_system(c, b, lower=bool(lower))


# ------------------------------------------------------------------------------------------------------------------- LU
def _lu_factor(a: Any) -> Any:
    lu, piv = linalg.lu_factor(a)
    return lu, piv


def order_of(piv: Any) -> Any:
    """The rows of the matrix in the order of those of its factors."""
    rows = pb.value(piv)
    order = np.arange(len(rows))
    for k, row in enumerate(rows):
        order[[k, row]] = order[[row, k]]
    return order


def _lu_rule(ct: Any, lu: Any, piv: Any) -> Any:
    """P l^-T (tril(l^T ct_l, -1) + triu(ct_u u^T)) u^-T with P^T a = l u."""
    both = ct[0]
    one = np.eye(lu.shape[0], dtype=lu.dtype)
    lower, upper = np.tril(lu, -1) + one, np.triu(lu)
    middle = np.tril(transposed(lower) @ np.tril(both, -1), -1) + np.triu(np.triu(both) @ transposed(upper))
    left = triangular_system(lower, middle, trans=1, lower=True, unit_diagonal=True)
    g = transposed(triangular_system(upper, transposed(left), trans=0, lower=False, unit_diagonal=False))
    return g[np.argsort(order_of(piv))]


lu_factors = primitive(_lu_factor, name="scipy.lu_factor", outputs=("lu", "piv"), vjps={"a": _lu_rule})


@mirror(linalg.lu_factor, "a")
def lu_factor(a: Any) -> Any:
    """(lu, piv) of a square matrix, for :func:`lu_solve`."""
    a = as_array(a)
    single("scipy.linalg.lu_factor", a)
    if a.ndim != 2 or a.shape[0] != a.shape[1]:
        only("scipy.linalg.lu_factor", "shape of a", a.shape, "one square matrix")
    lu, piv = lu_factors(a)
    return lu, piv


def _lu_solve(lu: Any, piv: Any, b: Any, *, trans: int) -> Any:
    return linalg.lu_solve((lu, piv), b, trans=trans)


def _lu_solve_rule(ct: Any, lu: Any, piv: Any, out: Any, trans: int, needed: Any) -> tuple[Any, Any]:
    """With P^T a = l u; for trans = 1 with the roles of ct and out exchanged."""
    g = lu_system(lu, piv, ct, trans=1 - trans)
    if "lu" not in needed:
        return None, g
    left, right = (columns(g), columns(out)) if trans == 0 else (columns(out), columns(g))
    upper, order = np.triu(lu), order_of(piv)
    lower = np.tril(lu, -1) + np.eye(lu.shape[0], dtype=lu.dtype)
    # The cotangent of l u is -P^T left right^T = m; that of l is m u^T, that of u is l^T m.
    p_left = left[order]
    of_lower = -p_left @ transposed(upper @ right)
    of_upper = -(transposed(lower) @ p_left) @ transposed(right)
    return np.tril(of_lower, -1) + np.triu(of_upper), g


lu_system = primitive(_lu_solve, name="scipy.lu_solve", nondiff=("piv",))
lu_system.vjp("lu", "b", fn=_lu_solve_rule)


@mirror(linalg.lu_solve, "lu_and_piv b")
def lu_solve(lu_and_piv: Any, b: Any, trans: int = 0) -> Any:
    """The solution of a x = b, or of a^T x = b with ``trans=1``."""
    lu, piv = lu_and_piv
    lu, b = as_array(lu), as_array(b)
    trans = 1 if trans == 2 and lu.dtype.kind != "c" else trans
    only("scipy.linalg.lu_solve of complex numbers", "trans", trans, 0, 1)
    return lu_system(lu, piv, b, trans=trans)


@mirror(linalg.lu, "a")
def lu(a: Any, permute_l: bool = False) -> Any:
    """p, l, u of a square matrix; with ``permute_l`` (p l, u)."""
    both, piv = lu_factor(a)
    one = np.eye(both.shape[0], dtype=both.dtype)
    p = one[:, np.argsort(order_of(piv))].T.real
    lower, upper = np.tril(both, -1) + one, np.triu(both)
    return (lower[np.argsort(order_of(piv))], upper) if permute_l else (p, lower, upper)
