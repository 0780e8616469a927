"""New arrays: ``zeros_like`` and its family, and ``like=``. They are buffers of the trace that depend on nothing yet,
ready to be filled."""

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.primitives.shaping.nested_lists import converted, holds_tracer
from pullback.recording.handles import BORROWED, FREE, Handle, make, plain_value, tape_of
from pullback.recording.recorder import value_on
from pullback.recording.tape import DEFERRED, PAUSED, REPLAYABLE
from pullback.recording.writes import set_item
from pullback.rules.declaration import Composite, composite
from pullback.words.call_sites import site_here, site_text
from pullback.words.errors import ConversionError
from pullback.words.foreign_operands import plain_array
from pullback.words.specs import INEXACT, spec_of


def traced_buffer(handle: Handle, array: Any, *, blank: bool = False) -> Any:
    """``array`` as a buffer of the handle's trace; plain for an integer or boolean dtype, and while the trace is
    paused."""
    tape = tape_of((handle,), "creating an array")
    if tape.mode == PAUSED or array.dtype.kind not in INEXACT:
        return array
    if tape.mode == REPLAYABLE and blank and isinstance(array, np.ndarray):
        array[...] = 0  # what ``empty`` leaves is nobody's: zeros need not be held for a replay, leftovers would be
    return make(tape.kinds.buffer, array, None, tape, FREE)


def of_nothing(source: Any, result: Any) -> Any:
    """What NumPy makes of a ``source`` without elements: it depends on nothing, and yet is an array of the trace, to
    be written to."""
    return traced_buffer(source, result) if isinstance(source, Handle) and isinstance(result, np.ndarray) else result


def _like(function: Callable[..., Any]) -> Composite:
    """``zeros_like`` and the others: NumPy's own answer for the value behind the tracer, made a buffer of its trace."""

    def create(a: Any, *args: Any, **kwargs: Any) -> Any:
        tape = tape_of((a,), function.__name__, follows=True)
        if tape.mode == DEFERRED:
            return tape.shadow.create(function, a, args, kwargs)
        return traced_buffer(a, function(value_on(a, tape), *args, **kwargs), blank=function is np.empty_like)

    return Composite(function.__name__, create, (function,))


zeros_like, empty_like, ones_like = _like(np.zeros_like), _like(np.empty_like), _like(np.ones_like)


@composite(np.full_like)
def full_like(
    a: Any, fill_value: Any, dtype: Any = None, order: Any = "K", subok: bool = True, shape: Any = None, **_device: Any
) -> Any:
    """A buffer of the shape of ``a`` filled with ``fill_value``; either may be traced."""
    template = a if isinstance(a, Handle) else fill_value
    if isinstance(a, Handle):
        buffer = np.empty_like(a, dtype=dtype, order=order, subok=subok, shape=shape)
    else:
        buffer = traced_buffer(template, np.empty_like(a, dtype=dtype, order=order, subok=subok, shape=shape))
    if isinstance(fill_value, Handle) and not isinstance(buffer, Handle):
        raise ConversionError(
            f"np.full_like would write a traced value into dtype {buffer.dtype}, which carries no derivative; "
            "pass dtype=float"
        )
    buffer[...] = fill_value
    return buffer


CREATED_BY_LIKE: tuple[Callable[..., Any], ...] = (
    np.zeros, np.ones, np.empty, np.eye, np.identity, np.tri, np.arange, np.fromfunction, np.fromiter, np.frombuffer,
    np.fromstring,
    np.loadtxt, np.genfromtxt, np.fromfile,
)  # fmt: skip
"""NumPy functions that reach us by ``like=`` only: their arguments hold no tracer."""

CONVERTED_BY_LIKE: tuple[Callable[..., Any], ...] = (
    np.array, np.asarray, np.asanyarray, np.ascontiguousarray, np.asfortranarray, np.require,
)  # fmt: skip
"""NumPy functions that reach us by ``like=`` and whose argument may be a tracer, or nested lists of tracers."""

BORROWING = (*CONVERTED_BY_LIKE, np.frombuffer, np.fromfunction)
"""NumPy functions whose result may lie in memory of the user's."""

COPIED = (np.ndarray, list, tuple, float, int)
"""Types of which ``np.array`` makes a copy itself; to another it may leave that, as to what has ``__array__``."""


def create_like(handle: Handle, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``np.zeros(shape, like=x)`` and so on: a buffer of the trace of ``x``. Some take traced contents, too:
    :data:`CONVERTED_BY_LIKE`."""
    if function is np.full and isinstance(args[1] if len(args) > 1 else kwargs["fill_value"], Handle):
        return _full(*args, **kwargs)
    if function in CONVERTED_BY_LIKE and args and holds_tracer(args[0]):
        return converted(function, args[0], args[1:], kwargs)
    below = value_on(handle, tape_of((handle,), function.__name__))
    array = function(*args, **kwargs, like=below) if isinstance(below, Handle) else function(*args, **kwargs)
    if not isinstance(array, np.ndarray | Handle) or (isinstance(array, Handle) and not isinstance(below, Handle)):
        return array  # the result of the user's own function, through np.fromfunction
    array = array if isinstance(array, Handle) else plain_array(array)
    buffer = traced_buffer(handle, array, blank=function is np.empty)
    copied = function is np.array and kwargs.get("copy", True) and type(next(iter(args), None)) in COPIED
    if isinstance(buffer, Handle) and function in BORROWING and not copied:
        buffer._flag = BORROWED
    return buffer


def _full(shape: Any, fill_value: Any, dtype: Any = None, order: Any = "C", **options: Any) -> Any:
    """``np.full`` of a traced value."""
    plain = np.full(shape, plain_value(fill_value), dtype, order, **options)
    if plain.dtype.kind not in INEXACT:
        return plain
    buffer = traced_buffer(fill_value, plain)
    buffer[...] = fill_value
    return buffer


@composite(np.copyto)
def copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    """``dst[...] = src``, where ``where`` is true."""
    if not isinstance(dst, Handle):
        raise ConversionError(
            f"np.copyto would write a traced value into a plain array of shape {np.shape(dst)} (at "
            f"{site_text(site_here())}), which would drop the derivative; make the target with np.zeros_like(x)"
        )
    target: Any = dst
    # A wrong rule's name is NumPy's to refuse.
    if not np.can_cast(spec_of(src).dtype, target.dtype, casting):  # type: ignore[arg-type]
        raise TypeError(f"Cannot cast array data to {target.dtype} according to the rule {casting!r}")
    set_item(target, Ellipsis, src if where is True else np.where(where, src, target))


CREATION = (zeros_like, empty_like, ones_like, full_like, copyto)
