"""Loop functions against the unrolled Python loop, and every policy against every other: one set of bits."""

from typing import Any, NamedTuple

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.programs.policies import LOOPED, UNTOLD, X

import pullback as pb

pytestmark = pytest.mark.filterwarnings(UNTOLD)


class Pair(NamedTuple):
    """A named carry."""

    u: Any
    v: Any


@attrs.define
class State:
    """A carry of a user's own class."""

    position: Any
    speed: Any


def same_everywhere(f, *points, policies=LOOPED, rtol=1e-13, unrolled=None):
    """``f(x, policy)`` gives the same bits under every policy at every point; the value and gradient of ``unrolled``
    within rounding."""
    for x in points:
        value, gradient = pb.value_and_grad(lambda a: f(a, pb.SaveAll()))(x)
        for policy in policies:
            v, g = pb.value_and_grad(lambda a, policy=policy: f(a, policy))(x)
            assert np.asarray(v).tobytes() == np.asarray(value).tobytes(), policy
            assert g.dtype == x.dtype
            assert g.tobytes() == gradient.tobytes(), policy
        if unrolled is not None:
            v, g = pb.value_and_grad(unrolled)(x)
            assert np.asarray(v).tobytes() == np.asarray(value).tobytes()
            np.testing.assert_allclose(gradient, g, rtol=rtol, atol=rtol)


def test_fori_loop():
    def step(k, u, x):
        return np.sin(u) * x + 0.1 * k

    def unrolled(x):
        u = x
        for k in range(2, 19):
            u = step(k, u, x)
        return np.sum(u * x)

    same_everywhere(
        lambda x, p: np.sum(pb.fori_loop(2, 19, lambda k, u: step(k, u, x), x, policy=p) * x),
        X,
        2 * X,
        unrolled=unrolled,
    )


def test_scan():
    drive = np.linspace(-1, 1, 13)

    def step(u, d):
        u = np.cos(u) + d * u
        return u, np.sum(u * u)

    def unrolled(x):
        u, total = x, 0.0
        for k, d in enumerate(drive):
            u, y = step(u, d)
            total = total + (k + 1) * y
        return total + np.sum(u)

    def looped(x, p):
        u, ys = pb.scan(step, x, drive, policy=p)
        return np.sum(ys * np.arange(1, 14)) + np.sum(u)

    for x in (X, -X):
        grads = [pb.grad(lambda a, p=p: looped(a, p))(x) for p in LOOPED]
        assert len({g.tobytes() for g in grads}) == 1
        np.testing.assert_allclose(grads[0], pb.grad(unrolled)(x), rtol=1e-13)


def test_scan_over_traced_xs():
    xs = np.linspace(0.2, 1.4, 12).reshape(4, 3)

    def step(u, d):
        return u * d["a"] + d["b"], u[0]

    def looped(a, p):
        u, ys = pb.scan(step, X, {"a": a, "b": a * a}, policy=p)
        return np.sum(u) + np.sum(ys**2)

    def unrolled(a):
        u, total = X, 0.0
        for row in range(4):
            u, y = step(u, {"a": a[row], "b": (a * a)[row]})
            total = total + y**2
        return np.sum(u) + total

    grads = [pb.grad(lambda a, p=p: looped(a, p))(xs) for p in LOOPED]
    assert len({g.tobytes() for g in grads}) == 1
    np.testing.assert_allclose(grads[0], pb.grad(unrolled)(xs), rtol=1e-13)


def test_while_loop():
    def unrolled(x):
        u = x
        while np.sum(u) < 40:
            u = u * 1.1 + x * x
        return np.sum(np.sin(u))

    def looped(x, p):
        return np.sum(np.sin(pb.while_loop(lambda u: np.sum(u) < 40, lambda u: u * 1.1 + x * x, x, policy=p)))

    same_everywhere(looped, X, X + 0.5, unrolled=unrolled)


@pytest.mark.parametrize("policy", LOOPED, ids=repr)
@pytest.mark.parametrize("n", [0, 1, 2])
def test_few_steps(policy, n):
    def f(x):
        return np.sum(pb.fori_loop(0, n, lambda k, u: u * x, x * 2, policy=policy) ** 2)

    np.testing.assert_allclose(pb.grad(f)(X), 4 * (2 * n + 2) * X ** (2 * n + 1), rtol=1e-13)
    ran = pb.grad(
        lambda x: np.sum(
            pb.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * x), (0, x * 2), policy=policy)[1] ** 2
        )
    )(X)
    np.testing.assert_allclose(ran, 4 * (2 * n + 2) * X ** (2 * n + 1), rtol=1e-13)
    assert pb.fori_loop(3, 1, lambda k, u: u + 1, 5.0, policy=policy) == 5.0


