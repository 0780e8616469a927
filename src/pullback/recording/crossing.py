"""What a value that comes in from elsewhere is to a trace: of traces around it, and arrays that are no plain ones."""

from typing import Any

import numpy as np

from pullback.recording.handles import FROZEN, SHARED, Handle, freeze, make, read_only, resolve
from pullback.recording.tape import CAPTURED, PAUSED, RECORDING, Tape
from pullback.rules.forms import special_form
from pullback.words.call_sites import site_here, site_text
from pullback.words.errors import NotDifferentiableError


def captured(operand: Any, tape: Tape | None) -> Any:
    """The handle that stands, on the tape of a loop's step, for a handle of an enclosing trace; anything else as it
    is."""
    while isinstance(operand, Handle) and operand._tape is not tape and operand._tape.mode == CAPTURED:
        operand = _stand_in(operand)
    return operand


def present(operand: Any, tape: Tape | None) -> Any:
    """What a value is to ``tape`` now: of a trace that is left alone meanwhile a plain value, of one around a step that
    is being recorded what the step captures; anything else as it is."""
    while isinstance(operand, Handle) and operand._tape is not tape:
        if left_alone(operand):
            operand = freeze(operand)._value
        elif operand._tape.mode == CAPTURED:
            operand = _stand_in(operand)
        else:
            break
    return operand


def standing_for(x: Any) -> Any:
    """The value that a handle of a trace that is left alone stands for, to be read only; anything else as it is."""
    found = x
    while isinstance(found, Handle) and left_alone(found):
        found = freeze(found)._value
    return found if found is x else read_only(found)


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
    outer.mode = RECORDING  # a stale view derives itself again on its own tape
    try:
        resolve(operand)
    finally:
        outer.mode = CAPTURED
    if operand._id is None:
        return make(inner.kinds.buffer, operand._value, None, inner, FROZEN)
    found = inner.captures.get(operand._id)
    if found is None:
        found = inner.captures[operand._id] = (len(inner.records), operand._value)
        inner.records.append((CAPTURE.opcode, operand._id, site_here(3)))
        freeze(operand)  # whoever writes to it from now on copies
    kind = inner.kinds.weak if type(operand) is inner.kinds.weak else inner.kinds.tracer
    return make(kind, found[1], found[0], inner, SHARED)


def _pull_capture(record: tuple[Any, ...], ct: Any, cts: list[Any], sweep: Any) -> None:
    """A captured value gathers its cotangent over all steps of the loop."""
    sweep.gather(record[1], ct)


CAPTURE = special_form("captured value", _pull_capture, n_ids=0)


def plain_array(array: Any) -> Any:
    """An array subclass that only stores differently (a memory map) as an ndarray; one that means something else
    by its operators is refused."""
    if isinstance(array, np.ma.MaskedArray | np.matrix):
        message = (
            f"{type(array).__name__} has an arithmetic of its own, which has no derivative here (at "
            f"{site_text(site_here(3))}); pass np.asarray(x), and the mask as an array of its own to np.where"
        )
        raise NotDifferentiableError(message)
    return np.asarray(array)
