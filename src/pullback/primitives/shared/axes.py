"""Words about reduced axes: the shape that keeps them, and a cotangent spread back over them without a copy."""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from pullback.words.specs import INEXACT, ArraySpec

Axis = int | tuple[int, ...] | None
Shape = tuple[int, ...]
BACKWARDS = slice(None, None, -1)


@lru_cache(maxsize=1024)
def kept_shape(shape: Shape, axis: Axis) -> Shape:
    """``shape`` with 1 in the place of every reduced axis, as ``keepdims=True`` gives it; a 0-d array may be reduced
    along axis 0 or -1."""
    if not shape:
        return shape
    reduced = range(len(shape)) if axis is None else normalize_axis_tuple(axis, len(shape))
    return tuple(1 if k in reduced else n for k, n in enumerate(shape))


@lru_cache(maxsize=1024)
def _strides(shape: Shape, axis: Axis, itemsize: int) -> Shape:
    """Strides that show a dense array of the kept shape as one of ``shape``: 0 along every reduced axis."""
    strides, step = [], itemsize
    for n, kept in zip(reversed(shape), reversed(kept_shape(shape, axis)), strict=True):
        strides.append(step if n == kept else 0)
        step *= kept
    return tuple(reversed(strides))


def spread(ct: Any, shape: Shape, axis: Axis) -> Any:
    """A reduced value seen at ``shape`` again: a read-only view with stride 0 along the reduced axes, whatever
    ``keepdims`` was.

    Dense plain values skip np.broadcast_to, which costs 2-3 us on any size; the constructor costs 0.2 us.
    """
    if (type(ct) is np.ndarray and ct.flags.c_contiguous) or isinstance(ct, np.generic):
        view: Any = np.ndarray(shape, ct.dtype, ct, 0, _strides(shape, axis, ct.itemsize))
        view.setflags(write=False)
        return view
    return np.broadcast_to(ct.reshape(kept_shape(shape, axis)), shape)


def keep(value: Any, shape: Shape, axis: Axis) -> Any:
    """A reduced value with its axes kept, so that it broadcasts against an array of ``shape``."""
    return value.reshape(kept_shape(shape, axis))


def extent(x_spec: ArraySpec, out_spec: ArraySpec) -> int:
    """How many elements were reduced into each one of the output."""
    return x_spec.size // (out_spec.size or 1)


def count(where: Any, x_spec: ArraySpec, axis: Axis) -> Any:
    """How many elements ``where`` lets through to each one of the output, axes kept, in the dtype of ``x``."""
    seen = np.broadcast_to(where, x_spec.shape)
    return seen.sum(axis=axis, keepdims=True).astype(x_spec.dtype)


def integral(dtype: Any) -> bool:
    """True where ``dtype=`` asks for a result without derivative: integers, booleans and the rest."""
    return dtype is not None and np.dtype(dtype).kind not in INEXACT


def cut(ndim: int, axis: int, part: Any) -> tuple[Any, ...]:
    """The index that takes ``part`` (a slice, a number, an array of them) along ``axis`` and all of the other axes."""
    return (*(slice(None),) * (axis % ndim), part)
