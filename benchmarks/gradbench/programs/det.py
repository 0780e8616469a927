"""A determinant by expansion along the first row, down to minors of one element."""

from typing import Any

import numpy as np


def determinant(a: Any) -> Any:
    """Those of the matrices ``a`` (..., m, m), with all their minors expanded at once."""
    m = a.shape[-1]
    if m == 1:
        return a[..., 0, 0]
    others = np.array([[c for c in range(m) if c != column] for column in range(m)])
    minors = np.moveaxis(a[..., 1:, others], -2, -3)
    return np.sum((-1.0) ** np.arange(m) * a[..., 0, :] * determinant(minors), axis=-1)
