"""Whether two values are the same to a program: of one type, and equal to the last bit."""

from collections.abc import Callable, Iterable
from functools import cache
from operator import attrgetter
from struct import pack
from types import MappingProxyType
from typing import Any

import numpy as np

from pullback.words.digests import digest, same_bits

PLAIN = frozenset({int, bool, str, bytes, type(None), range})

MAPPINGS = frozenset({dict, MappingProxyType})
WHOLE = frozenset({int, type(None)})
FEW_BYTES = 4096
"""Bytes up to which an array's own are compared themselves."""


def same_content(a: Any, b: Any) -> bool:
    """Whether two values, or structures of them, are the same in type and content; arrays by their bits and strides.

    What is of a type that nobody knows is the same as itself alone: its ``==`` may say more than its content.
    """
    if a is b:
        return True
    kind = type(a)
    if kind in MAPPINGS:
        return type(b) in MAPPINGS and a.keys() == b.keys() and same_parts(a.values(), map(b.__getitem__, a))
    if kind is not type(b):
        return False
    if kind in PLAIN:
        return bool(a == b)
    if kind is slice:
        if a.start is b.start and a.stop is b.stop and a.step is b.step:
            return True
        ends = a.start, a.stop, a.step
        others = b.start, b.stop, b.step
        return ends == others if WHOLE.issuperset(map(type, (*ends, *others))) else same_parts(ends, others)
    if kind is tuple or kind is list:
        return len(a) == len(b) and same_parts(a, b)
    if kind is np.ndarray:
        return bool(a.shape == b.shape and a.dtype == b.dtype and a.strides == b.strides and same_bits(a, b))
    if kind is float:
        return pack("d", a) == pack("d", b)
    if kind is complex:
        return pack("dd", a.real, a.imag) == pack("dd", b.real, b.imag)
    if issubclass(kind, np.dtype):
        return bool(a == b)
    if issubclass(kind, np.generic):
        return bool(a.dtype == b.dtype and a.tobytes() == b.tobytes())
    if kind.__module__.startswith("pullback.") and hasattr(kind, "__attrs_attrs__"):
        ours: Any = kind
        parts_of = _parts_of(ours)
        return same_parts(parts_of(a), parts_of(b))
    return False


def bits_held(array: np.ndarray[Any, Any]) -> bytes:
    """What tells later whether an array still holds the same: its bytes, or of a larger one a digest."""
    return array.tobytes() if array.nbytes <= FEW_BYTES else digest(array)


def same_parts(parts: Iterable[Any], others: Iterable[Any]) -> bool:
    """Whether as many values are the same, one by one."""
    for a, b in zip(parts, others, strict=True):
        if a is not b and (type(a) is not int or type(b) is not int or a != b) and not same_content(a, b):
            return False
    return True


@cache
def _parts_of(kind: Any) -> Callable[[Any], tuple[Any, ...]]:
    """What takes the fields of a value of one of our own types."""
    names = [field.name for field in kind.__attrs_attrs__]
    return attrgetter(*names) if len(names) > 1 else lambda value: tuple(getattr(value, name) for name in names)
