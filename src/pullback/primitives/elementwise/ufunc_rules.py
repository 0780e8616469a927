# ruff: noqa: PLW0108 - a rule is a lambda even where it only calls a function: the names of its parameters say what is
# saved
"""The rules of NumPy's universal functions, one line each: what a function saves, and what it does to a cotangent.

The parameters of a rule after ``ct`` are what is saved. :func:`either` makes two rules of one in ``out``: the second
saves ``x`` and computes ``out`` again, with the same bits. The rule whose value is held anyway is the one that runs.
:func:`times` and :func:`over` are ``*`` and ``/`` that keep a cotangent of 0 at 0. They stand where a slope can be
infinite (see ``masked_arithmetic``).

Complex numbers: ``ct`` is df/dx - i df/dy of the real result f, so a holomorphic rule is ``ct * f'(z)`` without a
conjugate.
"""

from collections.abc import Callable
from math import log, pi
from typing import Any

import numpy as np

from pullback.primitives.shared.masked_arithmetic import as_one_call, over, silent, times, where_true
from pullback.rules.declaration import Primitive, elementwise, primitive

# Each as a Python number, which widens nothing, and with all digits of a longdouble.
LN2, LN10 = (log(2), np.log(np.longdouble(2))), (log(10), np.log(np.longdouble(10)))
DEGREE = (pi / 180, np.arctan(np.longdouble(1)) / 45)


def exact(constant: tuple[float, Any], ct: Any) -> Any:
    """The constant in the precision of a cotangent."""
    dtype = getattr(ct, "dtype", None)
    return constant[dtype is not None and dtype.char in "gG"]


