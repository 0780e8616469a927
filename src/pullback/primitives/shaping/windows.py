"""Windows that slide over an array: ``numpy.lib.stride_tricks.sliding_window_view``, and its transpose, which adds
them up again."""

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from pullback.primitives.shaping.as_array import as_array
from pullback.primitives.shared.axes import cut
from pullback.rules.declaration import Composite, Primitive, composite, primitive

sliding_window_view = np.lib.stride_tricks.sliding_window_view


# out[..., i + j, ...] = sum over j of x[..., i, ..., j]: the windows of one axis, each shifted to where it was taken.
# Positions and offsets have equal parts in this, so the loop is over the fewer of them.
def _add_windows(x: Any, *, axis: int) -> Any:
    positions, width = x.shape[axis], x.shape[-1]
    ndim = x.ndim - 1
    out = np.zeros((*x.shape[:axis], max(positions + width - 1, 0), *x.shape[axis + 1 : -1]), x.dtype)
    if width <= positions:
        for j in range(width):
            out[cut(ndim, axis, slice(j, j + positions))] += x[..., j]
    else:
        windows = np.moveaxis(x, -1, axis + 1)
        for i in range(positions):
            out[cut(ndim, axis, slice(i, i + width))] += windows[cut(ndim + 1, axis, i)]
    return out


add_windows: Primitive = primitive(
    _add_windows,
    name="add_windows",
    linear=("x",),
    vjps={"x": lambda ct, x_spec, axis: sliding_window_view(ct, x_spec.shape[-1], axis)},
)


def _to_array(ct: Any, axis: tuple[int, ...]) -> Any:
    """The windows added up one axis after the other, the last first: the work is that of the first sum, over all of
    ``ct``."""
    for along in reversed(axis):
        ct = add_windows(ct, axis=along)
    return ct


# Read-only whatever NumPy is asked for: a write to one element of a writeable view would show in several windows.
windows = primitive(
    lambda x, *, shape, axis: sliding_window_view(x, shape, axis),
    name="view_windows",
    view=True,
    linear=("x",),
    vjps={"x": _to_array},
)


@composite(sliding_window_view, name="sliding_window_view")
def np_sliding_window_view(
    x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> Any:
    """numpy.lib.stride_tricks.sliding_window_view; a view that shows later writes to ``x``, and that is itself never
    written through."""
    x = as_array(x)
    shape = tuple(window_shape) if np.iterable(window_shape) else (window_shape,)
    if axis is None and len(shape) != x.ndim:
        raise ValueError(
            f"sliding_window_view must provide window_shape for all dimensions of x, {x.ndim}, got {shape}; or "
            "name the axes by axis="
        )
    along = tuple(range(x.ndim)) if axis is None else normalize_axis_tuple(axis, x.ndim, allow_duplicate=True)
    return windows(x, shape=shape, axis=along)


WINDOWS: tuple[Primitive | Composite, ...] = (add_windows, windows, np_sliding_window_view)
