"""The normal distribution with mean ``loc`` and standard deviation ``scale``; differentiable in all three arguments."""

from typing import Any

import numpy as np

from pullback_autograd.scipy.special import log_ndtr, ndtr

LOG_2PI = float(np.log(2 * np.pi))


def logpdf(x: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """The logarithm of the density."""
    return -0.5 * (((x - loc) / scale) ** 2 + LOG_2PI) - np.log(scale)


def pdf(x: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """The density."""
    return np.exp(logpdf(x, loc, scale))


def cdf(x: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """The probability of a smaller value."""
    return ndtr((x - loc) / scale)


def logcdf(x: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """The logarithm of :func:`cdf`, exact far below the mean too."""
    return log_ndtr((x - loc) / scale)


def sf(x: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """The probability of a larger value."""
    return ndtr((loc - x) / scale)


def logsf(x: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """The logarithm of :func:`sf`, exact far above the mean too."""
    return log_ndtr((loc - x) / scale)
