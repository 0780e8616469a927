"""The remedies in error messages: what to write instead of a construct that would drop the derivative. It is read off
the user's own expression where its source is at hand."""

import ast
import re
from collections.abc import Sequence
from types import FrameType
from typing import Any

from pullback.recording.handles import Handle
from pullback.words.call_sites import calls_here, in_adopted_code, intern_site, site_code, site_here, site_text
from pullback.words.errors import ConversionError, WriteError
from pullback.words.other_libraries import named_call, remedy
from pullback.words.undocumented import instruction, of_a_tracer, of_a_write, source

PNP = "from pullback import numpy as pnp"
BUFFER = (
    "make the buffer with np.zeros_like(x) (or np.zeros(shape, like=x)), or with np.array(u0, like=x) where it begins "
    "with values, or collect the parts and call np.stack; or run the program through pullback.adopt, which does so by "
    "itself"
)
"""Instead of filling a plain array."""
_KEPT = (
    "Keep a mask as an array of its own, np.where(mask, other, x); instead of a subclass of ndarray (np.matrix, "
    "np.memmap) write a class that has the array as an attribute, np.array(a) for a matrix, and @ for its products"
)
STILL_PLAIN = (
    "in adopted code a plain array here was made outside the trace (make it in the differentiated function), or is of "
    f"a subclass of ndarray. {_KEPT}"
)
"""Instead of filling what is plain in adopted code."""
NUMBER = (
    "keep it an array: x[i] is a traced scalar, np.sin(x) serves for math.sin(x), x.astype(dtype) for a cast, "
    "np.stack for a list"
)
"""Instead of a Python number."""
ARRAY = f"join traced values with np.stack([...]) first (nested lists with pnp.array, {PNP}), and pass that array"
"""Instead of an array that NumPy makes without asking."""
PLAIN = "write it with NumPy functions, or take pullback.value(x) for what needs no derivative"
"""Instead of what Python and its library do with numbers and text alone."""
TEXT = 'text carries no derivative: write float(pullback.value(x)), or f"{x:g}", which takes the value by itself'
"""Instead of a tracer among the values of ``"%g" % ...``."""
INDEX = "an index is an integer: take int(pullback.value(x)), which leaves the derivative behind"
INTEGER = "an integer carries no derivative: take int(pullback.value(x))"
OWN_FUNCTION = "write it with NumPy functions on the whole array"
SHUFFLE = (
    "draw the places and take the rows: x = x[rng.permutation(len(x))], or x[:] = x[rng.permutation(len(x))] in place, "
    "x[:, rng.permutation(x.shape[1])] along axis 1"
)
"""Instead of shuffling."""
PERMUTED = (
    "draw the places: np.ravel(x)[rng.permuted(np.arange(x.size))].reshape(x.shape), np.take_along_axis for an axis"
)
DRAW = "draw with plain parameters and transform: loc + scale * rng.normal(size=shape)"

_SAME = (
    "arange array asanyarray asarray asarray_chkfinite ascontiguousarray asfortranarray c_ complex64 complex128 "
    "clongdouble float16 float32 float64 fromiter full longdouble r_ require vectorize"
).split()
_BY_NAME = {
    **dict.fromkeys(_SAME, f"write pnp.{{name}} ({PNP})"),
    "array": f"write np.stack([...]), np.array(..., like=x), or pnp.array ({PNP})",
    "asarray": f"write x itself, np.stack([...]), or pnp.asarray ({PNP})",
    "full": f"write np.full_like(a, x), np.full(n, x, like=x), or pnp.full ({PNP})",
    "vectorize": f"{OWN_FUNCTION}, or pnp.vectorize ({PNP})",
    "mgrid": "write np.linspace(start, stop, n), np.arange(n) * step, or take pullback.value(x)",
    **dict.fromkeys(
        ("matrix", "asmatrix", "bmat"), "keep a 2-d array: np.atleast_2d(x), and @ for the product of matrices"
    ),
    "broadcast": f"write np.broadcast_arrays(x, y), np.broadcast_shapes(x.shape, y.shape), or pnp.broadcast ({PNP})",
    "nditer": f"iterate over x.flat, write it with NumPy functions on the whole array, or pnp.nditer ({PNP})",
    **dict.fromkeys(("ndenumerate", "nested_iters"), "write for i in np.ndindex(x.shape): ... x[i] ..."),
    "as_strided": "write np.lib.stride_tricks.sliding_window_view(x, shape), or slices",
    "Polynomial": "write np.polyval(coefficients, x), or Horner's rule",
    "poly1d": "write np.polyval(coefficients, x), or Horner's rule",
    "fill_diagonal": f"write np.where(np.eye(n, dtype=bool), x, a); or {BUFFER}",
    "searchsorted": "a place in a sorted array carries no derivative: pass pullback.value(x)",
    **dict.fromkeys(
        "int int8 int16 int32 int64 uint8 uint16 uint32 uint64 intp bool_ round ceil floor trunc".split(), INTEGER
    ),
    **dict.fromkeys("put place putmask __setitem__ setfield".split(), BUFFER),
    "dot": "write np.dot(a, x) or a @ x: the method of a plain array does not ask",
    "take": f"{INDEX}; for traced values write np.take(x, i)",
    "reshape": INDEX,
    **dict.fromkeys("range zeros ones empty eye identity bytes".split(), INDEX),
    "fill": "make the buffer with np.full_like(x, value) or np.zeros_like(x); its fill takes a traced value",
    **dict.fromkeys(
        "normal uniform standard_normal exponential gamma beta poisson binomial lognormal laplace choice".split(), DRAW
    ),
}
_METHODS = ("dot", "take", "searchsorted")
"""Names in the table that are meant as methods of a plain array."""
_BY_PATH = (
    (r"^statistics\.\w+$", "write the NumPy function on np.stack([...])"),
    (r"\bma\.\w+$", "keep the mask as an array of its own: np.where(mask, other, x)"),
    (r"^math\.fsum$", "write np.sum(np.stack([...]))"),
    (r"^math\.pow$", "write x**y"),
    (r"^math\.(ceil|floor|trunc)$", INTEGER),
    (r"^math\.(erfc?|l?gamma)$", "declare it with pullback.primitive, as in docs/primitives.md"),
    (r"^math\.dist$", "write np.linalg.norm(p - q)"),
    (r"^c?math\.\w+$", "write the NumPy function of the same name, np.{name}(x)"),
    (r"\.(permutation|shuffle)$", SHUFFLE),
    (r"\.permuted$", PERMUTED),
    (r"\.choice$", "draw the places: x[rng.choice(len(x), size=n)]; their probabilities are plain"),
    (r"\brandom\.\w+$|\brng\.\w+$", DRAW),
)


