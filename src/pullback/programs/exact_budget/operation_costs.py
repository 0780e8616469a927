"""What an operation costs to compute again, about: the bytes that it reads, times a factor for functions that take
longer than to read. No clock is asked, so that the same program drops the same values."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

FACTORS: Final = dict.fromkeys(
    ("sin", "cos", "tan", "exp", "expm1", "log", "log1p", "log2", "log10", "exp2", "tanh", "sinh", "cosh", "arctan",
     "arcsin", "arccos", "power", "logaddexp", "hypot", "arctan2", "cbrt"), 6.0,
)  # fmt: skip
PRODUCTS: Final = ("product_matmul", "product_dot", "product_inner", "einsum_pair", "matmul")


def cost_of(name: str, values: Sequence[Any]) -> float:
    """The cost for the values that an operation reads."""
    arrays = [value for value in values if isinstance(value, np.ndarray)]
    cost = float(max((value.nbytes for value in arrays), default=8))
    if name in PRODUCTS and len(arrays) == 2 and min(a.ndim for a in arrays):
        inner = max(1, arrays[0].shape[-1])
        rows, columns = arrays[0].size / inner, arrays[1].size / inner
        return cost + float(max(1.0, rows) * inner * max(1.0, columns))
    return cost * FACTORS.get(name, 1.0)
