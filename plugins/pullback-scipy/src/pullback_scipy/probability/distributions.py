"""Distributions with derivatives: SciPy's values, and the derivative of the formula of their family.

By the point, the location and the scale there is a derivative of each method; by a shape, of the densities always, and
of the distribution functions where the function that they are has one.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from attrs import frozen
from scipy import stats

import pullback as pb
from pullback_scipy.equations.pinning import plain
from pullback_scipy.mirroring import as_array, derived, floating, holds, only, primitive
from pullback_scipy.probability.densities import CONTINUOUS, DISCRETE, Family


def inside(support: tuple[Any, Any], z: Any) -> Any:
    """Where the standardised points lie within the support, plain."""
    low, high = support
    return (z > low) & (z < high)


def _guarded(distribution: Any, formula: Callable[..., Any], below: Any, above: Any) -> Callable[..., Any]:
    """A formula of the standardised point and the shapes, which is constant outside of the support."""
    density = below == above

    def of(z: Any, *shapes: Any) -> Any:
        plain = pb.value(z)
        with np.errstate(all="ignore"):
            low, high = distribution.support(*(pb.value(s) for s in shapes))
        within = inside((low, high), plain)
        edge = ((plain == low) | (plain == high)) if density else np.False_
        if edge.any():  # SciPy counts the ends to the support of a density
            with np.errstate(all="ignore"):
                within |= edge & np.isfinite(formula(plain, *(pb.value(s) for s in shapes)))
        if within.all():
            return formula(z, *shapes)
        middle = distribution.median(*(pb.value(s) for s in shapes))
        out = formula(np.where(within, z, middle), *shapes)
        return np.where(within, out, np.where(plain <= low, below, above))

    return of


def _tail(distribution: Any, family: Family, method: str) -> Callable[..., Any]:
    """The distribution function, or what it lacks to one."""
    assert family.cdf is not None
    if "sf" not in method:
        return _guarded(distribution, family.cdf, 0.0, 1.0)
    if family.sf is not None:
        return _guarded(distribution, family.sf, 1.0, 0.0)
    cdf = _guarded(distribution, family.cdf, 0.0, 1.0)
    return lambda z, *shapes: 1 - cdf(z, *shapes)


def log_of(distribution: Any, family: Family, method: str) -> Any:
    """The primitive of logcdf or logsf at location 0 and scale 1. Its slope by the point is the density over what the
    logarithm is of, a difference of logarithms: that has its digits far out, where the sum of a tail has lost them."""
    sign, shapes = (-1.0 if "sf" in method else 1.0), family.shapes.split()
    tail, logpdf = _tail(distribution, family, method), _guarded(distribution, family.logpdf, -np.inf, -np.inf)

    def by_point(ct: Any, z: Any, rest: Any, out: Any) -> Any:
        with np.errstate(all="ignore"):
            low, high = distribution.support(*(pb.value(s) for s in rest))
        within = inside((low, high), pb.value(z))
        slope = sign * np.exp(logpdf(z, *rest) - np.where(within, out, 0.0))
        return np.where(within & (pb.value(ct) != 0), ct * slope, 0.0)

    def over(ct: Any, out: Any) -> Any:
        return np.where(pb.value(ct) != 0, ct / np.exp(out), 0.0)  # a logarithm may be -inf where nothing is asked

    def by_shapes(ct: Any, z: Any, rest: Any, out: Any, needed: frozenset[str]) -> list[Any]:
        moving = [k for k, name in enumerate(names[1:]) if name in needed]

        def of(*leaves: Any) -> Any:
            full = list(rest)
            for k, leaf in zip(moving, leaves, strict=True):
                full[k] = leaf
            return tail(z, *full)

        pulled = pb.vjp(of, *(floating(rest[k]) for k in moving))[1](over(ct, out)) if moving else ()
        found = dict(zip(moving, pulled, strict=True))
        return [found.get(k) for k in range(len(rest))]

    def alone(ct: Any, z: Any, out: Any) -> Any:
        return by_point(ct, z, (), out)

    def rule(ct: Any, *saved: Any) -> Any:
        z, *rest, out, needed = saved
        return (by_point(ct, z, rest, out) if "z" in needed else None, *by_shapes(ct, z, rest, out, needed))

    names = ("z", *(f"shape_{s}" for s in shapes))
    made = primitive(getattr(distribution, method), name=f"scipy.{distribution.name}.{method}_0", operands=names)
    if shapes:
        made.vjp(*names, saves=(*names, "out", "needed"), fn=rule)
    else:
        made.vjp("z", saves=("z", "out"), fn=alone)
    return made


def _formula(distribution: Any, family: Family, method: str) -> Callable[..., Any]:
    """What a method computes, by the point, the shapes, the location and the scale."""
    logpdf = _guarded(distribution, family.logpdf, -np.inf, -np.inf)

    def standard(x: Any, shapes: Any, loc: Any, scale: Any) -> Any:
        z = (x - loc) / scale
        if method in ("logpdf", "pdf"):
            out = logpdf(z, *shapes) - np.log(scale)
            return out if method == "logpdf" else np.exp(out)
        assert family.cdf is not None
        own = {"logcdf": family.logcdf, "logsf": family.logsf}.get(method)
        if own is not None:
            below, above = (-np.inf, 0.0) if method == "logcdf" else (0.0, -np.inf)
            return _guarded(distribution, own, below, above)(z, *shapes)
        if method.startswith("log"):
            return log_of(distribution, family, method)(z, *shapes)
        return _tail(distribution, family, method)(z, *shapes)

    def of(x: Any, *rest: Any) -> Any:
        *shapes, loc, scale = rest
        return standard(x, shapes, loc, scale)

    return of


def _slope_of_cdf(distribution: Any, family: Family, method: str) -> Callable[..., Any]:
    """The inverse of a distribution function, whose slope by the probability and the others is that of the equation."""
    forward = _formula(distribution, family, "cdf" if method == "ppf" else "sf")

    def of(q: Any, *rest: Any) -> Any:
        x = getattr(distribution, method)(pb.value(q), *(pb.value(r) for r in rest))
        slope = distribution.pdf(x, *(pb.value(r) for r in rest)) * (1 if method == "ppf" else -1)
        return x + (q - forward(x, *rest)) / slope  # one step of Newton from the solution, which stays there

    return of


DENSITIES, FUNCTIONS, INVERSES = ("logpdf", "pdf"), ("cdf", "logcdf", "sf", "logsf"), ("ppf", "isf")


@cache
def method_of(name: str, method: str) -> Any:
    """The primitive of a method of a continuous distribution."""
    distribution, family = getattr(stats, name), CONTINUOUS[name]
    formula = _slope_of_cdf if method in INVERSES else _formula
    operands = " ".join(("x", *(f"shape_{s}" for s in family.shapes.split()), "loc", "scale"))
    function: Any = getattr(distribution, method)
    return derived(
        function, formula(distribution, family, method), operands,
        name=f"scipy.{name}.{method}",
    )  # fmt: skip


def _discrete(name: str, method: str) -> Callable[..., Any]:
    distribution, family = getattr(stats, name), DISCRETE[name]

    def of(k: Any, *rest: Any) -> Any:
        *shapes, loc = rest
        at = k - loc
        low, high = distribution.support(*(pb.value(s) for s in shapes))
        within = (at >= low) & (at <= high)
        if method in ("logpmf", "pmf"):
            within &= np.floor(at) == at
            out = family.logpdf(np.where(within, at, low), *shapes)
            return np.where(within, out, -np.inf) if method == "logpmf" else np.where(within, np.exp(out), 0.0)
        assert family.cdf is not None
        upper = "sf" in method
        whole = (family.sf if upper and family.sf else family.cdf)(np.where(within, at, low), *shapes)
        whole = 1 - whole if upper and not family.sf else whole
        inner, below = within & (np.floor(at) != high), 1.0 if upper else 0.0
        whole = np.where(inner, whole, np.where(at < low, below, 1 - below))
        return np.log(whole) if method.startswith("log") else whole

    return of


@cache
def mass_of(name: str, method: str) -> Any:
    """The primitive of a method of a discrete distribution."""
    function: Any = getattr(getattr(stats, name), method)
    operands = " ".join(("k", *(f"shape_{s}" for s in DISCRETE[name].shapes.split()), "loc"))
    return derived(
        function, _discrete(name, method), operands, name=f"scipy.{name}.{method}",
        nondiff=("k", "loc"),
    )  # fmt: skip


@frozen(eq=False)
class Distribution:
    """A distribution of SciPy's, whose methods take traced arguments."""

    name: str
    plain: Any
    family: Family
    by = ("x", "shapes", "loc", "scale")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return Frozen(self, args, kwargs) if holds(args) or holds(kwargs) else FrozenPlain(self, args, kwargs)

    freeze = __call__

    def _of(self, method: str, x: Any, args: Any, kwargs: Any) -> Any:
        if not (holds(x) or holds(args) or holds(kwargs)):
            return getattr(self.plain, method)(x, *args, **kwargs)
        title = f"scipy.stats.{self.name}.{method}"
        rest = self._parameters(title, x, args, kwargs)
        if method not in DENSITIES and "pmf" not in method and self.family.cdf is None:
            only(title, "a traced argument", "given", "pdf and logpdf alone")
        if self.name in DISCRETE:
            return mass_of(self.name, method)(as_array(x), *rest)
        return method_of(self.name, method)(as_array(x), *rest)

    def _parameters(self, title: str, x: Any, args: Any, kwargs: Any) -> list[Any]:
        """The shapes, the location and the scale; where SciPy takes other arguments, it is left to raise."""
        shapes = self.family.shapes.split()
        names = [*shapes, "loc"] if self.name in DISCRETE else [*shapes, "loc", "scale"]
        placed = dict(zip(names, args, strict=False))
        given = {"loc": 0.0, "scale": 1.0, **placed, **kwargs}
        if len(args) > len(names) or set(kwargs) - set(names) or set(placed) & set(kwargs) or set(names) - set(given):
            getattr(self.plain, title.rpartition(".")[2])(plain(x), *plain(args), **plain(kwargs))
            only(title, "arguments", (*placed, *kwargs), tuple(names))
        return [as_array(given[each]) for each in names]

    def __getattr__(self, name: str) -> Any:
        point = "q" if name in INVERSES else "k" if self.name in DISCRETE else "x"
        if name in self.served:
            return lambda *args, **kwargs: (
                self._of(name, args[0], args[1:], kwargs)
                if args or point not in kwargs
                else self._of(name, kwargs.pop(point), (), kwargs)
            )
        found = getattr(self.plain, name)
        return self._without(name, found) if callable(found) and not name.startswith("_") else found

    @property
    def served(self) -> tuple[str, ...]:
        """The methods that have a derivative."""
        densities, inverses = (("logpmf", "pmf"), ()) if self.name in DISCRETE else (DENSITIES, INVERSES)
        return (*densities, *FUNCTIONS, *inverses)

    def _without(self, name: str, found: Any) -> Any:
        """SciPy's own method, which refuses what is traced."""

        def call(*args: Any, **kwargs: Any) -> Any:
            if holds(args) or holds(kwargs):
                raise pb.NotDifferentiableError(
                    f"scipy.stats.{self.name}.{name} has no derivative here: {', '.join(self.served)} have one; write "
                    f"its formula with NumPy and scipy.special, or pass pullback.value(...) to drop the derivative"
                )
            return found(*args, **kwargs)

        return call


@frozen(eq=False)
class Frozen:
    """A distribution with its parameters, of which some are traced."""

    distribution: Distribution
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    holds_tracer = True

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.distribution, name)
        if not callable(method):
            return method
        return lambda *x, **more: method(*x, *self.args, **self.kwargs, **more)


@frozen(eq=False)
class FrozenPlain:
    """A distribution with plain parameters, whose methods take traced points."""

    distribution: Distribution
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.distribution.plain(*self.args, **self.kwargs), name)
        if not callable(found) or name.startswith("_"):
            return found
        method = getattr(self.distribution, name)

        def call(*x: Any, **more: Any) -> Any:
            traced = holds(x) or holds(more)
            return method(*x, *self.args, **self.kwargs, **more) if traced else found(*x, **more)

        return call


DISTRIBUTIONS = {
    name: Distribution(name, getattr(stats, name), family) for name, family in (CONTINUOUS | DISCRETE).items()
}
