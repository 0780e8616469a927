"""Python's operators (+ - * / ** %), whose values can differ from those of the ufuncs.

Two Python floats give a Python float, which later takes the dtype of what it meets. On its scalars NumPy computes an
operator without the ufunc, and the last bits of complex results differ. So the forward is the operator itself, and a
trace computes what the user wrote. The rules are those of the ufuncs.
"""

import operator
from collections.abc import Callable
from typing import Any

from pullback.primitives.elementwise import powers, ufunc_rules
from pullback.recording.copies import faithful_copy
from pullback.rules.declaration import Primitive, primitive


def _operator(function: Callable[..., Any], ufunc: Primitive, symbol: str = "", kind: str = "operator") -> Primitive:
    rules = {operand: tuple(rule.fn for rule in rules) for operand, rules in ufunc.rules.items()}
    declared: Primitive = primitive(
        function, name=f"{kind}_{ufunc.name}", operands=ufunc.operands, vjps=rules, linear=ufunc.linear, symbol=symbol,
        # in place, a float32 array stays one whatever it is multiplied by
        elementwise=True, trusted=kind == "operator",
    )  # fmt: skip
    return declared


def _written(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function``, an operator in place, on a copy that lies in memory as the original does."""

    def computed(x: Any, y: Any) -> Any:
        out = faithful_copy(x)
        return function(out, out if y is x else y)

    return computed


OPERATORS = (
    _operator(operator.add, ufunc_rules.add, "+"),
    _operator(operator.sub, ufunc_rules.subtract, "-"),
    _operator(operator.mul, ufunc_rules.multiply, "*"),
    _operator(operator.truediv, ufunc_rules.divide, "/"),
    _operator(operator.pow, powers.power, "**"),
    _operator(operator.mod, ufunc_rules.remainder, "%"),
    _operator(operator.pos, ufunc_rules.positive, "+"),
    _operator(operator.neg, ufunc_rules.negative, "-"),
    _operator(abs, ufunc_rules.absolute),
)
IN_PLACE = (
    _operator(_written(operator.imul), ufunc_rules.multiply, kind="in_place"),
    _operator(_written(operator.ipow), powers.power, kind="in_place"),
)
"""Products and powers in place. Where the target has one element, gaps, or a negative stride, NumPy computes them by
another loop than for a new array: the last bits of powers, and of complex products, differ."""
