"""``pb.plan(f, *args, budget=...)``: what it names holds what it says, and no more than was allowed."""

import gc
import re
import tracemalloc
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.programs.loops_and_marks import marked, plain, two_loops, unknown
from tests.programs.stages import programs

import pullback as pb
from pullback.instruments.planning import advice_from_forecasts
from pullback.instruments.planning.advice import Advice
from pullback.instruments.profiling import plan_forecast
from pullback.instruments.profiling.seconds import StepSeconds
from pullback.scheduling.machine.actions import Load, Save

X, LARGE = np.linspace(0.1, 2.0, 100), np.linspace(0.1, 2.0, 10_000)


def looped(x):
    return np.sum(pb.fori_loop(0, 60, lambda k, u: u + 0.1 * np.sin(u) * np.exp(-u * k), np.abs(x)) ** 2)


def linear(x):
    """Its tape is smaller than its states."""
    return np.sum(pb.fori_loop(0, 60, lambda k, u: 0.9 * u + 0.1 * np.roll(u, 1), x) ** 2)


def linear_marked(x):
    u = x
    for _ in pb.steps(60):
        u = 0.9 * u + 0.1 * np.roll(u, 1)
    return np.sum(u**2)


def advised(f, x, budget):
    """The advice, or the bytes that would be enough."""
    try:
        return pb.plan(f, x, budget=budget)
    except pb.BudgetError as error:
        return error.minimum_bytes


def require_true(f, x, advice):
    """The policy that is named holds and runs what was forecast, with the bits of save-all."""
    expected = pb.vjp(f, x)[1](1.0)[0]
    out, pull = pb.vjp(f, x, policy=advice.policy)
    assert pull(np.ones_like(out))[0].tobytes() == expected.tobytes()
    report = pull.report
    assert (report.peak_bytes, report.n_forward) == (advice.peak_bytes, advice.n_forward)
    assert report.bytes_by_reason == advice.bytes_by_reason
    pull.close()


@pytest.fixture
def slow_steps(monkeypatch):
    """Every step takes a second, and nothing else any time, whatever the machine does."""
    monkeypatch.setattr(plan_forecast, "time", SimpleNamespace(perf_counter=lambda: 0.0))
    monkeypatch.setattr(advice_from_forecasts, "step_seconds", lambda _: StepSeconds(1.0, 1.0, 1.0))


@pytest.mark.usefixtures("slow_steps")
@pytest.mark.parametrize(
    "policy", [pb.SaveAll(), pb.Binomial(3), pb.Mixed(4), pb.Recompute(), pb.Budget("30 kB"), pb.Periodic(7), "auto"]
)
def test_a_plan_under_a_policy_tells_seconds(policy):
    plan = pb.plan(looped, X, policy=policy)
    assert plan.seconds == pytest.approx(plan.n_forward + 60)  # every step is reversed once
    assert f"{plan.n_forward} forward steps, {plan.seconds:.2g} s" in str(plan)
    twice = pb.plan(two_loops, X, policy=policy)
    n_steps = pb.plan(two_loops, X, policy=pb.SaveAll()).n_forward
    assert twice.seconds == pytest.approx(twice.n_forward + n_steps)


@pytest.mark.usefixtures("slow_steps")
def test_the_seconds_of_a_disk_are_those_of_its_policy():
    policy = pb.Tiered(2, 3, write_cost=2, read_cost=5)
    reads = sum(getattr(action, "tier", "") == "disk" and type(action) is Load for action in policy.schedule(60))
    writes = sum(getattr(action, "tier", "") == "disk" and type(action) is Save for action in policy.schedule(60))
    plan = pb.plan(looped, X, policy=policy)
    assert reads > 0 < writes
    assert plan.seconds == pytest.approx(plan.n_forward + 60 + 2 * writes + 5 * reads)


def test_the_seconds_of_what_is_run_are_measured():
    for f, policy in ((marked, pb.Binomial(3)), (looped, pb.Keep(np.sin))):
        plan = pb.plan(f, X, policy=policy)
        assert 0 < plan.seconds < 20


@pytest.mark.share(4, of=lambda **_: "")
@pytest.mark.parametrize("budget", [300_000, 40_000, 12_000, "9 kB"])
@pytest.mark.parametrize("f", [looped, two_loops, unknown, marked, plain])
def test_what_is_named_holds_what_is_said(f, budget):
    advice = advised(f, X, budget)
    if not isinstance(advice, Advice):
        advice = pb.plan(f, X, budget=advice)
    assert advice.peak_bytes <= advice.budget
    require_true(f, X, advice)
    for beside in (advice.cheaper, advice.dearer):
        if beside is not None:
            require_true(f, X[::-1].copy() if f is not unknown else X, beside)
    assert isinstance(advice.seconds, float)
    assert advice.seconds >= 0


@settings(max_examples=6)
@given(programs(("fori_loop", "scan")), st.integers(0, 30_000))
def test_of_drawn_programs(program, budget):
    x = np.linspace(0.3, 0.8, program.size).astype(program.dtype)
    with np.errstate(all="ignore"):
        advice = advised(program, x, budget)
        if not isinstance(advice, Advice):
            assert advice > budget
            return
        assert advice.peak_bytes <= budget
        out, pull = pb.vjp(program, x, policy=advice.policy)
        pull(np.ones_like(out))
        assert pull.report.peak_bytes == advice.peak_bytes


