"""``autograd.numpy``: NumPy itself, with ``pullback.numpy`` for what does not dispatch (``array`` of a list of
tracers, ``full``, ...). Types of numbers are NumPy's own."""

from typing import Any

import numpy as np

from pullback import numpy as pnp
from pullback_autograd.extend import replaced
from pullback_autograd.numpy import fft, linalg, lists, numpy_boxes, numpy_vjps, random
from pullback_autograd.numpy.lists import int8, int16, int32, int64, make_diagonal, where


def __getattr__(name: str) -> Any:
    found = getattr(pnp, name)
    if name in lists.OF_ONE_ARRAY:
        return lists.taking_lists(found)
    if name in lists.OF_SEQUENCES:
        return lists.taking_iterators(found)
    own = getattr(np, name, None)
    is_type = isinstance(own, type) and (found is own or issubclass(own, np.generic))
    return own if is_type else replaced(found)


def __dir__() -> list[str]:
    return sorted({*dir(pnp), *__all__})


__all__ = [
    "fft", "int8", "int16", "int32", "int64", "linalg", "make_diagonal", "numpy_boxes", "numpy_vjps", "random", "where",
]  # fmt: skip
