"""The log likelihood of a Gaussian mixture with a Wishart prior as ADBench has it, and its gradient (ADBench's GMM).

For component k, Q_k is lower triangular with exp(icf[k, :d]) on its diagonal and icf[k, d:] below it, column by column;
the covariance is (Q_k' Q_k)^-1. The objective is

    sum_i log sum_k exp(alpha_k + sum_{j <= d} icf_kj - |Q_k (x_i - mu_k)|^2 / 2) - n log sum_k exp(alpha_k)
        + sum_k (gamma^2 |Q_k|^2 / 2 - m sum_{j <= d} icf_kj) - constant
"""

import math
from typing import Any

import numpy as np

import pullback as pb


def objective(params: Any, x: Any, gamma: float, m: int) -> Any:
    """The objective at ``params`` = (alphas (k,), means (k, d), icf (k, d (d + 1) / 2)) for the points ``x`` (n, d):
    a scalar."""
    alphas, means, icf = params
    n, d = x.shape
    k = alphas.shape[0]
    logs = icf[:, :d]
    factors = np.concatenate([np.zeros((k, 1)), np.exp(logs), icf[:, d:]], axis=1)[:, factor_places(d)]
    sums = np.sum(logs, axis=1)
    # Q (x - mu) = [Q, -Q mu] [x, 1]: one product of all factors with all points, which lie along the last axis, where
    # sums are cheap.
    moving = np.concatenate([factors, -(factors @ means[:, :, None])], axis=2).reshape(k * d, d + 1)
    moved = (moving @ np.concatenate([x.T, np.ones((1, n))])).reshape(k, d, n)
    terms = (alphas + sums)[:, None] - 0.5 * np.sum(np.square(moved), axis=1)
    prior = 0.5 * gamma**2 * np.sum(np.square(factors)) - m * np.sum(sums)
    return np.sum(log_sum_exp(terms)) - n * log_sum_exp(alphas) + prior - constant(n, d, k, gamma, m)


def factor_places(d: int) -> Any:
    """Where the entries of a lower triangular factor lie in (0, diagonal, below column by column): (d, d)."""
    places = np.zeros((d, d), int)
    places[np.arange(d), np.arange(d)] = 1 + np.arange(d)
    columns, rows = np.triu_indices(d, 1)
    places[rows, columns] = 1 + d + np.arange(rows.size)
    return places


def log_sum_exp(terms: Any) -> Any:
    """The logarithm of the sum of exponentials over the first axis; the greatest term is a constant, since
    derivatives by it cancel."""
    top = np.max(pb.value(terms), axis=0)
    return np.log(np.sum(np.exp(terms - top), axis=0)) + top


def constant(n: int, d: int, k: int, gamma: float, m: int) -> float:
    """What the objective has beside its parameters: n d log(2 pi) / 2, and k times what normalises the Wishart prior.

    That prior has d + m + 1 degrees of freedom.
    """
    freedom = d + m + 1
    normaliser = freedom * d * (math.log(gamma) - 0.5 * math.log(2)) - log_gamma(0.5 * freedom, d)
    return 0.5 * n * d * math.log(2 * math.pi) + k * normaliser


def log_gamma(a: float, d: int) -> float:
    """The logarithm of the multivariate gamma function of dimension ``d``."""
    return 0.25 * d * (d - 1) * math.log(math.pi) + sum(math.lgamma(a - 0.5 * j) for j in range(d))


def value_and_gradient(mixture: Any) -> tuple[float, tuple[Any, Any, Any]]:
    """The value, and the gradient as (alphas, means, icf)."""
    params = (mixture.alphas, mixture.means, mixture.icf)
    value, gradient = pb.value_and_grad(objective)(params, mixture.x, mixture.gamma, mixture.m)
    return float(value), gradient