def test_scan_of_no_steps():
    u, ys = pb.scan(lambda u, d: (u * d, u), X, np.zeros((0,)))
    assert u is X or np.array_equal(u, X)
    assert ys is None or np.shape(ys)[0] == 0
    np.testing.assert_array_equal(
        pb.grad(lambda x: np.sum(pb.scan(lambda u, d: (u * d, None), x, np.zeros((0,)))[0]))(X), np.ones(3)
    )


def test_captured_values_of_every_kind():
    constant = np.array([1.0, 0.5, 2.0])

    def f(x, p):
        scale, scalar, plain = x * constant, x[0] * 2, {"w": x + 1}

        def body(k, u):
            return np.sin(u * scale) + scalar * constant + plain["w"] * k * 0.01

        return np.sum(pb.fori_loop(0, 11, body, x, policy=p)) + np.sum(scale)

    same_everywhere(f, X, X * 1.5)
    check_against_complex_step(f)


def check_against_complex_step(f, at=X):
    """Central differences of the untraced function."""
    gradient = pb.grad(lambda a: f(a, pb.Binomial(2)))(at)
    for k in range(at.size):
        e = np.zeros(at.shape)
        e.flat[k] = 1e-6
        slope = (f(at + e, pb.SaveAll()) - f(at - e, pb.SaveAll())) / 2e-6
        np.testing.assert_allclose(gradient.flat[k], slope, rtol=2e-6, atol=1e-7)


def test_in_place_bodies():
    def body(k, carry):
        u, trace = carry
        u[1:-1] += 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])
        u[0] = u[-1] * 0.5
        trace[k] = u[2]
        return u, trace

    def f(x, p):
        u, trace = pb.fori_loop(0, 9, body, (x * 1, np.zeros_like(x, shape=9)), policy=p)
        return np.sum(u * u) + np.sum(trace**3)

    x = np.linspace(0.1, 1, 6)

    def unrolled(x):
        carry = (x * 1, np.zeros_like(x, shape=9))
        for k in range(9):
            carry = body(k, carry)
        return np.sum(carry[0] * carry[0]) + np.sum(carry[1] ** 3)

    same_everywhere(f, x, x * x, unrolled=unrolled)


def test_in_place_on_the_initial_value_leaves_it_alone():
    start = np.ones(3)

    def body(k, u):
        u *= 1.5
        return u

    for policy in LOOPED:
        pb.grad(lambda x, policy=policy: np.sum(pb.fori_loop(0, 4, body, x, policy=policy)))(start)
        pb.grad(lambda x, policy=policy: np.sum(x * pb.fori_loop(0, 4, body, start, policy=policy)))(X)
        pb.fori_loop(0, 4, body, start, policy=policy)
        assert start.tobytes() == np.ones(3).tobytes(), policy


def test_two_leaves_of_one_memory():
    def f(x, p):
        def body(k, c):
            a, b = c
            a = a + 1.0 * b
            a[0] = b[1] * 2
            return a, a

        a, b = pb.fori_loop(0, 6, body, (x, x), policy=p)
        return np.sum(a * b)

    def unrolled(x):
        a, b = x, x
        for _ in range(6):
            a = a + 1.0 * b
            a[0] = b[1] * 2
            b = a
        return np.sum(a * b)

    same_everywhere(f, X * 0.1, unrolled=unrolled)


@pytest.mark.parametrize("make", [lambda a, b: {"u": a, "v": b}, Pair, State, lambda a, b: [a, (b, None)]])
def test_structures(make):
    def parts(c):
        if isinstance(c, dict):
            return c["u"], c["v"]
        if isinstance(c, State):
            return c.position, c.speed
        return (c[0], c[1][0]) if isinstance(c, list) else (c.u, c.v)

    def f(x, p):
        def body(k, c):
            u, v = parts(c)
            return make(u + 0.1 * v, v - 0.1 * np.sin(u))

        u, v = parts(pb.fori_loop(0, 12, body, make(x, x * x), policy=p))
        return np.sum(u * v)

    same_everywhere(f, X, X + 1)


