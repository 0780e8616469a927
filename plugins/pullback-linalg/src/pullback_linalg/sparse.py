"""Products of a SciPy sparse array or matrix with a traced array: ``A @ x``, ``A.dot(x)`` and ``x @ A``.

SciPy computes them, in the format that the user has chosen, so the bits are those of the plain product. The matrix is a
constant. It is recorded as the arrays that it consists of, which are copied as every plain array is, since the user may
change them.
"""

from functools import lru_cache
from typing import Any

import numpy as np
from attrs import frozen

from pullback_linalg.unguarded import primitive

COMPRESSED = ("data", "indices", "indptr")
PARTS = {
    "csr": COMPRESSED,
    "csc": COMPRESSED,
    "bsr": COMPRESSED,
    "dia": ("data", "offsets"),
    "coo": ("data", "row", "col"),
}
"""The arrays that a format consists of. The others are multiplied by way of csr, as SciPy itself does it."""


def is_sparse(x: Any) -> bool:
    """Whether ``x`` is a SciPy sparse array or matrix. SciPy is not imported for the question."""
    kind: Any = type(x)
    return _is_sparse_type(kind)


@lru_cache(512)
def _is_sparse_type(kind: Any) -> bool:
    return hasattr(kind, "tocsr")


def _product(x: Any, *parts: Any, made: Any) -> Any:
    """A x, for an array ``x`` of one or two axes, where ``made(parts)`` is A."""
    return made(parts) @ x


def _transposed_product(ct: Any, parts: Any, made: Any) -> Any:
    return made(parts).T @ ct


sparse_product: Any = primitive(
    _product, name="sparse_product", linear=("x",), nondiff=("parts",), vjps={"x": _transposed_product}
)  # fmt: skip


@frozen
class Made:
    """The sparse array of a class, a format and a shape that consists of the arrays it is called with."""

    kind: Any
    format: str
    shape: tuple[int, ...]

    def __call__(self, parts: Any) -> Any:
        data, *places = parts
        return self.kind((data, tuple(places)) if self.format == "coo" else tuple(parts), shape=self.shape)


def sparse_matmul(left: Any, right: Any) -> Any:
    """``left @ right``, where one of them is sparse and the other is traced."""
    if getattr(type(right), "holds_tracer", False):
        return right.__rmatmul__(left)  # one of another plugin, with traced nonzeros
    if not is_sparse(left):
        return np.transpose(sparse_matmul(right.T, np.transpose(left)))  # as SciPy computes it
    if left.ndim != 2:
        return np.matmul(left.toarray(), right)
    known = left if left.format in PARTS else left.tocsr()
    parts = (getattr(known, name) for name in PARTS[known.format])
    return sparse_product(right, *parts, made=Made(type(known), known.format, known.shape))


SPARSE = (sparse_product,)
