"""Sparse systems by factors: spsolve, splu, factorized.

With x = a^-1 b and g = a^-T ct the cotangent of b is g, that of a is -g x^T, of which the entries at its nonzeros alone
are formed. A factor is no array: policies hold it, priced by its bytes, or make it again.
"""

from typing import Any

import numpy as np
from attrs import frozen
from scipy import sparse
from scipy.sparse import linalg

import pullback as pb
from pullback_scipy.mirroring import as_array, holds, lacking, primitive
from pullback_scipy.sparse_arrays.arrays import SparseArray, of_scipy, ours
from pullback_scipy.sparse_arrays.products import Made, rows_and_columns


def at_nonzeros(g: Any, x: Any, rows: Any, columns: Any) -> Any:
    """-g x^T at the nonzeros; of several right sides the sum."""
    product = g[rows] * x[columns]
    return -(np.sum(product, axis=1) if product.ndim == 2 else product)


# -------------------------------------------------------------------------------------------------------------- spsolve
def _spsolve(data: Any, b: Any, first: Any, second: Any, *, made: Made, transpose: bool, ordering: Any) -> Any:
    a = made.apart(data, (first, second))
    x = linalg.spsolve(a.T if transpose else a, b, permc_spec=ordering)
    return x.reshape(b.shape)


def _spsolve_rule(
    ct: Any, data: Any, first: Any, second: Any, out: Any, made: Made, transpose: bool, ordering: Any, needed: Any
) -> tuple[Any, Any]:
    g = solved(data, ct, first, second, made=made, transpose=not transpose, ordering=ordering)
    if "data" not in needed:
        return None, g
    rows, columns = rows_and_columns(made, first, second)
    return (at_nonzeros(out, g, rows, columns) if transpose else at_nonzeros(g, out, rows, columns)), g


solved = primitive(_spsolve, name="scipy.spsolve", nondiff=("first", "second"))
solved.vjp("data", "b", fn=_spsolve_rule)


def spsolve(A: Any, b: Any, permc_spec: Any = None, use_umfpack: bool = True) -> Any:
    """The solution of A x = b of a sparse matrix and dense right sides."""
    if not (isinstance(A, SparseArray) or holds(b)):
        return linalg.spsolve(A, b, permc_spec, use_umfpack)
    if sparse.issparse(b) or isinstance(b, SparseArray):
        raise pb.NotDifferentiableError("scipy.sparse.linalg.spsolve: b is sparse; give b.toarray()")
    A, b = ours(A), as_array(b)
    A = A if A.format in ("csr", "csc") else A.tocsc()
    column = b.ndim == 2 and b.shape[1] == 1
    return solved(A.data, b[:, 0] if column else b, *A.places, made=A.made, transpose=False, ordering=permc_spec)


spsolve.by = ("A", "b")  # type: ignore[attr-defined] # as of `mirror`


# -------------------------------------------------------------------------------------------------------------- factors
@frozen(eq=False)
class Factor:
    """The LU factors of a sparse matrix, and where its nonzeros are."""

    lu: Any
    rows: Any
    columns: Any


def factor_nbytes(factor: Factor) -> int:
    """A value and a row number for each nonzero of L and U, and the places."""
    return int(12 * factor.lu.nnz + factor.rows.nbytes + factor.columns.nbytes)


def _factorize(data: Any, first: Any, second: Any, *, made: Made, options: tuple[Any, ...]) -> Factor:
    rows, columns = rows_and_columns(made, first, second)
    return Factor(linalg.splu(made.apart(data, (first, second)), **dict(options)), rows, columns)


factorize = primitive(
    _factorize,
    name="scipy.splu",
    nondiff=("first", "second"),
    opaque={"out": factor_nbytes},
    vjps={"data": lambda ct: ct},  # what the solves send is already the cotangent of the nonzeros
)


def _substitute(factor: Factor, b: Any, *, trans: str) -> Any:
    return factor.lu.solve(b, trans)


def _substitute_rule(ct: Any, factor: Any, out: Any, trans: str, needed: Any) -> tuple[Any, Any]:
    g = substitute(factor, ct, trans="T" if trans == "N" else "N")
    where = pb.value(factor)
    left, right = (g, out) if trans == "N" else (out, g)
    return at_nonzeros(left, right, where.rows, where.columns) if "factor" in needed else None, g


substitute = primitive(_substitute, name="scipy.splu_solve", opaque={"factor": factor_nbytes})
substitute.vjp("factor", "b", fn=_substitute_rule)


@frozen(eq=False)
class SuperLU:
    """What :func:`splu` gives: the factor of a matrix, which solves."""

    factor: Any
    shape: tuple[int, ...]
    holds_tracer = True

    def solve(self, rhs: Any, trans: str = "N") -> Any:
        """The solution of A x = rhs, or of A^T x = rhs with ``trans="T"``."""
        if trans == "H":
            return np.conjugate(self.solve(np.conjugate(rhs), "T"))
        return substitute(self.factor, as_array(rhs), trans=trans)

    def __getattr__(self, name: str) -> Any:
        if name in ("L", "U"):
            raise lacking("scipy.sparse.linalg.splu", name)
        return getattr(pb.value(self.factor).lu, name)


@frozen(eq=False)
class PlainLU:
    """SciPy's factor of a plain matrix, which takes traced right sides."""

    plain: Any
    places: tuple[Any, Any]

    def solve(self, rhs: Any, trans: str = "N") -> Any:
        """As of :class:`SuperLU`."""
        if not holds(rhs):
            return self.plain.solve(rhs, trans)
        if trans == "H":
            return np.conjugate(self.solve(np.conjugate(rhs), "T"))
        return substitute(Factor(self.plain, *self.places), as_array(rhs), trans=trans)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.plain, name)


def splu(A: Any, permc_spec: Any = None, diag_pivot_thresh: Any = None, relax: Any = None, panel_size: Any = None,
         options: Any = None) -> Any:  # fmt: skip
    """The LU factors of a sparse matrix, traced or not; their ``solve`` takes traced right sides."""
    given = {"permc_spec": permc_spec, "diag_pivot_thresh": diag_pivot_thresh, "relax": relax,
             "panel_size": panel_size, "options": options}  # fmt: skip
    chosen = tuple((name, x) for name, x in given.items() if x is not None)
    if not isinstance(A, SparseArray):
        plain = of_scipy(A.tocoo())
        return PlainLU(linalg.splu(A, **dict(chosen)), plain.coords)
    A = A.tocsc()
    return SuperLU(factorize(A.data, *A.places, made=A.made, options=chosen), A.shape)


def factorized(A: Any) -> Any:
    """A function that solves with A, which is factored once."""
    return splu(A if isinstance(A, SparseArray) else sparse.csc_array(A)).solve


splu.by, factorized.by = ("A",), ("A",)  # type: ignore[attr-defined] # as of `mirror`
