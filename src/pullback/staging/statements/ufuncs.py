"""Which function of NumPy's computes a statement, which computes it into an array that is given, and what NumPy's
warnings call it."""

from typing import Any

import numpy as np

from pullback.backends.plans import Ref
from pullback.staging.statements.symbols import UNASKED, Program, Statement
from pullback.staging.statements.writes import sign_of

_UFUNCS: dict[str, np.ufunc] = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "/": np.true_divide, "%": np.remainder, "//": np.floor_divide,
    "&": np.bitwise_and, "|": np.bitwise_or, "<": np.less, "<=": np.less_equal, ">": np.greater,
    ">=": np.greater_equal, "==": np.equal, "!=": np.not_equal, "@": np.matmul,
}  # fmt: skip
_WRITES = {"=": "cast", "+=": "add", "-=": "subtract"}
_POWERS = {-1: "reciprocal", 0.5: "sqrt", 2: "square"}
"""The powers of an array, by a number, that NumPy computes by other ufuncs than ``power``."""
_UNARY: dict[str, np.ufunc] = {"-": np.negative, "~": np.invert}


def ufunc_of(statement: Statement) -> Any:
    """The ufunc by which a statement can be computed into an array; None where there is none."""
    if statement.ufunc is UNASKED:
        statement.ufunc = _found(statement)
    return statement.ufunc


def _found(statement: Statement) -> Any:
    if statement.kwargs or statement.writes:
        return None
    if isinstance(statement.function, np.ufunc):
        return statement.function if statement.function.nout == 1 else None
    if statement.symbol in _UNARY and len(statement.args) == 1:
        return _UNARY[statement.symbol]
    return _UFUNCS.get(statement.symbol)


def elementwise_ufunc_of(statement: Statement) -> Any:
    """The ufunc of a statement where it computes element by element: neither a product of matrices nor the like, which
    may not be computed over an operand, and whose bits depend on how operands lie in memory."""
    ufunc = ufunc_of(statement)
    return None if ufunc is None or ufunc.signature else ufunc


def into_of(statement: Statement) -> Any:
    """What computes a statement into an array that it is given last; None where nothing does."""
    return ufunc_of(statement) or statement.computes_into


def name_in_warnings(program: Program, statement: Statement) -> str:
    """What NumPy calls that which a statement computes, in its warnings."""
    made = program.samples[statement.makes]
    if statement.writes:
        return _WRITES.get(sign_of(statement.function), "a write")
    if statement.symbol == "**" and isinstance(program.samples[statement.reads[0]], np.ndarray):
        exponent = statement.args[1]
        exponent = program.samples[exponent.number] if type(exponent) is Ref else exponent
        return _POWERS.get(exponent, "power") if isinstance(exponent, float | int) else "power"
    function = ufunc_of(statement) or (np.power if statement.symbol == "**" else statement.function)
    name = str(getattr(function, "__name__", "a function"))
    return f"scalar {name}" if statement.symbol and not isinstance(made, np.ndarray) else name
