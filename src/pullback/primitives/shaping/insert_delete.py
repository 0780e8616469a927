"""Elements put in, taken out, repeated to fill a shape, or trimmed: insert, delete, resize, trim_zeros."""

import warnings
from functools import cache
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from pullback.primitives.shaping.nested_lists import as_operand
from pullback.primitives.shared.axes import cut
from pullback.recording.handles import plain_value
from pullback.rules.declaration import Composite, Primitive, composite, primitive
from pullback.words.specs import INEXACT, ArraySpec


def _along(arr: Any, axis: int | None) -> tuple[Any, int]:
    """The array and the axis along which it is edited: the flat array for None."""
    if axis is None:
        return (arr if arr.ndim == 1 else np.ravel(arr)), 0
    return arr, normalize_axis_index(axis, arr.ndim)


# --------------------------------------------------------------------------------------------------------------- insert
def _new_places(obj: Any, extent: int, count: int) -> Any:
    """Where the ``count`` new elements stand in the result, in the order in which they are given. ``extent`` is that
    of the array."""
    if obj.size == 1:
        start = int(obj.reshape(()))
        return np.arange(count) + (start + extent if start < 0 else start)
    places = np.where(obj < 0, obj + extent, obj).astype(np.intp)
    places[np.argsort(places, kind="stable")] += np.arange(places.size)
    return places


def _to_array(ct: Any, arr_spec: ArraySpec, obj: Any, axis: int) -> Any:
    """The cotangent of what was there before."""
    extent, total = arr_spec.shape[axis], ct.shape[axis]
    places = _new_places(obj, extent, total - extent)
    if obj.size == 1:
        stop = int(places[-1]) + 1 if places.size else 0
        start = stop - places.size
        return np.concatenate(
            (ct[cut(arr_spec.ndim, axis, slice(start))], ct[cut(arr_spec.ndim, axis, slice(stop, None))]), axis
        )
    old = np.ones(total, bool)
    old[places] = False
    return np.take(ct, np.flatnonzero(old), axis)


def _to_values(ct: Any, arr_spec: ArraySpec, values_spec: ArraySpec, obj: Any, axis: int) -> Any:
    """The cotangent of the new elements; NumPy puts the first axis of the values in the place of ``axis`` where
    ``obj`` is a number."""
    extent = arr_spec.shape[axis]
    new = ct[cut(arr_spec.ndim, axis, _new_places(obj, extent, ct.shape[axis] - extent))]
    new = new if obj.ndim else np.moveaxis(new, axis, 0)
    return new.reshape((1,) * (values_spec.ndim - arr_spec.ndim) + new.shape)


insertion = primitive(
    lambda arr, values, obj, *, axis: np.insert(arr, obj, values, axis),
    name="insert_along",
    nondiff=("obj",),
    linear=("arr", "values"),
    vjps={"arr": _to_array, "values": _to_values},
)


@cache
def _booleans_choose() -> bool:
    """Whether the installed NumPy inserts before the places where a boolean array is true; older ones take it for
    numbers, and warn."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return bool(np.insert(np.zeros(2), np.ones(2, bool), 1.0)[0])


@composite(np.insert)
def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Any:
    """numpy.insert: ``obj`` is a number, a slice, or an array of integers or booleans."""
    arr = as_operand(arr)
    line, along = _along(arr if hasattr(arr, "ndim") else np.asarray(arr), axis)
    places = np.arange(*obj.indices(line.shape[along])) if isinstance(obj, slice) else np.asarray(plain_value(obj))
    if places.dtype == bool:
        places = np.flatnonzero(places) if _booleans_choose() else places.astype(np.intp)
    elif not places.size and not isinstance(obj, np.ndarray):
        places = places.astype(np.intp)
    if line.dtype.kind not in INEXACT:
        return np.insert(plain_value(line), places, plain_value(values), along)
    return insertion(line, as_operand(values), places, axis=along)


# --------------------------------------------------------------------------------------------------------------- delete
@composite(np.delete)
def delete(arr: Any, obj: Any, axis: int | None = None) -> Any:
    """numpy.delete: ``obj`` is a number, a slice, or an array of integers or booleans."""
    line, along = _along(arr, axis)
    extent = line.shape[along]
    gone = _run(obj, extent, along)
    if gone is None:
        left = np.zeros(extent, bool)
        left[np.delete(np.arange(extent), obj if isinstance(obj, slice) else plain_value(obj))] = True
        return line[cut(line.ndim, along, left)]
    parts = [line[cut(line.ndim, along, part)] for part in (slice(gone.start), slice(gone.stop, None))]
    return np.concatenate(parts, along)


def _run(obj: Any, extent: int, axis: int) -> range | None:
    """The places that a number or a slice without gaps takes out; None for any other ``obj``."""
    if isinstance(obj, slice):
        gone = range(*obj.indices(extent))
        gone = gone if gone.step > 0 else gone[::-1]
        if len(gone) > 1 and gone.step > 1:
            return None
        return range(gone[0], gone[-1] + 1) if gone else range(0)
    if not isinstance(obj, int | np.integer) or isinstance(obj, bool):
        return None
    if not -extent <= obj < extent:
        raise IndexError(f"index {obj} is out of bounds for axis {axis} with size {extent}")
    start = int(obj) % extent
    return range(start, start + 1)


# ------------------------------------------------------------------------------------------------ resize and trim_zeros
def _sum_cycles(ct: Any, x_spec: ArraySpec) -> Any:
    """Every element's copies summed: the cotangent in rows as long as the array, the last of which may be cut short."""
    line, size = ct.reshape(-1), x_spec.size
    rows, rest = divmod(line.shape[0], size or 1)
    if not size or not line.shape[0]:
        return np.zeros(x_spec.shape, x_spec.dtype)
    total = line[: rows * size].reshape(rows, size).sum(axis=0) if rows else np.zeros(size, x_spec.dtype)
    if rest:
        total = np.concatenate((total[:rest] + line[rows * size :], total[rest:]))
    return total.reshape(x_spec.shape)


cycle = primitive(lambda x, *, shape: np.resize(x, shape), name="cycle", linear=("x",), vjps={"x": _sum_cycles})


@composite(np.resize)
def resize(a: Any, new_shape: Any) -> Any:
    """numpy.resize: the elements over and over, until the new shape is full."""
    return cycle(a, shape=tuple(int(n) for n in new_shape) if np.ndim(new_shape) else (int(new_shape),))


@composite(np.trim_zeros)
def trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Any:
    """numpy.trim_zeros: a view without the zeros at the ends. What is 0 is decided by the values."""
    plain, options = plain_value(filt), {} if axis is None else {"axis": axis}  # axis= is new in NumPy 2.2
    trimmed = np.trim_zeros(plain, trim, **options)  # type: ignore[arg-type]  # a wrong trim is NumPy's to refuse
    if not np.ndim(plain):
        return filt
    key = []
    for places, extent, length in zip(np.nonzero(plain), plain.shape, trimmed.shape, strict=True):
        start = int(places.min()) if length < extent and "f" in trim.lower() and places.size else 0
        key.append(slice(start, start + length))
    return filt[tuple(key)]


EDITING: tuple[Primitive | Composite, ...] = (insertion, insert, delete, cycle, resize, trim_zeros)
