"""Elements shifted round or repeated: roll, repeat, tile."""

import operator
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from pullback.primitives.shared.axes import cut
from pullback.recording.handles import plain_value
from pullback.rules.declaration import Composite, Primitive, composite, primitive
from pullback.words.specs import ArraySpec

roll = primitive(
    lambda x, *, shift, axis: np.roll(x, shift, axis),
    name="roll_axes",
    linear=("x",),
    vjps={
        "x": lambda ct, shift, axis: np.roll(ct, tuple(-n for n in shift) if isinstance(shift, tuple) else -shift, axis)
    },
)


def _sum_tiles(ct: Any, x_spec: ArraySpec, reps: tuple[int, ...]) -> Any:
    """Every axis taken apart into (repetition, element); the repetitions summed."""
    ndim = max(x_spec.ndim, len(reps))
    extents = (1,) * (ndim - x_spec.ndim) + x_spec.shape
    times = (1,) * (ndim - len(reps)) + reps
    ct = ct.reshape(tuple(n for pair in zip(times, extents, strict=True) for n in pair))
    for axis, count in enumerate(times):  # one by one, which is twice as fast as all at once
        if count != 1:
            ct = ct.sum(axis=2 * axis, keepdims=True)
    return ct.reshape(x_spec.shape)


tile = primitive(lambda x, *, reps: np.tile(x, reps), name="tile_axes", linear=("x",), vjps={"x": _sum_tiles})


BLAS = "fdFD"


# repeat and segment_sum are transposes of each other, so that each is the other's rule.
def _segment_sum(x: Any, repeats: Any, *, axis: int, length: int) -> Any:
    """Runs of ``repeats`` neighbours summed, ``length`` of them; a run of none gives 0."""
    if np.ndim(repeats) == 0:
        apart = x.reshape((*x.shape[:axis], length, max(int(repeats), 0), *x.shape[axis + 1 :]))
        if axis == x.ndim - 1 and x.dtype.char in BLAS:  # short sums of neighbours, a sixth of the time
            return np.matmul(apart, np.ones(apart.shape[-1], x.dtype))
        return np.add.reduce(apart, axis + 1)
    counts = np.broadcast_to(repeats, (length,))
    if not x.shape[axis]:
        return np.zeros((*x.shape[:axis], length, *x.shape[axis + 1 :]), x.dtype)
    summed = np.add.reduceat(x, np.minimum(np.cumsum(counts) - counts, x.shape[axis] - 1), axis)
    empty = np.flatnonzero(counts == 0)
    if empty.size:  # there reduceat has given the element at the start
        summed[cut(x.ndim, axis, empty)] = 0
    return summed


@composite(np.roll, name="roll")
def np_roll(a: Any, shift: Any, axis: Any = None) -> Any:
    """numpy.roll."""
    return roll(a, shift=_static(shift), axis=_static(axis))


@composite(np.repeat, name="repeat")
def np_repeat(a: Any, repeats: Any, axis: int | None = None) -> Any:
    """numpy.repeat."""
    line = np.ravel(a) if axis is None or not np.ndim(a) else a
    counts: Any = repeats if isinstance(repeats, int) else np.asarray(plain_value(repeats))
    if not isinstance(counts, int) and counts.dtype.kind in "bui":  # others are NumPy's to refuse
        counts = counts.astype(np.intp)
    if getattr(counts, "shape", ()) == (1,):
        counts = int(counts[0])
    return repeat(line, counts, axis=normalize_axis_index(axis or 0, line.ndim))


@composite(np.tile, name="tile")
def np_tile(A: Any, reps: Any) -> Any:
    """numpy.tile."""
    return tile(A, reps=tuple(map(operator.index, reps)) if np.ndim(reps) else (operator.index(reps),))


segment_sum: Primitive = primitive(
    _segment_sum,
    name="sum_runs",
    nondiff=("repeats",),
    vjps={"x": lambda ct, repeats, axis: repeat(ct, repeats, axis=axis)},
)


repeat: Primitive = primitive(
    lambda x, repeats, *, axis: np.repeat(x, repeats, axis),
    name="repeat_runs",
    nondiff=("repeats",),
    vjps={"x": lambda ct, repeats, x_spec, axis: segment_sum(ct, repeats, axis=axis, length=x_spec.shape[axis])},
)


def _static(value: Any) -> Any:
    """Counts, shifts and axes as Python integers and tuples, which can be compared and hashed."""
    if value is None or isinstance(value, int):
        return value
    return tuple(int(n) for n in value) if np.ndim(value) else int(value)


REPEATING: tuple[Primitive | Composite, ...] = (roll, tile, segment_sum, repeat, np_roll, np_repeat, np_tile)
