"""Systems of equations, inverses, determinants and norms.

With x = a^-1 b and g = a^-T ct the cotangent of b is g, that of a is -g x^T (Giles, "Collected matrix derivative
results", 2008, section 2.3.1), without conjugation. Of a matrix that is stored by diagonals, only these are formed.
"""

from typing import Any

import numpy as np
from scipy import linalg

import pullback as pb
from pullback_linalg.gauge import adjoint, is_whole, of_triangle
from pullback_linalg.products import conj, transposed
from pullback_scipy.mirroring import as_array, derived, floating, mirror, only, primitive, single


def outer(g: Any, x: Any) -> Any:
    """The product g x^T, of vectors or of matrices with a column for each right side."""
    return np.multiply(g[:, None], x[None, :]) if g.ndim == 1 else g @ transposed(x)


# -------------------------------------------------------------------------------------------------------------- general
SYMMETRIC = {"sym": False, "symmetric": False, "her": True, "hermitian": True, "pos": True, "positive definite": True}
GENERAL = (None, "gen", "general")


def _solve_rule(
    ct: Any, a: Any, out: Any, lower: bool, assume_a: Any, transposed: bool, needed: Any
) -> tuple[Any, Any]:
    if assume_a in SYMMETRIC and a.dtype.kind == "c" and SYMMETRIC[assume_a]:
        g = conj(system(a, conj(ct), lower=lower, assume_a=assume_a, transposed=False))
    elif assume_a in SYMMETRIC:
        g = system(a, ct, lower=lower, assume_a=assume_a, transposed=False)
    elif a.dtype.kind == "c":  # SciPy does not solve with the transpose of a complex matrix
        g = system(np.swapaxes(a, -1, -2), ct, lower=lower, assume_a=assume_a, transposed=False)
    else:
        g = system(a, ct, lower=lower, assume_a=assume_a, transposed=not transposed)
    if "a" not in needed:
        return None, g
    of_a = -outer(out, g) if transposed else -outer(g, out)
    if assume_a in SYMMETRIC:
        turned: Any = adjoint if SYMMETRIC[assume_a] else lambda x: np.swapaxes(x, -1, -2)
        of_a = of_triangle((of_a + turned(of_a)) / 2, is_whole(pb.value(a), turned), lower, turned)
    return of_a, g


system = primitive(
    lambda a, b, *, lower, assume_a, transposed: linalg.solve(
        a, b, lower=lower, assume_a=assume_a, transposed=transposed
    ),
    name="scipy.solve",
)
system.vjp("a", "b", fn=_solve_rule)


@mirror(linalg.solve, "a b")
def solve(a: Any, b: Any, lower: bool = False, assume_a: Any = None, transposed: bool = False) -> Any:
    """The solution of a x = b. Of a matrix that is said to be symmetric or Hermitian, so is the cotangent."""
    a, b = as_array(a), as_array(b)
    only("scipy.linalg.solve", "assume_a", assume_a, *GENERAL, *SYMMETRIC)
    single("scipy.linalg.solve", a, b)
    return system(a, b, lower=bool(lower), assume_a=assume_a, transposed=bool(transposed))


# ----------------------------------------------------------------------------------------------------------- triangular
def _triangular_rule(
    ct: Any, a: Any, out: Any, trans: int, lower: bool, unit_diagonal: bool, needed: Any
) -> tuple[Any, Any]:
    g = triangular_system(a, ct, trans=0 if trans else 1, lower=lower, unit_diagonal=unit_diagonal)
    if "a" not in needed:
        return None, g
    of_a = -(outer(out, g) if trans else outer(g, out))
    skip = int(unit_diagonal)
    return np.tril(of_a, -skip) if lower else np.triu(of_a, skip), g


triangular_system = primitive(
    lambda a, b, *, trans, lower, unit_diagonal: linalg.solve_triangular(
        a, b, trans=trans, lower=lower, unit_diagonal=unit_diagonal
    ),
    name="scipy.solve_triangular",
)
triangular_system.vjp("a", "b", fn=_triangular_rule)


@mirror(linalg.solve_triangular, "a b")
def solve_triangular(a: Any, b: Any, trans: Any = 0, lower: bool = False, unit_diagonal: bool = False) -> Any:
    """The solution of a x = b, or of a^T x = b, of a triangular matrix: the cotangent has that triangle only."""
    a, b = as_array(a), as_array(b)
    single("scipy.linalg.solve_triangular", a, b)
    trans = {"N": 0, "T": 1, "C": 2}.get(trans, trans)
    if a.dtype.kind == "c":
        only("scipy.linalg.solve_triangular of complex numbers", "trans", trans, 0, 1)
    return triangular_system(a, b, trans=trans, lower=bool(lower), unit_diagonal=bool(unit_diagonal))


