"""Python's own types, as programs import them from ``autograd.builtins``: lists, tuples and dicts are structures
here without a wrapper."""

import builtins
from typing import Any

from pullback import value

dict, list, tuple = builtins.dict, builtins.list, builtins.tuple
DictBox, SequenceBox = dict, (list, tuple)


def isinstance(x: Any, kinds: Any) -> bool:
    """``isinstance`` of the value behind a tracer, so that a traced array is an ``np.ndarray``."""
    return builtins.isinstance(x, kinds) or builtins.isinstance(value(x), kinds)


def type(x: Any) -> Any:
    """The type of the value behind a tracer."""
    return builtins.type(value(x))


__all__ = ["DictBox", "SequenceBox", "dict", "isinstance", "list", "tuple", "type"]
