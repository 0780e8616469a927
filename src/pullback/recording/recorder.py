"""The general way to record a call: any primitive, any mixture of operands, every mode of the tape.

The generated callers of ``codegen`` are this, specialised; both write the same records.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from pullback.recording.copies import faithful_copy, keep
from pullback.recording.crossing import captured, plain_array, present
from pullback.recording.governor import Ident
from pullback.recording.handles import (
    FREE,
    FROZEN,
    SAVED,
    WRITTEN,
    WRITTEN_SHARED,
    Handle,
    freeze,
    kind_of,
    make,
    resolve,
    root_of,
    tape_of,
)
from pullback.recording.tape import FORWARD, PAUSED, REPLAYABLE, Tape
from pullback.rules.declaration import Primitive
from pullback.rules.forms import FORMS, Form, layout, new_form, rules_for, special_form
from pullback.rules.generated import make_pull
from pullback.words.call_sites import site_here, site_text
from pullback.words.errors import ConversionError, RuleError
from pullback.words.specs import INEXACT, shared_spec

NO_PARAMS: Mapping[str, Any] = MappingProxyType({})


class Const:
    """An operand of a replayable record that is no value of the tape."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def call(prim: Primitive, operands: tuple[Any, ...], params: Mapping[str, Any]) -> Any:
    """The result of a primitive on operands of which one at least is a tracer: a tracer, or several, or a plain
    value."""
    tape = tape_of(operands, prim.name)
    if tape.captures is not None:
        operands = tuple(captured(operand, tape) for operand in operands)
    values = tuple(_operand_value(operand, tape) for operand in operands)
    if tape.mode == PAUSED:
        return prim(*values, **params)
    out = evaluate(prim, values, params)
    return finish(prim, operands, values, out, params, tape)


def _of_objects(what: str) -> str:
    """Why an array of objects is refused: tracers in it would be constants, and what Python's own arithmetic does is
    not recorded."""
    return (
        f"{what} would compute with an array of objects (at {site_text(site_here(2))}), which would drop the "
        "derivative of what is in it; join traced values with np.stack, and convert plain ones with .astype(float)"
    )


def _operand_value(operand: Any, tape: Tape) -> Any:
    """The value an operand has for a tape: its own handles' values, other handles as they are, lists as arrays."""
    if isinstance(operand, Handle) and operand._tape is not tape:
        operand = present(operand, tape)
    if isinstance(operand, Handle):
        resolve(operand)
        if operand._tape is tape:
            return operand._value
        tape.meet(operand._tape)
        return freeze(operand)
    if isinstance(operand, np.ndarray):
        if operand.dtype.hasobject:
            raise ConversionError(_of_objects("a traced call"))
        return operand if type(operand) is np.ndarray else plain_array(operand)
    return np.asarray(operand) if isinstance(operand, list | tuple) else operand


def evaluate(prim: Primitive, values: tuple[Any, ...], params: Mapping[str, Any]) -> Any:
    """The forward; where values are handles of an outer trace, the outer trace records the primitive, or runs the
    forward where residuals are needed."""
    if any(isinstance(value, Handle) for value in values):
        if not prim.residuals or _spares_residuals(prim):
            return prim(*values, **params) if not prim.residuals else (prim(*values, **params), {})
        return prim.forward(*values, **params)
    return prim.forward(*values, **params)


def _spares_residuals(prim: Primitive) -> bool:
    """True when every operand has a rule that reads no residual."""
    return all(any(not set(rule.values) & set(prim.residuals) for rule in rules) for rules in prim.rules.values())


def finish(
    prim: Primitive,
    operands: tuple[Any, ...],
    values: tuple[Any, ...],
    out: Any,
    params: Mapping[str, Any] = NO_PARAMS,
    tape: Any = None,
) -> Any:
    """Record a call whose forward has been run, and hand out its result; ``tape`` is the operands' own, where that
    is known."""
    tape = tape_of(operands, prim.name) if tape is None else tape
    out, residuals = _split_residuals(prim, out)
    if type(out) is np.ndarray and out.dtype.hasobject:
        raise ConversionError(_of_objects(prim.name))
    if tape.mode and tape.trap is not None:
        tape.trap.look(prim, values, out, params)
    active = tuple(k for k, o in enumerate(operands) if isinstance(o, Handle) and o._tape is tape and o._id is not None)
    if not active:
        return inactive(tape, prim, operands, out, params)
    tape.masks |= prim.masks
    out = _own_output(prim, values, out)
    if tape.mode == FORWARD:
        return tape.tangents.push(prim, operands, values, out, residuals, params, active)
    site = site_here(1)
    form = form_for(prim, operands, values, out, active, tape, site)
    env = _Named(prim, operands, values, out, residuals, tape)
    record = (
        form.opcode,
        *(operands[k]._id for k in form.active),
        *(env.hold(name) for name in form.saved),
        *(env.spec(name) for name in form.specs),
        *((tuple(params[name] for name in prim.params),) if form.has_params else ()),
        site,
    )
    if tape.mode == REPLAYABLE:
        tape.governor.before_record(record, operands, values, params)
    ident = len(tape.records)
    tape.records.append(record)
    handle = wrap(tape, prim, operands, params, out, ident, SAVED if "out" in form.saved else FREE)
    if prim.outputs or residuals:
        _mark_saved(prim, handle, form.saved, residuals)
    return handle


