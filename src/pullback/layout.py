"""``x.flat`` and ``x.shape = ...``: the same elements in another order of indices."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from pullback.handles import FREE, make, resolve


class Flat:
    """``x.flat``: elements in C order. Writing goes to the array itself, whatever its strides."""

    def __init__(self, handle: Any) -> None:
        self._handle = handle

    def __len__(self) -> int:
        return int(self._handle.size)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._handle.ravel())

    def __getitem__(self, key: Any) -> Any:
        return self._handle.ravel()[key]

    def __setitem__(self, key: Any, new: Any) -> None:
        places = np.arange(len(self))[key]
        if np.size(new) != places.size:  # as NumPy: from the first again after the last
            new = np.ravel(new)[np.arange(places.size) % np.size(new)].reshape(places.shape)
        self._handle[np.unravel_index(places, self._handle.shape)] = new


def set_shape(handle: Any, shape: Any) -> None:
    """``handle.shape = shape``: views taken before go on showing what they showed (see ``View._refresh``).

    A view becomes one of its former self; what owns its memory is copied once, so that a replay has a value of its own to write to.
    """
    resolve(handle)
    view = handle._tape.kinds.view
    before = _former_self(handle) if type(handle) is view else handle
    after = before.reshape(shape)
    if isinstance(handle._value, np.ndarray) and not np.may_share_memory(after._value, handle._value) and handle.size:
        seen = f"an array of shape {handle.shape} and strides {handle.strides}"
        message = f"{seen} cannot be seen at shape {shape} without a copy; use reshape"
        raise AttributeError(message)
    if type(handle) is view:
        handle._value, handle._id, handle._spec = after._value, after._id, after._spec
        _look_as(handle, after)
        return
    owned: Any = np.copy(after, order="K")
    handle._value, handle._id, handle._flag, handle._spec = owned._value, owned._id, FREE, None


def _former_self(handle: Any) -> Any:
    view = make(type(handle), handle._value, handle._id, handle._tape, handle._flag)
    _look_as(view, handle)
    return view


def _look_as(view: Any, other: Any) -> None:
    """What ``other`` looks at, and how, is what ``view`` looks at."""
    view._parent, view._parent_id, view._parent_value = other._parent, other._parent_id, other._parent_value
    view._primitive, view._params, view._written_in = other._primitive, other._params, other._written_in
