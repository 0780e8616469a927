"""Slopes and integrals of sampled functions (gradient, trapezoid, ediff1d), and functions applied piece by piece or
line by line (piecewise, apply_along_axis, apply_over_axes)."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from pullback.primitives.reducing.scans import undiff
from pullback.primitives.shaping.as_array import as_array
from pullback.primitives.shared.axes import cut
from pullback.recording.handles import plain_value
from pullback.rules.declaration import Composite, Primitive, composite, primitive
from pullback.words.specs import ArraySpec

# ------------------------------------------------------------------------------------------------------------- gradient
# With the chords s[i] = (f[i + 1] - f[i]) / h[i], the slope inside is the mean of the two chords beside it, each
# weighted with the other's interval; at an end it is the chord (edge_order=1), or twice the chord less the slope next
# to it (edge_order=2, a parabola).


def _beside(line: Any, ndim: int, axis: int) -> Any:
    """A line along ``axis``, ready to be multiplied with an array of ``ndim`` axes."""
    return line.reshape((-1,) + (1,) * (ndim - 1 - axis))


def _spacing(at: Any) -> tuple[Any, Any, Any]:
    """The intervals, and the weights of the chords to the left and to the right of every point inside; even
    intervals have 1/2."""
    if not np.ndim(at):
        return at, 0.5, 0.5
    h = np.diff(at)
    both = h[:-1] + h[1:]
    return h, h[1:] / both, h[:-1] / both


def _inside(ct: Any, axis: int, edge_order: int) -> Any:
    """The cotangent of the slopes inside, from which a parabola at an end takes that of the end."""
    ndim = len(ct.shape)
    inside = ct[cut(ndim, axis, slice(1, -1))]
    if edge_order == 1:
        return inside
    inside = np.copy(inside)
    for end in (slice(1), slice(-1, None)):
        inside[cut(ndim, axis, end)] -= ct[cut(ndim, axis, end)]
    return inside


def _to_chords(ct: Any, left: Any, right: Any, axis: int, edge_order: int) -> Any:
    """The cotangent of the chords. The ends are doubled here, so that they too have the weight 1/2."""
    ndim = len(ct.shape)
    first, last = (ct[cut(ndim, axis, end)] * (2 * edge_order) for end in (slice(1), slice(-1, None)))
    ct = np.concatenate((first, _inside(ct, axis, edge_order), last), axis)
    after, before = ct[cut(ndim, axis, slice(1, None))], ct[cut(ndim, axis, slice(-1))]
    if isinstance(left, float):
        return (after + before) * left
    half = np.full(1, 0.5, left.dtype)
    to_left, to_right = (_beside(np.concatenate(weights), ndim, axis) for weights in ((left, half), (half, right)))
    return after * to_left + before * to_right


def _slope_rule(ct: Any, at: Any, f_spec: ArraySpec, axis: int, edge_order: int) -> Any:
    h, left, right = _spacing(at)
    chords = _to_chords(ct, left, right, axis, edge_order)
    return undiff(chords / (_beside(h, len(ct.shape), axis) if len(at.shape) else h), shape=f_spec.shape, axis=axis)


def _spacing_rule(ct: Any, f: Any, at: Any, axis: int, edge_order: int) -> Any:
    """A longer interval makes its chord flatter, and changes the weights of the chords beside."""
    ndim = len(ct.shape)
    h, left, right = _spacing(at)
    rise = np.diff(f, axis=axis)
    if not len(at.shape):
        return -np.sum(_to_chords(ct, left, right, axis, edge_order) * (rise / h)) / h  # h * h can overflow, and vanish
    others = tuple(k for k in range(ndim) if k != axis)
    chord = rise / _beside(h, ndim, axis)
    steeper = -np.sum(_to_chords(ct, left, right, axis, edge_order) * chord, axis=others) / h
    turn = np.sum(_inside(ct, axis, edge_order) * np.diff(chord, axis=axis), axis=others) / (h[:-1] + h[1:])
    nothing = np.zeros(1, left.dtype)
    ct_h = steeper + np.concatenate((turn * left, nothing)) - np.concatenate((nothing, turn * right))
    return undiff(ct_h, shape=at.shape, axis=0)


slope = primitive(
    lambda f, at, *, axis, edge_order: np.gradient(f, at, axis=axis, edge_order=edge_order),
    name="slope_along",
    linear=("f",),
    vjps={"f": _slope_rule, "at": _spacing_rule},
)


def _floating(x: Any) -> Any:
    """``x`` with floats for integers, as NumPy takes them here; a Python number stays one, and takes the dtype of
    what it divides."""
    if isinstance(x, float | int):
        return float(x)
    x = as_array(x)
    return x.astype(np.float64) if x.dtype.kind in "iu" else x


@composite(np.gradient)
def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """numpy.gradient; f, and spacings or coordinates, may be traced."""
    f = _floating(as_array(f))
    axes = tuple(range(f.ndim)) if axis is None else normalize_axis_tuple(axis, f.ndim)
    spacings = [_floating(at) for at in varargs or (1.0,)]
    if len(spacings) == 1 and not np.ndim(spacings[0]):
        spacings *= len(axes)
    if len(spacings) != len(axes):
        raise TypeError(
            f"np.gradient got {len(spacings)} spacings for {len(axes)} axes; pass none, one number, or one for "
            "each axis"
        )
    slopes = tuple(slope(f, at, axis=along, edge_order=edge_order) for at, along in zip(spacings, axes, strict=True))
    return slopes[0] if len(slopes) == 1 else slopes


# -------------------------------------------------------------------------------------------- integrals and differences
@composite(np.trapezoid)
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """numpy.trapezoid."""
    y, width = as_array(y), dx
    along = normalize_axis_index(axis, y.ndim)
    if x is not None:
        x = as_array(x)
        width = _beside(np.diff(x), y.ndim, along) if x.ndim == 1 else np.diff(x, axis=axis)
    after, before = (y[cut(y.ndim, along, part)] for part in (slice(1, None), slice(-1)))
    return np.sum(width * (after + before) / 2.0, axis=axis)


@composite(np.ediff1d)
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    """numpy.ediff1d."""
    line = np.ravel(as_array(ary))
    steps = [np.diff(line)]
    for name, end, place in (("to_begin", to_begin, 0), ("to_end", to_end, 2)):
        if end is None:
            continue
        more = as_array(end)
        if not np.can_cast(more.dtype, line.dtype, "same_kind"):
            raise TypeError(
                f"np.ediff1d: {name} of dtype {more.dtype} cannot be put beside differences of dtype {line.dtype}"
            )
        steps.insert(place, np.ravel(more).astype(line.dtype))
    return steps[0] if len(steps) == 1 else np.concatenate(steps)


# ----------------------------------------------------------------------------------------- piece by piece, line by line
@composite(np.piecewise)
def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Any:
    """numpy.piecewise: each function sees the elements for which its condition holds, and no others; later ones win."""
    x = as_array(x)
    if np.isscalar(condlist) or (not np.ndim(condlist[0]) and x.ndim):
        condlist = [condlist]
    conditions = list(np.asarray([plain_value(condition) for condition in condlist], dtype=bool))
    if len(conditions) == len(funclist) - 1:
        conditions.append(~np.any(conditions, axis=0))
    if len(conditions) != len(funclist):
        raise ValueError(
            f"np.piecewise got {len(conditions)} conditions and {len(funclist)} functions; pass as many, or one more"
        )
    y = np.zeros_like(x)
    for condition, function in zip(conditions, funclist, strict=True):
        if not callable(function):
            y[condition] = function
        elif condition.any():
            y[condition] = function(x[condition], *args, **kw)
    return y


@composite(np.apply_along_axis)
def apply_along_axis(func1d: Callable[..., Any], axis: int, arr: Any, *args: Any, **kwargs: Any) -> Any:
    """numpy.apply_along_axis: the results of the lines stacked, in the dtype of the first."""
    along = normalize_axis_index(axis, arr.ndim)
    lines = np.moveaxis(arr, along, -1)
    places = list(np.ndindex(*lines.shape[:-1]))
    if not places:
        raise ValueError(f"np.apply_along_axis: an array of shape {arr.shape} has no line along axis {along}")
    results = [as_array(func1d(lines[(*place, ...)], *args, **kwargs)) for place in places]
    first = results[0]
    stacked = np.stack([part if part.shape == first.shape else np.broadcast_to(part, first.shape) for part in results])
    if stacked.dtype != first.dtype:
        stacked = stacked.astype(first.dtype)
    whole, own = stacked.reshape((*lines.shape[:-1], *first.shape)), arr.ndim - 1
    return np.transpose(whole, (*range(along), *range(own, own + first.ndim), *range(along, own)))


@composite(np.apply_over_axes)
def apply_over_axes(func: Callable[..., Any], a: Any, axes: Any) -> Any:
    """numpy.apply_over_axes: one axis after the other, each kept with length 1."""
    for axis in axes if isinstance(axes, Iterable) else (axes,):
        along = int(axis) + (a.ndim if axis < 0 else 0)
        result = func(a, along)
        whole = result if result.ndim == a.ndim else np.expand_dims(result, along)
        if whole.ndim != a.ndim:
            raise ValueError(
                f"np.apply_over_axes: the function made {result.ndim} axes of {a.ndim}; it must keep all, or all but "
                "one"
            )
        a = whole
    return a


CALCULUS: tuple[Primitive | Composite, ...] = (
    *(slope, gradient, trapezoid, ediff1d),
    *(piecewise, apply_along_axis, apply_over_axes),
)
