"""The gamma distribution of shape ``a`` and scale 1; :func:`cdf` has a derivative in ``x`` alone."""

from typing import Any

import numpy as np

from pullback_autograd.scipy.special import gammainc, gammaln
from pullback_autograd.scipy.stats.support import log_density


def logpdf(x: Any, a: Any) -> Any:
    """The logarithm of the density; -inf at and below 0."""
    return log_density(x, lambda x: (a - 1) * np.log(x) - x - gammaln(a), low=0.0)


def pdf(x: Any, a: Any) -> Any:
    """The density."""
    return np.exp(logpdf(x, a))


def cdf(x: Any, a: Any) -> Any:
    """The probability of a smaller value."""
    return gammainc(a, np.maximum(x, 0.0))


__all__ = ["cdf", "logpdf", "pdf"]
