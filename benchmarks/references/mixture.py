"""Two ways to write the Gaussian mixture of ``adbench.gmm``, for any library with NumPy's names, and the adjoint of one
of them by hand.

``params`` are alphas (k,), means (k, d) and icf (k, d (d + 1) / 2). ``places`` (d, d) says where each entry of a
triangular factor lies in (0, icf), so that no library need write into an array. ``log_sum_exp`` is over the first axis.
Constants of the objective are left out.
"""

from collections.abc import Callable
from typing import Any

import numpy as np


def with_ones(x: Any) -> Any:
    """The points as columns, with a 1 below each."""
    return np.concatenate([x.T, np.ones((1, len(x)))])


def published(
    xp: Any, log_sum_exp: Callable[[Any], Any], params: Any, x: Any, places: Any, zeros: Any, gamma: float, m: int
) -> Any:
    """As the paper has it: every point less every mean, each times its factor."""
    alphas, means, icf = params
    d = x.shape[1]
    logs = icf[:, :d]
    factors = xp.concatenate([zeros, xp.exp(logs), icf[:, d:]], axis=1)[:, places]
    moved = xp.einsum("kij,nkj->nki", factors, x[:, None, :] - means)
    sums = xp.sum(logs, axis=1)
    terms = alphas + sums - 0.5 * xp.sum(moved**2, axis=2)
    prior = 0.5 * gamma**2 * xp.sum(factors**2) - m * xp.sum(sums)
    return xp.sum(log_sum_exp(terms.T)) - x.shape[0] * log_sum_exp(alphas) + prior


def one_product(
    xp: Any, log_sum_exp: Callable[[Any], Any], params: Any, points: Any, places: Any, zeros: Any, gamma: float, m: int
) -> Any:
    """As ``adbench.gmm`` has it: one product of all factors with all points, which are columns with a 1 below each."""
    alphas, means, icf = params
    (k, d), n = means.shape, points.shape[1]
    logs = icf[:, :d]
    factors = xp.concatenate([zeros, xp.exp(logs), icf[:, d:]], axis=1)[:, places]
    moving = xp.concatenate([factors, -(factors @ means[:, :, None])], axis=2).reshape(k * d, d + 1)
    moved = (moving @ points).reshape(k, d, n)
    sums = xp.sum(logs, axis=1)
    terms = (alphas + sums)[:, None] - 0.5 * xp.sum(xp.square(moved), axis=1)
    prior = 0.5 * gamma**2 * xp.sum(xp.square(factors)) - m * xp.sum(sums)
    return xp.sum(log_sum_exp(terms)) - n * log_sum_exp(alphas) + prior


def one_product_by_hand(
    params: Any, points: Any, places: Any, zeros: Any, gamma: float, m: int
) -> tuple[Any, tuple[Any, Any, Any]]:
    """Value and gradient of ``one_product``, written out."""
    alphas, means, icf = params
    (k, d), n = means.shape, points.shape[1]
    columns, rows = np.triu_indices(d, 1)
    along = np.arange(d)
    logs = icf[:, :d]
    diagonal = np.exp(logs)
    factors = np.concatenate([zeros, diagonal, icf[:, d:]], axis=1)[:, places]
    moving = np.concatenate([factors, -(factors @ means[:, :, None])], axis=2)
    moved = (moving.reshape(k * d, d + 1) @ points).reshape(k, d, n)
    sums = np.sum(logs, axis=1)
    terms = (alphas + sums)[:, None] - 0.5 * np.sum(np.square(moved), axis=1)
    top, top_alpha = np.max(terms, axis=0), np.max(alphas)
    shares, share = np.exp(terms - top), np.exp(alphas - top_alpha)
    total, total_alpha = np.sum(shares, axis=0), np.sum(share)
    prior = 0.5 * gamma**2 * np.sum(np.square(factors)) - m * np.sum(sums)
    value = np.sum(np.log(total) + top) - n * (np.log(total_alpha) + top_alpha) + prior

    shares /= total
    weights = np.sum(shares, axis=1)
    moved *= shares[:, None, :]
    of_moving = (moved.reshape(k * d, n) @ points.T).reshape(k, d, d + 1)  # but for the sign
    of_offsets = of_moving[:, :, d]
    of_factors = of_offsets[:, :, None] * means[:, None, :] - of_moving[:, :, :d] + gamma**2 * factors
    of_means = (of_offsets[:, None, :] @ factors)[:, 0]
    of_logs = of_factors[:, along, along] * diagonal + (weights - m)[:, None]
    of_icf = np.concatenate([of_logs, of_factors[:, rows, columns]], axis=1)
    return value, (weights - n / total_alpha * share, of_means, of_icf)
