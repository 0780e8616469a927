"""linalg.cholesky: a = l l^H, or a = u^H u with ``upper=True``.

NumPy reads one triangle of the matrix, and so does this: the other may hold anything, NaN included. The cotangent
follows the convention for functions of symmetric matrices: it is Hermitian, (s + s^H) / 2, the derivative along
Hermitian directions. It stands in both triangles; a program that only fills one of them gets, through its own writes,
that one's half.

l has a real positive diagonal, so there is no gauge. Where a is singular NumPy raises.
"""

from typing import Any

import numpy as np

from pullback_linalg.gauge import adjoint
from pullback_linalg.products import conj, transposed
from pullback_linalg.triangular import triangular_solve
from pullback_linalg.unguarded import primitive


def hermitian_from_lower(x: Any) -> Any:
    """The Hermitian matrix with the lower triangle of ``x``; of its diagonal the real part."""
    below = np.tril(x, -1)
    return below + adjoint(below) + np.where(np.eye(x.shape[-1], dtype=bool), x.real, 0)


# dl = l phi(l^-1 da l^-H), where phi takes the lower triangle and half the diagonal; hence, with p the Hermitian matrix
# of the lower triangle of l^T ct, the cotangent l^-T p conj(l)^-1 / 2 (Murray, "Differentiation of the Cholesky
# decomposition", arXiv:1602.07527; Giles, "Collected matrix derivative results", 2008, for the first step; the
# conjugates are ours).
def _rule(ct: Any, out: Any, upper: bool) -> Any:
    if upper:
        out, ct = conj(transposed(out)), conj(transposed(ct))
    half = triangular_solve(out, hermitian_from_lower(transposed(out) @ ct), lower=True, transpose=True)
    return adjoint(triangular_solve(out, adjoint(half), lower=True, transpose=True)) / 2


cholesky = primitive(
    lambda a, *, upper=False: np.linalg.cholesky(a, upper=upper),
    name="linalg.cholesky",
    serves=(np.linalg.cholesky,),
    vjps={"a": _rule},
)

CHOLESKY = (cholesky,)
