"""Groups in a sparse pattern, by SciPy: columns that share one derivative, equations that are coupled."""

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pullback.words.optional_libraries import optional_library
from pullback.words.undocumented import column_groups


def sparse_library() -> Any:
    """``scipy.sparse``; ``PullbackError`` names the extra where SciPy is missing."""
    return optional_library("scipy.sparse", "sparse Jacobians and dependencies use scipy.sparse")


def groups_of_columns(pattern: Any) -> NDArray[np.int64]:
    """The group of each column of a sparse pattern: no row has entries in two columns of one group.

    Sequential colouring of the column intersection graph (Curtis, Powell and Reid, IMA J. Appl. Math. 13, 1974; Coleman
    and More, SIAM J. Numer. Anal. 20, 1983), by SciPy, in the columns' own order and with the fullest columns first:
    whichever takes fewer groups.
    """
    sparse_library()
    n = pattern.shape[1]
    if not n or not pattern.nnz:
        return np.zeros(n, np.int64)
    counts = np.bincount(pattern.indices, minlength=n) if pattern.format == "csr" else np.diff(pattern.indptr)
    plain = import_module("scipy.sparse").csr_matrix(pattern)
    groups: NDArray[np.int64] = column_groups(import_module, plain, (np.arange(n), np.argsort(-counts, kind="stable")))
    return groups


def coupled(structure: Any, n: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The group of each equation and of each unknown of a square system. Equations and unknowns of one group are
    coupled, directly or by way of others; those of two groups are not.

    ``structure`` is the pair (rows, columns) of the entries. Rows may be None: then ``columns`` names the one unknown
    of each equation, -1 for none. None in the place of the pair means that nothing is known, and all are coupled.
    """
    if structure is None:
        return np.zeros(n, np.int64), np.zeros(n, np.int64)
    rows, columns = structure
    if rows is None:
        rows, columns = np.flatnonzero(columns >= 0), columns[columns >= 0]
    graph = sparse_library().coo_array((np.ones(len(rows), bool), (rows, columns + n)), shape=(2 * n, 2 * n))
    _, groups = import_module("scipy.sparse.csgraph").connected_components(graph, directed=False)
    return groups[:n].astype(np.int64), groups[n:].astype(np.int64)
