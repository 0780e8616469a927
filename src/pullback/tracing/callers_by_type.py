"""The fast way to call a primitive that is not elementwise, generated for the types of its operands: sums, matrix
products, keys, conditions, reshaping, joining.

What is generated is ``recorder.call`` for tracers of one live trace that saves all, with everything worked out before
that follows from the declaration and the types. It writes the same record. The first call with new types, and any case
that was not foreseen, goes to ``recorder.call`` itself.
"""

from collections.abc import Callable, Mapping
from sys import _getframe
from threading import get_ident
from typing import Any

import numpy as np
from attrs import frozen

from pullback.recording.handles import FREE, SAVED, Handle, Kinds, resolve, spec_of_handle
from pullback.recording.recorder import call, finish, hold, own_output
from pullback.recording.tape import RECORDS
from pullback.rules.declaration import Primitive
from pullback.rules.forms import Form
from pullback.rules.generated_code import compile_function, identifier
from pullback.rules.generated_pulls import make_form
from pullback.tracing.collectives import alone, call_collective, is_alone
from pullback.tracing.unrecorded_operations import resting
from pullback.words.call_sites import MISSED, find_site
from pullback.words.errors import MissingRuleError
from pullback.words.specs import shared_spec

MOST_OPERANDS, MOST_KINDS = 8, 32
"""Calls of more operands, and more combinations of types for one primitive, take the general way."""
PLAIN = frozenset((np.ndarray, np.float64, np.float32, float, int, bool))
"""The types of operands without a derivative that are served."""
_NAMES = {
    "ndarray": np.ndarray, "float64": np.float64, "get_ident": get_ident, "getframe": _getframe,
    "find_site": find_site, "finish": finish, "hold": hold, "resolve": resolve,
    "own_output": own_output, "shared_spec": shared_spec, "spec_of_handle": spec_of_handle,
    "may_share_memory": np.may_share_memory, "arrays": frozenset((np.ndarray, np.float64, np.float32)),
}  # fmt: skip
"""What the generated text refers to, besides the primitive and the classes of handles."""


def first_calls(prim: Primitive, operands: tuple[Any, ...], params: Mapping[str, Any]) -> Any:
    """What ``recorder.call`` gives. At the second call with operands of these types the fast way is made for the
    next."""
    found = MISSED if prim.collective else resting(prim, operands, params)
    if found is not MISSED:
        return found
    key, result = tuple(map(type, operands)), general_way(prim)(prim, operands, params)
    if key not in prim.callers:
        if len(prim.callers) < MOST_KINDS and len(key) <= MOST_OPERANDS:
            prim.callers[key] = None
    elif prim.callers[key] is None:
        kinds: Kinds | None = next((operand._tape.kinds for operand in operands if isinstance(operand, Handle)), None)
        plan = None if kinds is None else _plan(prim, key, kinds)
        prim.callers[key] = False if plan is None or kinds is None else make_typed_caller(plan, kinds)
    return result


def general_way(prim: Primitive) -> Callable[..., Any]:
    """What records any call of a primitive."""
    return call_collective if prim.collective else call


@frozen
class Plan:
    """What is known of a call from the types of its operands: a letter each, ``t`` a tracer, ``v`` a view, ``w`` a
    traced Python number, ``a`` a plain array, ``f`` a Python float, ``n`` another plain number."""

    prim: Primitive
    letters: str
    form: Form

    @property
    def active(self) -> tuple[int, ...]:
        """The positions of the traced operands."""
        return _traced(self.letters)


def _traced(letters: str) -> tuple[int, ...]:
    return tuple(k for k, letter in enumerate(letters) if letter in "tvw")


def _plan(prim: Primitive, key: tuple[type, ...], kinds: Kinds) -> Plan | None:
    """The plan for these types; None where the general way is to be taken."""
    known = {kinds.tracer: "t", kinds.view: "v", kinds.weak: "w", np.ndarray: "a", float: "f"}
    letters = "".join(known.get(kind, "n" if kind in PLAIN else "?") for kind in key)
    active = _traced(letters)
    may_be_exact = prim.trusted and prim.elementwise and "w" not in letters
    if prim.guarded or prim.residuals or prim.outputs or prim.opaque or may_be_exact:
        return None
    if "?" in letters or not active or (prim.view and letters not in ("t", "v")):
        return None
    key_of_form = (active, len(key), frozenset[int](), False)
    if key_of_form not in prim.forms:
        try:
            prim.forms.setdefault(key_of_form, make_form(prim, active, len(key), frozenset(), exact=False, site=0))
        except MissingRuleError:
            return None
    form = prim.forms[key_of_form]
    return Plan(prim, letters, form) if form.active else None


