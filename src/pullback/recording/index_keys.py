"""Index keys, made the trace's own at the moment of the call: integers, slices of integers, and arrays that nobody else
can change.

What a key means is NumPy's to say: whatever is no integer, slice, ellipsis or None is turned into an array as NumPy
turns it, so that a tuple within a tuple, a deque or a column of a table names what it names there, repeats included.
"""

from operator import index
from typing import Any

import numpy as np


def is_basic(key: Any) -> bool:
    """True for an integer, a slice of integers, an ellipsis, None, or a tuple of these, by type: what NumPy answers
    with a view or one element, and what nobody can change."""
    for k in key if type(key) is tuple else (key,):
        kind = type(k)
        if kind is slice:
            start, stop, step = k.start, k.stop, k.step
            if type(start) is not int and start is not None:
                return False
            if type(stop) is not int and stop is not None:
                return False
            if step is not None and type(step) is not int:
                return False
        elif kind is not int and k is not None and k is not Ellipsis:
            return False
    return True


def kept_key(key: Any, tape: Any) -> Any:
    """The key that NumPy makes of ``key``, in parts of the trace's own. A key that NumPy refuses is left to it."""
    if isinstance(key, tuple):
        return tuple(_kept(k, tape) for k in key)
    return _kept(key, tape)


def _kept(k: Any, tape: Any) -> Any:
    if type(k) is np.ndarray and not k.dtype.hasobject:
        return tape.keep(k)
    if k is None or k is Ellipsis or type(k) is int or isinstance(k, str | bytes):
        return k
    if isinstance(k, slice):
        return slice(*(None if bound is None else index(bound) for bound in (k.start, k.stop, k.step)))
    if isinstance(k, np.ndarray) or not hasattr(type(k), "__index__") or isinstance(k, bool | np.bool_):
        array = np.asarray(k.values() if hasattr(k, "__pullback_hollow__") else k)  # without values it raises
        if not array.size and not isinstance(k, np.ndarray):
            array = array.astype(np.intp)  # an empty list, which NumPy takes for one of integers
        return tape.keep(array) if not array.dtype.hasobject else k
    return index(k)
