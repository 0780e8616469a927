"""The unified program meets its oracle, streams, and holds what it says."""

import json
from pathlib import Path

import numpy as np
import pytest
from tests.programs.measured import peak_of

import pullback as pb
from pullback import BudgetError
from pullback.policies.budget import Budget
from pullback.schedules import simulate
from pullback.scheduling.optimal.unified import plan

ORACLE = json.loads((Path(__file__).parents[2] / "policies" / "oracles" / "unified.json").read_text("utf-8"))


def rows():
    told = ORACLE
    for a, tau, storage, values in told["rows"]:
        for n, value in zip(told["n"], values, strict=True):
            yield n, a, tau, storage, value


def test_every_row_of_the_oracle():
    for n, a, tau, storage, value in rows():
        policy, sizes = Budget(storage + tau), {"state_bytes": a, "tape_bytes": tau}
        if value < 0:
            with pytest.raises(BudgetError):
                policy.schedule(n, **sizes)
            continue
        simulation = simulate(policy.schedule(n, **sizes), n, **sizes)
        assert simulation.n_forward == value, (n, a, tau, storage)
        assert simulation.peak_bytes <= storage + tau


def test_where_the_table_is_too_large_the_splits_stay_near_the_optimum(monkeypatch):
    monkeypatch.setattr("pullback.scheduling.optimal.unified._EXACT_CELLS", 0)
    plan.cache_clear()
    worst = 1.0
    for n, a, tau, storage, value in rows():
        if value > 0:
            sizes = {"state_bytes": a, "tape_bytes": tau}
            worst = max(worst, simulate(Budget(storage + tau).schedule(n, **sizes), n, **sizes).n_forward / value)
    plan.cache_clear()
    assert worst <= 1.084


@pytest.mark.parametrize("sizes", [(2000, 8000, 16_960, 900_000), (300, 8000, 160, 16_000), (2000, 80, 1000, 100_000)])
def test_a_plan_takes_little_itself(sizes):
    plan.cache_clear()
    _, peak = peak_of(plan, *sizes)
    assert peak < 32_000


def test_the_heat_inversion_of_1000_steps_in_100_mb():
    sizes = {"state_bytes": 320_000, "tape_bytes": 320_000}
    simulation = simulate(Budget("100 MB").schedule(1000, **sizes), 1000, **sizes)
    assert simulation.n_forward <= 1720
    assert simulation.peak_bytes <= 100_000_000


def test_a_hundred_thousand_steps_with_a_thousand_units_need_no_table():
    splits = plan(100_000, 1, 1, 1000)
    assert splits.exact
    assert splits.table.size == 0


def test_a_budget_says_what_would_do():
    with pytest.raises(BudgetError, match="Allow at least 90 bytes") as caught:
        Budget(50).schedule(9, state_bytes=100, tape_bytes=10)  # the tape of each step is kept: 90 bytes
    assert caught.value.minimum_bytes == 90


def loop(x, n):
    return np.sum(pb.fori_loop(0, n, lambda k, u: u + 0.1 * np.sin(u) * np.exp(-u * k), x))


@pytest.mark.parametrize("n", [1, 2, 7, 40])
def test_same_bits_within_the_budget(n):
    x = np.linspace(0.1, 2.0, 5000)
    expected, all_kept = pb.grad(lambda x: loop(x, n))(x), pb.vjp(lambda x: loop(x, n), x)[1]
    all_kept(1.0)
    seen = []
    for share in (1, 2, 3, 5, 10, 20, 60, 100, 1000):
        budget = all_kept.report.peak_bytes * share // 50
        try:
            _, pull = pb.vjp(lambda x: loop(x, n), x, policy=pb.Budget(budget))
        except BudgetError:
            continue
        for _ in range(2):
            np.testing.assert_array_equal(pull(1.0)[0], expected)
        assert pull.report.peak_bytes <= budget
        predicted = pb.plan(lambda x: loop(x, n), x, policy=pb.Budget(budget))
        assert predicted.peak_bytes == pull.report.peak_bytes
        seen.append(pull.report.n_forward)
    assert seen
    assert seen == sorted(seen, reverse=True)
