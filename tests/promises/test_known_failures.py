"""Programs of which other systems for checkpointed gradients gave a wrong one, or held the memory that they were to
save: their reports, written down in NumPy, under every policy. What is right is known by hand."""

import gc
import warnings

import numpy as np
import pytest

import pullback as pb

POLICIES = {
    "save all": lambda _: pb.SaveAll(),
    "recompute": lambda _: pb.Recompute(),
    "binomial": lambda _: pb.Binomial(2),
    "mixed": lambda _: pb.Mixed(2),
    "periodic": lambda _: pb.Periodic(2),
    "budget": lambda _: pb.Budget("4 MB"),
    "tiered": lambda folder: pb.Tiered(1, 2, directory=folder),
    "auto": lambda _: "auto",
}
FORMS = ("fori_loop", "steps", "checkpoint", "plain")


@pytest.fixture(params=POLICIES)
def policy(request, tmp_path):
    return POLICIES[request.param](tmp_path)


def iterated(form, n, step, state):
    """``step(k, *state)`` ``n`` times, in a form of loop."""
    if form == "fori_loop":
        return pb.fori_loop(0, n, lambda k, s: step(k, *s), state)
    if form == "checkpoint":
        for k in range(n):
            state = pb.checkpoint(lambda *s, k=k: step(k, *s))(*state)
        return state
    for k in pb.steps(n) if form == "steps" else range(n):
        state = step(k, *state)
    return state


def gradient(f, policy, at):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pb.PolicyWarning)  # programs this small have nothing to give up
        return pb.grad(f, policy=policy)(np.asarray(at, dtype=float))


@pytest.mark.parametrize("form", FORMS)
def test_the_derivative_at_a_new_control_is_that_of_the_new_control(policy, form):
    """firedrake#5082: J = 4 m**2, and at m = 2 the derivative was 8, of m = 1."""

    def f(m):
        return iterated(form, 4, lambda k, total: (total + m * m,), (m * 0.0,))[0]

    for m in (1.0, 2.0, -3.0):
        assert gradient(f, policy, m) == 8 * m


@pytest.mark.parametrize("form", FORMS)
def test_what_was_made_in_the_first_step_is_read_in_the_third(policy, form):
    """pyadjoint#260: u goes m, 1.1 m, 2.2 m**2, 2.42 m**2; the value at m = 2 was right, the derivative was not."""

    def step(k, f, u, m):
        if k == 0:
            return 2 * m, m, m
        return f, u * f if k == 2 else 1.1 * u, m

    def value(m):
        return iterated(form, 4, step, (m * 0.0, m * 0.0, m))[1] ** 2

    for m in (1.0, 2.0):
        np.testing.assert_allclose(gradient(value, policy, m), 4 * 2.42**2 * m**3, rtol=1e-13)


@pytest.mark.parametrize("form", FORMS)
def test_a_value_that_every_third_step_reads(policy, form):
    """pyadjoint#211: what was read long ago had been given up when the reverse came to it."""

    def step(k, u, old):
        if k % 3 == 0:
            return u * old, u
        return u * 1.5, old

    def value(m):
        return iterated(form, 9, step, (m, m))[0]

    plain = np.array(0.7)
    exponents = (1, 1)
    scale = (1.0, 1.0)
    for k in range(9):  # u = scale m**exponent, and the same of what is kept
        if k % 3 == 0:
            exponents, scale = (sum(exponents), exponents[0]), (scale[0] * scale[1], scale[0])
        else:
            scale = scale[0] * 1.5, scale[1]
    expected = scale[0] * exponents[0] * plain ** (exponents[0] - 1)
    np.testing.assert_allclose(gradient(value, policy, plain), expected, rtol=1e-13)


@pytest.mark.parametrize("form", FORMS)
def test_the_rate_of_a_taylor_test_is_2(policy, form):
    """pyadjoint#200: with snapshots on disk the rate fell to 1.9 and to 1.3."""
    random = np.random.default_rng(0)
    x, d = random.normal(size=(2, 30))

    def value(u):
        v = iterated(form, 12, lambda k, u, v: (u + 0.1 * np.sin(v), v - 0.05 * u * u), (u, u * 0.5))
        return np.sum(v[0] * v[1])

    slope = float(gradient(value, policy, x) @ d)
    left = [abs(value(x + h * d) - value(x) - h * slope) for h in (1e-2, 5e-3, 2.5e-3)]
    rates = np.log2(np.array(left[:-1]) / left[1:])
    assert np.all(abs(rates - 2) < 0.05)


@pytest.mark.parametrize("form", FORMS)
def test_data_that_the_number_of_the_step_finds(policy, form):
    """Reactant#3119: a step that reads a column by its own number had the gradient of others."""
    columns = np.arange(1.0, 21.0)

    def value(a):
        grown, total = iterated(
            form, 20, lambda t, x, total: (a * x + 0.1, total + columns[int(t)] * (a * x + 0.1)), (a * 1.0, a * 0.0)
        )
        return total + 0 * grown

    at, step = 0.9, 1e-30
    x, total = at + step * 1j, 0.0
    for t in range(20):
        x = (at + step * 1j) * x + 0.1
        total = total + columns[t] * x
    np.testing.assert_allclose(gradient(value, policy, at), total.imag / step, rtol=1e-12)


