"""The operators of handles without values: each compares itself at once with the operation that is expected next.

What is not the expected one, or not of the common kinds, goes the way of an ordinary tracer, and reaches the shadow run
from there: nothing is decided here that is not decided there, too.
"""

from collections.abc import Callable
from functools import cache
from sys import _getframe
from typing import Any, Final

import numpy as np
from attrs import field, frozen

from pullback.primitives.selecting.indexing import GETITEM
from pullback.recording.crossing import present
from pullback.recording.handles import Handle
from pullback.recording.keys import is_basic
from pullback.recording.recorder import call
from pullback.recording.refusals import shuffled
from pullback.rules.catalogue import registry
from pullback.rules.declaration import Primitive
from pullback.staging.operations import ADD, WRITE, Constant, Operation
from pullback.tracing.tracer import Tracer, View
from pullback.words.sniffs import by_assignment

EAGER: Final = ((None, None, None, None, None, None, None, None),)
"""What the operators compare with where nothing is known."""


@frozen
class Known:
    """A list of operations that a step may turn out to be, with what the operators compare with."""

    operations: list[Operation]
    classes: dict[str, Any] = field(repr=False)
    """Kind to the class of handles without values."""
    quick: tuple[Any, ...] = field(init=False, repr=False)
    """By place: ``(what, first, second, number, spec, result, class, name)``; see :func:`quick_entry`."""
    ends: tuple[Any, ...] = field(init=False, repr=False)
    """The numbers of the values that it returns."""

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "ends", self.operations[-1].operands)
        object.__setattr__(self, "quick", tuple(quick_entry(op, self.classes) for op in self.operations))


def quick_entry(op: Operation, classes: dict[str, Any]) -> tuple[Any, ...]:
    """What an operator compares with; nothing for an operation of another kind.

    ``first`` and ``second`` are the numbers of handles, the types of Python numbers, constants, or None; of a read by
    a basic key ``second`` is the key with the types of its parts; of a write ``second`` is the value, ``number`` the
    place in the array with the number that is made.
    """
    if op.what is ADD or op.what is WRITE:
        steps, key, fancy, _, _ = op.params
        (result,) = op.results
        if fancy or len(steps) > 1 or not is_basic(key) or any(prim is not GETITEM for prim, _ in steps):
            return EAGER[0]
        if steps and (key is not Ellipsis or not is_basic(steps[0][1]["key"])):
            return EAGER[0]
        place = _typed(steps[0][1]["key"] if steps else key)
        made = classes[result.kind]
        return op.what, op.operands[0], _end(op.operands[1]), (place, op.makes[0]), op.params, result, made, None
    if type(op.what) is not Primitive or len(op.makes) != 1 or op.several or len(op.operands) > 2:
        return EAGER[0]
    ends = [_end(o) for o in op.operands]
    (result,) = op.results
    if result.kind == "plain":
        return EAGER[0]
    if op.what is GETITEM:
        key = op.params["key"]
        if not is_basic(key):
            return EAGER[0]
        ends = [ends[0], _typed(key)]
    elif op.params:
        return EAGER[0]
    second, made = ends[1] if len(ends) > 1 else None, classes[result.kind]
    return op.what, ends[0], second, op.makes[0], result.spec, result, made, op.what.name


def _end(operand: Any) -> Any:
    return operand.type if type(operand) is Constant and operand.type in (float, int) else operand


def _typed(key: Any) -> tuple[Any, Any]:
    return key, tuple(map(type, key)) if type(key) is tuple else type(key)


def _is_key(run: Any, key: Any, wanted: Any) -> bool:
    """Whether a key is the one wanted, which is basic. To compare a handle within a slice reads its value, which ends
    the following: that key is left to the ordinary way, which refuses it."""
    expected, types = wanted
    alike = (tuple(map(type, key)) if type(key) is tuple else type(key)) == types and bool(key == expected)
    return alike and run.following is not None


def _is_stale(handle: Any) -> bool:
    """Whether a view has to be looked at first."""
    parent = handle._parent
    return isinstance(parent, View) or parent._id != handle._parent_id


def _made(run: Any, entry: tuple[Any, ...]) -> Any:
    run.at += 1
    handle = entry[6]()
    handle._tape, handle._id, handle._spec, handle._flag = run.tape, entry[3], entry[4], entry[5]
    run.made.append(handle)
    return handle


def _admits(run: Any, wanted: Any, other: Any) -> bool:
    """Whether the other operand is the one wanted; a constant is taken."""
    kind = type(other)
    if type(wanted) is int:
        return (
            isinstance(other, Tracer)
            and other._tape is run.tape
            and not (isinstance(other, View) and _is_stale(other))
            and other._id == wanted
        )
    if kind is wanted:
        run.constants.append(other)
        return True
    if type(wanted) is Constant and wanted.type is kind and wanted.admits(other):
        run.constants.append(run.tape.keep(other) if kind is np.ndarray else other)
        return True
    return False


