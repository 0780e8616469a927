"""Reading by index: ``x[key]``, take, compress, extract, take_along_axis.

Basic keys give views, advanced keys copies. The pullback adds into one buffer per array, in place.
"""

import math
from sys import _getframe
from threading import get_ident
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from pullback.primitives.shaping.creation import of_nothing
from pullback.primitives.shared.axes import cut
from pullback.recording.handles import FREE, SHARED, Handle, is_array, over, plain_value, resolve, spec_of_handle
from pullback.recording.index_keys import is_basic
from pullback.recording.recorder import call
from pullback.recording.regions import has_repeats, is_fancy, names_twice
from pullback.recording.results import view_of
from pullback.recording.tape import REPLAYABLE
from pullback.recording.writes import copied, empty_with_strides
from pullback.rules.cotangent_sums import alone
from pullback.rules.declaration import Composite, Primitive, composite, primitive
from pullback.rules.forms import Form, new_form
from pullback.words.call_sites import find_site


def _getitem(x: Any, *, key: Any) -> Any:
    return x[key]


getitem = primitive(_getitem, name="getitem", view=True)
FULL = slice(None)
PART = 8192
"""The number of elements whose places are computed at a time."""
SMALL = 256
"""Elements up to which ``np.add.at`` costs less than the preparation of anything better."""
WIDE, ROUNDS = 16, 8
"""Rows of at least WIDE elements are added in at most ROUNDS rounds, each of which names a row once."""
FEW = 16
"""The number of elements of which a key reads less than one where adding one by one costs less than numbering them
all."""


def _pull_getitem(record: tuple[Any, ...], ct: Any, cts: list[Any], sweep: Any) -> None:
    """Add the cotangent into the array's own, a buffer of ours from the first read on: n reads of a row cost n rows,
    not n arrays."""
    _, ident, spec, params, _ = record
    buffer = cts[ident]
    fresh = buffer is None
    if fresh:
        buffer = empty_with_strides(spec.shape, spec.dtype, None)
        buffer[...] = 0
        buffer = over(buffer, ct._tape) if isinstance(ct, Handle) else buffer
        cts[ident] = buffer
        sweep.owned.add(ident)
    elif isinstance(ct, Handle) and (not isinstance(buffer, Handle) or buffer._tape is not ct._tape):
        # What came first belongs to a trace below, or to none.
        below = buffer if isinstance(buffer, Handle) and is_array(buffer) else copied(buffer)
        buffer = cts[ident] = over(below, ct._tape, SHARED)
        sweep.owned.add(ident)
    elif ident not in sweep.owned or (not spec.shape and isinstance(buffer, Handle)):  # a sum of 0-d arrays is a scalar
        if not alone(buffer):
            buffer = cts[ident] = copied(buffer)
        sweep.owned.add(ident)
    (key,) = params
    if is_basic(key):
        buffer[key] += ct
    else:
        add_at_places(buffer, key, ct, fresh)


def add_at_places(buffer: Any, key: Any, ct: Any, fresh: bool) -> None:
    """``buffer[key] += ct`` with an advanced key, as often as an element is named; ``fresh`` says that the buffer holds
    zeros.

    ``np.add.at`` with one index array into one axis takes 0.6 of the time of ``buffer[key] += ct``, and need not be
    told whether the key has repeats; with any other key it takes many times that. So keys become places in the flat
    buffer where they can.
    """
    plain = type(buffer) is np.ndarray and buffer.flags.c_contiguous
    line = places_on_line(key, buffer.shape) if plain else None
    if line is not None:
        _add_along(buffer, *line, ct, fresh)
    elif not is_fancy(key) or not has_repeats(key, buffer.shape):
        buffer[key] = ct if fresh else buffer[key] + ct
    elif not plain or ct.size * FEW < buffer.size:
        np.add.at(buffer, key, ct)
    else:
        numbers = np.arange(buffer.size).reshape(buffer.shape)
        np.add.at(buffer.reshape(-1), numbers[key].reshape(-1), ct.reshape(-1))


def places_on_line(key: Any, shape: tuple[int, ...]) -> tuple[int, int, Any, bool] | None:
    """Where a key goes along one axis: the extents before that axis and of it, the places in it, and whether they are
    known to differ.

    The key is one array of integers or one mask among full slices, or one array of integers for each axis; None for any
    other.
    """
    items = key if type(key) is tuple else (key,)
    arrays = [k for k in items if type(k) is np.ndarray]
    masked = any(k.dtype.kind == "b" for k in arrays)
    if len(arrays) == len(items) == len(shape) != 1 and not masked:
        return 1, math.prod(shape), np.ravel_multi_index(arrays, shape, mode="wrap"), False
    if len(arrays) != 1 or any(k != FULL for k in items if type(k) is not np.ndarray):
        return None
    axis = next(k for k, item in enumerate(items) if item is arrays[0])
    named = arrays[0].ndim if masked else 1
    places = np.flatnonzero(arrays[0]) if masked else arrays[0]
    return math.prod(shape[:axis]), math.prod(shape[axis : axis + named]), places, masked


