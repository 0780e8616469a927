"""eigsh: some eigenvalues and vectors of a sparse symmetric matrix.

dw_i = v_i^T da v_i, and dv_i = (w_i - a)^+ da v_i, by a system that is bordered with v_i, which is regular where w_i is
simple (Magnus, "On differentiating eigenvalues and eigenvectors", 1985). The cotangent is symmetric.
"""

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import linalg

import pullback as pb
from pullback_scipy.mirroring import primitive
from pullback_scipy.sparse_arrays.arrays import SparseArray
from pullback_scipy.sparse_arrays.direct import spsolve
from pullback_scipy.sparse_arrays.products import Made, rows_and_columns


def _eigsh(data: Any, first: Any, second: Any, *, made: Made, options: tuple[Any, ...]) -> Any:
    return linalg.eigsh(made.apart(data, (first, second)), **dict(options))


def _bordered(data: Any, rows: Any, columns: Any, w: Any, v: Any, right: Any) -> Any:
    """The z with (w - a) z + v m = right and v^T z = 0."""
    n = v.shape[0]
    along, last = np.arange(n), np.full(n, n)
    places = (np.concatenate((rows, along, along, last)), np.concatenate((columns, along, last, along)))
    values = np.concatenate((-data, np.broadcast_to(w, (n,)), v, v))
    a = SparseArray(values, places, Made(sparse.coo_array, (n + 1, n + 1))).tocsc()
    return spsolve(a, np.concatenate((right, np.zeros(1, right.dtype))))[:n]


def _rule(ct: Any, data: Any, first: Any, second: Any, w: Any, v: Any, made: Made) -> Any:
    rows, columns = rows_and_columns(made, first, second)
    ct_w, ct_v = ct
    total: Any = np.zeros(data.shape, data.dtype)
    for k in range(w.shape[0]):
        u = v[:, k]
        if ct_w is not None:
            total = total + ct_w[k] * u[rows] * u[columns]
        if ct_v is not None:
            z = _bordered(data, rows, columns, w[k], u, ct_v[:, k])
            total = total + (z[rows] * u[columns] + u[rows] * z[columns]) / 2
    return total


pairs = primitive(_eigsh, name="scipy.eigsh", nondiff=("first", "second"), outputs=("w", "v"), vjps={"data": _rule})


def eigsh(A: Any, k: int = 6, **options: Any) -> Any:
    """The ``k`` eigenvalues and vectors that are asked for, of a real symmetric sparse matrix."""
    if not isinstance(A, SparseArray):
        return linalg.eigsh(A, k, **options)
    if A.dtype.kind == "c" or options.get("M") is not None or options.get("mode") == "buckling":
        raise pb.NotDifferentiableError(
            "scipy.sparse.linalg.eigsh has a derivative for real matrices, without M= and mode='buckling'; take "
            "np.linalg.eigh of A.toarray() for others"
        )
    with_vectors = options.pop("return_eigenvectors", True)
    # ARPACK begins with a random vector, unless it is given one: the same for every run.
    options.setdefault("v0", np.ones(A.shape[0]))
    A = A if A.format in ("csr", "csc") else A.tocsr()
    w, v = pairs(A.data, *A.places, made=A.made, options=(("k", k), *sorted(options.items())))
    if with_vectors:
        return w, v
    # Without vectors ARPACK gives the same values in another order.
    alone = linalg.eigsh(A.value, k, return_eigenvectors=False, **options)
    return w[np.argsort(pb.value(w))[np.argsort(np.argsort(alone))]]


eigsh.by = ("A",)  # type: ignore[attr-defined] # as of `mirror`
