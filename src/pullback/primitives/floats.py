"""Arithmetic on Python floats, which gives Python floats: they take the dtype of what they meet later, as NumPy's scalars do not.

The rules are those of the ufuncs of the same name.
"""

import operator
from collections.abc import Callable
from typing import Any

from pullback.declare import Primitive, primitive
from pullback.primitives import elementwise


def _on_floats(function: Callable[..., Any], ufunc: Primitive) -> Primitive:
    rules = {operand: rules[0].fn for operand, rules in ufunc.rules.items()}
    return primitive(function, name=f"float_{ufunc.name}", operands=ufunc.operands, vjps=rules, linear=ufunc.linear, elementwise=True)


FLOATS = (
    _on_floats(operator.add, elementwise.add),
    _on_floats(operator.sub, elementwise.subtract),
    _on_floats(operator.mul, elementwise.multiply),
    _on_floats(operator.truediv, elementwise.divide),
    _on_floats(operator.mod, elementwise.remainder),
    _on_floats(operator.pos, elementwise.positive),
    _on_floats(operator.neg, elementwise.negative),
    _on_floats(abs, elementwise.absolute),
)
