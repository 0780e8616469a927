"""``scipy.sparse`` with derivatives: arrays whose nonzeros are traced; a name without one is SciPy's own."""

from scipy import sparse as scipy_sparse

from pullback_scipy.mirroring import fall_through
from pullback_scipy.sparse import linalg
from pullback_scipy.sparse_arrays import arrays
from pullback_scipy.sparse_arrays.makers import (
    block_array,
    block_diag,
    bmat,
    coo_array,
    coo_matrix,
    csc_array,
    csc_matrix,
    csr_array,
    csr_matrix,
    dia_array,
    dia_matrix,
    diags,
    diags_array,
    find,
    hstack,
    issparse,
    isspmatrix,
    isspmatrix_bsr,
    isspmatrix_coo,
    isspmatrix_csc,
    isspmatrix_csr,
    isspmatrix_dia,
    isspmatrix_dok,
    isspmatrix_lil,
    kron,
    kronsum,
    plain_or_refused,
    spdiags,
    tril,
    triu,
    vstack,
)
from pullback_scipy.sparse_arrays.writable import (
    dok_array,
    dok_matrix,
    lil_array,
    lil_matrix,
)

traced_sparse = arrays.ours
"""What core asks for where a traced number meets a plain sparse array."""
__getattr__, __dir__ = fall_through(scipy_sparse, globals(), plain_or_refused)
__all__ = [
    "block_array", "block_diag", "bmat", "coo_array", "coo_matrix", "csc_array", "csc_matrix", "csr_array",
    "csr_matrix", "dia_array", "dia_matrix", "diags", "diags_array", "dok_array", "dok_matrix", "find", "hstack",
    "issparse", "isspmatrix", "isspmatrix_bsr", "isspmatrix_coo", "isspmatrix_csc", "isspmatrix_csr", "isspmatrix_dia",
    "isspmatrix_dok", "isspmatrix_lil", "kron", "kronsum", "lil_array", "lil_matrix", "linalg", "spdiags", "tril",
    "triu", "vstack",
]  # fmt: skip
