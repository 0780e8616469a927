"""The control for which a charged particle, driven by two charges, meets the origin."""

from typing import Any

import numpy as np
from benchmarks.gradbench.programs.descent import MODES, argmin

import pullback as pb

STEP = 0.1


@pb.staged
def potential(position: Any, w: Any) -> Any:
    """Of charges at (10, 10 - w) and (10, 0)."""
    x, y = position
    return 1.0 / np.sqrt((x - 10.0) ** 2 + (y - 10.0 + w) ** 2) + 1.0 / np.sqrt((x - 10.0) ** 2 + y**2)


def control(start: float, modes: str) -> Any:
    """The w that minimises where the particle crosses the axis; ``modes`` are those of the outer and of the inner
    derivative, r or f each."""
    outer, inner = MODES[modes[0]], MODES[modes[1]]
    force = inner(potential)

    def crossing(control: Any) -> Any:
        """The square of x where y is 0, by Euler's method."""
        position, velocity, w = np.array([0.0, 8.0]), np.array([0.75, 0.0]), control[0]
        while True:
            acceleration = -force(position, w)
            position = position + STEP * velocity
            if position[1] <= 0.0:
                return (position[0] - position[1] / velocity[1] * velocity[0]) ** 2
            velocity = velocity + STEP * acceleration

    return argmin(crossing, outer(crossing), np.array([start]))[0]