def buffer() -> str:
    """What to write instead of filling the plain array that the user's code fills."""
    return STILL_PLAIN if in_adopted_code() else BUFFER


def rewrite(site: int, otherwise: str) -> str:
    """What to write instead of the user's expression at a call site; ``otherwise`` where the source is not there or
    the call not known."""
    operation, text = expression(site)
    if operation.startswith("STORE"):
        return buffer()
    node = _parsed(text)
    if node is None:
        return otherwise
    if isinstance(node, ast.Subscript) and not isinstance(node.value, ast.Attribute):
        return INDEX
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        return TEXT
    path = _path(node)
    name = path.rpartition(".")[2]
    for pattern, text in _BY_PATH:
        if re.search(pattern, path):
            return text.format(name=name)
    known = None
    if isinstance(node, ast.Call):
        of_numpy = "." not in path or path.startswith(("np.", "numpy."))
        joins = of_numpy and (name not in _BY_NAME or name in _METHODS)
        known = (_with_lists_joined(node) if joins else None) or _with_traced_array(node)
    known = known or _BY_NAME.get(name, INDEX if isinstance(node, ast.Subscript) else otherwise)
    return known.replace("{name}", name)


def _parsed(text: str) -> ast.expr | None:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        return None


def _path(node: ast.expr) -> str:
    """What an expression calls or takes an item of: ``np.sum``; empty where it does neither."""
    called = node.func if isinstance(node, ast.Call) else node.value if isinstance(node, ast.Subscript) else None
    while isinstance(called, ast.Call):  # np.vectorize(f)(x)
        called = called.func
    return ast.unparse(called) if called is not None else ""


def _with_lists_joined(call: ast.Call) -> str | None:
    """The call with the lists among its arguments joined; None where it has none."""
    args = [_joined(argument) for argument in call.args]
    if all(new is old for new, old in zip(args, call.args, strict=True)):
        return None
    text = ast.unparse(ast.Call(call.func, args, call.keywords))
    return f"write {text}{f' ({PNP})' if 'pnp.' in text else ''}"


def _with_traced_array(call: ast.Call) -> str | None:
    """The call of a reduction with a traced array in the place of the plain one, whose ``initial=`` is traced; None for
    other calls."""
    initial = next((part.value for part in call.keywords if part.arg == "initial"), None)
    plain = call.args[0] if call.args else getattr(call.func, "value", None)
    if initial is None or plain is None:
        return None
    traced = ast.Call(ast.parse("np.array", mode="eval").body, [plain], [ast.keyword("like", initial)])
    if call.args:
        call = ast.Call(call.func, [traced, *call.args[1:]], call.keywords)
    else:
        call = ast.Call(ast.Attribute(traced, call.func.attr), [], call.keywords)  # type: ignore[attr-defined]
    return f"an array without derivative does not ask its initial value: write {ast.unparse(call)}"


