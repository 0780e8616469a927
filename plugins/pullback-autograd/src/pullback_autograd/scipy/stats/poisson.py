"""The Poisson distribution of mean ``mu``; differentiable in ``mu``, ``k`` is a plain count."""

from typing import Any

import numpy as np

from pullback import value
from pullback_autograd.scipy.special import gammaincc, gammaln


def logpmf(k: Any, mu: Any) -> Any:
    """The logarithm of the probability of ``k``; -inf where ``k`` is negative or no whole number."""
    k = np.asarray(value(k))
    counts = (k >= 0) & (k == np.floor(k))
    known = np.where(counts, k, 0)
    powers = np.where(known == 0, 0.0, known * np.log(mu))  # 0 log 0 is 0
    return np.where(counts, powers - mu - gammaln(known + 1.0), -np.inf)[()]


def pmf(k: Any, mu: Any) -> Any:
    """The probability of ``k``."""
    return np.exp(logpmf(k, mu))


def cdf(k: Any, mu: Any) -> Any:
    """The probability of at most ``k``."""
    k = np.floor(np.asarray(value(k), float))
    return np.where(k < 0, 0.0, gammaincc(np.maximum(k, 0.0) + 1.0, mu))[()]


__all__ = ["cdf", "logpmf", "pmf"]
