"""The operators of handles without values: each compares itself immediately with the operation that is expected next.

What is not the expected one, or not of the common kinds, goes the way of an ordinary tracer, and reaches the shadow run
from there: nothing is decided here that is not decided there, too.
"""

import warnings
from collections.abc import Callable
from functools import cache
from sys import _getframe, intern
from typing import Any, Final

import numpy as np
from attrs import field, frozen

from pullback.primitives.selecting.indexing import GETITEM
from pullback.primitives.shaping.reshaping import lay_out
from pullback.recording.handles import Handle, root_of
from pullback.recording.index_keys import is_basic
from pullback.recording.recorder import call
from pullback.recording.refusals import shuffled
from pullback.rules.catalogue import registry
from pullback.rules.declaration import Primitive
from pullback.staging.shadow.operations import ADD, MOST, READ, TAKE, WRITE, Constant, Operation
from pullback.staging.shadow.very_handles import as_plain, element, is_large, of_two
from pullback.tracing.results_into_operands import BY_UFUNC, SYMBOLS, WIDE
from pullback.tracing.tracer import Tracer, View, caller
from pullback.tracing.ufuncs import SCALARS, meant
from pullback.words.sameness import same_content
from pullback.words.undocumented import by_assignment, error_state

EAGER: Final = ((None, None, None, None, None, None, None),)
"""What the operators compare with where nothing is known."""
UNBOUND: Final = ((None, None, None, None),)
"""What operators on the pool's own handles compare with where nothing is known (:func:`bound_operation`)."""
FANCY: Final = "a read by arrays"


@frozen(eq=False)
class KnownStep:
    """A list of operations that a step may turn out to be, with what the operators compare with."""

    operations: list[Operation]
    held: frozenset[int] | None = None
    """Which constants records hold, by place among the constants; None where any may be."""
    quick: tuple[Any, ...] = field(init=False, repr=False)
    """What is at each place: ``(what, first, second, number, params, result, name)``, by :func:`quick_operation`."""
    ends: tuple[Any, ...] = field(init=False, repr=False)
    """The numbers of the values that it returns."""
    n_leaves: int = field(init=False, repr=False)
    """How many of these are leaves of the state."""
    stops: bool = field(init=False, repr=False)
    """Whether something is computed before the step is over: a value is read, or a call has an effect."""

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "n_leaves", self.operations[-1].params[0])
        object.__setattr__(self, "ends", self.operations[-1].operands)
        object.__setattr__(self, "stops", any(map(_stops, self.operations)))
        laid = {op.operands for op in self.operations if op.what is lay_out}  # see as_plain
        quick = (EAGER[0] if op.makes in laid else quick_operation(op) for op in self.operations)
        object.__setattr__(self, "quick", tuple(quick))


def _stops(op: Operation) -> bool:
    return op.what is READ or (type(op.what) is Primitive and op.what.ordered)


def quick_operation(op: Operation) -> tuple[Any, ...]:
    """What an operator compares with; nothing for an operation of another kind.

    ``first`` and ``second`` are the numbers of handles, the types of Python numbers, constants, or None; of a read by
    a basic key ``second`` is the key; of a write ``second`` is the value, ``number`` the place in the
    array with the number that is made.
    """
    if op.what is TAKE:
        (result,) = op.results
        return op.what, *op.operands, op.makes[0], None, result, None
    if op.what is ADD or op.what is WRITE:
        steps, key, fancy, _, _ = op.params
        (result,) = op.results
        if fancy or len(steps) > 1 or not is_basic(key) or any(prim is not GETITEM for prim, _ in steps):
            return EAGER[0]
        if steps and (key is not Ellipsis or not is_basic(steps[0][1]["key"])):
            return EAGER[0]
        place = steps[0][1]["key"] if steps else key
        return op.what, op.operands[0], _end(op.operands[1]), (place, op.makes[0]), op.params, result, None
    if type(op.what) is not Primitive or len(op.makes) != 1 or op.several or len(op.operands) > 2:
        return EAGER[0]
    ends = [_end(o) for o in op.operands]
    (result,) = op.results
    if op.what.ordered or result.kind == "plain" or (result.kind == "view" and op.what is not GETITEM):
        return EAGER[0]
    if op.what is GETITEM:
        key = op.params["key"]
        if not is_basic(key):
            return (None, ends[0], None, None, key, result, FANCY) if _is_fancy(key) else EAGER[0]
        ends = [ends[0], key]
    elif op.params:
        return EAGER[0]
    second = ends[1] if len(ends) > 1 else None
    return op.what, ends[0], second, op.makes[0], None, result, op.what.name


