"""Padding: ``np.pad`` in every mode.

NumPy pads axis 0 first, then axis 1 together with the new corners, and so on. The rules go from the last axis to the
first. Along each axis they add the cotangents of the two pads to those of the elements that fill the pads.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from pullback.primitives.shaping.nested_lists import as_operand
from pullback.primitives.shared.axes import BACKWARDS, cut
from pullback.recording.handles import plain_value
from pullback.rules.declaration import Composite, Primitive, composite, primitive
from pullback.words.specs import ArraySpec

Widths = tuple[tuple[int, int], ...]
MANY_PERIODS = 4


def _at(array: Any, axis: int, start: int | None, stop: int | None) -> Any:
    return array[cut(len(array.shape), axis, slice(start, stop))]


def _apart(array: Any, axis: int, x_spec: ArraySpec, widths: Widths) -> tuple[Any, Any, Any]:
    """The pad before, what lies between, and the pad after, along ``axis``."""
    start = widths[axis][0]
    stop = start + x_spec.shape[axis]
    return _at(array, axis, None, start), _at(array, axis, start, stop), _at(array, axis, stop, None)


def _give_back(ct: Any, x_spec: ArraySpec, widths: Widths, give: Callable[[int, Any, Any, Any], None]) -> Any:
    """The cotangent of ``x``: ``give(axis, before, inner, after)`` adds to ``inner``, in place, what the pads along
    ``axis`` owe it."""
    for axis in reversed(range(x_spec.ndim)):
        before, inner, after = _apart(ct, axis, x_spec, widths)
        ct = np.copy(inner) if any(widths[axis]) else inner
        give(axis, before, ct, after)
    return ct


def _add_total(inner: Any, axis: int, place: int, pad: Any, times: Any = None) -> None:
    """All of a pad, weighed, to the element at ``place``."""
    if pad.shape[axis]:
        weighed = pad if times is None else pad * times
        inner[cut(len(inner.shape), axis, slice(place, place + 1))] += weighed.sum(axis=axis, keepdims=True)


# -------------------------------------------------------------------------------- a value of the user's: constant, ramp
def _inside(ct: Any, x_spec: ArraySpec, widths: Widths) -> Any:
    return ct[tuple(slice(before, before + n) for (before, _), n in zip(widths or (), x_spec.shape, strict=True))]


def _pairs_of(totals: list[Any], x_spec: ArraySpec) -> Any:
    """A pair for every axis, as the user's values are broadcast, from the last axis to the first."""
    return np.stack(totals[::-1]).reshape(x_spec.ndim, 2) if totals else np.zeros((0, 2), x_spec.dtype)


def _to_constants(ct: Any, x_spec: ArraySpec, widths: Widths) -> Any:
    totals: list[Any] = []
    for axis in reversed(range(x_spec.ndim)):
        before, ct, after = _apart(ct, axis, x_spec, widths)
        totals += after.sum(), before.sum()
    return _pairs_of(totals, x_spec)


constant = primitive(
    lambda x, values, *, widths: np.pad(x, widths, "constant", constant_values=values),
    name="pad_constant",
    linear=("x", "values"),
    vjps={"x": _inside, "values": _to_constants},
)


def _way(pad: Any, axis: int, end: int) -> Any:
    """How far each element of a ramp is on its way from the end value, which it reaches, to the edge, which it does
    not."""
    n = pad.shape[axis]
    way = np.arange(n)[:: -1 if end else 1] / max(n, 1)
    return way.reshape((n,) + (1,) * (len(pad.shape) - 1 - axis))


def _ramp_to_inner(axis: int, before: Any, inner: Any, after: Any) -> None:
    _add_total(inner, axis, 0, before, _way(before, axis, 0))
    _add_total(inner, axis, inner.shape[axis] - 1, after, _way(after, axis, 1))


def _from_ramp(ct: Any, x_spec: ArraySpec, widths: Widths) -> Any:
    return _give_back(ct, x_spec, widths, _ramp_to_inner)


