"""NumPy's iterators for adopted code, which hand out traced elements: ``nditer``, ``broadcast`` and ``ndenumerate``.

Which elements come in which order is NumPy's to say: its own iterator runs over the places of a tracer's elements,
in an array of integers with the same layout.
"""

from collections.abc import Iterator
from typing import Any, Final, Self

import numpy as np

from pullback.primitives.shaping.nested_lists import as_operand, holds_tracer, values_of
from pullback.recording.handles import Handle, plain_value
from pullback.words.call_sites import site_here, site_text
from pullback.words.errors import ConversionError

WRITING: Final = frozenset(("readwrite", "writeonly"))
"""Flags of operands that are written."""


def ndenumerate(arr: Any) -> Any:
    """``numpy.ndenumerate``."""
    is_handle = isinstance(arr, Handle)
    return ((place, arr[place]) for place in np.ndindex(arr.shape)) if is_handle else np.ndenumerate(arr)


def broadcast(*arrays: Any) -> Any:
    """``numpy.broadcast``."""
    return TracedBroadcast(arrays) if holds_tracer(arrays) else np.broadcast(*arrays)


def nditer(op: Any, flags: Any = None, op_flags: Any = None, op_dtypes: Any = None, *args: Any, **kwargs: Any) -> Any:
    """``numpy.nditer``; raises :class:`ConversionError` where it would convert traced elements, or write whole runs of
    them."""
    if not holds_tracer(op):
        return np.nditer(op, flags, op_flags, op_dtypes, *args, **kwargs)
    return TracedIteration(op, flags, op_flags, op_dtypes, *args, **kwargs)


class _Stands:
    """An iterator that answers for one of NumPy's, ``own``, of which it hands on what tells nothing of elements."""

    __slots__ = ("own",)
    handed_on: frozenset[str]

    def __getattr__(self, name: str) -> Any:
        if name not in self.handed_on:
            raise AttributeError(f"an iterator over traced arrays has no attribute {name!r}")
        return getattr(self.own, name)


class TracedBroadcast(_Stands):
    """``numpy.broadcast`` with traced arrays among the given."""

    __slots__ = ("iters",)
    handed_on = frozenset(("shape", "size", "nd", "ndim", "numiter"))

    def __init__(self, arrays: Any) -> None:
        self.own = np.broadcast(*map(values_of, arrays))
        self.iters = tuple(np.ravel(part) for part in np.broadcast_arrays(*map(as_operand, arrays)))

    def __iter__(self) -> Iterator[Any]:
        return zip(*(iter(part) for part in self.iters), strict=True)


class TracedIteration(_Stands):
    """``numpy.nditer`` with traced arrays among the operands: their elements are views of no axes, which can be
    written where the flags of the operand say so."""

    __slots__ = ("operands", "runs", "written")
    handed_on = frozenset(
        "finished iternext reset close shape ndim nop itersize iterindex index multi_index has_index "
        "has_multi_index".split()
    )

    def __init__(self, op: Any, flags: Any, op_flags: Any, op_dtypes: Any, *args: Any, **kwargs: Any) -> None:
        several = isinstance(op, list | tuple)
        given = [as_operand(part) for part in op] if several else [op]
        kinds = [None] * len(given) if op_dtypes is None else list(op_dtypes)
        for part, kind in zip(given, kinds, strict=True):
            if isinstance(part, Handle) and kind is not None and np.dtype(kind) != plain_value(part).dtype:
                raise ConversionError(
                    f"numpy.nditer would convert traced elements to {np.dtype(kind)} (at {site_text(site_here())}); "
                    "give it x.astype(dtype)"
                )
        kinds = [None if isinstance(part, Handle) else kind for part, kind in zip(given, kinds, strict=True)]
        self.runs = "external_loop" in (flags or ())
        words = [()] * len(given) if op_flags is None else op_flags
        words = words if isinstance(words[0], list | tuple) else [words] * len(given)
        self.written = [part is None or not WRITING.isdisjoint(own) for part, own in zip(given, words, strict=True)]
        if self.runs and any(self.written):
            raise ConversionError(
                f"numpy.nditer with the flag 'external_loop' would write into runs of traced elements (at "
                f"{site_text(site_here())}); leave the flag out, or write the whole array with NumPy's functions"
            )
        places = [_places(plain_value(part)) if isinstance(part, Handle) else part for part in given]
        self.own = np.nditer(places if several else places[0], flags, op_flags, kinds, *args, **kwargs)
        self.operands = tuple(
            part if isinstance(part, Handle) else _made(own, given) if part is None else own
            for part, own in zip(given, self.own.operands, strict=True)
        )

    def __getitem__(self, k: int) -> Any:
        operand, own = self.operands[k], self.own[k]
        if not isinstance(operand, Handle):
            return own
        traced: Any = operand
        if self.runs:
            return np.ravel(traced)[own]
        return traced[(*np.unravel_index(int(own), traced.shape), ...)] if traced.shape else traced[...]

    @property
    def value(self) -> Any:
        """The elements at this place; of one operand alone its element."""
        items = tuple(self[k] for k in range(self.own.nop))
        return items if len(items) > 1 else items[0]

    def __iter__(self) -> Iterator[Any]:
        while not self.own.finished:
            yield self.value
            self.own.iternext()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.own.close()


def _places(values: Any) -> Any:
    """The places of the elements of an array in its flat order, in an array whose axes lie and run as its own: by these
    NumPy orders them."""
    strides = np.asarray(values).strides
    if values.size > 1 and any(stride == 0 and n > 1 for stride, n in zip(strides, values.shape, strict=True)):
        raise ConversionError(
            f"numpy.nditer over a traced array of which elements lie at one place (at {site_text(site_here())}); give "
            "it a copy, x.copy()"
        )
    runs = tuple(slice(None, None, -1 if stride < 0 else 1) for stride in strides)
    made: Any = np.empty_like(values[runs], dtype=np.intp, subok=False)[runs]
    made[...] = np.arange(made.size).reshape(made.shape)
    return made


def _made(own: Any, given: Any) -> Any:
    """The operand that NumPy makes where None is given: a buffer of the trace, of the type of the others."""
    own[...] = np.arange(own.size).reshape(own.shape)
    others = [part for part in given if part is not None]
    traced = next(part for part in others if isinstance(part, Handle))
    return np.zeros_like(traced, np.result_type(*(plain_value(part) for part in others)), shape=own.shape)
