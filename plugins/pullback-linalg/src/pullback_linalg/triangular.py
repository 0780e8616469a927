"""Systems with a triangular matrix, which the pullbacks of cholesky and qr solve: half the work of a general solve, and
no pivots.

With x = t^-1 b and h = t^-T ct: the cotangent of b is h, that of t the triangle of -h x^T (Giles, "Collected matrix
derivative results", 2008, section 2.3.1), without conjugation.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pullback_linalg.products import transposed
from pullback_linalg.solve import HAS_SCIPY
from pullback_linalg.unguarded import primitive

LARGE = 32
"""Rows from which on LAPACK's trtrs is used: below, it is no faster than a general solve, and OpenBLAS starts
threads even for 3 rows."""


def triangle(x: Any, lower: bool) -> Any:
    """The lower or the upper triangle of every matrix, with its diagonal; zeros elsewhere."""
    return np.tril(x) if lower else np.triu(x)


def _triangular_solve(t: NDArray[Any], b: NDArray[Any], *, lower: bool, transpose: bool) -> NDArray[Any]:
    """The solution x of ``t x = b``, or of ``t^T x = b``; of t only the one triangle is read. Both are matrices, or
    stacks of them."""
    if HAS_SCIPY and t.ndim == b.ndim == 2 and b.size and len(t) >= LARGE:
        # SciPy is optional, and 50 ms of import for who only multiplies.
        from scipy.linalg.lapack import get_lapack_funcs  # noqa: PLC0415

        # LAPACK counts in Fortran order: it is handed t^T, of which it copies nothing.
        x, info = get_lapack_funcs("trtrs", (t, b))(
            np.ascontiguousarray(t).T, b, lower=not lower, trans=int(not transpose)
        )
        if info:
            raise np.linalg.LinAlgError(f"Singular matrix: element {info - 1} of the diagonal is zero")
        return np.asarray(x)
    t = triangle(t, lower)
    return np.linalg.solve(transposed(t) if transpose else t, b)


def _rule(ct: Any, t: Any, out: Any, lower: bool, transpose: bool, needed: frozenset[str]) -> tuple[Any, Any]:
    h = triangular_solve(t, ct, lower=lower, transpose=not transpose)
    if "t" not in needed:
        return None, h
    return triangle(-(out @ transposed(h)) if transpose else -(h @ transposed(out)), lower), h


triangular_solve = primitive(_triangular_solve, name="triangular_solve")
triangular_solve.vjp("t", "b", fn=_rule)

TRIANGULAR = (triangular_solve,)
