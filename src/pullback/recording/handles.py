"""Handles: what one holds (its value, its id on the tape, its view's parent), and the questions every part asks of it.

The class that users meet is :class:`pullback.tracing.tracer.Tracer`.
"""

from collections.abc import Callable
from functools import cached_property
from threading import get_ident
from typing import Any, Final

import numpy as np
from attrs import frozen

from pullback.recording.copies import faithful_copy, require_not_lent
from pullback.recording.tape import CAPTURED, CLOSED, DEFERRED, REPLAYABLE, Tape
from pullback.rules.declaration import Primitive
from pullback.words.call_sites import site_here, site_text
from pullback.words.errors import TracerError
from pullback.words.foreign_operands import ORDINARY
from pullback.words.specs import ArraySpec, shared_spec

FREE: Final = 0
"""Nobody else reads the value's buffer: a write may go into it."""
SHARED: Final = 1
"""Somebody outside the tape may read the buffer (an argument, a snapshot): a write copies first."""
SAVED: Final = 2
"""A record holds the buffer: a write copies first."""
WRITTEN: Final = 3
"""Free, and has been written: saving a view of it copies the view, so that later writes stay in place."""
WRITTEN_SHARED: Final = 4
"""A value that is written, and read by somebody outside the tape: a write copies first, saving a view copies the
view."""


FROZEN: Final = 5
"""A stand-in of a captured value without derivative: a write is refused."""
BORROWED: Final = 6
"""A value that may lie in memory of the user's (``np.asarray(a, like=x)``), who may change it: a write copies first,
and so does whoever keeps the value."""


class Handle:
    """A mutable name for a single-assignment value: (value, id, tape). ``_id`` is None while it depends on no input."""

    __slots__ = ("__weakref__", "_flag", "_id", "_spec", "_tape", "_value")

    _value: Any
    _id: Any
    _tape: Tape
    _flag: int
    _spec: ArraySpec | None
    """The spec of the value once somebody has asked; handles of one spec share one object, so that the hot path
    compares two pointers."""


@frozen(slots=False)
class Kinds:
    """The classes of handles, handed to each tape so that the recorder below them can make them."""

    tracer: type[Any]
    view: type[Any]
    buffer: type[Any]
    weak: type[Any]
    joined: Callable[[Any], Any]
    """Nested lists with tracers as one tracer; anything else as it is."""

    @cached_property
    def ordinary(self) -> frozenset[type[Any]]:
        """The types of operands of which nothing need be asked."""
        return ORDINARY | {self.tracer, self.view, self.buffer, self.weak}


def kind_of(tape: Tape, value: Any) -> type[Any]:
    """The class for a new handle over ``value``, a plain value or a handle of an outer trace: weak over a Python
    number."""
    kinds: Kinds = tape.kinds
    if type(value) is np.ndarray or type(value) is np.float64:
        return kinds.tracer
    weak = type(value) is kinds.weak or (isinstance(value, float | complex) and not isinstance(value, np.generic))
    return kinds.weak if weak else kinds.tracer


def make(kind: type[Any], value: Any, ident: int | None, tape: Tape, flag: int = FREE) -> Any:
    """A new handle."""
    handle = kind()
    handle._spec = None
    handle._value = value
    handle._id = ident
    handle._tape = tape
    handle._flag = flag
    return handle


def over(array: Any, tape: Tape, flag: int = FREE) -> Any:
    """A handle over an array that depends on no input of the trace: values of that can be written into it."""
    shadow: Any = tape.shadow if tape.mode == DEFERRED else None
    if shadow is not None and shadow.nests:
        return shadow.lifted(array)
    return make(tape.kinds.buffer, array, None, tape, flag)


def on_tape(tape: Tape, value: Any, ident: Any, flag: int = FREE) -> Any:
    """A handle for what is value ``ident`` of a trace; who governs the records hears of it."""
    handle = make(kind_of(tape, value), value, ident, tape, flag)
    if tape.mode == REPLAYABLE:
        tape.governor.watch(handle)
    return handle


