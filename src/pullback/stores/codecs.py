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
    and those that would get no smaller, stay as they are. What overflows the smaller type becomes infinite.

    Parameters
    ----------
    dtype
        A floating type of NumPy's, or its name.

    Raises
    ------
    PolicyError
        Where ``dtype`` is no floating type.

    Example
    -------
    >>> import pullback as pb
    >>> pb.stores.Stored(pb.Binomial(3), memory=pb.stores.InMemory(AsType("f4"))).policy
    Binomial(3)
    """

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


def as_level(value: int) -> int:
    """A level of compression; raises :class:`PolicyError` for anything else."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 9:
        raise PolicyError(f"a codec takes a level from 0 to 9, got {value!r}; 1 is the fastest that compresses")
    return value


@frozen
class Zlib:
    """The bytes compressed by zlib, at ``level`` 1 (fast) to 9 (small). The same bits come back.

    Parameters
    ----------
    level
        From 0, which compresses nothing, to 9.

    Raises
    ------
    PolicyError
        Where ``level`` is another number.

    Example
    -------
    >>> import numpy as np
    >>> import pullback as pb
    >>> def f(x):
    ...     return np.sum(pb.fori_loop(0, 8, lambda k, u: np.sin(u), x))
    >>> x = np.linspace(0.0, 1.0, 100)
    >>> policy = pb.stores.Stored(pb.Binomial(3), memory=pb.stores.InMemory(Zlib()))
    >>> bool(np.all(pb.grad(f, policy=policy)(x) == pb.grad(f)(x)))
    True
    """

    level: int = field(default=1, converter=as_level)
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
