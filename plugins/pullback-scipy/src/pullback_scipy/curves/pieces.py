"""Piecewise polynomials: their values between breakpoints, and the cubic splines that are such.

The coefficients of a cubic spline are linear in its values: they follow from slopes that solve a banded system (de
Boor, "A Practical Guide to Splines", 1978, chapter IV), which has a derivative by the nodes, too.
"""

from typing import Any

import numpy as np
from attrs import frozen
from scipy import interpolate

import pullback as pb
from pullback_scipy.dense.solves import solve_banded
from pullback_scipy.mirroring import as_array, derived, holds, lacking, only, primitive


# --------------------------------------------------------------------------------------------------------------- values
# c has the powers, the highest first, then the pieces, then whatever the values are; the result has the points first.
def _evaluated(c: Any, breaks: Any, x: Any, *, nu: int, extrapolate: Any) -> Any:
    return interpolate.PPoly(c, breaks, extrapolate=extrapolate)(x, nu)


def piece_of(breaks: Any, x: Any, extrapolate: Any) -> tuple[Any, Any]:
    """The piece in which each point is, and what is outside of all."""
    place = np.clip(np.searchsorted(breaks, x, side="right") - 1, 0, len(breaks) - 2)
    outside = np.zeros(np.shape(x), bool) if extrapolate else (x < breaks[0]) | (x > breaks[-1])
    return place, outside


def _formula(c: Any, breaks: Any, x: Any, nu: int, extrapolate: Any) -> Any:
    place, outside = piece_of(pb.value(breaks), pb.value(x), extrapolate)
    t, order = x - breaks[place], c.shape[0] - 1
    t = np.reshape(t, np.shape(t) + (1,) * (len(c.shape) - 2))
    total: Any = 0.0
    for k in range(order + 1):
        power = order - k
        if power < nu:
            break
        factor = float(np.prod(np.arange(power, power - nu, -1.0)))
        total = total + factor * c[k, place] * (t ** (power - nu) if power > nu else 1.0)
    if isinstance(total, float):
        total = np.zeros(np.shape(x) + tuple(c.shape[2:]))
    outside = np.reshape(outside, np.shape(outside) + (1,) * (len(c.shape) - 2))
    return np.where(outside, np.nan, total) if outside.any() else total


evaluated = derived(_evaluated, _formula, "c breaks x", "nu extrapolate", name="scipy.ppoly")


def _raised_formula(c: Any, breaks: Any, nu: int) -> Any:
    """The coefficients of the integral from the first breakpoint, ``nu`` times."""
    for _ in range(nu):
        powers = np.arange(c.shape[0] * 1.0, 0, -1).reshape(-1, *(1,) * (len(c.shape) - 1))
        c = c / powers
        h = np.reshape(breaks[1:] - breaks[:-1], (-1, *(1,) * (len(c.shape) - 2)))
        pieces: Any = sum(c[k] * h ** (c.shape[0] - k) for k in range(c.shape[0]))
        start = np.cumsum(pieces, axis=0)
        start = np.concatenate((np.zeros((1, *pieces.shape[1:])), start[:-1]), axis=0)
        c = np.concatenate((c, start[None]), axis=0)
    return c


def _integral_formula(c: Any, breaks: Any, a: Any, b: Any, extrapolate: Any) -> Any:
    whole = _raised_formula(c, breaks, 1)
    return _formula(whole, breaks, b, 0, extrapolate) - _formula(whole, breaks, a, 0, extrapolate)


raised = derived(
    lambda c, breaks, *, nu: interpolate.PPoly(c, breaks).antiderivative(nu).c,
    _raised_formula, "c breaks", "nu", name="scipy.ppoly_antiderivative",
)  # fmt: skip
integrated = derived(
    lambda c, breaks, a, b, *, extrapolate: interpolate.PPoly(c, breaks).integrate(a, b, extrapolate),
    _integral_formula, "c breaks a b", "extrapolate", name="scipy.ppoly_integral",
)  # fmt: skip


