"""Keep with a policy between marked steps: the rules say what the tape of a step holds, the policy which are held."""


import numpy as np
import pytest
from tests.programs.drifting import drifting_primitive
from tests.programs.measured import peak_of

import pullback as pb
from pullback.stores import AsType, Disk, InMemory, Stored, Zlib
from pullback.testing.comparing.bits import same_bits

W = np.random.default_rng(0).normal(size=(10, 10)) / 3
X = np.random.default_rng(1).normal(size=(400, 10))
ARRAY = X.nbytes
N = 40


def layer(x):
    z = pb.name(x @ W, "potential")
    return np.tanh(np.sin(z) * np.cos(z) + np.exp(-z * z)) * z


def marked(x, n=N):
    for k in pb.steps(n):
        x = layer(x) + 0.1 * k
    return np.sum(x**2)


def looped(x, n=N):
    return np.sum(pb.fori_loop(0, n, lambda k, u: layer(u) + 0.1 * k, x) ** 2)


def endless(x):
    total = 0.0
    for k in pb.steps(iter(range(100))):
        x = layer(x) + 0.1 * k
        total = total + np.sum(x)
        if k == 17:
            break
    return total + np.sum(x**2)


def left(x):
    for k in pb.steps(N):
        x = layer(x)
        if k == 11:
            break
    return np.sum(x**2)


def inner(x):
    for _ in pb.steps(7):
        u = pb.name(np.exp(-x * x), "potential")
        x = pb.fori_loop(0, 3, lambda j, v, u=u: np.sin(v) * u, x) + np.cos(u) * u
    return np.sum(x**2)


def written(x):
    u, w = x * 1.0, np.zeros_like(x)
    for k in pb.steps(9):
        z = pb.name(np.exp(-u * u), "potential")
        w[1:] = z[:-1] * u[1:]
        u[k] = 0.5 * np.sum(z)
        u = np.tanh(w) * z + u
        z[0] = 2.0
        w += z
    return np.sum(u * w)


def report_of(f, policy, x=X):
    """The report of a gradient that has the bits of save-all, twice."""
    expected = pb.grad(f)(x)
    out, pull = pb.vjp(f, x, policy=policy)
    (first,), report = pull(np.ones_like(out)), pull.report
    (second,) = pull(np.ones_like(out))
    assert first.tobytes() == second.tobytes() == expected.tobytes()
    assert pb.grad(f, policy=policy)(x).tobytes() == expected.tobytes()
    moved = -0.5 * x
    assert pb.grad(f, policy=policy)(moved).tobytes() == pb.grad(f)(moved).tobytes()
    pull.close()
    assert pull.report.live_bytes == 0
    return report


OUTERS = [
    pb.Binomial(3), pb.Recompute(), pb.Periodic(4), pb.Periodic(4, snapshots=2), pb.Budget("3 MB"),
    pb.BudgetPool("3 MB"), pb.Tiered(2, None), Stored(pb.Recompute(), memory=Disk()),
    Stored(pb.Binomial(4), memory=InMemory(Zlib())),
]  # fmt: skip


HOWS = [*((outer, "keep") for outer in OUTERS), (OUTERS[0], Zlib()), (OUTERS[1], Disk()), (OUTERS[4], Disk())]


@pytest.mark.share(2, of=lambda **_: "")
@pytest.mark.parametrize(("outer", "how"), HOWS, ids=str)
@pytest.mark.parametrize("f", [marked, endless, inner, written])
def test_the_bits_are_those_of_save_all(f, outer, how):
    report_of(f, pb.Keep({"potential": how}, outer=outer))


@pytest.mark.parametrize("outer", [pb.Mixed(5), pb.Mixed(1), pb.Binomial(2), pb.Recompute()], ids=str)
def test_a_loop_that_is_left(outer):
    report_of(left, pb.Keep("potential", outer=outer))


def test_smaller_tapes_mean_fewer_steps():
    whole, some = report_of(marked, pb.Mixed(8)), report_of(marked, pb.Keep("potential", outer=pb.Mixed(8)))
    assert some.n_forward < whole.n_forward
    assert some.n_forward == report_of(looped, pb.Keep("potential", outer=pb.Mixed(8))).n_forward
    assert report_of(marked, pb.Keep("potential", outer=pb.Binomial(3))).n_forward == (
        report_of(marked, pb.Binomial(3)).n_forward
    )


@pytest.mark.parametrize("n_arrays", [50, 70, 120])
@pytest.mark.parametrize("f", [marked, inner])
def test_a_budget_between_such_steps_binds(f, n_arrays):
    gradient = pb.grad(f, policy=pb.Keep("potential", outer=pb.Budget(n_arrays * ARRAY)))
    gradient(X)
    _, peak = peak_of(gradient, X)
    assert peak < n_arrays * ARRAY


