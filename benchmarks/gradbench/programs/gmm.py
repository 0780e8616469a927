"""The logarithm of the posterior probability of a Gaussian mixture with a Wishart prior on its precision matrices."""

import math
from typing import Any

import numpy as np


def objective(alpha: Any, mu: Any, q: Any, below: Any, x: Any, m: int, gamma: float) -> Any:
    """``alpha`` (k,) are the logarithms of the weights, ``mu`` (k, d) the means, ``x`` (n, d) the points; exp(``q``)
    (k, d) the diagonals of the triangular factors of the precisions, ``below`` (k, d (d - 1) / 2) what lies below,
    column by column."""
    (n, d), k = x.shape, len(alpha)
    factors = np.concatenate([np.zeros((k, 1)), np.exp(q), below], axis=1)[:, places(d)]
    sums = np.sum(q, axis=1)
    moved = (x - mu[:, None]) @ factors.transpose(0, 2, 1)
    terms = (alpha + sums)[:, None] - 0.5 * np.sum(moved**2, axis=2)
    likelihood = np.sum(logsumexp(terms)) - n * (logsumexp(alpha) + d / 2 * math.log(2 * math.pi))
    freedom = d + m + 1
    constant = freedom * d * math.log(gamma / math.sqrt(2.0)) - log_gamma(freedom / 2, d)
    return likelihood + k * constant - gamma**2 / 2 * np.sum(factors**2) + m * np.sum(sums)


def places(d: int) -> Any:
    """Where the entries (d, d) of a factor lie in (0, diagonal, below column by column)."""
    found = np.zeros((d, d), int)
    columns, rows = np.triu_indices(d, 1)
    found[np.arange(d), np.arange(d)] = 1 + np.arange(d)
    found[rows, columns] = 1 + d + np.arange(len(rows))
    return found


def logsumexp(terms: Any) -> Any:
    """Over the first axis."""
    top = np.max(terms, axis=0)
    return top + np.log(np.sum(np.exp(terms - top), axis=0))


def log_gamma(a: float, d: int) -> float:
    """The logarithm of the multivariate gamma function of dimension ``d``."""
    return d * (d - 1) / 4 * math.log(math.pi) + sum(math.lgamma(a - j / 2) for j in range(d))
