"""What is in force belongs to its task, and an exception leaves it clean."""

import asyncio
import contextlib
from contextvars import copy_context

import numpy as np
import pytest
from tests.programs.loops_and_marks import nested_gradients

import pullback as pb
from pullback.memory.in_force import depth, policy_in_force

X = np.array([0.3, -0.7, 1.1])
POLICIES = (pb.SaveAll(), pb.Recompute(), pb.Binomial(2))


def test_tasks_have_policies_of_their_own():
    async def work(policy):
        with pb.using(policy):
            await asyncio.sleep(0)
            assert policy_in_force() == policy
            return pb.grad(lambda x: nested_gradients(x, 1))(X)

    async def both():
        return await asyncio.gather(work(pb.Binomial(1)), work(pb.Recompute(2)), work(pb.SaveAll()))

    answers = asyncio.run(both())
    assert len({a.tobytes() for a in answers}) == 1
    assert policy_in_force() == pb.SaveAll()


def test_a_context_copied_inside_a_trace():
    def f(x):
        return np.sum(copy_context().run(lambda: pb.grad(lambda y: np.sum(y * y * x))(x)))

    np.testing.assert_allclose(pb.grad(f)(X), 4 * X)


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, StopIteration, GeneratorExit])
def test_an_exception_leaves_the_state_clean(policy, kind):
    def f(x):
        def body(k, u):
            if k == 3:
                raise kind("here")
            return np.sin(u) + x

        return np.sum(pb.fori_loop(0, 6, body, x))

    for _ in range(3):
        with pytest.raises(kind, match="here"):
            pb.grad(f, policy=policy)(X)
        with pytest.raises(kind, match="here"):
            pb.grad(lambda x: np.sum(pb.grad(f)(x)), policy=policy)(X)
    assert depth() == 0
    assert policy_in_force() == pb.SaveAll()
    np.testing.assert_array_equal(pb.grad(lambda x: np.sum(x * x))(X), 2 * X)


def test_an_exception_caught_inside_goes_on():
    def f(x):
        with contextlib.suppress(pb.PullbackError):
            pb.fori_loop(0, 4, lambda k, u: u[:2], x)
        with contextlib.suppress(pb.PullbackError):
            pb.grad(lambda y: y * x)(x)
        return np.sum(np.sin(x) * x)

    np.testing.assert_allclose(pb.grad(f)(X), np.cos(X) * X + np.sin(X))


def test_an_exception_in_the_reverse_leaves_the_state_clean():
    prim = pb.primitive(lambda x: x * 1.0, name="explodes")

    @prim.vjp("x")
    def _(ct):
        raise ZeroDivisionError("rule")

    for policy in POLICIES:
        for _ in range(2):
            with pytest.raises(ZeroDivisionError, match="rule"):
                pb.grad(
                    lambda x, policy=policy: np.sum(pb.fori_loop(0, 4, lambda k, u: prim(np.sin(u)), x, policy=policy))
                )(X)
    assert depth() == 0
    np.testing.assert_array_equal(pb.grad(lambda x: np.sum(x * x))(X), 2 * X)
