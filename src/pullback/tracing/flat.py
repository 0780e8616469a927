"""``x.flat`` and ``x.shape = ...``: an array seen as one line of elements."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from pullback.recording.copies import faithful_copy
from pullback.recording.crossing import leave_followed
from pullback.recording.handles import FREE, Handle, make, resolve
from pullback.recording.index_keys import kept_key
from pullback.recording.out_targets import set_flat
from pullback.recording.recorder import call
from pullback.recording.refusals import refusal
from pullback.recording.tape import CAPTURED, PAUSED
from pullback.rules.declaration import primitive
from pullback.words.call_sites import site_here, site_text
from pullback.words.errors import WriteError


def _faithful(x: Any) -> Any:
    return faithful_copy(x) if isinstance(x, np.ndarray) else np.copy(x, order="K")


own_copy = primitive(_faithful, name="own_copy", linear=("x",), vjps={"x": lambda ct: ct})
"""A copy with the strides of the original."""


class Flat:
    """``x.flat``: elements in C order. Writing goes to the array itself, whatever its strides."""

    def __init__(self, handle: Any) -> None:
        self._handle = handle

    def __len__(self) -> int:
        return int(self._handle.size)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._handle.ravel())

    def __getitem__(self, key: Any) -> Any:
        chosen = self._handle.ravel()[key]
        return chosen.copy() if np.ndim(chosen) else chosen

    def __setitem__(self, key: Any, new: Any) -> None:
        set_flat(self._handle, np.arange(len(self))[key].ravel(), new)


def own_key(key: Any, handle: Any) -> Any:
    """As :func:`keys.kept_key`; what is traced is no index."""
    for k in key if type(key) is tuple else (key,):
        if isinstance(k, Handle):
            raise refusal(k, "an index made")
    return kept_key(key, handle._tape)


def set_shape(handle: Any, shape: Any) -> None:
    """``handle.shape = shape``: views taken before go on showing what they showed (see ``View._refresh``).

    A view becomes one of its former self; what owns its memory is copied once, so that a replay has a value of its own
    to write to.
    """
    if handle._tape.mode == CAPTURED:
        leave_followed(handle)
    if handle._tape.mode in (CAPTURED, PAUSED):
        where = site_text(site_here())
        raise WriteError(
            f"a body sets the shape of a value it captures (at {where}); use reshape, or make it part of the "
            "loop's state"
        )
    resolve(handle)
    view = handle._tape.kinds.view
    before = _former_self(handle) if type(handle) is view else handle
    after = before.reshape(shape)
    if isinstance(handle._value, np.ndarray) and not np.may_share_memory(after._value, handle._value) and handle.size:
        seen = f"an array of shape {handle.shape} and strides {handle.strides}"
        raise AttributeError(f"{seen} cannot be seen at shape {shape} without a copy; use reshape")
    if type(handle) is view:
        handle._value, handle._id, handle._spec = after._value, after._id, after._spec
        _look_as(handle, after)
        return
    owned: Any = call(own_copy, (after,), {})
    handle._value, handle._id, handle._flag, handle._spec = owned._value, owned._id, FREE, None


def _former_self(handle: Any) -> Any:
    view = make(type(handle), handle._value, handle._id, handle._tape, handle._flag)
    _look_as(view, handle)
    return view


def _look_as(view: Any, other: Any) -> None:
    """What ``other`` looks at, and how, is what ``view`` looks at."""
    view._parent, view._parent_id, view._parent_value = other._parent, other._parent_id, other._parent_value
    view._primitive, view._params, view._written_in = other._primitive, other._params, other._written_in
    view._known = other._known