def bound_operation(quick: tuple[Any, ...], by_number: dict[int, Any], made: Any) -> tuple[Any, ...]:
    """What an operator compares with first: ``(name, first, second, made)``, the same as a quick operation with the
    handles of a pool themselves in the place of their numbers. A read of one element by a number has the primitive in
    the place of the name.

    Where all before agrees, a handle of the pool stands for what it stood for in the step that is known, and a view is
    stale where it was: to ask whether it is the very one is enough.
    """
    what, first, second, _, _, result, name = quick
    if what is GETITEM:
        if result.kind != "view" and type(second) is int and isinstance(made, Tracer):
            return GETITEM, by_number[first], second, made
        return UNBOUND[0]
    if name is None or name is FANCY:
        return UNBOUND[0]
    first, second = (by_number[end] if type(end) is int else end for end in (first, second))
    return intern(name), first, second, made


def _is_fancy(key: Any) -> bool:
    """Whether a key holds arrays of integers beside what is basic."""
    return all(
        is_basic(k) if type(k) is not np.ndarray else k.dtype.kind in "iu" and k.ndim > 0
        for k in (key if type(key) is tuple else (key,))
    )


def _end(operand: Any) -> Any:
    return operand.type if type(operand) is Constant and operand.type in (float, int) else operand


def _is_key(key: Any, wanted: Any) -> bool:
    """Whether a key is the one wanted, which is basic. Bounds that are no integers, though equal to these, are left to
    the ordinary way, which refuses them."""
    return key is wanted or (is_basic(key) and bool(key == wanted))


def is_stale(handle: Any) -> bool:
    """Whether a view has to be looked at first."""
    parent = handle._parent
    return isinstance(parent, View) or parent._id != handle._parent_id


def _holds(run: Any) -> bool:
    """Whether NumPy's error state and the warning filters are those of the start of the step."""
    return error_state() is run.errors and warnings.filters is run.filters


def _given(run: Any, at: int) -> Any:
    """The handle of what the operation at a place gives."""
    run.at = at + 1
    return run.made[at]


def _admits(run: Any, wanted: Any, other: Any) -> bool:
    """Whether the other operand is the one wanted; a constant is taken."""
    kind = type(other)
    if type(wanted) is int:
        return (
            isinstance(other, Tracer)
            and other._tape is run.tape
            and other._id == wanted
            and not (isinstance(other, View) and is_stale(other))
        )
    if kind is wanted and (kind is float or -MOST < other < MOST):
        run.constants.append(other)
        return True
    if type(wanted) is Constant and wanted.type is kind and wanted.admits(other):
        run.constants.append(run.taken(other) if kind is np.ndarray else other)
        return True
    return False


def binary(name: str, *, view: bool = False) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """An operator and its reflection, of views or of others."""
    key = f"operator_{name}"
    return of_two(key, 1, _of_two(key, 1, 2, view=view)), of_two(key, 2, _of_two(key, 2, 1, view=view))


