"""Specialised code for the hot path, generated on first use from the one declaration of a primitive.

Two kinds of function are written here: a *pull* per form (it takes a record and a cotangent, calls the rules and
accumulates), and a *caller* per elementwise primitive (it records a call of one or two operands without going through
the general recorder). The sources are put into ``linecache``, so a traceback shows them.
"""

import linecache
import re
from collections.abc import Callable
from itertools import count
from typing import Any

from pullback.declare import SPEC, Primitive, Rule
from pullback.forms import Form
from pullback.settle import join, settle, settle_several

_serial = count()


def compile_function(name: str, source: str, namespace: dict[str, Any]) -> Callable[..., Any]:
    """The function ``name`` of ``source``, whose lines tracebacks can show."""
    filename = f"<pullback {name} {next(_serial)}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    exec(compile(source, filename, "exec"), namespace)  # noqa: S102 - generated from declarations, never from user text
    function: Callable[..., Any] = namespace[name]
    return function


def identifier(prim: Primitive) -> str:
    """The primitive's name as a Python identifier."""
    return re.sub(r"\W", "_", prim.name)


def make_pull(form: Form) -> Callable[..., None]:
    """``pull(record, ct, cts, sweep)`` for a form: each rule once, each cotangent settled and joined to what is there."""
    name = f"pull_{identifier(form.primitive)}"
    namespace: dict[str, Any] = {"join": join, "settle": settle, "settle_several": settle_several, "form": form}
    lines = [f"def {name}(record, ct, cts, sweep):"]
    if form.primitive.outputs:
        lines.append("    ct = tuple(ct)")
    for number, (rule, positions) in enumerate(form.rules):
        namespace[f"rule{number}"] = rule.fn
        if rule.joint:
            lines += _joint_lines(form, rule, number, positions, namespace)
        elif len(positions) > 1:
            lines += _family_lines(form, rule, number, positions, namespace)
        else:
            lines += _single_lines(form, rule, number, positions[0])
    lines.append("    return None")
    return compile_function(name, "\n".join(lines) + "\n", namespace)


def _single_lines(form: Form, rule: Rule, number: int, position: int) -> list[str]:
    at = form.active.index(position) + 1
    index = position - len(form.primitive.operands) if form.primitive.family else None
    lines = [f"    g = rule{number}({_arguments(form, rule, index)})"]
    if not form.exact:
        lines.append(f"    g = settle(g, record[{_spec_place(form, f'@{position}')}], form, {position}, record[-1], ct)")
    return [*lines, *_join_lines(at)]


def _join_lines(at: int) -> list[str]:
    return [f"    i = record[{at}]", "    p = cts[i]", "    cts[i] = g if p is None else join(p, g, i, sweep)"]


def _joint_lines(form: Form, rule: Rule, number: int, positions: tuple[int, ...], namespace: dict[str, Any]) -> list[str]:
    namespace[f"needed{number}"] = frozenset(form.primitive.rule_name(p) for p in positions)
    lines = [f"    gs = settle_several(rule{number}({_arguments(form, rule, None, number)}), {len(rule.operands)}, form, record[-1])"]
    for position in positions:
        place = rule.operands.index(form.primitive.rule_name(position))
        spec = _spec_place(form, f"@{position}")
        lines.append(f"    g = settle(gs[{place}], record[{spec}], form, {position}, record[-1], ct)")
        lines += _join_lines(form.active.index(position) + 1)
    return lines


def _family_lines(form: Form, rule: Rule, number: int, positions: tuple[int, ...], namespace: dict[str, Any]) -> list[str]:
    """One rule for many operands of a family: a loop instead of a line each."""
    first = len(form.primitive.operands)
    namespace[f"places{number}"] = tuple((p, p - first, form.active.index(p) + 1, _spec_place(form, f"@{p}")) for p in positions)
    return [
        f"    for position, index, at, spec in places{number}:",
        f"        g = rule{number}({_arguments(form, rule, None)})",
        "        g = settle(g, record[spec], form, position, record[-1], ct)",
        "        i = record[at]",
        "        p = cts[i]",
        "        cts[i] = g if p is None else join(p, g, i, sweep)",
    ]


def _spec_place(form: Form, name: str) -> int:
    return form.first_spec + form.specs.index(name)


def _arguments(form: Form, rule: Rule, index: int | None, number: int = 0) -> str:
    """The text of a rule call's arguments: where in the record each declared name is."""
    prim = form.primitive
    words = ["ct"]
    for name in rule.reads:
        if name == "needed":
            words.append(f"needed{number}")
        elif name == "index":
            words.append("index" if index is None else str(index))
        elif name in prim.params:
            words.append(f"record[-2][{prim.params.index(name)}]")
        elif name.endswith(SPEC):
            words.append(f"record[{_spec_place(form, name)}]")
        else:
            words.append(f"record[{1 + len(form.active) + form.saved.index(name)}]")
    return ", ".join(words)


_PROLOGUE = """def {name}(x{comma_y}):
    if type(x) is Tracer:
        tape = x._tape
        if not tape.mode and tape.thread == get_ident():
            xv = x._value
"""