@frozen(eq=False)
class Pieces:
    """A piecewise polynomial with traced coefficients ``c`` or breakpoints ``x``; ``axis`` is where those of the values
    stand for the points."""

    c: Any
    x: Any
    extrapolate: Any = True
    axis: int = 0
    holds_tracer = True

    def __call__(self, x: Any, nu: int = 0, extrapolate: Any = None) -> Any:
        """The values, or derivatives, at ``x``."""
        beyond = self.extrapolate if extrapolate is None else extrapolate
        only("a piecewise polynomial", "extrapolate", beyond, True, False)
        points = as_array(x) * 1.0
        flat = np.reshape(points, (-1,))
        out = evaluated(self.c, self.x, flat, nu=int(nu), extrapolate=bool(beyond))
        out = np.reshape(out, (*points.shape, *out.shape[1:]))
        if self.axis == 0 or out.ndim == points.ndim:
            return out
        return np.moveaxis(out, range(points.ndim), range(self.axis, self.axis + points.ndim))

    def derivative(self, nu: int = 1) -> "Pieces":
        """The derivative, as a piecewise polynomial."""
        c = self.c
        for _ in range(nu):
            powers = np.arange(c.shape[0] - 1.0, 0, -1).reshape(-1, *(1,) * (len(c.shape) - 1))
            c = c[:-1] * powers if c.shape[0] > 1 else c * 0.0
        return Pieces(c, self.x, self.extrapolate, self.axis)

    def antiderivative(self, nu: int = 1) -> "Pieces":
        """The integral from the first breakpoint, as a piecewise polynomial."""
        return Pieces(raised(self.c, self.x, nu=int(nu)), self.x, self.extrapolate, self.axis)

    def integrate(self, a: Any, b: Any, extrapolate: Any = None) -> Any:
        """The integral from ``a`` to ``b``."""
        beyond = self.extrapolate if extrapolate is None else extrapolate
        only("a piecewise polynomial", "extrapolate", beyond, True, False)
        a, b = (as_array(each) * 1.0 for each in (a, b))
        return integrated(self.c, self.x, a, b, extrapolate=bool(beyond))

    def __getattr__(self, name: str) -> Any:
        raise lacking("a piecewise polynomial", name)


# -------------------------------------------------------------------------------------------------------- cubic splines
BOUNDARIES = ("not-a-knot", "natural", "clamped", "free")


def _slopes(x: Any, y: Any, start: Any, end: Any) -> Any:
    """The slopes at the nodes; ``start`` and ``end`` are (order, value) of a derivative, or None for not-a-knot."""
    n, h = x.shape[0], x[1:] - x[:-1]
    wide = np.reshape(h, (-1, *(1,) * (len(y.shape) - 1)))
    slope = (y[1:] - y[:-1]) / wide
    if n == 2 and start is None and end is None:
        return np.concatenate((slope, slope), axis=0)
    if n == 3 and start is None and end is None:
        return _parabola(wide, slope)
    zero = np.zeros(1)
    upper, middle, lower = [h[:-1]], [2 * (h[:-1] + h[1:])], [h[1:]]
    right = 3 * (wide[1:] * slope[:-1] + wide[:-1] * slope[1:])
    first, last = _end(h, wide, slope, start, 0), _end(h, wide, slope, end, -1)
    upper = [zero, first[1], upper[0]]
    middle = [first[0], middle[0], last[0]]
    lower = [lower[0], last[1], zero]
    ab = np.stack([np.concatenate(upper), np.concatenate(middle), np.concatenate(lower)])
    return solve_banded((1, 1), ab, np.concatenate((first[2], right, last[2]), axis=0))


def _parabola(wide: Any, slope: Any) -> Any:
    """Not-a-knot through three points: one parabola."""
    curve = (slope[1:] - slope[:1]) / (wide[:1] + wide[1:])
    return np.concatenate((slope[:1] - curve * wide[:1], slope[:1] + curve * wide[:1], slope[1:] + curve * wide[1:]))


def _end(h: Any, wide: Any, slope: Any, condition: Any, end: int) -> tuple[Any, Any, Any]:
    """The coefficients at the end and beside it, and the right side."""
    near, far = (0, 1) if end == 0 else (-1, -2)
    d, h0, h1 = (slice(k, k + 1 or None) for k in (near, near, far))
    if condition is None:
        total = wide[h0] + wide[h1]
        other = slope[slice(far, far + 1 or None)]
        right = ((wide[h0] + 2 * total) * wide[h1] * slope[d] + wide[h0] ** 2 * other) / total
        return h[h1], h[h0] + h[h1], right
    order, value = condition
    value = np.zeros_like(pb.value(slope[:1])) + value
    if order == 1:
        return np.ones(1), np.zeros(1), value
    sign = -0.5 if end == 0 else 0.5
    return 2 * h[h0], h[h0], 3 * slope[d] * wide[h0] + sign * value * wide[h0] ** 2


