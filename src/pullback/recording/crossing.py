"""What a value of another trace is to this one: asked here, and nowhere else.

A trace is *left alone* while code runs plainly in it: a loop of it advances (``PAUSED``), its solver runs, or it stands
around a step of such a loop (``CAPTURED`` by a trace that is left alone).

| the value is | to ``tape`` it is: ``present`` | ``tape`` computes with: ``entered`` |
|---|---|---|
| of no trace | itself | itself, as a plain array |
| of ``tape`` | itself | its value |
| of a trace that is left alone | the value that it stands for | that value |
| of a trace ``CAPTURED`` by a step under way | what stands for it on the tape of the step | its value |
| of another trace that goes on around ``tape`` | itself | the handle, frozen |
| of a trace that has ended, or of another thread | refused by ``handles.tape_of`` | |

Where a frozen handle of a trace around comes in, ``tape`` meets that trace: its cotangents are handles of it.
In the other direction ``raised`` makes a value one of a trace around, and ``by_value`` takes what code that ran plainly
has returned. A program without traces in traces asks none of this: whoever calls has seen a handle of another trace.
"""

from collections.abc import Iterable
from typing import Any, cast

import numpy as np

from pullback.recording.copies import own_leaf
from pullback.recording.handles import (
    FROZEN,
    SHARED,
    Handle,
    freeze,
    lasting,
    layout_of,
    make,
    over,
    read_only,
    resolve,
    root_of,
    twin_of,
)
from pullback.recording.results import in_form_of, split_residuals
from pullback.recording.tape import CAPTURED, DEFERRED, FORWARD, PAUSED, RECORDING, Tape
from pullback.rules.declaration import Primitive
from pullback.rules.forms import special_form
from pullback.words.call_sites import site_here
from pullback.words.foreign_operands import plain_array
from pullback.words.ordered_calls import UNDER_WAY
from pullback.words.specs import carries_derivative


def present(x: Any, tape: Tape | None) -> Any:
    """What a value is to ``tape`` now, None for no trace at all: a handle, or a plain value."""
    while isinstance(x, Handle) and x._tape is not tape:
        if left_alone(x):
            x = freeze(x)._value
        elif x._tape.mode == CAPTURED:
            x = _stand_in(x)
        else:
            break
    return x


def written_around(x: Any, tape: Tape | None) -> Any:
    """The handle by which adopted code knows the plain array ``x`` in the nearest trace under way but ``tape``, where
    that trace has written to it: ``x`` holds what was there before. None where there is no such trace."""
    for around in reversed(UNDER_WAY.get()):
        if around.adopted is not None and around is not tape:
            around.adopted.require_unwritten(x)
            found = around.adopted.get(id(x))
            if found is not None and resolve(found[1])._value is not x:
                return found[1]
    return None


def written_among(arrays: Iterable[tuple[str, Any]]) -> dict[int, Any]:
    """The handles that stand in traces under way for those of some named arrays that they have written to, by the id of
    the array."""
    known = {id(x): written_around(x, None) for _, x in arrays if type(x) is np.ndarray}
    return {place: handle for place, handle in known.items() if handle is not None}


def in_step(tape: Tape, func: Any, *operands: Any) -> tuple[Any] | None:
    """What a ufunc, or the operator of a name, gives in a step on handles without values, around which ``tape`` is:
    these meet what stands there for the operands. None where there is no such step, or no such handle."""
    inner: Any = tape.inner
    if inner.mode != DEFERRED:
        return None
    there = [inner.shadow.foreign(x) if isinstance(x, Handle) else x for x in operands]
    for first in there:
        if isinstance(first, Handle) and first._tape.mode == DEFERRED:
            return (first.__array_ufunc__(func, "__call__", *there),)  # type: ignore[attr-defined]  # a tracer has it
    return None


def entered(x: Any, tape: Tape) -> Any:
    """What ``tape`` computes with where ``x`` is given: no later write reaches it."""
    x = present(x, tape)
    if isinstance(x, Handle):
        if x._tape is tape:
            return resolve(x)._value
        tape.meet(x._tape)
        return freeze(x)
    if isinstance(x, np.ndarray) and type(x) is not np.ndarray and not hasattr(x, "__pullback_hollow__"):
        return plain_array(x)
    return x


def raised(x: Any, tape: Tape) -> Any:
    """A value, or each of a list, as a handle of ``tape``, a trace around, that depends on none of its inputs: values
    of that trace can be written into it. What is one already, and a number, as it is."""
    if isinstance(x, list):
        return [raised(part, tape) for part in x]
    if isinstance(x, np.ndarray):
        return over(x, tape)
    if isinstance(x, Handle) and x._tape.level < tape.level:
        return make(tape.kinds.buffer, x, None, tape, SHARED)
    return x


