"""The Dirichlet distribution; the parts stand along the first axis of ``x`` and sum to 1."""

from typing import Any

import numpy as np

from pullback import value
from pullback_autograd.scipy.special import gammaln


def logpdf(x: Any, alpha: Any) -> Any:
    """The logarithm of the density, of shape ``x.shape[1:]``; differentiable in ``x``, each part by itself, and
    ``alpha``. ``x`` is not checked to sum to 1."""
    normalisation = np.sum(gammaln(alpha)) - gammaln(np.sum(alpha))
    return np.sum(((alpha - 1) * np.log(np.transpose(x))).T, axis=0) - normalisation


def pdf(x: Any, alpha: Any) -> Any:
    """The density."""
    return np.exp(logpdf(x, alpha))


def rvs(alpha: Any, size: Any = 1, random_state: Any = None) -> Any:
    """Samples by SciPy, plain: no derivative."""
    from scipy import stats  # noqa: PLC0415 - it takes half a second

    return stats.dirichlet.rvs(value(alpha), size, random_state)


__all__ = ["logpdf", "pdf", "rvs"]