def _mark_saved(prim: Primitive, handle: Any, saved: tuple[str, ...], residuals: Mapping[str, Any]) -> None:
    """Outputs that the record holds, by a name of their own or as a residual that shares their memory: a write
    copies first."""
    for k, part in enumerate(handle if prim.outputs else (handle,)):
        if not isinstance(part, Handle):
            continue
        held = prim.outputs and not {"out", prim.outputs[k]}.isdisjoint(saved)
        if held or any(type(r) is np.ndarray and _shares(part._value, r) for r in residuals.values()):
            part._flag = SAVED


def _split_residuals(prim: Primitive, out: Any) -> tuple[Any, Mapping[str, Any]]:
    if not prim.residuals:
        return out, NO_PARAMS
    if not isinstance(out, tuple) or len(out) != 2 or not isinstance(out[1], Mapping):
        message = (
            f"the forward of {prim.name} declares residuals {prim.residuals} and must return (out, {{name: "
            f"value}}), got {type(out).__name__}"
        )
        raise RuleError(message)
    return out


def _own_output(prim: Primitive, values: tuple[Any, ...], out: Any) -> Any:
    """The output, copied where it is or shares memory with an operand though the primitive declares no view."""
    if prim.view or type(out) is not np.ndarray:
        return out
    for value in values:
        if type(value) is np.ndarray and (out is value or (out.base is not None and np.may_share_memory(out, value))):
            return out.copy(order="K")
    return out


def form_for(
    prim: Primitive, operands: Any, values: Any, out: Any, active: tuple[int, ...], tape: Tape, site: int
) -> Form:
    """The form of this call, made on first use."""
    exact = prim.trusted and prim.elementwise and not prim.outputs and all(_same_spec(out, values[k]) for k in active)
    held: frozenset[int] = frozenset()
    if any(len(rules) > 1 for rules in prim.rules.values()):
        held = frozenset(k for k in active if operands[k]._flag == SAVED)
        if prim.residuals and isinstance(out, Handle):
            held = frozenset(range(len(operands)))
    key = (active, len(operands), held, exact)
    form: Form | None = prim.forms.get(key)
    if form is None:
        form = prim.forms[key] = make_form(prim, active, len(operands), held, exact=exact, site=site)
    return form


def _same_spec(out: Any, value: Any) -> bool:
    return (
        hasattr(value, "dtype")
        and hasattr(out, "dtype")
        and bool(out.shape == value.shape and out.dtype == value.dtype)
    )


def make_form(
    prim: Primitive, active: tuple[int, ...], arity: int, held: frozenset[int], *, exact: bool, site: int
) -> Form:
    """A new form in the opcode table, with its generated pull."""
    rules = rules_for(prim, active, held, site)
    served = tuple(sorted(p for _, positions in rules for p in positions))
    saved, specs, has_params = layout(prim, rules, exact=exact)

    def build(opcode: int) -> tuple[Form, Any]:
        form = Form(opcode, prim, served, arity, rules, saved, specs, exact, has_params)
        return form, make_pull(form)

    return new_form(build)


class _Named:
    """The values of a call by the names rules use."""

    def __init__(
        self, prim: Primitive, operands: Any, values: Any, out: Any, residuals: Mapping[str, Any], tape: Tape
    ) -> None:
        self.prim, self.operands, self.values, self.out, self.residuals, self.tape = (
            prim,
            operands,
            values,
            out,
            residuals,
            tape,
        )

    def hold(self, name: str) -> Any:
        """What a record keeps for a saved name."""
        prim = self.prim
        if name == "out":
            return tuple(self.out) if prim.outputs else self.out
        if name in prim.operands:
            k = prim.operands.index(name)
            value = self.values[k]
            if type(value) in (float, complex) and not prim.elementwise:
                value = np.asarray(value)[()]  # a rule that is no table line may ask for its shape
            return hold(self.operands[k], value, self.tape)
        if name == prim.family:
            first = len(prim.operands)
            return tuple(hold(o, v, self.tape) for o, v in zip(self.operands[first:], self.values[first:], strict=True))
        if name in prim.outputs:
            return self.out[prim.outputs.index(name)]
        if name not in self.residuals:
            message = (
                f"the forward of {prim.name} did not return the residual {name!r} it declares; it returned "
                f"{tuple(self.residuals)}"
            )
            raise RuleError(message)
        return self.residuals[name]

    def spec(self, name: str) -> Any:
        """The spec for ``@position``, ``x_spec``, ``arrays_spec`` or ``out_spec``; None for what is no array."""
        prim = self.prim
        if name.startswith("@"):
            return shared_spec(self.values[int(name[1:])])
        stem = name.removesuffix("_spec")
        if stem in prim.operands:
            return shared_spec(self.values[prim.operands.index(stem)])
        if stem == prim.family:
            return tuple(shared_spec(v) for v in self.values[len(prim.operands) :])
        if stem in prim.outputs:
            return shared_spec(self.out[prim.outputs.index(stem)])
        return tuple(map(shared_spec, self.out)) if prim.outputs else shared_spec(self.out)


