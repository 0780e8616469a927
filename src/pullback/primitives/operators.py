"""Python's operators, which are not their ufuncs.

Among Python floats they give Python floats, which take the dtype of what they meet later, and NumPy computes them on its scalars without
the ufunc, with other last bits for complex ones. The rules are those of the ufuncs; only the forward differs, so that a trace computes
what the user wrote.
"""

import operator
from collections.abc import Callable
from typing import Any

from pullback.declare import Primitive, primitive
from pullback.primitives import elementwise


def _operator(function: Callable[..., Any], ufunc: Primitive, symbol: str = "") -> Primitive:
    rules = {operand: tuple(rule.fn for rule in rules) for operand, rules in ufunc.rules.items()}
    made: Primitive = primitive(
        function, name=f"operator_{ufunc.name}", operands=ufunc.operands, vjps=rules, linear=ufunc.linear, symbol=symbol,
        elementwise=True, trusted=True,
    )  # fmt: skip
    return made


OPERATORS = (
    _operator(operator.add, elementwise.add, "+"),
    _operator(operator.sub, elementwise.subtract, "-"),
    _operator(operator.mul, elementwise.multiply, "*"),
    _operator(operator.truediv, elementwise.divide, "/"),
    _operator(operator.pow, elementwise.power, "**"),
    _operator(operator.mod, elementwise.remainder, "%"),
    _operator(operator.pos, elementwise.positive, "+"),
    _operator(operator.neg, elementwise.negative, "-"),
    _operator(abs, elementwise.absolute),
)
