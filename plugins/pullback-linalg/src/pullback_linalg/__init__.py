"""Linear algebra for pullback: products, einsum, solves, and all of numpy.linalg.

:data:`PRIMITIVES` is what the entry point hands over; importing registers nothing.
"""

from typing import Any

from pullback_linalg.chains import CHAINS
from pullback_linalg.cholesky import CHOLESKY
from pullback_linalg.condition import CONDITIONS
from pullback_linalg.contractions import CONTRACTIONS
from pullback_linalg.cross import CROSS
from pullback_linalg.determinants import DETERMINANTS
from pullback_linalg.eigen import EIGEN
from pullback_linalg.einsum import EINSUM
from pullback_linalg.inverse import INVERSES
from pullback_linalg.least_squares import LEAST_SQUARES
from pullback_linalg.norms import NORMS
from pullback_linalg.orthogonal import ORTHOGONAL
from pullback_linalg.products import PRODUCTS
from pullback_linalg.singular import SINGULAR
from pullback_linalg.solve import SOLVES
from pullback_linalg.sparse import SPARSE
from pullback_linalg.triangular import TRIANGULAR

PRIMITIVES: tuple[Any, ...] = (
    *PRODUCTS, *SPARSE, *CONTRACTIONS, *EINSUM, *CROSS, *CHAINS, *SOLVES, *INVERSES, *DETERMINANTS, *LEAST_SQUARES,
    *NORMS, *CONDITIONS,
    *TRIANGULAR, *CHOLESKY, *EIGEN, *SINGULAR, *ORTHOGONAL,
)  # fmt: skip

__all__ = ["PRIMITIVES"]