def test_too_few_bytes_are_refused_with_those_that_do():
    with pytest.raises(pb.BudgetError) as caught:
        pb.grad(marked, policy=pb.Keep("potential", outer=pb.Budget(10 * ARRAY)))(X)
    report_of(marked, pb.Keep("potential", outer=pb.Budget(caught.value.minimum_bytes)))


@pytest.mark.parametrize("outer", [pb.Mixed(8), pb.Recompute(), pb.Budget("2 MB")], ids=str)
@pytest.mark.parametrize("f", [marked, inner])
def test_a_plan_is_what_the_report_says(f, outer):
    policy = pb.Keep("potential", outer=outer)
    plan, report = pb.plan(f, X, policy=policy), report_of(f, policy)
    assert (plan.n_forward, plan.bytes_by_reason) == (report.n_forward, report.bytes_by_reason)


def test_what_is_held_is_what_the_rules_say():
    for n in (10, 20):
        report = pb.vjp(lambda x, n=n: marked(x, n), X, policy=pb.Keep("potential", outer=pb.Mixed(60)))[1].report
        assert report.bytes_by_reason["saved"] == n * ARRAY  # and what enters each
        assert report.live_bytes < (2 * n + 3) * ARRAY


def test_rules_that_fit_nothing_say_so():
    with pytest.warns(pb.PolicyWarning, match="fits 'potentail'. There are the labels 'potential'") as told:
        pb.grad(marked, policy=pb.Keep("potentail", "potential", outer=pb.Recompute()))(X)
    assert len(told) == 1


def test_rules_that_save_nothing_name_the_policy_that_stands_alone():
    with pytest.warns(pb.PolicyWarning, match=r"holds .*, and Mixed\(3\) alone .* or pass pullback.Mixed"):
        pb.grad(marked, policy=pb.Keep(others="keep", outer=pb.Mixed(3)))(X)


def test_a_lossy_codec_is_close():
    policy = pb.Keep({"potential": AsType("f4")}, outer=pb.Recompute())
    np.testing.assert_allclose(pb.grad(marked, policy=policy)(X), pb.grad(marked)(X), rtol=1e-2, atol=1e-4)


@pytest.mark.parametrize("outer", [pb.Recompute(), pb.Mixed(3)], ids=str)
def test_other_derivatives(outer):
    x, t = X[:3], X[3:6]
    policy = pb.Keep("potential", outer=outer)
    assert same_bits(pb.hvp(marked, (x,), (t,), policy=policy), pb.hvp(marked, (x,), (t,)))
    assert same_bits(pb.jacobian(lambda x: np.sum(inner(x) * x, axis=0), policy=policy)(x), pb.jacobian(
        lambda x: np.sum(inner(x) * x, axis=0))(x))  # fmt: skip
    both = [pb.grad(lambda x, p=p: np.sum(pb.grad(marked, policy=p)(x) * t))(x) for p in (policy, None)]
    assert same_bits(*both)
    both = [pb.grad(lambda x, p=p: np.sum(pb.grad(lambda u: marked(u) * np.sum(x * u), policy=p)(x) * t))(x)
            for p in (policy, None)]  # fmt: skip
    assert same_bits(*both)


def test_what_is_computed_again_is_compared():
    drift = drifting_primitive()

    def f(x):
        for _ in pb.steps(6):
            x = np.sin(drift(np.exp(-x)))
        return np.sum(x)

    with pytest.raises(pb.ReplayError, match=r"drifting, called at .* gave other bytes"):
        pb.grad(f, policy=pb.Keep(np.exp, outer=pb.Mixed(10)))(X)


def test_a_rule_for_the_label_of_one_step_is_for_that_step_alone():
    """Though steps share what executes them again where they differ in labels alone."""
    n_calls = [0]

    @pb.primitive
    def sine(x):
        n_calls[0] += 1
        return np.sin(x)

    sine.vjp("x", fn=lambda ct, x: ct * np.cos(x))

    def f(x):
        for k in pb.steps(20):
            v = pb.name(sine(x), f"step {k}")
            x = np.tanh(v * v) * np.exp(-x * x) * v
        return np.sum(x)

    def calls(*rules):
        n_calls[0] = 0
        found = pb.grad(f, policy=pb.Keep(np.tanh, *rules, outer=pb.Recompute()))(X)
        assert found.tobytes() == pb.grad(f)(X).tobytes()
        return n_calls[0]

    assert calls("step 3") == calls() - 1
    assert calls("step 3", "step 11") == calls() - 2