def either(function: Callable[..., Any], rule: Callable[..., Any]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The rule that reads ``out``, and the same rule on ``function(x)``."""
    return rule, silent(lambda ct, x: rule(ct, function(x)))


def is_complex(x: Any) -> bool:
    """True for a complex array, NumPy scalar, tracer or Python number."""
    return bool(x.dtype.kind == "c") if hasattr(x, "dtype") else isinstance(x, complex)


# ----------------------------------------------------------------------------------------------------------- arithmetic
positive = elementwise(np.positive, linear="x", x=lambda ct: ct)
negative = elementwise(np.negative, linear="x", x=lambda ct: -ct)
add = elementwise(np.add, linear="x y", x=lambda ct: ct, y=lambda ct: ct)
subtract = elementwise(np.subtract, linear="x y", x=lambda ct: ct, y=lambda ct: -ct)
multiply = elementwise(np.multiply, x=lambda ct, y: ct * y, y=lambda ct, x: ct * x)
divide = elementwise(np.divide, x=lambda ct, y: over(ct, y), y=lambda ct, y, out: times(over(-ct, y), out))
conjugate = elementwise(np.conjugate, x=lambda ct: np.conjugate(ct))
deg2rad = elementwise(np.deg2rad, linear="x", x=lambda ct: ct * exact(DEGREE, ct))
radians = elementwise(np.radians, linear="x", x=lambda ct: ct * exact(DEGREE, ct))
rad2deg = elementwise(np.rad2deg, linear="x", x=lambda ct: ct / exact(DEGREE, ct))
degrees = elementwise(np.degrees, linear="x", x=lambda ct: ct / exact(DEGREE, ct))

# ------------------------------------------------------------------------------------------ exponentials and logarithms
# exp overflows where a mask may hide it, as in where(x > 30, x, log1p(exp(x))): times, not *.
exp = elementwise(np.exp, x=either(np.exp, lambda ct, out: times(ct, out)))
exp2 = elementwise(np.exp2, x=either(np.exp2, lambda ct, out: times(ct * exact(LN2, ct), out)))
# Not out + 1, which has lost its digits at x = -40.
expm1 = elementwise(np.expm1, x=silent(lambda ct, x: times(ct, np.exp(x))))
ln = elementwise(np.log, x=lambda ct, x: over(ct, x))
log2 = elementwise(np.log2, x=lambda ct, x: over(ct / exact(LN2, ct), x))
log10 = elementwise(np.log10, x=lambda ct, x: over(ct / exact(LN10, ct), x))
log1p = elementwise(np.log1p, x=lambda ct, x: over(ct, 1 + x))


@silent
def _gap(y: Any, x: Any) -> Any:
    """The difference y - x, and 0 where both are the same infinity; NaN operands stay NaN."""
    return np.where((x == y) & np.isinf(x), 0, y - x)


# exp(x - out) would do as well for finite numbers, but is NaN at infinities and off by eps * out.
logaddexp = elementwise(
    np.logaddexp,
    x=silent(lambda ct, x, y: ct / (1 + np.exp(_gap(y, x)))),
    y=silent(lambda ct, x, y: ct / (1 + np.exp(_gap(x, y)))),
)
logaddexp2 = elementwise(
    np.logaddexp2,
    x=silent(lambda ct, x, y: ct / (1 + np.exp2(_gap(y, x)))),
    y=silent(lambda ct, x, y: ct / (1 + np.exp2(_gap(x, y)))),
)

# ----------------------------------------------------------------------------------------------------- roots and powers
square = elementwise(np.square, x=lambda ct, x: ct * (x + x))
sqrt = elementwise(np.sqrt, x=either(np.sqrt, lambda ct, out: over(ct, out + out)))
cbrt = elementwise(np.cbrt, x=either(np.cbrt, lambda ct, out: over(ct, 3 * (out * out))))
reciprocal = elementwise(np.reciprocal, x=either(np.reciprocal, lambda ct, out: times(times(-ct, out), out)))


def _power_x(ct: Any, x: Any, y: Any) -> Any:
    """The derivative is y x**(y - 1). At x = 0: 0 for y = 0, infinite for other y < 1."""
    if type(y) in (int, float) and y == 2:  # the exponent of nearly every call: one product, no power
        return ct * (x + x)
    whole = as_one_call(y)
    return _power_x_general(ct, x, y) if whole is None else whole(_power_x, _power_x_into, ct, x, y)


def _power_x_into(ct: Any, x: Any, y: Any, out: Any) -> Any:
    out[...] = _power_x(ct, x, y)
    return out


@silent
def _power_x_general(ct: Any, x: Any, y: Any) -> Any:
    if not hasattr(y, "dtype"):
        return times(ct * y, np.power(x, y - 1))
    if y.dtype != ct.dtype:
        # uint8(0) - 1 is 255, and the 1 would cost a float16 exponent digits that a float64 x has.
        y = y.astype(ct.dtype)
    return times(times(ct, y), np.power(x, y - 1))


@silent
def _power_y(ct: Any, x: Any, out: Any) -> Any:
    """The derivative is x**y log(x). 0 at x = 0; NaN at a negative real x, where x**y is no function of a real y."""
    whole = as_one_call(x)
    if whole is not None:
        return whole(_power_y, _power_y_into, ct, x, out)
    if hasattr(x, "dtype") and x.dtype != ct.dtype:
        x = x.astype(ct.dtype)  # the logarithm of a uint8 is a float16, and one of a float32 has no more digits
    elif isinstance(x, int | float) and not isinstance(x, np.generic):  # NumPy has no logarithm of 2**70
        x = (complex if ct.dtype.kind == "c" else float)(x)
    slope = np.log(np.where(x == 0, 1, x))
    if isinstance(x, int | float | complex) and not isinstance(x, np.generic):  # must not widen a float32 y
        slope = slope.item()
    return times(times(ct, out), slope)


def _power_y_into(ct: Any, x: Any, out: Any, place: Any) -> Any:
    place[...] = _power_y(ct, x, out)
    return place


power = elementwise(np.power, x=_power_x, y=_power_y)
# Not declared elementwise: with a Python number it widens, which no other function of two operands does.
float_power = primitive(
    np.float_power, operands=("x", "y"), serves=(np.float_power,), vjps={"x": _power_x, "y": _power_y}
)

# ------------------------------------------------------------------------------- trigonometric and hyperbolic functions
sin = elementwise(np.sin, x=lambda ct, x: ct * np.cos(x))
cos = elementwise(np.cos, x=lambda ct, x: ct * -np.sin(x))  # so NumPy negates and multiplies in place
tan = elementwise(np.tan, x=either(np.tan, lambda ct, out: ct * (1 + out * out)))
sinh = elementwise(np.sinh, x=silent(lambda ct, x: times(ct, np.cosh(x))))
cosh = elementwise(np.cosh, x=silent(lambda ct, x: times(ct, np.sinh(x))))
tanh = elementwise(np.tanh, x=either(np.tanh, lambda ct, out: ct * (1 - out * out)))


# Of complex x: x - -1 and -(x - 1) keep the sign of an imaginary part 0, which says on which side of a branch cut x is;
# 1 + x and 1 - x lose it. A root is taken of each factor, because their product can overflow.
def _cathetus(x: Any) -> Any:
    """The root of 1 - x**2, by factors, which keep the digits that the square loses near 1."""
    return np.sqrt(-(x - 1)) * np.sqrt(x - -1) if is_complex(x) else np.sqrt((1 - x) * (1 + x))


def _hypotenuse(x: Any) -> Any:
    """The root of 1 + x**2. Beyond 1e10 the 1 has no digits left in any precision, and the root is x or -x,
    whichever lies to the right."""
    if not is_complex(x):
        return np.hypot(1, x)
    far = np.absolute(x) > 1e10
    near = np.where(far, 1, x)
    return np.where(far, np.where(np.signbit(x.real), -x, x), np.sqrt(near * near - -1))


def _over_factors(ct: Any, first: Any, second: Any) -> Any:
    """Ct / (first second), where the product can overflow."""
    return over(over(ct, first), second)


arcsin = elementwise(np.arcsin, x=silent(lambda ct, x: over(ct, _cathetus(x))))
arccos = elementwise(np.arccos, x=silent(lambda ct, x: over(-ct, _cathetus(x))))
arctan = elementwise(
    np.arctan, x=silent(lambda ct, x: _over_factors(ct, x - 1j, x + 1j) if is_complex(x) else over(ct, 1 + x * x))
)
arcsinh = elementwise(np.arcsinh, x=silent(lambda ct, x: over(ct, _hypotenuse(x))))
arccosh = elementwise(np.arccosh, x=silent(lambda ct, x: over(over(ct, np.sqrt(x - 1)), np.sqrt(x - -1))))
arctanh = elementwise(np.arctanh, x=silent(lambda ct, x: _over_factors(ct, 1 - x, 1 + x)))


def _safe(norm: Any) -> Any:
    """The norm as a divisor: 1 in the place of 0, where the numerator is 0 too. 0 is in the subdifferential of a
    norm at the origin."""
    return np.where(norm == 0, 1, norm)


@silent
def _share(ct: Any, x: Any, norm: Any) -> Any:
    """Ct x / norm; of an infinite x all of it, as in the limit."""
    endless = np.isinf(x)
    return ct * (np.where(endless, np.sign(x), x / _safe(norm)) if endless.any() else x / _safe(norm))


hypot = elementwise(np.hypot, x=lambda ct, x, out: _share(ct, x, out), y=lambda ct, y, out: _share(ct, y, out))


def _moderate(square: Any) -> bool:
    """Whether a sum of squares has neither overflowed nor lost its digits anywhere; False for a NaN, and for a
    Python number."""
    if not getattr(square, "size", 0):
        return False
    limits = np.finfo(square.dtype)
    return bool(np.min(square) > limits.tiny / limits.eps and np.max(square) < np.inf)


@silent
def _turn(ct: Any, other: Any, x: Any, y: Any) -> Any:
    """Ct other / (x**2 + y**2) without overflow; 0 at the origin, and infinitely far from it."""
    square = x * x + y * y
    if getattr(x, "dtype", None) == getattr(y, "dtype", None) and _moderate(square):
        return ct * (other / square)
    norm = np.hypot(x, y)
    radius = _safe(norm)
    slope, endless = np.where(norm == 0, 0, other / radius), np.isinf(radius)
    if endless.any():
        slope = np.where(endless & ~np.isnan(x) & ~np.isnan(y), 0, slope)
    return ct * slope / radius


arctan2 = elementwise(np.arctan2, x=lambda ct, x, y: _turn(ct, y, x, y), y=lambda ct, x, y: -_turn(ct, x, x, y))


# -------------------------------------------------------------------------------------------- absolute values and signs
@silent
def _conjugate_direction(x: Any) -> Any:
    """Conj(x) / |x|, 0 at 0."""
    direction = np.conjugate(x) / _safe(np.absolute(x))
    # Not finite by the reciprocal of a subnormal |x|, or at an infinity: np.sign has both right, but is slow.
    lost = ~np.isfinite(direction)
    return np.where(lost, np.conjugate(np.sign(x)), direction) if lost.any() else direction


def _absolute(ct: Any, x: Any) -> Any:
    """Ct sign(x), for complex x ct conj(x) / |x|; 0 at 0."""
    if is_complex(x):
        return ct * _conjugate_direction(x)
    return ct * np.sign(x)


def _signed(ct: Any, sign: Any, y: Any) -> Any:
    """Ct sign(x) sign(y), with the signs of zeros in y; 0 at x = 0."""
    return ct * (sign * np.copysign(sign, y))


absolute = elementwise(np.absolute, x=_absolute)
fabs = elementwise(np.fabs, x=_absolute)
copysign = elementwise(np.copysign, x=lambda ct, x, y: _signed(ct, np.sign(x), y), y=lambda ct: np.zeros_like(ct))
heaviside = elementwise(np.heaviside, x=lambda ct: np.zeros_like(ct), y=lambda ct, x: np.where(x == 0, ct, 0))


# ---------------------------------------------------------------------------------------------------- the larger of two
def _chosen(ct: Any, x: Any, y: Any, wins: Any, loses: Any, nan_wins: bool) -> Any:
    """Ct where x is the result, half of it where x and y tie. A NaN wins (maximum, minimum) or loses (fmax, fmin); two
    NaNs tie.

    ``wins`` and ``loses`` are comparisons, hence plain arrays, also where x and y are traced.
    """
    if np.logical_xor(wins, loses).all():
        return where_true(ct, wins)
    x_nan, y_nan = np.isnan(x), np.isnan(y)
    only_x, only_y = x_nan & ~y_nan, y_nan & ~x_nan
    wins, loses = (wins | only_x, loses | only_y) if nan_wins else (wins | only_y, loses | only_x)
    return np.where(wins, ct, np.where(loses, 0, 0.5 * ct))


def _extremum(ufunc: Any, wins: Any, loses: Any, *, nan_wins: bool) -> Primitive:
    return elementwise(
        ufunc,
        masks=True,
        x=lambda ct, x, y: _chosen(ct, x, y, wins(x, y), loses(x, y), nan_wins),
        y=lambda ct, x, y: _chosen(ct, y, x, wins(y, x), loses(y, x), nan_wins),
    )


maximum = _extremum(np.maximum, np.greater, np.less, nan_wins=True)
minimum = _extremum(np.minimum, np.less, np.greater, nan_wins=True)
fmax = _extremum(np.fmax, np.greater, np.less, nan_wins=False)
fmin = _extremum(np.fmin, np.less, np.greater, nan_wins=False)

# ---------------------------------------------------------------------------------- remainders, and numbers taken apart
# x = quotient * y + remainder with a quotient that is constant between the jumps. At a jump NumPy's quotient says which
# side counts.
remainder = elementwise(np.remainder, x=lambda ct: ct, y=silent(lambda ct, x, y: times(-ct, np.floor_divide(x, y))))
# rint makes the quotient exact: trunc(x / y) is one off where x / y rounds up to an integer.
fmod = elementwise(np.fmod, x=lambda ct: ct, y=silent(lambda ct, x, y, out: times(-ct, np.rint((x - out) / y))))

divmod_ = primitive(
    np.divmod,
    name="divmod",
    operands=("x", "y"),
    outputs=("quotient", "rest"),
    serves=(np.divmod,),
    vjps={
        "x": lambda ct: np.zeros_like(ct[0]) if ct[1] is None else ct[1],
        "y": silent(lambda ct, quotient: np.zeros_like(ct[0]) if ct[1] is None else times(-ct[1], quotient)),
    },
)
modf = primitive(
    np.modf,
    operands=("x",),
    outputs=("fraction", "whole"),
    serves=(np.modf,),
    vjps={"x": lambda ct: np.zeros_like(ct[1]) if ct[0] is None else ct[0]},
)
frexp = primitive(
    np.frexp,
    operands=("x",),
    outputs=("mantissa", "exponent"),
    serves=(np.frexp,),
    vjps={"x": silent(lambda ct, exponent: np.ldexp(ct[0], -exponent))},
)
ldexp = primitive(
    np.ldexp,
    operands=("x", "exponent"),
    nondiff=("exponent",),
    elementwise=True,
    linear=("x",),
    serves=(np.ldexp,),
    vjps={"x": lambda ct, exponent: np.ldexp(ct, exponent)},
)


ELEMENTWISE: tuple[Primitive, ...] = (
    *(positive, negative, add, subtract, multiply, divide, conjugate, deg2rad, radians, rad2deg, degrees),
    *(exp, exp2, expm1, ln, log2, log10, log1p, logaddexp, logaddexp2),
    *(square, sqrt, cbrt, reciprocal, power, float_power),
    *(sin, cos, tan, sinh, cosh, tanh, arcsin, arccos, arctan, arcsinh, arccosh, arctanh, hypot, arctan2),
    *(absolute, fabs, copysign, heaviside, maximum, minimum, fmax, fmin),
    *(remainder, fmod, divmod_, modf, frexp, ldexp),
)
