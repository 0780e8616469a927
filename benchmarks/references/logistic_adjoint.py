"""Logistic growth by Euler's method, ``u + dt c u (1 - u)``, and its adjoint by hand: five operations a step, so that
on small arrays a step is all overhead.

The misfit is the sum of the squares of the last state; gradients are taken by the first state ``u`` and by the rates
``c``, which every step reads. Additions are in the order of the reverse of the step as it is written, so an automatic
gradient has the same bits.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

Array = Any
DT = 0.01


def step(u: Array, c: Array) -> Array:
    """The state one time step later, as a user writes it; operands may be arrays or tracers."""
    return u + DT * (c * u * (1.0 - u))


def kept_step(u: Array, c: Array) -> tuple[Array, tuple[Array, Array, Array]]:
    """The state one time step later, and what its reverse reads: the state, the growth and the room left."""
    growth = c * u
    room = 1.0 - u
    return u + DT * (growth * room), (u, growth, room)


def step_adjoint(kept: tuple[Array, Array, Array], c: Array, ct: Array, ct_c: Array) -> Array:
    """The cotangent one step earlier, in the memory of ``ct``; that of the rates is added to ``ct_c``."""
    u, growth, room = kept
    product = ct * DT
    ct -= product * growth
    product *= room
    ct_c += product * u
    product *= c
    ct += product
    return ct


def value_and_gradient(u: Array, c: Array, n_steps: int) -> tuple[Array, tuple[Array, Array]]:
    """``(misfit, (d/du, d/dc))``; nothing is computed twice."""
    kept = []
    for _ in range(n_steps):
        growth = c * u
        room = 1.0 - u
        kept.append((u, growth, room))
        u = u + DT * (growth * room)
    ct, ct_c = 2.0 * u, np.zeros_like(c)
    value = np.sum(u * u)
    for saved in reversed(kept):
        ct = step_adjoint(saved, c, ct, ct_c)
    return value, (ct, ct_c)


def advance(start: int, stop: int, u: Array, c: Array) -> Array:
    """The state after these steps."""
    for _ in range(start, stop):
        u = u + DT * (c * u * (1.0 - u))
    return u


def value_and_gradient_by(
    follow: Callable[..., Any], table: Any, u: Array, c: Array, n_steps: int
) -> tuple[Array, tuple[Array, Array]]:
    """As :func:`value_and_gradient`, by ``schedules.follow`` and a table of actions that it takes."""
    ct_c = np.zeros_like(c)
    last, ct = follow(
        table,
        n_steps,
        u,
        lambda start, stop, u: advance(start, stop, u, c),
        lambda _, u: kept_step(u, c),
        lambda last: 2.0 * last,
        lambda _, kept, ct: step_adjoint(kept, c, ct, ct_c),
    )
    return np.sum(last * last), (ct, ct_c)