def _of_two(key: str, own: int, others: int, *, view: bool) -> Callable[..., Any]:
    """An operator of two operands. ``own`` and ``others`` are the places of these in a quick operation; a reflection
    has its own in the second."""
    symbol = SYMBOLS.get(key)

    def operator(self: Any, other: Any) -> Any:
        tape = self._tape
        run = tape.shadow
        kind = type(other)
        if kind is not float and isinstance(other, Handle) and other._tape is not tape:
            other = run.foreign(other)
            kind = type(other)
        at = run.at
        quick = run.quick[at]
        if (
            quick[own] == self._id
            and quick[6] == key
            and error_state() is run.errors
            and warnings.filters is run.filters
            and not (view and is_stale(self))
        ):
            wanted = quick[others]
            if kind is wanted and (kind is float or -MOST < other < MOST):  # a number of Python's
                run.constants.append(other)
                run.at = at + 1
                return run.made[at]
            if not view and kind is type(self) and other._tape is tape:
                if other._id == wanted:
                    run.at = at + 1
                    return run.made[at]
            elif _admits(run, wanted, other):
                run.at = at + 1
                return run.made[at]
        made = call(_primitive(key), (self, other) if own < others else (other, self), {})
        if symbol and is_large(made, self, other):
            if own < others:
                return as_plain(made, symbol, self, other, _getframe(2), WIDE)
            return as_plain(made, symbol, other, self, _getframe(2), WIDE)
        return made

    return operator


def unary(name: str, *, view: bool = False) -> Callable[..., Any]:
    """An operator of one operand, of views or of others."""
    key = f"operator_{name}"

    def operator(self: Any) -> Any:
        run = self._tape.shadow
        quick = run.quick[run.at]
        if _is_next(run, quick, self, key) and not (view and is_stale(self)):
            return _given(run, run.at)
        return call(_primitive(key), (self,), {})

    return operator


def _is_next(run: Any, quick: tuple[Any, ...], handle: Any, key: str) -> bool:
    """Whether the operation ``key`` with a handle first is the one expected next."""
    return quick[1] == handle._id and quick[6] == key and _holds(run)


@cache
def _primitive(key: str) -> Any:
    return registry.named(key)


def matmul(self: Any, other: Any) -> Any:
    """``self @ other``."""
    run = self._tape.shadow
    if isinstance(other, Handle) and other._tape is not self._tape:
        other = run.foreign(other)
    quick = run.quick[run.at]
    if type(quick[0]) is Primitive and quick[0].forward is np.matmul and _holds(run) and _both(run, quick, self, other):
        return _given(run, run.at)
    return Tracer.__matmul__(self, other)


def getitem(self: Any, key: Any) -> Any:
    """``self[key]``."""
    run = self._tape.shadow
    at = run.at
    if (made := element(run, at, self, key)) is not None:
        return made
    quick = run.quick[at]
    if quick[1] == self._id and not (isinstance(self, View) and is_stale(self)):
        if quick[0] is GETITEM:
            if _is_key(key, quick[2]) and _holds(run):
                run.at = at + 1
                made = run.made[at]
                if isinstance(made, View):
                    made._id, made._parent, made._parent_id = quick[3], self, self._id
                    made._params, made._written_in = {"key": key}, None
                return made
        elif quick[6] is FANCY and same_content(quick[4], key) and _holds(run):
            return _given(run, at)
    return Tracer.__getitem__(self, key)


def setitem(self: Any, key: Any, new: Any) -> None:
    """``self[key] = new``."""
    if isinstance(new, View) and new._tape is self._tape and new._parent is self:
        # Python 3.12 and newer make a slice for the read and another for the write.
        if _is_key(key, new._params.get("key")) and new._written_in == (root_of(self)._id, 0):
            return  # what ``self[key] += w`` ends in; ``self`` is derived again only where it is read
        if not by_assignment(_getframe(1)):
            raise shuffled()
    run = self._tape.shadow
    quick = run.quick[run.at]
    if (
        quick[0] is WRITE
        and quick[1] == self._id
        and not quick[4][0]
        and not isinstance(self, View)
        and _is_key(key, quick[3][0])
        and _holds(run)
        and _admits(run, quick[2], new)
    ):
        run.repoint(self, quick[3][1], quick[5])
        return
    Tracer.__setitem__(self, key, new)


