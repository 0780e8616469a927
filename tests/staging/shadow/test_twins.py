"""The twins: where a step turns out to be another, what was followed so far is carried out, and the call goes on."""

import numpy as np
import pytest
from tests.staging.generated.both_ways import loop_over, require_same, stages

import pullback as pb
from pullback.testing.comparing.bits import same_bits

X = np.array([0.3, -0.7, 1.1, 0.2])
C = np.array([1.5, 0.5, -0.25, 2.0])


def usual(u, x, until):
    """Operations of every kind, one after the other; after ``until`` of them the rest is another."""
    v = np.sin(u) * x
    if until == 1:
        return v[::-1] * 2.0
    v[1:] += u[:-1] * C[:-1]
    if until == 2:
        return np.cos(v)
    square = v.reshape(2, 2)
    square[0] = 0.25
    if until == 3:
        return square.reshape(4) * v + square[1, 0]
    v *= 0.5
    w = np.zeros_like(v)
    w[:2] = v[2:]
    if until == 4:
        w -= v
        return w + v
    low, high = np.split(v, 2)
    if until == 5:
        return np.concatenate([high, low]) + w
    return w + v + low[0] + high[1]


@pytest.mark.parametrize("until", range(1, 6))
def test_a_step_that_differs_after_any_operation(until):
    require_same(loop_over(lambda k, u, x: usual(u, x, until if k in (5, 6, 9) else 0)), X)
    assert stages()


@pytest.mark.parametrize("until", range(1, 6))
def test_a_step_that_differs_once_by_another_value_that_is_read(until):
    def body(k, u, x):
        v = usual(u, x, 0)
        if k == 7:
            assert pb.value(v).shape == (4,)
        return np.sin(usual(v, x, until if k == 8 else 0))

    require_same(loop_over(body), X)


def test_handles_that_were_handed_out_before_go_on():
    def body(k, u, x):
        v = np.sin(u)
        view, row = v[1:3], u[:2]
        if k == 6:
            assert float(pb.value(view)[0]) == float(np.sin(pb.value(u))[1])
            view += 1.0
        v[0] = 0.5
        return v * x + np.sum(view * row)

    require_same(loop_over(body), X)


@pytest.mark.parametrize(
    "unfollowed",
    [
        pb.checkpoint(lambda w: np.sin(w) * 2.0),
        lambda v: pb.fori_loop(0, 3, lambda j, w: np.sin(w) * 0.9, v),
        lambda v: v * pb.grad(lambda w: np.sum(np.sin(w) * v))(v),
        lambda v: pb.stop_gradient(v) * v,
        lambda v: np.sort(v) + v.flat[0],
    ],
    ids=["checkpoint", "a loop", "a gradient", "a constant", "flat"],
)
def test_what_a_shadow_does_not_follow(unfollowed):
    require_same(loop_over(lambda k, u, x: unfollowed(np.sin(u) * x) + u[0]), X)
    require_same(loop_over(lambda k, u, x: np.sin(u) * x if k % 4 != 3 else unfollowed(np.sin(u) * x)), X)


def test_a_mismatch_leaves_the_state_that_entered():
    states = []

    def body(k, u):
        u[0] = 0.5
        v = np.sin(u) if k != 8 else np.cos(u)
        states.append(pb.value(v).copy() if k == 8 else None)
        return v

    def of(staging):
        states.clear()
        gradient = pb.grad(lambda x: np.sum(pb.fori_loop(0, 12, body, x, staging=staging)))(X)
        return gradient, states[8]

    assert same_bits(of("numpy"), of("off"))
