"""Values as JSON and back, with every bit: numbers, texts, small arrays, structures of these. Nothing is pickled."""

from typing import Any

import numpy as np

from pullback.memory.entry_parts import Part
from pullback.words.errors import ResumeError

_AS_THEY_ARE = (type(None), bool, int, str)


def encoded(value: Any) -> Any:
    """What JSON can write; raises :class:`ResumeError` for anything but numbers, texts, bytes, arrays of numbers, and
    lists, tuples and dicts of these."""
    kind = type(value)
    if kind in _AS_THEY_ARE:
        return value
    if kind is float or kind is complex:
        return {kind.__name__: _of_array(np.asarray(value))}
    if kind is bytes:
        return {"bytes": value.hex()}
    if kind is list or kind is tuple:
        return {kind.__name__: [encoded(part) for part in value]}
    if kind is dict:
        return {"dict": [[encoded(key), encoded(part)] for key, part in value.items()]}
    if kind is Part:
        return {"part": [value.number, value.nbytes]}
    if kind is np.ndarray or isinstance(value, np.generic):
        return {kind.__name__ if kind is np.ndarray else "scalar": _of_array(np.asarray(value))}
    raise ResumeError(
        f"a value of type {kind.__name__} is part of what the run would have to be taken up from, and no journal can "
        "hold it. Keep numbers, texts and arrays in the state of the loop, or run it without pullback.resume"
    )


def decoded(told: Any) -> Any:
    """The value that :func:`encoded` was given."""
    if type(told) in _AS_THEY_ARE:
        return told
    [(kind, content)] = told.items()
    return _DECODED[kind](content)


def dtype_text(dtype: np.dtype[Any]) -> str:
    """A dtype as text; raises :class:`ResumeError` for one of named fields, or of objects."""
    if dtype.hasobject or np.dtype(dtype.str) != dtype:
        raise ResumeError(
            f"an array of dtype {dtype} is part of what the run would have to be taken up from, and no journal can "
            "hold it. Use arrays of numbers, or run without pullback.resume"
        )
    return dtype.str


def _of_array(array: np.ndarray[Any, Any]) -> list[Any]:
    return [dtype_text(array.dtype), list(array.shape), array.tobytes().hex()]


def _array(told: list[Any]) -> np.ndarray[Any, Any]:
    dtype, shape, content = told
    return np.ndarray(shape, dtype, bytes.fromhex(content)).copy()


_DECODED: dict[str, Any] = {
    "float": lambda told: float(_array(told)),
    "complex": lambda told: complex(_array(told)),
    "bytes": bytes.fromhex,
    "list": lambda parts: [decoded(part) for part in parts],
    "tuple": lambda parts: tuple(decoded(part) for part in parts),
    "dict": lambda pairs: {decoded(key): decoded(part) for key, part in pairs},
    "part": lambda pair: Part(*pair),
    "ndarray": _array,
    "scalar": lambda told: _array(told)[()],
}