@pytest.mark.parametrize("form", FORMS)
def test_a_state_that_is_changed_in_place_while_it_is_written(policy, form):
    """SWEEP#37: buffers that were used again before they lay on disk spoilt the gradient."""
    n = 40

    def step(k, u):
        u[1:-1] += 0.2 * (u[2:] - 2.0 * u[1:-1] + u[:-2])
        u *= 1.001
        return (u,)

    def value(x):
        return np.sum(iterated(form, 15, step, (x * 1.0,))[0] ** 2)

    def column(x):
        u = x.copy()
        for k in range(15):
            step(k, u)
        return u

    x = np.sin(np.arange(float(n)))
    matrix = np.array([column(row) for row in np.eye(n)])  # the steps are linear
    np.testing.assert_allclose(gradient(value, policy, x), 2 * matrix @ column(x), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("form", ["fori_loop", "steps", "plain"])
def test_noise_is_the_same_when_a_step_is_run_again(policy, form):
    """PIDM#66, and a probe of autograd: drawn again, the noise was another, and the gradient silently wrong."""

    def value(x, rng):
        return np.sum(iterated(form, 8, lambda k, u: (u * (1.0 + 0.1 * rng.normal(size=3)),), (x,))[0] ** 2)

    factor = np.ones(3)
    rng = np.random.default_rng(7)
    for _ in range(8):
        factor = factor * (1.0 + 0.1 * rng.normal(size=3))
    x = np.array([1.0, -2.0, 0.5])
    for _ in range(2):
        drawn = np.random.default_rng(7)
        np.testing.assert_allclose(gradient(lambda x, r=drawn: value(x, r), policy, x), 2 * x * factor**2, rtol=1e-13)
        assert drawn.bit_generator.state == rng.bit_generator.state  # drawn from as often as by the program


def test_running_averages_are_updated_once_a_step(policy):
    """fairscale#694, efficient_densenet#73: the averages of a normalisation moved twice as far where steps were run
    again."""
    seen = []

    def step(k, u):
        pb.effect(lambda mean: seen.append(float(mean)))(np.mean(u))
        return (np.tanh(u * 1.1),)

    gradient(lambda x: np.sum(iterated("fori_loop", 9, step, (x,))[0]), policy, [0.3, 0.4])
    assert len(seen) == 9
    assert len(set(seen)) == 9


@pytest.mark.parametrize("form", FORMS)
def test_what_a_step_closes_over_is_an_input(policy, form):
    """Nabla.jl#171, pytorch#7617, a probe of autograd, which gave half of it: the weights are reached by a closure."""

    def value(w):
        x = 0.5 * w
        return iterated(form, 5, lambda k, u: (np.sin(u * w) + x,), (w * 1.0,))[0]

    at, step = 0.8, 1e-30
    w = u = at + step * 1j
    for _ in range(5):
        u = np.sin(u * w) + 0.5 * w
    np.testing.assert_allclose(gradient(value, policy, at), u.imag / step, rtol=1e-13)


def test_a_value_of_another_run_is_refused():
    """What a closure has kept of a run that is over is not a number of the next."""
    kept = []
    pb.grad(lambda x: (kept.append(x), x * x)[1])(1.0)
    with pytest.raises(pb.PullbackError, match="trace"):
        pb.grad(lambda x: np.sum(pb.fori_loop(0, 3, lambda k, u: u * kept[0], x)), policy=pb.Binomial(2))(2.0)


@pytest.mark.parametrize("snapshots", [2, 5, 9])
@pytest.mark.parametrize("form", ["fori_loop", "steps"])
def test_the_memory_is_that_of_the_snapshots(form, snapshots):
    """jax#19822, tensorflow#36981, a probe of autograd (605 states, and 606 with checkpoints): the peak is no more than
    the snapshots, one tape and the running state, and the same of a loop ten times as long."""
    size, tape = 4000, 4

    def held(n):
        _, pull = pb.vjp(
            lambda x: np.sum(iterated(form, n, lambda k, u: (u + 1e-3 * np.sin(u) * np.cos(u),), (x,))[0]),
            np.linspace(0, 1, size),
            policy=pb.Binomial(snapshots),
        )
        pull(1.0)
        report = pull.report
        pull.close()
        gc.collect()
        return report

    short, long = held(30), held(300)
    assert long.bytes_by_reason["snapshot"] <= snapshots * size * 8
    assert long.peak_bytes <= (snapshots + tape + 1) * size * 8 + 100 * 300 + 4_000  # the state, the books of the steps
    assert abs(long.bytes_by_reason["snapshot"] - short.bytes_by_reason["snapshot"]) <= size * 8


def test_a_policy_that_saves_nothing_says_so():
    """jax#9348: nobody was told that what was to be computed again was held all the same."""
    with pytest.warns(pb.PolicyWarning, match="SaveAll|save-all|saves nothing|holds"):
        pb.grad(lambda x: np.sum(np.sin(x) * x), policy=pb.Keep(np.sin, others="keep"))(np.ones(5))
