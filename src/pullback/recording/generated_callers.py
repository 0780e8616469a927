"""The fast way to call an elementwise primitive of one or two operands: a function generated for it, on first use.

It writes the record that ``recorder.call`` would write. ``tracing.callers_by_type`` generates those of other
primitives.
"""

from collections.abc import Callable
from sys import _getframe
from threading import get_ident
from typing import Any, Final

import numpy as np
from attrs import define

from pullback.recording.crossing import present
from pullback.recording.handles import FREE, SAVED, resolve, spec_of_handle
from pullback.recording.recorder import call, finish, hold
from pullback.recording.tape import CAPTURED, RECORDS
from pullback.rules.declaration import Primitive
from pullback.rules.forms import Form
from pullback.rules.generated_code import compile_function, identifier
from pullback.words.call_sites import find_site

_SITE = """{pad}frame = {frame}
{pad}site = tape.sites[frame.f_lasti] if frame.f_code is tape.code else find_site(tape, frame)
{pad}record = ({record}, site)
{pad}records = tape.records
{pad}if tape.mode:
{pad}    tape.governor.before_record(record, ({operands}), ({values}), {{}})
{governed}{pad}    tape.governor.watch(t)
{pad}    return {given}
{made}{pad}return {given}
"""
_MADE = """{pad}t = Tracer()
{pad}t._value = out
{pad}t._id = len(records)
{pad}t._tape = tape
{pad}t._flag = {flag}
{pad}t._spec = spec
{pad}records.append(record)
{masks}"""


_CAPTURED = f"""    if type({{0}}) in served and {{0}}._tape.mode == {CAPTURED}:
        {{0}} = present({{0}}, None)
        if type({{0}}) not in served:
            return prim({{1}})
"""
"""A handle of a trace whose loop records a step is replaced by what stands for it in that step."""
SYMBOLS: Final[dict[Any, str]] = {np.add: "+", np.subtract: "-", np.multiply: "*", np.divide: "/"}
"""The operators whose results go into operands that die, by the ufuncs that compute them."""
_TAKING = frozenset(SYMBOLS.values())
_BY_OPERATOR, _BY_VARIANT = 2, 3
"""How many frames below the user's line a caller runs: below the tracer's operator, and below the narrow variant."""
_NAMES = {
    "ndarray": np.ndarray, "float64": np.float64, "get_ident": get_ident, "getframe": _getframe,
    "find_site": find_site, "call": call, "present": present, "finish": finish, "hold": hold,
    "resolve": resolve, "spec_of_handle": spec_of_handle, "plain": frozenset((float, int, np.ndarray, np.float64)),
}  # fmt: skip
"""What the generated text refers to, besides the classes of handles."""


@define
class Variant:
    """How a generated caller meets its operands: ``narrow`` for tracers alone, or for tracers and views mixed."""

    prim: Primitive
    forms: dict[str, Form]
    """Activity pattern ("1", "10", "01", "11") to the exact form."""
    wide: bool
    fallback: str

    def is_handle(self, kind: str) -> str:
        """The test whether an operand is one of the handles served."""
        return f"{kind} in served" if self.wide else f"{kind} is Tracer"

    def usable(self, x: str) -> str:
        """The test whether the operand's tape records here and now."""
        ready = f" and resolve({x})._id is not None" if self.wide else ""
        return f"{RECORDS} and tape.thread == get_ident(){ready}"

    def keeping(self, pad: str, handle: str, value: str) -> str:
        """The line that makes an operand's value safe to be held."""
        return f"{pad}{value} = hold({handle}, {value}, tape)\n" if self.wide else f"{pad}{handle}._flag = {SAVED}\n"

    def leave(self, pad: str) -> str:
        """The line that hands over to whoever can do more."""
        return f"{pad}return {self.fallback}\n"


def make_caller(prim: Primitive, forms: dict[str, Form], classes: dict[str, Any]) -> Callable[..., Any]:
    """The fast way to call an elementwise primitive of one or two operands, in two variants of one text.

    The first serves tracers, the second also views; whatever is not plain falls through to ``call``. ``forms`` maps an
    activity pattern to its exact form; ``classes`` are those of handles, ``Tracer`` and all that are ``served``, and
    ``called``, which takes what is not.
    """
    operands = "x" if len(prim.operands) == 1 else "x, y"
    namespace = {**_NAMES, **classes, "prim": prim, "forward": prim.forward}
    name = f"call_{identifier(prim)}"
    body = _unary_text if len(prim.operands) == 1 else _binary_text
    wide, narrow = f"{name}_views", name
    last = f"called(prim, ({operands},), {{}})"
    for variant, named in (
        (Variant(prim, forms, True, last), wide),
        (Variant(prim, forms, False, f"{wide}({operands})"), narrow),
    ):
        opening = "".join(_CAPTURED.format(x, operands) for x in operands.split(", ")) if variant.wide else ""
        source = f"def {named}({operands}):\n{opening}{body(variant)}{variant.leave('    ')}"
        namespace[named] = compile_function(named, source, namespace)
    made: Callable[..., Any] = namespace[name]
    return made


