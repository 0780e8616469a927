"""Where a program is linear, no policy holds more than save-all: tapes smaller than states are held in their place."""

import numpy as np
import pytest

import pullback as pb
from pullback.schedules import simulate
from pullback.scheduling.machine.known_schedules import KEPT_AT_A_TIME

N = 60
X = np.linspace(0.1, 1.0, 20_000)
C = np.linspace(0.5, 1.0, 20_000)
COUNTING = [pb.Recompute(), pb.Binomial(3), pb.Binomial(20), pb.Mixed(4), pb.Periodic(7), pb.Tiered(4, 0)]
POLICIES = [*COUNTING, pb.Budget("50 MB"), "auto"]


def mixed(u):
    return C * u + 0.1 * np.roll(u, 1)


def fori(x):
    return np.sum(pb.fori_loop(0, N, lambda k, u: mixed(u), x))


def scanned(x):
    return np.sum(pb.scan(lambda u, row: (mixed(u) + row, None), x, np.ones((N, 1)))[0])


def two_arrays(x):  # a leapfrog of a linear wave
    step = lambda k, state: (state[1], 2 * state[1] - state[0] + C * np.roll(state[1], 1))  # noqa: E731
    return np.sum(pb.fori_loop(0, N, step, (x, 0.5 * x))[1])


def while_(x):
    step = lambda state: (mixed(state[0]), state[1] + 1)  # noqa: E731
    return np.sum(pb.while_loop(lambda state: state[1] < N, step, (x, 0))[0])


def marked(x):
    u = x
    for _ in pb.steps(N):
        u = mixed(u)
    return np.sum(u)


def of_unknown_length(x):
    u = x
    for _ in pb.steps(iter(range(N))):
        u = mixed(u)
    return np.sum(u)


def plain(x):
    u = x
    for _ in range(N):
        u = mixed(u)
    return np.sum(u)


UNKNOWN = (while_, of_unknown_length)
CASES = [
    (f, policy)
    for f in (fori, scanned, two_arrays, while_, marked, of_unknown_length, plain)
    for policy in POLICIES
    if policy != pb.Mixed(4) or f not in (*UNKNOWN, plain)  # which needs a known length
]


@pytest.mark.share(2, of=lambda **_: "")
@pytest.mark.parametrize(("f", "policy"), CASES, ids=lambda case: getattr(case, "__name__", repr(case)))
def test_no_policy_holds_more_than_save_all_where_a_program_is_linear(f, policy):
    """Beside the books of marked steps, the two newest states where the length is not known, or ``auto`` looks at the
    second, and the initial state, for another pull, where save-all keeps none for that."""
    saved, pull = pb.vjp(f, X, policy=pb.SaveAll())
    out, again = pb.vjp(f, X, policy=policy)
    np.testing.assert_array_equal(again(1.0)[0], pull(1.0)[0])
    assert out == saved
    besides = X.nbytes * (2 * (f in UNKNOWN or policy == "auto") + (f in (marked, of_unknown_length, plain)))
    held = again.report.peak_bytes - again.report.bytes_by_reason.get("bookkeeping", 0)
    assert held <= 1.02 * pull.report.peak_bytes + besides
    assert again.report.n_forward <= N + 1  # plain code may end in a step of its own
    forecast = pb.plan(f, X, policy=policy)
    assert (forecast.peak_bytes, forecast.n_forward) == (again.report.peak_bytes, again.report.n_forward)


@pytest.mark.share(2, of=lambda **_: "")
@pytest.mark.parametrize("policy", [pb.Binomial(3), pb.Recompute(5), pb.Periodic(10), pb.Tiered(3, 0)], ids=repr)
@pytest.mark.parametrize("form", ["fori_loop", "while_loop", "steps", "iterable", "plain"])
def test_steps_that_hold_more_later_are_held_as_states_again(form, policy):
    """Only the first of 400 steps are linear: what is held is that of the policy, and of the tapes put in memory before
    it is asked again."""
    n, linear = 400, 3

    def step(k, u):
        return mixed(u) if k < linear else np.sin(u)

    def f(x):
        if form == "fori_loop":
            return np.sum(pb.fori_loop(0, n, step, x))
        if form == "while_loop":
            return np.sum(pb.while_loop(lambda s: s[1] < n, lambda s: (step(s[1], s[0]), s[1] + 1), (x, 0))[0])
        u = x
        for k in {"steps": pb.steps(n), "iterable": pb.steps(iter(range(n)))}.get(form, range(n)):
            u = step(k, u)
        return np.sum(u)

    _, pull = pb.vjp(f, X, policy=policy)
    np.testing.assert_array_equal(pull(1.0)[0], pb.grad(f)(X))
    own = simulate(policy.schedule(n), n, state_bytes=X.nbytes, tape_bytes=X.nbytes).peak_bytes
    assert pull.report.peak_bytes <= own + (KEPT_AT_A_TIME + 4) * X.nbytes


@pytest.mark.parametrize("policy", [pb.Binomial(4), pb.Recompute(5), pb.Periodic(7), pb.Tiered(3, 0)], ids=repr)
@pytest.mark.parametrize("size", [50, 1000, 2500])
def test_copies_of_plain_arrays_are_shared_by_the_tapes_of_every_span(size, policy):
    """The copy of an array that the body reads goes with the last tape that holds it, and another is made: that is no
    larger tape."""
    table, x = np.linspace(1, 2, 8_000), np.linspace(0.1, 0.2, 8_000)

    def f(x):
        return np.sum(pb.fori_loop(0, 40, lambda k, u: u * table + np.sum(np.sin(2.0 * u[:size])), x))

    _, pull = pb.vjp(f, x, policy=policy)
    np.testing.assert_array_equal(pull(1.0)[0], pb.grad(f)(x))
    assert pull.report.peak_bytes == pb.plan(f, x, policy=policy).peak_bytes
