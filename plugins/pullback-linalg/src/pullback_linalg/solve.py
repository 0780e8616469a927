"""linalg.solve: the factorisation is made once, kept as a residual, and read by every pull.

With ``out = a^-1 b`` and g = a^-T ct: the cotangent of b is g, that of a is -g out^T (Giles, "Collected matrix
derivative results", 2008, section 2.3.1), without conjugation. The values are always those of ``np.linalg.solve``, bit
for bit, so that a loop's plain and recorded steps agree. NumPy does not hand out the factors that it makes, so what is
kept is made beside it:

* with SciPy, :data:`solve_kept`: LAPACK's getrf of the matrix, whose factors the rules substitute into (getrs);
* with NumPy alone, :data:`solve_again`: nothing is kept but the matrix, and each pull solves with its transpose.

Measured in one thread for n = 1000, in ms: solve 21, getrf 19, getrs 0.14, inv 80. So one gradient costs the same
either way, every further pull of the same record 0.14 instead of 21; an inverse, the only factor NumPy alone could
keep, would cost four solves in every forward. A matrix that stays the same through a loop is factored in every step, as
NumPy does too: factor it once, outside, as docs/wrap-a-solver.md shows.
"""

from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

import pullback as pb
from pullback_linalg.products import as_array, transposed
from pullback_linalg.unguarded import primitive

HAS_SCIPY = find_spec("scipy") is not None