def forward_text(prim: Primitive, x: str, y: str = "") -> str:
    """How the forward of one or two operands is written."""
    if prim.symbol:
        return f"{x} {prim.symbol} {y}" if y else f"{prim.symbol}{x}"
    return f"forward({x}, {y})" if y else f"forward({x})"


def _out_text(
    variant: Variant, form: Form, pad: str, active: tuple[str, ...], x: str, y: str = "", unlike: str = ""
) -> str:
    """The forward. A large array that the record does not need is taken over by the result, if it dies. Large arrays
    that lie ``unlike`` each other give a result in the order of memory that plain ones give."""
    plainly, tells = f"out = {forward_text(variant.prim, x, y)}", unlike and _tells_strides(variant.prim)
    taken = _taken_text(variant, form, active, x, y)
    if not taken and not tells:
        return f"{pad}{plainly}\n"
    lines = ["if spec is not None and spec.large:", f"    out = {taken}" if taken else f"    {plainly}"]
    if tells:
        limits = "_".join(["WIDE"] * variant.wide + ["BY_UFUNC"] * (not variant.prim.symbol)) or "NARROW"
        asked = f"{tells!r}, x, y, out, tape, {_frame(variant)}, {limits}"
        lines.append(f"    strides = lies_plainly({asked}) if {unlike} else None")
    lines += ["else:", f"    {plainly}", *(["    strides = None"] if tells else [])]
    return "".join(f"{pad}{line}\n" for line in lines)


def _taken_text(variant: Variant, form: Form, active: tuple[str, ...], x: str, y: str) -> str:
    """The forward of a large array into an operand that dies; nothing where that is not looked for."""
    prim, wide = variant.prim, variant.wide
    free = [h for h, name in zip("xy", prim.operands, strict=False) if h in active and name not in form.saved]
    if not free or not _closed(prim) or (wide and not (y and len(active) > 1)):
        return ""
    if y and prim.symbol in _TAKING:
        return f"taken_over({prim.symbol!r}, {''.join(free)!r}, x, {x}, y, {y}, tape, {_frame(variant)}, wide={wide})"
    if not y and prim.symbol == "-":
        return f"negated(x, xv, tape, {_frame(variant)})"
    by_name = not y and not prim.symbol and isinstance(prim.forward, np.ufunc)
    return f"computed(forward, x, xv, tape, {_frame(variant)})" if by_name else ""


def _tells_strides(prim: Primitive) -> str:
    """The symbol of an operator, or of the ufunc that computes it, that NumPy computes into an operand that dies."""
    symbol = prim.symbol or SYMBOLS.get(prim.forward, "")
    return symbol if symbol in _TAKING and len(prim.operands) == 2 else ""


def _given(prim: Primitive) -> str:
    return "laid_out(t, strides) if strides else t" if _tells_strides(prim) else "t"


def _frame(variant: Variant) -> str:
    return f"getframe({_BY_VARIANT if variant.wide else _BY_OPERATOR})"


def _opening(variant: Variant, operand: str) -> str:
    return (
        f"    if {variant.is_handle(f'type({operand})')}:\n        tape = {operand}._tape\n"
        f"        if {variant.usable(operand)}:\n            {operand}v = {operand}._value\n"
    )


def _unary_text(variant: Variant) -> str:
    prim, form, pad = variant.prim, variant.forms["1"], " " * 12
    text = _opening(variant, "x")
    if prim.has_alternatives:
        text += f"{pad}if x._flag == {SAVED}:\n{pad}    return call(prim, (x,), {{}})\n"
    text += f"{pad}spec = {'x._spec' if _closed(prim) else 'None'}\n"
    text += _out_text(variant, form, pad, ("x",), "xv")
    if prim.name.endswith("absolute"):  # the one unary ufunc whose complex result is real
        text += f"{pad}if out.dtype is not xv.dtype:\n{pad}    return finish(prim, (x,), (xv,), out)\n"
    text += variant.keeping(pad, "x", "xv") if prim.operands[0] in form.saved else ""
    return text + _record_text(variant, form, pad, ("x",), "xv,")


def _record_text(variant: Variant, form: Form, pad: str, active: tuple[str, ...], values: str, given: str = "t") -> str:
    named = dict(zip(form.primitive.operands, ("xv", "yv"), strict=False)) | {"out": "out"}
    parts = [str(form.opcode), *(f"{x}._id" for x in active), *(named[name] for name in form.saved)]
    flag = SAVED if "out" in form.saved else FREE
    governed, made = (
        _MADE.format(pad=p, flag=flag, masks=f"{p}tape.masks = True\n" if form.primitive.masks else "")
        for p in (f"{pad}    ", pad)
    )
    operands = "x, y" if len(form.primitive.operands) > 1 else "x,"
    return _SITE.format(
        pad=pad, record=", ".join(parts), frame=_frame(variant), operands=operands, values=values, governed=governed,
        made=made, given=given,
    )  # fmt: skip