def test_integer_leaves():
    def f(x, p):
        def body(k, c):
            count, mask, u = c
            return count + 2, ~mask, np.where(mask, u * 1.1, u + count * 0.1)

        count, _mask, u = pb.fori_loop(0, 7, body, (np.array(1), np.array([True, False, True]), x), policy=p)
        assert int(pb.value(count)) == 15
        return np.sum(u * u * count)

    same_everywhere(f, X)


def test_python_numbers_in_the_carry():
    def f(x, p):
        total, u = pb.fori_loop(0, 8, lambda k, c: (c[0] + np.sum(c[1]), c[1] * 0.9), (0.0, x), policy=p)
        return total * np.sum(u)

    same_everywhere(f, X)


def test_float32_stays():
    x = X.astype(np.float32)

    def f(x, p):
        return np.sum(pb.fori_loop(0, 9, lambda k, u: np.sin(u) * 1.5 + x, x, policy=p))

    same_everywhere(f, x, x * np.float32(2))
    assert pb.grad(lambda a: f(a, pb.Binomial(2)))(x).dtype == np.float32
    assert pb.vjp(lambda a: f(a, pb.Recompute()), x)[0].dtype == np.float32


def test_complex_states():
    z = np.array([0.3 + 0.2j, -0.4 + 1j])

    def f(z, p):
        return np.sum(np.abs(pb.fori_loop(0, 8, lambda k, u: u * z + 0.1j, z, policy=p)) ** 2)

    same_everywhere(f, z)


def test_nested_loops():
    def f(x, p):
        def outer(k, u):
            return pb.fori_loop(0, 4, lambda j, v: np.sin(v) * x + 0.1 * j, u, policy=p) + u * 0.1

        return np.sum(pb.fori_loop(0, 5, outer, x, policy=p))

    def unrolled(x):
        u = x
        for _ in range(5):
            v = u
            for j in range(4):
                v = np.sin(v) * x + 0.1 * j
            u = v + u * 0.1
        return np.sum(u)

    same_everywhere(f, X, -X, unrolled=unrolled)


def test_a_scan_in_a_while_loop_in_a_fori_loop():
    def f(x, p):
        def inner(v):
            w, ys = pb.scan(lambda a, d: (a * d + x[0], a[1]), v[1], np.array([0.5, 0.9]), policy=p)
            return v[0] + 1, w + np.sum(ys)

        def outer(k, u):
            return pb.while_loop(lambda v: v[0] < 3, inner, (0, u), policy=p)[1] * 0.5

        return np.sum(pb.fori_loop(0, 4, outer, x, policy=p))

    same_everywhere(f, X)
    check_against_complex_step(f)


def test_loops_one_after_the_other():
    def f(x, p):
        u = pb.fori_loop(0, 6, lambda k, u: np.sin(u) + x, x, policy=p)
        v = pb.fori_loop(0, 7, lambda k, v: np.cos(v) * u, x * u, policy=p)
        return np.sum(u * v)

    same_everywhere(f, X, 3 * X)


@settings(max_examples=30)
@given(
    n=st.integers(0, 40),
    policy=st.sampled_from((
        pb.Recompute(),
        *(pb.Recompute(k) for k in (1, 2, 7)),
        *(pb.Binomial(k) for k in (1, 2, 3, 9)),
    )),
    seed=st.integers(0, 1000),
    kind=st.sampled_from(("fori", "scan", "while")),
    writes=st.booleans(),
)
def test_drawn_loops(n, policy, seed, kind, writes):
    require_same(n, policy, seed, kind, writes=writes)


@pytest.mark.slow
@settings(max_examples=10_000)
@given(
    n=st.integers(0, 120),
    policy=st.one_of(st.builds(pb.Recompute, st.integers(1, 20)), st.builds(pb.Binomial, st.integers(1, 20))),
    seed=st.integers(0, 10_000),
    kind=st.sampled_from(("fori", "scan", "while")),
    writes=st.booleans(),
)
def test_many_drawn_loops(n, policy, seed, kind, writes):
    require_same(n, policy, seed, kind, writes=writes)


