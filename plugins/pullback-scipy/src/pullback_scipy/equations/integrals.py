"""Integrals: sums over samples, and quad.

The derivative of quad is that of the rule of Gauss and Kronrod on the intervals on which QUADPACK ends, which holds for
whatever the integrand depends on, and for the bounds, too.
"""

from typing import Any

import numpy as np
from scipy import integrate, special

import pullback as pb
from pullback_scipy.equations.pinning import pinned, plain, plainly, refuse_option
from pullback_scipy.equations.roots import served, several
from pullback_scipy.mirroring import as_array, holds, mirror

# Piessens, de Doncker-Kapenga, Überhuber, Kahaner, "QUADPACK", 1983: qk21, its nodes and weights from the outside in.
NODES = np.array([
    0.995657163025808080735527280689003, 0.973906528517171720077964012084452, 0.930157491355708226001207180059508,
    0.865063366688984510732096688423493, 0.780817726586416897063717578345042, 0.679409568299024406234327365114874,
    0.562757134668604683339000099272694, 0.433395394129247190799265943165784, 0.294392862701460198131126603103866,
    0.14887433898163121088482600112972, 0.0,
])  # fmt: skip
WEIGHTS = np.array([
    0.011694638867371874278064396062192, 0.03255816230796472747881897245939, 0.05475589657435199603138130024458,
    0.07503967481091995276704314091619, 0.093125454583697605535065465083366, 0.109387158802297641899210590325805,
    0.123491976262065851077958109585166, 0.134709217311473325928054001771707, 0.142775938577060080797094273138717,
    0.147739104901338491374841515972068, 0.149445554002916905664936468389821,
])  # fmt: skip


def kronrod() -> tuple[Any, Any]:
    """The 21 nodes in (-1, 1) and their weights."""
    return np.concatenate((-NODES, NODES[-2::-1])), np.concatenate((WEIGHTS, WEIGHTS[-2::-1]))


# -------------------------------------------------------------------------------------------------------------- samples
def _steps(x: Any, dx: Any, axis: int, ndim: int) -> Any:
    if x is None:
        return dx
    x = as_array(x)
    if x.ndim > 1:
        return np.diff(x, axis=axis)
    shape = [1] * ndim
    shape[axis] = x.shape[0] - 1
    return np.reshape(np.diff(x), shape)


def _cut(y: Any, axis: int, *bounds: Any) -> Any:
    return y[(slice(None),) * (axis % y.ndim) + (slice(*bounds),)]


@mirror(integrate.trapezoid, "y x dx")
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """The integral of samples by the trapezoidal rule."""
    y = as_array(y)
    d, dtype = _steps(x, dx, axis, y.ndim), np.result_type(y.dtype, np.float16)
    return np.sum(d * (_cut(y, axis, 1, None) + _cut(y, axis, None, -1)) / 2.0, axis, dtype=dtype)


@mirror(integrate.cumulative_trapezoid, "y x dx")
def cumulative_trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1, initial: Any = None) -> Any:
    """The integrals up to each sample by the trapezoidal rule."""
    y = as_array(y)
    if initial is not None and initial != 0:
        integrate.cumulative_trapezoid([0.0], initial=initial)  # which raises in SciPy from 1.14 on
    d = _steps(x, dx, axis, y.ndim)
    sums = np.cumsum(d * (_cut(y, axis, 1, None) + _cut(y, axis, None, -1)) / 2.0, axis=axis)
    if initial is None:
        return sums
    first = np.full(pb.value(_cut(y, axis, None, 1)).shape, initial, sums.dtype)
    return np.concatenate((first, sums), axis=axis)


def _over(a: Any, b: Any) -> Any:
    """The quotient, 0 where an interval is empty."""
    empty = pb.value(b) == 0
    return a / b if not np.any(empty) else np.where(empty, 0.0, a / np.where(empty, 1.0, b))


def _thirds(y: Any, h: Any, axis: int, stop: int) -> Any:
    """Simpson's rule on the pairs of intervals before ``stop``: equal ones where ``h`` is a number."""
    first, middle, last = (_cut(y, axis, k, stop + k, 2) for k in range(3))
    if np.ndim(h) == 0:
        return np.sum(first + 4.0 * middle + last, axis) * h / 3.0
    h0, h1 = (_cut(h, axis, k, stop + k, 2) for k in range(2))
    total, ratio = h0 + h1, _over(h0, h1)
    outer = first * (2.0 - _over(1.0, ratio)) + last * (2.0 - ratio)
    return np.sum(total / 6.0 * (outer + middle * (total * _over(total, h0 * h1))), axis)


