"""Nested lists with tracers as one array: what ``np.array`` does, which never asks a tracer.

NumPy's own function is always run on the values behind the tracers, so that shape, dtype, memory order and errors are
NumPy's.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from pullback.recording.handles import Handle, plain_value
from pullback.words.call_sites import site_here, site_text
from pullback.words.errors import ConversionError

MAX_NESTING = 64  # NumPy has no more axes; a list that holds itself ends there, too


def is_nested(x: Any) -> bool:
    """True for what NumPy would look into for elements: a list, a tuple, another sequence, an array of objects."""
    if isinstance(x, list | tuple):
        return True
    return (isinstance(x, Sequence) and not isinstance(x, str | bytes | range)) or (
        isinstance(x, np.ndarray) and x.dtype == object and x.ndim > 0
    )


def holds_tracer(x: Any, depth: int = 0) -> bool:
    """True for a tracer, and for nested lists and tuples with one in them."""
    if isinstance(x, Handle):
        return True
    if isinstance(x, dict | set | frozenset):
        return any(isinstance(part, Handle) for part in (*x, *(x.values() if isinstance(x, dict) else ())))
    return depth < MAX_NESTING and is_nested(x) and any(holds_tracer(part, depth + 1) for part in x)


def values_of(x: Any) -> Any:
    """The same nested lists with the values behind the tracers."""
    if isinstance(x, Handle):
        return plain_value(x)
    return [values_of(part) for part in x] if is_nested(x) else x


def _nesting(x: Any) -> int:
    """How deep the shallowest tracer lies: 0 for a tracer itself; MAX_NESTING where there is none."""
    if isinstance(x, Handle):
        return 0
    return min((1 + _nesting(part) for part in x), default=MAX_NESTING) if is_nested(x) else MAX_NESTING


def _at_depth(x: Any, depth: int) -> Iterator[Any]:
    if depth == 0:
        yield x
    else:
        for part in x:
            yield from _at_depth(part, depth - 1)


def stacked(contents: Any, dtype: Any) -> Any:
    """Nested lists as one array: stacked where the shallowest tracer lies, what is deeper stacked before."""
    depth = _nesting(contents)
    lengths, first = [], contents
    for _ in range(depth):
        lengths.append(len(first))
        first = first[0]
    parts: Any = [
        part if isinstance(part, Handle) else stacked(part, dtype) if holds_tracer(part) else np.asarray(part, dtype)
        for part in _at_depth(contents, depth)
    ]
    whole = np.stack(parts, dtype=dtype, casting="unsafe")  # NumPy has already converted the values, or refused
    return whole if depth == 1 else whole.reshape((*lengths, *whole.shape[1:]))


def carries(plain: Any, name: str) -> bool:
    """True where the result carries a derivative; raises :class:`ConversionError` for an array of objects or
    strings."""
    kind = plain.dtype.kind
    if kind not in "fcbiu":
        raise ConversionError(
            f"numpy.{name} would put tracers into an array of dtype {plain.dtype} (at {site_text(site_here())}), "
            "which has no derivative; keep them in a list, or pass dtype=float"
        )
    return kind in "fc"


def converted(function: Callable[..., Any], given: Any, args: Any, kwargs: Any) -> Any:
    """``function(given, ...)`` where tracers are given: a tracer of the shape, dtype and order that NumPy gives for
    the values."""
    inside = values_of(given)
    plain = function(inside, *args, **kwargs)
    if not carries(plain, function.__name__):
        return plain
    if not isinstance(given, Handle):
        whole = stacked(given, plain.dtype)
        return laid_out(whole if whole.shape == plain.shape else whole.reshape(plain.shape), plain)  # ndmin
    contents: Any = given
    if plain is inside:
        return contents
    if isinstance(inside, np.ndarray) and np.may_share_memory(plain, inside):
        return contents.reshape(plain.shape)
    whole = contents if isinstance(inside, np.ndarray) else np.stack([contents])
    order: Any = "C" if plain.flags.c_contiguous else "F" if plain.flags.f_contiguous else "K"
    return np.reshape(whole, plain.shape).astype(plain.dtype, order=order)


def laid_out(whole: Any, plain: Any) -> Any:
    """A tracer whose values are contiguous in C order, in the memory order of the array that NumPy gives."""
    return whole if plain.flags.c_contiguous else np.copy(whole, order="F")


def as_operand(x: Any) -> Any:
    """Nested lists with tracers as one tracer; anything else as it is."""
    return converted(np.asarray, x, (), {}) if not isinstance(x, Handle) and holds_tracer(x) else x


def as_elements(x: Any) -> Any:
    """What is written into an array: nested lists with tracers as one tracer, of a traced matrix the array behind it;
    anything else as it is."""
    return x.A if getattr(type(x), "behaves_as_matrix", False) else as_operand(x)
