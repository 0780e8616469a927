"""Codecs of libraries that few need: imported when the first array is stored, installed by an extra."""

from typing import Any, ClassVar, Final

import numpy as np
from attrs import field, frozen

from pullback.stores.buffers import bytes_of
from pullback.stores.codecs import Array, as_level, filled
from pullback.words.errors import PolicyError
from pullback.words.optional_libraries import optional_library

OF_BLOSC2: Final = ("blosclz", "lz4", "lz4hc", "zlib", "zstd")


def _as_codec_of_blosc2(value: str) -> str:
    if value not in OF_BLOSC2:
        raise PolicyError(
            f"Blosc2 takes one of the codecs {', '.join(OF_BLOSC2)}, got {value!r}; 'zstd' is the default"
        )
    return value


@frozen
class Blosc2:
    """The bytes compressed by Blosc2, with its shuffle filter: faster than :class:`Zlib`. The same bits come back.
    Needs ``pullback[blosc2]``.

    Parameters
    ----------
    level
        From 0 to 9.
    codec
        The name of one of Blosc2's.

    Raises
    ------
    PolicyError
        Where one of them is another.

    Example
    -------
    >>> Blosc2(level=3)  # doctest: +SKIP
    Blosc2(level=3, codec='zstd')
    """

    level: int = field(default=5, converter=as_level)
    codec: str = field(default="zstd", converter=_as_codec_of_blosc2)
    lossy: ClassVar[bool] = False

    def encode(self, array: Array) -> Array:
        """The compressed bytes."""
        blosc2 = self._library()
        kind = getattr(blosc2.Codec, self.codec.upper())
        packed = blosc2.compress2(bytes_of(array), typesize=array.itemsize, clevel=self.level, codec=kind)
        return np.frombuffer(packed, np.uint8)

    def decode(self, stored: Array, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """The array again."""
        return filled(np.frombuffer(self._library().decompress2(stored.tobytes()), np.uint8), shape, dtype)

    def _library(self) -> Any:
        return optional_library("blosc2", "the codec Blosc2 needs the library blosc2", extra="blosc2")


def _as_tolerance(value: float | None) -> float | None:
    if value is not None and not (isinstance(value, int | float) and 0 < value < float("inf")):
        raise PolicyError(f"Zfp takes a positive tolerance, got {value!r}; None stores the same bits")
    return value


@frozen
class Zfp:
    """Floating values compressed by zfp to within an absolute ``tolerance``, in up to four dimensions. Lossy; None is
    zfp's lossless mode. Other values stay as they are. Needs ``pullback[zfp]``.

    Parameters
    ----------
    tolerance
        The largest error of a value; None: none.

    Raises
    ------
    PolicyError
        Where ``tolerance`` is not positive.

    Example
    -------
    >>> Zfp(tolerance=1e-6)  # doctest: +SKIP
    Zfp(tolerance=1e-06)
    """

    tolerance: float | None = field(default=None, converter=_as_tolerance)

    @property
    def lossy(self) -> bool:
        """Whether other bits may come back."""
        return self.tolerance is not None

    def encode(self, array: Array) -> Array:
        """The compressed bytes."""
        zfpy = self._library()
        taken = array.dtype.char in "fd" and array.dtype.isnative and 1 <= array.ndim <= 4
        if not taken or (self.lossy and not np.isfinite(array).all()):  # which zfp would spread
            return array
        packed = zfpy.compress_numpy(array, tolerance=-1 if self.tolerance is None else self.tolerance)
        return np.frombuffer(packed, np.uint8)

    def decode(self, stored: Array, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """The array again."""
        if stored.dtype == dtype:
            return stored.reshape(shape)
        found: Array = self._library().decompress_numpy(stored.tobytes())
        return np.ascontiguousarray(found.reshape(shape))

    def _library(self) -> Any:
        return optional_library("zfpy", "the codec Zfp needs the library zfpy", extra="zfp")
