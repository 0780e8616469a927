"""Operands that are no plain arrays: each is turned into one at the call, or refused by name with what to write.

Whatever a trace computes with is a plain array or a number. A subclass of ndarray that only stores differently (a
memory map) is its numbers. A class with an arithmetic of its own (a masked array, a Series that aligns by its index, a
quantity with a unit) would compute something else than the numbers alone, and its rules something else again: it is
refused.
"""

import numbers
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np

from pullback.words.call_sites import site_here, site_text
from pullback.words.errors import NotDifferentiableError

ORDINARY: Final = frozenset((np.ndarray, float, int, bool, complex, str, type(None), slice, np.float64, np.float32))
"""Types of which nothing need be asked."""
UNKNOWN: Final = "unknown"
"""No array: whoever gets it knows what it is."""
ARRAY_LIKE: Final = "array-like"
"""Something that gives its numbers, and has no arithmetic of its own."""
SEQUENCE: Final = "sequence"
"""A list by another name; tracers may be in it."""
ITEMS: Final = "items"
"""Perhaps a list, by ``len`` and ``[]`` alone; perhaps something else that has items."""
OWN: Final = "own"
"""An array with an arithmetic of its own."""
OPERATOR: Final = "operator"
"""No array, and takes the operator itself: NumPy's arrays leave ``x * A`` to it."""
NUMBER: Final = "number"
"""No array, with operators that NumPy applies to each element."""
NUMERIC: Final = "numeric"
"""A user's subclass of a number: what it is, without its operators, as NumPy has it."""
OBJECT: Final = "object"
"""Nothing of these by its type."""

_BINARY = "add sub mul matmul truediv floordiv mod pow".split()
_ARITHMETIC = (
    *(f"__{before}{name}__" for name in _BINARY for before in ("", "r", "i")),
    *("__neg__", "__abs__", "__array_ufunc__", "__array_function__"),
)
_REFLECTED = ("__radd__", "__rsub__", "__rmul__", "__rmatmul__", "__rtruediv__", "__rpow__")
_STORING = frozenset((np.ndarray.__array_wrap__, np.memmap.__array_wrap__))
_NUMBERS = (np.generic, float, int, complex)
_ASKED = ("__array__", "__array_interface__", "__array_struct__")
_MASKED = "pass np.asarray(x), and the mask as an array of its own to np.where"


def kind_of(x: Any) -> str:
    """What a value is as an operand: asked of its type, and for its numbers of itself, as NumPy does it."""
    cls: Any = type(x)
    kind = _kind_of_type(cls)
    if kind in (ITEMS, NUMBER, OBJECT) and _gives_an_array(x):
        return ARRAY_LIKE
    return UNKNOWN if kind == OBJECT else kind


@lru_cache(512)
def _kind_of_type(cls: Any) -> str:
    if issubclass(cls, _NUMBERS) and cls.__module__ not in ("builtins", "numpy"):
        return NUMERIC
    known = np.generic | numbers.Number | str | bytes | type
    if hasattr(cls, "__pullback_value__") or issubclass(cls, known if hasattr(cls, "tocsr") else known | dict):
        return UNKNOWN  # a dict is no array, but for SciPy's dictionary of keys
    if issubclass(cls, np.ndarray):
        same = all(getattr(cls, name, None) is getattr(np.ndarray, name, None) for name in _ARITHMETIC)
        return ARRAY_LIKE if same and cls.__array_wrap__ in _STORING else OWN
    if hasattr(cls, "__array_function__"):
        return OPERATOR if getattr(cls, "holds_tracer", False) else OWN  # a plugin's, around traced values
    converts = _converts(cls)
    by_ufunc = getattr(cls, "__array_ufunc__", False)
    takes = by_ufunc is not False or getattr(cls, "__array_priority__", 0) > 0
    if converts or takes:
        return ARRAY_LIKE if not takes else OWN if converts or by_ufunc or hasattr(cls, "tocsr") else OPERATOR
    if issubclass(cls, Sequence):
        return ARRAY_LIKE if cls is memoryview else SEQUENCE
    if hasattr(cls, "__len__") and hasattr(cls, "__getitem__") and not issubclass(cls, Mapping):
        return ITEMS
    return NUMBER if any(hasattr(cls, name) for name in _REFLECTED) else OBJECT


def _gives_an_array(x: Any) -> bool:
    """Whether NumPy reads an array in a value whose type does not say so: an attribute set on it, or its memory, as
    that of a number of ``ctypes``."""
    try:
        return any(hasattr(x, name) for name in _ASKED) or memoryview(x).nbytes >= 0
    except Exception:  # noqa: BLE001 - what an object's own __getattr__ raises
        return False


def plain_array(x: Any) -> Any:
    """The plain array of what is one or can be read as one; raises :class:`NotDifferentiableError` for what has an
    arithmetic of its own."""
    if kind_of(x) == OWN:
        raise NotDifferentiableError(own_arithmetic(x))
    return np.asarray(x)


