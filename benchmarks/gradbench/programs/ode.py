"""y_0' = x_0, y_i' = x_i y_(i-1) from y = 0 over the time 2, by Runge and Kutta's method in ``s`` steps."""

from typing import Any

import numpy as np


def slope(x: Any, y: Any) -> Any:
    return x * np.concatenate((np.ones(1), y[:-1]))


def solve(x: Any, s: int) -> Any:
    """The solution (n,) at the end."""
    h = 2.0 / s
    y = np.zeros(len(x))
    for _ in range(s):
        k1 = slope(x, y)
        k2 = slope(x, y + h / 2 * k1)
        k3 = slope(x, y + h / 2 * k2)
        k4 = slope(x, y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return y


def last(x: Any, s: int) -> Any:
    """The component that is differentiated."""
    return solve(x, s)[-1]
