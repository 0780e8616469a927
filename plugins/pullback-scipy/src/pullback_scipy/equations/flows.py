"""Differential equations: solve_ivp and odeint.

SciPy integrates on plain values. The steps that it took, as they stand, are the discrete system whose derivative is
taken: RK23 and RK45 with their own coefficients and dense output, in a loop under the policy in force. The others
(DOP853, Radau, BDF, LSODA, and odeint) have SciPy's values, and the derivative of the flow that the method of Dormand
and Prince gives to the same tolerances; it raises where the equation is too stiff for that.
"""

from typing import Any

import numpy as np
from scipy import integrate
from scipy.integrate import RK23, RK45

import pullback as pb
from pullback_scipy.equations.pinning import pinned, plain, plainly, refuse_option, result
from pullback_scipy.equations.roots import served, several
from pullback_scipy.mirroring import holds, settled

METHODS = {"RK23": RK23, "RK45": RK45}


# ------------------------------------------------------------------------------------------------------ steps, repeated
def stages(method: Any, f: Any, t: Any, y: Any, h: Any) -> tuple[Any, list[Any]]:
    """One step as SciPy's ``rk_step`` takes it: the new state, and the slopes."""
    slopes = [f(t, y)]
    for c, row in zip(method.C[1:], method.A[1:], strict=True):
        slopes.append(f(t + c * h, y + h * combined(row[: len(slopes)], slopes)))
    new = y + h * combined(method.B, slopes)
    return new, slopes


def combined(weights: Any, slopes: list[Any]) -> Any:
    """The weighted sum of slopes."""
    total = None
    for weight, slope in zip(weights, slopes, strict=False):
        if weight:
            total = weight * slope if total is None else total + weight * slope
    return 0.0 if total is None else total


def between(method: Any, f: Any, t: Any, h: Any, y: Any, new: Any, slopes: list[Any], x: Any) -> Any:
    """The dense output at the fractions ``x`` of a step, as SciPy has it: a column for each."""
    slopes = [*slopes, f(t + h, new)]
    powers = [combined(method.P[:, k], slopes) for k in range(method.P.shape[1])]
    total = np.zeros((y.shape[0], len(x)), y.dtype) + y[:, None]
    for k, q in enumerate(powers):
        if np.ndim(q):
            total = total + h * q[:, None] * x ** (k + 1)
    return total


def repeated(method: Any, f: Any, y0: Any, times: Any, wanted: Any) -> Any:
    """The states at the times ``wanted``, a column each, by the steps between ``times``."""
    sign = 1.0 if times[-1] >= times[0] else -1.0
    place = np.clip(np.searchsorted(sign * times, sign * wanted, side="left") - 1, 0, max(len(times) - 2, 0))
    at_ends = len(wanted) == len(times) and np.array_equal(wanted, times)

    def step(y: Any, k: Any) -> tuple[Any, Any]:
        t, h = times[k], times[k + 1] - times[k]
        new, slopes = stages(method, f, t, y, h)
        if at_ends:
            return new, new
        here = np.flatnonzero(place == k)
        width = int(np.bincount(place).max())
        fractions = np.zeros(width)
        fractions[: len(here)] = (wanted[here] - t) / h
        return new, between(method, f, t, h, y, new, slopes, fractions)

    if len(times) < 2:
        return np.stack([y0] * len(wanted), axis=1)
    _, found = pb.scan(step, y0, np.arange(len(times) - 1))
    if at_ends:
        return np.concatenate((y0[:, None], np.transpose(found)), axis=1)
    inside = np.concatenate([np.arange(np.count_nonzero(place == k)) for k in range(len(times) - 1)]).astype(int)
    rows = place[np.argsort(place, kind="stable")]
    columns = found[rows, :, inside]
    back = np.argsort(np.argsort(place, kind="stable"), kind="stable")
    return np.transpose(columns[back])


