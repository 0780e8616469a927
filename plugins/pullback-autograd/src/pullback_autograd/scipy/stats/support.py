"""A density where it is one, and nothing outside of its support."""

from collections.abc import Callable
from typing import Any

import numpy as np


def log_density(
    x: Any, formula: Callable[[Any], Any], *, low: float, high: float = np.inf, like: float = 1.0
) -> Any:  # fmt: skip
    """``formula(x)`` strictly between the bounds, -inf (with derivatives of 0) elsewhere.

    The formula sees ``like``, a point inside, for what lies outside, and so makes no NaN there.
    """
    inside = np.logical_and(np.greater(x, low), np.less(x, high))
    return np.where(inside, formula(np.where(inside, x, like)), -np.inf)[()]
