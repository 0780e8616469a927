"""Whether two values say the same to a program: one type, and one content to the last bit."""

from struct import pack
from types import MappingProxyType
from typing import Any

import numpy as np
from attrs import fields_dict

from pullback.words.digests import same_bits

PLAIN = frozenset({int, bool, str, bytes, type(None), range})


def same_content(a: Any, b: Any) -> bool:
    """Whether two values, or structures of them, are the same in type and content; arrays by their bits and strides.

    What is of a type that nobody knows is the same as itself alone: its ``==`` may say more than its content.
    """
    if a is b:
        return True
    kind = type(a)
    if kind is not type(b):
        return False
    if kind in PLAIN or issubclass(kind, np.dtype):
        return bool(a == b)
    if kind is slice:
        return same_content((a.start, a.stop, a.step), (b.start, b.stop, b.step))
    if kind is tuple or kind is list:
        return len(a) == len(b) and all(map(same_content, a, b))
    if kind is dict or kind is MappingProxyType:
        return a.keys() == b.keys() and all(same_content(a[name], b[name]) for name in a)
    if kind is np.ndarray:
        return bool(a.shape == b.shape and a.dtype == b.dtype and a.strides == b.strides and same_bits(a, b))
    if kind is float:
        return pack("d", a) == pack("d", b)
    if kind is complex:
        return pack("dd", a.real, a.imag) == pack("dd", b.real, b.imag)
    if issubclass(kind, np.generic):
        return bool(a.dtype == b.dtype and a.tobytes() == b.tobytes())
    if kind.__module__.startswith("pullback.") and hasattr(kind, "__attrs_attrs__"):
        return all(same_content(getattr(a, name), getattr(b, name)) for name in fields_dict(kind))
    return False