# -------------------------------------------------------------------------------------------------------------- factors
def factor(a: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """(lu, piv) of every matrix in the stack ``a``, as LAPACK's getrf packs them; each lu in Fortran order: getrs
    copies nothing."""
    # SciPy is optional, and 50 ms of import for who only multiplies.
    from scipy.linalg.lapack import get_lapack_funcs  # noqa: PLC0415

    getrf = get_lapack_funcs("getrf", (a,))
    if a.ndim == 2 and a.size:
        lu, piv, _ = getrf(a)
        return lu, piv
    lu = transposed(np.empty((*a.shape[:-2], a.shape[-1], a.shape[-2]), a.dtype))
    piv = np.empty(a.shape[:-1], np.int32)
    for place in np.ndindex(a.shape[:-2]):
        if a.size:
            lu[place], piv[place], _ = getrf(a[place])
    return lu, piv


def _substitute(lu: NDArray[Any], piv: NDArray[Any], b: NDArray[Any], *, transpose: bool) -> NDArray[Any]:
    from scipy.linalg.lapack import get_lapack_funcs  # noqa: PLC0415 - as above

    batch = np.broadcast_shapes(lu.shape[:-2], b.shape[:-2])
    x: NDArray[Any] = np.empty((*batch, *b.shape[-2:]), np.result_type(lu, b))
    if x.size == 0:
        return x
    if piv.min() < 0 or piv.max() >= piv.shape[-1]:  # getrs would swap rows outside the array
        raise ValueError(
            f"pivots from {piv.min()} to {piv.max()} do not belong to a matrix of {piv.shape[-1]} rows; pass the piv "
            "that factor() gave"
        )
    getrs = get_lapack_funcs("getrs", (lu, b))
    if not batch:
        x, _ = getrs(lu, piv, b, trans=int(transpose))
        return np.asarray(x)
    factors, pivots = np.broadcast_to(lu, (*batch, *lu.shape[-2:])), np.broadcast_to(piv, (*batch, piv.shape[-1]))
    right = np.broadcast_to(b, x.shape)
    for place in np.ndindex(batch):
        x[place], _ = getrs(factors[place], pivots[place], right[place], trans=int(transpose))
    return x


substitute: pb.Primitive = primitive(
    _substitute,
    name="solve_substitute",
    nondiff=("lu", "piv"),
    vjps={"b": lambda ct, lu, piv, transpose: substitute(lu, piv, ct, transpose=not transpose)},
)


# ---------------------------------------------------------------------------------------------------------------- solve
def _product(left: Any, right: Any, a_spec: Any) -> Any:
    """The product left right^T, summed over the batch at once where there is a single matrix."""
    if a_spec.ndim == 2 < left.ndim:
        summed = (*range(left.ndim - 2), left.ndim - 1)
        return np.tensordot(left, right, (summed, summed))
    if left.shape[-1] == 1:  # twice as fast as a GEMM over one column
        return left * transposed(right)
    return left @ transposed(right)


def _cotangents(g: Any, x: Any, a_spec: Any, transpose: bool) -> tuple[Any, Any]:
    """Those of a and b; of a None where x is not given."""
    if x is None:
        return None, g
    return _product(-x, g, a_spec) if transpose else _product(-g, x, a_spec), g


def _solve_by_factors(
    a: NDArray[Any], b: NDArray[Any], *, transpose: bool
) -> tuple[NDArray[Any], dict[str, NDArray[Any]]]:
    """The solution of ``a x = b``, or of ``a^T x = b``, by substitution into the factors of a, and these."""
    lu, piv = factor(a.astype(np.result_type(a, b), copy=False))
    return _substitute(lu, piv, b, transpose=transpose), {"lu": lu, "piv": piv}


def _solve(a: NDArray[Any], b: NDArray[Any]) -> tuple[NDArray[Any], dict[str, NDArray[Any]]]:
    """NumPy's solution of ``a x = b``, and the factors of a."""
    x = np.linalg.solve(a, b)
    lu, piv = factor(a.astype(x.dtype, copy=False))
    return x, {"lu": lu, "piv": piv}


def _factors_rule(
    ct: Any, lu: Any, piv: Any, out: Any, a_spec: Any, transpose: bool, needed: frozenset[str]
) -> tuple[Any, Any]:
    g = substitute(lu, piv, ct, transpose=not transpose)
    return _cotangents(g, out if "a" in needed else None, a_spec, transpose)


def _factors_rule_again(
    ct: Any, a: Any, b: Any, a_spec: Any, transpose: bool, needed: frozenset[str]
) -> tuple[Any, Any]:
    g = solve_by_factors(a, ct, transpose=not transpose)
    return _cotangents(g, solve_by_factors(a, b, transpose=transpose) if "a" in needed else None, a_spec, transpose)


def _solve_rule(ct: Any, lu: Any, piv: Any, out: Any, a_spec: Any, needed: frozenset[str]) -> tuple[Any, Any]:
    return _cotangents(substitute(lu, piv, ct, transpose=True), out if "a" in needed else None, a_spec, transpose=False)


def _solve_rule_again(ct: Any, a: Any, b: Any, a_spec: Any, needed: frozenset[str]) -> tuple[Any, Any]:
    g = solve_by_factors(a, ct, transpose=True)
    return _cotangents(g, solve_kept(a, b) if "a" in needed else None, a_spec, transpose=False)


def _from_transpose(ct: Any, a: Any, out: Any, a_spec: Any, needed: frozenset[str]) -> tuple[Any, Any]:
    return _cotangents(np.linalg.solve(transposed(a), ct), out if "a" in needed else None, a_spec, transpose=False)


# The first two have two rules each. One reads the factors; the other is for a derivative of the derivative: it is
# written with the matrix, on which the factors depend. Both give the same bits.
solve_by_factors = primitive(_solve_by_factors, name="solve_by_factors", residuals=("lu", "piv"))
solve_by_factors.vjp("a", "b", fn=_factors_rule)
solve_by_factors.vjp("a", "b", fn=_factors_rule_again)
solve_kept = primitive(_solve, name="solve_kept", residuals=("lu", "piv"))
solve_kept.vjp("a", "b", fn=_solve_rule)
solve_kept.vjp("a", "b", fn=_solve_rule_again)
solve_again = primitive(np.linalg.solve, name="solve_again", operands=("a", "b"))
solve_again.vjp("a", "b", fn=_from_transpose)


@pb.composite(np.linalg.solve, name="linalg.solve")
def np_solve(a: Any, b: Any) -> Any:
    """numpy.linalg.solve: a right-hand side of one axis is a vector, of more a stack of matrices."""
    a, b = as_array(a), as_array(b)
    if b.ndim == 1:
        return np_solve(a, b[:, None])[..., 0]
    return solve_kept(a, b) if HAS_SCIPY else solve_again(a, b)


SOLVES = (substitute, solve_by_factors, solve_kept, solve_again, np_solve)
