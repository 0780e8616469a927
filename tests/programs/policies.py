"""The policies that loops and marked steps are tried under, and the comparison of each with save-all."""

import numpy as np

import pullback as pb
from pullback.schedules import Advance, Delete, EndForward, EndReverse, Load, Record, Reverse, Save

MARKED = (
    pb.Recompute(), pb.Recompute(1), pb.Recompute(3), pb.Binomial(1), pb.Binomial(2), pb.Binomial(5), pb.Binomial(50),
    pb.Periodic(3), pb.Periodic(4, snapshots=1),
    pb.Keep(), pb.Keep(np.sin, lambda value: value.nbytes < 24), pb.Keep(np.sin, outer=pb.Binomial(2)),
)  # fmt: skip
"""For marked steps and plain code."""
UNTOLD = "ignore:Keep:pullback.PolicyWarning"
"""Rules of these that fit nothing in a program."""
LOOPED = (
    pb.SaveAll(), pb.Recompute(), pb.Recompute(3), pb.Binomial(1), pb.Binomial(2), pb.Binomial(5), pb.Binomial(50),
    pb.Periodic(3), pb.Periodic(4, snapshots=1), pb.Keep(), pb.Keep(np.sin, lambda value: value.nbytes < 24),
)  # fmt: skip
"""For loop functions, under which save-all is a policy like others."""
X = np.array([0.3, -0.7, 1.1])


def same_everywhere(f, *points, policies=MARKED):
    """The value and gradient of ``f`` have the bits of save-all under every policy at every point; the gradient is
    also right."""
    for x in points or (X, -1.5 * X):
        value, gradient = pb.value_and_grad(f)(x)
        for policy in policies:
            v, g = pb.value_and_grad(f, policy=policy)(x)
            assert np.asarray(v).tobytes() == np.asarray(value).tobytes(), policy
            assert g.tobytes() == gradient.tobytes(), f"{policy}: {g} is not {gradient}"
    e = 1e-6
    for k in range(x.size):
        step = np.zeros_like(x)
        step.flat[k] = e
        slope = (f(x + step) - f(x - step)) / (2 * e)
        np.testing.assert_allclose(gradient.flat[k], slope, rtol=1e-5, atol=1e-7)


def every_state(n, tier="memory"):
    """The actions of a right policy: a snapshot of each state, each step run twice."""
    for k in range(n):
        yield Save("state", k, tier)
        yield Advance(k, k + 1)
    yield EndForward()
    for k in reversed(range(n)):
        yield Load("state", k, tier)
        yield Delete("state", k, tier)
        yield Record(k)
        yield Reverse(k)
    yield EndReverse()
