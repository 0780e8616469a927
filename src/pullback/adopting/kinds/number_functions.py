"""Functions of ``math`` and ``cmath`` on traced numbers that are no ufunc of NumPy's: parts of numbers, distances, the
gamma function, polar coordinates."""

import cmath
import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from pullback.primitives.shaping.reshaping import python_number
from pullback.recording.handles import Handle, value
from pullback.rules.declaration import primitive

BERNOULLI: Final = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)
"""B(2k) / 2k for k = 1, 2, ...: of the asymptotic series of digamma (Abramowitz and Stegun, 6.3.18)."""
LARGE: Final = 12.0
"""The least number for which the series has all digits of a double."""


def double(x: Any) -> Any:
    """A number as ``math`` computes with it: a tracer in double precision, and of one element."""
    if not isinstance(x, Handle):
        return x
    number: Any = x
    number = number.reshape(()) if number.shape else number
    return number if number.dtype.char in "dD" else number.astype(np.result_type(number.dtype, np.float64))


def digamma(x: Any) -> Any:
    """The derivative of the logarithm of the gamma function: by its recurrence from where the series holds."""
    steps = max(0, math.ceil(LARGE - float(value(x))))
    y: Any = x + float(steps)
    found = np.log(y) - 0.5 / y - sum(part / y ** (2 * k) for k, part in enumerate(BERNOULLI, 1))
    return found - sum(1.0 / (x + float(k)) for k in range(steps))


_gamma = primitive(
    lambda x: np.float64(math.gamma(x)), name="math.gamma", operands=("x",),
    vjps={"x": lambda ct, x, out: ct * out * digamma(x)},
)  # fmt: skip
_lgamma = primitive(
    lambda x: np.float64(math.lgamma(x)), name="math.lgamma", operands=("x",),
    vjps={"x": lambda ct, x: ct * digamma(x)},
)  # fmt: skip


def _ldexp(x: Any, i: int) -> Any:
    return x * 2.0**i


def _frexp(x: Any) -> Any:
    _, exponent = math.frexp(value(x))
    return python_number(x * 2.0**-exponent), exponent


def _modf(x: Any) -> Any:
    _, whole = math.modf(value(x))
    return python_number(x - whole), whole


def _remainder(x: Any, y: Any) -> Any:
    plain_x, plain_y = value(x), value(y)
    return x - y * float(round((plain_x - math.remainder(plain_x, plain_y)) / plain_y))


def _dist(p: Any, q: Any) -> Any:
    return np.sqrt(sum(np.square(double(a) - double(b)) for a, b in zip(p, q, strict=True)))


def _polar(z: Any) -> Any:
    return python_number(np.abs(z)), python_number(np.angle(z))


def _rect(r: Any, phi: Any) -> Any:
    return r * np.cos(phi) + 1j * (r * np.sin(phi))


MATH: Final[dict[str, Callable[..., Any]]] = {
    "ldexp": _ldexp, "frexp": _frexp, "modf": _modf, "remainder": _remainder, "dist": _dist,
    "gamma": lambda x: _gamma(double(x)), "lgamma": lambda x: _lgamma(double(x)),
}  # fmt: skip
"""What a function of ``math`` is on tracers."""
CMATH: Final[dict[str, Callable[..., Any]]] = {"polar": _polar, "rect": _rect}
"""The same of ``cmath``."""


def further_names(original: Any) -> dict[str, Callable[..., Any]]:
    """The functions of ``math`` or ``cmath`` for adopted code: the module's own, where no argument is traced."""
    return {name: _of(getattr(original, name), call) for name, call in (CMATH if original is cmath else MATH).items()}


def _of(plain: Callable[..., Any], traced: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        given = [part for x in args for part in (x if isinstance(x, list | tuple) else (x,))]
        if not any(isinstance(part, Handle) for part in given):
            return plain(*args)
        made = traced(*args)
        return made if isinstance(made, tuple) else python_number(made)

    return staticmethod(call)
