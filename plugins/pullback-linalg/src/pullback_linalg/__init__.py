"""Matrix products, einsum and linear solves for pullback.

:data:`PRIMITIVES` is what the entry point hands over; importing registers nothing.
"""

from typing import Any

from pullback_linalg.contractions import CONTRACTIONS
from pullback_linalg.einsum import EINSUM
from pullback_linalg.products import PRODUCTS
from pullback_linalg.solve import SOLVES

PRIMITIVES: tuple[Any, ...] = (*PRODUCTS, *CONTRACTIONS, *EINSUM, *SOLVES)

__all__ = ["PRIMITIVES"]