def _to_ends(ct: Any, x_spec: ArraySpec, widths: Widths) -> Any:
    totals: list[Any] = []

    def give(axis: int, before: Any, inner: Any, after: Any) -> None:
        totals.extend((pad * (1 - _way(pad, axis, end))).sum() for end, pad in ((1, after), (0, before)))
        _ramp_to_inner(axis, before, inner, after)

    _give_back(ct, x_spec, widths, give)
    return _pairs_of(totals, x_spec)


ramp = primitive(
    lambda x, ends, *, widths: np.pad(x, widths, "linear_ramp", end_values=ends),
    name="pad_ramp",
    linear=("x", "ends"),
    vjps={"x": _from_ramp, "ends": _to_ends},
)


# ---------------------------------------------------------------------- the array again: edge, reflect, symmetric, wrap
# Place p along an axis of n elements, counted from the first of them, lies in block q = p // m at p - q m, where m is n
# - 1 for reflect and n for the others. Even blocks repeat the array, odd ones are its mirror image; wrap knows
# repetition only. With reflect_type="odd" the image is turned about the edge, too: two blocks on, everything is higher
# by 2 (last - first).
def _from_edge(ct: Any, x_spec: ArraySpec, widths: Widths) -> Any:
    def give(axis: int, before: Any, inner: Any, after: Any) -> None:
        _add_total(inner, axis, 0, before)
        _add_total(inner, axis, inner.shape[axis] - 1, after)

    return _give_back(ct, x_spec, widths, give)


def _from_blocks(ct: Any, x_spec: ArraySpec, widths: Widths, mode: str, odd: bool) -> Any:
    def give(axis: int, before: Any, inner: Any, after: Any) -> None:
        n = inner.shape[axis]
        for pad, first in ((before, -before.shape[axis]), (after, n)):
            if n == 1 and mode != "wrap":
                _add_total(inner, axis, 0, pad)  # there is nothing to mirror: NumPy repeats the edge, whatever the type
            elif pad.shape[axis]:
                _from_pad(inner, axis, pad, first, mode, odd=odd)

    return _give_back(ct, x_spec, widths, give)


def _from_pad(inner: Any, axis: int, pad: Any, first: int, mode: str, *, odd: bool) -> None:
    """A pad that begins at place ``first``, block by block to where it came from."""
    n = inner.shape[axis]
    length = n - 1 if mode == "reflect" else n
    period = length if mode == "wrap" else 2 * length
    if pad.shape[axis] > MANY_PERIODS * period:
        pad = _one_period(inner, axis, pad, period, odd=odd)
    for block, start, stop in _blocks(first, first + pad.shape[axis], length):
        piece = _at(pad, axis, start - first, stop - first)
        low, high = start - block * length, stop - block * length
        mirrored = mode != "wrap" and block % 2 == 1
        if mirrored:
            top = length if mode == "reflect" else n - 1
            low, high = top - high + 1, top - low + 1
            piece = piece[cut(len(pad.shape), axis, BACKWARDS)]
        inner[cut(len(inner.shape), axis, slice(low, high))] += -piece if odd and mirrored else piece
        if odd:
            _raise(inner, axis, piece, block + mirrored, block - mirrored)


def _raise(inner: Any, axis: int, piece: Any, last: int, first: int) -> None:
    """The part of an odd reflection that depends on the edges: ``last`` times the last element less ``first`` times
    the first."""
    if last:
        _add_total(inner, axis, inner.shape[axis] - 1, piece, last)
    if first:
        _add_total(inner, axis, 0, piece, -first)


