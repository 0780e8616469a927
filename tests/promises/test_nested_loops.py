"""Loops in loops: plans by a run, and from shapes, tell the bytes and steps of every later run."""

import numpy as np
import pytest

import pullback as pb

X = np.linspace(0.1, 1.0, 2000)


def nested(x):
    def inner(u):
        return pb.fori_loop(0, 10, lambda k, v: np.sin(v) + 0.1 * v, u)

    return np.sum(pb.fori_loop(0, 20, lambda k, u: inner(u) * u + 1, x))


@pytest.mark.share(2, of=lambda **_: "")
@pytest.mark.parametrize("staging", ["off", "auto"])
@pytest.mark.parametrize(
    "policy", [pb.SaveAll(), pb.Mixed(5), pb.Periodic(7), pb.Binomial(3), pb.Recompute(), pb.Budget("1 MB")], ids=repr
)
def test_a_plan_of_nested_loops_is_what_runs_book_and_runs_book_alike(policy, staging):
    found = set()
    with pb.using(staging=staging):
        for _ in range(2):
            _, pull = pb.vjp(nested, X, policy=policy)
            pull(1.0)
            found.add((pull.report.peak_bytes, pull.report.n_forward))
            pull.close()
        for plan in (pb.plan(nested, X, policy=policy), pb.plan(nested, pb.spec(X.shape), policy=policy)):
            found.add((plan.peak_bytes, plan.n_forward))
    assert len(found) == 1
