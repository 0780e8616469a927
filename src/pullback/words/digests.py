"""Digests and comparisons of content: whether an array still holds the bits that it held, whether two hold the same.

Bits are compared, never values: 0.0 and -0.0 differ, and so do NaNs of other payloads.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from xxhash import xxh3_64_intdigest, xxh3_128_digest

_LONG = np.dtype(np.longdouble)
_LONG_BYTES = 10 if np.finfo(_LONG).nmant == 63 else _LONG.itemsize
"""The bytes of a long double that hold its value; what pads an 80-bit one to 16 bytes is arbitrary."""

FEW = 32_768
"""Bytes up to which two copies are compared sooner than the elements."""
_OTHERS = "OgG"
"""Kinds of arrays whose bits are not their memory."""
_NUMBERS = frozenset("?bBhHiIlLqQefdFDmM")
"""Kinds of arrays without anything in their memory but their bits."""
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
"""Where an object lies, in the text that Python gives of one."""


def digest(value: Any) -> bytes:
    """A hash of the bits of a value, with its shape, strides and dtype (byte order included): XXH3, 128 bits.

    An array without gaps is hashed where it lies, any other in a copy. A scalar of NumPy's has dtype and bits; anything
    else is told by its text, without addresses, for an opaque value that is made again is another object. Source of the
    hash: https://github.com/Cyan4973/xxHash, by the package xxhash.
    """
    if not isinstance(value, np.ndarray | np.generic):
        return f"{type(value).__name__} {_ADDRESS.sub('', repr(value))}".encode()
    if hasattr(value, "__pullback_hollow__"):
        return f"{value!r}".encode()  # without values, which nothing can change
    value = np.asarray(value)  # a memory map, too, is its bytes
    dense = value if value.flags.c_contiguous else value.T if value.flags.f_contiguous else np.ascontiguousarray(value)
    return _kind_of(value.shape, value.strides, value.dtype) + xxh3_128_digest(_bytes_of(dense))


def is_memory(dtype: np.dtype[Any]) -> bool:
    """Whether the bits of such an array are its memory."""
    return dtype.char not in _OTHERS


hash_of_dense: Callable[[Any], int] = xxh3_64_intdigest
"""The function of which :func:`short_digest` gives the value for a C-contiguous array whose bits are its memory."""


@lru_cache(maxsize=256)
def _kind_of(shape: tuple[int, ...], strides: tuple[int, ...], dtype: Any) -> bytes:
    kind = dtype.str if dtype.names is None else str(dtype.descr)
    steps = [step for step, n in zip(strides, shape, strict=True) if n > 1]  # of one element there is none
    return f"{shape}{steps}{kind}".encode()


def short_digest(value: Any) -> int:
    """64 bits of such a hash, for what is compared with one value that is known to have the same spec. Python's
    numbers are NumPy's."""
    if type(value) is np.ndarray and value.flags.c_contiguous and value.dtype.char not in _OTHERS:
        return hash_of_dense(value)
    if isinstance(value, int | float | complex | np.generic):
        array = np.asarray(value)
        if array.dtype.char not in _OTHERS:  # an int of more than 64 bits is an object
            return xxh3_64_intdigest(array.tobytes())
    return xxh3_64_intdigest(digest(value))


def same_bits(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    """True when two arrays of one shape and dtype hold the same bits, whatever their strides."""
    if a.nbytes <= FEW and ((same := a.tobytes() == b.tobytes()) or a.dtype.char in _NUMBERS):
        return same
    kind, size = a.dtype.kind, a.dtype.itemsize
    if kind == "c" and size == 16:
        return same_bits(a.real, b.real) and same_bits(a.imag, b.imag)
    if size in (1, 2, 4, 8) and kind in "fiubcmM":
        word = f"u{size}"
        return bool((a.view(word) == b.view(word)).all())
    return bytes(_bytes_of(np.ascontiguousarray(a))) == bytes(_bytes_of(np.ascontiguousarray(b)))


def _bytes_of(dense: np.ndarray[Any, Any]) -> Any:
    """The bytes that hold the values of a C-contiguous array; of an array of objects their addresses."""
    if dense.dtype.hasobject:
        return dense.tobytes()
    line = dense.reshape(-1).view(np.uint8)
    if dense.dtype.char in "gG":
        line = np.ascontiguousarray(line.reshape(-1, _LONG.itemsize)[:, :_LONG_BYTES])
    return line
