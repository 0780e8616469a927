"""The chi-squared distribution with ``df`` degrees of freedom; :func:`cdf` has a derivative in ``x`` alone."""

from typing import Any

import numpy as np

from pullback_autograd.scipy.special import gammainc, gammaln
from pullback_autograd.scipy.stats.support import log_density


def logpdf(x: Any, df: Any) -> Any:
    """The logarithm of the density; -inf at and below 0."""
    half = df / 2
    return log_density(x, lambda x: (half - 1) * np.log(x) - x / 2 - half * np.log(2.0) - gammaln(half), low=0.0)


def pdf(x: Any, df: Any) -> Any:
    """The density."""
    return np.exp(logpdf(x, df))


def cdf(x: Any, df: Any) -> Any:
    """The probability of a smaller value."""
    return gammainc(df / 2, np.maximum(x, 0.0) / 2)


__all__ = ["cdf", "logpdf", "pdf"]