def make_typed_caller(plan: Plan, kinds: Kinds) -> Callable[..., Any]:
    """``caller(operands, params)`` for a plan."""
    prim = plan.prim
    name = f"call_{identifier(prim)}_{plan.letters}"
    namespace = {
        **_NAMES, "prim": prim, "forward": alone(prim.forward) if prim.collective else prim.forward,
        "call": general_way(prim), "is_alone": is_alone, "Tracer": kinds.tracer, "View": kinds.view, "Weak": kinds.weak,
    }  # fmt: skip
    lines = [f"def {name}(operands, params):", *_begins(plan), *_computed(plan), *_recorded(plan)]
    return compile_function(name, "\n    ".join(lines) + "\n", namespace)


def _begins(plan: Plan) -> list[str]:
    """The operands, each looked at: all traced ones of one trace that records here and now, over plain values."""
    letters, first = plan.letters, plan.active[0]
    tests = [f"not {RECORDS} or tape.thread != get_ident()"] + ([] if plan.prim.params else ["params"])
    tests += ["not is_alone(tape)"] if plan.prim.collective else []
    several = not plan.prim.collective and plan.prim.has_alternatives
    for k, letter in enumerate(letters):
        if letter in "tvw":
            tests.append(f"{f'resolve(x{k})' if letter == 'v' else f'x{k}'}._id is None")
            tests += [f"x{k}._tape is not tape"] if k != first else []
            tests += [f"x{k}._flag == {SAVED}"] if several else []
            tests.append(f"type(x{k}._value) {'is not float' if letter == 'w' else 'not in arrays'}")
        elif letter == "a":
            tests.append(f"x{k}.dtype.hasobject")
    values = [f"v{k} = x{k}._value" for k in plan.active]
    return [
        f"{''.join(f'x{k}, ' for k in range(len(letters)))} = operands",
        f"tape = x{first}._tape",
        f"if {' or '.join(tests)}:",
        "    return call(prim, operands, params)",
        *values,
    ]


def _value(plan: Plan, k: int) -> str:
    return f"v{k}" if k in plan.active else f"x{k}"


def _values(plan: Plan) -> str:
    return ", ".join(_value(plan, k) for k in range(len(plan.letters)))


def _computed(plan: Plan) -> list[str]:
    """The forward; a result that is neither an array of numbers nor one number is left to the general way."""
    prim = plan.prim
    left = f"return finish(prim, operands, ({_values(plan)},), out, params, tape)"
    if prim.symbol and len(plan.letters) <= 2:
        computed = prim.symbol.join(f" {_value(plan, k)} " for k in range(2)) if len(plan.letters) == 2 else ""
        computed = computed.strip() or f"{prim.symbol}{_value(plan, 0)}"
    else:
        computed = f"forward({_values(plan)}{', **params' if prim.params else ''})"
    lines = [f"out = {computed}", "kind = type(out)", "if kind is ndarray:"]
    lines += ["    if out.dtype.kind in 'OmMV':", f"        {left}"]
    if not prim.view:
        shared = " or ".join(["out.base is not None", *(f"out is {_value(plan, k)}" for k in _arrays(plan))])
        lines += [f"    if {shared}:", f"        out = own_output(({_values(plan)},), out)"]
    if "w" in plan.letters:
        return [*lines, "elif kind is not float and kind not in arrays:", f"    {left}"]
    return [*lines, "elif kind not in arrays:", f"    {left}"]


def _arrays(plan: Plan) -> list[int]:
    return [k for k, letter in enumerate(plan.letters) if letter in "tva"]