# -------------------------------------------------------------------------------------------------------- least squares
def _lstsq(a: Any, b: Any, *, cond: Any, driver: Any) -> Any:
    x, left, rank, s = linalg.lstsq(a, b, cond, lapack_driver=driver)
    return x, np.asarray(left), rank, np.zeros(0) if s is None else s


def _lstsq_rule(ct: Any, a: Any, b: Any, rank: Any, cond: Any, driver: Any, needed: Any) -> tuple[Any, Any]:
    """That of NumPy's solution, of the squares that it leaves, and of the singular values."""
    if driver == "gelsy" and cond is not None and int(pb.value(rank)) < min(a.shape):
        only("scipy.linalg.lstsq by gelsy, of a matrix of which cond= cuts something off,", "cond", cond, None)
    asked = [k for k in (0, 1, 3) if ct[k] is not None and ct[k].size]
    moving = [k for k, name in enumerate("ab") if name in needed]

    def of(*leaves: Any) -> Any:
        matrix, right = (leaves[moving.index(k)] if k in moving else (a, b)[k] for k in range(2))
        rcond = np.finfo(np.result_type(matrix.dtype, np.float32)).eps if cond is None else cond
        x = np.linalg.lstsq(matrix, right, rcond=rcond)[0]
        parts: dict[int, Any] = {0: lambda: x, 1: lambda: np.sum(np.abs(matrix @ x - right) ** 2, axis=0),
                 3: lambda: np.linalg.svd(matrix, compute_uv=False)}  # fmt: skip
        return tuple(parts[k]() for k in asked)

    pulled = pb.vjp(of, *(floating((a, b)[k]) for k in moving))[1](tuple(ct[k] for k in asked))
    return tuple(pulled[moving.index(k)] if k in moving else None for k in range(2))  # type: ignore[return-value]


least_squares = primitive(_lstsq, name="scipy.lstsq", outputs=("x", "left", "rank", "s"))
least_squares.vjp("a", "b", fn=_lstsq_rule)


@mirror(linalg.lstsq, "a b")
def lstsq(a: Any, b: Any, cond: Any = None, lapack_driver: Any = None) -> Any:
    """(x, squares, rank, s) of the x with the least |a x - b|."""
    a, b = as_array(a), as_array(b)
    single("scipy.linalg.lstsq", a, b)
    x, left, rank, s = least_squares(a, b, cond=cond, driver=lapack_driver)
    return x, left, int(pb.value(rank)), None if lapack_driver == "gelsy" else s


# --------------------------------------------------------------------------------------------------------------- banded
# Row u - d of ab holds the diagonal d, whose element in column j is a[j - d, j].
def _shifted(row: Any, d: int) -> Any:
    """``row`` moved by ``d`` places to the left (right where negative), with zeros in the places that are left."""
    if d == 0:
        return row
    gap = np.zeros((abs(d), *row.shape[1:]), row.dtype)
    return np.concatenate((row[d:], gap)) if d > 0 else np.concatenate((gap, row[:d]))


def banded_transpose(ab: Any, lower: int, upper: int) -> Any:
    """The transpose of a banded matrix, with ``upper`` diagonals below and ``lower`` above."""
    return np.stack([_shifted(ab[upper - d], d) for d in range(-lower, upper + 1)])


def _along(g: Any, x: Any, d: int) -> Any:
    """The sum of g[j - d] x[j] over the right sides for each column j, on the diagonal d."""
    product = _shifted(g, -d) * x
    return np.sum(product, axis=1) if product.ndim == 2 else product


def _banded_rule(ct: Any, ab: Any, out: Any, lower: int, upper: int, needed: Any) -> tuple[Any, Any]:
    g = banded_system(banded_transpose(ab, lower, upper), ct, lower=upper, upper=lower)
    if "ab" not in needed:
        return None, g
    return np.stack([-_along(g, out, d) for d in range(upper, -lower - 1, -1)]), g


banded_system = primitive(
    lambda ab, b, *, lower, upper: linalg.solve_banded((lower, upper), ab, b), name="scipy.solve_banded"
)
banded_system.vjp("ab", "b", fn=_banded_rule)


@mirror(linalg.solve_banded, "ab b")
def solve_banded(l_and_u: Any, ab: Any, b: Any) -> Any:
    """The solution of a x = b of a banded matrix; the cotangent stands on the diagonals."""
    lower, upper = l_and_u
    return banded_system(as_array(ab), as_array(b), lower=int(lower), upper=int(upper))


