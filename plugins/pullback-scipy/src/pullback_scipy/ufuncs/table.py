"""How a universal function of SciPy becomes a primitive: a ufunc, and a rule for each operand that has one.

A rule calls ``scipy.special`` itself, so it is differentiable in turn. An operand without a rule, such as the order of
a Bessel function, may be given, and raises :class:`pullback.MissingRuleError` where it is traced.
"""

from typing import Any

import numpy as np

import pullback as pb


def row(ufunc: Any, operands: str = "", *, name: str = "", **rules: Any) -> pb.Primitive:
    """One line of a table: ``row(special.erf, x=lambda ct, x: ...)``. ``operands`` names all of them, where not each
    has a rule."""
    made: pb.Primitive = pb.primitive(
        ufunc,
        name=f"special.{name or ufunc.__name__.lstrip('_')}",
        operands=tuple(operands.split()) or tuple(rules),
        elementwise=True,
        guarded=False,
        serves=(ufunc,),
        vjps=rules,
    )
    return made


def real_only(x: Any, title: str, instead: str) -> Any:
    """``x``; raises :class:`pullback.NotDifferentiableError` where it is complex, and says what to write instead."""
    if np.iscomplexobj(pb.value(x)):
        raise pb.NotDifferentiableError(f"scipy.special.{title} of complex numbers has no derivative here; {instead}")
    return x