_SITE = """{pad}frame = getframe(2)
{pad}seen = recent.get(frame.f_lasti)
{pad}site = seen[1] if seen is not None and seen[0] is frame.f_code else intern_site(frame)
{pad}records = tape.records
{pad}t = new(Tracer)
{pad}t._value = out
{pad}t._id = len(records)
{pad}t._tape = tape
{pad}t._flag = {flag}
{pad}records.append(({record}, site))
{pad}return t
"""


def make_caller(prim: Primitive, forms: dict[str, Form], names: dict[str, Any]) -> Callable[..., Any]:
    """The fast way to call an elementwise primitive of one or two operands; whatever is not plain falls through to ``call``.

    ``forms`` maps an activity pattern ("1", "10", "01", "11") to its exact form; ``names`` are what the generated code refers to.
    """
    name = f"call_{identifier(prim)}"
    namespace = dict(names, prim=prim, forward=prim.forward)
    unary = len(prim.operands) == 1
    source = _PROLOGUE.format(name=name, comma_y="" if unary else ", y")
    source += _unary_body(prim, forms["1"]) if unary else _binary_body(prim, forms)
    source += f"    return call(prim, (x{'' if unary else ', y'},), {{}})\n"
    return compile_function(name, source, namespace)


def _forward_text(prim: Primitive, x: str, y: str = "") -> str:
    if prim.symbol:
        return f"{x} {prim.symbol} {y}" if y else f"{prim.symbol}{x}"
    return f"forward({x}, {y})" if y else f"forward({x})"


def _unary_body(prim: Primitive, form: Form) -> str:
    pad = " " * 12
    alternatives = any(len(rules) > 1 for rules in prim.rules.values())
    text = f"{pad}if x._flag == 2:\n{pad}    return call(prim, (x,), {{}})\n" if alternatives else ""
    text += f"{pad}out = {_forward_text(prim, 'xv')}\n"
    if prim.name == "absolute":  # the one unary ufunc whose complex result is real
        text += f"{pad}if out.dtype is not xv.dtype:\n{pad}    return finish(prim, (x,), (xv,), out)\n"
    if "x" in form.saved:
        text += f"{pad}x._flag = 2\n"
    return text + _record_text(form, pad, {"x": "x._id"})


def _record_text(form: Form, pad: str, ids: dict[str, str]) -> str:
    values = {"x": "xv", "y": "yv", "out": "out"}
    operands = form.primitive.operands
    named = dict(zip(operands, ("x", "y"), strict=False)) | {"out": "out"}
    parts = [str(form.opcode), *ids.values(), *(values[named[name]] for name in form.saved)]
    return _SITE.format(pad=pad, flag=2 if "out" in form.saved else 0, record=", ".join(parts))


def _binary_body(prim: Primitive, forms: dict[str, Form]) -> str:
    """Traced with traced, traced with a Python or NumPy scalar or an array, and the same turned round."""
    x, y = prim.operands
    both, left, right = forms["11"], forms["10"], forms["01"]
    pad = " " * 16
    text = "            kind = type(y)\n            if kind is Tracer:\n"
    text += f"{pad}if y._tape is not tape:\n{pad}    return call(prim, (x, y), {{}})\n"
    text += f"{pad}yv = y._value\n{pad}out = {_forward_text(prim, 'xv', 'yv')}\n"
    text += _inexact_exit(pad, ("xv", "yv"))
    text += "".join(f"{pad}{h}._flag = 2\n" for h, name in (("x", x), ("y", y)) if name in both.saved)
    text += _record_text(both, pad, {"x": "x._id", "y": "y._id"})
    text += "            elif kind is float or kind is int:\n"
    text += f"{pad}yv = y\n{pad}out = {_forward_text(prim, 'xv', 'y')}\n"
    text += f"{pad}x._flag = 2\n" if x in left.saved else ""
    text += _record_text(left, pad, {"x": "x._id"})
    text += "            elif kind is ndarray or kind is float64:\n"
    text += f"{pad}out = {_forward_text(prim, 'xv', 'y')}\n" + _inexact_exit(pad, ("xv",), constant="y")
    text += f"{pad}yv = y if kind is float64 else keep(tape, y)\n" if y in left.saved else ""
    text += f"{pad}x._flag = 2\n" if x in left.saved else ""
    text += _record_text(left, pad, {"x": "x._id"})
    text += "    elif type(y) is Tracer and type(x) in plain:\n"
    text += "        tape = y._tape\n        if not tape.mode and tape.thread == get_ident():\n"
    pad = " " * 12
    text += f"{pad}yv = y._value\n{pad}out = {_forward_text(prim, 'x', 'yv')}\n"
    text += _inexact_exit(pad, ("yv",), constant="x", first=True)
    text += f"{pad}xv = keep(tape, x) if type(x) is ndarray else x\n" if x in right.saved else ""
    text += f"{pad}y._flag = 2\n" if y in right.saved else ""
    return text + _record_text(right, pad, {"y": "y._id"})


def _inexact_exit(pad: str, active: tuple[str, ...], constant: str = "", *, first: bool = False) -> str:
    """Leave the fast way when a cotangent would have to be brought back to another shape or dtype."""
    tests = " or ".join(f"out.shape != {v}.shape or out.dtype is not {v}.dtype" for v in active)
    values = f"({constant}, yv)" if first else f"(xv, {constant or 'yv'})"
    return f"{pad}if {tests}:\n{pad}    return finish(prim, (x, y), {values}, out)\n"
