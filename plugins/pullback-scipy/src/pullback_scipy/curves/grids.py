"""Interpolation on grids: RegularGridInterpolator and interpn, linear or to the nearest; interp1d."""

from typing import Any

import numpy as np
from attrs import frozen
from scipy import interpolate

import pullback as pb
from pullback_scipy.curves.bases import make_interp_spline
from pullback_scipy.equations.pinning import plain
from pullback_scipy.mirroring import as_array, derived, holds, lacking, only, settled

METHODS = ("linear", "nearest")


# ---------------------------------------------------------------------------------------------------------------- grids
def _forward(values: Any, xi: Any, *, points: Any, method: str, fill_value: Any) -> Any:
    grid = tuple(np.array(p) for p in points)
    return interpolate.RegularGridInterpolator(grid, values, method, False, fill_value)(xi)


def _formula(values: Any, xi: Any, points: Any, method: str, fill_value: Any) -> Any:
    plain = pb.value(xi)
    places, fractions = [], []
    outside = np.zeros(plain.shape[:-1], bool)
    for axis, line in enumerate(points):
        p = np.array(line)
        at = np.clip(np.searchsorted(p, plain[..., axis], side="right") - 1, 0, max(len(p) - 2, 0))
        outside |= (plain[..., axis] < p[0]) | (plain[..., axis] > p[-1])
        places.append(at)
        fractions.append((xi[..., axis] - p[at]) / (p[np.minimum(at + 1, len(p) - 1)] - p[at]))
    extra = (1,) * (values.ndim - len(points))
    total: Any = 0.0
    if method == "nearest":
        total = values[tuple(at + (pb.value(t) > 0.5) for at, t in zip(places, fractions, strict=True))]
    else:
        for corner in np.ndindex((2,) * len(points)):
            term = values[tuple(at + side for at, side in zip(places, corner, strict=True))]
            for side, t in zip(corner, fractions, strict=True):
                term = term * np.reshape(t if side else 1 - t, (*np.shape(t), *extra))
            total = total + term
    if fill_value is None or not outside.any():
        return total
    return np.where(np.reshape(outside, (*outside.shape, *extra)), fill_value, total)


gridded = derived(_forward, _formula, "values xi", "points method fill_value", name="scipy.regular_grid")


@frozen(eq=False)
class Grid:
    """Values on a grid, of which some, or the points, are traced."""

    grid: Any
    values: Any
    method: str
    bounds_error: bool
    fill_value: Any
    plain: Any
    """SciPy's own, of the plain values."""
    holds_tracer = True

    def __call__(self, xi: Any, method: Any = None, *, nu: Any = None) -> Any:
        """The values at ``xi``, whose last axis has the coordinates."""
        if not (holds(xi) or holds(self.values)):
            return self.plain(xi, method, nu=nu)
        method = self.method if method is None else method
        title = "scipy.interpolate.RegularGridInterpolator"
        only(title, "method", method, *METHODS)
        only(title, "nu", nu, None)
        xi = as_array(np.stack(np.broadcast_arrays(*xi), axis=-1) if isinstance(xi, tuple) else xi) * 1.0
        n = len(self.grid)
        if n == 1 and xi.shape[-1:] != (1,):
            xi = xi[..., None]
        for axis, p in enumerate(self.grid):
            at = pb.value(xi)[..., axis]
            if self.bounds_error and not np.all((p[0] <= at) & (at <= p[-1])):
                raise ValueError(f"One of the requested xi is out of bounds in dimension {axis}")
        flat = np.reshape(xi, (-1, n))
        points = tuple(map(tuple, self.grid))
        values = as_array(self.values) * 1.0
        out = gridded(values, flat, points=points, method=method, fill_value=self.fill_value)
        shape = (1,) if xi.ndim == 1 else xi.shape[:-1]  # one point is a line of one, as in SciPy
        return np.reshape(out, (*shape, *out.shape[1:]))

    def __getattr__(self, name: str) -> Any:
        raise lacking("scipy.interpolate.RegularGridInterpolator", name)


@frozen(eq=False)
class GridMaker:
    """SciPy's class RegularGridInterpolator: it takes traced values and points."""

    by = ("values",)

    def __call__(self, points: Any, values: Any, method: str = "linear", bounds_error: bool = True,
                 fill_value: Any = np.nan, **options: Any) -> Any:  # fmt: skip
        points, fill_value = settled(points), settled(fill_value)
        title = "scipy.interpolate.RegularGridInterpolator"
        only(title, "points", "traced" if holds(points) else "plain", "plain")
        only(title, "fill_value", "traced" if holds(fill_value) else "plain", "plain")
        if holds(values):
            only(title, "method", method, *METHODS)
            values = as_array(values)
        shown = plain(values) if holds(values) else values  # SciPy goes another way for what cannot be written
        found = interpolate.RegularGridInterpolator(points, shown, method, bounds_error, fill_value, **options)
        if method not in METHODS and not holds(values):
            return found
        down = tuple(k for k, p in enumerate(points) if len(p) > 1 and p[0] > p[-1])  # SciPy turns them, too
        return Grid(found.grid, np.flip(values, down) if down else values, method, bounds_error, fill_value, found)

    def __instancecheck__(self, x: Any) -> bool:
        return isinstance(x, interpolate.RegularGridInterpolator | Grid)

    def __getattr__(self, name: str) -> Any:
        return getattr(interpolate.RegularGridInterpolator, name)


