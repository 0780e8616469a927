"""A trace inside another, closing over values of the outer one: however it reaches them, both derivatives are those of
save-all.

The programs compute one thing; ``x`` is the outer trace's, ``u`` the inner one's.
"""

from functools import partial

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


class Model:
    """An object that holds a value of the outer trace."""

    def __init__(self, f, x):
        self.f, self.x = f, x

    def loss(self, u):
        return self.f(u, self.x)


def closed_over(f):
    return lambda u: f(u)  # noqa: PLW0108 - a closure that holds a function which holds the value


WAYS = {
    "closure": lambda f, x: lambda u: f(u, x),
    "closure of a closure": lambda f, x: closed_over(lambda u: f(u, x)),
    "method": lambda f, x: Model(f, x).loss,
    "object": lambda f, x: partial(Model.loss, Model(f, x)),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_reverse_mode_around(f, way):
    """What is recorded around it is held, from the moment when the outer trace is met on: no cotangent is added in
    another order."""
    same_in_all(lambda f, policy: pb.grad(lambda x: np.sum(T * pb.grad(WAYS[way](f, x), policy=policy)(U)))(X), f)


def from_the_middle(u, x):
    for k in pb.steps(N):
        u = move(u, x if k >= 3 else 0.5)
    u = move(u, x)
    for _ in pb.steps(N):
        u = move(u, 0.7)
    return np.sum(u**3)


def from_the_second_loop(u, x):
    for _ in pb.steps(N):
        u = move(u, 0.7)
    for _ in pb.steps(N):
        u = move(u, x)
    return np.sum(u**3)


def from_the_middle_of_a_loop(u, x):
    return np.sum(pb.fori_loop(0, N, lambda k, v: move(v, x if k >= 3 else 0.5), u) ** 3)


def by_a_write(u, x):
    for _ in pb.steps(N):
        v = np.zeros_like(u)
        v[:] = x
        v[1:] += u[:-1]
        u = u + 0.2 * np.sin(v) * u
    return np.sum(u**3)


@pytest.mark.parametrize(
    "f", [from_the_middle, from_the_second_loop, from_the_middle_of_a_loop, by_a_write], ids=lambda f: f.__name__
)
def test_an_outer_trace_that_comes_in_late(f):
    """Steps that were run before it came in are put back as they would be under save-all, or run again without it."""

    def derivative(policy):
        return pb.grad(lambda x: np.sum(T * pb.grad(Model(f, x).loss, policy=policy)(U)))(X)

    expected = derivative(pb.SaveAll())
    by_columns = pb.jacobian(lambda x: pb.grad(Model(f, x).loss)(U), mode="forward")(X)
    np.testing.assert_allclose(expected, T @ by_columns, rtol=1e-11)
    for policy in POLICIES:
        assert derivative(policy).tobytes() == expected.tobytes(), policy


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_reverse_around_forward_around(f):
    """The trace that will be reversed is met behind one that records nothing."""

    def derivative(f, policy):
        def slope(x, t):
            model, scale = Model(f, x), Model(f, t)
            return pb.grad(lambda u: model.loss(u * scale.x), policy=policy)(U)

        return pb.grad(lambda x: np.sum(X * pb.jvp(lambda t: slope(x, t), (T,), (U,))[1]))(X)

    same_in_all(derivative, f)


@pytest.mark.parametrize("policy", [pb.SaveAll(), *POLICIES], ids=repr)
def test_an_outer_trace_that_a_loop_meets_after_its_first_step_is_refused(policy):
    """Its closure does not show the value, and the first steps may have been run without holding anything."""

    def loss(model, u):
        return np.sum(pb.fori_loop(0, N, lambda k, v: move(v, model.x if k >= 3 else 0.5), u) ** 3)

    with pytest.raises(pb.TracerError, match=r"step [3-7] uses a traced value of an object, which step 0 did not use"):
        pb.grad(lambda x: np.sum(pb.grad(partial(loss, Model(None, x)), policy=policy)(U)))(X)


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_forward_mode_around(f):
    same_in_all(lambda f, policy: pb.jvp(lambda x: pb.grad(lambda u: f(u, x), policy=policy)(U), (X,), (T,))[1], f)


def inner_slope(f, x, u, policy):
    return 0.01 * np.sin(pb.grad(lambda v: Model(f, x).loss(v) * 0.01, policy=policy)(u) * x)


INSIDE = {
    "of a value of the step": inner_slope,
    "at a constant": lambda f, x, _, policy: inner_slope(f, x, U, policy),
    "forward": lambda f, x, u, _: 0.01 * pb.jvp(lambda v: Model(f, x).loss(v) * 0.01 * v, (u,), (x,))[1],
    "a write": lambda f, x, u, policy: 0.01 * pb.grad(lambda v: f(written(v, x), 0.5), policy=policy)(u),
}


def written(v, x):
    w = np.zeros_like(v)
    w[:] = x
    w[1:] += v[:-1]
    return w


@pytest.mark.share(3)
@pytest.mark.parametrize("nested", [False, True], ids=["in a loop", "in a loop in a loop"])
@pytest.mark.parametrize("inside", INSIDE)
@pytest.mark.parametrize("f", [plain, looped, checkpointed], ids=lambda f: f.__name__)
def test_derivatives_inside_a_loop(f, inside, nested):
    """While the loop advances, what its derivatives close over is a plain value, wherever it is held."""

    def loss(x, policy, repeat):
        model = Model(None, x)

        def body(_, u):
            return u + INSIDE[inside](f, model.x, u, policy)

        return np.sum(repeat(lambda _, u: repeat(body, u) if nested else body(None, u), x))

    def by_a_loop(policy):
        return pb.grad(lambda x: loss(x, policy, lambda body, u: pb.fori_loop(0, 3, body, u, policy=policy)))(X)

    def unrolled(body, u):
        for k in range(3):
            u = body(k, u)
        return u

    expected = by_a_loop(pb.SaveAll())
    np.testing.assert_allclose(expected, pb.grad(lambda x: loss(x, pb.SaveAll(), unrolled))(X), rtol=1e-11)
    for policy in POLICIES[:2]:
        assert by_a_loop(policy).tobytes() == expected.tobytes(), policy
