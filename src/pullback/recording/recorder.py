"""The general way to record a call: any primitive, any mixture of operands, every mode of the tape.

``generated_callers`` and ``tracing.callers_by_type`` do the same for the common cases, faster, and write the same
records.
"""

import operator
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from pullback.recording.crossing import apart, entered, present
from pullback.recording.handles import (
    BORROWED,
    FREE,
    FROZEN,
    SAVED,
    WRITTEN,
    WRITTEN_SHARED,
    Handle,
    freeze,
    is_foreign,
    on_tape,
    resolve,
    root_of,
    tape_of,
    twin_of,
    type_of,
)
from pullback.recording.results import inactive, mark_saved, split_residuals, wrap
from pullback.recording.tape import DEFERRED, FORWARD, PAUSED, REPLAYABLE, Tape
from pullback.rules.declaration import Primitive
from pullback.rules.forms import FORMS, Form, special_form
from pullback.rules.generated_pulls import make_form
from pullback.rules.guarded_calls import called_guarded
from pullback.rules.parameters import frozen_params
from pullback.rules.rule_names import read, read_spec
from pullback.words.call_sites import site_here, site_text
from pullback.words.errors import ConversionError
from pullback.words.foreign_operands import ARRAY_LIKE, ORDINARY, kind_of, plain_operand, takes_the_operator
from pullback.words.plugins import COPIES, stand_in
from pullback.words.specs import shared_spec

NUMBERS = (int, float, complex, np.generic)
LISTS = frozenset((list, tuple))
"""Types of operands in which tracers may be."""
SPARSE: Final[dict[str, Any]] = {
    "*": operator.mul, "/": operator.truediv, "+": operator.add, "-": operator.sub
}  # fmt: skip
"""The operators between what is traced and a plain sparse array that a plugin may serve."""
NO_PARAMS: Mapping[str, Any] = MappingProxyType({})


def call(prim: Primitive, operands: tuple[Any, ...], params: Mapping[str, Any]) -> Any:
    """The result of a primitive on operands of which one at least is a tracer: a tracer, or several, or a plain
    value."""
    tape = tape_of(operands, prim.name, follows=not prim.guarded)
    if not LISTS.isdisjoint(map(type, operands)):
        operands = tuple(tape.kinds.joined(o) if type(o) in LISTS else o for o in operands)
        tape = tape_of(operands, prim.name, follows=not prim.guarded)  # of a trace within this one, perhaps
    if prim.symbol and (taken := _by_another(prim, operands)) is not None:
        return taken
    if tape.mode == FORWARD:
        pushed = tape.tangents.quick(prim, operands, params)
        if pushed is not None:
            return pushed
    if prim.guarded:
        params = frozen_params(prim, params, tape)
    if tape.captures is not None:
        operands = tuple(present(o, tape) if is_foreign(o, tape) else o for o in operands)
    if tape.mode == DEFERRED:
        return tape.shadow.call(prim, operands, params)
    values = tuple(operand_value(operand, tape, prim) for operand in operands)
    if tape.mode == PAUSED:
        return prim(*values, **params)
    if prim.opaque and prim.guarded:
        values = tuple(_lasting(operand, value, tape) for operand, value in zip(operands, values, strict=True))
    out = evaluate(prim, values, params)
    return finish(prim, operands, values, out, params, tape)


def _no_numbers(prim: Primitive, out: Any) -> ConversionError:
    """The error for a result that holds objects or times."""
    if out.dtype.hasobject:
        return ConversionError(_of_objects(prim.name))
    return ConversionError(
        f"{prim.name} would give {out.dtype}, which carries no derivative (at {site_text(site_here())}); make it a "
        "number first: t / np.timedelta64(1, 's') for a time t"
    )


def _of_objects(what: str) -> str:
    """Why an array of objects is refused: tracers in it would be constants, and what Python's own arithmetic does is
    not recorded."""
    return (
        f"{what} would compute with an array of objects (at {site_text(site_here())}), which would drop the "
        "derivative of what is in it; join traced values with np.stack, and convert plain ones with .astype(float)"
    )


def value_on(handle: Any, tape: Tape) -> Any:
    """What a tape computes with where a handle is given."""
    return resolve(handle)._value if handle._tape is tape else entered(handle, tape)


