"""In-place operators, ``x += y`` and its kin: every view of x sees the new value."""

import operator
from typing import Any

import numpy as np

from pullback.primitives.shaping.nested_lists import as_operand
from pullback.recording.crossing import leave_followed, standing_for
from pullback.recording.handles import Handle, is_array, is_foreign, plain_value, tape_of
from pullback.recording.out_targets import write_out
from pullback.recording.tape import CAPTURED, DEFERRED
from pullback.recording.writes import increment, takes_over
from pullback.rules.catalogue import registry
from pullback.words.foreign_operands import plain_operand

OPERATORS = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "divide": operator.truediv,
    "power": operator.pow,
}  # fmt: skip
"""What computes the new value where ``x op= y`` binds x to it, or writes it into x afterwards."""
PLAIN = frozenset((float, int, np.float64))
LOOPS_APART = ("multiply", "power")
"""Operators whose result NumPy computes by another inner loop, with other last bits, where it goes into some arrays
in place (see ``primitives.elementwise.operators.IN_PLACE``)."""


def in_place(name: str, handle: Any, other: Any) -> Any:
    """``handle op= other``: NumPy scalars and Python floats are immutable and rebind; arrays are written through all
    their views."""
    if handle._tape.mode == CAPTURED:
        leave_followed(handle)
    deferred = handle._tape.mode == DEFERRED
    value: Any = None if deferred else handle._value
    if type(value) is np.float64 and not handle._tape.mode and type(other) in PLAIN and name in OPERATORS:
        return OPERATORS[name](handle, other)
    other = other.A if getattr(type(other), "behaves_as_matrix", False) else other  # its elements, for * as well
    if is_foreign(other, handle._tape):
        other = standing_for(other)
    if (
        not handle._tape.mode
        and type(value) is np.ndarray
        and name in ("add", "subtract")
        and _plainly_increments(handle, value, other)
    ):
        increment(handle, other, sign=1 if name == "add" else -1)
        return handle
    tape_of((handle, other), f"numpy.{name}", follows=True)
    compute = OPERATORS.get(name) or registry.named(
        f"operator_{name}" if f"operator_{name}" in registry.names else name
    )
    if not is_array(handle):
        return compute(handle, other)
    if type(other) not in handle._tape.kinds.ordinary:
        other = as_operand(other)
        other = other if isinstance(other, Handle) else plain_operand(other, elementwise=True)
    if name in ("add", "subtract") and _increments(handle, other):
        increment(handle, other, sign=1 if name == "add" else -1)
        return handle
    if name in LOOPS_APART and _by_a_loop_apart(handle):
        compute = registry.named(f"in_place_{name}")
    result = compute(handle, other)
    if handle._tape.shadow.take_over(handle, result) if deferred else takes_over(handle, result):
        return handle
    return write_out(name, handle, result)


def _by_a_loop_apart(handle: Any) -> bool:
    """Whether the array of a handle is one of those: of one element, with gaps, or backwards."""
    if handle._tape.mode == DEFERRED:
        return handle.size == 1 or not handle._tape.shadow.result(handle).dense
    plain: Any = plain_value(handle)
    return plain.size == 1 or not plain.flags.forc


def _plainly_increments(handle: Any, value: Any, other: Any) -> bool:
    """The common case of :func:`_increments`, where nothing is cast or broadcast: one shape, one dtype, one trace; a
    number into floats."""
    if isinstance(other, Handle):
        other = other._value if other._tape is handle._tape and type(other) is not other._tape.kinds.view else None
    if type(other) is np.ndarray:
        return bool(other.dtype is value.dtype and other.shape == value.shape)
    return type(other) in (float, int) and value.dtype.kind in "fc"


def _increments(handle: Any, other: Any) -> bool:
    """True where NumPy's casting and broadcasting allow ``other`` to be added in place."""
    dtype = getattr(other, "dtype", None)
    if dtype is handle.dtype and other.shape == handle.shape:
        return True
    if dtype is None:
        return not isinstance(other, complex | list) or handle.dtype.kind == "c"
    if not np.can_cast(np.result_type(handle.dtype, dtype), handle.dtype, "same_kind"):
        return False
    return bool(np.broadcast_shapes(handle.shape, other.shape) == handle.shape)
