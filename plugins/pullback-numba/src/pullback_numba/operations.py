"""Calls of a plan as operations on elements: where each reads and writes, along the axes of one array.

What is no such operation stays NumPy's: other ufuncs, mixed dtypes, arrays of fewer elements than ``FEWEST``, writes to
anything but slices with steps of one.
"""

import math
import operator
from typing import Any

import numpy as np
from attrs import frozen

from pullback.backends import Call, Plan, Ref, Value

FEWEST = 1024
"""Elements from which a nest is faster than NumPy's calls."""
_REAL = {np.add: "+", np.subtract: "-", np.multiply: "*", np.true_divide: "/", np.negative: "neg", np.square: "square"}
_COMPLEX = {np.add: "+", np.subtract: "-", np.negative: "neg"}
_DTYPES = {"float32": _REAL, "float64": _REAL, "complex64": _COMPLEX, "complex128": _COMPLEX}
"""What is computed in nests. Products and quotients of complex numbers differ in their last bits."""
_LITERALS = 2**24
"""Integers up to which all are exact in each of these types."""


@frozen
class Access:
    """Elements of an array: the one at ``i + starts`` for the one at ``i`` of the operation."""

    memory: str
    starts: tuple[int, ...]


@frozen
class Spread:
    """Elements of an array that is broadcast: ``axes`` are those of the operation that count, by axis of the array."""

    memory: str
    starts: tuple[int, ...]
    axes: tuple[int | None, ...]


@frozen
class Number:
    """A number: the name of a value, or a literal."""

    text: str
    literal: bool


Operand = Access | Spread | Number


@frozen
class Operation:
    """``memory[i + starts] = symbol(operands)`` for every i in ``shape``."""

    call: int
    """Place of its call."""
    symbol: str
    """``+ - * /``, ``neg``, ``square`` or ``copy``."""
    target: Access
    operands: tuple[Operand, ...]
    shape: tuple[int, ...]
    dtype: str
    whole: tuple[int, ...]
    """The shape of the array that it writes to."""

    @property
    def reads(self) -> tuple[Access | Spread, ...]:
        """The operands that are arrays."""
        return tuple(x for x in self.operands if not isinstance(x, Number))

    @property
    def full(self) -> bool:
        """Whether it writes all of the array, and nothing of what was there counts."""
        return self.shape == self.whole and all(x.memory != self.target.memory for x in self.reads)


def operations_of(plan: Plan, place: int) -> tuple[Operation, ...]:
    """What a call does element by element, in one operation or two; none where it stays NumPy's."""
    call = plan.calls[place]
    made = plan.values[call.makes]
    if call.detaches or math.prod(made.shape) < FEWEST or str(made.dtype) not in _DTYPES:
        return ()
    if made.memory is None or made.starts is None or made.type is not np.ndarray:
        return ()
    if not made.dense and not (call.write and call.write.in_place):
        return ()
    try:
        return _written(plan, place, call, made) if call.write else _computed(plan, place, call, made)
    except _Other:
        return ()


class _Other(Exception):  # noqa: N818 - no error: the call stays NumPy's
    pass


def _computed(plan: Plan, place: int, call: Call, made: Value) -> tuple[Operation, ...]:
    dtype, args = str(made.dtype), call.args
    if call.kind == "zeros":
        symbol, args = "copy", (0.0,)
    elif call.kind == "copy":
        symbol, args = "copy", args[:1]
    elif call.kind == "ufunc" and call.function in _DTYPES[dtype]:
        symbol = _DTYPES[dtype][call.function]
    elif call.kind == "other" and call.function is operator.pow and _is_two(args[1]) and "*" in _DTYPES[dtype].values():
        symbol, args = "square", args[:1]
    else:
        raise _Other
    operands = tuple(_operand(plan, arg, made.shape, dtype) for arg in args)
    assert made.memory is not None
    assert made.starts is not None
    target = Access(made.memory, made.starts)
    return (Operation(place, symbol, target, operands, made.shape, dtype, made.whole),)


def _is_two(x: Any) -> bool:
    return type(x) in (int, float) and x == 2


def _written(plan: Plan, place: int, call: Call, made: Value) -> tuple[Operation, ...]:
    write, dtype = call.write, str(made.dtype)
    assert write is not None
    assert made.memory is not None
    if write.starts is None or len(write.shape) != len(made.whole) or math.prod(write.shape) == 0:
        raise _Other
    found = []
    starts = write.starts
    if not write.in_place:
        copied = _operand(plan, Ref(write.target), made.shape, dtype)
        whole = Access(made.memory, (0,) * len(made.whole))
        found.append(Operation(place, "copy", whole, (copied,), made.whole, dtype, made.whole))
    target = Access(made.memory, starts)
    value = _operand(plan, write.value, write.shape, dtype)
    operands = (value,) if write.sign == "=" else (target, value)
    symbol = {"=": "copy", "+=": "+", "-=": "-"}[write.sign]
    return (*found, Operation(place, symbol, target, operands, write.shape, dtype, made.whole))


def _operand(plan: Plan, arg: Any, shape: tuple[int, ...], dtype: str) -> Operand:
    if not isinstance(arg, Ref):
        return _literal(arg, dtype)
    value = plan.values[arg.number]
    if not value.is_array:
        return _number(f"v{arg.number}", value, dtype)
    if value.type is not np.ndarray or str(value.dtype) != dtype or value.memory is None or value.starts is None:
        raise _Other
    if value.shape == shape:
        return Access(value.memory, value.starts)
    if not value.shape or len(value.shape) > len(shape):
        raise _Other
    first = len(shape) - len(value.shape)
    axes: list[int | None] = []
    for k, extent in enumerate(value.shape):
        if extent not in (1, shape[first + k]):
            raise _Other
        axes.append(None if extent == 1 and shape[first + k] != 1 else first + k)
    return Spread(value.memory, value.starts, tuple(axes))


def _literal(arg: Any, dtype: str) -> Number:
    """A number of the text. NumPy gives it the dtype of the arrays beside it."""
    if isinstance(arg, np.generic) and str(arg.dtype) == dtype and arg.dtype.kind == "f":
        arg = float(arg)
    if type(arg) is int and abs(arg) <= _LITERALS:
        return Number(repr(float(arg)), True)
    if type(arg) is float and math.isfinite(arg):
        return Number(repr(arg), True)
    raise _Other


def _number(name: str, value: Value, dtype: str) -> Number:
    """A number that enters or is computed: one of Python's, which takes the dtype of the arrays, or one of the same
    dtype."""
    kinds = (float, complex) if dtype.startswith("complex") else (float,)
    if value.type not in kinds and not (issubclass(value.type, np.generic) and str(value.dtype) == dtype):
        raise _Other
    return Number(name, False)
