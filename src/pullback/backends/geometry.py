"""Where a view lies in the array that it is a slice of."""

from typing import Any

import numpy as np


def starts_in(part: Any, whole: Any) -> tuple[int, ...] | None:
    """Where ``part`` begins along each axis of ``whole``, whose memory it looks at, if it is a slice of it with steps
    of one and as many axes; None for anything else."""
    if type(part) is not np.ndarray or type(whole) is not np.ndarray or part.dtype != whole.dtype:
        return None
    if part.ndim != whole.ndim or not part.ndim or not part.size:
        return None
    for extent, step, other in zip(part.shape, part.strides, whole.strides, strict=True):
        if other <= 0 or (step != other and extent != 1):
            return None
    offset = part.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
    starts = [0] * part.ndim
    # A number in mixed radix: each stride is at least what the axes within it span, or elements would overlap.
    for axis in sorted(range(part.ndim), key=lambda k: -whole.strides[k]):
        if whole.shape[axis] > 1:
            starts[axis], offset = divmod(offset, whole.strides[axis])
    spans = zip(starts, part.shape, whole.shape, strict=True)
    if offset or any(start < 0 or start + extent > most for start, extent, most in spans):
        return None
    return tuple(starts)