def _binary_text(variant: Variant) -> str:
    """Traced with traced, traced with a Python or NumPy scalar or an array, and the same turned round."""
    prim, forms = variant.prim, variant.forms
    pad = " " * 16
    text = _opening(variant, "x") + f"            kind = type(y)\n            if {variant.is_handle('kind')}:\n"
    text += f"{pad}if y._tape is not tape{' or resolve(y)._id is None' if variant.wide else ''}:\n" + variant.leave(
        pad + "    "
    )
    text += f"{pad}yv = y._value\n{pad}spec = x._spec or spec_of_handle(x)\n"
    text += _out_text(variant, forms["11"], pad, ("x", "y"), "xv", "yv", _unlike("xv", "yv"))
    closed = "spec is not (y._spec or spec_of_handle(y)) and " if _closed(prim) else ""
    text += _inexact_exit(
        prim, pad, f"{closed}({_differs('out', 'xv')} or {_differs('out', 'yv')})", _values_given(text)
    )
    text += "".join(
        variant.keeping(pad, h, f"{h}v")
        for h, name in zip("xy", prim.operands, strict=True)
        if name in forms["11"].saved
    )
    text += _record_text(variant, forms["11"], pad, ("x", "y"), "xv, yv", _given(prim))
    text += "            if kind is float or kind is int:\n"
    text += f"{pad}yv = y\n{pad}spec = x._spec\n" + _out_text(variant, forms["10"], pad, ("x",), "xv", "y")
    text += variant.keeping(pad, "x", "xv") if prim.operands[0] in forms["10"].saved else ""
    text += _record_text(variant, forms["10"], pad, ("x",), "xv, y")
    text += "            if kind is ndarray or kind is float64:\n" + _with_constant(variant, pad, "x", "y")
    text += _opening(variant, "y").replace("    if", "    elif type(x) in plain and", 1)
    return text + _with_constant(variant, " " * 12, "y", "x")


def _with_constant(variant: Variant, pad: str, handle: str, constant: str) -> str:
    """One handle and a plain operand. A small plain array is copied once for as long as it stays what it was."""
    prim, form = variant.prim, variant.forms["10" if handle == "x" else "01"]
    value, kept = f"{handle}v", f"{constant}v"
    first, second = prim.operands if handle == "x" else prim.operands[::-1]
    args = (value, constant) if handle == "x" else (constant, value)
    text = f"{pad}spec = {handle}._spec or spec_of_handle({handle})\n"
    array = f"type({constant}) is ndarray" if handle == "y" else "kind is ndarray"
    text += _out_text(variant, form, pad, (handle,), *args, f"{array} and ({_unlike(value, constant)})")
    closed = "not same and " if _closed(prim) else ""
    text += f"{pad}same = {array} and {constant}.shape == spec.shape and {constant}.dtype is spec.dtype\n"
    text += _inexact_exit(
        prim, pad, f"{closed}(out.shape != spec.shape or out.dtype is not spec.dtype)", f"({', '.join(args)})"
    )
    if second in form.saved:
        text += f"{pad}if same:\n{pad}    k = tape.kept\n"
        unchanged = f"k.array is {constant} and k.spec is spec and k.data == {constant}.tobytes()"
        text += f"{pad}    {kept} = k.copy if {unchanged} else tape.keep({constant})\n"
        text += f"{pad}else:\n{pad}    {kept} = tape.keep({constant}) if {array} else {constant}\n"
    text += variant.keeping(pad, handle, value) if first in form.saved else ""
    return text + _record_text(variant, form, pad, (handle,), ", ".join(args), _given(prim))


def _closed(prim: Primitive) -> bool:
    """True where operands of one shape and floating dtype are sure to give a result of the same: NumPy's own list of
    loops says so, of an operator that of its ufunc."""
    ufunc = getattr(np, prim.name.removeprefix("operator_"), None) if prim.symbol else prim.forward
    loops = getattr(ufunc, "types", ())
    n = len(prim.operands)
    return bool(loops) and all(
        f"{c * n}->{c}" in loops for c in "efdgFDG" if any(loop.startswith(f"{c * n}->") for loop in loops)
    )


def _values_given(text: str) -> str:
    """The values of the operands, one of which the result may have taken over."""
    return "(given(xv, out), given(yv, out))" if "taken_over" in text else "(xv, yv)"


def _differs(a: str, b: str) -> str:
    return f"{a}.shape != {b}.shape or {a}.dtype is not {b}.dtype"


def _unlike(a: str, b: str) -> str:
    return f"out.strides != {a}.strides or out.strides != {b}.strides"


def _inexact_exit(prim: Primitive, pad: str, test: str, values: str) -> str:
    """Leave the fast way when a cotangent would have to be brought back to another shape or dtype."""
    finished = f"t = finish(prim, (x, y), {values}, out, {{}}, tape)"
    return f"{pad}if {test}:\n{pad}    {finished}\n{pad}    return {_given(prim)}\n"
