"""``scipy.sparse.linalg`` with derivatives; a name without one is SciPy's own."""

from scipy.sparse import linalg

from pullback_scipy.mirroring import fall_through
from pullback_scipy.sparse_arrays.direct import factorized, splu, spsolve
from pullback_scipy.sparse_arrays.iterative import (
    LinearOperator,
    aslinearoperator,
    bicg,
    bicgstab,
    cg,
    cgs,
    gcrotmk,
    gmres,
    lgmres,
    minres,
    tfqmr,
)
from pullback_scipy.sparse_arrays.makers import plain_or_refused
from pullback_scipy.sparse_arrays.spectra import eigsh

__getattr__, __dir__ = fall_through(linalg, globals(), plain_or_refused)
__all__ = [
    "LinearOperator", "aslinearoperator", "bicg", "bicgstab", "cg", "cgs", "eigsh", "factorized", "gcrotmk", "gmres",
    "lgmres", "minres", "splu", "spsolve", "tfqmr",
]  # fmt: skip
