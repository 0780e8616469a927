"""Operations on buffers that do not depend on the inputs: computed immediately on their values, without a record, under
every policy. The result is such a buffer again."""

import operator
from collections.abc import Callable, Mapping
from threading import get_ident
from types import NoneType
from typing import Any, Final

import numpy as np

from pullback.recording.handles import FREE, Handle, make, resolve
from pullback.recording.tape import FORWARD, RECORDING, REPLAYABLE
from pullback.rules.declaration import Primitive
from pullback.words.call_sites import MISSED
from pullback.words.specs import INEXACT

PLAIN: Final = frozenset((np.ndarray, np.float64, np.float32, float, int))
"""The types of operands without a trace that are served."""
GOES_ON: Final = frozenset((RECORDING, REPLAYABLE, FORWARD))
"""The modes in which a trace takes what is done to its handles."""

SETTINGS: Final = frozenset((float, int, bool, NoneType, str, type))
"""The types of what else a function of NumPy's may be given."""
WHOLE: Final = frozenset("biu")
"""The kinds of dtypes of which arrays are plain."""


def rested(
    function: Callable[..., Any], n_arrays: int, tape: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Any:
    """``function(*args, **kwargs)`` of NumPy where every handle in it is a buffer of ``tape``, or a view of one, and
    depends on nothing; else ``MISSED``. Arrays are the first ``n_arrays`` arguments: what comes later as one is written
    to."""
    if tape.mode not in GOES_ON or tape.trap is not None or tape.thread != get_ident():
        return MISSED
    kinds, values = tape.kinds, []
    for x in args:
        kind = type(x)
        if kind is kinds.buffer or kind is kinds.view:
            if x._tape is not tape or resolve(x)._id is not None or type(x._value) is not np.ndarray:
                return MISSED
            values.append(x._value)
        elif kind in PLAIN or kind in SETTINGS or (kind is tuple and set(map(type, x)) == {int}):
            values.append(x)
        else:
            return MISSED
    for x in values[n_arrays:]:
        if type(x) is np.ndarray:
            return MISSED
    for x in kwargs.values() if kwargs else ():
        if type(x) not in SETTINGS and (type(x) is not tuple or set(map(type, x)) != {int}):
            return MISSED
    out = function(*values, **kwargs)
    if type(out) is not np.ndarray:
        return out if isinstance(out, np.generic | bool) else MISSED
    if out.base is not None or any(out is value for value in values):
        return MISSED
    if out.dtype.kind in INEXACT:
        return make(kinds.buffer, out, None, tape, FREE)
    return out if out.dtype.kind in WHOLE else MISSED


def resting(prim: Primitive, operands: tuple[Any, ...], params: Mapping[str, Any]) -> Any:
    """What ``recorder.call`` gives for a primitive of ours on such buffers and plain values; ``MISSED`` for any other
    call."""
    if not prim.trusted or prim.view or prim.outputs or prim.residuals or prim.guarded or prim.opaque:
        return MISSED
    tape, values = None, []
    for x in operands:
        if isinstance(x, Handle):
            if x._id is not None or resolve(x)._id is not None or type(x._value) is not np.ndarray:
                return MISSED
            if tape is None:
                tape = x._tape
            elif x._tape is not tape:
                return MISSED
            values.append(x._value)
        elif type(x) in PLAIN:
            values.append(x)
        else:
            return MISSED
    if tape is None or tape.mode not in GOES_ON or tape.trap is not None or tape.thread != get_ident():
        return MISSED
    out = prim.forward(*values, **params)
    if type(out) is np.ndarray:
        if out.dtype.kind not in INEXACT or out.base is not None or out is values[0] or out is values[-1]:
            return MISSED
        return make(tape.kinds.buffer, out, None, tape, FREE)
    return out if isinstance(out, np.generic) and out.dtype.kind in INEXACT else MISSED


def _at_once(operate: Callable[[Any, Any], Any], ordinary: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """A binary operator of a buffer: immediately with a buffer of the same trace and with plain values."""

    def method(self: Any, other: Any) -> Any:
        tape, kind, value = self._tape, type(other), None
        if kind in PLAIN:
            value = other
        elif kind is type(self) and other._tape is tape and resolve(other)._id is None:
            value = other._value
        # A buffer that has been marked or written stands for a record, and keeps its class.
        known = value is not None and resolve(self)._id is None and type(self._value) is np.ndarray
        if known and tape.mode in GOES_ON and tape.trap is None and tape.thread == get_ident():
            out = operate(self._value, value)
            if type(out) is np.ndarray and out.dtype.kind in INEXACT:
                return make(type(self), out, None, tape, FREE)
        return ordinary(self, other)

    return method


def _turned(operate: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda x, y: operate(y, x)


def quick_operators(kind: Any) -> tuple[Any, ...]:
    """``+ - * /`` of buffers, from both sides, over those of the class of tracers."""
    pairs = (
        (operator.add, kind.__add__, kind.__radd__),
        (operator.sub, kind.__sub__, kind.__rsub__),
        (operator.mul, kind.__mul__, kind.__rmul__),
        (operator.truediv, kind.__truediv__, kind.__rtruediv__),
    )
    return tuple(
        method
        for operate, ordinary, turned in pairs
        for method in (_at_once(operate, ordinary), _at_once(_turned(operate), _after_handles(ordinary, turned)))
    )


def _after_handles(ordinary: Callable[[Any, Any], Any], turned: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """A reflected operator. Python asks that of a subclass first: between two handles it is the left one's, which
    knows both."""
    return lambda self, other: ordinary(other, self) if isinstance(other, Handle) else turned(self, other)
