"""The logarithms of the densities of the usual distributions, each at location 0 and scale 1, and their distribution
functions where these have a derivative by more than the point.

A density outside of its support is 0, its logarithm -inf, with the derivative 0. Source: SciPy's documentation of
``scipy.stats``, which names the formula of each.
"""

from collections.abc import Callable
from math import log, pi
from typing import Any

import numpy as np
from attrs import frozen
from scipy import special

Function = Callable[..., Any]
LOG_2PI = log(2 * pi)


@frozen
class Family:
    """A family of distributions: the names of its shapes, its log-density, and its distribution function, which is
    None where its derivative by the shapes is not known."""

    shapes: str
    logpdf: Function
    cdf: Function | None = None
    sf: Function | None = None
    logcdf: Function | None = None
    """A formula of its own, where that has digits which the logarithm of the distribution function has lost."""
    logsf: Function | None = None
    """Likewise."""
    discrete: bool = False


def _logistic(x: Any) -> Any:
    return x - 2.0 * np.logaddexp(0.0, x)


def _gennorm(x: Any, beta: Any) -> Any:
    return np.log(0.5 * beta) - special.gammaln(1.0 / beta) - np.abs(x) ** beta


def _f(x: Any, dfn: Any, dfd: Any) -> Any:
    half, other = dfn / 2, dfd / 2
    return (
        half * np.log(dfn) + other * np.log(dfd) + special.xlogy(half - 1, x) - (half + other) * np.log(dfd + dfn * x)
        - special.betaln(half, other)
    )  # fmt: skip


def _t(x: Any, df: Any) -> Any:
    scale = special.gammaln((df + 1) / 2) - special.gammaln(df / 2) - (np.log(df) + log(pi)) / 2
    return scale - (df + 1) / 2 * np.log1p(x * x / df)


def _genextreme(x: Any, c: Any) -> Any:
    y = np.log1p(-c * x) / c
    return -np.exp(y) + y - np.log1p(-c * x)


def _triang(x: Any, c: Any) -> Any:
    return np.log(2.0) + np.where(x < c, np.log(x) - np.log(c), np.log1p(-x) - np.log1p(-c))


def _skewnorm(x: Any, a: Any) -> Any:
    return log(2) - x * x / 2 - LOG_2PI / 2 + special.log_ndtr(a * x)


def _beta(x: Any, a: Any, b: Any) -> Any:
    return special.xlog1py(b - 1.0, -x) + special.xlogy(a - 1.0, x) - special.betaln(a, b)


def _gamma(x: Any, a: Any) -> Any:
    return special.xlogy(a - 1.0, x) - x - special.gammaln(a)


def _invgamma(x: Any, a: Any) -> Any:
    return -(a + 1) * np.log(x) - special.gammaln(a) - 1.0 / x


def _invgauss(x: Any, mu: Any) -> Any:
    return -0.5 * LOG_2PI - 1.5 * np.log(x) - ((x - mu) / mu) ** 2 / (2 * x)


def _chi2(x: Any, df: Any) -> Any:
    return special.xlogy(df / 2.0 - 1, x) - x / 2.0 - special.gammaln(df / 2.0) - log(2) * df / 2.0


def _chi(x: Any, df: Any) -> Any:
    return log(2) - 0.5 * log(2) * df - special.gammaln(0.5 * df) + special.xlogy(df - 1.0, x) - 0.5 * x * x


def _weibull(x: Any, c: Any) -> Any:
    return np.log(c) + special.xlogy(c - 1, x) - x**c


def _binom(k: Any, n: Any, p: Any) -> Any:
    choose = special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)
    return choose + special.xlogy(k, p) + special.xlog1py(n - k, -p)


def _nbinom(k: Any, n: Any, p: Any) -> Any:
    choose = special.gammaln(n + k) - special.gammaln(k + 1) - special.gammaln(n)
    return choose + n * np.log(p) + special.xlog1py(k, -p)


def _expm(x: Any) -> Any:
    return -np.expm1(-x)


