"""A chain of sin, multiply, add on small arrays, forward and backward by hand: the floor of the overhead figures.

``rounds`` rounds of ``x = sin(x); x = x * a; x = x + b``, then ``sum(x)``; 333 rounds are 999 operations. ``x`` has 4
elements in the published figures. Each function returns ``(value, gradients...)`` and keeps only what its backward
pass reads. The sine is the NumPy function, its derivative is taken from the saved operand.
"""

from typing import Any

import numpy as np

Array = Any


def program(x: Array, a: Array, b: Array, rounds: int = 333) -> Array:
    """The chain itself, as a user writes it; operands may be arrays, Python scalars or tracers."""
    for _ in range(rounds):
        x = np.sin(x)
        x = x * a
        x = x + b
    return np.sum(x)


def constant_operands(x: Array, a: Array, b: Array, rounds: int = 333) -> tuple[Array, Array]:
    """``(value, d/dx)``; ``a`` and ``b`` are arrays or Python scalars that are not differentiated."""
    sin, cos = np.sin, np.cos
    angles = []
    for _ in range(rounds):
        angles.append(x)
        x = sin(x)
        x = x * a
        x = x + b
    ct = np.ones_like(x)
    for angle in reversed(angles):
        ct = ct * a
        ct = ct * cos(angle)
    return np.sum(x), ct


def traced_operands(x: Array, a: Array, b: Array, rounds: int = 333) -> tuple[Array, Array, Array, Array]:
    """``(value, d/dx, d/da, d/db)``; ``a`` and ``b`` are arrays of the shape of ``x``."""
    sin, cos = np.sin, np.cos
    saved = []
    for _ in range(rounds):
        sine = sin(x)
        saved.append((x, sine))
        x = sine * a
        x = x + b
    ct, ct_a, ct_b = np.ones_like(x), np.zeros_like(a), np.zeros_like(b)
    for angle, sine in reversed(saved):
        ct_b += ct
        ct_a += ct * sine
        ct = ct * a
        ct = ct * cos(angle)
    return np.sum(x), ct, ct_a, ct_b
