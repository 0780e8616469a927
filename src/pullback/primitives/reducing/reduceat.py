"""Sums over segments: ``np.add.reduceat``."""

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from pullback.primitives.shared.axes import cut, integral
from pullback.rules.declaration import Composite, Primitive, composite, primitive
from pullback.words.specs import ArraySpec


def _to_segments(ct: Any, x_spec: ArraySpec, starts: tuple[int, ...], axis: int) -> Any:
    """The cotangent of its segment to every element; nothing to those before the first."""
    counts = np.diff((*starts, x_spec.shape[axis]))
    spread = np.repeat(ct, counts, axis)
    if not starts[0]:
        return spread
    before = np.zeros((*x_spec.shape[:axis], starts[0], *x_spec.shape[axis + 1 :]), x_spec.dtype)
    return np.concatenate((before, spread), axis)


sum_segments = primitive(
    lambda x, *, starts, axis, dtype: np.add.reduceat(x, starts, axis, dtype),
    name="sum_segments",
    linear=("x",),
    vjps={"x": _to_segments},
)


@composite(np.add.reduceat, name="add.reduceat")
def add_reduceat(array: Any, indices: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
    """numpy.add.reduceat; where segments overlap or are empty, the elements are first put in a line segment after
    segment."""
    along = normalize_axis_index(axis, array.ndim)
    starts = np.asarray(indices)
    if integral(dtype) or starts.ndim != 1 or not starts.size or starts.min() < 0 or starts.max() >= array.shape[along]:
        return np.add.reduceat(
            getattr(array, "__pullback_value__", lambda: array)(), indices, axis, dtype
        )  # plain, or NumPy's own refusal
    stops = np.append(starts[1:], array.shape[along])
    if (stops <= starts).any():
        parts = [np.arange(i, max(i + 1, j)) for i, j in zip(starts.tolist(), stops.tolist(), strict=True)]
        array = array[cut(array.ndim, along, np.concatenate(parts))]
        starts = np.cumsum([0, *map(len, parts[:-1])])
    return sum_segments(array, starts=tuple(starts.tolist()), axis=along, dtype=dtype)


SEGMENTS: tuple[Primitive | Composite, ...] = (sum_segments, add_reduceat)
