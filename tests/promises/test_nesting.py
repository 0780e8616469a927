"""Transforms within transforms, three deep and through loops; and many at once in threads: exact derivatives, or
known bits."""

import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import numpy as np
import pytest

import pullback as pb

X = np.array([0.3, -0.7, 1.1, 0.4])
T = np.array([1.0, -2.0, 0.5, 3.0])
POLICIES = (pb.Recompute(), pb.Recompute(2), pb.Binomial(1), pb.Binomial(3))

# The derivative of a function of one number, by each transform.
SLOPES = {
    "grad": pb.grad,
    "pull": lambda f: lambda x: pb.vjp(f, x)[1](1.0)[0],
    "jvp": lambda f: lambda x: pb.jvp(f, (x,), (1.0,))[1],
    "linearize": lambda f: lambda x: pb.linearize(f, x)[1](1.0),
    "loop": lambda f: pb.grad(lambda x: pb.fori_loop(0, 1, lambda _, u: f(u), x * 1.0)),
    "checkpoint": lambda f: pb.grad(pb.checkpoint(f)),
}
# The derivative of a function at a point along a tangent.
ALONG = {
    "grad": lambda f, x, t: pb.grad(f)(x) * t,
    "jvp": lambda f, x, t: pb.jvp(f, (x,), (t,))[1],
    "linearize": lambda f, x, t: pb.linearize(f, x)[1](t),
}


@pytest.mark.parametrize(("outer", "middle", "inner"), tuple(product(SLOPES, repeat=3)))
def test_three_perturbations_are_not_confused(outer, middle, inner):
    """D_x x D_y y x D_z x y z**2 at z = y = 1 is D_x 4 x**3; whoever confuses two of them finds another number."""
    d_x, d_y, d_z = SLOPES[outer], SLOPES[middle], SLOPES[inner]
    nested = d_x(lambda x: x * d_y(lambda y: y * x * d_z(lambda z: x * y * z**2)(1.0))(1.0))
    assert nested(3.0) == 108.0


@pytest.mark.parametrize(("outer", "middle", "inner"), tuple(product(ALONG, repeat=3)))
def test_a_closure_that_every_level_shares(outer, middle, inner):
    """The argument of the outermost is closed over, is the point of the middle one, and scales the tangent of the
    innermost."""

    def slope(a):
        def pushed(x):
            return ALONG[inner](lambda y: a * y * y * a, x, x * a)  # 2 a**2 x, times x a

        return ALONG[middle](pushed, a, 1.0)  # 4 a**3 x, at x = a

    assert slope(3.0) == 324.0
    assert ALONG[outer](slope, 3.0, 1.0) == 432.0  # 16 a**3


def test_what_an_outer_transform_made_is_used_in_an_inner_one():
    """A pull and a linearized function of a trace under way: both are linear, and both depend on where they were
    taken."""

    def by_pull(x):
        _, pull = pb.vjp(np.sin, x)
        return np.sum(pb.grad(lambda c: np.sum(pull(c)[0] ** 2))(T) * x)

    def by_push(x):
        _, push = pb.linearize(np.sin, x)
        return np.sum(pb.jvp(lambda t: push(t) ** 2, (T,), (T,))[1] * x)

    slope = 2 * T * np.cos(X) ** 2 - 4 * X * T * np.cos(X) * np.sin(X)
    for f, expected in ((by_pull, slope), (by_push, slope * T)):
        np.testing.assert_allclose(pb.grad(f)(X), expected, rtol=1e-14)
        np.testing.assert_allclose(pb.jacobian(f, mode="forward")(X), expected, rtol=1e-14)
        np.testing.assert_allclose(pb.linearize(f, X)[1](T), expected @ T, rtol=1e-14)


