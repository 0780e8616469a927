"""Minima: minimize, minimize_scalar, least_squares, curve_fit.

SciPy finds the point on plain values; where the gradient is 0 it is an implicit function of all that the minimised
function depends on. An unknown that stands at a bound stays there: its derivative is 0. The value at the minimum is
differentiated through the point.
"""

from typing import Any

import numpy as np
from scipy import optimize

import pullback as pb
from pullback_scipy.equations.pinning import pinned, plain, plainly, refuse_option, result, solved
from pullback_scipy.equations.roots import served, several
from pullback_scipy.mirroring import as_array, holds


def stationary(value: Any, free: list[Any], way: Any, start: Any) -> Any:
    """The point that ``way()`` finds, as the root of the gradient of ``value`` at the unknowns that are ``free`` (a
    mask, which ``way`` puts there)."""

    def gradient(x: Any) -> Any:
        slope = pb.grad(value)(x)
        return slope if free[0] is None else np.where(free[0], slope, x - pb.value(x))

    return pb.custom_root(gradient, start, lambda f, guess: way(), solved)


def within(x: Any, bounds: Any, value: Any) -> Any:
    """Which unknowns stand between their bounds, for the minimum of ``value``; None where all do.

    A method may end a little before a bound. So one that is near it counts as free only where a step of Newton's from
    there ends between the bounds.
    """
    if bounds is None:
        return None
    if isinstance(bounds, optimize.Bounds):
        low, high = bounds.lb, bounds.ub
    else:
        low = np.array([-np.inf if pair[0] is None else pair[0] for pair in bounds], float)
        high = np.array([np.inf if pair[1] is None else pair[1] for pair in bounds], float)
    low, high = np.broadcast_to(low, x.shape), np.broadcast_to(high, x.shape)
    room = np.minimum(x - low, high - x) / np.maximum(1.0, np.abs(x))
    inside = room > 1e-8
    for k in np.flatnonzero(inside & (room < 1e-3)).tolist():
        slope, curvature = (float(pb.value(each[k])) for each in _slope_and_row(value, x, k))
        inside[k] = curvature > 0 and low[k] < x[k] - slope / curvature < high[k]
    return None if inside.all() else inside


def _slope_and_row(value: Any, x: Any, k: int) -> tuple[Any, Any]:
    """The gradient, and a row of the Hessian."""
    slope = pb.grad(value)
    return slope(x), pb.grad(lambda x: slope(x)[k])(x)


def plain_bounds(function: str, bounds: Any) -> None:
    """Raise where a bound is traced."""
    if holds(bounds) or holds([getattr(bounds, "lb", None), getattr(bounds, "ub", None)]):
        raise pb.MissingRuleError(
            f"scipy.optimize.{function} has no rule for its argument 'bounds', which is traced; write the unknown as a "
            "function of the bound, or give pullback.value(bounds) to drop the derivative on purpose"
        )


def listed(constraints: Any) -> list[Any]:
    """One constraint or several, as a list."""
    return list(constraints) if isinstance(constraints, list | tuple) else [constraints]


@served(optimize.minimize, "fun args")
def minimize(fun: Any, x0: Any, args: Any = (), method: Any = None, jac: Any = None, hess: Any = None,
             hessp: Any = None, bounds: Any = None, constraints: Any = (), tol: Any = None, callback: Any = None,
             options: Any = None) -> Any:  # fmt: skip
    """The minimum of a function, at a point that depends on what the function does."""
    found: list[Any] = []
    free: list[Any] = [None]
    args = several(args)
    plain_bounds("minimize", bounds)
    value = (lambda x, *args: fun(x, *args)[0]) if jac is True else fun

    def least(x: Any) -> Any:
        return np.sum(value(x, *args))

    def way() -> Any:
        slope = plainly(jac) if callable(jac) else jac
        made = optimize.minimize(
            plainly(fun), plain(x0), plain(args), method, slope, plainly(hess) if callable(hess) else hess,
            plainly(hessp), bounds, constraints, tol, callback, options,
        )  # fmt: skip
        found[:], free[:] = [made], [within(made.x, bounds, least)]
        return np.array(made.x, float)

    if constraints:
        start = np.asarray(plain(x0), float)
        functions = [value, *(c["fun"] for c in listed(constraints) if isinstance(c, dict))]
        if any(holds(f(start, *(args if f is value else ()))) for f in functions):
            refuse_option(
                "scipy.optimize.minimize", "constraints=",
                "write pullback.custom_root of the conditions of Karush, Kuhn and Tucker (docs/implicit.md)",
            )  # fmt: skip
        return optimize.minimize(fun, x0, args, method, jac, hess, hessp, bounds, constraints, tol, callback, options)
    x = stationary(least, free, way, 0.0)
    if not isinstance(x, pb.Tracer):
        return found[0]
    return result(found[0], ("jac", "hess", "hess_inv"), "write pullback.grad at x", x=x, fun=value(x, *args))


