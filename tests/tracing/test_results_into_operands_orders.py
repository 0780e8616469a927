"""Results of operators of large arrays that lie in unlike orders: in the order of memory that plain arrays give, under
every policy, recorded or staged."""

import random

import numpy as np
import pytest

import pullback as pb
from pullback import numpy as pnp

N = 190
RNG = np.random.default_rng(0)
C, NARROW = np.abs(RNG.standard_normal((N, N))), RNG.standard_normal((N, N)).astype(np.float32)
F = np.asfortranarray(RNG.standard_normal((N, N)))
U = RNG.standard_normal((N, N))
CUBE = RNG.standard_normal((34, 34, 34))


def half(u):
    return u.T * 0.5


OF_ONE = [
    "u + u.T * 0.1", "u.T * 0.5 + np.cos(u)", "half(u) + np.cos(u)", "u.T * 0.5 / np.exp(u)", "np.exp(u) - u.T * 0.5",
    "np.exp(u.T) + u", "np.exp(u.T) + C", "C + np.exp(u.T)", "C - np.exp(u.T)", "-u.T + u", "u + -u.T",
    "abs(u.T) + u", "u**2 + u.T * u.T", "np.maximum(u.T, 0) + u", "np.where(u.T > 0, u.T, 0) + u",
    "u.T.copy('F') + u", "u * u.T * 0.3", "(u.T @ u.T).T + u", "(1 + u.T) / u", "u / (1 + u.T)", "u.T * 1j + u",
    "u.T * 0.5 + np.cos(u) + u.T * C", "(u.T * 0.5 + np.cos(u)) * (C + u.T * 3)", "(u.T * 0.5).reshape(N, N) + u",
    "(u.T * 0.5)[:] + u", "u.T * 0.5 + u[0]", "u.T * 0.5 + np.broadcast_to(u[0], (N, N))", "np.sin(u).T + F * 1.5",
    "F * 1.5 + np.sin(u).T", "(F * 1.5 - pnp.ascontiguousarray(u.T)) * np.cos(u)", "F * 1.5 - u[::-1]",
    "NARROW + u.T * 0.1", "u.T * 0.1 - NARROW", "(F * 1.5 + np.cos(u)) - np.sin(u)", "F + u", "F * u - C",
    "np.add(u.T, 1.0) + u", "np.add(u.T * 0.5, u)",
]  # fmt: skip
OF_A_CUBE = ["u.transpose(2, 1, 0) * 0.5 + u", "u.swapaxes(0, 1) * 2 - np.cos(u)", "u + 3 * u.transpose(1, 2, 0)"]


def function_of(expression):
    names = {"np": np, "pnp": pnp, "C": C, "F": F, "NARROW": NARROW, "N": N, "half": half}
    return eval(f"lambda u: {expression}", names)  # noqa: S307 - one of this file


def traced(f, u):
    """What ``f`` gives within a trace."""
    seen = []

    def program(u):
        seen.append(pb.value(f(u)))
        return np.sum(u)

    pb.grad(program)(u)
    return seen[0]


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("expression", [*OF_ONE, *OF_A_CUBE])
def test_a_result_lies_as_that_of_plain_arrays(expression, order):
    u = np.array(CUBE if expression in OF_A_CUBE else U, order=order)
    f = function_of(expression)
    wanted = f(u)
    got = traced(f, u)
    assert got.strides == wanted.strides
    assert got.tobytes() == wanted.tobytes()


def test_a_named_operand_is_not_computed_into():
    def f(u):
        v = u.T * 0.5
        w = np.cos(u) + v
        return w + u.T * 0.1, v + u, v

    def program(u):
        seen.extend(map(pb.value, f(u)))
        return np.sum(u)

    seen = []
    pb.grad(program)(U)
    for got, wanted in zip(seen, f(U), strict=True):
        assert got.strides == wanted.strides
        assert got.tobytes() == wanted.tobytes()


def drawn(seed):
    """The text of a step of drawn operators of arrays in both orders."""
    rng, names = random.Random(seed), []  # noqa: S311 - programs, no secrets
    leaves = [
        "u", "u.T", "np.cos(u)", "np.cos(u.T)", "u.T * 0.5", "np.sin(u).T", "C", "F", "NARROW", "-u.T", "u[::-1]",
        "pnp.ascontiguousarray(u.T)", "pnp.asfortranarray(u)", "np.copy(u.T, order='K')", "0.3", "np.sqrt(C)",
        "F * 1.5", "np.where(u > 0, u, 0.1)", "np.exp(u.T)", "u[0]", "u[:, :1]",
    ]  # fmt: skip

    def expression(depth):
        if depth == 0 or rng.random() < 0.2:
            return rng.choice([*leaves, *names])
        return f"({expression(depth - 1)} {rng.choice('+-*')} {expression(depth - 1)})"

    lines = []
    for k in range(rng.randint(0, 2)):
        lines.append(f"    a{k} = {expression(rng.randint(1, 3))}")
        names.append(f"a{k}")
    lines.append(f"    r = {expression(2)} + {rng.choice(leaves)}")
    return "\n".join(["def step(u):", *lines, "    return np.tanh(r + u.T * 0.1)"])


def check(step, times=9):
    """Value and gradient of so many steps have the same bits under every policy, and the value those of plain NumPy."""
    u = U
    for _ in range(times):
        u = step(u)
    wanted, first = np.sum(u * C), None

    def function(u):
        u = pb.fori_loop(0, times, lambda _, u: step(u), u)
        return np.sum(u * C)

    def marked(u):
        for _ in pb.steps(range(times)):
            u = step(u)
        return np.sum(u * C)

    for program in (function, marked):
        for policy in (pb.SaveAll(), pb.Recompute(), pb.Binomial(2)):
            for staging in ("off", "auto", "auto"):
                with pb.using(staging=staging, policy=policy):
                    value, gradient = pb.value_and_grad(program)(U)
                first = gradient if first is None else first
                assert value == wanted
                assert gradient.tobytes() == first.tobytes()


def step_of(text):
    names = {"np": np, "pnp": pnp, "C": C, "F": F, "NARROW": NARROW}
    exec(compile(text, f"<step {hash(text)}>", "exec"), names)  # noqa: S102 - drawn in this file
    return names["step"]


@pytest.mark.filterwarnings("ignore::pullback.PolicyWarning")
@pytest.mark.parametrize("seed", [3, 12, 13, 33, 54, 63, 64])
def test_steps_in_unlike_orders(seed):
    check(step_of(drawn(seed)))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pullback.PolicyWarning")
@pytest.mark.parametrize("seed", range(100, 200))
def test_drawn_steps_in_unlike_orders(seed):
    check(step_of(drawn(seed)))


@pytest.mark.filterwarnings("ignore::pullback.PolicyWarning")
def test_functions_of_marked_steps_come_late():
    def step(u):
        return np.tanh((np.exp(u.T) + np.cos(u)) * (-u.T - u[0]) + u.T * 0.1)

    def marked(u):
        for _ in pb.steps(range(9)):
            u = step(u)
        return np.sum(u * C)

    with pb.using(staging="off"):
        wanted = pb.grad(marked)(U)
    assert all(pb.grad(marked)(U).tobytes() == wanted.tobytes() for _ in range(16))
