"""Words about arrays: their spec, and how a cotangent is brought back to the shape, dtype and realness of its
primal."""

from contextvars import ContextVar
from math import prod
from typing import Any, Final

import numpy as np
from attrs import field, frozen

INEXACT = frozenset("fc")
"""The dtype kinds that carry derivatives: floating and complex."""
LARGE: Final = 1 << 18
"""Bytes from which on a new array for a result costs more than looking whether an operand dies."""
_SPECS: dict[tuple[tuple[int, ...], Any], "ArraySpec"] = {}


def _as_dtype(given: Any) -> np.dtype[Any]:
    """The dtype that ``given`` means to NumPy; attrs reads this signature immediately, and takes 2 ms to make out that
    of the class."""
    dtype: np.dtype[Any] = np.dtype(given)
    return dtype


@frozen
class ArraySpec:
    """Shape and dtype of an array, without its bytes. ``nbytes`` is what a dense array of this spec occupies."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any] = field(converter=_as_dtype)
    large: bool = field(default=False, eq=False, repr=False, kw_only=True)
    """Whether a spec that is shared has so many bytes (``LARGE``)."""

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        n = 1
        for extent in self.shape:
            n *= extent
        return n

    @property
    def nbytes(self) -> int:
        """Bytes of a dense array of this spec."""
        return self.size * self.dtype.itemsize

    def __str__(self) -> str:
        return f"{self.dtype.name}[{','.join(map(str, self.shape))}]"


_OF_FLOAT = ArraySpec((), np.float64)


NEW_ARRAY: Final[ContextVar[Any]] = ContextVar("pullback_new_array", default=None)
"""What makes an array of a shape and a dtype where a program is planned from shapes alone; else None."""


def new_array(shape: tuple[int, ...], dtype: Any) -> Any:
    """An uninitialised array."""
    make = NEW_ARRAY.get()
    return np.empty(shape, dtype) if make is None else make(shape, dtype)


def new_zeros(shape: tuple[int, ...], dtype: Any) -> Any:
    """An array of zeros."""
    make = NEW_ARRAY.get()
    return np.zeros(shape, dtype) if make is None else make(shape, dtype)


def spec_of(value: Any) -> ArraySpec:
    """The spec of an array, NumPy scalar, Python number or handle."""
    if type(value) is float:
        return _OF_FLOAT
    if hasattr(value, "dtype"):
        return ArraySpec(tuple(value.shape), value.dtype)
    array = np.asarray(value)
    return ArraySpec(array.shape, array.dtype)


def shared_spec(value: Any) -> ArraySpec | None:
    """One :class:`ArraySpec` per shape and dtype; None for a value that is no array (an opaque factor)."""
    if type(value) is float:
        return _OF_FLOAT
    dtype = getattr(value, "dtype", None)
    if dtype is None or dtype.kind == "O" or not hasattr(value, "shape"):
        return spec_of(value) if isinstance(value, int | float | complex) else None
    key = (tuple(value.shape), dtype)
    spec = _SPECS.get(key)
    if spec is None:
        if len(_SPECS) > 10_000:
            _SPECS.clear()
        spec = _SPECS[key] = ArraySpec(*key, large=prod(key[0]) * dtype.itemsize >= LARGE)
    return spec


def fits(value: Any, spec: ArraySpec) -> bool:
    """True for a plain array of exactly this spec."""
    return type(value) is np.ndarray and value.shape == spec.shape and value.dtype is spec.dtype


def carries_derivative(value: Any) -> bool:
    """True for values of floating or complex dtype, Python ``float`` and ``complex`` included; False for
    integers, booleans and the rest."""
    if type(value) is float:
        return True
    dtype = getattr(value, "dtype", None)
    if dtype is None:
        return isinstance(value, float | complex)
    return bool(dtype.kind in INEXACT)


def native(value: Any) -> Any:
    """An array of another machine's byte order in that of this one, in which everything is computed; anything else
    as it is."""
    if not isinstance(value, np.ndarray) or value.dtype.isnative:
        return value
    return value.astype(value.dtype.newbyteorder("="))


def buffer_of(array: np.ndarray[Any, Any]) -> Any:
    """The object that owns the memory an array looks at: the last ``base`` of its chain. Ten views of one array have
    one buffer."""
    while array.base is not None:
        base: Any = array.base
        if not isinstance(base, np.ndarray):
            base = getattr(base, "base", None)  # what numpy.lib.stride_tricks puts between an array and a view of it
            if not isinstance(base, np.ndarray):
                break
        array = base
    return array