def _simpson(y: Any, h: Any, axis: int) -> Any:
    n = y.shape[axis]
    if n % 2:
        return _thirds(y, h, axis, n - 2)
    if n == 2:
        return np.sum(h * (_cut(y, axis, 1, None) + _cut(y, axis, None, -1)) / 2.0, axis)
    h0, h1 = (h, h) if np.ndim(h) == 0 else (_cut(h, axis, n - 3, n - 2), _cut(h, axis, n - 2, n - 1))
    a = _over(2 * h1**2 + 3 * h0 * h1, 6 * (h1 + h0))
    b = _over(h1**2 + 3.0 * h0 * h1, 6 * h0)
    c = _over(h1**3, 6 * h0 * (h0 + h1))
    rest = a * _cut(y, axis, n - 1, n) + b * _cut(y, axis, n - 2, n - 1) - c * _cut(y, axis, n - 3, n - 2)
    return _thirds(y, h, axis, n - 3) + np.sum(rest, axis)


@mirror(integrate.simpson, "y x dx")
def simpson(y: Any, x: Any = None, *, dx: Any = 1.0, axis: int = -1) -> Any:
    """The integral of samples by Simpson's rule."""
    y = as_array(y)
    exact = pb.value(y), None if x is None else pb.value(as_array(x)), pb.value(dx)
    return pinned(
        lambda: np.asarray(integrate.simpson(exact[0], exact[1], dx=exact[2], axis=axis))[()],
        lambda: _simpson(y, _steps(x, dx, axis, y.ndim), axis),
    )


# ----------------------------------------------------------------------------------------------------------- quadrature
def mapped(f: Any, a: Any, b: Any) -> tuple[Any, Any, Any]:
    """The integrand, and its plain bounds, after QUADPACK's substitution of an infinite bound: x = a + (1 - t) / t."""
    low, high = float(plain(a)), float(plain(b))
    if np.isfinite(low) and np.isfinite(high):
        return f, a, b
    if np.isfinite(low) or np.isfinite(high):
        start, sign = (a, 1.0) if np.isfinite(low) else (b, -1.0)
        return (lambda t: f(start + sign * (1 - t) / t) / (t * t)), 0.0, 1.0
    return (lambda t: (f((1 - t) / t) + f(-(1 - t) / t)) / (t * t)), 0.0, 1.0


def by_intervals(f: Any, a: Any, b: Any, starts: Any, ends: Any) -> Any:
    """The sum of the rule of Gauss and Kronrod over intervals, which are given between the plain bounds."""
    nodes, weights = kronrod()
    g, low, high = mapped(f, a, b)
    plain_low, plain_high = float(plain(low)), float(plain(high))
    total: Any = 0.0
    for start, end in zip(starts, ends, strict=True):
        fractions = [(x - plain_low) / (plain_high - plain_low) for x in (start, end)]
        left, right = (low + s * (high - low) for s in fractions)
        middle, half = (left + right) / 2, (right - left) / 2
        for node, weight in zip(nodes, weights, strict=True):
            total = total + half * weight * g(middle + half * node)
    return total


@served(integrate.quad, "func a b args")
def quad(func: Any, a: Any, b: Any, args: Any = (), full_output: Any = 0, epsabs: Any = 1.49e-8,
         epsrel: Any = 1.49e-8, limit: Any = 50, points: Any = None, weight: Any = None,
         **options: Any) -> Any:  # fmt: skip
    """The integral of a function, and an estimate of its error."""
    found: list[Any] = []
    args = several(args)
    if options.pop("complex_func", False):
        rest = (args, full_output, epsabs, epsrel, limit, points, weight)
        real = quad(lambda *x: func(*x).real, a, b, *rest, **options)
        imag = quad(lambda *x: func(*x).imag, a, b, *rest, **options)
        both = (real[0] + 1j * imag[0], real[1] + 1j * imag[1])
        return (*both, {"real": real[2:], "imag": imag[2:]}) if full_output else both
    if weight is not None:
        if any(map(holds, (a, b, args))):
            refuse_option("scipy.integrate.quad", f"weight={weight!r}", "write the weight into the integrand")
        return integrate.quad(func, a, b, args, full_output, epsabs, epsrel, limit, points, weight, **options)

    def way() -> Any:
        found[:] = integrate.quad(
            plainly(func), plain(a), plain(b), plain(args), True, epsabs, epsrel, limit, points, **options
        )
        return np.float64(found[0])

    def formula() -> Any:
        low, high, info = plain(a), plain(b), found[2]
        if low == high:
            return (b - a) * func(a, *args)
        used = slice(info["last"])
        starts, ends = info["alist"][used], info["blist"][used]
        if low > high:  # SciPy exchanges the bounds
            return -by_intervals(lambda x: func(x, *args), b, a, starts, ends)
        return by_intervals(lambda x: func(x, *args), a, b, starts, ends)

    total = pinned(way, formula)
    return (total, *found[1:]) if full_output else (total, found[1])


@served(integrate.fixed_quad, "func a b args")
def fixed_quad(func: Any, a: Any, b: Any, args: Any = (), n: int = 5) -> Any:
    """The integral of a function of arrays by Gauss's rule of order ``n``."""
    if not (holds(a) or holds(b)):
        return integrate.fixed_quad(func, a, b, several(args), n)
    x, w = special.roots_legendre(n)
    y = (b - a) * (x + 1) / 2.0 + a
    return (b - a) / 2.0 * np.sum(w * func(y, *several(args)), axis=-1), None
