"""Interpolation between knots on a line: ``numpy.interp``.

At a knot the slope is that of the interval to its right, at the last knot that of the interval to its left; outside the
knots it is 0. NumPy computes in float64 or complex128 whatever the operands are, and so do the rules.
"""

from typing import Any

import numpy as np

from pullback.primitives.shaping.as_array import as_array
from pullback.rules.declaration import Composite, Primitive, composite, primitive, zero_derivative


# ---------------------------------------------------------------------------------- sums by place, a gather's transpose
def _sum_at(values: Any, places: Any, *, length: int) -> Any:
    """Element k is the sum of the values whose place is k: numpy.bincount, for complex values too."""
    flat, at = np.ravel(values), np.ravel(places)
    if not flat.size:
        return np.zeros(length, flat.dtype)
    if flat.dtype.kind == "c":
        return np.bincount(at, flat.real, length) + 1j * np.bincount(at, flat.imag, length)
    return np.bincount(at, flat, length)


sum_at = primitive(
    _sum_at,
    name="sum_at_places",
    nondiff=("places",),
    vjps={"values": lambda ct, places: ct[places]},
)


# ------------------------------------------------------------------------------------------------------------ the rules
# Places: 0 is left of all n knots; k lies between the knots k - 1 and k; n is the last knot itself; n + 1 is right of
# them; n + 2 is that of NaN.
def _places(x: Any, xp: Any) -> Any:
    """The place of each x. Interpolating the numbers of the knots finds it, as fast as the forward: on sorted points
    far faster than numpy.searchsorted."""
    n = xp.shape[0]
    number = np.interp(x, xp, np.arange(n), -1, n)
    nowhere = np.isnan(number)
    places = (np.where(nowhere, n + 1, number) if nowhere.any() else number).astype(np.intp) + 1
    return places - (
        x < np.take(_starts(xp), places)
    )  # the number of a point just below a knot may have been rounded to that of the knot


def _starts(xp: Any) -> Any:
    """Where the interval of each place begins."""
    return np.concatenate((np.full(1, -np.inf), xp[:-1], xp[-2:], xp[-1:]))


places_of: Composite = zero_derivative(_places)


def _by_place(inside: Any) -> Any:
    """What is known of the n - 1 intervals, for each place: the last knot belongs to the last interval; 0 outside."""
    nothing = np.zeros(1, inside.dtype)
    return np.concatenate((nothing, inside, inside[-1:], nothing, nothing))


def _to_knots(left: Any, right: Any) -> Any:
    """The cotangent of the knots from what the intervals send to their left and right one; the last two places are
    one interval's."""
    n = left.shape[0] - 3
    nothing = np.zeros(1)
    of_left, of_right = (np.concatenate((side[1 : n - 1], side[n - 1 : n] + side[n : n + 1])) for side in (left, right))
    return np.concatenate((of_left, nothing)) + np.concatenate((nothing, of_right))


def _cotangents(ct: Any, x: Any, xp: Any, fp: Any, needed: frozenset[str], *, beyond: bool) -> tuple[Any, Any, Any]:
    """The value is that of the left knot and a share of the rise. A knot that moves by 1 moves the curve beside it by
    minus the slope.

    ``beyond`` the knots there is the value of the first and of the last.
    """
    places = places_of(x, xp)
    width = np.subtract(xp[1:], xp[:-1], dtype=np.float64)
    closed = width == 0  # of knots that coincide NumPy takes the right one
    per_width = np.where(closed, 0, 1 / np.where(closed, 1, width))
    slope = _by_place((fp[1:] - fp[:-1]) * per_width)
    ct_x = ct * np.take(slope, places) if "x" in needed else None
    if not needed & {"xp", "fp"}:
        return ct_x, None, None
    if not np.all(np.isfinite(x)):
        x = np.where(np.isfinite(x), x, 0)
    share = np.subtract(x, np.take(_by_place(xp[:-1]), places), dtype=np.float64) * np.take(
        _by_place(per_width), places
    )
    if np.any(closed):
        share = share + np.take(_by_place(np.where(closed, 1.0, 0.0)), places)
    to_right, count = ct * share, xp.shape[0] + 3
    left, right = sum_at(ct - to_right, places, length=count), sum_at(to_right, places, length=count)
    ct_xp = -_to_knots(left * slope, right * slope) if "xp" in needed else None
    ct_fp = _to_knots(left, right) if "fp" in needed else None
    if beyond and ct_fp is not None:
        ct_fp = ct_fp + np.concatenate((left[:1], np.zeros(count - 5), left[-2:-1]))
    return ct_x, ct_xp, ct_fp