CONTINUOUS = {
    "norm": Family("", lambda x: -x * x / 2 - LOG_2PI / 2, special.ndtr, lambda x: special.ndtr(-x),
                   special.log_ndtr, lambda x: special.log_ndtr(-x)),
    "expon": Family("", lambda x: -x, _expm, lambda x: np.exp(-x), logsf=lambda x: -x),
    "uniform": Family("", lambda x: 0.0 * x, lambda x: x, lambda x: 1 - x),
    "laplace": Family(
        "",
        lambda x: log(0.5) - np.abs(x),
        lambda x: np.where(x > 0, 1.0 - 0.5 * np.exp(np.where(x > 0, -x, 0.0)), 0.5 * np.exp(np.where(x > 0, 0.0, x))),
    ),
    "logistic": Family("", lambda x: _logistic(-np.abs(x)), special.expit, lambda x: special.expit(-x),
                       special.log_expit, lambda x: special.log_expit(-x)),
    "cauchy": Family("", lambda x: -log(pi) - np.log1p(x * x), lambda x: 0.5 + np.arctan(x) / pi),
    "halfcauchy": Family("", lambda x: log(2 / pi) - np.log1p(x * x), lambda x: 2 / pi * np.arctan(x)),
    "halfnorm": Family("", lambda x: 0.5 * log(2 / pi) - x * x / 2, lambda x: special.erf(x / 2**0.5)),
    "halflogistic": Family("", lambda x: log(2) - x - 2.0 * special.log1p(np.exp(-x)), lambda x: np.tanh(x / 2)),
    "gumbel_r": Family("", lambda x: -x - np.exp(-x), lambda x: np.exp(-np.exp(-x)), logcdf=lambda x: -np.exp(-x)),
    "gumbel_l": Family("", lambda x: x - np.exp(x), lambda x: -np.expm1(-np.exp(x)), logsf=lambda x: -np.exp(x)),
    "rayleigh": Family("", lambda x: np.log(x) - 0.5 * x * x, lambda x: -np.expm1(-0.5 * x * x),
                       logsf=lambda x: -0.5 * x * x),
    "maxwell": Family("", lambda x: 0.5 * log(2 / pi) + 2 * np.log(x) - x * x / 2,
                      lambda x: special.gammainc(1.5, x * x / 2)),
    "lognorm": Family(
        "s",
        lambda x, s: -(np.log(x) ** 2) / (2 * s * s) - np.log(s * x) - LOG_2PI / 2,
        lambda x, s: special.ndtr(np.log(x) / s),
        lambda x, s: special.ndtr(-np.log(x) / s),
        lambda x, s: special.log_ndtr(np.log(x) / s),
        lambda x, s: special.log_ndtr(-np.log(x) / s),
    ),
    "gamma": Family("a", _gamma, lambda x, a: special.gammainc(a, x), lambda x, a: special.gammaincc(a, x)),
    "beta": Family("a b", _beta, lambda x, a, b: special.betainc(a, b, x)),
    "t": Family("df", _t, lambda x, df: special.stdtr(df, x), lambda x, df: special.stdtr(df, -x)),
    "chi2": Family("df", _chi2, lambda x, df: special.chdtr(df, x), lambda x, df: special.chdtrc(df, x)),
    "chi": Family("df", _chi, lambda x, df: special.gammainc(0.5 * df, 0.5 * x * x)),
    "f": Family("dfn dfd", _f, lambda x, dfn, dfd: special.betainc(dfn / 2, dfd / 2, dfn * x / (dfd + dfn * x))),
    "invgamma": Family("a", _invgamma, lambda x, a: special.gammaincc(a, 1.0 / x)),
    "invgauss": Family("mu", _invgauss),
    "pareto": Family("b", lambda x, b: np.log(b) - (b + 1) * np.log(x), lambda x, b: 1 - x ** (-b),
                     lambda x, b: x ** (-b), logsf=lambda x, b: -b * np.log(x)),
    "weibull_min": Family("c", _weibull, lambda x, c: -np.expm1(-(x**c)), lambda x, c: np.exp(-(x**c)),
                          logsf=lambda x, c: -(x**c)),
    "weibull_max": Family("c", lambda x, c: _weibull(-x, c), lambda x, c: np.exp(-((-x) ** c)),
                          logcdf=lambda x, c: -((-x) ** c)),
    "powerlaw": Family("a", lambda x, a: np.log(a) + special.xlogy(a - 1, x), lambda x, a: x**a,
                       logcdf=lambda x, a: a * np.log(x)),
    "triang": Family("c", _triang, lambda x, c: np.where(x < c, x * x / c, 1 - (1 - x) ** 2 / (1 - c))),
    "vonmises": Family("kappa", lambda x, kappa: kappa * special.cosm1(x) - LOG_2PI - np.log(special.i0e(kappa))),
    "gennorm": Family("beta", _gennorm),
    "genextreme": Family("c", _genextreme, lambda x, c: np.exp(-np.exp(np.log1p(-c * x) / c)),
                         logcdf=lambda x, c: -np.exp(np.log1p(-c * x) / c)),
    "skewnorm": Family("a", _skewnorm, lambda x, a: special.ndtr(x) - 2 * special.owens_t(x, a)),
    "loggamma": Family(
        "c", lambda x, c: c * x - np.exp(x) - special.gammaln(c), lambda x, c: special.gammainc(c, np.exp(x))
    ),
}  # fmt: skip
DISCRETE = {
    "poisson": Family("mu", lambda k, mu: special.xlogy(k, mu) - special.gammaln(k + 1) - mu,
                      lambda k, mu: special.pdtr(np.floor(k), mu), lambda k, mu: special.pdtrc(np.floor(k), mu)),
    "bernoulli": Family("p", lambda k, p: special.xlogy(k, p) + special.xlog1py(1 - k, -p)),
    "binom": Family("n p", _binom, lambda k, n, p: special.betaincc(np.floor(k) + 1, n - np.floor(k), p),
                    lambda k, n, p: special.betainc(np.floor(k) + 1, n - np.floor(k), p)),
    "geom": Family("p", lambda k, p: special.xlog1py(k - 1, -p) + np.log(p)),
    "nbinom": Family("n p", _nbinom, lambda k, n, p: special.betainc(n, np.floor(k) + 1, p),
                     lambda k, n, p: special.betaincc(n, np.floor(k) + 1, p)),
}  # fmt: skip