def activate(handle: Any, ident: Any) -> None:
    """Let the handle stand for value ``ident`` from now on, which depends on the inputs: a buffer becomes a tracer."""
    if handle._id is None and handle._tape.lent:
        require_not_lent(handle._value, handle._tape)
    handle._id = ident
    kinds = handle._tape.kinds
    if type(handle) is kinds.buffer:
        handle.__class__ = kinds.tracer
    if handle._tape.mode == REPLAYABLE:
        handle._tape.governor.activated(handle)


def tape_of(operands: Any, doing: str, *, follows: bool = False) -> Tape:
    """The innermost live tape among the operands; raises :class:`TracerError` for an ended, foreign or other
    thread's one. Unless whoever asks ``follows`` shadow runs, such a run ends here."""
    found: Tape | None = None
    for operand in operands:
        if isinstance(operand, Handle):
            tape: Any = operand._tape
            if tape.mode == CLOSED or tape.thread != get_ident():
                raise TracerError(_unusable(tape, doing))
            while tape.mode == CAPTURED:
                tape = tape.inner
            if found is None or tape.level > found.level:
                found = tape
            elif tape.level == found.level and tape is not found:
                raise TracerError(
                    f"{doing} mixes tracers of two unrelated traces (at {site_text(site_here())}); pass the value as "
                    "an argument, or take pullback.value(x)"
                )
    if found is None:
        raise TracerError(f"{doing} met no tracer")
    if found.mode == DEFERRED and not follows:
        surrendered: Tape = found.shadow.surrender()
        return surrendered
    return found


def _unusable(tape: Tape, doing: str) -> str:
    where = site_text(site_here())
    if tape.mode == CLOSED:
        told = (
            f"{doing} uses a tracer whose trace has ended (at {where}): it leaked out of the differentiated function, "
            "through a global, an attribute or a generator. Return the value instead, or keep pullback.value(x)"
        )
        kept = "; a program that keeps what it has made (a cache) has to run once before"
        return told if tape.adopted is None else told + kept
    return (
        f"{doing} uses a tracer in another thread than the one that traces (at {where}); start a gradient of its "
        "own in each thread"
    )


def is_foreign(x: Any, tape: Tape | None) -> bool:
    """Whether ``x`` is a handle of another trace than ``tape``: ``crossing`` says what it is to that."""
    return isinstance(x, Handle) and x._tape is not tape


def active_id(x: Any, tape: Tape) -> Any:
    """The id of a handle of this tape, None where it depends on no input; None for anything else."""
    return x._id if isinstance(x, Handle) and x._tape is tape else None


def plain_value(x: Any) -> Any:
    """The concrete value behind a handle of any level, refreshed if it is a stale view; anything else as it is."""
    value = x
    while isinstance(value, Handle):
        value = resolve(value)._value
    return value


def layout_of(x: Any) -> Any:
    """What tells shape, dtype and strides of a value of any level: the concrete value, or a handle that has none."""
    while isinstance(x, Handle) and x._tape.mode != DEFERRED:
        x = resolve(x)._value
    return x


def is_apart(x: Any) -> bool:
    """Whether a value is no array, or one that has its memory for itself and may be written to."""
    value = layout_of(x)
    return type(value) is not np.ndarray or (value.base is None and value.flags.writeable)


def type_of(x: Any) -> Any:
    """The type of the concrete value of any level."""
    found = layout_of(x)
    return found._tape.shadow.result(found).type if isinstance(found, Handle) else type(found)


def is_array(handle: Any) -> bool:
    """Whether a handle stands for an array, no scalar."""
    if handle._tape.mode == DEFERRED:
        return bool(handle._tape.shadow.result(handle).array)
    return is_array(handle._value) if isinstance(handle._value, Handle) else isinstance(handle._value, np.ndarray)


def read_only(value: Any) -> Any:
    """An array that a body may not write to, since it captures it; anything else as it is."""
    if isinstance(value, np.ndarray):
        value = value.view()
        value.flags.writeable = False
    return value


