"""Copies of plain arrays with the strides of the original, so that whoever reads them does so in the same order."""

from typing import Any

import numpy as np


def faithful_copy(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A copy that owns its memory and has the strides of the original, so that whatever reads it does so in the same
    order.

    A slice that spans more than four times its own bytes gets smaller strides, of the same signs and order, in which
    the same axes can be seen as one.
    """
    flags = array.flags
    if flags.c_contiguous or flags.f_contiguous:
        return array.copy(order="K")
    low, high = np.lib.array_utils.byte_bounds(array)
    if high - low > 4 * array.nbytes + 64:
        small = _compacted(array)
        small[...] = array
        return small
    memory = np.empty(high - low, np.uint8)
    address = array.__array_interface__["data"][0]
    copy: np.ndarray[Any, Any] = np.ndarray(array.shape, array.dtype, memory, address - low, array.strides)
    if 0 in array.strides:
        compact = tuple(slice(None) if step else slice(0, 1) for step in array.strides)
        copy[compact] = array[compact]
    else:
        copy[...] = array
    return copy


def _compacted(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """An array of the shape, dtype and kind of layout of another one, uninitialised, with gaps of one element for
    gaps of any size."""
    order = sorted(range(array.ndim), key=lambda k: abs(array.strides[k]))
    strides, step, before = [0] * array.ndim, array.itemsize, None
    for k in order:
        if array.shape[k] == 1 or not array.strides[k]:
            continue
        if before is None:
            gap = array.itemsize if abs(array.strides[k]) != array.itemsize else 0
        else:
            gap = step if abs(array.strides[k]) != abs(array.strides[before]) * array.shape[before] else 0
            step = abs(strides[before]) * array.shape[before]
            gap = array.itemsize if gap else 0
        step += gap
        strides[k] = step if array.strides[k] > 0 else -step
        before = k
    reach = [(n - 1) * s for n, s in zip(array.shape, strides, strict=True)]
    low, high = sum(r for r in reach if r < 0), sum(r for r in reach if r > 0)
    return np.ndarray(array.shape, array.dtype, np.empty(high - low + array.itemsize, np.uint8), -low, strides)
