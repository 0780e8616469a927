"""Structured arrays in adopted code, while a trace is under way: each field is an array of its own, which can hold
traced values."""

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
from attrs import define, frozen

from pullback.words.call_sites import site_here, site_text
from pullback.words.errors import ConversionError

FIELD_BY_FIELD: Final = (np.copy, np.zeros_like, np.empty_like, np.concatenate, np.hstack)
"""Functions of NumPy that treat each field by itself."""


@define(eq=False)
class Fields:
    """A structured array as its fields: ``s["x"]``, ``s["x"][i] = t``, ``s[i]["x"]``, ``s[1:]``, ``s.copy()``."""

    dtype: Any
    shape: tuple[int, ...]
    fields: dict[str, Any]

    ndim = property(lambda self: len(self.shape), doc="Number of axes.")
    size = property(lambda self: int(np.prod(self.shape, dtype=np.intp)), doc="Number of elements.")

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return (self[k] for k in range(len(self)))

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            if key not in self.fields:
                raise ValueError(f"no field of name {key}")
            return self.fields[key]
        if isinstance(key, list) and all(isinstance(name, str) for name in key):
            dtype = np.dtype([(name, self.dtype[name]) for name in key])
            return Fields(dtype, self.shape, {name: self.fields[name] for name in key})
        shape = np.empty(self.shape, np.bool)[key].shape
        if not shape:
            return Row(self, key)
        return Fields(self.dtype, shape, {name: part[key] for name, part in self.fields.items()})

    def __setitem__(self, key: Any, new: Any) -> None:
        if isinstance(key, str):
            if new is not self.fields[key]:  # as where s["x"] += v ends
                self.fields[key][...] = new
            return
        for k, (name, part) in enumerate(self.fields.items()):
            part[key] = new[name] if isinstance(new, Fields | Row) else new[k] if isinstance(new, tuple) else new

    def __getattr__(self, name: str) -> Any:
        """A field, as a record array has it."""
        if name.startswith("_") or name not in self.fields:
            raise AttributeError(f"a structured array with traced fields has no attribute {name!r}")
        return self.fields[name]

    def view(self, kind: Any) -> "Fields":
        """The array itself, as a record array or as one of structures."""
        if kind is not np.recarray and kind is not np.ndarray and kind != self.dtype:
            raise ConversionError(
                f"view({kind!r}) of a structured array with traced fields (at {site_text(site_here())}) would read its "
                f"memory, which each field has for itself; give the fields, s['{next(iter(self.fields))}']"
            )
        return self

    def copy(self) -> "Fields":
        """A copy that owns its memory."""
        return Fields(self.dtype, self.shape, {name: part.copy() for name, part in self.fields.items()})

    __deepcopy__ = __copy__ = lambda self, *memo: self.copy()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        whole = np.empty(self.shape, self.dtype)
        for name, part in self.fields.items():
            whole[name] = np.asarray(part)  # refused where it depends on an input
        return whole if dtype is None else whole.astype(dtype)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function in (np.shape, np.ndim, np.size):
            return function(np.empty(self.shape, np.bool), *args[1:], **kwargs)
        if function not in FIELD_BY_FIELD:
            raise ConversionError(
                f"numpy.{function.__name__} takes no structured array with traced fields (at "
                f"{site_text(site_here())}); give it the fields, s['{next(iter(self.fields))}']"
            )
        made = {name: function(*(_part(x, name) for x in args), **kwargs) for name in self.fields}
        rest = self.dtype[(first := next(iter(made)))].ndim
        shape = np.shape(made[first])
        return Fields(self.dtype, shape[: len(shape) - rest], made)

    def __repr__(self) -> str:
        return f"<structured array of {', '.join(self.fields)}, of shape {self.shape}>"


def _part(given: Any, name: str) -> Any:
    """The field of an argument, or of those in a list."""
    if isinstance(given, list | tuple):
        return [_part(x, name) for x in given]
    is_structured = isinstance(given, Fields) or (isinstance(given, np.ndarray) and given.dtype.names is not None)
    return given[name] if is_structured else given


@frozen(eq=False)
class Row:
    """One element of a structured array: what is written to it is written there."""

    of: Fields
    key: Any

    def __getitem__(self, name: Any) -> Any:
        name = list(self.of.fields)[name] if isinstance(name, int) else name
        return self.of[name][self.key]

    def __setitem__(self, name: str, new: Any) -> None:
        self.of[name][self.key] = new


def as_fields(array: Any, own: Callable[[Any], Any]) -> Any:
    """A structured array as :class:`Fields`, each made by ``own``; as it is where none holds floating numbers."""
    if not any(array.dtype[name].base.kind in "fc" for name in array.dtype.names):
        return array
    return Fields(array.dtype, array.shape, {name: own(np.array(array[name])) for name in array.dtype.names})