def hermite(x: Any, y: Any, slopes: Any) -> Any:
    """The coefficients of the cubics with these values and slopes, as SciPy has them."""
    h = np.reshape(x[1:] - x[:-1], (-1, *(1,) * (len(y.shape) - 1)))
    slope = (y[1:] - y[:-1]) / h
    t = (slopes[:-1] + slopes[1:] - 2 * slope) / h
    return np.stack((t / h, (slope - slopes[:-1]) / h - t, slopes[:-1], y[:-1]))


def _condition(given: Any) -> Any:
    if isinstance(given, str):
        return {"not-a-knot": None, "natural": (2, 0.0), "clamped": (1, 0.0), "free": (2, 0.0)}[given]
    return given


def _spline_formula(x: Any, y: Any, start: Any, end: Any) -> Any:
    return hermite(x, y, _slopes(x, y, _condition(start), _condition(end)))


def _spline(x: Any, y: Any, *, start: Any, end: Any) -> Any:
    return interpolate.CubicSpline(x, y, bc_type=(start, end)).c


spline_coefficients = derived(_spline, _spline_formula, "x y", "start end", name="scipy.cubic_spline")


def _monotone_formula(x: Any, y: Any) -> Any:
    """Fritsch and Butland, "A method for constructing local monotone piecewise cubic interpolants", 1984; the ends by
    the three-point formula of Moler, as in SciPy."""
    h = np.reshape(x[1:] - x[:-1], (-1, *(1,) * (len(y.shape) - 1)))
    m = (y[1:] - y[:-1]) / h
    if x.shape[0] == 2:
        return hermite(x, y, np.concatenate((m, m), axis=0))
    v = pb.value(m)
    flat = (np.sign(v[1:]) != np.sign(v[:-1])) | (v[1:] == 0) | (v[:-1] == 0)
    w1, w2 = 2 * h[1:] + h[:-1], h[1:] + 2 * h[:-1]
    mean = (w1 / np.where(flat, 1.0, m[:-1]) + w2 / np.where(flat, 1.0, m[1:])) / (w1 + w2)
    inner = np.where(flat, 0.0, 1.0 / mean)
    ends = [_monotone_end(h[a], h[b], m[a], m[b]) for a, b in ((0, 1), (-1, -2))]
    return hermite(x, y, np.concatenate((ends[0][None], inner, ends[1][None]), axis=0))


def _monotone_end(h0: Any, h1: Any, m0: Any, m1: Any) -> Any:
    d = ((2 * h0 + h1) * m0 - h0 * m1) / (h0 + h1)
    plain, v0, v1 = pb.value(d), pb.value(m0), pb.value(m1)
    away = np.sign(plain) != np.sign(v0)
    steep = (np.sign(v0) != np.sign(v1)) & (np.abs(plain) > 3.0 * np.abs(v0))
    return np.where(away, 0.0, np.where(~away & steep, 3.0 * m0, d))


monotone_coefficients = derived(
    lambda x, y: interpolate.PchipInterpolator(x, y).c, _monotone_formula, "x y", name="scipy.pchip"
)


# -------------------------------------------------------------------------------------------------------- counterparts
@frozen(eq=False)
class Curve:
    """A class of curves of SciPy's: called with traced nodes or values it gives :class:`Pieces`; a curve of plain ones
    takes traced points."""

    kind: Any
    build: Any
    by = ("x", "y")

    def __call__(self, x: Any, y: Any, *args: Any, **kwargs: Any) -> Any:
        if holds(x) or holds(y) or holds(args) or holds(kwargs):
            return self.build(x, y, *args, **kwargs)
        return PlainCurve(self.kind(x, y, *args, **kwargs))

    def __instancecheck__(self, x: Any) -> bool:
        return isinstance(x, self.kind | Pieces) or (isinstance(x, PlainCurve) and isinstance(x.plain, self.kind))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.kind, name)


