"""An array of adopted code, by which is known whether a trace is under way: one that can hold traced values, then."""

from typing import Any

import numpy as np


def fresh() -> Any:
    """An array that nobody else holds."""
    return np.zeros(0)
