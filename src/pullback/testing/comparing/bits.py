"""Comparison of bits, twins of arrays, and overwriting with values that show wherever they are read."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray


def twin(value: Any, *, writeable: bool | None = None) -> Any:
    """A copy in memory of its own with the same strides, so that whatever reads it takes the same path and rounds the
    same way.

    ``writeable`` None keeps the flag. Numbers and objects that are no arrays are returned as they are.
    """
    if not isinstance(value, np.ndarray):
        return value
    if value.size == 0 or value.dtype.hasobject:
        copy = np.array(value, order="K")
    else:
        low, high = np.lib.array_utils.byte_bounds(value)
        start = value.__array_interface__["data"][0] - low
        copy = np.ndarray(value.shape, value.dtype, np.zeros(high - low, np.uint8), start, value.strides)
        copy[...] = value
    copy.flags.writeable = value.flags.writeable if writeable is None else writeable
    return copy


def twins(values: tuple[Any, ...], *, writeable: bool | None = None) -> tuple[Any, ...]:
    """A twin of each, also inside tuples (the values of a family)."""
    return tuple(
        twins(v, writeable=writeable) if isinstance(v, tuple) else twin(v, writeable=writeable) for v in values
    )


def same_bits(a: Any, b: Any) -> bool:
    """True when both have the same dtype, shape and bytes; tuples element by element. What is no number is not
    compared."""
    if isinstance(a, tuple | list) and isinstance(b, tuple | list):
        return len(a) == len(b) and all(same_bits(x, y) for x, y in zip(a, b, strict=True))
    if a is None or b is None:
        return a is b
    x, y = np.asarray(a), np.asarray(b)
    if x.dtype.hasobject or y.dtype.hasobject:
        return True
    if x.dtype != y.dtype or x.shape != y.shape:
        return False
    if x.dtype.char in "gG":  # an extended number has padding bytes, which mean nothing
        return np.array_equal(x, y, equal_nan=True)
    return x.tobytes() == y.tobytes()


@contextmanager
def poisoned(arrays: Iterable[NDArray[Any]]) -> Iterator[None]:
    """Within the block arrays hold NaN (floating, complex) or the same values in another order (integers, booleans),
    read-only ones too; afterwards their own bytes again, since a forward may have returned what it keeps."""
    before = []
    try:
        for array in arrays:
            writeable, array.flags.writeable = array.flags.writeable, True
            before.append((array, array.copy(), writeable))
            array[...] = spoiled(array)
        yield
    finally:
        for array, content, writeable in reversed(before):
            array[...] = content
            array.flags.writeable = writeable


def spoiled(value: Any) -> Any:
    """What ``value`` is overwritten with: NaN, or integers and booleans in another order; None for what is no number.

    No other integer than those that are there: compiled code that takes them for places in memory, as LAPACK takes
    pivots, would write anywhere.
    """
    if isinstance(value, tuple):
        return tuple(spoiled(v) for v in value)
    array = np.asarray(value)
    if array.dtype.kind in "fc":
        return np.full_like(array, np.nan)
    if array.dtype.kind in "iub":
        return np.roll(array, 1)
    return None


@contextmanager
def overwritten(array: NDArray[Any]) -> Iterator[bool]:
    """Within the block a user's array holds NaN; afterwards its own bytes again. Yields False where it cannot be
    written."""
    if not array.flags.writeable or array.dtype.hasobject or array.dtype.kind not in "fciub":
        yield False
        return
    before = array.copy()
    try:
        array[...] = spoiled(array)
        yield True
    finally:
        array[...] = before


def describe(value: Any) -> str:
    """``float64[3,2]`` for arrays and numbers, the type's name for the rest; never the values of an array."""
    if value is None or isinstance(value, tuple | list | dict | str):
        return "None" if value is None else f"{type(value).__name__} of {len(value)}"
    array = np.asarray(value)
    if array.dtype.hasobject:
        return type(value).__name__
    return f"{array.dtype.name}[{','.join(map(str, array.shape))}]"