@served(optimize.minimize_scalar, "fun args")
def minimize_scalar(fun: Any, bracket: Any = None, bounds: Any = None, args: Any = (), method: Any = None,
                    tol: Any = None, options: Any = None) -> Any:  # fmt: skip
    """The minimum of a function of one number."""
    found: list[Any] = []
    free: list[Any] = [None]
    args = several(args)
    plain_bounds("minimize_scalar", bounds)

    def way() -> Any:
        made = optimize.minimize_scalar(plainly(fun), bracket, bounds, plain(args), method, tol, options)
        found[:] = [made]
        sides = None if bounds is None else [bounds]
        free[:] = [within(np.atleast_1d(made.x), sides, lambda x: np.sum(fun(x[0], *args)))]
        free[:] = [None if free[0] is None else free[0][0]]
        return np.float64(made.x)

    x = stationary(lambda x: fun(x, *args), free, way, 0.0)
    return result(found[0], x=x, fun=fun(x, *args) if isinstance(x, pb.Tracer) else found[0].fun)


@served(optimize.least_squares, "fun args")
def least_squares(fun: Any, x0: Any, jac: Any = "2-point", bounds: Any = (-np.inf, np.inf), args: Any = (),
                  kwargs: Any = None, loss: Any = "linear", **options: Any) -> Any:  # fmt: skip
    """The point of least squares, by the gradient of their sum."""
    found: list[Any] = []
    free: list[Any] = [None]
    args, kwargs = several(args), kwargs or {}
    plain_bounds("least_squares", bounds)

    def half(x: Any) -> Any:
        return np.sum(residuals(x) ** 2) / 2

    def way() -> Any:
        made = optimize.least_squares(
            plainly(fun), plain(x0), plainly(jac) if callable(jac) else jac, bounds, args=plain(args), loss=loss,
            kwargs=plain(kwargs), **options,
        )  # fmt: skip
        limits = bounds if isinstance(bounds, optimize.Bounds) else optimize.Bounds(*bounds)
        found[:], free[:] = [made], [within(made.x, limits, half)]
        return np.array(made.x, float)

    def residuals(x: Any) -> Any:
        return np.atleast_1d(fun(x, *args, **kwargs))

    x = stationary(half, free, way, 0.0)
    if not isinstance(x, pb.Tracer):
        return found[0]
    if loss != "linear":
        refuse_option("scipy.optimize.least_squares", f"loss={loss!r}", "minimise the sum with optimize.minimize")
    r = residuals(x)
    return result(found[0], ("jac", "grad"), "write pullback.jacobian at x", x=x, fun=r, cost=0.5 * np.dot(r, r))


def known(xdata: Any, ydata: Any, sigma: Any) -> tuple[Any, Any, Any]:
    """The samples without those that are NaN, and what belongs to them."""
    x, y = as_array(xdata), as_array(ydata)
    here = ~(np.isnan(pb.value(y)) | np.isnan(pb.value(x)).reshape(-1, y.size).any(axis=0))
    if np.ndim(sigma) == 1:
        sigma = as_array(sigma)[here]
    elif np.ndim(sigma) == 2:
        sigma = as_array(sigma)[here][:, here]
    return x[..., here], y[here], sigma


@served(optimize.curve_fit, "f xdata ydata sigma")
def curve_fit(f: Any, xdata: Any, ydata: Any, p0: Any = None, sigma: Any = None, absolute_sigma: Any = False,
              check_finite: Any = None, bounds: Any = (-np.inf, np.inf), method: Any = None, jac: Any = None,
              **options: Any) -> Any:  # fmt: skip
    """The parameters of a curve and their covariance, by the data and what the curve depends on."""
    found: list[Any] = []
    free: list[Any] = [None]
    plain_bounds("curve_fit", bounds)
    if options.get("nan_policy") == "omit":
        xdata, ydata, sigma = known(xdata, ydata, sigma)

    def half(p: Any) -> Any:
        return np.sum(residuals(p) ** 2) / 2

    def way() -> Any:
        popt, *rest = optimize.curve_fit(
            plainly(f), plain(xdata), plain(ydata), plain(p0), plain(sigma), absolute_sigma, check_finite, bounds,
            method, plainly(jac) if callable(jac) else jac, **options,
        )  # fmt: skip
        limits = bounds if isinstance(bounds, optimize.Bounds) else optimize.Bounds(*bounds)
        found[:], free[:] = rest, [within(popt, limits, half)]
        return np.array(popt, float)

    def residuals(p: Any) -> Any:
        r = np.ravel(f(xdata, *(p[k] for k in range(np.shape(p)[0]))) - pb.numpy.asarray(ydata))
        if np.ndim(sigma) == 2:
            return np.linalg.solve(np.linalg.cholesky(sigma), r)
        return r if sigma is None else r / sigma

    popt = stationary(half, free, way, 0.0)
    if not isinstance(popt, pb.Tracer):
        return (popt, *found)
    given = np.array(found[0])

    def spread() -> Any:
        slopes = pb.jacobian(residuals)(popt)
        r, (m, n) = residuals(popt), np.shape(slopes)
        covariance = np.linalg.inv(slopes.T @ slopes)
        return covariance * (np.sum(r**2) / (m - n)) if not absolute_sigma and m > n else covariance

    return (popt, pinned(lambda: given, spread), *found[1:])
