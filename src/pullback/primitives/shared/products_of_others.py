"""The derivative of a product by each factor: the product of all other factors.

Where the product is far from the ends of its dtype's range, no factor is 0. Then the product divided by each factor
takes one pass. Otherwise the others are multiplied out, those before times those after: zeros need no division, and
fewer products underflow.
"""

from typing import Any

import numpy as np

from pullback.primitives.shared.axes import Axis
from pullback.recording.handles import plain_value


def is_ordinary(product: Any) -> bool:
    """True where a product over one of its factors has all its digits: it is neither 0 nor near underflow or
    overflow."""
    size = np.absolute(plain_value(product))
    if not np.size(size):
        return True
    ends = np.finfo(size.dtype)
    return bool(size.min() > ends.tiny / ends.eps and size.max() < ends.max * ends.eps)  # False for a NaN


def loses_nothing(x: Any, axis: Axis) -> bool:
    """True where no partial product along ``axis`` has lost digits on its way, by the processor's own flags."""
    try:
        with np.errstate(under="raise", over="raise"):
            np.multiply.reduce(plain_value(x), axis)
    except FloatingPointError:
        return False
    return True


def products_of_others(x: Any, axis: Axis) -> Any:
    """The product of all others along ``axis``, for every element."""
    ndim = len(x.shape)
    reduced = (
        tuple(range(ndim))
        if axis is None or not ndim
        else tuple(a % ndim for a in (axis if isinstance(axis, tuple) else (axis,)))
    )
    order = (*(k for k in range(ndim) if k not in reduced), *reduced)
    last = np.transpose(x, order)
    shape = last.shape
    rows = np.reshape(last, (*shape[: ndim - len(reduced)], -1))
    one = np.ones((*rows.shape[:-1], 1), rows.dtype)
    before = np.concatenate((one, np.cumprod(rows[..., :-1], -1)), -1)
    after = np.concatenate((one, np.cumprod(rows[..., :0:-1], -1)), -1)[..., ::-1]
    return np.transpose(np.reshape(before * after, shape), tuple(sorted(range(ndim), key=order.__getitem__)))