def _by_another(prim: Primitive, operands: tuple[Any, ...]) -> Any:
    """What an operator gives that NumPy's own values, or Python's, leave to one of the operands: NotImplemented, and
    its operator meets the tracer; of a sparse array what a plugin makes of it. None where they leave it to none."""
    others = [o for o in operands if not isinstance(o, Handle) and type(o) not in ORDINARY]
    if not others:
        return None
    types = [type_of(o) for o in operands if isinstance(o, Handle)]
    scalar, weak = not any(issubclass(t, np.ndarray) for t in types), set(types) <= {float, complex}
    if any(takes_the_operator(o, scalar=scalar, weak=weak) for o in others):
        return NotImplemented
    if any(_array_of_its_own(o) is not o for o in others):
        return call(prim, tuple(map(_array_of_its_own, operands)), NO_PARAMS)
    if prim.symbol not in SPARSE or not any(hasattr(type(o), "tocsr") for o in others):
        return None
    if any(hasattr(type(o), "holds_tracer") for o in others):
        return NotImplemented
    traced_sparse = getattr(stand_in("scipy.sparse"), "traced_sparse", None)
    if traced_sparse is None:
        return None
    return SPARSE[prim.symbol](*(o if isinstance(o, Handle) else traced_sparse(o) for o in operands))


def _array_of_its_own(operand: Any) -> Any:
    """The traced array that an instance of an adopted class gives for itself, where NumPy would ask for its array;
    anything else as it is."""
    is_adopted = kind_of(operand) == ARRAY_LIKE and type(operand).__module__.partition(".")[0] == COPIES
    made = operand.__array__() if is_adopted else operand
    return made if isinstance(made, Handle) else operand


def operand_value(operand: Any, tape: Tape, prim: Primitive) -> Any:
    """The value an operand has for a tape: its own handles' values, other handles as they are, lists as arrays."""
    if isinstance(operand, Handle):
        return value_on(operand, tape)
    if type(operand) is np.ndarray:
        if operand.dtype.hasobject:
            raise ConversionError(_of_objects(prim.name))
        return operand
    return operand if type(operand) in ORDINARY else plain_operand(operand, elementwise=prim.elementwise)


def _lasting(operand: Any, value: Any, tape: Tape) -> Any:
    """The value of an operand that an opaque object may keep: no later write reaches it."""
    if isinstance(operand, Handle):
        freeze(operand)
        return value
    return tape.keep(value) if isinstance(value, np.ndarray) else value


def evaluate(prim: Primitive, values: tuple[Any, ...], params: Mapping[str, Any]) -> Any:
    """The forward; where values are handles of an outer trace, that records the primitive, as it does where a step is
    advanced and nothing inside records. The forward then runs again, on the handles, for residuals that a rule reads:
    its output would bear the derivative of its operations, whose last bits are not those of the rules."""
    if any(isinstance(value, Handle) for value in values):
        if not prim.residuals:
            return prim(*values, **params)
        if not prim.ordered:  # an effect is had once
            out = prim(*values, **params)
            if _spares_residuals(prim):
                return out, {}
        given = called_guarded(prim, values, params, locked=True) if prim.guarded else prim.forward(*values, **params)
        whole, residuals = apart(prim, given)
        return whole if prim.ordered else out, residuals
    return called_guarded(prim, values, params, locked=True) if prim.guarded else prim.forward(*values, **params)


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
    residuals = NO_PARAMS
    if prim.residuals:
        out, residuals = split_residuals(prim, out)
    if not isinstance(out, np.ndarray | Handle | np.generic | float | tuple) and not prim.opaque:
        out = plain_operand(out, elementwise=True)
    if isinstance(out, np.ndarray | np.timedelta64) and out.dtype.kind in "OmV":
        raise _no_numbers(prim, out)
    if tape.mode and tape.trap is not None:
        tape.trap.look(prim, values, out, params)
    active = tuple(k for k, o in enumerate(operands) if isinstance(o, Handle) and o._tape is tape and o._id is not None)
    if not active:
        return inactive(tape, prim, operands, out, params)
    tape.masks |= prim.masks
    if isinstance(out, np.ndarray) and not prim.view:
        out = own_output(values, out)
    if tape.mode == FORWARD:
        return tape.tangents.push(prim, operands, values, out, residuals, params, active)
    site = site_here()
    form = form_for(prim, operands, values, out, active, tape, site)
    record = (
        form.opcode,
        *(operands[k]._id for k in form.active),
        *(saved_value(name, prim, operands, values, out, residuals, tape) for name in form.saved),
        *(shared_spec(values[k]) if isinstance(k, int) else read_spec(prim, k, values, out) for k in form.specs),
        *((tuple(params[name] for name in prim.params),) if form.has_params else ()),
        site,
    )
    if tape.mode == REPLAYABLE:
        tape.governor.before_record(record, operands, values, params)
    ident = len(tape.records)
    tape.records.append(record)
    flag = SAVED if "out" in form.saved else FREE
    if not (prim.view or prim.outputs or residuals):
        return on_tape(tape, out, ident, flag)
    handle = wrap(tape, prim, operands, params, out, ident, flag)
    if prim.outputs or residuals:
        mark_saved(prim, handle, form.saved, residuals)
    return handle


