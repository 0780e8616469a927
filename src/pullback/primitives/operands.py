"""Operands as NumPy functions take them: numbers, and lists with or without tracers, made arrays; tracers and arrays as they are."""

from typing import Any

import numpy as np

from pullback.handles import Handle, plain_value
from pullback.nested import as_operand

PYTHON_NUMBERS = (int, float, complex)


def as_array(x: Any) -> Any:
    """``x`` as an array, or as a tracer of one: a traced Python number gets a dtype of its own, as from numpy.asarray."""
    x = as_operand(x)
    if isinstance(x, Handle):
        traced: Any = x
        return traced if isinstance(plain_value(x), np.ndarray | np.generic) else np.positive(traced)
    return x if hasattr(x, "ndim") else np.asarray(x)


def promoting(x: Any) -> Any:
    """What stands for ``x`` in numpy.result_type: a Python number, traced or not, for itself, because it takes the dtype of the others."""
    plain = plain_value(x) if isinstance(x, Handle) else x
    return plain if type(plain) in PYTHON_NUMBERS else plain.dtype


def as_line(x: Any) -> Any:
    """``x`` as an array or tracer of at least one axis."""
    return np.atleast_1d(as_array(x))