def test_a_sum_without_axes_is_added_to_a_view_of_its_array():
    """The cotangent of a 0-d array that was broadcast is a scalar of NumPy's, and that of a view of the array is
    written into a buffer."""

    def f(x):
        y = np.copy(x)
        y[...] = x**3
        return np.sum((x + x[None]) * y[None] + y)

    for policy in (None, *POLICIES):
        x = np.array(0.5)
        for found in (
            pb.hvp(f, (x,), (x,), policy=policy) / x,
            pb.grad(pb.grad(f, policy=policy))(x),
            pb.hessian(f, policy=policy)(x),
        ):
            assert found == pytest.approx(24 * x**2 + 6 * x, rel=1e-14)
        assert pb.grad(pb.grad(pb.grad(f)))(x) == pytest.approx(48 * x + 6, rel=1e-14)


def test_hessian_of_a_hessian_vector_product():
    def summed(x):  # of 20 x**3 t
        return np.sum(pb.hvp(lambda u: np.sum(u**5), (x,), (T,)))

    expected = pb.hessian(summed)(X)
    np.testing.assert_allclose(expected, np.diag(120 * X * T), rtol=1e-13, atol=1e-14)
    for policy in POLICIES:
        np.testing.assert_array_equal(pb.hessian(summed, policy=policy)(X), expected)


# -------------------------------------------------------------------------------------------- loops within loops, twice
def woven(x):
    """A while loop in a scan in a checkpoint, and a checkpoint in a loop; every body reads the argument, too."""

    def relax(u):
        return pb.while_loop(
            lambda s: s[1] < 3, lambda s: (s[0] - 0.2 * (np.sin(s[0]) + 0.1 * np.roll(s[0], 1) * x), s[1] + 1), (u, 0)
        )[0]

    def step(u, weight):
        u = relax(u) * weight
        return u, np.sum(u * x)

    def whole(u):
        last, sums = pb.scan(step, u, xs=np.linspace(0.9, 1.1, 4))
        return last * np.sum(sums)

    y = pb.checkpoint(whole)(x * x)
    y = pb.fori_loop(0, 3, lambda k, u: u + 0.1 * pb.checkpoint(lambda a: np.tanh(a) * a * x[k])(u), y)
    return np.sum(y * y * x)


def plain(x):
    """The same without marks."""

    def relax(u):
        for _ in range(3):
            u = u - 0.2 * (np.sin(u) + 0.1 * np.roll(u, 1) * x)
        return u

    u, total = x * x, 0.0
    for weight in np.linspace(0.9, 1.1, 4):
        u = relax(u) * weight
        total = total + np.sum(u * x)
    y = u * total
    for k in range(3):
        y = y + 0.1 * (np.tanh(y) * y * x[k])
    return np.sum(y * y * x)


def twice(inner, outer):
    return lambda f: pb.grad(lambda x: np.sum(pb.grad(f, policy=inner)(x) * T), policy=outer)(X)


TWICE = {
    "forward over reverse": lambda f, policy: pb.hvp(f, (X,), (T,), policy=policy),
    "reverse over forward": lambda f, policy: pb.grad(lambda x: pb.jvp(f, (x,), (T,))[1], policy=policy)(X),
    "hessian": lambda f, policy: pb.hessian(f, policy=policy)(X),
}


@pytest.mark.parametrize("way", TWICE)
def test_loops_that_nest_have_the_same_second_derivatives_under_every_policy(way):
    expected = TWICE[way](woven, pb.SaveAll())
    np.testing.assert_allclose(expected, TWICE[way](plain, None), rtol=1e-12)
    for policy in POLICIES:
        np.testing.assert_array_equal(TWICE[way](woven, policy), expected, err_msg=repr(policy))
        with pb.using(policy):
            np.testing.assert_array_equal(TWICE[way](woven, None), expected, err_msg=repr(policy))


def test_reverse_over_reverse_of_loops_that_nest():
    """To rounding: what an inner policy runs again stands elsewhere on the outer tape, so the outer sweep adds in
    another order."""
    expected = pb.hvp(plain, (X,), (T,))
    for inner, outer in product((None, pb.Recompute(2), pb.Binomial(1)), repeat=2):
        np.testing.assert_allclose(twice(inner, outer)(woven), expected, rtol=1e-12, err_msg=f"{inner!r} in {outer!r}")
    for policy in POLICIES:
        np.testing.assert_array_equal(
            twice(pb.SaveAll(), policy)(woven), twice(pb.SaveAll(), pb.SaveAll())(woven), err_msg=repr(policy)
        )
    for policy in (pb.SaveAll(), *POLICIES):
        with pb.using(policy):
            np.testing.assert_allclose(
                pb.grad(lambda x: pb.linearize(woven, x)[1](T))(X), expected, rtol=1e-12, err_msg=repr(policy)
            )


