"""Windows that slide over an array: ``numpy.lib.stride_tricks.sliding_window_view``, and its transpose, which adds
them up again."""

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from pullback.primitives.shaping.as_array import as_array
from pullback.primitives.shared.axes import cut
from pullback.rules.declaration import Composite, Primitive, composite, primitive
from pullback.words.call_sites import site_here, site_text
from pullback.words.errors import NotDifferentiableError

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


# out[i, j, ...] = flat(x)[i * steps[0] + j * steps[1] + ...]; the transpose adds up what was taken from one place.
def _places(shape: Any, steps: Any) -> Any:
    """The place in the flat array of each element of a strided view."""
    found = np.zeros(shape, np.intp)
    for axis, (n, step) in enumerate(zip(shape, steps, strict=True)):
        found += (np.arange(n) * step).reshape([-1] + [1] * (len(shape) - axis - 1))
    return found


def _add_strided(x: Any, *, like: Any, steps: Any) -> Any:
    out = np.zeros(int(np.prod(like)), x.dtype)
    np.add.at(out, _places(x.shape, steps).reshape(-1), np.reshape(x, -1))
    return out.reshape(like)


add_strided: Primitive = primitive(
    _add_strided,
    name="add_strided",
    linear=("x",),
    vjps={"x": lambda ct, x_spec, steps: strided(ct, shape=x_spec.shape, steps=steps)},
)
strided: Primitive = primitive(
    lambda x, *, shape, steps: np.lib.stride_tricks.as_strided(
        np.ascontiguousarray(x), shape, [step * x.itemsize for step in steps], writeable=False
    ),
    name="view_strided",
    view=True,
    linear=("x",),
    vjps={"x": lambda ct, x_spec, steps: add_strided(ct, like=x_spec.shape, steps=steps)},
)


def as_strided(x: Any, shape: Any = None, strides: Any = None, subok: bool = False, writeable: bool = True) -> Any:
    """numpy.lib.stride_tricks.as_strided of a tracer: a view that shows later writes to ``x``, and that is itself never
    written through. Raises :class:`NotDifferentiableError` where it would reach beyond the elements of ``x``."""
    shape = x.shape if shape is None else tuple(shape) if np.iterable(shape) else (shape,)
    strides = x.strides if strides is None else tuple(strides) if np.iterable(strides) else (strides,)
    whole = x.T if x.ndim > 1 and x.flags.f_contiguous else x
    unit = whole.strides[0] if whole.ndim == 1 and whole.size > 1 else x.itemsize
    steps = tuple(stride // unit for stride in strides)
    ends = [step * (n - 1) for n, step in zip(shape, steps, strict=True)]
    low, high = sum(min(end, 0) for end in ends), sum(max(end, 0) for end in ends)
    inside = 0 not in shape and low >= 0 and high < x.size
    if not inside or any(stride % unit for stride in strides) or (whole.ndim > 1 and not whole.flags.c_contiguous):
        raise NotDifferentiableError(
            f"as_strided with shape {shape} and strides {strides} of an array of shape {x.shape} and strides "
            f"{x.strides} (at {site_text(site_here())}) takes what lies beyond the elements of the array, or between "
            "them; give it the whole array, np.ascontiguousarray(x), or write slices"
        )
    return strided(whole, shape=shape, steps=steps)


WINDOWS: tuple[Primitive | Composite, ...] = (
    add_windows, windows, np_sliding_window_view, add_strided, strided,
)  # fmt: skip
