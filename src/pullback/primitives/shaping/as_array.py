"""Operands as NumPy functions take them: numbers and lists, with or without tracers in them, become arrays. Arrays and
tracers of arrays stay as they are."""

from typing import Any

import numpy as np

from pullback.primitives.shaping.nested_lists import as_operand
from pullback.primitives.shaping.reshaping import copy
from pullback.recording.handles import Handle, is_array, plain_value


def as_array(x: Any) -> Any:
    """``x`` as numpy.asarray makes it: an array, or a tracer of one; of a number, traced or not, a 0-d array of a
    dtype of its own."""
    x = as_operand(x)
    if isinstance(x, Handle):
        return x if is_array(x) else copy(x, order="K")
    return x if hasattr(x, "ndim") else np.asarray(x)


def promoting(x: Any) -> Any:
    """What stands for ``x`` in numpy.result_type: a Python number, traced or not, for itself, because it takes the
    dtype of the others."""
    plain = plain_value(x)
    return getattr(plain, "dtype", plain)


def as_line(x: Any) -> Any:
    """``x`` as an array or tracer of at least one axis."""
    return np.atleast_1d(as_array(x))
