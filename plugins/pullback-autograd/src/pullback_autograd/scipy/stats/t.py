"""Student's t distribution with ``df`` degrees of freedom; :func:`cdf` and :func:`logcdf` have derivatives in ``x``,
``loc`` and ``scale``."""

from typing import Any

import numpy as np
from scipy import special

from pullback import primitive
from pullback_autograd.scipy.special import gammaln

_stdtr = primitive(
    special.stdtr,
    name="stdtr",
    operands=("df", "x"),
    elementwise=True,
    vjps={"x": lambda ct, df, x: ct * pdf(x, df)},
)


def logpdf(x: Any, df: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """The logarithm of the density."""
    y = (x - loc) / scale
    level = gammaln((df + 1) / 2) - gammaln(df / 2) - 0.5 * np.log(df * np.pi) - np.log(scale)
    return level - (df + 1) / 2 * np.log1p(y**2 / df)


def pdf(x: Any, df: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """The density."""
    return np.exp(logpdf(x, df, loc, scale))


def cdf(x: Any, df: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """The probability of a smaller value."""
    return _stdtr(df, (x - loc) / scale)


def logcdf(x: Any, df: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """The logarithm of :func:`cdf`."""
    return np.log(cdf(x, df, loc, scale))


__all__ = ["cdf", "logcdf", "logpdf", "pdf"]