def _add_along(buffer: Any, before: int, extent: int, places: Any, distinct: bool, ct: Any, fresh: bool) -> None:
    """Add along the middle axis of ``buffer`` in the shape (before, extent, after). ``take`` costs a third of what a
    key does."""
    places = places.reshape(-1)
    after = buffer.size // (before * extent or 1)
    if before == after == 1:
        np.add.at(buffer.reshape(-1), places, ct.reshape(-1))
        return
    if not distinct:
        places = np.where(places < 0, places + extent, places)
        if names_twice(places, extent):
            if ct.size <= SMALL:
                at: Any = (slice(None), places)
                np.add.at(buffer.reshape(before, extent, after), at, ct.reshape(before, places.size, after))
            elif before == 1 and after >= WIDE:
                _add_rows(buffer.reshape(extent, after), places, ct.reshape(places.size, after))
            else:
                _add_repeated(buffer.reshape(-1), before, extent, after, places, ct.reshape(before, places.size, after))
            return
    ct = ct.reshape(before, places.size, after)
    lines, parts, axis = buffer.reshape(before, extent, after), (slice(None), places), 1
    if before == 1:
        ct, lines, parts, axis = ct[0], lines[0], places, 0
    lines[parts] = ct if fresh else lines.take(places, axis) + ct


def _add_rows(lines: Any, places: Any, ct: Any) -> None:
    """Add rows at places of which some repeat. Each round adds, of the rows that are left, the last one for each
    place."""
    mark, left = np.empty(len(lines), np.intp), np.arange(places.size)
    for _ in range(ROUNDS):
        mark[places[left]] = left
        last = mark[places[left]] == left
        now, left = left[last], left[~last]
        lines[places[now]] = lines.take(places[now], 0) + ct.take(now, 0)
        if not left.size:
            return
    _add_repeated(lines.reshape(-1), 1, len(lines), lines.shape[1], places[left], ct[None, left])