def _recorded(plan: Plan) -> list[str]:
    """What the record holds, the record, and the handle of the result."""
    prim, form = plan.prim, plan.form
    lines, spec = [], "None"
    held = {k for name in form.saved for k in _positions(plan, name)}
    lines += [line for k in sorted(held) for line in _held(plan, k)]
    specs: list[str] = []
    for key in form.specs:
        if key == "out":
            lines, spec = [*lines, "spec = shared_spec(out)"], "spec"
            specs.append("spec")
        elif isinstance(key, int):
            specs.append(_spec(plan, key))
        else:
            specs.append(f"({''.join(f'{_spec(plan, k)}, ' for k in _positions(plan, key))})")
    saved = [_saved(plan, name) for name in form.saved]
    params = [f"({''.join(f'params[{name!r}], ' for name in prim.params)})"] if form.has_params else []
    record = ", ".join([str(form.opcode), *(f"x{k}._id" for k in form.active), *saved, *specs, *params])
    lines += ["tape.masks = True"] if prim.masks else []
    lines += ["tape.collective = True"] if prim.collective else []
    lines += ["frame = getframe(2)", "same = frame.f_code is tape.code"]
    lines += ["site = tape.sites[frame.f_lasti] if same else find_site(tape, frame)"]
    lines += ["records = tape.records", "ident = len(records)"]
    lines += [f"record = ({record}, site)", "if tape.mode:"]
    lines += [f"    tape.governor.before_record(record, operands, ({_values(plan)},), params)"]
    lines += ["records.append(record)", *_handle(plan)]
    flag = SAVED if "out" in form.saved else FREE
    lines += ["t._value, t._id, t._tape = out, ident, tape", f"t._flag, t._spec = {flag}, {spec}"]
    return [*lines, "if tape.mode:", "    tape.governor.watch(t)", "return t"]


def _handle(plan: Plan) -> list[str]:
    """The empty handle of the result."""
    if plan.prim.view:
        return [
            "base = out.base",
            "if base is not None and (base is v0 or base is v0.base) and out.size or out is v0:",
            "    seen = True",
            "else:",
            "    seen = kind is ndarray and base is not None and may_share_memory(out, v0)",
            "if seen:",
            "    t = View()",
            "    t._parent, t._parent_id, t._parent_value = x0, x0._id, v0",
            "    t._primitive, t._params, t._written_in, t._known = prim, dict(params), None, None",
            "else:",
            "    t = Tracer()",
        ]
    return ["t = Weak() if kind is float else Tracer()" if "w" in plan.letters else "t = Tracer()"]


def _positions(plan: Plan, name: str) -> range:
    """The positions of the operands that a name of the form stands for."""
    operands, n = plan.prim.operands, len(plan.letters)
    if name in operands:
        return range(operands.index(name), operands.index(name) + 1)
    return range(len(operands) if name == plan.prim.family else n, n)


def _held(plan: Plan, k: int) -> list[str]:
    """The lines that make the value of an operand safe to be held, as ``s0`` and so on."""
    letter = plan.letters[k]
    if letter == "t":
        return [f"x{k}._flag = {SAVED}", f"s{k} = v{k}"]
    if letter == "v":
        return [f"s{k} = hold(x{k}, v{k}, tape)"]
    if letter == "a":
        unchanged = f"last.array is x{k} and last.data == x{k}.tobytes()"  # as Tape.keep asks, sooner
        alike = f"last.copy.dtype is x{k}.dtype and last.copy.shape == x{k}.shape"
        return ["last = tape.kept", f"s{k} = last.copy if {unchanged} and {alike} else tape.keep(x{k})"]
    lines = [f"x{k}._flag = {SAVED}"] if letter == "w" else []
    value = _value(plan, k)
    whole = plan.prim.elementwise or letter == "n" or k >= len(plan.prim.operands)
    return [*lines, f"s{k} = {value if whole else f'float64({value})'}"]


def _saved(plan: Plan, name: str) -> str:
    if name == "out":
        return "out"
    held = [f"s{k}" for k in _positions(plan, name)]
    return held[0] if name in plan.prim.operands else f"({''.join(f'{s}, ' for s in held)})"


def _spec(plan: Plan, k: int) -> str:
    return f"(x{k}._spec or spec_of_handle(x{k}))" if plan.letters[k] in "tvw" else f"shared_spec(x{k})"
