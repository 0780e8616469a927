"""Distributions, each a module as in autograd. Of other names SciPy's own, which refuse tracers."""

from typing import Any

from pullback_autograd.scipy.stats import beta, chi2, dirichlet, gamma, multivariate_normal, norm, poisson, t


def __getattr__(name: str) -> Any:
    """SciPy's own; it raises :class:`ConversionError` on a tracer."""
    from scipy import stats  # noqa: PLC0415 - it takes half a second

    return getattr(stats, name)


__all__ = ["beta", "chi2", "dirichlet", "gamma", "multivariate_normal", "norm", "poisson", "t"]
