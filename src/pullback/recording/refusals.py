"""What to write instead of a construct that would drop the derivative: read off the user's own expression where its
source is at hand."""

import ast
import re
from typing import Any

from pullback.words.call_sites import site_code, site_here, site_text
from pullback.words.errors import ConversionError, WriteError
from pullback.words.sniffs import instruction, source

PNP = "from pullback import numpy as pnp"
BUFFER = "make the buffer with np.zeros_like(x) (or np.zeros(shape, like=x)), or collect the parts and call np.stack"
"""Instead of filling a plain array."""
NUMBER = (
    "keep it an array: x[i] is a traced scalar, np.sin(x) serves for math.sin(x), x.astype(dtype) for a cast, "
    "np.stack for a list"
)
"""Instead of a Python number."""
ARRAY = f"join traced values with np.stack, or make the same call from pullback.numpy ({PNP}); {BUFFER}"
"""Instead of an array that NumPy makes without asking."""
SCIPY = (
    "SciPy computes on plain arrays: write A @ x for the product by a sparse array, and declare other calls as "
    "primitives with their VJP rules (docs/wrap-a-solver.md has a sparse solver)"
)
"""Instead of handing a tracer to SciPy."""
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
    "matrix": "keep a 2-d array: np.atleast_2d(x), and @ for the product of matrices",
    "broadcast": "write np.broadcast_arrays(x, y), or np.broadcast_shapes(x.shape, y.shape)",
    "nditer": "iterate over x.flat, or write it with NumPy functions on the whole array",
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
    "range": INDEX,
    "fill": "make the buffer with np.full_like(x, value) or np.zeros_like(x); its fill takes a traced value",
    **dict.fromkeys(
        "normal uniform standard_normal exponential gamma beta poisson binomial lognormal laplace choice".split(), DRAW
    ),
}
_BY_PATH = (
    (r"\bma\.\w+$", "keep the mask as an array of its own: np.where(mask, other, x)"),
    (r"^math\.fsum$", "write np.sum(np.stack([...]))"),
    (r"^math\.pow$", "write x**y"),
    (r"^math\.(ceil|floor|trunc)$", INTEGER),
    (r"^math\.(erfc?|l?gamma)$", "declare it with pullback.primitive, as in docs/primitives.md"),
    (r"^c?math\.\w+$", "write the NumPy function of the same name, np.{name}(x)"),
    (r"\.(permutation|shuffle)$", SHUFFLE),
    (r"\.permuted$", PERMUTED),
    (r"\.choice$", "draw the places: x[rng.choice(len(x), size=n)]; their probabilities are plain"),
    (r"\brandom\.\w+$|\brng\.\w+$", DRAW),
)


def rewrite(site: int, otherwise: str) -> str:
    """What to write instead of the user's expression at a call site; ``otherwise`` where the source is not there or
    the call not known."""
    operation, text = expression(site)
    if operation.startswith("STORE"):
        return BUFFER
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        return otherwise
    if isinstance(node, ast.Subscript) and not isinstance(node.value, ast.Attribute):
        return INDEX
    called = node.func if isinstance(node, ast.Call) else node.value if isinstance(node, ast.Subscript) else None
    while isinstance(called, ast.Call):  # np.vectorize(f)(x)
        called = called.func
    path = ast.unparse(called) if called is not None else ""
    name = path.rpartition(".")[2]
    for pattern, text in _BY_PATH:
        if re.search(pattern, path):
            return text.format(name=name)
    return _BY_NAME.get(name, INDEX if isinstance(node, ast.Subscript) else otherwise).format(name=name)


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


BY_LIBRARY = {
    "scipy": SCIPY,
    "pandas": "a Series computes with plain values and aligns them by its index: pass s.to_numpy()",
    "numpy.ma": "keep the mask as an array of its own: np.where(mask, other, x)",
}
"""Instead of handing a tracer to a library, by the package that asks for a plain array."""


def refusal(handle: Any, wanted: str, *, asked_by: str = "") -> ConversionError:
    """The error for a road that would drop the derivative; ``asked_by`` is the library of ``BY_LIBRARY`` that asked."""
    site = site_here()
    instead = BY_LIBRARY[asked_by] if asked_by else rewrite(site, OTHERWISE.get(wanted, NUMBER))
    return ConversionError(
        f"{wanted} of a tracer of shape {handle.shape} and dtype {handle.dtype} would drop the derivative (at "
        f"{site_text(site)}); {instead}; or take pullback.value(x) to leave the derivative behind on purpose"
    )


OTHERWISE = {"a plain array": ARRAY, "an index made": INDEX, "int()": INTEGER}
"""What to do by the road taken, where the expression does not tell."""
