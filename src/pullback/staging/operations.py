"""What a step does, as a list of operations that can be compared: which primitive, on which values, with which
parameters, and what kind of value came out."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from attrs import frozen

from pullback.words.digests import same_bits
from pullback.words.specs import ArraySpec, shared_spec

ATOMS = (int, float, complex, bool, str, bytes, type(None))


@frozen(slots=False)
class Result:
    """What kind of value an operation gives: all that a program can ask a handle without asking for its value."""

    spec: ArraySpec | None
    strides: tuple[int, ...] | None
    """Of an array; None for a scalar."""
    kind: str
    """The kind of handle: ``tracer``, ``view``, ``buffer``, ``weak``; ``plain`` where a plain value was handed out."""
    type: Any

    @property
    def array(self) -> bool:
        """Whether the value is an array, no scalar."""
        return self.strides is not None

    @cached_property
    def flags(self) -> Any:
        """How the array lies in memory."""
        assert self.spec is not None
        assert self.strides is not None
        sample = np.lib.stride_tricks.as_strided(np.empty(0, self.spec.dtype), self.spec.shape, self.strides)
        return sample.flags

    @property
    def dense(self) -> bool:
        """Whether the array lies without gaps, in C order or the reverse."""
        return bool(self.flags.forc)


def result_of(value: Any, kind: str) -> Result:
    """Of a plain value."""
    strides = value.strides if isinstance(value, np.ndarray) else None
    return Result(shared_spec(value), strides, kind, type(value))


def entering(leaf: Any) -> Result:
    """Of a leaf that enters a step."""
    return result_of(leaf, "weak" if type(leaf) in (float, complex) else "tracer")


@frozen(slots=False)
class Constant:
    """An operand that is no handle: its content is taken anew in every step, its kind is not."""

    type: Any
    spec: ArraySpec | None = None
    strides: tuple[int, ...] | None = None

    @classmethod
    def of(cls, value: Any) -> "Constant":
        """What is compared of ``value``."""
        if type(value) is np.ndarray:
            return cls(np.ndarray, shared_spec(value), value.strides)
        return cls(type(value), shared_spec(value) if isinstance(value, np.generic) else None)

    def admits(self, value: Any) -> bool:
        """Whether ``value`` is of this kind."""
        if type(value) is not self.type:
            return False
        if self.spec is None:
            return True
        return bool(
            value.shape == self.spec.shape
            and value.dtype == self.spec.dtype
            and (self.strides is None or value.strides == self.strides)
        )


@frozen(slots=False)
class Operation:
    """One entry of the list. ``operands`` are the numbers of earlier values, or constants."""

    what: Any
    """A primitive, or one of the words below."""
    operands: tuple[Any, ...]
    params: Any
    makes: tuple[int, ...]
    """The numbers of the values that it gives."""
    results: tuple[Result, ...]
    several: bool = False
    """Whether it gives a tuple of values."""


def same(a: Operation, b: Operation) -> bool:
    """Whether two entries say the same."""
    if a is b:
        return True
    alike = a.what is b.what and a.operands == b.operands and a.makes == b.makes and a.results == b.results
    return alike and same_params(a.params, b.params)


def same_params(a: Any, b: Any) -> bool:
    """Whether two parameters, or structures of them, are the same in type and content; arrays by their bits."""
    if a is b:
        return True
    kind = type(a)
    if kind is not type(b):
        return isinstance(a, Mapping) and isinstance(b, Mapping) and not a and not b  # none, in one form or the other
    if kind is slice:
        return bool(a == b)
    if kind is tuple or kind is list:
        return len(a) == len(b) and all(map(same_params, a, b))
    if kind is dict:
        return a.keys() == b.keys() and all(same_params(a[name], b[name]) for name in a)
    if kind is np.ndarray:
        return bool(a.shape == b.shape and a.dtype == b.dtype and a.strides == b.strides and same_bits(a, b))
    if kind is float or kind is complex or isinstance(a, np.generic):
        return repr(a) == repr(b)
    return bool(a == b)


CREATE, WRITE, ADD, TAKE, CAPTURE, FROZEN, RESULT = "create", "write", "add", "take", "capture", "frozen", "result"
"""The operations that are no primitive: a new array like another, an assignment, an increment, a handle that becomes
another, a value from around the step, one that depends on nothing, and what the step returns."""
