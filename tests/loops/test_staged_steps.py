"""The switch ``staging``, and loops that are staged within other traces, threads and policies."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
from tests.staging.both_ways import stages

import pullback as pb
from pullback.memory.in_force import staging_in_force
from pullback.staging import shelf
from pullback.testing.comparing.bits import same_bits

X = np.array([0.3, -0.7, 1.1, 0.2])
POLICIES = (pb.SaveAll(), pb.Recompute(3), pb.Binomial(3))
LOOPS = {
    "fori_loop": lambda body, x, **given: pb.fori_loop(0, 12, lambda k, u: body(u), x, **given),
    "scan": lambda body, x, **given: pb.scan(lambda u, _: (body(u), None), x, length=12, **given)[0],
    "while_loop": lambda body, x, **given: pb.while_loop(
        lambda s: s[0] < 12, lambda s: (s[0] + 1, body(s[1])), (0, x), **given
    )[1],
}


@pytest.fixture(autouse=True)
def nothing_is_known():
    shelf.forget()
    yield
    shelf.forget()


def n_stages():
    return len(stages())


def sines(u):
    return np.sin(u) * 0.9 + u[::-1]


@pytest.mark.parametrize("loop", LOOPS)
def test_every_loop_function_takes_the_switch(loop):
    gradients = {
        staging: pb.grad(lambda x, staging=staging: np.sum(LOOPS[loop](sines, x, staging=staging)))(X)
        for staging in ("off", "auto", "numpy")
    }
    assert n_stages() == 1
    assert same_bits(gradients["off"], gradients["numpy"])
    assert same_bits(gradients["off"], gradients["auto"])


@pytest.mark.parametrize("staging", ["fast", "", True, "NumPy", 1])
@pytest.mark.parametrize("loop", LOOPS)
def test_a_switch_that_is_none_names_those_there_are(loop, staging):
    with pytest.raises(pb.PolicyError, match=r"staging= takes one of 'auto', 'off', 'numpy', got"):
        pb.grad(lambda x: np.sum(LOOPS[loop](sines, x, staging=staging)))(X)
    with pytest.raises(pb.PolicyError, match=r"staging= takes one of 'auto', 'off', 'numpy', got"):
        pb.using(staging=staging)


def test_using_is_what_none_means_and_an_argument_wins():
    assert staging_in_force() == "auto"
    with pb.using(staging="off"):
        assert staging_in_force() == "off"
        pb.grad(lambda x: np.sum(pb.fori_loop(0, 40, lambda k, u: np.sin(u), x)))(X)
        assert n_stages() == 0
        with pb.using(pb.Binomial(2)):
            assert staging_in_force() == "off"
        pb.grad(lambda x: np.sum(pb.fori_loop(0, 12, lambda k, u: np.sin(u), x, staging="numpy")))(X)
        assert n_stages() == 1
    assert staging_in_force() == "auto"


def test_without_a_gradient_nothing_is_staged():
    with pb.using(staging="numpy"):
        pb.fori_loop(0, 40, lambda k, u: np.sin(u), X)
        pb.jvp(lambda x: pb.fori_loop(0, 40, lambda k, u: np.sin(u), x), (X,), (X,))
    assert n_stages() == 0


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
@pytest.mark.parametrize("verify", ["off", "state", "all"])
def test_every_verify_has_the_same_bits(policy, verify):
    def of(staging):
        with pb.using(policy, verify=verify, staging=staging):
            return pb.grad(lambda x: np.sum(pb.fori_loop(0, 12, lambda k, u: np.sin(u) * x, x)))(X)

    assert same_bits(of("numpy"), of("off"))


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_loops_in_loops_and_in_other_traces(policy):
    def inner(u, x):
        return pb.fori_loop(0, 6, lambda j, v: np.sin(v) * x + u[0], u)

    def f(x):
        u = pb.fori_loop(0, 8, lambda k, u: inner(u, x) * 0.5, x)
        for _ in pb.steps(3):
            u = pb.fori_loop(0, 8, lambda k, v: np.cos(v) * x, u)
        return np.sum(pb.checkpoint(partial(inner, x=x))(u))

    def of(staging):
        with pb.using(staging=staging):
            return [pb.grad(f, policy=policy)(X), pb.hvp(f, (X,), (X[::-1],), policy=policy)]

    assert same_bits(of("numpy"), of("off"))


def test_threads_share_stages_and_no_buffers():
    def f(x):
        return np.sum(pb.fori_loop(0, 40, lambda k, u: np.sin(u) * x + u[::-1] * 0.1, x, staging="numpy"))

    points = [np.linspace(-1, 1, 4096) * (k + 1) for k in range(8)]
    alone = [pb.grad(f)(x) for x in points]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(pb.grad(f), points))
    assert same_bits(together, alone)


def test_a_trap_sees_every_operation():
    def body(k, u):
        return np.log(u - 0.1 * k)

    for staging in ("off", "numpy"):
        with pb.trap("nan"), pytest.raises(pb.NonFiniteError, match="log"), np.errstate(all="ignore"):
            pb.grad(lambda x, staging=staging: np.sum(pb.fori_loop(0, 12, body, x, staging=staging)))(X + 2)


@pytest.mark.parametrize("policy", [pb.Recompute(), pb.Binomial(2)], ids=repr)
def test_what_changes_between_the_runs_is_told(policy):
    c = np.ones(4)
    with pb.using(staging="numpy"):
        _, pull = pb.vjp(lambda x: np.sum(pb.fori_loop(0, 20, lambda k, u: np.sin(u) * c, x)), X.copy(), policy=policy)
        c[:] = 2.0
        with pytest.raises(pb.ReplayError, match=r"re-running the loop reached step .*changed in between: c \(float64"):
            pull(1.0)
