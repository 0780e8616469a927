"""Distributions: ``norm`` and ``multivariate_normal``."""

from pullback.compat.autograd.scipy.stats import multivariate_normal, norm

__all__ = ["multivariate_normal", "norm"]