def _blocks(start: int, stop: int, length: int) -> Iterator[tuple[int, int, int]]:
    """The parts of ``start`` to ``stop`` in blocks of ``length``: the number of the block, where the part begins and
    where it ends."""
    for block in range(start // length, -(-stop // length)):
        yield block, max(start, block * length), min(stop, (block + 1) * length)


def _one_period(inner: Any, axis: int, pad: Any, period: int, *, odd: bool) -> Any:
    """A pad of many periods summed into its first one; how much higher the later ones stand is given to the edges."""
    count = -(-pad.shape[axis] // period)
    whole = np.pad(pad, [(0, count * period - pad.shape[axis]) if k == axis else (0, 0) for k in range(len(pad.shape))])
    rows = whole.reshape((*pad.shape[:axis], count, period, *pad.shape[axis + 1 :]))
    if odd:
        higher = 2 * np.arange(count).reshape((count,) + (1,) * (len(pad.shape) - axis - 1))
        _raise(inner, axis, rows.sum(axis=axis + 1) * higher, 1, 1)
    return rows.sum(axis=axis)


edge = primitive(
    lambda x, *, widths: np.pad(x, widths, "edge"),
    name="pad_edge",
    linear=("x",),
    vjps={"x": _from_edge},
)
wrap = primitive(
    lambda x, *, widths: np.pad(x, widths, "wrap"),
    name="pad_wrap",
    linear=("x",),
    vjps={"x": lambda ct, x_spec, widths: _from_blocks(ct, x_spec, widths, "wrap", odd=False)},
)
mirror = primitive(
    lambda x, *, widths, mode, odd: np.pad(x, widths, mode, reflect_type="odd" if odd else "even"),
    name="pad_mirror",
    linear=("x",),
    vjps={"x": _from_blocks},
)


# ------------------------------------------------------------------------------ statistics of what lies next to the pad
def _windows(n: int, axis: int, lengths: Any) -> tuple[tuple[int, int], tuple[int, int]]:
    """Where the elements lie from which the pads before and after are made: ``stat_length`` of them at either end,
    all for None."""
    before, after = (n if length is None else min(length, n) for length in (lengths[axis] if lengths else (None, None)))
    return (0, before), (n - after, n)


def _from_mean(ct: Any, x_spec: ArraySpec, widths: Widths, lengths: Any) -> Any:
    def give(axis: int, before: Any, inner: Any, after: Any) -> None:
        for pad, (start, stop) in zip((before, after), _windows(inner.shape[axis], axis, lengths), strict=True):
            if pad.shape[axis] and start < stop:
                part = inner[cut(len(inner.shape), axis, slice(start, stop))]
                part += pad.sum(axis=axis, keepdims=True) / (stop - start)

    return _give_back(ct, x_spec, widths, give)


def _from_statistic(ct: Any, out: Any, x_spec: ArraySpec, widths: Widths, mode: str, lengths: Any) -> Any:
    """What each pad got, to the elements that are its maximum, minimum or median; equal ones share."""
    trimmed = plain_value(out)  # which elements were taken has no derivative
    for axis in reversed(range(x_spec.ndim)):
        pads, values = _apart(ct, axis, x_spec, widths), _apart(trimmed, axis, x_spec, widths)
        ct, trimmed = pads[1], values[1]
        if any(widths[axis]):
            ct = np.copy(ct)
            before, after = _windows(x_spec.shape[axis], axis, lengths)
            for window, both in ((before, (0, 2)),) if before == after else ((before, (0,)), (after, (2,))):
                ends = [end for end in both if pads[end].shape[axis]]
                if ends:
                    total = sum(pads[end].sum(axis=axis, keepdims=True) for end in ends)
                    part = ct[cut(x_spec.ndim, axis, slice(*window))]
                    _share(part, total, _at(trimmed, axis, *window), _at(values[ends[0]], axis, 0, 1), axis, mode)
    return ct


def _share(part: Any, total: Any, window: Any, statistic: Any, axis: int, mode: str) -> None:
    """Add to ``part``, in place, what was ``total`` for the statistic: to the elements of the window that are it, in
    equal parts."""
    values = [statistic]
    if mode == "median" and not window.shape[axis] % 2:
        middle = window.shape[axis] // 2
        ordered = np.partition(window, (middle - 1, middle), axis)
        values = [_at(ordered, axis, k, k + 1) for k in (middle - 1, middle)]
    undefined = statistic != statistic  # noqa: PLR0124 - NaN, also of complex numbers
    for value in values:
        hits = window == value
        if undefined.any():
            hits |= undefined & (window != window)  # noqa: PLR0124
        places = np.unravel_index(np.flatnonzero(hits), hits.shape)
        lines = (*places[:axis], np.zeros_like(places[axis]), *places[axis + 1 :])
        numbers = np.ravel_multi_index(lines, statistic.shape)
        counts = np.bincount(numbers, minlength=statistic.size).reshape(statistic.shape)
        part[places] += (total / (counts * len(values)))[lines]


mean = primitive(
    lambda x, *, widths, lengths: np.pad(x, widths, "mean", stat_length=lengths),
    name="pad_mean",
    linear=("x",),
    vjps={"x": _from_mean},
)
statistic = primitive(
    lambda x, *, widths, mode, lengths: np.pad(x, widths, mode, stat_length=lengths),
    name="pad_statistic",
    vjps={"x": _from_statistic},
)


# --------------------------------------------------------------------------------------------------------------- np.pad
OPTION = {
    "constant": "constant_values", "linear_ramp": "end_values", "reflect": "reflect_type", "symmetric": "reflect_type",
    "maximum": "stat_length", "minimum": "stat_length", "median": "stat_length", "mean": "stat_length",
    "edge": "", "wrap": "", "empty": "",
}  # fmt: skip
"""The one option that each mode takes."""


def _pairs(value: Any, ndim: int) -> Widths:
    """A pair of integers for every axis, from one number, one pair, or a pair for each; raises ValueError for a
    negative one."""
    pairs = np.broadcast_to(np.asarray(value), (ndim, 2))
    if (pairs < 0).any():
        raise ValueError("index can't contain negative values")
    return tuple((int(before), int(after)) for before, after in pairs)


def _widths(pad_width: Any, ndim: int) -> Widths:
    """The widths of all pads; a dict names those of some axes."""
    if isinstance(pad_width, dict):
        pairs = [(0, 0)] * ndim
        for axis, width in pad_width.items():
            pairs[axis] = width if isinstance(width, tuple) else (width, width)
        pad_width = pairs
    if ndim and np.asarray(pad_width).dtype.kind != "i":
        raise TypeError("`pad_width` must be of integral type.")
    return _pairs(pad_width, ndim)


@composite(np.pad)
def pad(array: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Any:
    """numpy.pad. The pads of mode="empty" are zeros; ``constant_values`` and ``end_values`` may be traced, also in
    lists."""
    widths: Any = _widths(pad_width, array.ndim) or 0  # NumPy takes no empty list for an array without axes
    if callable(mode):
        return _by_function(array, widths, mode, kwargs)
    if mode not in OPTION or set(kwargs) - {OPTION[mode]}:
        return np.pad(plain_value(array), pad_width, mode, **kwargs)  # NumPy's own refusal
    option = kwargs.get(OPTION[mode])
    if mode in ("constant", "empty", "linear_ramp"):
        values = 0 if option is None else as_operand(option)
        return (ramp if mode == "linear_ramp" else constant)(array, values, widths=widths)
    if mode in ("reflect", "symmetric"):
        return mirror(array, widths=widths, mode=mode, odd=option == "odd")
    if mode in ("edge", "wrap"):
        return (edge if mode == "edge" else wrap)(array, widths=widths)
    lengths = None if option is None else _pairs(option, array.ndim)
    return (
        mean(array, widths=widths, lengths=lengths)
        if mode == "mean"
        else statistic(array, widths=widths, mode=mode, lengths=lengths)
    )


def _by_function(array: Any, widths: Widths, function: Callable[..., Any], kwargs: dict[str, Any]) -> Any:
    """Zeros around the array, and every line along every axis handed to the user's function, which writes into it."""
    padded = constant(array, 0, widths=widths)
    for axis in range(padded.ndim):
        lines = np.moveaxis(padded, axis, -1)
        for place in np.ndindex(lines.shape[:-1]):
            function(lines[(*place, Ellipsis)], widths[axis], axis, kwargs)
    return padded


PADDING: tuple[Primitive | Composite, ...] = (constant, ramp, edge, wrap, mirror, mean, statistic, pad)
