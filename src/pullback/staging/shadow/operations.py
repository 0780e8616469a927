"""The operations of a step as a list that can be compared: which primitive, on which values, with which parameters, and
what kind of value came out."""

from collections.abc import Iterable
from functools import cached_property
from types import EllipsisType
from typing import Any

import numpy as np
from attrs import field, frozen

from pullback.recording.handles import Handle
from pullback.recording.tape import Tape
from pullback.words.sameness import same_content
from pullback.words.specs import ArraySpec, carries_derivative, shared_spec

ATOMS = (int, float, complex, bool, str, bytes, type(None))
MOST = 2**1023
"""The size below which whole numbers of Python's can be computed with: others fail at their operation, where the body
may catch the error."""


@frozen(slots=False)
class Result:
    """What kind of value an operation gives: all that a program can ask a handle without asking for its value."""

    spec: ArraySpec | None
    strides: tuple[int, ...] | None
    """The strides of an array; None for a scalar."""
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
    """The result that stands for a plain value."""
    strides = value.strides if isinstance(value, np.ndarray) else None
    return Result(shared_spec(value), strides, kind, type(value))


def entering(leaf: Any) -> Result:
    """The result that stands for a leaf that enters a step."""
    return result_of(leaf, "weak" if type(leaf) in (float, complex) else "tracer")


def standing(leaf: Any) -> Result | None:
    """The result that stands for a leaf without derivative, as numbers that count are; None for one that is no number
    and no array of numbers."""
    whole = isinstance(leaf, int | np.integer | np.bool_ | np.ndarray) and not carries_derivative(leaf)
    return result_of(leaf, "plain") if whole and getattr(leaf, "dtype", np.dtype(int)).kind in "iub" else None


_NUMBERS = frozenset((int, bool, float, complex, np.float32, np.float64, np.complex64, np.complex128))


def enters_as(result: Result | None, leaf: Any) -> bool:
    """Whether ``entering`` gives an equal result; None stands for that of a leaf without derivative."""
    if result is None:
        return not carries_derivative(leaf)
    if type(leaf) is not result.type:
        return False
    if type(leaf) is np.ndarray:
        spec = result.spec
        return bool(
            spec is not None
            and leaf.shape == spec.shape
            and leaf.dtype == spec.dtype
            and leaf.strides == result.strides
        )
    return type(leaf) in _NUMBERS or result == result_of(leaf, result.kind)


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
            return type(value) is not int or -MOST < value < MOST
        return bool(
            value.shape == self.spec.shape
            and value.dtype == self.spec.dtype
            and (self.strides is None or value.strides == self.strides)
        )


@frozen(slots=False)
class Operation:
    """One of a list. ``operands`` are the numbers of earlier values, or constants."""

    what: Any
    """A primitive, or one of the words below."""
    operands: tuple[Any, ...]
    params: Any
    makes: tuple[int, ...]
    """The numbers of the values that it gives."""
    results: tuple[Result, ...]
    several: bool = False
    """Whether it gives a tuple of values."""
    site: int = field(default=0, eq=False)
    """The call site at which it came when it was first recorded; 0 where that is not known."""


def same(a: Operation, b: Operation) -> bool:
    """Whether two operations say the same."""
    if a is b:
        return True
    alike = a.what is b.what and a.operands == b.operands and a.makes == b.makes and a.results == b.results
    return alike and same_content(a.params, b.params)


def values_nbytes(operations: Iterable[Operation]) -> int:
    """Bytes of all that operations give, and of the plain arrays that they read as they are."""
    specs = [result.spec for op in operations for result in op.results]
    specs += [x.spec for op in operations for x in op.operands if type(x) is Constant]
    return sum(spec.nbytes for spec in specs if spec is not None)


@frozen
class Number:
    """What stands in a likeness for a handle of the value of that number."""

    number: int


@frozen
class Fixed:
    """What stands in a likeness for a parameter."""

    value: Any


_FIXED = frozenset((*ATOMS, EllipsisType))


def likeness(given: Any, tape: Tape) -> Any:
    """What is compared of the arguments of a call: the numbers of handles of a trace without values, and parameters
    that cannot change; None where there is anything else among them."""
    kind = type(given)
    if isinstance(given, Handle):
        return Number(given._id) if _is_ready(given, tape) else None
    if kind is tuple or kind is list:
        parts = [likeness(part, tape) for part in given]
        return None if any(part is None for part in parts) else kind(parts)
    if kind is dict:
        parts = [likeness(part, tape) for part in given.values()]
        return None if any(part is None for part in parts) else dict(zip(given, parts, strict=True))
    return Fixed(given) if kind in _FIXED or isinstance(given, type | np.dtype) else None


def is_like(like: Any, given: Any, tape: Tape) -> bool:
    """Whether arguments are those of a likeness, in type and content."""
    kind = type(given)
    if isinstance(given, Handle):
        return type(like) is Number and given._id == like.number and _is_ready(given, tape)
    if kind is not type(like):
        return type(like) is Fixed and same_content(like.value, given)
    if len(like) != len(given):
        return False
    if kind is dict:
        return all(name in like and is_like(like[name], part, tape) for name, part in given.items())
    for wanted, part in zip(like, given, strict=True):  # noqa: SIM110 - every step comes here, and this is sooner
        if not is_like(wanted, part, tape):
            return False
    return True


def _is_ready(handle: Any, tape: Tape) -> bool:
    """Whether a handle is one of the trace, and no stale view."""
    if handle._tape is not tape:
        return False
    view = tape.kinds.view
    return type(handle) is not view or (type(handle._parent) is not view and handle._parent._id == handle._parent_id)


CREATE, WRITE, ADD, TAKE, CAPTURE, FROZEN, RESULT = "create", "write", "add", "take", "capture", "frozen", "result"
READ, MARK = "read", "mark"
"""The operations that are no primitive: a new array like another, an assignment, an increment, a handle that becomes
another, a value from around the step, one that depends on nothing, what the step returns, a value that is asked for,
and one that is marked (``pullback.name``)."""
REPOINTS = frozenset((WRITE, ADD, TAKE, MARK))
"""Those that make their first operand stand for another value, and give no handle."""


def agrees(op: Operation, what: Any, operands: tuple[Any, ...], params: Any) -> bool:
    """Whether an operation does this to these operands."""
    if op.what is not what or len(op.operands) != len(operands):
        return False
    for wanted, given in zip(op.operands, operands, strict=True):
        if type(wanted) is int:
            if not isinstance(given, Handle) or given._id != wanted:
                return False
        elif what is CAPTURE:
            if not wanted.admits(given._value):
                return False
        elif isinstance(given, Handle) or not wanted.admits(given):
            return False
    return same_content(op.params, params)


def operand_of(what: Any, operand: Any) -> Any:
    """An operand as an operation has it."""
    if what is CAPTURE:
        return Constant.of(operand._value)
    return operand._id if isinstance(operand, Handle) else Constant.of(operand)
