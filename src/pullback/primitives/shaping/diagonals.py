"""Diagonals and triangles: diag, diagonal, tril, triu. All are linear and save nothing."""

from typing import Any

import numpy as np

from pullback.primitives.shared.axes import Shape
from pullback.rules.declaration import Composite, Primitive, composite, primitive

diagonal = primitive(
    lambda x, *, offset, axis1, axis2: np.diagonal(x, offset, axis1, axis2),
    name="view_diagonal",
    view=True,
    linear=("x",),
    vjps={
        "x": lambda ct, x_spec, offset, axis1, axis2: place_diagonal(
            ct, shape=x_spec.shape, offset=offset, axis1=axis1, axis2=axis2
        )
    },
)


def _place_diagonal(x: Any, *, shape: Shape, offset: int, axis1: int, axis2: int) -> Any:
    """Zeros of ``shape`` with ``x`` on a diagonal: the transpose of :data:`diagonal`."""
    placed = np.zeros(shape, x.dtype)
    view = np.diagonal(placed, offset, axis1, axis2)
    view.setflags(
        write=True
    )  # NumPy hands diagonals out read-only by convention, not because they could not be written
    view[...] = x
    return placed


place_diagonal: Primitive = primitive(
    _place_diagonal,
    name="place_diagonal",
    linear=("x",),
    vjps={"x": np.diagonal},
)
tril = primitive(lambda x, *, k: np.tril(x, k), name="lower_triangle", linear=("x",), vjps={"x": np.tril})
triu = primitive(lambda x, *, k: np.triu(x, k), name="upper_triangle", linear=("x",), vjps={"x": np.triu})


@composite(np.diagonal, name="diagonal")
def np_diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """numpy.diagonal."""
    return diagonal(a, offset=offset, axis1=axis1, axis2=axis2)


@composite(np.linalg.diagonal, name="linalg.diagonal")
def linalg_diagonal(x: Any, /, *, offset: int = 0) -> Any:
    """numpy.linalg.diagonal."""
    return diagonal(x, offset=offset, axis1=-2, axis2=-1)


@composite(np.diag)
def diag(v: Any, k: int = 0) -> Any:
    """numpy.diag: a matrix from its diagonal, or the diagonal of a matrix."""
    if v.ndim == 1:
        n = v.shape[0] + abs(k)
        return place_diagonal(v, shape=(n, n), offset=k, axis1=0, axis2=1)
    if v.ndim == 2:
        return diagonal(v, offset=k, axis1=0, axis2=1)
    raise ValueError(f"diag takes an array of 1 or 2 axes, not {v.ndim}")


@composite(np.diagflat)
def diagflat(v: Any, k: int = 0) -> Any:
    """numpy.diagflat."""
    return np.diag(np.ravel(v), k)


@composite(np.tril, name="tril")
def np_tril(m: Any, k: int = 0) -> Any:
    """numpy.tril."""
    return tril(m, k=k)


@composite(np.triu, name="triu")
def np_triu(m: Any, k: int = 0) -> Any:
    """numpy.triu."""
    return triu(m, k=k)


DIAGONALS: tuple[Primitive | Composite, ...] = (
    diagonal, place_diagonal, tril, triu, np_diagonal, linalg_diagonal, diag, diagflat, np_tril, np_triu,
)  # fmt: skip
