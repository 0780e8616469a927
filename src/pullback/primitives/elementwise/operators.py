"""Python's operators, which are not their ufuncs.

Among Python floats they give Python floats, which take the dtype of what they meet later, and NumPy computes them on
its scalars without the ufunc, with other last bits for complex ones. The rules are those of the ufuncs; only the
forward differs, so that a trace computes what the user wrote.
"""

import operator
from collections.abc import Callable
from typing import Any

from pullback.primitives.elementwise import ufunc_rules as elementwise
from pullback.recording.copies import faithful_copy
from pullback.rules.declaration import Primitive, primitive


def _operator(function: Callable[..., Any], ufunc: Primitive, symbol: str = "", kind: str = "operator") -> Primitive:
    rules = {operand: tuple(rule.fn for rule in rules) for operand, rules in ufunc.rules.items()}
    made: Primitive = primitive(
        function, name=f"{kind}_{ufunc.name}", operands=ufunc.operands, vjps=rules, linear=ufunc.linear, symbol=symbol,
        # in place, a float32 array stays one whatever it is multiplied by
        elementwise=True, trusted=kind == "operator",
    )  # fmt: skip
    return made


def _written(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function``, an operator in place, on a copy that lies in memory as the original does."""

    def computed(x: Any, y: Any) -> Any:
        out = faithful_copy(x)
        return function(out, out if y is x else y)

    return computed


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
IN_PLACE = (
    _operator(_written(operator.imul), elementwise.multiply, kind="in_place"),
    _operator(_written(operator.ipow), elementwise.power, kind="in_place"),
)
"""Into an array of one element, or with gaps, or backwards, NumPy computes products and powers by another loop than
into a new array, with other last bits: of complex numbers, and of powers."""
