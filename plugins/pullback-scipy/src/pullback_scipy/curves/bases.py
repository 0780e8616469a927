"""B-splines: sums of basis functions, whose matrix at given points is sparse."""

from typing import Any

import numpy as np
from attrs import frozen
from scipy import interpolate

import pullback as pb
from pullback_scipy.curves.pieces import PlainCurve, first_axis
from pullback_scipy.mirroring import as_array, holds, lacking, only, primitive, settled


# --------------------------------------------------------------------------------------------------------- coefficients
def _matrix(x: Any, t: Any, k: int) -> Any:
    return interpolate.BSpline.design_matrix(np.array(x), np.array(t), k).tocsc()


def _fitted(y: Any, *, x: Any, t: Any, k: int) -> Any:
    return interpolate.make_interp_spline(np.array(x), y, k, None if t is None else np.array(t)).c


def _fitted_rule(ct: Any, x: Any, t: Any, k: int) -> Any:
    return refitted(ct, x=x, t=t, k=k)


def _refitted(ct: Any, *, x: Any, t: Any, k: int) -> Any:
    """The transpose of :func:`_fitted`: a system with the transposed matrix of the basis at the nodes."""
    from scipy.sparse.linalg import spsolve  # noqa: PLC0415 - for those who interpolate

    knots = t if t is not None else tuple(interpolate.make_interp_spline(np.array(x), np.zeros(len(x)), k).t)
    flat = ct.reshape(len(x), -1)
    return spsolve(_matrix(x, knots, k).T.tocsc(), flat).reshape(ct.shape)


fitted = primitive(_fitted, name="scipy.make_interp_spline", linear=("y",), vjps={"y": _fitted_rule})
refitted = primitive(
    _refitted, name="scipy.transposed_interp_spline", linear=("ct_c",), operands=("ct_c",), params=("x", "t", "k")
)
refitted.vjp("ct_c", fn=lambda ct, x, t, k: fitted(ct, x=x, t=t, k=k))


# --------------------------------------------------------------------------------------------------------------- values
def _valued(c: Any, x: Any, *, t: Any, k: int, nu: int, extrapolate: Any) -> Any:
    return interpolate.BSpline(np.array(t), c, k, extrapolate)(x, nu)


def _valued_rule(
    ct: Any, c: Any, x: Any, t: Any, k: int, nu: int, extrapolate: Any, needed: frozenset[str]
) -> tuple[Any, Any]:
    of_c, of_x = None, None
    if "c" in needed:
        of_c = spread(ct, x, t=t, k=k, nu=nu, extrapolate=extrapolate)
    if "x" in needed:
        of_x = ct * inside(valued(c, x, t=t, k=k, nu=nu + 1, extrapolate=extrapolate), x, t, k, extrapolate)
        of_x = np.sum(of_x, axis=tuple(range(1, of_x.ndim))) if of_x.ndim > 1 else of_x
    return of_c, of_x


def _bases(x: Any, t: Any, k: int, nu: int, extrapolate: Any) -> Any:
    """A column for each basis function at the points."""
    n = len(t) - k - 1
    return inside(interpolate.BSpline(np.array(t), np.eye(n), k, extrapolate)(x, nu), x, t, k, extrapolate)


def inside(values: Any, x: Any, t: Any, k: int, extrapolate: Any) -> Any:
    """``values`` at the points, 0 at those beyond the knots, where a spline that is not extrapolated is always NaN."""
    plain = np.array(pb.value(x))
    outside = (plain < t[k]) | (plain > t[-k - 1])
    if extrapolate or not outside.any():
        return values
    return np.where(np.reshape(outside, (-1, *(1,) * (np.ndim(values) - 1))), 0.0, values)


def _spread(ct: Any, x: Any, *, t: Any, k: int, nu: int, extrapolate: Any) -> Any:
    if nu == 0 and len(x) and x.min() >= t[k] and x.max() <= t[-k - 1]:
        return (_matrix(x, t, k).T @ ct.reshape(len(x), -1)).reshape(-1, *ct.shape[1:])
    return np.tensordot(_bases(x, t, k, nu, extrapolate).T, ct, 1)


