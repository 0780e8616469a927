"""Which operations of a step need not be computed before its body goes on."""

from typing import Any

import numpy as np

from pullback.rules.declaration import Primitive

_BY_VALUE = (".curves.", ".sets")
"""Modules of the core whose primitives look at what they are given."""
_TOTAL = frozenset(("operator_add", "operator_subtract", "operator_multiply", "operator_negative", "operator_positive"))
"""Operators of Python's numbers that never fail."""
_MASKS = frozenset(("where", "condition"))
"""Operands without derivative that say which elements, but not how many."""


def may_wait(prim: Any) -> bool:
    """Whether a primitive can be computed after the body has gone on: it neither fails for what its operands hold, nor
    does the spec of its result depend on that.

    So it is for whatever is elementwise, linear or a view, and for the core's own but for fits and sets; not where an
    operand says how many elements there are.
    """
    if type(prim) is not Primitive:
        return True
    if not _MASKS.issuperset(prim.nondiff) and not prim.elementwise:
        return False
    if prim.elementwise or prim.view or prim.linear or prim.bilinear:
        return True
    module = "numpy" if type(prim.forward) is np.ufunc else str(getattr(prim.forward, "__module__", None))
    if module.startswith(("pullback.primitives.", "pullback.rules.")):
        return not any(part in module for part in _BY_VALUE)
    return module == "numpy" and getattr(np, prim.forward.__name__, None) is prim.forward


def fails_as_a_number(prim: Any, results: tuple[Any, ...]) -> bool:
    """Whether what is computed is Python's own arithmetic on numbers that may raise, or turn complex."""
    return any(result.type in (float, complex) for result in results) and getattr(prim, "name", "") not in _TOTAL