def _hermitian_banded_rule(ct: Any, ab: Any, out: Any, lower: bool, needed: Any) -> tuple[Any, Any]:
    g = hermitian_banded_system(ab, ct, lower=lower)
    if "ab" not in needed:
        return None, g
    rows, n = [], ab.shape[0]
    for d in range(n):  # the diagonal d holds both a[j - d, j] and a[j, j - d]
        of_upper = -_along(g, out, d) if d == 0 else -_along(g, out, d) - _along(out, g, d)
        rows.append(_shifted(of_upper, d) if lower else of_upper)
    return np.stack(rows if lower else rows[::-1]), g


hermitian_banded_system = primitive(
    lambda ab, b, *, lower: linalg.solveh_banded(ab, b, lower=lower), name="scipy.solveh_banded"
)
hermitian_banded_system.vjp("ab", "b", fn=_hermitian_banded_rule)


@mirror(linalg.solveh_banded, "ab b")
def solveh_banded(ab: Any, b: Any, lower: bool = False) -> Any:
    """The solution of a x = b of a real symmetric banded matrix, positive definite."""
    ab, b = as_array(ab), as_array(b)
    only(
        "scipy.linalg.solveh_banded",
        "dtype of ab and b",
        "complex" if "c" in ab.dtype.kind + b.dtype.kind else "real",
        "real",
    )
    return hermitian_banded_system(ab, b, lower=bool(lower))


# ------------------------------------------------------------------------------------------------------------- Toeplitz
def _toeplitz_rule(ct: Any, c: Any, r: Any, out: Any, needed: Any) -> tuple[Any, Any, Any]:
    g = toeplitz_system(np.concatenate((c[:1], r[1:])), c, ct)
    if not {"c", "r"} & set(needed):
        return None, None, g
    n = c.shape[0]
    # The sums of -g[i] out[j] over i - j = k, by a convolution with the reversed; k runs from 1 - n to n - 1.
    sides = [(g, out)] if g.ndim == 1 else [(g[:, k], out[:, k]) for k in range(g.shape[1])]
    sums: Any = -sum(np.convolve(left, right[::-1]) for left, right in sides)
    first = np.concatenate((np.zeros(1, sums.dtype), sums[n - 2 :: -1])) if n > 1 else np.zeros(1, sums.dtype)
    return sums[n - 1 :], first, g


toeplitz_system = primitive(lambda c, r, b: linalg.solve_toeplitz((c, r), b), name="scipy.solve_toeplitz")
toeplitz_system.vjp("c", "r", "b", fn=_toeplitz_rule)


@mirror(linalg.solve_toeplitz, "c_or_cr b")
def solve_toeplitz(c_or_cr: Any, b: Any) -> Any:
    """The solution of a x = b of a Toeplitz matrix, by Levinson's recursion."""
    c, r = c_or_cr if isinstance(c_or_cr, tuple) else (c_or_cr, np.conjugate(as_array(c_or_cr)))
    return toeplitz_system(as_array(c), as_array(r), as_array(b))


# ------------------------------------------------------------------------------------------- inverse, determinant, norm
inverse = primitive(
    linalg.inv,
    operands=("a",),
    name="scipy.inv",
    vjps={"a": lambda ct, out: -transposed(out) @ ct @ transposed(out)},
)
determinant = derived(linalg.det, np.linalg.det, "a", name="scipy.det")
pseudo_inverse = derived(linalg.pinv, np.linalg.pinv, "a", name="scipy.pinv")
matrix_norm = derived(linalg.norm, np.linalg.norm, "a", "ord axis keepdims", name="scipy.norm")


@mirror(linalg.inv, "a")
def inv(a: Any) -> Any:
    """The inverse."""
    return inverse(as_array(a))


@mirror(linalg.det, "a")
def det(a: Any) -> Any:
    """The determinant."""
    return determinant(as_array(a))


@mirror(linalg.pinv, "a")
def pinv(a: Any) -> Any:
    """The pseudo-inverse of a matrix of full rank."""
    a = as_array(a)
    if np.any(np.linalg.matrix_rank(pb.value(a)) < min(a.shape[-2:])):
        raise pb.NotDifferentiableError(
            "scipy.linalg.pinv of a matrix without full rank has no derivative: the rank jumps near it; solve the "
            "regularised problem, np.linalg.solve(a.T @ a + e * np.eye(n), a.T)"
        )
    return pseudo_inverse(a)


@mirror(linalg.norm, "a")
def norm(a: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """A norm of a vector or a matrix."""
    return matrix_norm(as_array(a), ord=ord, axis=axis, keepdims=keepdims)