@pytest.mark.usefixtures("slow_steps")
def test_beside_it_stand_the_next_cheaper_and_the_next_dearer():
    advice = pb.plan(looped, LARGE, budget=4_000_000)
    assert type(advice.policy) is pb.Budget
    assert advice.cheaper.peak_bytes <= advice.peak_bytes // 2
    assert advice.cheaper.n_forward > advice.n_forward > advice.dearer.n_forward
    assert advice.dearer.peak_bytes > advice.peak_bytes
    assert advice.dearer.seconds < advice.seconds
    assert pb.plan(looped, LARGE, budget="1 GB").policy == pb.SaveAll()
    assert pb.plan(looped, LARGE, budget="1 GB").dearer is None
    assert type(pb.plan(looped, LARGE, budget="50 %").policy) is pb.SaveAll


@pytest.mark.usefixtures("slow_steps")
def test_it_prints_as_a_table():
    lines = str(pb.plan(looped, LARGE, budget=4_000_000)).splitlines()
    assert lines[0] == "within 3.81 MiB"
    assert lines[1].split() == ["policy", "peak", "forward", "steps", "seconds"]
    assert [line.split()[0] for line in lines[2:5]] == ["cheaper", "take", "dearer"]
    assert re.match(r"take +Budget\(4000000\) +[\d.]+ MiB +\d+ +[\d.e-]+$", lines[3])
    assert lines[5].startswith("slower, or as fast: ")


@pytest.mark.usefixtures("slow_steps")
def test_more_memory_is_never_slower():
    budgets = (1_200_000, 1_500_000, 2_000_000, 6_000_000, 20_000_000)
    found = [pb.plan(looped, LARGE, budget=budget).n_forward for budget in budgets]
    assert found == sorted(found, reverse=True)


@pytest.mark.parametrize("f", [looped, marked])
def test_too_little(f):
    with pytest.raises(pb.BudgetError, match=r"budget=10 bytes is too little.*Allow at least [\d,]+ bytes") as caught:
        pb.plan(f, X, budget=10)
    assert pb.plan(f, X, budget=caught.value.minimum_bytes).peak_bytes <= caught.value.minimum_bytes


@pytest.mark.usefixtures("slow_steps")
def test_a_directory_brings_the_disk_in(tmp_path):
    advice = pb.plan(looped, X, budget=16_000, directory=tmp_path)
    assert any(isinstance(plan.policy, pb.Tiered) for plan in (advice, *advice.others))
    with pytest.raises(pb.PolicyError, match="no folder here"):
        pb.plan(looped, X, budget=6_000, directory=tmp_path / "none")


def test_a_policy_or_a_budget():
    with pytest.raises(pb.PolicyError, match=r"policy= or budget=, got Binomial\(3\) and '1 MB'"):
        pb.plan(looped, X, policy=pb.Binomial(3), budget="1 MB")
    with pytest.raises(pb.PolicyError, match=r"budget='many' is no number of bytes"):
        pb.plan(looped, X, budget="many")


@pytest.mark.parametrize("f", [linear, linear_marked])
def test_a_policy_that_saves_nothing_against_save_all_says_so(f):
    found = pb.plan(f, X, policy=pb.Binomial(3))
    saved = pb.plan(f, X, policy=pb.SaveAll())
    assert found.save_all_bytes == saved.peak_bytes <= found.peak_bytes
    assert "; SaveAll holds less: " in str(found)
    assert saved.save_all_bytes is None
    for other in (looped, marked):
        assert pb.plan(other, X, policy=pb.Binomial(3)).save_all_bytes is None


def stacking(x):
    """Every step has an output, and what follows reads them all."""

    def step(u, d):
        u = u - 0.01 * np.sin(u) * d
        return u, u[::2] * 2

    u, ys = pb.scan(step, x, np.linspace(0, 1, 60))
    return np.sum(ys**2) + np.sum(u)


def uneven(x):
    def step(k, u):
        for _ in range(1 + k % 5):
            u = np.sin(u) * 1.01
        return u

    return np.sum(pb.fori_loop(0, 40, step, x))


def seen_by_tracemalloc(f, x, policy):
    pb.grad(f, policy=policy)(x)
    gc.collect()
    tracemalloc.start()
    try:
        pb.grad(f, policy=policy)(x)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("f", [stacking, *(pytest.param(f, marks=pytest.mark.slow) for f in (uneven, marked, plain))])
def test_what_is_named_keeps_to_the_budget_and_the_remedy_is_right(f):
    for allowed in (600_000, 2_000_000):
        advice = advised(f, LARGE, allowed)
        if not isinstance(advice, Advice):
            advice = pb.plan(f, LARGE, budget=advice)
        assert seen_by_tracemalloc(f, LARGE, advice.policy) <= 1.03 * advice.budget + 50_000


def test_the_cotangents_of_stacked_outputs_are_booked():
    plan = pb.plan(stacking, LARGE, policy=pb.Recompute())
    assert plan.bytes_by_reason["cotangent"] >= 60 * LARGE.nbytes // 2


def test_a_budget_of_a_body_from_a_library_counts_what_its_closure_holds_once():
    """All tapes share the copy of an array; a body whose module is a library's is no exception."""
    weights = np.linspace(0.5, 1.0, LARGE.size)

    def f(x):
        def body(_, u):
            return u - 0.01 * np.sin(u) * weights

        body.__module__ = "numpy"
        return np.sum(pb.fori_loop(0, 100, body, x))

    def other(x):
        return np.sum(pb.fori_loop(0, 100, lambda _, u: u - 0.01 * np.sin(u) * weights, x))

    budget = pb.Budget(4_000_000)
    assert pb.plan(f, LARGE, policy=budget).n_forward == pb.plan(other, LARGE, policy=budget).n_forward


def test_a_view_that_a_loop_begins_with_is_no_part_of_every_tape():
    def f(x):
        return np.sum(pb.fori_loop(0, 200, lambda _, u: u - 0.01 * np.sin(u), x))

    many = np.ones(100_000)
    assert pb.plan(f, many[:100], policy=pb.Budget("2 MB")).n_forward == 200
