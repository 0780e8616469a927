"""Half the squared distance of a polynomial from the sign function, at equal distances in [-1, 1]."""

from typing import Any

import numpy as np


def objective(x: Any, n: int) -> Any:
    """``x`` are the coefficients (m,), the constant one first."""
    t = np.linspace(-1.0, 1.0, n)
    residuals = np.sign(t) - np.vander(t, len(x), increasing=True) @ x
    return 0.5 * np.sum(residuals**2)
