"""Scalar loops, lists of scalars, an integrator written with ``math``."""

from math import cos, pi, sqrt

import numpy as np

TABLE = np.zeros(4)


def run(c, n=6, steps=3):
    u = np.zeros((n, n))
    u[2, 3] = c
    for _t in range(steps):
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                u[i, j] = (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]) / 4.0 + 0.1 * c
    out = [0.0] * n
    for k in range(n):
        out[k] = u[k, k] * cos(pi * k / n) + sqrt(c)
    TABLE[1] = c * c
    t = 0.0
    while t < c:
        t += 0.25
    return sum(out) + max(out[0], c) + TABLE.sum() + int(t / c) + np.array([[c, 1.0], [2.0, out[1]]]).sum()
