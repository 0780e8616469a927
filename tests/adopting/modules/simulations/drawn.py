"""Random numbers that reorder arrays, by generators old and new."""

import numpy as np


def run(a):
    out = 0.0
    for rng in (np.random.default_rng(3), np.random.RandomState(4)):
        y = np.linspace(0.1, 1.0, 6) * a
        m = np.arange(12.0).reshape(4, 3) * a
        out = out + rng.permutation(y) @ np.arange(6.0) + (rng.permutation(m)[1] * [1, 2, 3]).sum()
        rng.shuffle(y)
        rng.shuffle(m)
        out += y[0] * m[0, 1] + rng.choice(y, 3, replace=False)[1] + rng.choice(y) + rng.choice(y, size=(2, 2)).sum()
    g = np.random.default_rng(1)
    out += g.permuted(m, axis=1)[0, 0] + g.permutation(m, axis=1)[0, 1] ** 2 + g.choice(m, 2, axis=1)[1].sum()
    g.shuffle(m, axis=1)
    np.random.seed(0)
    np.random.shuffle(y)
    return out + m[0, 0] + np.random.permutation(y)[0] * y[1] + np.random.choice(y, p=np.ones(6) / 6)
