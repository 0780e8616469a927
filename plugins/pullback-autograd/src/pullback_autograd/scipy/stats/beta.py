"""The beta distribution on (0, 1) with parameters ``a`` and ``b``; :func:`cdf` has a derivative in ``x`` alone."""

from typing import Any

import numpy as np

from pullback_autograd.scipy.special import betainc, betaln
from pullback_autograd.scipy.stats.support import log_density


def logpdf(x: Any, a: Any, b: Any) -> Any:
    """The logarithm of the density; -inf outside of (0, 1)."""
    return log_density(
        x, lambda x: (a - 1) * np.log(x) + (b - 1) * np.log1p(-x) - betaln(a, b), low=0.0, high=1.0, like=0.5
    )


def pdf(x: Any, a: Any, b: Any) -> Any:
    """The density."""
    return np.exp(logpdf(x, a, b))


def cdf(x: Any, a: Any, b: Any) -> Any:
    """The probability of a smaller value."""
    return betainc(a, b, np.clip(x, 0.0, 1.0))


__all__ = ["cdf", "logpdf", "pdf"]
