"""What a loop's body captures: read in every way while the body runs plainly, and never written to."""

from functools import partial

import numpy as np
import pytest

import pullback as pb
from pullback.testing.comparing.bits import same_bits

POLICIES = (pb.SaveAll(), pb.Recompute(), pb.Binomial(1), pb.Binomial(3))
X, P = np.linspace(0.1, 0.6, 6).reshape(3, 2), 0.7
ALONG = (np.cos(np.arange(6.0)).reshape(3, 2), 0.4)


def late(k, u, w, p):
    return u * w if k > 2 else np.sin(u)


def late_by_a_helper(k, u, w, p):
    def helper(u):
        return u + w * p

    return helper(u) if k == 3 else np.sin(u)


def late_in_a_structure(k, u, w, p):
    kept = {"parts": [w, p]}
    return np.cos(u) * kept["parts"][k % 2] if k > 1 else u * 0.9


def assigned(u, p):
    u[0] = p


def assigned_to_one(u, p):
    u[0, 0] = p


def added_through_a_view(u, p):
    part = u[1:]
    part += p
    part *= p


def put(u, p):
    np.put(u, [0, 3], p)
    np.copyto(u[1], p)


def into_flat(u, p):
    u.flat[::2] = p


def of_its_like(u, p):
    u *= np.ones_like(p) * p
    u += np.full_like(u, 0.5)


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
@pytest.mark.parametrize("write", [assigned, assigned_to_one, added_through_a_view, put, into_flat, of_its_like])
def test_a_value_in_a_structure_that_the_body_captures_is_written_into_its_carry(write, policy):
    """Frozen closures hold handles in their structures, which while the trace is left alone stand for values, or for
    those around it."""

    def f(x, p):
        captured = {"p": p}

        def body(_, u):
            write(u, captured["p"])
            return np.sin(u) * captured["p"]

        return np.sum(pb.fori_loop(0, 4, body, x) * np.arange(6.0).reshape(3, 2))

    gradient, product = pb.grad(f, (0, 1)), pb.hvp(f, (X, P), ALONG)
    assert same_bits(pb.grad(f, (0, 1), policy=policy)(X, P), gradient(X, P))
    assert same_bits(pb.hvp(f, (X, P), ALONG, policy=policy), product)
    h = 1e-5
    ahead, behind = (gradient(*(x + sign * h * t for x, t in zip((X, P), ALONG, strict=True))) for sign in (1, -1))
    for ours, a, b in zip(product, ahead, behind, strict=True):
        np.testing.assert_allclose(ours, (a - b) / (2 * h), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
@pytest.mark.parametrize("structured", [False, True])
@pytest.mark.parametrize("name", ["__itruediv__", "__imul__", "__ipow__", "__iadd__", "__isub__"])
def test_an_operator_in_place_on_what_is_captured_is_refused(name, structured, policy):
    """NumPy would carry it from step to step."""

    def f(x, p):
        captured = [p]

        def body(_, u):
            getattr(captured[0] if structured else p, name)(2.0)
            return u * 0.9 + np.sum(p)

        return np.sum(pb.fori_loop(0, 3, body, x))

    with pytest.raises(
        (pb.WriteError, ValueError), match=r"a body writes to a value it captures|output array is read-only"
    ):
        pb.grad(f, (0, 1), policy=policy)(X, np.ones(2))


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_the_shape_of_what_is_captured_is_not_set(policy):
    def f(x, p):
        def body(_, u):
            p.shape = (2, 1)
            return u * 0.9 + np.sum(p)

        return np.sum(pb.fori_loop(0, 3, body, x))

    with pytest.raises(pb.WriteError, match=r"a body sets the shape of a value it captures.*use reshape"):
        pb.grad(f, (0, 1), policy=policy)(X, np.ones(2))


@pytest.mark.parametrize("name", ["__itruediv__", "__imul__", "__iadd__"])
def test_an_operator_in_place_puts_no_inner_value_into_an_outer_array(name):
    def f(x):
        return np.sum(pb.grad(lambda z: np.sum(getattr(x, name)(z)))(np.ones(2)))

    with pytest.raises(pb.WriteError, match="a value of an inner trace is written into an array of an outer one"):
        pb.grad(f)(np.ones(2))


# ---------------------------------------------------------------------- views that stand for another value by now
def through_the_view(x):
    t = x * 1.0
    b = t[:]
    np.multiply(b, 0.9, out=b)
    return b


def through_the_base(x):
    t = x * 1.0
    b = t[::-1]
    t *= 0.9
    return b


LOOPS_ON = {
    "init": lambda u, x: np.sum(pb.fori_loop(0, 2, lambda k, c: np.cos(c), u)),
    "one of two": lambda u, x: np.sum(pb.fori_loop(0, 3, lambda k, s: (s[1], np.cos(s[0])), (u, np.sin(x)))[0]),
    "unknown length": lambda u, x: np.sum(
        pb.while_loop(lambda s: s[1] < 3, lambda s: (np.cos(s[0]), s[1] + 1), (u, 0))[0]
    ),
    "xs": lambda u, x: pb.scan(lambda c, row: (np.sin(c + row), None), x[0], u)[0],
    "captured": lambda u, x: np.sum(pb.fori_loop(0, 2, lambda k, c: np.cos(c * u), x)),
    "nested": lambda u, x: np.sum(
        pb.fori_loop(0, 3, lambda k, c: pb.fori_loop(0, 2, lambda j, v: np.cos(v), through_the_view(c)), u)
    ),
}


@pytest.mark.parametrize("written", [through_the_view, through_the_base])
@pytest.mark.parametrize("name", LOOPS_ON)
@pytest.mark.parametrize("staging", ["off", "numpy"])
def test_what_was_written_to_a_view_counts_in_a_loop(written, name, staging):
    def f(x):
        return LOOPS_ON[name](written(x), x)

    for x in (np.array([0.3, 0.7, 1.1]), np.array([-0.2, 0.4, 2.0])):
        columns = [(f(x + 1e-6 * e) - f(x - 1e-6 * e)) / 2e-6 for e in np.eye(3)]
        for policy in (pb.SaveAll(), pb.Binomial(2)):
            with pb.using(policy, staging=staging):
                np.testing.assert_allclose(pb.grad(f)(x), columns, rtol=0, atol=1e-7)


def looped(form, step, start, policy):
    """Five steps, in one of the forms that loops have."""
    if form == "scan":
        return pb.scan(lambda u, k: (step(k, u), u[0]), start, np.arange(5), policy=policy)
    if form == "while_loop":
        return pb.while_loop(lambda s: s[1] < 5, lambda s: (step(s[1], s[0]), s[1] + 1), (start, 0), policy=policy)[0]
    if form == "nested":
        inner = lambda i, u: pb.fori_loop(0, 2, lambda j, v: step(2 * i + j, v), u, policy=policy)  # noqa: E731
        return pb.fori_loop(0, 3, inner, start, policy=policy)
    return pb.fori_loop(0, 5, step, start, policy=policy)


@pytest.mark.parametrize("plain", [False, True], ids=["traced state", "plain state"])
@pytest.mark.parametrize("form", ["fori_loop", "scan", "while_loop", "nested"])
@pytest.mark.parametrize("step", [late, late_by_a_helper, late_in_a_structure])
def test_a_late_step_may_be_the_first_that_reads_what_the_body_closes_over(step, form, plain):
    def f(x, p, policy=None):
        w = np.tanh(x)
        found = looped(form, lambda k, u: step(k, u, w, p), np.ones((3, 2)) if plain else x, policy)
        return sum(np.sum(part**2) for part in found) if form == "scan" else np.sum(found**2)

    gradient = pb.grad(f, (0, 1))(X, P)
    h = 1e-6
    difference = sum(f(X + s * h * ALONG[0], P + s * h * ALONG[1]) * s for s in (1, -1)) / (2 * h)
    slope = np.sum(gradient[0] * ALONG[0]) + gradient[1] * ALONG[1]
    np.testing.assert_allclose(slope, difference, rtol=1e-7)
    np.testing.assert_allclose(pb.jvp(f, (X, P), ALONG)[1], slope, rtol=1e-12)
    product = pb.hvp(f, (X, P), ALONG)
    for policy in POLICIES:
        assert all(map(same_bits, pb.grad(partial(f, policy=policy), (0, 1))(X, P), gradient)), policy
        found = pb.hvp(partial(f, policy=policy), (X, P), ALONG)
        for one, other in zip(found, product, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-11)
