"""The reverse of a step as statements: cotangents are added in the order of the sweep, NaN are masked as there."""

import numpy as np
import pytest
from tests.staging.generated.both_ways import POLICIES, loop_over, require_same, stages, the_stage

import pullback as pb
from pullback.testing.comparing.bits import same_bits

X = np.array([0.3, -0.7, 1.1, 0.2])
ROWS = np.array([0, 0, 2, 1])


@pytest.mark.parametrize(
    "body",
    [
        lambda k, u, x: np.tanh(u * u + u * x + np.sin(u) * u + u / 3.0),
        lambda k, u, x: u[ROWS] * x[ROWS] + u[::-1] * 0.3 + u[k % 2],
        lambda k, u, x: np.maximum(u, x * 0.2) * 0.9,
        lambda k, u, x: np.roll(u, 1) * x - np.mean(u),
        lambda k, u, x: (u - np.max(u)) * x,
        lambda k, u, x: u.reshape(2, 2).sum(axis=0)[[0, 1, 0, 1]] * x,
        lambda k, u, x: np.linalg.solve(np.eye(4) * 2.0 + 0.1 * np.tanh(u), u) * x,
        lambda k, u, x: np.einsum("i,i->i", u, x) / np.linalg.norm(u),
        lambda k, u, x: np.concatenate([u[1:], x[:1]]) * 0.9,
        lambda k, u, x: x,
        lambda k, u, x: np.zeros_like(u) + x[0],
    ],
    ids=[
        "sums", "reads", "ties", "shifts", "extremes", "shapes", "solve", "einsum", "joined", "captured", "unread",
    ],
)  # fmt: skip
def test_cotangents_have_the_bits_of_the_sweep(body):
    require_same(loop_over(body), X, X * 1e3, np.array([0.0, -0.0, 0.5, 0.5]))


def test_a_captured_value_gathers_over_steps_that_are_staged_and_steps_that_are_not():
    def f(x):
        scale = np.sin(x)

        def body(k, u):
            return u * scale if k % 5 else np.cos(u) + scale

        return np.sum(pb.fori_loop(0, 23, body, x * 2.0))

    require_same(f, X)
    assert stages()


def test_assignments_cut_the_cotangent():
    def body(k, u, x):
        v = u * x
        v[1:3] = np.sin(u[:2])
        v[0] = 0.25
        v[-1] += u[0]
        return v

    require_same(loop_over(body), X)
    assert stages()


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_a_pull_called_again_and_with_several_seeds(policy):
    def f(x):
        return pb.fori_loop(0, 12, lambda k, u: np.sin(u) * x + u[::-1], x)

    rng = np.random.default_rng(1)
    seeds = [rng.standard_normal(4) for _ in range(3)]

    def pulled(staging):
        with pb.using(staging=staging):
            _, pull = pb.vjp(f, X, policy=policy)
            return [pull(seeds[0])[0], pull(seeds)[0], pull(seeds[0])[0], pull(-seeds[1][::-1])[0]]

    recorded, staged = pulled("off"), pulled("numpy")
    for a, b in zip(recorded, staged, strict=True):
        assert same_bits(np.asarray(a), np.asarray(b))
    assert same_bits(staged[0], staged[2])
    assert stages()


def test_a_seed_is_left_as_it_was():
    seed = np.ones(4000)
    with pb.using(staging="numpy"):
        _, pull = pb.vjp(lambda x: pb.fori_loop(0, 12, lambda k, u: np.sin(u) + u, x), np.linspace(0, 1, 4000))
        first = pull(seed)[0]
        again = pull(seed)[0]
    assert (seed == 1).all()
    assert same_bits(first, again)


def test_the_gradient_of_a_gradient_and_the_rows_of_a_jacobian():
    def f(x):
        return pb.fori_loop(0, 9, lambda k, u: np.sin(u) * x + u[0], x)

    def of(staging):
        with pb.using(staging=staging):
            jacobian = pb.jacobian(f)(X)
            return jacobian, pb.grad(lambda x: np.sum(pb.grad(lambda x: np.sum(f(x)))(x) * X))(X)

    assert same_bits(of("numpy"), of("off"))


@pytest.mark.parametrize(
    ("key", "by_key"),
    [
        ((np.array([0, 2]), np.array([1, 1])), True),
        ((np.array([0, -3]), np.array([1, 1])), False),  # the same element twice
        ((slice(None), np.array([3, 0])), False),  # a shorter way along an axis
        ((..., np.array([3, 0])), True),
        ((slice(None), None, np.array([3, 0])), True),
        (np.arange(12).reshape(3, 4) % 5 == 0, True),
    ],
)
def test_a_read_by_a_key_without_repeats_is_pulled_by_a_write_to_it(key, by_key):
    def body(k, u, x):
        v = u * x
        read = np.sum(v[key])
        return np.sin(v) + read

    x = np.linspace(-1.0, 1.0, 12).reshape(3, 4)
    special = np.array([[0.0, -0.0, np.nan], [np.inf, 1.0, -0.0], [-0.0, 0.0, 2.0], [1.0, 3.0, -0.0]]).T
    with np.errstate(all="ignore"):
        require_same(loop_over(body), x, np.ascontiguousarray(special))
    assert ("add_by_key" not in the_stage().reverse.text) == by_key