@pytest.mark.parametrize("policy", [None, *POLICIES], ids=repr)
def test_a_checkpoint_in_which_nothing_is_recorded(policy):
    """It sees plain arrays alone: called so, or run again for a gradient of its own while another trace is under
    way."""
    assert pb.grad(lambda x: np.sum(pb.checkpoint(np.exp)(np.zeros(3)) * x), policy=policy)(2.0) == 3.0

    def inside(x):
        return np.sum(pb.fori_loop(0, 4, lambda _, u: u + pb.checkpoint(lambda a: np.tanh(a) * a * x)(u), x))

    expected = pb.grad(inside)(X)
    np.testing.assert_array_equal(pb.grad(lambda x: np.sum(pb.grad(inside, policy=policy)(X) * x))(X), expected)
    _, pull = pb.vjp(inside, X, policy=policy)
    np.testing.assert_array_equal(pb.jvp(lambda c: pull(c)[0], (1.0,), (1.0,))[1], expected)
    assert pb.grad(lambda c: np.sum(pull(c)[0]))(1.0) == np.sum(expected)


def test_loops_within_a_loop_that_is_run_again_keep_the_policy_of_the_first_run():
    """Not that in force where the pull is called, which changes nothing."""

    def whole(u):
        return pb.fori_loop(0, 4, lambda _, v: pb.fori_loop(0, 9, lambda _, w: np.sin(w) * u, v), u)

    reports = []
    for policy in (pb.Recompute(3), pb.SaveAll(), pb.Binomial(1)):
        with pb.using(pb.Recompute(3)):
            _, pull = pb.vjp(lambda x: np.sum(pb.checkpoint(whole)(x * x)), X)
        with pb.using(policy):
            pull(1.0)
        reports.append((pull.report.n_forward, pull.report.peak_bytes, pull.report.bytes_by_reason))
        pull.close()
    assert reports[0] == reports[1] == reports[2]


# -------------------------------------------------------------------------------------------------------------- threads
def test_threads_with_transforms_and_policies_of_their_own_give_the_bits_of_serial_runs():
    """Half of the policies are passed, half are in force: neither a policy nor a trace reaches another thread."""

    def under(policy, task):
        with pb.using(policy):
            return task(None)

    transforms = (
        lambda policy: pb.grad(woven, policy=policy)(X),
        lambda policy: pb.hvp(woven, (X,), (T,), policy=policy),
        lambda policy: pb.vjp(woven, X, policy=policy)[1](1.0)[0],
        lambda policy: twice(policy, policy)(woven),
        lambda policy: pb.jacobian(lambda x: pb.grad(woven, policy=policy)(x)[:2], mode="reverse", policy=policy)(X),
        lambda policy: pb.linearize(woven, X)[1](T),
        lambda policy: pb.jvp(woven, (X,), (T,))[1],
    )
    policies = (pb.SaveAll(), pb.Recompute(), pb.Binomial(1), pb.Binomial(3))
    tasks = [
        (lambda p=policy, t=task: t(p)) if (row + column) % 2 else (lambda p=policy, t=task: under(p, t))
        for row, task in enumerate(transforms)
        for column, policy in enumerate(policies)
    ]
    serial = [task() for task in tasks]
    workers = 8
    start = threading.Barrier(workers)

    def work(first):
        start.wait()
        return {k % len(tasks): tasks[k % len(tasks)]() for k in range(first, first + 7)}

    with ThreadPoolExecutor(workers) as pool:
        for found in pool.map(work, range(0, 4 * workers, 4)):
            for k, value in found.items():
                np.testing.assert_array_equal(value, serial[k], err_msg=str(k))
