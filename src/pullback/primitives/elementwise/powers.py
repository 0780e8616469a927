"""The rules of powers. Of a number of Python's they ask what it is."""

from typing import Any

import numpy as np

from pullback.primitives.elementwise.ufunc_rules import is_complex
from pullback.primitives.shared.masked_arithmetic import as_one_call, silent, times
from pullback.rules.declaration import Primitive, elementwise, primitive


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
    if is_complex(ct) and not is_complex(x):  # Python's own power: of a number below zero it is complex
        x = x + 0j
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

POWERS: tuple[Primitive, ...] = (power, float_power)