def _add_repeated(line: Any, before: int, extent: int, after: int, places: Any, ct: Any) -> None:
    """Add in the flat buffer, a part at a time: the places of all elements would take as much memory as the buffer,
    and new memory is slow."""
    some = max(1, PART // max(after, 1))
    lines = max(1, PART // max(after * min(some, places.size), 1))
    for first in range(0, before, lines):
        starts = np.arange(first, min(first + lines, before))[:, None, None] * (extent * after)
        for k in range(0, places.size, some):
            numbers = starts + (places[k : k + some, None] * after + np.arange(after))
            np.add.at(line, numbers.reshape(-1), ct[first : first + lines, k : k + some].reshape(-1))


def _build(opcode: int) -> tuple[Form, Any]:
    return Form(opcode, getitem, (0,), 1, (), (), (0,), has_params=True), _pull_getitem


GETITEM: Primitive = getitem
READ = getitem.forms[(0,), 1, frozenset(), False] = new_form(_build)


def read(handle: Any, key: Any) -> Any:
    """``handle[key]`` for a basic key, called by the method of the user's expression: what ``call(getitem, ...)``
    records, sooner."""
    tape, params = handle._tape, {"key": key}
    governed = tape.mode == REPLAYABLE and tape.trap is None
    if (tape.mode and not governed) or tape.thread != get_ident():
        return call(getitem, (handle,), params)
    kinds = tape.kinds
    value = handle._value if type(handle) is kinds.tracer else resolve(handle)._value
    if handle._id is None or type(value) is not np.ndarray:
        found = value[key] if type(value) is np.ndarray else None
        if type(found) is np.ndarray and found.size:  # part of a buffer that depends on nothing: no record
            return view_of(handle, getitem, params, found, None)
        if type(found) is np.float64:
            return found
        return call(getitem, (handle,), params)
    out = value[key]
    if type(out) is np.ndarray:
        if not out.size:
            return call(getitem, (handle,), params)  # shares no memory with anything, so it is no view
        part = kinds.view()
        part._parent, part._parent_id, part._parent_value = handle, handle._id, value
        part._primitive, part._params, part._written_in, part._known = getitem, params, None, None
    else:
        part = kinds.tracer()
    frame = _getframe(2)
    site = tape.sites[frame.f_lasti] if frame.f_code is tape.code else find_site(tape, frame)
    record = (READ.opcode, handle._id, handle._spec or spec_of_handle(handle), (key,), site)
    if governed:
        tape.governor.before_record(record, (handle,), (value,), params)
    part._value, part._id, part._tape, part._flag, part._spec = out, len(tape.records), tape, FREE, None
    tape.records.append(record)
    if governed:
        tape.governor.watch(part)
    return part


def gathered(handle: Any, places: Any) -> Any:
    """``handle[places]`` for an array of integers, as :func:`read`: the elements there, which are nobody else's."""
    tape = handle._tape
    k = tape.kept
    same = k.array is places and k.copy.dtype is places.dtype and k.data == places.tobytes()
    key = k.copy if same and k.copy.shape == places.shape else tape.keep(places)
    if tape.mode or tape.thread != get_ident():  # perhaps there is no value
        return call(getitem, (handle,), {"key": key})
    kinds = tape.kinds
    value = handle._value if type(handle) is kinds.tracer else resolve(handle)._value
    if handle._id is None or type(value) is not np.ndarray:
        return call(getitem, (handle,), {"key": key})
    out, part, frame = value[key], kinds.tracer(), _getframe(2)
    site = tape.sites[frame.f_lasti] if frame.f_code is tape.code else find_site(tape, frame)
    records = tape.records
    part._value, part._id, part._tape, part._flag, part._spec = out, len(records), tape, FREE, None
    records.append((READ.opcode, handle._id, handle._spec or spec_of_handle(handle), (key,), site))
    return part


@composite(np.take)
def take(a: Any, indices: Any, axis: int | None = None, out: Any = None, mode: str = "raise") -> Any:
    """numpy.take: ``a[..., indices]`` along an axis, along the flat array for None."""
    if isinstance(a, Handle) and not a.size:  # type: ignore[attr-defined]  # of a tracer
        # NumPy refuses a wrong mode.
        return of_nothing(a, np.take(plain_value(a), indices, axis, mode=mode))  # type: ignore[call-overload]
    line = np.ravel(a) if axis is None or not a.ndim else a
    place = normalize_axis_index(0 if axis is None else axis, line.ndim)
    wanted, extent = np.asarray(indices).astype(np.intp, copy=False), line.shape[place]
    if mode == "wrap":
        wanted = wanted % extent
    elif mode == "clip":
        wanted = np.clip(wanted, 0, extent - 1)
    elif mode != "raise":
        np.take(plain_value(a), indices, axis, mode=mode)  # type: ignore[call-overload]  # NumPy's own refusal
    part = line[cut(line.ndim, place, np.asarray(wanted))]  # a plain number would give a view
    return part if not np.ndim(part) or part.flags.c_contiguous else np.copy(part, order="C")


@composite(np.compress, name="numpy.compress")
def np_compress(condition: Any, a: Any, axis: int | None = None, out: Any = None) -> Any:
    """numpy.compress: the slices along an axis for which a condition holds; a short condition leaves out the rest."""
    chosen = plain_value(condition)
    chosen = np.asarray(chosen.values() if hasattr(chosen, "__pullback_hollow__") else chosen)
    if chosen.ndim != 1:
        raise ValueError(f"condition must be a 1-d array, got {chosen.ndim} axes")
    return _masking(np.take(a, np.flatnonzero(chosen), axis))


@composite(name="compress")
def compress(a: Any, condition: Any, axis: int | None = None, out: Any = None) -> Any:
    """The method of that name, whose array comes first."""
    return np.compress(condition, a, axis)


@composite(np.extract)
def extract(condition: Any, arr: Any) -> Any:
    """numpy.extract: the elements for which a condition holds."""
    return _masking(np.take(np.ravel(arr), np.flatnonzero(np.ravel(plain_value(condition)))))


def _masking(part: Any) -> Any:
    """``part`` itself, after a note in its trace that a condition chose it: an element may be left out because it is no
    number (see ``Tape.masks``)."""
    if isinstance(part, Handle):
        part._tape.masks = True
    return part


@composite(np.take_along_axis)
def take_along_axis(arr: Any, indices: Any, axis: int | None = -1) -> Any:
    """numpy.take_along_axis: along an axis, each line by indices of its own; axes of length 1 are repeated."""
    wanted = np.asarray(indices)
    if axis is None:
        if wanted.ndim != 1:
            raise ValueError(f"when axis=None, `indices` must have a single dimension, got {wanted.ndim}")
        arr, axis = np.ravel(arr), 0
    along = normalize_axis_index(axis, arr.ndim)
    if wanted.dtype.kind not in "iu":
        raise IndexError(f"`indices` must be an integer array, got {wanted.dtype}")
    if wanted.ndim != arr.ndim:
        raise ValueError(
            f"`indices` and `arr` must have the same number of dimensions, got {wanted.ndim} and {arr.ndim}"
        )
    grid: list[Any] = [np.arange(n).reshape((-1,) + (1,) * (arr.ndim - 1 - k)) for k, n in enumerate(arr.shape)]
    grid[along] = wanted
    return arr[tuple(grid)]


INDEXING: tuple[Primitive | Composite, ...] = (getitem, take, np_compress, compress, extract, take_along_axis)
