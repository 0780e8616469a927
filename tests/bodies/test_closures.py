"""What a loop's body closes over is that of the moment of the call."""

import numpy as np
import pytest
from tests.programs.policies import LOOPED, UNTOLD, X

import pullback as pb

pytestmark = pytest.mark.filterwarnings(UNTOLD)


@pytest.mark.parametrize("policy", LOOPED, ids=repr)
def test_late_bound_closures_are_frozen(policy):
    def f(x):
        total, factor = 0.0, 1.0
        for factor in (1.0, 2.0, 3.0):

            def body(k, u):
                return np.sin(u) * factor + x  # noqa: B023

            total = total + np.sum(pb.fori_loop(0, 6, body, x, policy=policy))
        factor = 100.0
        return total * factor

    def unrolled(x):
        total = 0.0
        for factor in (1.0, 2.0, 3.0):
            u = x
            for _ in range(6):
                u = np.sin(u) * factor + x
            total = total + np.sum(u)
        return total * 100.0

    np.testing.assert_allclose(pb.grad(f)(X), pb.grad(unrolled)(X), rtol=1e-13)


@pytest.mark.parametrize("policy", [pb.Recompute(3), pb.Binomial(1), pb.Binomial(2)], ids=repr)
def test_a_traced_variable_rebound_after_the_loop(policy):
    def f(x):
        w = x * 2
        u = pb.fori_loop(0, 6, lambda k, u: np.sin(u) * w, x, policy=policy)
        w = w * 100
        return np.sum(u) + np.sum(w)

    def g(x):
        w = x * 2
        u = pb.fori_loop(0, 6, lambda k, u: np.sin(u) * w, x, policy=policy)
        w *= 100  # in place
        return np.sum(u) + np.sum(w)

    expected = pb.grad(lambda x: np.sum(pb.fori_loop(0, 6, lambda k, u: np.sin(u) * (x * 2), x)) + np.sum(200 * x))(X)
    np.testing.assert_allclose(pb.grad(f)(X), expected, rtol=1e-13)
    np.testing.assert_allclose(pb.grad(g)(X), expected, rtol=1e-13)


@pytest.mark.parametrize("policy", [None, pb.Recompute(3), pb.Binomial(2)], ids=repr)
def test_what_holds_itself_is_read_and_watched(policy):
    def run(changed):
        node = {"rate": 1.01, "children": []}
        node["children"].append({"parent": node})

        def body(k, u):
            return u * node["children"][0]["parent"]["rate"]

        _, pull = pb.vjp(lambda x: np.sum(pb.fori_loop(0, 9, body, x)), np.zeros(2), policy=policy)
        node["rate"] *= changed
        return pull(1.0)[0]

    np.testing.assert_allclose(run(1.0), 1.01**9)
    if policy is not None:
        with pytest.raises(pb.ReplayError, match="node"):
            run(2.0)
