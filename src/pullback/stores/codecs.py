"""Codecs: what is stored of an array in its place. They compose with every tier that takes one.

A codec that gives the bits back has ``lossy = False``. A lossy one is excluded from the promise of the same bits, and
what it does to the values is measured as it is used (``pull.report.stores``).
"""

import zlib
from typing import Any, ClassVar, Protocol, TypeAlias

import numpy as np
from attrs import field, frozen

from pullback.stores.buffers import bytes_of
from pullback.words.errors import PolicyError

Array: TypeAlias = np.ndarray[Any, Any]
_ASKED = ("encode", "decode", "lossy")


class Codec(Protocol):
    """Another form of arrays. Whoever writes one needs no base class."""

    lossy: ClassVar[bool]
    """Whether other bits may come back."""

    def encode(self, array: Array) -> Array:
        """What is stored of a C-contiguous array: an array of any shape and plain dtype. It may be the array itself."""

    def decode(self, stored: Array, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """An array of this shape and dtype, C-contiguous, from what was stored."""


def as_codec(value: Any) -> Any:
    """A codec, or None; raises :class:`PolicyError` for anything else."""
    if value is not None and (isinstance(value, type) or not all(hasattr(value, name) for name in _ASKED)):
        raise PolicyError(f"codec= takes a codec of pullback.stores, got {value!r}; for example codec=Zlib()")
    return value


def _as_float(value: Any) -> np.dtype[Any]:
    try:
        dtype: np.dtype[Any] = np.dtype(value)
    except TypeError:
        dtype = np.dtype(object)
    if dtype.kind != "f":
        raise PolicyError(f"AsType takes a floating dtype, got {value!r}; pass for example 'f4'")
    return dtype


@frozen
class AsType:
    """Floating and complex values in fewer bytes: ``AsType("f4")`` halves float64 and complex128. Lossy; other values,
    and those that would get no smaller, stay as they are. What overflows the smaller type becomes infinite."""

    dtype: np.dtype[Any] = field(converter=_as_float)
    lossy: ClassVar[bool] = True

    def encode(self, array: Array) -> Array:
        """The values rounded to the nearest of the smaller type."""
        smaller = np.result_type(self.dtype, np.complex64) if array.dtype.kind == "c" else self.dtype
        if array.dtype.kind not in "fc" or smaller.itemsize >= array.dtype.itemsize:
            return array
        with np.errstate(all="ignore"):
            return array.astype(smaller)

    def decode(self, stored: Array, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """The values in their own dtype again."""
        return stored.reshape(shape).astype(dtype, copy=False)


def _as_level(value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 9:
        raise PolicyError(f"Zlib takes a level from 0 to 9, got {value!r}; 1 is the fastest that compresses")
    return value


@frozen
class Zlib:
    """The bytes compressed by zlib, at ``level`` 1 (fast) to 9 (small). The same bits come back."""

    level: int = field(default=1, converter=_as_level)
    lossy: ClassVar[bool] = False

    def encode(self, array: Array) -> Array:
        """The compressed bytes. Bytes of one significance lie together before, as in HDF5's shuffle filter: floats of
        a field differ in their last bytes alone."""
        planes = np.ascontiguousarray(bytes_of(array).reshape(-1, array.itemsize).T)
        return np.frombuffer(zlib.compress(planes.data, self.level), np.uint8)

    def decode(self, stored: Array, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """The array again."""
        line = np.frombuffer(zlib.decompress(stored.data), np.uint8)
        return filled(line.reshape(dtype.itemsize, -1).T, shape, dtype)


def filled(line: Array, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """A new array with these bytes."""
    array = np.empty(shape, dtype)
    memory = bytes_of(array)
    memory.reshape(line.shape)[...] = line
    return array
