"""A trace inside another, closing over values of the outer one: however it reaches them, both derivatives are those of save-all.

The programs compute one thing; ``x`` is the outer trace's, ``u`` the inner one's.
"""

import numpy as np
import pytest

import pullback as pb

X = np.array([0.3, -0.7, 1.1, 0.4])
U = np.array([0.1, 0.4, 0.7, 1.0])
T = np.array([1.0, -2.0, 0.5, 3.0])
POLICIES = (pb.Recompute(), pb.Binomial(1), pb.Binomial(3))
N = 8


def move(u, x):
    return u + 0.3 * np.sin(u * x) * (1 + u[::-1]) * x


def plain(u, x):
    for _ in range(N):
        u = move(u, x)
    return np.sum(u**3)


def stepped(u, x):
    for _ in pb.steps(N):
        u = move(u, x)
    return np.sum(u**3)


def looped(u, x):
    return np.sum(pb.fori_loop(0, N, lambda _, v: move(v, x), u) ** 3)


def scanned(u, x):
    return np.sum(pb.scan(lambda v, _: (move(v, x), v), u, length=N)[0] ** 3)


def looped_in_steps(u, x):
    for _ in pb.steps(N // 2):
        u = pb.fori_loop(0, 2, lambda _, v: move(v, x), u)
    return np.sum(u**3)


def checkpointed(u, x):
    for _ in range(N):
        u = pb.checkpoint(lambda v: move(v, x))(u)
    return np.sum(u**3)


PROGRAMS = (plain, stepped, looped, scanned, looped_in_steps, checkpointed)


def same_in_all(derivative, f):
    """Under every policy the derivative has the bits of save-all, and it is that of the plain program."""
    expected = derivative(f, pb.SaveAll())
    np.testing.assert_allclose(expected, derivative(plain, pb.SaveAll()), rtol=1e-11)
    for policy in POLICIES:
        assert derivative(f, policy).tobytes() == expected.tobytes(), policy


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_forward_mode_around(f):
    same_in_all(lambda f, policy: pb.jvp(lambda x: pb.grad(lambda u: f(u, x), policy=policy)(U), (X,), (T,))[1], f)