def resolve(handle: Any) -> Any:
    """The handle itself, after a stale view has derived itself again from its parent's present value."""
    if type(handle) is handle._tape.kinds.view:
        if handle._tape.mode == DEFERRED:
            return handle._tape.shadow.resolve(handle)
        parent = handle._parent
        if type(parent) is not type(handle):
            if parent._id != handle._parent_id or parent._value is not handle._parent_value:
                handle._refresh()
            return handle
        chain = []
        node = handle
        while type(node) is node._tape.kinds.view:
            chain.append(node)
            node = node._parent
        for view in reversed(chain):
            if view._parent._id != view._parent_id or view._parent._value is not view._parent_value:
                view._refresh()
    return handle


def root_of(handle: Any) -> Any:
    """The handle that owns the memory: the last parent of a view."""
    view = handle._tape.kinds.view
    while type(handle) is view:
        handle = handle._parent
    return handle


def steps_to(handle: Any) -> tuple[tuple[Primitive, dict[str, Any]], ...]:
    """The view functions that lead from the root to a view, outermost first."""
    view = type(handle)
    if view is handle._tape.kinds.view and type(handle._parent) is not view:
        return ((handle._primitive, handle._params),)
    steps = []
    while type(handle) is handle._tape.kinds.view:
        steps.append((handle._primitive, handle._params))
        handle = handle._parent
    return tuple(reversed(steps))


def spec_of_handle(handle: Any) -> ArraySpec | None:
    """The shared spec of a handle's value, remembered in the handle."""
    spec: ArraySpec | None = handle._spec
    if spec is None:
        spec = handle._spec = shared_spec(handle._value)
    return spec


def is_lost(handle: Any) -> bool:
    """Whether a handle has no value to give: it leaked out of a staged step. It may be held, and not used."""
    tape = handle._tape
    return tape.mode == CLOSED and tape.shadow is not None


def freeze(handle: Any) -> Any:
    """A handle of the same trace for the value as it is now: later writes to the original do not reach it."""
    if handle._tape.mode == DEFERRED:
        if handle._tape.shadow.nests:
            return handle._tape.shadow.frozen(handle)
        handle._tape.shadow.surrender()
    resolve(handle)
    root = root_of(handle)
    if root._flag in (FREE, WRITTEN):
        root._flag = SHARED if root._flag == FREE else WRITTEN_SHARED
    kinds = handle._tape.kinds
    kind = kinds.tracer if handle._id is not None else kinds.buffer
    if type(handle) is kinds.weak:
        kind = kinds.weak
    return make(kind, lasting(handle, root), handle._id, handle._tape, SHARED)


def lasting(handle: Any, root: Any) -> Any:
    """The value of a handle, whose memory is that of ``root``, for somebody who keeps it."""
    return twin_of(handle._value) if root._flag == BORROWED else handle._value


def value(x: Any) -> Any:
    """The concrete value behind a tracer as it is now.

    A later write does not show in it: to a tracer it goes into a copy. So a loop's body, and a function without a
    gradient, find on plain arrays what they find on tracers.

    Parameters
    ----------
    x
        A tracer, an array, or anything else.

    Returns
    -------
    Of a tracer a read-only view; of a plain array that can be written a read-only copy; anything else as it is.

    Example
    -------
    >>> import pullback as pb
    >>> def f(x):
    ...     return x**2 if pb.value(x) > 0 else -x
    >>> float(pb.grad(f)(3.0)), float(pb.grad(f)(-3.0))
    (6.0, -1.0)
    """
    if isinstance(x, Handle):
        return read_only(value_now(x))
    return read_only(twin_of(x)) if type(x) is np.ndarray and x.flags.writeable else x


def value_now(x: Any) -> Any:
    """The concrete value behind a handle; whoever writes to it, or to what it looks at, copies first from now on."""
    while isinstance(x, Handle):
        shadow: Any = x._tape.shadow if x._tape.mode == DEFERRED else None
        x = freeze(x)._value if shadow is None else shadow.value_kept(x)
    return x


def twin_of(value: Any) -> Any:
    """A value that may be written to while the original stays: of an array a faithful copy, of a handle a frozen
    one."""
    if isinstance(value, np.ndarray):
        dense = value.flags.c_contiguous or value.flags.f_contiguous
        return value.copy(order="K") if dense else faithful_copy(value)
    return freeze(value) if isinstance(value, Handle) else value
