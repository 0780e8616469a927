"""linalg.cholesky: a = l l^H, or a = u^H u with ``upper=True``.

NumPy reads one triangle of the matrix, and so does this: the other may hold anything, NaN included. The cotangent
follows the convention for functions of symmetric matrices: it is Hermitian, (s + s^H) / 2, the derivative along
Hermitian directions. Where the other triangle holds something else, as in a program that only fills one of them, the
whole cotangent stands in the triangle that is read.

l has a real positive diagonal, so there is no gauge. Where a is singular NumPy raises.
"""

from typing import Any

import numpy as np

import pullback as pb
from pullback_linalg.gauge import adjoint, is_whole, of_triangle
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
def _rule(ct: Any, out: Any, whole: Any, upper: bool) -> Any:
    lower, down = (conj(transposed(out)), conj(transposed(ct))) if upper else (out, ct)
    half = triangular_solve(lower, hermitian_from_lower(transposed(lower) @ down), lower=True, transpose=True)
    both = adjoint(triangular_solve(lower, adjoint(half), lower=True, transpose=True)) / 2
    return of_triangle(both, whole, lower=not upper)


def _rule_again(ct: Any, a: Any, upper: bool) -> Any:
    return _rule(ct, cholesky(a, upper=upper), is_whole(pb.value(a)), upper)


# Of the triangles one bool is kept. The second rule is for a derivative of the derivative, and gives the same bits.
cholesky = primitive(
    lambda a, *, upper=False: (np.linalg.cholesky(a, upper=upper), {"whole": is_whole(a)}),
    name="linalg.cholesky",
    serves=(np.linalg.cholesky,),
    residuals=("whole",),
)
cholesky.vjp("a", fn=_rule)
cholesky.vjp("a", fn=_rule_again)

CHOLESKY = (cholesky,)
