"""Products of sparse arrays with traced nonzeros and arrays, and the sums of nonzeros that stand at one place."""

from typing import Any

import numpy as np
from attrs import frozen
from scipy import sparse

from pullback_scipy.mirroring import primitive


@frozen
class Made:
    """The sparse array of a class and a shape that consists of nonzeros and places it is called with."""

    kind: Any
    shape: tuple[int, ...]

    def __call__(self, data: Any, places: Any) -> Any:
        parts = (
            (data, tuple(places)) if issubclass(self.kind, sparse.coo_array | sparse.coo_matrix) else (data, *places)
        )
        return self.kind(parts, shape=self.shape)

    def apart(self, data: Any, places: Any) -> Any:
        """The same for a function of SciPy's that sorts what it is given in place: it shall not find our arrays."""
        made = self(data, places)
        return made if made.format == "coo" or made.has_canonical_format else made.copy()


# ----------------------------------------------------------------------------------------------------------- products
def _product(data: Any, x: Any, first: Any, second: Any, *, made: Made) -> Any:
    return made(data, (first, second)) @ x


def rows_and_columns(made: Made, first: Any, second: Any) -> tuple[Any, Any]:
    """Where each nonzero stands."""
    kind = made.kind.__name__[:3]
    if kind == "coo":
        return first, second
    counted = np.repeat(np.arange(len(second) - 1), np.diff(second))
    return (counted, first) if kind == "csr" else (first, counted)


def _in_each_row(products: Any) -> Any:
    """The sum over the columns of ``x``, for each nonzero; of a vector the products themselves."""
    return np.sum(products, axis=1) if products.ndim == 2 else products


def _product_rule(
    ct: Any, data: Any, x: Any, first: Any, second: Any, made: Made, needed: frozenset[str]
) -> tuple[Any, Any]:
    of_data, of_x = None, None
    if "data" in needed:
        rows, columns = rows_and_columns(made, first, second)
        of_data = _in_each_row(ct[rows] * x[columns])
    if "x" in needed:
        of_x = transposed_product(data, ct, first, second, made=made)
    return of_data, of_x


def _transposed(data: Any, x: Any, first: Any, second: Any, *, made: Made) -> Any:
    return made(data, (first, second)).T @ x


def _transposed_rule(
    ct: Any, data: Any, x: Any, first: Any, second: Any, made: Made, needed: frozenset[str]
) -> tuple[Any, Any]:
    of_data, of_x = None, None
    if "data" in needed:
        rows, columns = rows_and_columns(made, first, second)
        of_data = _in_each_row(ct[columns] * x[rows])
    if "x" in needed:
        of_x = product(data, ct, first, second, made=made)
    return of_data, of_x


BILINEAR: Any = {"bilinear": ("data", "x"), "nondiff": ("first", "second")}
product = primitive(_product, name="scipy.sparse_product", **BILINEAR)
product.vjp("data", "x", fn=_product_rule)
transposed_product = primitive(_transposed, name="scipy.sparse_transposed_product", **BILINEAR)
transposed_product.vjp("data", "x", fn=_transposed_rule)


# -------------------------------------------------------------------------------------------------- adding duplicates
def _added(data: Any, place: Any, *, n: int) -> Any:
    """The sums of the nonzeros that stand at one place."""
    total = np.zeros(n, data.dtype)
    np.add.at(total, place, data)
    return total


added = primitive(
    _added,
    name="scipy.sparse_sums",
    linear=("data",),
    nondiff=("place",),
    vjps={"data": lambda ct, place: ct[place]},
)
