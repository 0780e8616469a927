"""Structured arrays in adopted code, while a trace is under way: each field is an array of its own, which can hold
traced values."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from attrs import define, frozen


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

    def copy(self) -> "Fields":
        """A copy that owns its memory."""
        return Fields(self.dtype, self.shape, {name: part.copy() for name, part in self.fields.items()})

    def __repr__(self) -> str:
        return f"<structured array of {', '.join(self.fields)}, of shape {self.shape}>"


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
