# A rule is a lambda even where it only calls a function: the names of its parameters say what is saved.
# ruff: noqa: PLW0108
"""Complex numbers: real and imaginary parts, angle, sign, and the names NumPy has for conjugation.

``ct`` is df/dx - i df/dy of the real result f, with z = x + iy. A real operand sees
the real part of its cotangent; that is the executor's work.
"""

from math import pi
from typing import Any

import numpy as np

from pullback.primitives.elementwise.ufunc_rules import is_complex
from pullback.primitives.shaping.as_array import as_array
from pullback.recording.handles import plain_value
from pullback.rules.declaration import Composite, Primitive, composite, primitive

real = primitive(lambda x: np.real(x), name="real", reach="place", view=True, vjps={"x": lambda ct: ct})
imag = primitive(
    lambda x: np.imag(x), name="imag", reach="place", view=True, serves=(np.imag,), vjps={"x": lambda ct: -1j * ct}
)
conj = Composite("conj", np.conjugate, ())


@composite(np.real, name="numpy.real")
def np_real(val: Any) -> Any:
    """numpy.real: of a real array, the array itself."""
    return val.real if hasattr(val, "real") else real(val)


@composite(np.angle)
def angle(z: Any, deg: bool = False) -> Any:
    """numpy.angle, by its own formula; the derivative at 0 is 0."""
    radians = np.arctan2(z.imag, z.real) if is_complex(z) else np.arctan2(0, z)
    return radians * (180 / pi) if deg else radians


@composite(np.real_if_close)
def real_if_close(a: Any, tol: float = 100) -> Any:
    """numpy.real_if_close: the real part where every imaginary part is below ``tol`` (in units of eps if above 1)."""
    a = as_array(a)
    if not is_complex(a):
        return a
    bound = np.finfo(a.dtype).eps * tol if tol > 1 else tol
    return a.real if np.all(np.absolute(plain_value(a).imag) < bound) else a


def _direction(ct: Any, x: Any, out: Any) -> Any:
    """(ct - Re(ct s) conj(s)) / |z| with s = z / |z|: what turns z and does not stretch it; 0 at 0."""
    size = np.absolute(x)
    return np.where(size == 0, 0, (ct - (ct * out).real * np.conjugate(out)) / np.where(size == 0, 1, size))


def _turned(t: Any, x: Any, out: Any) -> Any:
    """The tangent: (t - s Re(conj(s) t)) / |z|. Not the rule above: the sign is no holomorphic function."""
    size = np.absolute(x)
    return np.where(size == 0, 0, (t - (t * np.conjugate(out)).real * out) / np.where(size == 0, 1, size))


complex_sign = primitive(
    lambda x: np.sign(x), name="complex_sign", elementwise=True, vjps={"x": _direction}, jvps={"x": _turned}
)


@composite(np.sign)
def sign(x: Any) -> Any:
    """numpy.sign: the plain value for real numbers, z / |z| for complex ones, which does have a derivative."""
    return complex_sign(x) if is_complex(x) else np.sign(plain_value(x))


COMPLEXES: tuple[Primitive | Composite, ...] = (real, np_real, imag, conj, angle, real_if_close, complex_sign, sign)
