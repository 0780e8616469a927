"""``y = sum(tanh(a x + b) exp(-x x) + sqrt(1 + x x))`` and its gradient by hand, plainly and with ``out=``.

The plain versions are what one writes down from the formula, and hold 6 arrays at the peak; the tuned ones hold 4,
the results among them. With ``t``, ``e``, ``s`` the three terms: ``dy/dx = a e (1 - t t) - 2 x t e + x / s``,
``dy/da = x e (1 - t t)``, ``dy/db = e (1 - t t)``.
"""

from typing import Any

import numpy as np

Array = Any


def program(x: Array, a: Array, b: Array) -> Array:
    """The expression itself, as a user writes it; operands may be arrays, Python scalars or tracers."""
    return np.sum(np.tanh(a * x + b) * np.exp(-x * x) + np.sqrt(1.0 + x * x))


def scalar_operands(x: Array, a: float, b: float) -> tuple[Array, Array]:
    """``(y, dy/dx)``; ``a`` and ``b`` are Python scalars that are not differentiated."""
    t, e, s = np.tanh(a * x + b), np.exp(-x * x), np.sqrt(1.0 + x * x)
    y = np.sum(t * e + s)
    return y, a * e * (1.0 - t * t) - 2.0 * x * t * e + x / s


def traced_operands(x: Array, a: Array, b: Array) -> tuple[Array, Array, Array, Array]:
    """``(y, dy/dx, dy/da, dy/db)``; ``a`` and ``b`` are arrays of the shape of ``x``."""
    t, e, s = np.tanh(a * x + b), np.exp(-x * x), np.sqrt(1.0 + x * x)
    y = np.sum(t * e + s)
    ct_b = e * (1.0 - t * t)
    return y, a * ct_b - 2.0 * x * t * e + x / s, x * ct_b, ct_b


def scalar_operands_tuned(x: Array, a: float, b: float) -> tuple[Array, Array]:
    """As :func:`scalar_operands`, in place."""
    t = x * a
    t += b
    np.tanh(t, out=t)
    square = x * x
    e = np.negative(square)
    np.exp(e, out=e)
    square += 1.0
    s = np.sqrt(square, out=square)
    work = t * e
    work += s
    y = np.sum(work)
    ct = np.multiply(t, t, out=work)
    np.subtract(1.0, ct, out=ct)
    ct *= e
    ct *= a
    t *= e
    t *= x
    t *= 2.0
    ct -= t
    np.divide(x, s, out=s)
    ct += s
    return y, ct


def traced_operands_tuned(x: Array, a: Array, b: Array) -> tuple[Array, Array, Array, Array]:
    """As :func:`traced_operands`, in place."""
    t = x * a
    t += b
    np.tanh(t, out=t)
    square = x * x
    e = np.negative(square)
    np.exp(e, out=e)
    square += 1.0
    s = np.sqrt(square, out=square)
    work = t * e
    work += s
    y = np.sum(work)
    ct_b = np.multiply(t, t, out=work)
    np.subtract(1.0, ct_b, out=ct_b)
    ct_b *= e
    t *= e
    t *= x
    t *= 2.0
    ct_x = np.multiply(ct_b, a, out=e)
    ct_x -= t
    np.divide(x, s, out=s)
    ct_x += s
    return y, ct_x, np.multiply(ct_b, x, out=t), ct_b
