"""NumPy's functions that write into their first argument: put, place, putmask, put_along_axis, fill_diagonal.

Each is an index and a value for one recorded assignment, so all of them write through views, and the last write to an
element wins.
"""

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from pullback.recording.handles import plain_value
from pullback.recording.out_targets import require_traced_target, set_flat
from pullback.recording.writes import concrete_key, set_item
from pullback.rules.declaration import Composite, composite
from pullback.words.specs import spec_of


def _cycled(values: Any, count: int) -> Any:
    """``count`` elements of ``values``, from the first again after the last."""
    line = np.ravel(values)
    return line if line.size == count else line[np.arange(count) % line.size]


def _cast(values: Any, target: Any, casting: str = "unsafe") -> Any:
    """Values as an array of the target's dtype; raises TypeError where the rule forbids it."""
    dtype = spec_of(values).dtype
    # A wrong rule's name is NumPy's to refuse.
    if not np.can_cast(dtype, target.dtype, casting):  # type: ignore[arg-type]
        raise TypeError(f"Cannot cast array data from {dtype!r} to {target.dtype!r} according to the rule {casting!r}")
    return values if hasattr(values, "dtype") else np.asarray(values, target.dtype)


@composite(np.put)
def put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    """numpy.put: ``a.flat[ind] = v``, where v is repeated as often as needed."""
    require_traced_target("put", a)
    places = np.asarray(concrete_key(ind)).ravel()
    if not places.size or not np.size(v):
        return
    if mode == "raise":
        wrong = places[(places < -a.size) | (places >= a.size)]
        if wrong.size:
            raise IndexError(f"index {wrong[0]} is out of bounds for axis 0 with size {a.size}")
        places = np.where(places < 0, places + a.size, places)
    else:
        places = places % a.size if mode == "wrap" else np.clip(places, 0, a.size - 1)
    set_flat(a, places, _cast(v, a))


@composite(np.place)
def place(arr: Any, mask: Any, vals: Any) -> None:
    """numpy.place: the elements where the mask is true become ``vals``, one after the other, repeated as often as
    needed."""
    require_traced_target("place", arr)
    chosen = _mask(mask, arr)
    count = int(np.count_nonzero(chosen))
    if count:
        if not np.size(vals):
            raise ValueError("Cannot insert from an empty array!")
        set_item(arr, chosen, _cycled(_cast(vals, arr), count))


@composite(np.putmask)
def putmask(a: Any, mask: Any, values: Any) -> None:
    """numpy.putmask: where the mask is true, the element becomes the one of ``values`` at its own place, repeated
    over ``a``."""
    require_traced_target("putmask", a)
    chosen = _mask(mask, a)
    if np.size(values):
        set_item(a, chosen, _cycled(_cast(values, a, "same_kind"), a.size)[chosen.ravel()])


def _mask(mask: Any, array: Any) -> Any:
    plain = np.array(
        plain_value(mask) if hasattr(type(mask), "__pullback_value__") else mask, bool
    )  # the user may change his own
    if plain.size != array.size:
        raise ValueError(f"a mask of {plain.size} elements for an array of {array.size}: they must be as many")
    return plain.reshape(array.shape)


@composite(np.put_along_axis)
def put_along_axis(arr: Any, indices: Any, values: Any, axis: int | None) -> None:
    """numpy.put_along_axis: along ``axis``, the elements at ``indices`` become ``values``."""
    require_traced_target("put_along_axis", arr)
    index = np.array(concrete_key(indices))  # the user may change his own
    if axis is None:
        if index.ndim != 1:
            raise ValueError(f"when axis=None, `indices` must have a single dimension, got {index.ndim}")
        set_flat(arr, np.where(index < 0, index + arr.size, index), np.broadcast_to(values, index.shape))
        return
    along = normalize_axis_index(axis, arr.ndim)
    if index.ndim != arr.ndim:
        raise ValueError(
            f"`indices` and `arr` must have the same number of dimensions, got {index.ndim} and {arr.ndim}"
        )
    shape = (*arr.shape[:along], index.shape[along], *arr.shape[along + 1 :])
    grid = list(np.ogrid[tuple(map(slice, shape))])
    grid[along] = index
    set_item(arr, tuple(grid), values)


@composite(np.fill_diagonal)
def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    """numpy.fill_diagonal: the elements with all indices equal become ``val``, repeated as often as needed."""
    require_traced_target("fill_diagonal", a)
    if a.ndim < 2:
        raise ValueError(f"array must be at least 2-d, got {a.ndim} axes")
    if a.ndim > 2 and len(set(a.shape)) > 1:
        raise ValueError(f"All dimensions of input must be of equal length, got {a.shape}")
    step = a.shape[1] + 1 if a.ndim == 2 else 1 + int(np.cumprod(a.shape[:-1]).sum())
    stop = a.shape[1] ** 2 if a.ndim == 2 and not wrap else a.size
    places = np.arange(a.size)[:stop:step]
    set_flat(a, places, _cast(val, a))


FILLING: tuple[Composite, ...] = (put, place, putmask, put_along_axis, fill_diagonal)