@frozen(eq=False)
class PlainCurve:
    """A curve of SciPy's, which takes traced points."""

    plain: Any

    def __call__(self, x: Any, nu: int = 0, extrapolate: Any = None) -> Any:
        """The values, or derivatives, at ``x``."""
        if not holds(x):
            return self.plain(x, nu, extrapolate)
        points = as_array(x) * 1.0
        return at_points(points, curve=self.plain, nu=int(nu), extrapolate=extrapolate)

    def derivative(self, nu: int = 1) -> "PlainCurve":
        """The derivative."""
        return PlainCurve(self.plain.derivative(nu))

    def antiderivative(self, nu: int = 1) -> "PlainCurve":
        """The antiderivative."""
        return PlainCurve(self.plain.antiderivative(nu))

    def integrate(self, a: Any, b: Any, extrapolate: Any = None) -> Any:
        """The integral from ``a`` to ``b``."""
        if not (holds(a) or holds(b)):
            return self.plain.integrate(a, b, extrapolate)
        a, b = (as_array(each) * 1.0 for each in (a, b))
        return between_points(a, b, curve=self.plain, extrapolate=extrapolate)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.plain, name)


def _at_points(x: Any, *, curve: Any, nu: int, extrapolate: Any) -> Any:
    return curve(x, nu, extrapolate)


def _points_rule(ct: Any, x: Any, curve: Any, nu: int, extrapolate: Any) -> Any:
    slope = at_points(x, curve=curve, nu=nu + 1, extrapolate=extrapolate)
    beyond = np.isnan(pb.value(slope))  # of a curve that is not extrapolated, which is a constant there
    slope = np.where(beyond, 0.0, slope) if beyond.any() else slope
    extra = slope.ndim - x.ndim
    if not extra:
        return ct * slope
    start = getattr(curve, "axis", 0) or 0
    axes = tuple(k for k in range(slope.ndim) if not start <= k < start + x.ndim)
    return np.sum(ct * slope, axis=axes)


at_points = primitive(_at_points, name="scipy.curve", vjps={"x": _points_rule})


def _limits_rule(ct: Any, a: Any, b: Any, curve: Any, extrapolate: Any, needed: frozenset[str]) -> Any:
    def slope(at: Any) -> Any:
        out = at_points(at, curve=curve, nu=0, extrapolate=extrapolate)
        beyond = np.isnan(pb.value(out))  # of a curve that is not extrapolated
        return np.sum(ct * (np.where(beyond, 0.0, out) if beyond.any() else out))

    return (-slope(a) if "a" in needed else None, slope(b) if "b" in needed else None)


between_points = primitive(
    lambda a, b, *, curve, extrapolate: np.asarray(curve.integrate(float(a), float(b), extrapolate))[()],
    name="scipy.curve_integral",
)
between_points.vjp("a", "b", fn=_limits_rule)


def first_axis(y: Any, axis: int) -> Any:
    """``y`` with the axis of the nodes as its first."""
    y = as_array(y) * 1.0
    return y if axis % y.ndim == 0 else np.moveaxis(y, axis, 0)


def _cubic(x: Any, y: Any, axis: int = 0, bc_type: Any = "not-a-knot", extrapolate: Any = None) -> Any:
    title = "scipy.interpolate.CubicSpline"
    pair = (bc_type, bc_type) if isinstance(bc_type, str) else tuple(bc_type)
    for each in pair:
        if isinstance(each, str):
            only(title, "bc_type", each, *BOUNDARIES)
        elif holds(each):
            only(title, "bc_type", "traced", "plain")
    only(title, "extrapolate", extrapolate, None, True, False)
    x = as_array(x) * 1.0
    fixed = [c if isinstance(c, str) else (int(c[0]), np.asarray(c[1])[()]) for c in pair]
    c = spline_coefficients(x, first_axis(y, axis), start=fixed[0], end=fixed[1])
    return Pieces(c, x, extrapolate is not False, axis % np.ndim(y))


def _pchip(x: Any, y: Any, axis: int = 0, extrapolate: Any = None) -> Any:
    x = as_array(x) * 1.0
    c = monotone_coefficients(x, first_axis(y, axis))
    return Pieces(c, x, extrapolate is not False, axis % np.ndim(y))


CubicSpline = Curve(interpolate.CubicSpline, _cubic)
PchipInterpolator = Curve(interpolate.PchipInterpolator, _pchip)