def hold(operand: Any, value: Any, tape: Tape) -> Any:
    """What a record keeps of an operand: its value, a copy of a slice whose base is being written, a copy of a plain
    array."""
    if isinstance(operand, Handle) and operand._tape is tape:
        root = root_of(operand)
        if root is not operand and root._flag in (WRITTEN, WRITTEN_SHARED):
            return (
                faithful_copy(value)
                if type(value) is np.ndarray
                else freeze(value)
                if isinstance(value, Handle)
                else value
            )
        if root._flag != FROZEN:
            root._flag = SAVED
        return freeze(value) if isinstance(value, Handle) else value
    if isinstance(value, Handle):
        return freeze(value)
    return keep(tape, value) if type(value) is np.ndarray else value


def inactive(tape: Tape, prim: Primitive, operands: tuple[Any, ...], out: Any, params: Mapping[str, Any]) -> Any:
    """The result of a call no operand of which depends on the inputs: a traced buffer that may still be written to,
    or a plain value."""
    if type(out) in (float, complex, tape.kinds.weak):
        return make(tape.kinds.weak, out, None, tape)  # a trace around this one asks it for shape and dtype
    if type(out) is tuple and prim.outputs:
        buffers = (type(part) is np.ndarray and part.dtype.kind in INEXACT for part in out)
        return tuple(
            make(tape.kinds.buffer, part, None, tape) if is_buffer else part
            for part, is_buffer in zip(out, buffers, strict=True)
        )
    if not isinstance(out, np.ndarray | Handle) or prim.outputs:
        return out
    source = operands[0]
    if prim.view and isinstance(source, Handle) and source._tape is tape and looks_at(out, source._value):
        return view_of(source, prim, params, out, None)
    return make(tape.kinds.buffer, out, None, tape, FREE)


def wrap(
    tape: Tape, prim: Primitive, operands: tuple[Any, ...], params: Mapping[str, Any], out: Any, ident: int, flag: int
) -> Any:
    """The handle, or handles, of a recorded output."""
    kinds = tape.kinds
    if prim.outputs:
        handles = [component(tape, ident, k, value, len(prim.outputs)) for k, value in enumerate(out)]
        return type(out)._make(handles) if hasattr(out, "_make") else tuple(handles)
    if prim.view and looks_at(out, operands[0]._value):
        return view_of(operands[0], prim, params, out, ident)
    handle = make(kinds.weak if type(out) in (float, complex, kinds.weak) else kinds.tracer, out, ident, tape, flag)
    if tape.mode == REPLAYABLE:
        tape.governor.watch(handle)
    return handle


def looks_at(out: Any, value: Any) -> bool:
    """Whether the output of a view function, which may copy, looks at its operand; of a handle of an outer trace,
    whether it is a view."""
    return type(out) is out._tape.kinds.view if isinstance(out, Handle) else _shares(out, value)


def _shares(out: Any, value: Any) -> bool:
    return type(out) is np.ndarray and np.may_share_memory(out, value)


def view_of(parent: Any, prim: Primitive, params: Mapping[str, Any], out: Any, ident: int | None) -> Any:
    """A view handle: it derives itself again from its parent when the parent has been written."""
    tape = parent._tape
    view = make(tape.kinds.view, out, ident, tape)
    view._parent = parent
    view._parent_id = parent._id
    view._parent_value = parent._value
    view._primitive = prim
    view._params = dict(params)
    view._written_in = None
    if tape.mode == REPLAYABLE and ident is not None:
        tape.governor.watch(view)
    return view


def component(tape: Tape, parent: int, place: int, value: Any, count: int) -> Any:
    """The handle of one of several outputs, by a record of its own."""
    ident = len(tape.records)
    record = (COMPONENT.opcode, parent, place, count, site_here(2))
    handle = make(kind_of(tape, value), value, ident, tape)
    if tape.mode == REPLAYABLE:
        tape.governor.before_record(record, (Ident(parent),), (None,), {"place": place})
        tape.governor.watch(handle)
    tape.records.append(record)
    return handle


def _pull_component(record: tuple[Any, ...], ct: Any, cts: list[Any], sweep: Any) -> None:
    """Gather the cotangents of several outputs in one list, None where an output is unused."""
    _, parent, place, count, _ = record
    gathered = cts[parent]
    if gathered is None:
        gathered = cts[parent] = [None] * count
    gathered[place] = ct


def _pull_nothing(record: tuple[Any, ...], ct: Any, cts: list[Any], sweep: Any) -> None:
    """An input has nobody to pass its cotangent to."""


COMPONENT = special_form("component", _pull_component, lambda outputs, place: outputs[place])


INPUT = special_form("input", _pull_nothing, n_ids=0)


def form_of(record: tuple[Any, ...]) -> Form:
    """The form of a record."""
    form: Form = FORMS[record[0]]
    return form


def called_at(record: tuple[Any, ...]) -> str:
    """The user's line of a record."""
    return site_text(record[-1])
