"""numpy.emath (numpy.lib.scimath): functions whose result is complex where a real element lies outside their domain.

One such element makes the whole result complex. At a real x the slope is real inside the domain. Outside it is real too
(log, arctanh), or imaginary (sqrt, arcsin, arccos). A real operand sees Re(ct slope): for a real slope the real part of
ct times it, for an imaginary one minus the imaginary part of ct times it. So the rules for a real operand compute with
real numbers, and are as good as those of ``ufunc_rules``, infinite slopes included. The rules for a complex operand are
holomorphic, on the side of the branch cut that the sign of a zero imaginary part says.
"""

from collections.abc import Callable
from math import pi
from typing import Any

import numpy as np

from pullback.primitives.elementwise.ufunc_rules import LN2, LN10, exact, is_complex
from pullback.primitives.shaping.as_array import as_array
from pullback.primitives.shared.masked_arithmetic import over, silent, times
from pullback.rules.declaration import Composite, Primitive, composite, primitive

emath = np.lib.scimath


def _real(ct: Any) -> Any:
    return ct.real if is_complex(ct) else ct


# --------------------------------------------------------------------------------------------------------- one argument
def _sqrt(ct: Any, x: Any) -> Any:
    """1 / (2 sqrt(x)); outside, with sqrt(x) = i sqrt(-x), it is -i / (2 sqrt(-x))."""
    if is_complex(x):
        return over(ct, 2 * np.sqrt(x))
    real_part = np.where(x < 0, ct.imag, ct.real) if is_complex(ct) else ct
    return over(real_part, 2 * np.sqrt(np.absolute(x)))


def _logarithm(constant: tuple[float, Any]) -> Callable[..., Any]:
    """1 / (x ln(base)), inside and outside: the imaginary part of the logarithm of a negative number is constant."""

    def rule(ct: Any, x: Any) -> Any:
        return over((ct if is_complex(x) else _real(ct)) / exact(constant, ct), x)

    return rule


def _arcsin(ct: Any, x: Any) -> Any:
    """1 / sqrt(1 - x**2); outside, where arcsin(x) = sign(x) pi / 2 + i arccosh(|x|), it is i sign(x) / sqrt(x**2 -
    1)."""
    if is_complex(x):
        # Not (1 - x)(1 + x): where the imaginary part of x is -0, that of 1 - x and of 1 + x is +0, and sqrt is then on
        # the other side of its cut.
        return over(ct, np.sqrt(-(x - 1)) * np.sqrt(x - -1))
    real_part = np.where(np.absolute(x) > 1, -np.sign(x) * ct.imag, ct.real) if is_complex(ct) else ct
    return over(real_part, np.sqrt(np.absolute(1 - x)) * np.sqrt(np.absolute(1 + x)))


def _arctanh(ct: Any, x: Any) -> Any:
    """1 / (1 - x**2), inside and outside."""
    return over(over(ct if is_complex(x) else _real(ct), 1 - x), 1 + x)


def _unary(function: Callable[..., Any], rule: Callable[..., Any]) -> tuple[Primitive, Composite]:
    """The primitive, and the function itself, which also takes lists and its argument by name."""
    name = function.__name__
    declared = primitive(function, name=f"complex_{name}", operands=("x",), reach="place", vjps={"x": silent(rule)})
    return declared, Composite(f"emath.{name}", lambda x: declared(as_array(x)), (function,))


UNARY = (
    *_unary(emath.sqrt, _sqrt),
    *_unary(emath.log, lambda ct, x: over(ct if is_complex(x) else _real(ct), x)),
    *_unary(emath.log2, _logarithm(LN2)),
    *_unary(emath.log10, _logarithm(LN10)),
    *_unary(emath.arcsin, _arcsin),
    *_unary(emath.arccos, lambda ct, x: _arcsin(-ct, x)),
    *_unary(emath.arctanh, _arctanh),
)


# -------------------------------------------------------------------------------------------------------- two arguments
@composite(emath.logn, name="emath.logn")
def logn(n: Any, x: Any) -> Any:
    """numpy.emath.logn: the logarithm of x to the base n, either of which may be traced."""
    return emath.log(as_array(x)) / emath.log(as_array(n))


@silent
def _power_x(ct: Any, x: Any, p: Any) -> Any:
    """P x**(p - 1), for negative x with (-1)**(p - 1) = exp(i pi (p - 1)), which is real for integers p."""
    p = as_array(p)  # a traced Python number is saved as one
    if p.dtype.kind in "iub":
        less = p.astype(np.float64) - 1  # uint8(0) - 1 is 255
        return times(times(ct if is_complex(x) else _real(ct), p), np.power(x, less))
    if is_complex(x) or is_complex(p):
        return times(times(ct, p), emath.power(x, p - 1))
    if is_complex(ct):
        angle = pi * (p - 1)
        ct = np.where(x < 0, ct.real * np.cos(angle) - ct.imag * np.sin(angle), ct.real)
    return times(times(ct, p), np.power(np.absolute(x), p - 1))


@silent
def _power_p(ct: Any, x: Any, out: Any) -> Any:
    """x**p log(x); 0 at x = 0."""
    return times(times(ct, out), emath.log(np.where(x == 0, 1, x)))


complex_power = primitive(
    emath.power, name="complex_power", operands=("x", "p"), reach="place", vjps={"x": _power_x, "p": _power_p}
)


@composite(emath.power, name="emath.power")
def power(x: Any, p: Any) -> Any:
    """numpy.emath.power."""
    return complex_power(as_array(x), as_array(p))


SCIMATH: tuple[Primitive | Composite, ...] = (*UNARY, logn, complex_power, power)
