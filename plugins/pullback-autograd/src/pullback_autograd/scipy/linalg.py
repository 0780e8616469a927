"""``scipy.linalg`` with derivatives for triangular and Cholesky solves, Sylvester equations and square roots; other
names are SciPy's own.

Rules: M. Giles, Collected matrix derivative results for forward and reverse mode AD (2008), for real matrices; products
of traced matrices need the plugin pullback-linalg (that is, second derivatives do).
"""

from typing import Any

import numpy as np
from scipy import linalg

from pullback import Primitive, primitive


# ----------------------------------------------------------------------------------------------------------- triangular
def _triangle(a: Any, *, lower: bool, unit_diagonal: bool) -> Any:
    """The part of a matrix that a triangular solve reads."""
    inside = -1 if unit_diagonal else 0
    return np.tril(a, inside) if lower else np.triu(a, -inside)


def _solve_triangular(a: Any, b: Any, *, trans: int, lower: bool, unit_diagonal: bool) -> Any:
    return linalg.solve_triangular(a, b, trans=trans, lower=lower, unit_diagonal=unit_diagonal)


_triangular = primitive(_solve_triangular, name="solve_triangular")


@_triangular.vjp("b")
def _pull_right_side(ct: Any, a: Any, trans: int, lower: bool, unit_diagonal: bool) -> Any:
    return _triangular(a, ct, trans=1 - trans, lower=lower, unit_diagonal=unit_diagonal)


@_triangular.vjp("a")
def _pull_matrix(ct: Any, a: Any, out: Any, trans: int, lower: bool, unit_diagonal: bool) -> Any:
    """-A^-T ct x^T, transposed for trans=1, of the triangle that is read."""
    n = a.shape[0]
    back = np.reshape(_triangular(a, ct, trans=1 - trans, lower=lower, unit_diagonal=unit_diagonal), (n, -1))
    x = np.reshape(out, (n, -1))
    return -_triangle(x @ back.T if trans else back @ x.T, lower=lower, unit_diagonal=unit_diagonal)


def solve_triangular(
    a: Any,
    b: Any,
    trans: Any = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Any:
    """The x with a x = b (trans 0 or 'N') or a^T x = b (1 or 'T'), reading one triangle of ``a``. Real."""
    transposed = {"N": 0, "T": 1, "C": 1, 2: 1}.get(trans, trans)
    return _triangular(a, b, trans=transposed, lower=bool(lower), unit_diagonal=bool(unit_diagonal))


# ------------------------------------------------------------------------------------------------------------- Cholesky
def cholesky(a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """The Cholesky factor, the upper one unless ``lower``; by numpy.linalg."""
    factor = np.linalg.cholesky(a)
    return factor if lower else factor.T


def cho_factor(a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Any, bool]:
    """``(factor, lower)`` for :func:`cho_solve`."""
    return cholesky(a, lower), lower


def cho_solve(c_and_lower: tuple[Any, bool], b: Any, overwrite_b: bool = False, check_finite: bool = True) -> Any:
    """The x with A x = b, from the Cholesky factor of A."""
    factor, lower = c_and_lower
    first = solve_triangular(factor, b, trans=0 if lower else 1, lower=lower)
    return solve_triangular(factor, first, trans=1 if lower else 0, lower=lower)


def solve(a: Any, b: Any, **options: Any) -> Any:
    """The x with a x = b; by numpy.linalg, whatever the options promise about ``a``."""
    return np.linalg.solve(a, b)


# ----------------------------------------------------------------------------------------------- Sylvester, square root
_sylvester: Primitive = primitive(
    linalg.solve_sylvester,
    name="solve_sylvester",
    operands=("a", "b", "q"),
    vjps={
        "a": lambda ct, a, b, out: -_sylvester(a.T, b.T, ct) @ out.T,
        "b": lambda ct, a, b, out: -out.T @ _sylvester(a.T, b.T, ct),
        "q": lambda ct, a, b: _sylvester(a.T, b.T, ct),
    },
)


def solve_sylvester(a: Any, b: Any, q: Any) -> Any:
    """The x with a x + x b = q. Real."""
    return _sylvester(a, b, q)


_sqrtm = primitive(
    linalg.sqrtm, name="sqrtm", operands=("a",), vjps={"a": lambda ct, out: _sylvester(out.T, out.T, ct)}
)


def sqrtm(a: Any) -> Any:
    """The matrix square root of a real matrix that has a real one."""
    return _sqrtm(a)


# --------------------------------------------------------------------------------------------------------------- banded
def _transposed_bands(ab: Any, *, lower: int, upper: int) -> Any:
    """The bands of the transposed matrix: A[i, i + k], at column i + k of its row, goes to column i of another."""
    return np.stack([np.roll(ab[upper - k], -k) for k in range(-lower, upper + 1)])


def _solve_banded(ab: Any, b: Any, *, lower: int, upper: int) -> Any:
    return linalg.solve_banded((lower, upper), ab, b)


_banded = primitive(_solve_banded, name="solve_banded")


@_banded.vjp("b")
def _pull_banded_right_side(ct: Any, ab: Any, lower: int, upper: int) -> Any:
    return _banded(_transposed_bands(ab, lower=lower, upper=upper), ct, lower=upper, upper=lower)


@_banded.vjp("ab")
def _pull_bands(ct: Any, ab: Any, out: Any, lower: int, upper: int) -> Any:
    """-(A^-T ct)[i] x[j] at element (i, j) of the matrix, which stands at [upper + i - j, j]."""
    n = np.shape(ab)[1]
    back = _banded(_transposed_bands(ab, lower=lower, upper=upper), ct, lower=upper, upper=lower)
    back, x = np.reshape(back, (n, -1)), np.reshape(out, (n, -1))
    rows = []
    for k in range(upper, -lower - 1, -1):
        products = -np.sum(np.roll(back, k, axis=0) * x, axis=1)  # i = j - k
        columns = np.arange(n) - k
        rows.append(np.where((columns >= 0) & (columns < n), products, 0.0))
    return np.stack(rows)


def solve_banded(
    l_and_u: tuple[int, int],
    ab: Any,
    b: Any,
    overwrite_ab: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Any:
    """The x with A x = b for a matrix with ``l_and_u`` diagonals below and above the main one, ``ab[u + i - j, j]``
    = A[i, j]. Real."""
    lower, upper = map(int, l_and_u)
    return _banded(ab, b, lower=lower, upper=upper)


def block_diag(*arrays: Any) -> Any:
    """The matrices along the diagonal, zeros elsewhere."""
    blocks = [np.atleast_2d(a) for a in arrays]
    widths = [block.shape[1] for block in blocks]
    rows = [
        [block if place == k else np.zeros((block.shape[0], width)) for place, width in enumerate(widths)]
        for k, block in enumerate(blocks)
    ]
    return np.block(rows)


def __getattr__(name: str) -> Any:
    """SciPy's own; it raises :class:`ConversionError` on a tracer."""
    return getattr(linalg, name)
