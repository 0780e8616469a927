"""The cost of k centroids: the sum of the squared distances of all points from the nearest one."""

from typing import Any

import numpy as np


def cost(centroids: Any, points: Any) -> Any:
    """``centroids`` are (k, d), ``points`` (n, d)."""
    squares = np.sum(points**2, axis=1)[:, None] + np.sum(centroids**2, axis=1) - 2.0 * (points @ centroids.T)
    return np.sum(np.min(squares, axis=1))
