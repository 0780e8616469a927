"""Axes that a reduction takes away: the shape that keeps them, how many elements they hold, an index along one."""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from pullback.recording.handles import plain_value
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


def keep(value: Any, shape: Shape, axis: Axis) -> Any:
    """A reduced value with its axes kept, so that it broadcasts against an array of ``shape``."""
    return value.reshape(kept_shape(shape, axis))


def extent(x_spec: ArraySpec, out_spec: ArraySpec) -> int:
    """How many elements were reduced into each one of the output."""
    return x_spec.size // (out_spec.size or 1)


def count(where: Any, x_spec: ArraySpec, axis: Axis) -> Any:
    """How many elements ``where`` lets through to each one of the output, axes kept, in the dtype of ``x``, but of a
    float16, which ends at 65504, in float32."""
    seen = np.broadcast_to(where, x_spec.shape)
    return seen.sum(axis=axis, keepdims=True).astype(np.float32 if x_spec.dtype.char == "e" else x_spec.dtype)


def divided(ct: Any, n: int) -> Any:
    """``ct / n`` for a number of elements, which may be larger than any float16."""
    return (ct.astype(np.float32) / n).astype(ct.dtype) if ct.dtype.char == "e" else ct / n


def integral(dtype: Any) -> bool:
    """True where ``dtype=`` asks for a result without derivative: integers, booleans and the rest."""
    return dtype is not None and np.dtype(dtype).kind not in INEXACT


def as_loop_reads(a: Any, dtype: Any) -> Any:
    """``a`` as a ufunc's loop of ``dtype=`` reads it: cast to it, and plain where it leaves no derivative.

    A rule that reads the elements has to read these: a loop of reals sees no imaginary part, and one of float32 finds
    its maximum among rounded elements.
    """
    if dtype is None:
        return a
    a = a if hasattr(a, "dtype") else np.asarray(a)  # a list beside a traced ``out=``
    if a.dtype == dtype:
        return a
    return plain_value(a) if integral(dtype) else np.astype(a, dtype)


def cut(ndim: int, axis: int, part: Any) -> tuple[Any, ...]:
    """The index that takes ``part`` (a slice, a number, an array of them) along ``axis`` and all of the other axes."""
    return (*(slice(None),) * (axis % ndim), part)