def binary(name: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """An operator and its reflection."""
    return _of_two(f"operator_{name}", 1, 2), _of_two(f"operator_{name}", 2, 1)


def _of_two(key: str, own: int, others: int) -> Callable[..., Any]:
    """An operator of two operands. ``own`` and ``others`` are the places of these in an entry; a reflection has its own
    in the second."""

    def operator(self: Any, other: Any) -> Any:
        run = self._tape.shadow
        if isinstance(other, Handle) and other._tape is not self._tape:
            other = present(other, self._tape)
        entry = run.quick[run.at]
        if _is_next(run, entry, own, self, key) and _admits(run, entry[others], other):
            return _made(run, entry)
        return call(_primitive(key), (self, other) if own < others else (other, self), {})

    return operator


def _is_next(run: Any, entry: tuple[Any, ...], own: int, handle: Any, key: str) -> bool:
    """Whether the operation ``key`` on a handle, its operand at the place ``own``, is the one expected next."""
    return (
        entry[own] == handle._id
        and entry[7] == key
        and run.conditions.hold()
        and not (isinstance(handle, View) and _is_stale(handle))
    )


def unary(name: str) -> Callable[..., Any]:
    """An operator of one operand."""
    key = f"operator_{name}"

    def operator(self: Any) -> Any:
        run = self._tape.shadow
        entry = run.quick[run.at]
        if _is_next(run, entry, 1, self, key):
            return _made(run, entry)
        return call(_primitive(key), (self,), {})

    return operator


@cache
def _primitive(key: str) -> Any:
    return registry.named(key)


def getitem(self: Any, key: Any) -> Any:
    """``self[key]``."""
    run = self._tape.shadow
    entry = run.quick[run.at]
    if (
        entry[0] is GETITEM
        and entry[1] == self._id
        and _is_key(run, key, entry[2])
        and run.conditions.hold()
        and not (isinstance(self, View) and _is_stale(self))
    ):
        made = _made(run, entry)
        if isinstance(made, View):
            made._parent, made._parent_id, made._primitive = self, self._id, GETITEM
            made._params, made._written_in = {"key": key}, None
        return made
    return Tracer.__getitem__(self, key)


def setitem(self: Any, key: Any, new: Any) -> None:
    """``self[key] = new``."""
    if isinstance(new, View) and new._tape is self._tape and new._parent is self:
        if new._params.get("key") is key and new._written_in == (self._id, 0):
            return  # what ``self[key] += w`` ends in
        if not by_assignment(_getframe(1)):
            raise shuffled()
    run = self._tape.shadow
    entry = run.quick[run.at]
    if (
        entry[0] is WRITE
        and entry[1] == self._id
        and not entry[4][0]
        and not isinstance(self, View)
        and _is_key(run, key, entry[3][0])
        and run.conditions.hold()
        and _admits(run, entry[2], new)
    ):
        _written(run, self, entry)
        return
    Tracer.__setitem__(self, key, new)


def increment(name: str, *, subtracts: bool) -> Callable[..., Any]:
    """``+=`` or ``-=``."""
    ordinary, scalar = getattr(Tracer, name), "operator_subtract" if subtracts else "operator_add"

    def operator(self: Any, other: Any) -> Any:
        run = self._tape.shadow
        entry = run.quick[run.at]
        if entry[0] is ADD and entry[4][4] is subtracts and run.conditions.hold():
            through, is_view = entry[4][0], isinstance(self, View)
            root = self._parent if is_view else self
            if (
                is_view is bool(through)
                and root._id == entry[1]
                and not (is_view and (_is_stale(self) or self._primitive is not GETITEM))
                and _is_key(run, self._params["key"] if is_view else Ellipsis, entry[3][0])
                and _admits(run, entry[2], other)
            ):
                _written(run, root, entry)
                if is_view:
                    self._written_in = (root._id, 0)
                return self
        elif _is_next(run, entry, 1, self, scalar) and _admits(run, entry[2], other):
            return _made(run, entry)  # a scalar, which is rebound
        return ordinary(self, other)

    return operator


def _written(run: Any, root: Any, entry: tuple[Any, ...]) -> None:
    run.at += 1
    root._id, root._flag = entry[3][1], entry[5]
    root.__class__ = entry[6]


def array_ufunc(self: Any, func: Any, how: str, *inputs: Any, **kwargs: Any) -> Any:
    """A ufunc that meets a handle."""
    run = self._tape.shadow
    entry = run.quick[run.at]
    prim = entry[0]
    if (
        how == "__call__" and not kwargs and type(prim) is Primitive and prim.forward is func and run.conditions.hold()
    ):  # fmt: skip
        if len(inputs) == 1:
            if entry[1] == self._id and entry[2] is None and not (isinstance(self, View) and _is_stale(self)):
                return _made(run, entry)
        elif len(inputs) == 2 and _both(run, entry, inputs):
            return _made(run, entry)
    return Tracer.__array_ufunc__(self, func, how, *inputs, **kwargs)


def _both(run: Any, entry: tuple[Any, ...], inputs: tuple[Any, ...]) -> bool:
    n = len(run.constants)
    if _admits(run, entry[1], inputs[0]) and _admits(run, entry[2], inputs[1]):
        return True
    del run.constants[n:]
    return False
