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


@pytest.mark.parametrize("staging", ["no-name", "", True, "1", 1])
@pytest.mark.parametrize("loop", LOOPS)
def test_a_switch_that_is_none_names_those_there_are(loop, staging):
    said = r"staging= takes one of 'auto', 'off', 'numpy' or the name of a backend, got"
    with pytest.raises(pb.PolicyError, match=said):
        pb.grad(lambda x: np.sum(LOOPS[loop](sines, x, staging=staging)))(X)
    with pytest.raises(pb.PolicyError, match=said):
        pb.using(staging=staging)


@pytest.mark.parametrize("loop", LOOPS)
def test_a_backend_that_is_not_installed_is_named_with_the_line_that_installs_it(loop):
    said = r"no backend 'fast' is installed \(there is: .*\); pip install pullback-fast"
    with pytest.raises(pb.PluginError, match=said):
        pb.grad(lambda x: np.sum(LOOPS[loop](sines, x, staging="fast")))(X)
    with pytest.raises(pb.PluginError, match=said):
        pb.using(staging="fast")


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


def both_ways(f, x, policies=POLICIES):
    """Value and gradient under each policy, staged (twice) and not: the same bits."""
    for policy in policies:
        recorded = pb.value_and_grad(partial(f, staging="off"), policy=policy)(x)
        for _ in range(2):
            assert same_bits(pb.value_and_grad(partial(f, staging="numpy"), policy=policy)(x), recorded), policy


def test_plain_arrays_that_the_body_writes_and_returns_are_its_own():
    def f(x, staging):
        def queue(k, state):
            u, line = state
            v = u * line
            line[1:] = line[:-1].copy()
            line[0] = k
            return (v + u * line * 0.1 + x) * 0.1, line

        start = np.ones(x.size, int)
        return np.sum(pb.fori_loop(0, 12, queue, (x, start), staging=staging)[0])

    for x in (X, np.linspace(0.1, 1.0, 3000)):
        both_ways(f, x, [pb.SaveAll()])  # where steps are run again, such a write is a ReplayError both ways


def test_one_array_returned_as_two_leaves_is_two():
    def f(x, staging):
        def body(k, state):
            w = np.sin(state[0] @ state[1].T) @ x
            return w, w

        u, v = pb.fori_loop(0, 12, body, (x, x * 1.0), staging=staging)
        return np.sum(u * v)

    x = np.random.default_rng(0).standard_normal((60, 50))
    both_ways(f, x, [pb.SaveAll(), pb.Binomial(3)])  # NumPy multiplies an array with itself in another way than two


def test_pythons_own_arithmetic_fails_where_it_stands():
    def f(x, staging):
        def body(k, state):
            u, t = state
            try:
                part = 1 / (t - 0.5)
            except ZeroDivisionError:
                part = 2.0
            return u * 0.9 + part * 0.01, t + (-0.25 if k < 3 else 0.125)

        return np.sum(pb.fori_loop(0, 12, body, (x, 1.0), staging=staging)[0])

    both_ways(f, X)
    both_ways(f, X.astype(np.float32))


def test_a_number_in_the_state_stays_one():
    def f(x, staging):
        body = lambda k, s: (np.sin(s[0] * s[1]), np.sin(s[1]) + 0.5)  # noqa: E731
        return np.sum(pb.fori_loop(0, 12, body, (x, 1.5), staging=staging)[0])

    both_ways(f, X.astype(np.float32))


def test_what_has_other_shapes_for_other_values_is_not_staged():
    def f(x, staging):
        def body(k, u):
            counts = np.bincount(np.array([0, 1, 1, 3 - k % 2]), weights=u)
            kinds = np.unique(np.array([1.0, 1.0, 2.0, k]) * u[0])
            return u * 0.9 + counts.sum() * 0.1 + kinds.sum() * 0.01

        return np.sum(pb.fori_loop(0, 12, body, x, staging=staging))

    both_ways(f, X)
    assert not n_stages()


def test_a_scalar_array_that_is_written_in_place():
    def f(x, staging):
        def body(k, state):
            u, t = state
            t /= 1.5
            return u * t, t

        u, t = pb.fori_loop(0, 12, body, (x, np.array(0.4) + x[0]), staging=staging)
        return np.sum(u) * t

    both_ways(f, X)


def test_a_pull_in_another_thread_than_that_of_the_loop():
    _, pull = pb.vjp(lambda x: LOOPS["fori_loop"](sines, x, staging="numpy"), X, policy=pb.Binomial(3))
    (wanted,) = pull(np.ones(4))
    with ThreadPoolExecutor(1) as pool:
        (found,) = pool.submit(pull, np.ones(4)).result()
    assert same_bits(found, wanted)


def test_a_handle_in_a_slice_is_refused_as_ever():
    def f(x, staging):
        body = lambda k, u: u * 0.9 + u[1 : 1 if k < 6 else u[0] * 0 + 1].sum()  # noqa: E731
        return np.sum(pb.fori_loop(0, 12, body, x, staging=staging))

    for staging in ("off", "numpy"):
        with pytest.raises(pb.ConversionError, match="an index made of a tracer"):
            pb.grad(partial(f, staging=staging))(X)