def plain_operand(x: Any, *, elementwise: bool) -> Any:
    """What a primitive computes with where ``x`` is given, which is no tracer.

    Raises :class:`NotDifferentiableError` for what has an arithmetic of its own; for an ``elementwise`` primitive also
    for what has operators without being an array.
    """
    kind = kind_of(x)
    if kind == OWN and not (hasattr(type(x), "tocsr") and not elementwise):
        raise NotDifferentiableError(own_arithmetic(x))
    if elementwise and kind in (OPERATOR, NUMBER):
        raise NotDifferentiableError(
            f"{type(x).__name__} has operators of its own, which have no derivative here (at "
            f"{site_text(site_here())}); write what it computes with arrays, or declare it with pullback.primitive"
        )
    if kind in (ARRAY_LIKE, SEQUENCE):
        return np.asarray(x)
    if kind == NUMERIC:
        return plain_number(x)
    if kind != ITEMS:
        return x
    found = np.asarray(x)
    return x if found.dtype.hasobject else found


def plain_number(x: Any) -> Any:
    """The number itself of a user's subclass of a number."""
    if isinstance(x, np.generic):
        return np.asarray(x)[()]
    base: Any = next(cls for cls in (float, int, complex) if isinstance(x, cls))
    return base.__pos__(x)


def _converts(cls: Any) -> bool:
    """Whether NumPy asks the values of a type for an array."""
    return any(hasattr(cls, f"__array{name}__") for name in ("", "_interface", "_struct"))


def takes_the_operator(x: Any, *, scalar: bool, weak: bool = False) -> bool:
    """Whether NumPy leaves the operator between an array and ``x`` to ``x``; ``scalar`` says that the array is a number
    without axes, ``weak`` that it is one of Python's, which leaves it to whatever has the operator."""
    kind = kind_of(x)
    if kind == ARRAY_LIKE and weak and not isinstance(x, np.ndarray):
        return any(hasattr(type(x), name) for name in _REFLECTED)
    return kind == OPERATOR or (scalar and kind == NUMBER)


def plain_parts(x: Any, depth: int = 0) -> Any:
    """An argument of a NumPy function, or lists and tuples of them, with plain arrays in the place of others; tracers,
    and what is no array, as they are."""
    if type(x) in ORDINARY:
        return x
    if type(x) in (list, tuple):
        if ORDINARY.issuperset(map(type, x)) or depth > 32:
            return x
        parts = [plain_parts(part, depth + 1) for part in x]
        return type(x)(parts) if any(a is not b for a, b in zip(parts, x, strict=True)) else x
    if isinstance(x, np.poly1d):  # NumPy's functions of polynomials give one where they are given one
        return x
    kind = kind_of(x)
    if kind == OWN and not hasattr(type(x), "tocsr"):  # products by a sparse array are served by who knows it
        raise NotDifferentiableError(own_arithmetic(x))
    return np.asarray(x) if kind == ARRAY_LIKE else plain_number(x) if kind == NUMERIC else x


def foreign_argument(leaf: Any) -> str | None:
    """Why an argument cannot be differentiated as it is: an array, perhaps of floats, that is no ndarray; None for an
    ndarray and for what is no array."""
    if isinstance(leaf, np.ndarray) or type(leaf) in ORDINARY:
        return None
    kind = getattr(getattr(leaf, "dtype", None), "kind", None if _holds_floats(leaf) else "O")
    known = kind_of(leaf) in (ARRAY_LIKE, OWN, OPERATOR) or isinstance(leaf, Sequence)
    if not known or kind not in ("f", "c", None):
        return None
    return f"{type(leaf).__name__} is no ndarray; {_remedy(leaf)}"


def _holds_floats(leaf: Any) -> bool:
    """Whether an array without a ``dtype`` of NumPy's may hold floats."""
    if isinstance(leaf, Sequence) and not hasattr(leaf, "__array__"):
        try:
            return memoryview(leaf).format in ("e", "f", "d", "g")  # type: ignore[arg-type]  # that is being asked
        except TypeError:
            return False
    return _converts(type(leaf))


def own_arithmetic(x: Any) -> str:
    """Why an operand is refused, and what to pass."""
    return (
        f"{type(x).__name__} has an arithmetic of its own, which has no derivative here (at {site_text(site_here())}); "
        f"{_remedy(x)}"
    )


def _remedy(x: Any) -> str:
    library = type(x).__module__.partition(".")[0]
    if hasattr(type(x), "tocsr"):
        served = "A @ x is served for a traced x, by a plugin for SciPy A + x, A - x, and k * A and A / k for a number"
        return f"{served}; for anything else pass A.toarray(), or compute with A.data"
    if not _converts(type(x)):
        return "pass its numbers as a plain array"
    by_name = {"pandas": "pass x.to_numpy()", "torch": "pass x.detach().numpy()"}
    return _MASKED if isinstance(x, np.ma.MaskedArray) else by_name.get(library, "pass np.asarray(x)")
