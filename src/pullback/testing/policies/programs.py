"""Small programs with a loop of a given length, for checking policies: marked steps with writes, a loop function, an
unmarked loop."""

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from pullback.loops.functions.loop_functions import fori_loop
from pullback.programs.marks.step_marks import steps


def string(n: int) -> Callable[..., Any]:
    """A vibrating string, leapfrog with writes into slices, its energy summed on the way; the steps are marked."""

    def vibrating_string(speed: Any) -> Any:
        before, now = np.zeros_like(speed), np.sin(speed)
        squared, loss = speed**2, 0.0
        for _ in steps(n):
            new = 2.0 * now - before
            new[1:-1] += 0.1 * squared[1:-1] * (now[2:] - 2.0 * now[1:-1] + now[:-2])
            new[0] = 0.0
            before, now = now, new
            loss = loss + np.sum(now[::2] ** 2)
        return loss

    return vibrating_string


def pendulum(n: int) -> Callable[..., Any]:
    """A damped pendulum by symplectic Euler as a loop function; the damping is a traced value that the body closes
    over."""

    def damped_pendulum(angle: Any, damping: Any) -> Any:
        def body(k: int, state: Any) -> Any:
            q, p = state
            p = p - 0.1 * np.sin(q) - 0.01 * k * damping * p
            return q + 0.1 * p, p

        q, p = fori_loop(0, n, body, (angle, np.cos(angle)))
        return np.sum(q * p)

    return damped_pendulum


def logistic(n: int) -> Callable[..., Any]:
    """The logistic map in a plain loop that marks nothing: one stretch of records for the policy to cut."""

    def logistic_map(x: Any, rate: Any) -> Any:
        for k in range(n):
            x = x + 0.1 * rate * x * (1.0 - x) / (k + 1)
        return x

    return logistic_map


PROGRAMS: Final[tuple[tuple[Callable[[int], Callable[..., Any]], tuple[Any, ...]], ...]] = (
    (string, (np.array([0.3, 0.7, 0.9, 1.1, 0.8]),)),
    (pendulum, (np.array([0.4, -0.2]), np.float64(0.3))),
    (logistic, (np.array([0.2, 0.5, 0.7]), 1.3)),
)
"""Each program with arguments for it."""