def _spread_rule(
    ct: Any, v: Any, x: Any, t: Any, k: int, nu: int, extrapolate: Any, needed: frozenset[str]
) -> tuple[Any, Any]:
    of_v = None
    if "v" in needed:
        of_v = inside(valued(ct, x, t=t, k=k, nu=nu, extrapolate=extrapolate), x, t, k, extrapolate)
    of_x = None
    if "x" in needed:
        of_x = v * inside(valued(ct, x, t=t, k=k, nu=nu + 1, extrapolate=extrapolate), x, t, k, extrapolate)
        of_x = np.sum(of_x, axis=tuple(range(1, of_x.ndim))) if of_x.ndim > 1 else of_x
    return of_v, of_x


valued = primitive(_valued, name="scipy.bspline")
valued.vjp("c", "x", fn=_valued_rule)
spread = primitive(
    _spread, name="scipy.transposed_bspline", operands=("v", "x"), params=("t", "k", "nu", "extrapolate")
)
spread.vjp("v", "x", fn=_spread_rule)


@frozen(eq=False)
class Basis:
    """A spline with plain knots ``t`` and traced coefficients ``c``."""

    t: Any
    c: Any
    k: int
    extrapolate: Any = True
    axis: int = 0
    holds_tracer = True

    def __call__(self, x: Any, nu: int = 0, extrapolate: Any = None) -> Any:
        """The values, or derivatives, at ``x``."""
        beyond = self.extrapolate if extrapolate is None else extrapolate
        only("scipy.interpolate.BSpline", "extrapolate", beyond, True, False)
        points = as_array(x) * 1.0
        flat = np.reshape(points, (-1,))
        out = valued(self.c, flat, t=tuple(self.t), k=self.k, nu=int(nu), extrapolate=bool(beyond))
        out = np.reshape(out, (*points.shape, *out.shape[1:]))
        if self.axis == 0 or out.ndim == points.ndim:
            return out
        return np.moveaxis(out, range(points.ndim), range(self.axis, self.axis + points.ndim))

    def __getattr__(self, name: str) -> Any:
        raise lacking("scipy.interpolate.BSpline", name)


def make_interp_spline(
    x: Any, y: Any, k: int = 3, t: Any = None, bc_type: Any = None, axis: int = 0, check_finite: bool = True
) -> Any:
    """The spline of degree ``k`` through the values ``y`` at the nodes ``x``."""
    x, t = settled(x), settled(t)
    if not (holds(x) or holds(y)):
        return PlainCurve(interpolate.make_interp_spline(x, y, k, t, bc_type, axis, check_finite))
    title = "scipy.interpolate.make_interp_spline"
    only(title, "bc_type", bc_type, None, "not-a-knot")
    only(title, "x", "traced" if holds(x) else "plain", "plain")
    nodes = np.asarray(x, float)
    knots = interpolate.make_interp_spline(nodes, np.zeros(len(nodes)), k, t).t
    c = fitted(first_axis(y, axis), x=tuple(nodes), t=None if t is None else tuple(t), k=int(k))
    return Basis(knots, c, int(k), True, axis % np.ndim(y))


make_interp_spline.by = ("y",)  # type: ignore[attr-defined] # as of `mirror`


@frozen(eq=False)
class SplineMaker:
    """SciPy's class BSpline: called with traced coefficients it gives :class:`Basis`."""

    by = ("c",)

    def __call__(self, t: Any, c: Any, k: int, extrapolate: Any = True, axis: int = 0) -> Any:
        t = settled(t)
        if not holds(c):
            return PlainCurve(interpolate.BSpline(t, c, k, extrapolate, axis))
        only("scipy.interpolate.BSpline", "t", "traced" if holds(t) else "plain", "plain")
        only("scipy.interpolate.BSpline", "extrapolate", extrapolate, True, False)
        c = first_axis(c, axis)
        return Basis(np.asarray(t, float), c[: len(t) - k - 1], int(k), extrapolate, axis)

    def __instancecheck__(self, x: Any) -> bool:
        return isinstance(x, interpolate.BSpline | Basis) or (
            isinstance(x, PlainCurve) and isinstance(x.plain, interpolate.BSpline)
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(interpolate.BSpline, name)


BSpline = SplineMaker()