def leave_followed(handle: Any) -> None:
    """A handle of a ``CAPTURED`` trace is about to be written to, or derived again: where a marked step of it is
    followed, that goes on in the trace itself."""
    inner = handle._tape.inner
    if inner.mode == DEFERRED and inner.shadow.marks:
        inner.shadow.surrender()


def standing_for(x: Any) -> Any:
    """The value that a handle of a trace that is left alone stands for, to be read only; anything else as it is."""
    found = _left_value(x)
    return x if found is x else read_only(found)


def writable_leaf(leaf: Any) -> Any:
    """A leaf of a state as its body may write to it: a copy of one that is read-only, and of one where a write to an
    element would be one to others as well; any other as it is."""
    value = layout_of(leaf)
    apart = own_leaf(value)
    return leaf if apart is value else cast("Any", leaf).copy() if isinstance(leaf, Handle) else apart


def movable(leaf: Any, tape: Tape) -> Any:
    """A leaf that a body has returned in a forward trace, as the next step may write to it: a plain array becomes a
    buffer of the trace."""
    leaf = writable_leaf(leaf)
    if isinstance(leaf, Handle):
        return freeze(leaf) if leaf._tape is tape else leaf
    is_buffer = isinstance(leaf, np.ndarray) and carries_derivative(leaf)
    return make(tape.kinds.buffer, twin_of(leaf), None, tape) if is_buffer else leaf


def by_value(x: Any) -> Any:
    """What code that ran plainly has returned: a handle of a trace that is left alone as its value, in memory of its
    own; anything else as it is."""
    found = _left_value(x)
    return x if found is x else twin_of(found)


def _left_value(x: Any) -> Any:
    while isinstance(x, Handle) and left_alone(x):
        x = freeze(x)._value
    return x


def left_alone(handle: Any) -> bool:
    """Whether the trace of a handle is left alone, since a loop of it advances, or one in a step of such a loop: its
    body runs plainly."""
    inner: Any = handle._tape
    while inner.mode == CAPTURED:
        inner = inner.inner
    return bool(inner.mode == PAUSED)


def _stand_in(operand: Any) -> Any:
    """What stands for a handle of a captured tape on the tape of the step being recorded, which captures it now if
    it has not yet."""
    outer = operand._tape
    inner: Any = outer.inner
    if inner.mode == DEFERRED and inner.shadow.inlines:
        inner.shadow.meet(operand)
    # A stale view derives itself again on its own tape.
    if inner.mode == DEFERRED and inner.shadow.marks:
        outer.mode = inner.shadow.eager.mode
    else:
        outer.mode = RECORDING if outer.tangents is None else FORWARD
    try:
        resolve(operand)
    finally:
        outer.mode = CAPTURED
    if inner.mode == DEFERRED:
        return inner.shadow.capture(operand)
    return stand_in(operand, inner)


def stand_in(operand: Any, inner: Tape) -> Any:
    """What stands for a handle, whose value is known, on the tape ``inner`` of a step."""
    if operand._id is None:
        return make(inner.kinds.buffer, lasting(operand, root_of(operand)), None, inner, FROZEN)
    captures: Any = inner.captures
    found = captures.get(operand._id)
    if found is None:
        found = captures[operand._id] = (len(inner.records), operand._value)
        inner.records.append((CAPTURE.opcode, operand._id, site_here()))
        freeze(operand)  # whoever writes to it from now on copies
    kind = inner.kinds.weak if type(operand) is inner.kinds.weak else inner.kinds.tracer
    return make(kind, found[1], found[0], inner, SHARED)


def _pull_capture(record: tuple[Any, ...], ct: Any, cts: list[Any], sweep: Any) -> None:
    """A captured value gathers its cotangent over all steps of the loop."""
    sweep.gather(record[1], ct)


CAPTURE = special_form("captured value", _pull_capture, n_ids=0)


def apart(prim: Primitive, given: Any) -> Any:
    """What a forward with residuals has given, of handles of an outer trace: a write to one part, or to an operand,
    would reach the others that are this handle, or a view of it."""
    out, residuals = split_residuals(prim, given)
    held = {name: freeze(r) if isinstance(r, Handle) else r for name, r in residuals.items()}
    parts = [freeze(part) if isinstance(part, Handle) else part for part in (out if prim.outputs else (out,))]
    return in_form_of(out, parts) if prim.outputs else parts[0], held
