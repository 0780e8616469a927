"""N bodies under gravity, leapfrog, scalars by ``math`` and energies in lists."""

import math
from dataclasses import dataclass, field

import numpy as np

from .parts import energies


@dataclass
class Bodies:
    mass: np.ndarray
    pos: np.ndarray
    vel: np.ndarray
    log: list = field(default_factory=list)

    def acceleration(self, softening):
        x, y = self.pos[:, 0:1], self.pos[:, 1:2]
        dx, dy = x.T - x, y.T - y
        inv_r3 = dx**2 + dy**2 + softening**2
        inv_r3[inv_r3 > 0] = inv_r3[inv_r3 > 0] ** (-1.5)
        return np.hstack(((dx * inv_r3) @ self.mass, (dy * inv_r3) @ self.mass))


def run(softening, n=5, steps=6):
    rng = np.random.default_rng(17)
    bodies = Bodies(20.0 * np.ones((n, 1)) / n, rng.normal(size=(n, 2)), rng.normal(size=(n, 2)))
    bodies.vel -= np.mean(bodies.mass * bodies.vel, 0) / np.mean(bodies.mass)
    dt = 0.01 * math.exp(-softening)
    acc = bodies.acceleration(softening)
    for _ in range(steps):
        bodies.vel += acc * dt / 2.0
        bodies.pos += bodies.vel * dt
        acc = bodies.acceleration(softening)
        bodies.vel += acc * dt / 2.0
        bodies.log.append(energies.kinetic(bodies))
    series = np.array(bodies.log)
    return series.mean() + np.array([series[0], math.sqrt(softening), 3.0]).sum()