def increment(name: str, *, subtracts: bool) -> Callable[..., Any]:
    """``+=`` or ``-=``."""
    ordinary, scalar = getattr(Tracer, name), "operator_subtract" if subtracts else "operator_add"

    def operator(self: Any, other: Any) -> Any:
        run = self._tape.shadow
        if isinstance(other, Handle) and other._tape is not self._tape:
            return ordinary(self, other)
        quick = run.quick[run.at]
        if quick[0] is ADD and quick[4][4] is subtracts and _holds(run):
            through, is_view = quick[4][0], isinstance(self, View)
            root = self._parent if is_view else self
            if (
                is_view is bool(through)
                and root._id == quick[1]
                and not (is_view and (is_stale(self) or self._primitive is not GETITEM))
                and _is_key(self._params["key"] if is_view else Ellipsis, quick[3][0])
                and _admits(run, quick[2], other)
            ):
                run.repoint(root, quick[3][1], quick[5])
                if is_view:
                    self._written_in = (root._id, 0)
                return self
        elif (
            _is_next(run, quick, self, scalar)
            and not (isinstance(self, View) and is_stale(self))
            and _admits(run, quick[2], other)
        ):
            return _given(run, run.at)  # a scalar, which is rebound
        return ordinary(self, other)

    return operator


def in_place(name: str) -> Callable[..., Any]:
    """``*=`` or ``/=``, where the handle comes to stand for the result: two operations, of which the list has the one
    after the other."""
    ordinary, keys = getattr(Tracer, f"__i{name}__"), _IN_PLACE[name]

    def operator(self: Any, other: Any) -> Any:
        run = self._tape.shadow
        at = run.at
        quick = run.quick[at]
        if quick[6] in keys and quick[1] == self._id and not isinstance(self, View) and _holds(run):
            then = run.quick[at + 1]
            if then[0] is TAKE and then[1:3] == (self._id, quick[3]) and _admits(run, quick[2], other):
                run.at = at + 1
                run.repoint(self, then[3], then[5])
                return self
        return ordinary(self, other)

    return operator


_IN_PLACE: Final = {
    "mul": ("operator_multiply", "in_place_multiply"),
    "truediv": ("operator_divide",),
}


def array_ufunc(self: Any, func: Any, how: str, *inputs: Any, **kwargs: Any) -> Any:
    """A ufunc that meets a handle; or the operator of that name, which was meant."""
    if how == "__call__" and not kwargs and len(inputs) == 2 and type(inputs[0]) in SCALARS:
        func = meant(func, *inputs, _getframe(1))
        if type(func) is str:
            return caller(func)(*inputs)
    run = self._tape.shadow
    at = run.at
    quick = run.quick[at]
    prim = quick[0]
    if how == "__call__" and not kwargs and type(prim) is Primitive and prim.forward is func and _holds(run):
        if len(inputs) == 1:
            if quick[1] == self._id and quick[2] is None and not (isinstance(self, View) and is_stale(self)):
                return _given(run, at)
        elif len(inputs) == 2 and _both(run, quick, *inputs):
            return _given(run, at)
    made = Tracer.__array_ufunc__(self, func, how, *inputs, **kwargs)
    symbol = SYMBOLS.get(func)
    if symbol and not kwargs and len(inputs) == 2 and is_large(made, *inputs):
        return as_plain(made, symbol, *inputs, _getframe(1), BY_UFUNC)
    return made


def _both(run: Any, quick: tuple[Any, ...], one: Any, other: Any) -> bool:
    n = len(run.constants)
    if _admits(run, quick[1], one) and _admits(run, quick[2], other):
        return True
    del run.constants[n:]
    return False
