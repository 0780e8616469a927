"""What a recorded call hands to the program: one handle or several, a view, a buffer, or a plain value."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from pullback.recording.handles import (
    FREE,
    SAVED,
    Handle,
    make,
    on_tape,
)
from pullback.recording.tape import REPLAYABLE, Ident, Tape
from pullback.rules.declaration import Primitive
from pullback.rules.forms import special_form
from pullback.words.call_sites import site_here
from pullback.words.errors import RuleError
from pullback.words.specs import INEXACT


def mark_saved(prim: Primitive, handle: Any, saved: tuple[str, ...], residuals: Mapping[str, Any]) -> None:
    """Outputs that the record holds, by a name of their own or as a residual that shares their memory: a write
    copies first."""
    for k, part in enumerate(handle if prim.outputs else (handle,)):
        if not isinstance(part, Handle):
            continue
        held = prim.outputs and not {"out", prim.outputs[k]}.isdisjoint(saved)
        if held or any(isinstance(r, np.ndarray) and _shares(part._value, r) for r in residuals.values()):
            part._flag = SAVED


def split_residuals(prim: Primitive, out: Any) -> tuple[Any, Mapping[str, Any]]:
    """The output of a forward that declares residuals, and these by name."""
    if not isinstance(out, tuple) or len(out) != 2 or not isinstance(out[1], Mapping):
        raise RuleError(
            f"the forward of {prim.name} declares residuals {prim.residuals} and must return (out, {{name: "
            f"value}}), got {type(out).__name__}"
        )
    return out


def inactive(tape: Tape, prim: Primitive, operands: tuple[Any, ...], out: Any, params: Mapping[str, Any]) -> Any:
    """The result of a call no operand of which depends on the inputs: a traced buffer that may still be written to,
    or a plain value."""
    if type(out) in (float, complex, tape.kinds.weak):
        return make(tape.kinds.weak, out, None, tape)  # a trace around this one asks it for shape and dtype
    if isinstance(out, tuple) and prim.outputs:
        buffers = (isinstance(part, np.ndarray) and part.dtype.kind in INEXACT for part in out)
        return getattr(type(out), "_make", tuple)(
            make(tape.kinds.buffer, part, None, tape) if is_buffer else part
            for part, is_buffer in zip(out, buffers, strict=True)
        )
    if not isinstance(out, np.ndarray | Handle) or prim.outputs:
        return out
    source = operands[0]
    if prim.view and isinstance(source, Handle) and source._tape is tape and looks_at(out, source._value):
        return view_of(source, prim, params, out, None)
    return make(tape.kinds.buffer, out, None, tape, FREE)


def in_form_of(out: Any, handles: list[Any]) -> Any:
    """Handles of several outputs as a tuple, or as the named tuple that the forward has given."""
    return type(out)._make(handles) if hasattr(out, "_make") else tuple(handles)


def wrap(
    tape: Tape, prim: Primitive, operands: tuple[Any, ...], params: Mapping[str, Any], out: Any, ident: int, flag: int
) -> Any:
    """The handle, or handles, of a recorded output."""
    if prim.outputs:
        handles = [component(tape, ident, k, value, len(prim.outputs)) for k, value in enumerate(out)]
        return in_form_of(out, handles)
    if prim.view and looks_at(out, operands[0]._value):
        return view_of(operands[0], prim, params, out, ident)
    return on_tape(tape, out, ident, flag)


def looks_at(out: Any, value: Any) -> bool:
    """Whether the output of a view function, which may copy, looks at its operand; of a handle of an outer trace,
    whether it is a view."""
    return type(out) is out._tape.kinds.view if isinstance(out, Handle) else _shares(out, value)


def _shares(out: Any, value: Any) -> bool:
    return isinstance(out, np.ndarray) and np.may_share_memory(out, value)


def view_of(parent: Any, prim: Primitive, params: Mapping[str, Any], out: Any, ident: int | None) -> Any:
    """A view handle: it derives itself again from its parent when the parent has been written."""
    tape = parent._tape
    view = make(tape.kinds.view, out, ident, tape)
    view._parent = parent
    view._parent_id = parent._id
    view._parent_value = parent._value
    view._primitive = prim
    view._params = dict(params)
    view._written_in = view._known = None
    if tape.mode == REPLAYABLE and ident is not None:
        tape.governor.watch(view)
    return view


def component(tape: Tape, parent: int, place: int, value: Any, count: int) -> Any:
    """The handle of one of several outputs, by a record of its own."""
    ident = len(tape.records)
    record = (COMPONENT.opcode, parent, place, count, site_here())
    if tape.mode == REPLAYABLE:
        tape.governor.before_record(record, (Ident(parent),), (None,), {"place": place})
    tape.records.append(record)
    return on_tape(tape, value, ident)


def _pull_component(record: tuple[Any, ...], ct: Any, cts: list[Any], sweep: Any) -> None:
    """Gather the cotangents of several outputs in one list, None where an output is unused."""
    _, parent, place, count, _ = record
    gathered = cts[parent]
    if gathered is None:
        gathered = cts[parent] = [None] * count
    gathered[place] = ct


COMPONENT = special_form("component", _pull_component, lambda outputs, place: outputs[place])
