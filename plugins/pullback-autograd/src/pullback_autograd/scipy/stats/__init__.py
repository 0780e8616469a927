"""Distributions: ``norm`` and ``multivariate_normal``."""

from pullback_autograd.scipy.stats import multivariate_normal, norm

__all__ = ["multivariate_normal", "norm"]
