"""The adjoint of Lorenz-96 under the classical Runge-Kutta method by hand: what the automatic gradient is measured
against.

Written as a NumPy programmer would: the tendency with ``np.roll``, one array of states kept, the stages computed again
in the reverse. With ``f(x) = (x_{i+1} - x_{i-2}) x_{i-1} - x_i + F`` the transpose of its Jacobian at ``x`` takes ``c``
to

    roll(c roll(x, 1), 1) - roll(c roll(x, 1), -2) + roll(c (roll(x, -1) - roll(x, 2)), -1) - c

and the reverse of ``x + dt/6 (k1 + 2 k2 + 2 k3 + k4)`` goes through the stages from the last to the first.
"""

from typing import Any

import numpy as np

Array = Any


def tendency(x: Array, forcing: float) -> Array:
    """dx/dt."""
    return (np.roll(x, -1) - np.roll(x, 2)) * np.roll(x, 1) - x + forcing


def tendency_adjoint(x: Array, c: Array) -> Array:
    """The transposed Jacobian of the tendency at ``x``, times ``c``."""
    before = c * np.roll(x, 1)
    return np.roll(before, 1) - np.roll(before, -2) + np.roll(c * (np.roll(x, -1) - np.roll(x, 2)), -1) - c


def step(x: Array, forcing: float, dt: float) -> Array:
    """The state one time step later."""
    k1 = tendency(x, forcing)
    k2 = tendency(x + (0.5 * dt) * k1, forcing)
    k3 = tendency(x + (0.5 * dt) * k2, forcing)
    k4 = tendency(x + dt * k3, forcing)
    return x + (dt / 6.0) * (k1 + 2.0 * (k2 + k3) + k4)


def stages(x: Array, forcing: float, dt: float) -> tuple[Array, Array, Array]:
    """The states at which the second, third and fourth tendency are taken."""
    x2 = x + (0.5 * dt) * tendency(x, forcing)
    x3 = x + (0.5 * dt) * tendency(x2, forcing)
    return x2, x3, x + dt * tendency(x3, forcing)


def kept_step(x: Array, forcing: float, dt: float) -> tuple[Array, tuple[Array, Array, Array, Array]]:
    """The state one time step later, and the states at which the tendencies were taken."""
    k1 = tendency(x, forcing)
    x2 = x + (0.5 * dt) * k1
    k2 = tendency(x2, forcing)
    x3 = x + (0.5 * dt) * k2
    k3 = tendency(x3, forcing)
    x4 = x + dt * k3
    k4 = tendency(x4, forcing)
    return x + (dt / 6.0) * (k1 + 2.0 * (k2 + k3) + k4), (x, x2, x3, x4)


def step_adjoint(kept: tuple[Array, Array, Array, Array], c: Array, dt: float) -> Array:
    """The transposed Jacobian of a step, times ``c``, from the states at which the tendencies were taken."""
    x, x2, x3, x4 = kept
    sixth, third = (dt / 6.0) * c, (dt / 3.0) * c
    a4 = tendency_adjoint(x4, sixth)
    a3 = tendency_adjoint(x3, third + dt * a4)
    a2 = tendency_adjoint(x2, third + (0.5 * dt) * a3)
    a1 = tendency_adjoint(x, sixth + (0.5 * dt) * a2)
    return c + a1 + a2 + a3 + a4


def run_and_adjoint(x: Array, ct: Array, n_steps: int, forcing: float, dt: float) -> tuple[Array, Array]:
    """``(state after n_steps, transposed Jacobian of the run times ct)``; the stages are kept, nothing is computed
    twice."""
    kept = []
    for _ in range(n_steps):
        x, stage = kept_step(x, forcing, dt)
        kept.append(stage)
    for stage in reversed(kept):
        ct = step_adjoint(stage, ct, dt)
    return x, ct