def require_same(n, policy, seed, kind, *, writes):
    """A drawn loop has the bits of save-all and the numbers of the unrolled loop."""
    weights = np.random.default_rng(seed).uniform(-1, 1, (max(n, 1), 3))

    def step(k, u, x):
        v = np.tanh(u) * weights[k] + x * 0.3
        if writes:
            v[1:] += u[:-1] * x[0]
            v[0] *= 0.5
        return v

    def looped(x, p):
        if kind == "fori":
            return np.sum(pb.fori_loop(0, n, lambda k, u: step(k, u, x), x, policy=p))
        if kind == "scan":
            return np.sum(pb.scan(lambda c, k: ((step(int(k), c, x)), None), x, np.arange(n), policy=p)[0])
        return np.sum(pb.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, step(c[0], c[1], x)), (0, x), policy=p)[1])

    def unrolled(x):
        u = x
        for k in range(n):
            u = step(k, u, x)
        return np.sum(u)

    same_everywhere(looped, X, X * 0.5, policies=(policy,), unrolled=unrolled, rtol=1e-11)


def test_second_order_of_outputs_that_are_constant_in_the_first_step():
    def f(x):
        return np.sum(pb.scan(lambda c, v: (c * v, np.sin(c)), 2.0, x)[1])

    def written(x):
        return np.sin(2.0) + np.sin(2.0 * x[0]) + np.sin(2.0 * x[0] * x[1])

    x, t = np.array([0.3, 0.7, 1.1]), np.array([1.0, -2.0, 0.5])
    for policy in (pb.SaveAll(), pb.Binomial(1), pb.Recompute()):
        np.testing.assert_allclose(pb.hvp(f, (x,), (t,), policy=policy), pb.hvp(written, (x,), (t,)), rtol=1e-13)


def captured(step, policy, x, t):
    """The gradient of a loop whose step takes the captured ``x`` on, and its product with ``t``; both are held to
    the plain loop."""

    def f(x):
        return np.sum(pb.fori_loop(0, 3, lambda _, c: c + 0.1 * step(c, x), x) ** 2)

    def unrolled(x):
        c = x
        for _ in range(3):
            c = c + 0.1 * step(c, x)
        return np.sum(c**2)

    gradient = pb.grad(f, policy=policy)
    np.testing.assert_allclose(gradient(x), pb.grad(unrolled)(x), rtol=1e-12)
    product = pb.hvp(unrolled, (x,), (t,))
    np.testing.assert_allclose(pb.hvp(f, (x,), (t,), policy=policy), product, rtol=1e-11)
    return gradient, product


INNER = {
    "initial value": lambda c, x: pb.fori_loop(0, 2, lambda _, u: u * c, x),
    "xs": lambda c, x: pb.scan(lambda u, row: (u * row + 0.1, u), c, x)[0],
    "while_loop": lambda c, x: pb.while_loop(lambda s: s[0] < 2, lambda s: (s[0] + 1, s[1] * c), (0, x))[1],
    "odeint": lambda c, x: pb.odeint(lambda y, t: -y * c, x, [0.0, 0.5], steps_per_interval=2)[-1],
    "under a gradient": lambda c, x: pb.grad(lambda v: np.sum(pb.scan(lambda u, row: (u * row * v, u), v, x)[0]))(c),
}


@pytest.mark.parametrize("name", INNER)
def test_a_captured_value_enters_a_loop_in_a_loop(name):
    x, t = np.array([0.5, 1.0, 1.5]), np.array([1.0, -0.5, 2.0])
    for policy in (pb.SaveAll(), pb.Binomial(1), pb.Recompute()):
        gradient, product = captured(INNER[name], policy, x, t)
        twice = pb.grad(lambda x: np.sum(gradient(x) * t))(x)  # noqa: B023 - called at once
        np.testing.assert_allclose(twice, product, rtol=1e-11)


INSIDE = {
    "seed": lambda c, x: pb.vjp(np.sin, c)[1](x)[0],
    "primal and seed": lambda c, x: pb.vjp(np.sin, x)[1](x)[0],
    "tangent": lambda c, x: pb.linearize(np.sin, c)[1](x),
    "primal": lambda c, x: pb.grad(lambda v: np.sum(pb.scan(lambda u, row: (u * row * c, u), v, x)[0]))(x),
    "hvp": lambda c, x: pb.hvp(lambda v: np.sum(v**3), (x,), (c,)),
}


@pytest.mark.parametrize("name", INSIDE)
def test_a_captured_value_enters_a_derivative_in_a_loop(name):
    x, t = np.array([0.5, 1.0, 1.5]), np.array([1.0, -0.5, 2.0])
    for policy in (pb.SaveAll(), pb.Binomial(1), pb.Recompute()):
        captured(INSIDE[name], policy, x, t)