RegularGridInterpolator = GridMaker()


def interpn(
    points: Any, values: Any, xi: Any, method: str = "linear", bounds_error: bool = True, fill_value: Any = np.nan
) -> Any:
    """The values on a grid at ``xi``."""
    if not (holds(values) or holds(xi)):
        return interpolate.interpn(points, values, xi, method, bounds_error, fill_value)
    return RegularGridInterpolator(points, values, method, bounds_error, fill_value)(xi)


interpn.by = ("values", "xi")  # type: ignore[attr-defined] # as of `mirror`


# ------------------------------------------------------------------------------------------------------------- interp1d
def _line(x: Any, y: Any, new: Any, *, kind: str, fill_value: Any) -> Any:
    return interpolate.interp1d(x, y, kind, 0, bounds_error=False, fill_value=fill_value, assume_sorted=True)(new)


def _line_formula(x: Any, y: Any, new: Any, kind: str, fill_value: Any) -> Any:
    plain, nodes = pb.value(new), pb.value(x)
    extra = (1,) * (y.ndim - 1)
    if kind == "linear":
        at = np.clip(np.searchsorted(nodes, plain), 1, len(nodes) - 1) - 1
        t = np.reshape((new - x[at]) / (x[at + 1] - x[at]), (*plain.shape, *extra))
        total = y[at] + t * (y[at + 1] - y[at])
    else:
        middle = (nodes[1:] + nodes[:-1]) / 2
        at = {
            "nearest": np.searchsorted(middle, plain, side="left"),
            "nearest-up": np.searchsorted(middle, plain, side="right"),
            "previous": np.searchsorted(nodes, plain, side="right") - 1,
            "next": np.searchsorted(nodes, plain, side="left"),
        }[kind]
        total = y[np.clip(at, 0, len(nodes) - 1)]
    return filled(total, plain, nodes, fill_value)


def filled(total: Any, points: Any, nodes: Any, fill_value: Any) -> Any:
    """``total`` with the values that stand for those at points before and behind the nodes."""
    if isinstance(fill_value, str):
        return total
    below, above = fill_value if isinstance(fill_value, tuple) else (fill_value, fill_value)
    for outside, value in ((points < nodes[0], below), (points > nodes[-1], above)):
        if outside.any():
            total = np.where(np.reshape(outside, (*points.shape, *(1,) * (total.ndim - 1))), value, total)
    return total


lined = derived(_line, _line_formula, "x y new", "kind fill_value", name="scipy.interp1d")


@frozen(eq=False)
class Line:
    """Values at nodes of which some, or the points, are traced."""

    x: Any
    y: Any
    kind: str
    axis: int
    bounds_error: bool
    fill_value: Any
    holds_tracer = True

    def __call__(self, x: Any) -> Any:
        """The values at ``x``."""
        points, nodes = as_array(x) * 1.0, pb.value(self.x)
        at = pb.value(points)
        if self.bounds_error and (np.any(at < nodes[0]) or np.any(at > nodes[-1])):
            raise ValueError("A value in x_new is outside the interpolation range.")
        flat = np.reshape(points, (-1,))
        if isinstance(self.kind, int):
            spline = make_interp_spline(self.x, self.y, self.kind)
            out = filled(spline(flat), pb.value(flat), nodes, self.fill_value)
        else:
            out = lined(self.x, self.y, flat, kind=self.kind, fill_value=self.fill_value)
        out = np.reshape(out, (*points.shape, *out.shape[1:]))
        if self.axis == 0 or out.ndim == points.ndim:
            return out
        return np.moveaxis(out, range(points.ndim), range(self.axis, self.axis + points.ndim))

    def __getattr__(self, name: str) -> Any:
        raise lacking("scipy.interpolate.interp1d", name)


@frozen(eq=False)
class LineMaker:
    """SciPy's class interp1d: it takes traced nodes, values and points."""

    by = ("x", "y")

    def __call__(self, x: Any, y: Any, kind: Any = "linear", axis: int = -1,
                 copy: bool = True,  # noqa: ARG002 - SciPy's
                 bounds_error: Any = None, fill_value: Any = np.nan, assume_sorted: bool = False) -> Any:  # fmt: skip
        fill_value = settled(fill_value)
        title = "scipy.interpolate.interp1d"
        kind = {"zero": 0, "slinear": 1, "quadratic": 2, "cubic": 3}.get(kind, kind)  # degrees of splines
        if not isinstance(kind, int):
            only(title, "kind", kind, "linear", "nearest", "nearest-up", "previous", "next")
        only(title, "fill_value", "traced" if holds(fill_value) else "plain", "plain")
        x, y = as_array(x) * 1.0, as_array(y) * 1.0
        place = axis % y.ndim
        y = np.moveaxis(y, place, 0) if place else y
        if not assume_sorted:
            order = np.argsort(pb.value(x), kind="stable")
            x, y = x[order], y[order]
        beyond = isinstance(fill_value, str)
        refuse = not beyond if bounds_error is None else bool(bounds_error)
        fixed = fill_value if beyond or np.ndim(fill_value) == 0 else tuple(fill_value)
        return Line(x, y, kind, place, refuse, fixed)

    def __instancecheck__(self, x: Any) -> bool:
        return isinstance(x, interpolate.interp1d | Line)

    def __getattr__(self, name: str) -> Any:
        return getattr(interpolate.interp1d, name)


interp1d = LineMaker()
