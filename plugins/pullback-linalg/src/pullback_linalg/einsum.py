"""einsum in all its forms: repeated indices, ellipsis, implicit output, sublists, ``optimize=``.

The forward is NumPy's own call, so that bits and views are NumPy's. With one operand NumPy gives a view where nothing
is summed, and so do we; with two, the rule of each reads the other; with more, the rules share what is kept.
"""

from typing import Any

import numpy as np

import pullback as pb
from pullback_linalg.products import as_array
from pullback_linalg.subscripts import Plan, Shape, from_sublists, plan
from pullback_linalg.unguarded import primitive

LARGE = 65_536
"""Products above which a rule lets NumPy choose matrix products (``optimize=True``), which costs some 15 us of
planning.

Measured on one core: at 32^3 products the plain loop and the planned one take equally long.
"""


def _forward(*arrays: Any, subscripts: str, optimize: Any, options: tuple[tuple[str, Any], ...]) -> Any:
    return np.einsum(subscripts, *arrays, optimize=optimize, **dict(options))


def _pulled(ct: Any, others: tuple[Any, ...], how: Plan, optimize: Any) -> Any:
    """The cotangent of one operand, from that of the output and the other operands."""
    planned = optimize is not False or (how.work > LARGE and bool(others))
    g = np.einsum(how.subscripts, ct, *others, optimize=planned)
    if how.reshape is not None:
        g = g.reshape(how.reshape)
    if how.spread is not None:
        g = np.broadcast_to(g, how.spread)
    return g if how.term is None else on_diagonal(g, term=how.term, letters=how.letters, shape=how.shape)


def _place(x: Any, *, term: str, letters: str, shape: Shape) -> Any:
    """Zeros of ``shape`` with ``x`` where the indices that share a letter are equal: the transpose of
    ``einsum('ii->i', x)``."""
    placed = np.zeros(shape, x.dtype)
    np.einsum(f"{term}->{letters}", placed)[...] = x  # NumPy documents this view as writable
    return placed


on_diagonal = primitive(
    _place,
    name="einsum_diagonal",
    linear=("x",),
    vjps={"x": lambda ct, term, letters: np.einsum(f"{term}->{letters}", ct)},
)


# ---------------------------------------------------------------------------------------------- one, two, many operands
def _rule_one(ct: Any, x_spec: Any, subscripts: str, optimize: Any) -> Any:
    return _pulled(ct, (), plan(subscripts, (x_spec.shape,), 0), optimize)


def _rule_x(ct: Any, y: Any, x_spec: Any, y_spec: Any, subscripts: str, optimize: Any) -> Any:
    return _pulled(ct, (y,), plan(subscripts, (x_spec.shape, y_spec.shape), 0), optimize)


def _rule_y(ct: Any, x: Any, x_spec: Any, y_spec: Any, subscripts: str, optimize: Any) -> Any:
    return _pulled(ct, (x,), plan(subscripts, (x_spec.shape, y_spec.shape), 1), optimize)


def _rule_many(ct: Any, arrays: tuple[Any, ...], arrays_spec: Any, index: int, subscripts: str, optimize: Any) -> Any:
    others = tuple(array for k, array in enumerate(arrays) if k != index)
    return _pulled(ct, others, plan(subscripts, tuple(spec.shape for spec in arrays_spec), index), optimize)


einsum_one = primitive(
    lambda x, *, subscripts, optimize, options: _forward(x, subscripts=subscripts, optimize=optimize, options=options),
    name="einsum_view",
    view=True,
    linear=("x",),
    vjps={"x": _rule_one},
)
einsum_two = primitive(
    lambda x, y, *, subscripts, optimize, options: _forward(
        x, y, subscripts=subscripts, optimize=optimize, options=options
    ),
    name="einsum_pair",
    bilinear=("x", "y"),
    vjps={"x": _rule_x, "y": _rule_y},
)
einsum_many = primitive(_forward, name="einsum_many", bilinear=("arrays",), vjps={"arrays": _rule_many})


@pb.composite(np.einsum, name="einsum")
def np_einsum(*operands: Any, optimize: Any = False, **options: Any) -> Any:
    """numpy.einsum; ``dtype=``, ``order=`` and ``casting=`` mean what they mean to NumPy."""
    subscripts, arrays = (operands[0], operands[1:]) if isinstance(operands[0], str) else from_sublists(operands)
    which = {1: einsum_one, 2: einsum_two}.get(len(arrays), einsum_many)
    arrays = tuple(map(as_array, arrays))
    dtype = options.get("dtype")
    if dtype is not None and np.dtype(dtype).kind == "f" and options.get("casting") == "unsafe":
        arrays = tuple(np.real(a) if a.dtype.kind == "c" else a for a in arrays)  # all that a loop of reals reads
    return which(*arrays, subscripts=subscripts, optimize=optimize, options=tuple(options.items()))


EINSUM = (on_diagonal, einsum_one, einsum_two, einsum_many, np_einsum)
