"""The push of a primitive, generated: value and tangent of a call in forward mode, as ``rules.generated_pulls`` writes
its pull.

An elementwise primitive's VJP rules serve for tangents, since a diagonal Jacobian is its own transpose; for a linear
one, or a view, of one operand its forward does. A push serves plain calls: one trace, arrays or float64 numbers, one
dtype for values and tangents. All other calls go the general way (``tangents``), which gives the same bits.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.recording.generated_callers import forward_text
from pullback.rules.cotangent_sums import added
from pullback.rules.declaration import Primitive
from pullback.rules.generated_code import compile_function, identifier
from pullback.rules.rule_names import Rule

_PLAIN = frozenset((np.ndarray, np.float64))
_NUMBERS = frozenset((float, int, np.float64))

_HEAD = """def {name}(tape, params, x):
    if type(x) not in handles:
        return None
"""
_OPERAND = """{pad}if {x}._tape is not tape or {x}._id is None:
{pad}    return None
{pad}if type({x}) is View:
{pad}    resolve({x})
"""
_VALUES = """{pad}{x}v = {x}._value
{pad}{x}t = {x}._id.value
{pad}if type({x}v) not in plain or type({x}t) not in plain:
{pad}    return None
"""
_WHOLE = """{pad}{x}w = {x}t if {x}t.shape == out.shape else broadcast_to({x}t, out.shape)
"""
_FIT = """{pad}if type({part}) not in plain or {part}.shape != out.shape or {part}.dtype is not out.dtype:
{pad}    {part} = fitted({part}, shared_spec(out))
"""
_OWNED = """{pad}if type(t) is ndarray and (t.base is not None or {given}):
{pad}    t = t.copy(order="K")
"""
_RESULT = """{masks}{pad}return made(Tracer, out, Tangent(t), tape)
"""


def make_push(prim: Primitive, classes: dict[str, Any]) -> Callable[..., Any] | None:
    """``push(tape, params, *operands)``: the handle of the result with its tangent, or None where the call is not
    plain; None in its place for a primitive that has no such push.

    ``classes`` are the things of the rooms above that the text names.
    """
    if prim.guarded or prim.outputs or prim.residuals or prim.family or prim.nondiff or prim.opaque:
        return None
    rules = _rules_of(prim)
    if not rules and not _is_linear(prim):
        return None
    name = f"push_{identifier(prim)}"
    namespace: dict[str, Any] = {
        "ndarray": np.ndarray, "plain": _PLAIN, "numbers": _NUMBERS, "added": added, "forward": prim.forward,
        "prim": prim, "broadcast_to": np.broadcast_to,
        **{f"rule{k}": rule.fn for k, rule in enumerate(rules)}, **classes,
    }  # fmt: skip
    text = (_linear, _unary, _binary)[len(rules)]
    return compile_function(name, text(name, prim, rules), namespace)


def _is_linear(prim: Primitive) -> bool:
    """Whether the forward makes the tangent of the one operand."""
    if len(prim.operands) != 1 or prim.elementwise:
        return False
    return prim.view or (prim.linear == prim.operands and not prim.jvps)


def _rules_of(prim: Primitive) -> list[Rule]:
    """The rule that makes the tangent for each operand, where all is as simple as in the table; else none."""
    if not (prim.elementwise and prim.trusted) or prim.params or prim.view or len(prim.operands) not in (1, 2):
        return []
    rules = []
    for operand in prim.operands:
        rule = prim.jvps.get(operand) or next(iter(prim.rules.get(operand, ())), None)
        if rule is None or rule.joint or not {*rule.reads} <= {*prim.operands, "out"}:
            return []
        rules.append(rule)
    return rules


def _called(rule: Rule, number: int, values: dict[str, str]) -> str:
    tangent = "xw" if number == 0 else "yw"
    return f"rule{number}({', '.join((tangent, *(values[name] for name in rule.reads)))})"


def _general(pad: str, test: str, operands: str, values: str, params: str = "none") -> str:
    """What has been computed goes on the general way where the test is true."""
    return f"{pad}if {test}:\n{pad}    return finish(prim, ({operands}), ({values}), out, {params}, tape)\n"


def _masks(prim: Primitive, pad: str) -> str:
    return f"{pad}tape.masks = True\n" if prim.masks else ""


def _single(prim: Primitive, rules: list[Rule], number: int, values: dict[str, str], pad: str) -> str:
    """One active operand."""
    x = "xy"[number]
    operands = ", ".join("xy"[: len(rules)]) + ("," if len(rules) == 1 else "")
    computed = ", ".join(values[name] for name in prim.operands) + ("," if len(rules) == 1 else "")
    text = f"{pad}out = {forward_text(prim, *(values[name] for name in prim.operands))}\n"
    text += _general(pad, f"type(out) not in plain or {x}t.dtype is not out.dtype", operands, computed)
    text += _WHOLE.format(pad=pad, x=x)
    text += f"{pad}t = {_called(rules[number], number, values)}\n" + _FIT.format(pad=pad, part="t")
    text += _OWNED.format(pad=pad, given=f"t is {x}t")
    return text + _RESULT.format(pad=pad, masks=_masks(prim, pad))


def _linear(name: str, prim: Primitive, _: list[Rule]) -> str:
    pad = "    "
    text = _HEAD.format(name=name)
    text += _OPERAND.format(pad=pad, x="x") + _VALUES.format(pad=pad, x="x")
    text += f"{pad}out = forward(xv, **params)\n"
    shared = "" if prim.view else " or out is xv or out.base is not None"
    text += _general(pad, f"type(out) not in plain or xt.dtype is not out.dtype{shared}", "x,", "xv,", "params")
    text += f"{pad}t = forward(xt, **params)\n"
    if not prim.view:
        text += _FIT.format(pad=pad, part="t") + _OWNED.format(pad=pad, given="t is xt")
        return text + _RESULT.format(pad=pad, masks=_masks(prim, pad))
    text += f"{pad}if not looks_at(out, xv):\n" + _OWNED.format(pad=pad + "    ", given="t is xt")
    return text + f"{_masks(prim, pad)}{pad}return wrap(tape, prim, (x,), params, out, Tangent(t), free)\n"


def _unary(name: str, prim: Primitive, rules: list[Rule]) -> str:
    pad, values = "    ", {prim.operands[0]: "xv", "out": "out"}
    text = _HEAD.format(name=name) + _OPERAND.format(pad=pad, x="x") + _VALUES.format(pad=pad, x="x")
    return text + _single(prim, rules, 0, values, pad)


def _binary(name: str, prim: Primitive, rules: list[Rule]) -> str:
    first, second = prim.operands
    values = {first: "xv", second: "yv", "out": "out"}
    pad = " " * 8
    text = f"def {name}(tape, params, x, y):\n    kind, other = type(x), type(y)\n"
    text += "    if kind in handles and other in handles:\n"
    text += "".join(_OPERAND.format(pad=pad, x=x) for x in "xy") + "".join(_VALUES.format(pad=pad, x=x) for x in "xy")
    text += f"{pad}out = {forward_text(prim, 'xv', 'yv')}\n"
    other = " or ".join(f"{x}t.dtype is not out.dtype" for x in "xy")
    text += _general(pad, f"type(out) not in plain or {other}", "x, y", "xv, yv")
    text += "".join(_WHOLE.format(pad=pad, x=x) for x in "xy")
    text += f"{pad}parts = [{', '.join(_called(rule, k, values) for k, rule in enumerate(rules))}]\n"
    text += "".join(_FIT.format(pad=pad, part=f"parts[{k}]") for k in range(2))
    text += f"{pad}t = added(parts)\n"
    text += _OWNED.format(pad=pad, given="t is xt or t is yt") + _RESULT.format(pad=pad, masks=_masks(prim, pad))
    for number, (x, y) in enumerate((("x", "y"), ("y", "x"))):
        handle, constant = ("kind", "other") if x == "x" else ("other", "kind")
        text += f"    if {handle} in handles and ({constant} in numbers or ({constant} is ndarray"
        text += f" and not {y}.dtype.hasobject)):\n"
        text += _OPERAND.format(pad=pad, x=x) + _VALUES.format(pad=pad, x=x) + f"{pad}{y}v = {y}\n"
        text += _single(prim, rules, number, values, pad)
    return text + "    return None\n"
