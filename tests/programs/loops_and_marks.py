"""Small programs of every form: loop functions of known and unknown length, marked steps, plain code."""

import numpy as np

import pullback as pb


def looped(x):
    return np.sum(pb.fori_loop(0, 50, lambda k, u: u + 0.1 * np.sin(u) * np.exp(-u * k), np.abs(x)) ** 2)


def two_loops(x):
    y = pb.fori_loop(0, 12, lambda k, u: u + 0.1 * np.sin(u), np.abs(x) + 0.1)
    return np.sum(pb.fori_loop(0, 30, lambda k, u: np.roll(u, 1) * 0.9 + np.cos(u), y) * y)


def unknown(x):
    return np.sum(pb.while_loop(lambda u: np.sum(pb.value(u)) < 400, lambda u: u * 1.02 + 0.01 * np.sin(u), x) ** 2)


def marked(x):
    u = np.abs(x)
    for _ in pb.steps(40):
        u = u + 0.1 * np.sin(u) * np.exp(-u)
    return np.sum(u**2)


def plain(x):
    u = np.abs(x)
    for _ in range(40):
        u = u + 0.1 * np.sin(u) * np.exp(-u)
    return np.sum(u**2)


def nested_gradients(x, k):
    """A gradient of a gradient, with a loop and a policy of the thread's own."""

    def inner(y):
        return np.sum(pb.fori_loop(0, 4, lambda j, u: np.sin(u * (k + 1)) * x + y, y, policy=pb.Binomial(1 + k % 3)))

    return np.sum(pb.grad(inner)(x) * np.cos(x))
