"""The same few steps by every kind of loop: each program takes a vector and returns the last state and a number."""

import numpy as np

import pullback as pb

X = np.array([0.3, 1.0, -0.5, 0.8])
N = 9
POLICIES = [pb.SaveAll(), pb.Recompute(), pb.Binomial(2), pb.Binomial(1)]


def move(u, x):
    return u * np.cos(u) + 0.1 * x[::-1]


def plain(x):
    u = x
    for _ in range(N):
        u = move(u, x)
    return u, np.sum(x * u)


def stepped(x):
    u = x
    for _ in pb.steps(N):
        u = move(u, x)
    return u, np.sum(x * u)


def checkpointed(x):
    u = x
    for _ in range(3):
        u = pb.checkpoint(lambda u: move(move(u, x), x))(u)
    return u, np.sum(x * u)


def looped(x):
    y = np.sin(x)
    u = pb.fori_loop(0, N, lambda _, u: move(u, y), x)
    return u, np.sum(x * u)


def scanned(x):
    forcing = np.outer(np.arange(1.0, N + 1), x)
    u, sums = pb.scan(lambda u, f: (move(u, f), np.sum(u * x)), x, forcing)
    return u, np.sum(sums * sums)


def while_held(x):
    u, _ = pb.while_loop(lambda s: s[1] < N, lambda s: (move(s[0], x), s[1] + 1), (x, 0))
    return u, np.sum(u)


def nested(x):
    inner = lambda u: pb.fori_loop(0, 3, lambda _, v: move(v, x), u, policy=pb.Binomial(1))  # noqa: E731
    u = pb.fori_loop(0, 4, lambda _, u: inner(u) * 0.5, x)
    return u, np.sum(u)


def solved(x):
    body = lambda _, u: pb.fixed_point(lambda v, u: 0.3 * np.cos(v) + 0.2 * u, u, u)  # noqa: E731
    u = pb.fori_loop(0, 3, body, x)
    return u, np.sum(u)


PROGRAMS = [plain, stepped, checkpointed, looped, scanned, while_held, nested, solved]
