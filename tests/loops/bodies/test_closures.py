"""What a loop's body closes over is that of the moment of the call."""

from functools import partial, wraps

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


def itself(step):
    return step


def called(step):
    def body(k, state):
        return step(k, state)

    return body


def in_a_list(step):
    steps = [step]

    def body(k, state):
        return steps[0](k, state)

    return body


def of_a_partial(step):
    return partial(lambda f, k, state: f(k, state), step)


def of_a_wrapper(step):
    return wraps(step)(called(step))


@pytest.mark.parametrize("way", [itself, called, in_a_list, of_a_partial, of_a_wrapper])
def test_arrays_of_a_closure_that_a_library_has_made_are_shared_however_a_body_comes_to_it(way, monkeypatch):
    """All tapes hold the same, so they are small beside a state: such steps keep tapes where they would keep states."""
    damping = np.linspace(0.5, 1.0, 400)

    def made_by(module):
        def step(k, state):
            u_prev, u = state
            return u, u_prev + np.sin(damping * u)

        monkeypatch.setattr(step, "__module__", module)
        return step

    def counted(step):
        x = np.linspace(0.1, 1.0, 400)
        _, pull = pb.vjp(lambda x: np.sum(pb.fori_loop(0, 20, step, (x, x.copy()), policy=pb.Binomial(3))[1]), x)
        g = pull(1.0)[0]
        return g.tobytes(), pull.report.n_forward, pull.report.peak_bytes

    assert counted(way(made_by("pullback.demos.wave_model"))) == counted(made_by(__name__))
