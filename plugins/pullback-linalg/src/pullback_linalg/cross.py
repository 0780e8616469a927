"""cross: the vector product.

With out = x x y along the last axis the cotangents are y x ct and ct x x. A vector of two numbers, which NumPy 2 still
takes with a warning, has 0 for its third; of two such vectors the product is the third component alone.
"""

from typing import Any

import numpy as np

import pullback as pb
from pullback_linalg.products import as_array, product

Components = tuple[Any, Any, Any]
"""The components of a vector; None for one that is 0 because it is not there, so that nothing is multiplied with it."""


def _split(v: Any) -> Components:
    return v[..., 0], v[..., 1], v[..., 2] if v.shape[-1] == 3 else None


def _minor(p: Any, q: Any, r: Any, s: Any) -> Any:
    """The difference p q - r s."""
    first = None if p is None or q is None else p * q
    second = None if r is None or s is None else r * s
    return first if second is None else -second if first is None else first - second


def _turned(u: Components, v: Components, count: int) -> Any:
    """The first ``count`` components of u x v."""
    pairs = ((1, 2), (2, 0), (0, 1))[:count]
    return np.stack([_minor(u[i], v[j], u[j], v[i]) for i, j in pairs], axis=-1)


def _seed(ct: Any, x_spec: Any, y_spec: Any) -> Components:
    return (None, None, ct) if x_spec.shape[-1] == y_spec.shape[-1] == 2 else _split(ct)


def _left(ct: Any, y: Any, x_spec: Any, y_spec: Any) -> Any:
    if x_spec.shape[-1] == y_spec.shape[-1] == 3:
        return np.cross(y, ct)
    return _turned(_split(y), _seed(ct, x_spec, y_spec), x_spec.shape[-1])


def _right(ct: Any, x: Any, x_spec: Any, y_spec: Any) -> Any:
    if x_spec.shape[-1] == y_spec.shape[-1] == 3:
        return np.cross(ct, x)
    return _turned(_seed(ct, x_spec, y_spec), _split(x), y_spec.shape[-1])


cross = product(np.cross, x=_left, y=_right)


@pb.composite(np.cross, name="cross")
def np_cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Any:
    """numpy.cross: the vectors stand along ``axisa`` and ``axisb``, those of the result along ``axisc``."""
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = as_array(a), as_array(b)
    if not a.ndim or not b.ndim:
        raise ValueError("At least one array has zero dimension")
    a, b = np.moveaxis(a, axisa, -1), np.moveaxis(b, axisb, -1)
    out = cross(a, b)
    return out if a.shape[-1] == b.shape[-1] == 2 else np.moveaxis(out, -1, axisc)


@pb.composite(np.linalg.cross, name="linalg.cross")
def linalg_cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """numpy.linalg.cross: of vectors of three numbers only."""
    x1, x2 = as_array(x1), as_array(x2)
    if x1.shape[axis] != 3 or x2.shape[axis] != 3:
        message = (
            f"linalg.cross takes vectors of 3 numbers, got {x1.shape[axis]} and {x2.shape[axis]} along axis "
            f"{axis}; use numpy.cross"
        )
        raise ValueError(message)
    return np_cross(x1, x2, axis=axis)


CROSS = (cross, np_cross, linalg_cross)