def own_output(values: tuple[Any, ...], out: np.ndarray[Any, Any]) -> Any:
    """The output of a primitive that declares no view, copied where it is an operand or shares memory with one."""
    for value in values:
        if isinstance(value, np.ndarray) and (
            out is value or (out.base is not None and np.may_share_memory(out, value))
        ):
            return out.copy(order="K")
    return out


def form_for(
    prim: Primitive, operands: Any, values: Any, out: Any, active: tuple[int, ...], tape: Tape, site: int
) -> Form:
    """The form of this call, made on first use."""
    exact = prim.trusted and prim.elementwise and not prim.outputs and all(_same_spec(out, values[k]) for k in active)
    held: frozenset[int] = frozenset()
    if not prim.collective and prim.has_alternatives:  # else the same on every rank
        held = frozenset(k for k in active if _is_saved(operands[k], tape))
        if prim.residuals and any(isinstance(value, Handle) for value in values):
            held = frozenset(range(len(operands)))
    key = (active, len(operands), held, exact)
    form: Form | None = prim.forms.get(key)
    if form is None:
        # Of two threads that come first at once one makes the form of both: records are compared by its number.
        form = prim.forms.setdefault(key, make_form(prim, active, len(operands), held, exact=exact, site=site))
    return form


def _is_saved(operand: Any, tape: Tape) -> bool:
    """Whether the value of an operand is held by a record."""
    stood = None if tape.stands is None else tape.stands.get(operand._id)
    return bool((operand if stood is None else stood)._flag == SAVED)


def _same_spec(out: Any, value: Any) -> bool:
    return (
        hasattr(value, "dtype")
        and hasattr(out, "dtype")
        and bool(out.shape == value.shape and out.dtype == value.dtype)
    )


def saved_value(
    name: str, prim: Primitive, operands: Any, values: Any, out: Any, residuals: Mapping[str, Any], tape: Tape
) -> Any:
    """What a record keeps for the name of a value that a rule reads."""
    return read(prim, name, lambda k: hold(operands[k], values[k], tape), len(operands), out, residuals)


def hold(operand: Any, value: Any, tape: Tape) -> Any:
    """What a record keeps of an operand: its value, a copy of a slice whose base is being written, a copy of a plain
    array."""
    if isinstance(operand, Handle) and operand._tape is tape:
        root = root_of(operand)
        if root is not operand and root._flag in (WRITTEN, WRITTEN_SHARED):
            return twin_of(value)
        if root._flag == BORROWED:
            return tape.keep(value) if isinstance(value, np.ndarray) else freeze(operand)._value
        stood = None if tape.stands is None else tape.stands.get(root._id)
        if stood is not None and (outside := root_of(stood))._flag != BORROWED:
            outside._flag = SAVED
        if root._flag != FROZEN:
            root._flag = SAVED
        return freeze(value) if isinstance(value, Handle) else value
    if isinstance(value, Handle):
        return freeze(value)
    return tape.keep(value) if isinstance(value, np.ndarray) else value


def _pull_nothing(record: tuple[Any, ...], ct: Any, cts: list[Any], sweep: Any) -> None:
    """An input has nobody to pass its cotangent to, and so has a constant."""


INPUT = special_form("input", _pull_nothing, n_ids=0)
CONSTANT = special_form("constant", _pull_nothing, lambda value: value, n_ids=0)
"""An operand that depends on no input, of a call that is recorded whatever it depends on."""


def form_of(record: tuple[Any, ...]) -> Form:
    """The form of a record."""
    form: Form = FORMS[record[0]]
    return form


def called_at(record: tuple[Any, ...]) -> str:
    """The user's line of a record."""
    return site_text(record[-1])
