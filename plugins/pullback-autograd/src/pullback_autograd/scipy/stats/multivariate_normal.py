"""The multivariate normal distribution; points lie along the last axis of ``x``. Needs the plugin pullback-linalg on
tracers."""

from typing import Any

import numpy as np

import pullback as pb
from pullback_autograd.scipy.stats.norm import LOG_2PI


def _covariance(cov: Any, dim: int) -> Any:
    """A covariance matrix from a matrix, a vector (its diagonal) or a number (times the identity)."""
    shape = np.shape(cov)
    if len(shape) == 2:
        return cov
    return np.where(np.eye(dim, dtype=bool), cov * np.ones(dim), 0.0)


def _half_log_det(factor: Any) -> Any:
    return np.sum(np.log(np.diagonal(factor)))


def logpdf(x: Any, mean: Any = None, cov: Any = 1.0, allow_singular: bool = False) -> Any:
    """The logarithm of the density; differentiable in ``x``, ``mean`` and ``cov`` (as a full matrix).

    With ``allow_singular`` it is the density on the support, the columns of ``cov``; then a traced ``cov`` raises.
    Without, NumPy's LinAlgError for a singular one.
    """
    if allow_singular:
        return _on_support(x, mean, cov)
    dim = int(np.size(mean)) if mean is not None else np.shape(cov)[0] if np.ndim(cov) else 1
    factor = np.linalg.cholesky(_covariance(cov, dim))
    centred = np.reshape(x if mean is None else np.subtract(x, mean), (-1, dim))
    white = np.linalg.solve(factor, centred.T)
    exponents = -0.5 * (np.sum(white**2, axis=0) + dim * LOG_2PI) - _half_log_det(factor)
    lead = np.shape(x)[:-1] if np.ndim(x) > 1 or dim > 1 else np.shape(x)
    return np.squeeze(np.reshape(exponents, lead))[()]


def _on_support(x: Any, mean: Any, cov: Any) -> Any:
    """The logarithm of the density of a ``cov`` of lower rank, by its eigenvectors; eigenvalues below 1e6 rounding
    errors of the largest are zero, as SciPy has it."""
    if isinstance(cov, pb.Tracer):
        message = "multivariate_normal with allow_singular has no derivative by cov; leave allow_singular out"
        raise pb.NotDifferentiableError(message)
    dim = int(np.size(mean)) if mean is not None else np.shape(cov)[0] if np.ndim(cov) else 1
    values, vectors = np.linalg.eigh(_covariance(cov, dim))
    kept = values > 1e6 * np.finfo(float).eps * np.max(np.abs(values))
    white = np.reshape(x if mean is None else np.subtract(x, mean), (-1, dim)) @ (
        vectors[:, kept] / np.sqrt(values[kept])
    )
    level = -0.5 * (np.count_nonzero(kept) * LOG_2PI + np.sum(np.log(values[kept])))
    lead = np.shape(x)[:-1] if np.ndim(x) > 1 or dim > 1 else np.shape(x)
    return np.squeeze(np.reshape(level - 0.5 * np.sum(white**2, axis=1), lead))[()]


def pdf(x: Any, mean: Any = None, cov: Any = 1.0, allow_singular: bool = False) -> Any:
    """The density."""
    return np.exp(logpdf(x, mean, cov, allow_singular))


def entropy(mean: Any = None, cov: Any = 1.0) -> Any:
    """The differential entropy in nats."""
    dim = int(np.size(mean)) if mean is not None else np.shape(cov)[0] if np.ndim(cov) else 1
    return 0.5 * dim * (1 + LOG_2PI) + _half_log_det(np.linalg.cholesky(_covariance(cov, dim)))
