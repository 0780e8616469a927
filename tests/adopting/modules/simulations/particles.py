"""Smoothed particles and a histogram of them, with structured constants and text."""

import numpy as np

H = 0.3


def kernel(r, h):
    return (1.0 / (h * np.sqrt(np.pi))) ** 2 * np.exp(-(r**2) / h**2)


def run(k, n=7, steps=4):
    rng = np.random.RandomState(3)
    pos = rng.rand(n, 2)
    vel = np.zeros(pos.shape)
    m = 2.0 / n
    lines = []
    for step in range(steps):
        d = pos[:, None, :] - pos[None, :, :]
        r = np.sqrt((d**2).sum(-1) + 1e-9)
        rho = np.sum(m * kernel(r, H), 1)
        P = k * rho**1.5
        weight = -m * (P / rho**2)[:, None] * (2 / H**2) * kernel(r, H)
        acc = -np.einsum("ij,ijk->ik", weight, d) - 2.0 * pos - vel
        vel += 0.01 * acc
        pos += 0.01 * vel
        lines.append("%d %.3e" % (step, rho.max()))
        if isinstance(k, float) and type(pos) is not np.ndarray:
            raise TypeError("pos is no array")
    cells = np.floor(pos * 4).astype(int)
    counts = np.zeros(8)
    np.add.at(counts, np.clip(cells[:, 0], 0, 7), rho)
    return counts @ np.arange(8) + len(lines) * k
