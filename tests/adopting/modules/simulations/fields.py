"""Electromagnetic FDTD: fields of an object, written in place."""

import numpy as np


class Grid:
    courant = 0.5

    def __init__(self, shape, eps):
        self.E = np.zeros(shape)
        self.H = np.zeros(shape)
        self.inverse = np.ones(shape) * 1.0
        self.inverse[4:8, 3:6] = 1.0 / eps
        self.weights = np.arange(shape[0]) * 0.1
        self.time_steps_passed = 0

    def __setitem__(self, key, value):
        self.E[key] += value

    def step(self):
        curl = np.zeros_like(self.E)
        curl[:, 1:] += self.H[:, 1:] - self.H[:, :-1]
        curl[1:, :] -= self.H[1:, :] - self.H[:-1, :]
        self.E += self.courant * self.inverse * curl
        self.H[:, :-1] += self.courant * (self.E[:, 1:] - self.E[:, :-1])
        self.H[:-1, :] -= self.courant * (self.E[1:, :] - self.E[:-1, :])
        self.time_steps_passed += 1


def run(eps, steps=15):
    grid = Grid((12, 10), eps)
    for t in range(steps):
        grid[5, 5] = np.sin(0.3 * t)
        grid.step()
    grid.weights[2] = eps
    return np.sum(grid.E**2) + grid.weights @ grid.E[:, 4] + grid.time_steps_passed