def _joined(argument: ast.expr) -> ast.expr:
    """A list of values as the call that joins them; anything else as it is."""
    if not isinstance(argument, ast.List | ast.Tuple | ast.ListComp) or all(
        not isinstance(part, ast.Name) for part in ast.walk(argument)
    ):
        return argument
    parts = [argument.elt] if isinstance(argument, ast.ListComp) else argument.elts
    nested = any(isinstance(part, ast.List | ast.Tuple | ast.ListComp) for part in parts)
    join = ast.parse("pnp.array" if nested else "np.stack", mode="eval").body
    return ast.Call(join, [argument], [])


def expression(site: int) -> tuple[str, str]:
    """The name of the instruction at a call site and the source of the expression that it is part of; empty where
    there is no source."""
    code, offset = site_code(site)
    return instruction(code, offset), source(code, offset)


def shuffled() -> WriteError:
    """The error for a function in C that assigns one row of an array to another."""
    return WriteError(
        f"a function that is not Python's assigns a row of a traced array to another of its rows (at "
        f"{site_text(site_here())}): a shuffle exchanges rows so, and would duplicate them, since a row is a view; "
        f"{SHUFFLE}; for operator.setitem write x[i] = x[j]"
    )


_BY_ATTRIBUTE = {
    **dict.fromkeys("numpy detach cpu to_numpy values block_until_ready".split(), "take pullback.value(x)"),
    "at": "write y = x.copy(), then y[i] = value or y[i] += value, which is recorded",
    **dict.fromkeys(
        "backward grad requires_grad requires_grad_".split(),
        "write the program as a function f of x and call pullback.grad(f)(x)",
    ),
    **dict.fromkeys("append extend".split(), "collect the parts in a list and call np.stack, or write np.append(x, y)"),
    **dict.fromkeys("map apply applymap".split(), OWN_FUNCTION),
}
"""Instead of what arrays of other libraries, and lists, have."""


def advice(error: Exception, innermost: FrameType) -> str | None:
    """What to write where Python or NumPy have refused a line without asking the tracer in it; None where the error
    does not tell that there is one. Raises :class:`ConversionError` where another library has."""
    if isinstance(error, AttributeError):
        return _BY_ATTRIBUTE.get(str(error.name)) if isinstance(error.obj, Handle) else None
    if type(error) is ValueError and "read-only" in str(error) and in_adopted_code(innermost):
        raise WriteError(
            f"plain memory of an array of the trace is written to (at {site_text(intern_site(innermost))}), which does "
            f"not follow it: np.asarray, masked arrays and other subclasses of ndarray hold plain numbers. {_KEPT}"
        ) from error
    if not of_a_tracer(error):
        return None
    site, calls = intern_site(innermost), calls_here(innermost)
    if calls:
        name = called_library(site, calls)
        raise ConversionError(
            f"{name} got a tracer (at {site_text(site)}), and computes on plain arrays, which would drop the "
            f"derivative; {remedy(name)}; or take pullback.value(x) to leave the derivative behind on purpose"
        ) from error
    return (
        f"if a tracer stands in this line (at {site_text(site)}), it cannot be converted, which would drop the "
        f"derivative; {rewrite(site, BUFFER if of_a_write(error) else PLAIN)}; see {ConversionError.code}"
    )


def refusal(handle: Any, wanted: str, *, noted: bool = True) -> ConversionError:
    """The error for a road that would drop the derivative, ``noted`` in the trace where who asked may catch it and go
    on with another value, as a bare ``except`` does, and as functions in C do that look at errors late."""
    site, calls = site_here(), calls_here()
    what, asked = f"a tracer of shape {handle.shape} and dtype {handle.dtype}", ""
    if calls:
        name = called_library(site, calls)
        asked, instead = f" {name} computes on plain arrays:", remedy(name)
    else:
        instead = rewrite(site, OTHERWISE.get(wanted, NUMBER))
    # NumPy asks for a number, or an array: the user's line writes.
    writes = instead in {BUFFER, STILL_PLAIN}
    said = f"{what} is written into a plain array, which" if writes else f"{wanted} of {what}"
    text = (
        f"{said} would drop the derivative (at {site_text(site)});{asked} {instead}; or take pullback.value(x) to "
        "leave the derivative behind on purpose"
    )
    tape = handle._tape
    while tape.enclosing is not None:
        tape = tape.enclosing
    tape.refused = text if noted else tape.refused
    return ConversionError(text)


def called_library(site: int, calls: Sequence[tuple[str, str]]) -> str:
    """The function of another library that the user's line has called, by its dotted name."""
    node = _parsed(expression(site)[1])
    return named_call(_path(node) if node is not None else "", calls)


OTHERWISE = {"a plain array made": ARRAY, "an index made": INDEX, "int()": INTEGER, "a pickle": PLAIN}
"""What to do by the road taken, where the expression does not tell."""
