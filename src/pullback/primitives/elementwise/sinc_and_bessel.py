"""Elementwise functions that are no ufuncs: np.sinc, and np.i0, whose derivative is the Bessel function I1."""

from math import factorial, pi, prod
from math import sqrt as root
from typing import Any

import numpy as np

from pullback.primitives.shared.masked_arithmetic import silent, times
from pullback.rules.declaration import Primitive, elementwise, primitive

_SINC_SERIES = tuple((-1) ** k * 2 * k / factorial(2 * k + 1) for k in range(10, 0, -1))


def _polynomial(coefficients: tuple[float, ...], t: Any) -> Any:
    """Horner's rule, highest power first."""
    total = coefficients[0]
    for coefficient in coefficients[1:]:
        total = total * t + coefficient
    return total


def _sinc(ct: Any, x: Any) -> Any:
    """Ct pi j(pi x) with j(y) = d/dy (sin y / y); by its power series for |y| < 1, where the closed form cancels."""
    y = pi * x  # as NumPy: with the digits of a Python number in every precision
    small = np.absolute(y) < 1
    large = np.where(small, 1, y)
    near = np.where(small, y, 0)
    series = near * _polynomial(_SINC_SERIES, near * near)
    return ct * (pi * np.where(small, series, (np.cos(large) - np.sin(large) / large) / large))


sinc = elementwise(np.sinc, x=_sinc)

# The modified Bessel function I1 (Abramowitz and Stegun 9.6.10 and, from 20 on, 9.7.1), which NumPy has not.
_I1_SERIES = tuple(1 / (factorial(k) * factorial(k + 1)) for k in range(44, -1, -1))
_I1_ASYMPTOTIC = tuple(
    (-1) ** k * prod(4 - (2 * j - 1) ** 2 for j in range(1, k + 1)) / (factorial(k) * 8**k) for k in range(30, -1, -1)
)


@silent
def _bessel_i1(x: Any) -> Any:
    size = np.absolute(x)
    small = size < 20  # here both have all digits
    near, far = np.where(small, size, 0), np.where(small, 20, size)
    series = near / 2 * _polynomial(_I1_SERIES, near * near / 4)
    asymptotic = np.exp(far) / (root(2 * pi) * np.sqrt(far)) * _polynomial(_I1_ASYMPTOTIC, 1 / far)
    return np.copysign(np.where(small, series, asymptotic), x)


def _bessel_i1_slope(ct: Any, x: Any, out: Any) -> Any:
    """Ct (I0(x) - I1(x) / x); I1 is x / 2 near 0, where it may vanish in rounding, and both are infinite far away."""
    plain = (np.absolute(x) > 1e-8) & np.isfinite(out)
    return times(ct, np.i0(x) - np.where(plain, out / np.where(plain, x, 1), np.where(np.isfinite(out), 0.5, 0)))


i1 = primitive(
    _bessel_i1,
    name="i1",
    elementwise=True,
    vjps={"x": silent(_bessel_i1_slope)},
)
i0 = elementwise(np.i0, x=silent(lambda ct, x: times(ct, i1(x))))

SINC_AND_BESSEL: tuple[Primitive, ...] = (sinc, i0, i1)
