"""What enters a loop is held as it was, whatever is written into it afterwards."""

import numpy as np
import pytest

import pullback as pb

X = np.array([0.3, 0.7, 1.1])
START = np.linspace(0.5, 1.5, 3)


def fori(s):
    return pb.fori_loop(0, 3, lambda k, u: np.sin(u) * u, s)


def while_loop(s):
    return pb.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, np.sin(c[1]) * c[1]), (0, s))[1]


def scan_of_carry(s):
    return pb.scan(lambda u, _: (np.sin(u) * u, None), s, length=3)[0]


def scan_of_rows(s):
    carry, rows = pb.scan(lambda u, row: (np.sin(u) * row, np.sin(row) * row), 1.0 * s[0], s)
    return rows * carry


def scan_of_a_view(s):
    carry, rows = pb.scan(lambda u, row: (np.sin(u) * row, row * u), s[0], s[::-1])
    return rows * carry


def two_leaves(s):
    u, v = pb.fori_loop(0, 3, lambda k, c: (np.sin(c[0]) * c[1], np.cos(c[1])), (s, s[::-1]))
    return u * v


def captured(s):
    return pb.fori_loop(0, 3, lambda k, u: np.sin(u) * s, 1.0 * s)


def nested(s):
    return pb.fori_loop(0, 2, lambda k, u: fori(u), s)


def written_in_a_body(s):
    def body(k, u):
        v = fori(u)
        u[::-1] += v
        return u * v

    return pb.fori_loop(0, 2, body, s)


def add_reversed(s, v):
    s[::-1] += v


def add(s, v):
    s += v


def add_whole(s, v):
    s[:] += v


def replace(s, v):
    s[:] = v


def set_one(s, v):
    s[0] = v[1]


def add_by_index(s, v):
    s[[2, 1, 0]] += v


def through_a_view(s, v):
    view = s[::-1]
    view += v


def constant(s, v):
    s[:] = 2.0


LOOPS = (
    fori, while_loop, scan_of_carry, scan_of_rows, scan_of_a_view, two_leaves, captured, nested, written_in_a_body,
)  # fmt: skip
WRITES = (add_reversed, add, add_whole, replace, set_one, add_by_index, through_a_view, constant)
POLICIES = (pb.SaveAll(), pb.Recompute(), pb.Binomial(2), pb.Periodic(2))


def central(f, x):
    steps = 1e-6 * np.eye(x.size)
    return np.array([(f(x + h) - f(x - h)) / 2e-6 for h in steps])


@pytest.mark.parametrize("staging", ["auto", "off"])
@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("loop", LOOPS)
def test_a_write_after_a_loop_does_not_reach_what_it_holds(loop, write, staging):
    def f(x):
        s = START * x
        v = loop(s)
        write(s, v)
        return np.sum(s * s) + np.sum(v**3)

    wanted = central(f, X)
    with pb.using(staging=staging):
        first = pb.grad(f)(X)
        np.testing.assert_allclose(first, wanted, rtol=1e-5, atol=1e-8)
        for policy in POLICIES:
            np.testing.assert_array_equal(pb.grad(f, policy=policy)(X), first)
        pull = pb.vjp(f, X)[1]
        np.testing.assert_array_equal(pull(1.0)[0], first)


def plain_fori(x, other):
    return pb.fori_loop(0, 3, lambda k, c: (c[0] * c[1], c[1] * 1.01), (x, other))[0]


def plain_alone_in_one_step(x, other):
    return pb.fori_loop(0, 1, lambda k, c: (c[0] * c[1], c[1]), (x, other))[0]


def plain_while(x, other):
    return pb.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * c[2], c[2] * 1.01), (0, x, other))[1]


def plain_scan(x, other):
    return pb.scan(lambda c, _: ((c[0] * c[1], c[1] * 1.01), None), (x, other), length=3)[0][0]


def plain_view(x, other):
    return pb.fori_loop(0, 3, lambda k, c: (c[0] * c[1], c[1] * 1.01), (x, other[::-1]))[0]


PLAIN_LOOPS = (plain_fori, plain_alone_in_one_step, plain_while, plain_scan, plain_view)


@pytest.mark.parametrize("staging", ["auto", "numpy", "off"])
@pytest.mark.parametrize("loop", PLAIN_LOOPS)
def test_a_plain_array_that_a_loop_begins_with_may_be_written_to_after_it(loop, staging):
    def f(x, *, writes):
        other = START.copy()
        v = loop(x, other)
        if writes:
            other[:] = 7.0
        return np.sum(v**3)

    wanted = pb.grad(lambda x: f(x, writes=False))(X)
    np.testing.assert_allclose(wanted, central(lambda x: f(x, writes=True), X), rtol=1e-5, atol=1e-8)
    with pb.using(staging=staging):
        for policy in POLICIES:
            for _ in range(2):
                np.testing.assert_array_equal(pb.grad(lambda x: f(x, writes=True), policy=policy)(X), wanted)
        pull = pb.vjp(lambda x: f(x, writes=True), X)[1]
        np.testing.assert_array_equal(pull(1.0)[0], wanted)