# --------------------------------------------------------------------------------------------------------- counterparts
@served(integrate.solve_ivp, "fun y0 args")
def solve_ivp(fun: Any, t_span: Any, y0: Any, method: Any = "RK45", t_eval: Any = None, dense_output: bool = False,
              events: Any = None, vectorized: bool = False, args: Any = None, **options: Any) -> Any:  # fmt: skip
    """The solution of dy/dt = fun(t, y, *args), whose ``y`` is differentiable by ``y0``, ``args`` and what ``fun``
    closes over."""
    given = () if args is None else several(args)
    found: list[Any] = []
    t_span, t_eval = settled(t_span), settled(t_eval)
    chosen = METHODS.get(method) if isinstance(method, str) else method if method in METHODS.values() else None
    dense = dense_output or chosen is not None  # its interpolant has the steps that were taken
    if holds(t_span) or holds(t_eval):
        raise pb.MissingRuleError(
            "scipy.integrate.solve_ivp has no rule for t_span and t_eval, which are traced; scale the time, "
            "dy/ds = T f(s T, y), or write pullback.odeint(f, y0, t), which has one"
        )

    def way() -> Any:
        solution = integrate.solve_ivp(
            plainly(fun), plain(t_span), np.array(plain(y0)), method, t_eval, dense, plainly_each(events), vectorized,
            plain(given) or None, **{name: plain(x) for name, x in options.items()},
        )  # fmt: skip
        found[:] = [solution]
        return np.array(solution.y.T, order="C")

    def formula() -> Any:
        solution, start = found[0], pb.numpy.asarray(y0)
        start = start if np.result_type(start, float) == start.dtype else start.astype(np.result_type(start, float))

        def f(t: Any, y: Any) -> Any:
            return pb.numpy.asarray(fun(t, y, *given))

        if events is not None and solution.status == 1:
            refuse_option("scipy.integrate.solve_ivp", "an event that ends it", "find its time by brentq, outside")
        if chosen is not None:
            return np.transpose(repeated(chosen, f, start, solution.sol.ts, solution.t))
        return np.transpose(flowed(f, start, solution.t, float(t_span[0]), options))

    y = np.transpose(pinned(way, formula))
    solution = found[0]
    y = y.copy() if solution.y.flags.c_contiguous else y  # sums take the elements in the order of the memory
    without = ("sol", "t_events", "y_events") if isinstance(y, pb.Tracer) else ()
    return result(solution, without, "give t_eval=", y=y, sol=solution.sol if dense_output else None)


def flowed(f: Any, start: Any, times: Any, begin: float, options: Any) -> Any:
    """The states at ``times`` by the method of Dormand and Prince, a column each."""
    rtol, atol = options.get("rtol", 1e-3), options.get("atol", 1e-6)
    grid = times if len(times) and times[0] == begin else np.concatenate(([begin], times))
    y = pb.odeint(lambda y, t: f(t, y), start, grid, rtol=rtol, atol=atol)
    return np.transpose(y if len(grid) == len(times) else y[1:])


def plainly_each(events: Any) -> Any:
    """Events on plain values, with the attributes that they have."""
    if events is None:
        return None
    if callable(events):
        made = plainly(events)
        made.__dict__.update(getattr(events, "__dict__", {}))
        return made
    return [plainly_each(event) for event in events]


@served(integrate.odeint, "func y0 args")
def odeint(func: Any, y0: Any, t: Any, args: Any = (), full_output: Any = 0, rtol: Any = None, atol: Any = None,
           tfirst: bool = False, **options: Any) -> Any:  # fmt: skip
    """The solution of dy/dt = func(y, t, *args) at the times ``t``, a row each."""
    found: list[Any] = []
    given = several(args)
    t = settled(t)
    if holds(t):
        raise pb.MissingRuleError(
            "scipy.integrate.odeint has no rule for t, which is traced; write pullback.odeint(f, y0, t), which has one"
        )

    def way() -> Any:
        y, info = integrate.odeint(
            plainly(func), plain(y0), t, plain(given), full_output=True, rtol=rtol, atol=atol, tfirst=tfirst, **options
        )
        found[:] = [info]
        return y

    def formula() -> Any:
        start = np.reshape(pb.numpy.asarray(y0) * 1.0, (-1,))
        slope: Any = (lambda y, t: func(t, y, *given)) if tfirst else (lambda y, t: func(y, t, *given))
        chosen = {name: x for name, x in (("rtol", rtol), ("atol", atol)) if x is not None}
        return pb.odeint(lambda y, t: np.reshape(pb.numpy.asarray(slope(y, t)), (-1,)), start, np.asarray(t), **chosen)

    y = pinned(way, formula)
    return (y, found[0]) if full_output else y
