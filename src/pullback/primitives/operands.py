"""Operands as NumPy functions take them: numbers, and lists with or without tracers, made arrays; tracers and arrays as they are."""

from typing import Any

import numpy as np

from pullback.nested import as_operand


def as_array(x: Any) -> Any:
    """``x`` as an array or tracer."""
    x = as_operand(x)
    return x if hasattr(x, "ndim") else np.asarray(x)


def as_line(x: Any) -> Any:
    """``x`` as an array or tracer of at least one axis."""
    return np.atleast_1d(as_array(x))
