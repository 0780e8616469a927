"""NumPy's functions of one array, given a list of tracers; and what autograd's namespace has beside NumPy's."""

from collections.abc import Callable, Sized
from functools import cache, wraps
from typing import Any

import numpy as np

import pullback as pb
from pullback import numpy as pnp
from pullback_autograd.extend import notrace_primitive, replaced
from pullback_autograd.misc.packed import holds_tracer

OF_ONE_ARRAY = frozenset({
    *("all", "amax", "amin", "any", "argmax", "argmin", "argsort", "average", "count_nonzero", "cumprod", "cumsum"),
    *("diag", "diff", "dot", "flip", "inner", "max", "mean", "median", "min", "norm", "outer", "prod", "ptp", "ravel"),
    *("repeat", "reshape", "roll", "shape", "size", "sort", "std", "sum", "take", "tile", "transpose", "var", "vdot"),
})  # fmt: skip
OF_SEQUENCES = frozenset({"column_stack", "concatenate", "dstack", "hstack", "stack", "vstack"})
WHOLE_NUMBERS = ("int8", "int16", "int32", "int64")


@cache
def taking_lists(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function``, its lists of tracers made arrays first; without tracers in lists NumPy's own."""

    @wraps(function)
    def of_arrays(*args: Any, **kwargs: Any) -> Any:
        if any(isinstance(a, list | tuple) and holds_tracer(a) for a in args):
            args = tuple(pnp.array(a) if isinstance(a, list | tuple) and holds_tracer(a) else a for a in args)
        return replaced(function)(*args, **kwargs)

    return of_arrays


@cache
def taking_iterators(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function``, which joins a sequence of arrays, of whatever gives them one by one."""

    @wraps(function)
    def of_sequence(arrays: Any, *args: Any, **kwargs: Any) -> Any:
        given = arrays if isinstance(arrays, Sized) else list(arrays)
        return replaced(function)(given, *args, **kwargs)

    return of_sequence


def whole_number(kind: type) -> type:
    """An integer type of NumPy's that takes the value behind a tracer: whole numbers have no derivative."""
    return type(kind.__name__, (kind,), {"__new__": notrace_primitive(kind.__new__)})


int8, int16, int32, int64 = (whole_number(getattr(np, name)) for name in WHOLE_NUMBERS)


def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    """``np.where``, its arguments by name too."""
    if x is None and y is None:
        return np.where(pb.value(condition))
    return np.where(condition, x, y)


def make_diagonal(D: Any, offset: int = 0, axis1: int = -1, axis2: int = -2) -> Any:
    """The vectors along the last axis as diagonals of matrices, of shape ``D.shape + D.shape[-1:]``."""
    if (offset, axis1, axis2) != (0, -1, -2):
        message = f"make_diagonal is for offset=0, axis1=-1, axis2=-2, got {offset}, {axis1}, {axis2}; move the axes"
        raise pb.NotDifferentiableError(message)
    n = np.shape(D)[-1]
    return np.where(np.eye(n, dtype=bool), D[..., None, :], 0.0)


__all__ = ["int8", "int16", "int32", "int64", "make_diagonal", "where"]