interp_to_ends: Primitive = primitive(
    lambda x, xp, fp: np.interp(x, xp, fp),  # noqa: PLW0108 - the names are the operands'
    name="interp_to_ends",
    linear=("fp",),
)


@interp_to_ends.vjp("x", "xp", "fp")
def _to_ends_rule(ct: Any, x: Any, xp: Any, fp: Any, needed: frozenset[str]) -> tuple[Any, Any, Any]:
    return _cotangents(ct, x, xp, fp, needed, beyond=True)


def _interp_between(x: Any, xp: Any, fp: Any, left: Any, right: Any) -> Any:
    """numpy.interp, which takes complex ends as scalars of double precision only."""
    if np.iscomplexobj(fp):
        left, right = complex(left), complex(right)
    return np.interp(x, xp, fp, left, right)


interp_between: Primitive = primitive(
    _interp_between,
    name="interp_between",
    vjps={
        "left": lambda ct, x, xp, left_spec: np.sum(np.where(x < xp[0], ct, 0)).reshape(left_spec.shape),
        "right": lambda ct, x, xp, right_spec: np.sum(np.where(x > xp[-1], ct, 0)).reshape(right_spec.shape),
    },
)


@interp_between.vjp("x", "xp", "fp")
def _between_rule(ct: Any, x: Any, xp: Any, fp: Any, needed: frozenset[str]) -> tuple[Any, Any, Any]:
    return _cotangents(ct, x, xp, fp, needed, beyond=False)


# ----------------------------------------------------------------------------------------------------- NumPy's function
def _periodic(x: Any, xp: Any, fp: Any, period: Any) -> tuple[Any, Any, Any]:
    """Points and knots within one period; the last knot put before the first as well, and the first behind the last."""
    if period == 0:
        raise ValueError("np.interp: the period is 0; it must be another number")
    if xp.ndim != 1 or fp.ndim != 1 or xp.shape != fp.shape:
        raise ValueError(
            f"np.interp(period=) takes knots and values of one length in one axis, not of the shapes {xp.shape} "
            f"and {fp.shape}"
        )
    period = abs(period)
    x, xp = (np.remainder(v.astype(np.float64), period) for v in (x, xp))
    fp = fp.astype(np.complex128 if fp.dtype.kind == "c" else np.float64)
    order = np.argsort(xp)
    xp, fp = xp[order], fp[order]
    return x, np.concatenate((xp[-1:] - period, xp, xp[:1] + period)), np.concatenate((fp[-1:], fp, fp[:1]))


@composite(np.interp)
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    """numpy.interp; every array may be traced, and so may ``left``, ``right`` and ``period`` beside one that is."""
    x, xp, fp = as_array(x), as_array(xp), as_array(fp)
    if fp.dtype.kind in "bu":
        fp = fp.astype(np.float64)  # booleans have no differences, those of unsigned numbers wrap round
    if xp.dtype.kind in "bu":
        xp = xp.astype(np.float64)
    if period is not None:
        x, xp, fp = _periodic(x, xp, fp, period)
        left = right = None
    if not fp.size:
        raise ValueError("np.interp has no knots: xp and fp are empty")
    one = xp.shape == fp.shape == (1,)
    if left is None and right is None and not one:
        return interp_to_ends(x, xp, fp)
    left, right = fp[0] if left is None else left, fp[-1] if right is None else right
    if one:  # no interval
        operands: tuple[Any, Any, Any] = (np.empty(0, x.dtype), np.empty(1, xp.dtype), np.empty(1, fp.dtype))
        np.interp(*operands)  # raises where a dtype is too wide for NumPy
        middle, *ends = (np.multiply(value, 1, dtype=np.result_type(fp, np.float64)) for value in (fp[0], left, right))
        return np.copy(np.where(x < xp[0], ends[0], np.where(x > xp[0], ends[1], middle)), order="C")[()]
    return interp_between(x, xp, fp, left, right)


INTERPOLATION: tuple[Primitive | Composite, ...] = (sum_at, interp_to_ends, interp_between, interp)
