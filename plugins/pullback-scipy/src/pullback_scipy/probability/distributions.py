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
from pullback_scipy.mirroring import as_array, derived, holds, mirror, only
from pullback_scipy.probability.densities import CONTINUOUS, DISCRETE, Family


def inside(support: tuple[Any, Any], z: Any) -> Any:
    """Where the standardised points lie within the support, plain."""
    low, high = support
    return (z > low) & (z < high)


def _guarded(distribution: Any, formula: Callable[..., Any], below: Any, above: Any) -> Callable[..., Any]:
    """A formula of the standardised point and the shapes, which is constant outside of the support."""

    def of(z: Any, *shapes: Any) -> Any:
        plain = pb.value(z)
        with np.errstate(all="ignore"):
            low, high = distribution.support(*(pb.value(s) for s in shapes))
        within = inside((low, high), plain)
        if within.all():
            return formula(z, *shapes)
        middle = distribution.median(*(pb.value(s) for s in shapes))
        out = formula(np.where(within, z, middle), *shapes)
        return np.where(within, out, np.where(plain <= low, below, above))

    return of


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
        cdf = _guarded(distribution, family.cdf, 0.0, 1.0)
        if method in ("sf", "logsf") and family.sf is not None:
            tail = _guarded(distribution, family.sf, 1.0, 0.0)(z, *shapes)
        else:
            tail = 1 - cdf(z, *shapes) if "sf" in method else cdf(z, *shapes)
        return np.log(tail) if method.startswith("log") else tail

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
        whole = family.cdf(np.where(within, at, low), *shapes)
        whole = np.where(within & (np.floor(at) != high), whole, np.where(at < low, 0.0, 1.0))
        whole = 1 - whole if "sf" in method else whole
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
        shapes = self.family.shapes.split()
        names = [*shapes, "loc"] if self.name in DISCRETE else [*shapes, "loc", "scale"]
        given = {"loc": 0.0, "scale": 1.0, **dict(zip(names, args, strict=False)), **kwargs}
        rest = [as_array(given[each]) for each in names]
        title = f"scipy.stats.{self.name}.{method}"
        if method not in DENSITIES and "pmf" not in method and self.family.cdf is None:
            only(title, "a traced argument", "given", "pdf and logpdf alone")
        if self.name in DISCRETE:
            return mass_of(self.name, method)(as_array(x), *rest)
        return method_of(self.name, method)(as_array(x), *rest)

    def __getattr__(self, name: str) -> Any:
        discrete = self.name in DISCRETE
        known = ("logpmf", "pmf", *FUNCTIONS) if discrete else (*DENSITIES, *FUNCTIONS, *INVERSES)
        if name in known:
            return lambda x, *args, **kwargs: self._of(name, x, args, kwargs)
        return getattr(self.plain, name)


@frozen(eq=False)
class Frozen:
    """A distribution with its parameters, of which some are traced."""

    distribution: Distribution
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    holds_tracer = True

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.distribution, name)
        return lambda *x: method(*x, *self.args, **self.kwargs)


@frozen(eq=False)
class FrozenPlain:
    """A distribution with plain parameters, whose methods take traced points."""

    distribution: Distribution
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def __getattr__(self, name: str) -> Any:
        plain = getattr(self.distribution.plain(*self.args, **self.kwargs), name)
        if name not in (*DENSITIES, *FUNCTIONS, *INVERSES, "pmf", "logpmf"):
            return plain
        method = getattr(self.distribution, name)
        return lambda x: method(x, *self.args, **self.kwargs) if holds(x) else plain(x)


DISTRIBUTIONS = {
    name: Distribution(name, getattr(stats, name), family) for name, family in (CONTINUOUS | DISCRETE).items()
}


# ------------------------------------------------------------------------------------------------------ several numbers
def _normal(x: Any, mean: Any, cov: Any) -> Any:
    n = cov.shape[0]
    factor = np.linalg.cholesky(cov)
    far = np.reshape(x - mean, (-1, n))
    z = np.linalg.solve(factor, far.T)
    logdet = np.sum(np.log(np.diagonal(factor)))
    out = -0.5 * np.sum(z * z, axis=0) - logdet - n * np.log(2 * np.pi) / 2
    return np.reshape(out, np.shape(x)[:-1])


normal_logpdf = derived(
    stats.multivariate_normal.logpdf, _normal, "x mean cov",
    name="scipy.multivariate_normal.logpdf",
)  # fmt: skip
normal_pdf = derived(
    stats.multivariate_normal.pdf,
    lambda x, mean, cov: np.exp(_normal(x, mean, cov)), "x mean cov", name="scipy.multivariate_normal.pdf",
)  # fmt: skip


@frozen(eq=False)
class MultivariateNormal:
    """SciPy's multivariate normal distribution, of regular covariances where something is traced."""

    plain: Any
    by = ("x", "mean", "cov")

    def _of(self, made: Any, method: str, x: Any, mean: Any, cov: Any) -> Any:
        if not (holds(x) or holds(mean) or holds(cov)):
            return getattr(self.plain, method)(x, mean, cov)
        x, cov = as_array(x) * 1.0, as_array(cov) * 1.0
        if cov.ndim != 2:
            only("scipy.stats.multivariate_normal", "axes of cov", cov.ndim, 2)
        mean = np.zeros(cov.shape[0]) if mean is None else as_array(mean) * 1.0
        return made(x, mean, cov)

    def logpdf(self, x: Any, mean: Any = None, cov: Any = 1) -> Any:
        """The logarithm of the density."""
        return self._of(normal_logpdf, "logpdf", x, mean, cov)

    def pdf(self, x: Any, mean: Any = None, cov: Any = 1) -> Any:
        """The density."""
        return self._of(normal_pdf, "pdf", x, mean, cov)

    def __call__(self, mean: Any = None, cov: Any = 1, *args: Any, **kwargs: Any) -> Any:
        return FrozenNormal(self, mean, cov) if holds(mean) or holds(cov) else self.plain(mean, cov, *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.plain, name)


@frozen(eq=False)
class FrozenNormal:
    """A multivariate normal distribution whose mean or covariance is traced."""

    distribution: MultivariateNormal
    mean: Any
    cov: Any
    holds_tracer = True

    def logpdf(self, x: Any) -> Any:
        """The logarithm of the density."""
        return self.distribution.logpdf(x, self.mean, self.cov)

    def pdf(self, x: Any) -> Any:
        """The density."""
        return self.distribution.pdf(x, self.mean, self.cov)


multivariate_normal = MultivariateNormal(stats.multivariate_normal)


# -------------------------------------------------------------------------------------------------------------- samples
@mirror(stats.zscore, "a")
def zscore(a: Any, axis: Any = 0, ddof: int = 0) -> Any:
    """The deviations from the mean, in units of the standard deviation."""
    a = as_array(a)
    return (a - np.mean(a, axis=axis, keepdims=True)) / np.std(a, axis=axis, ddof=ddof, keepdims=True)
