"""The benchmark of gradients over the work by hand: its references against complex steps, its rows, its figures."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pullback as pb

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
COLUMNS = ["work", "candidate", "us", "x", "over", "note"]


def loaded(name):
    """A module of ``benchmarks`` that is in no package."""
    spec = importlib.util.spec_from_file_location(f"benchmark_{Path(name).stem}", BENCHMARKS / name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


logistic, lstm, mlp, schedules = (
    loaded(f"references/{name}.py") for name in ("logistic_adjoint", "lstm_adjoint", "mlp_adjoint", "schedules")
)


def along(function, args, directions):
    """The derivative of a real analytic function along the directions: Im f(x + i h d) / h."""
    moved = [a + 1e-30j * d for a, d in zip(args, directions, strict=True)]
    return np.imag(function(*moved)) / 1e-30


def product(gradient, directions):
    return sum(np.sum(g * d) for g, d in zip(gradient, directions, strict=True))


def test_logistic_growth_by_hand():
    rng = np.random.default_rng(0)
    u, c, *directions = rng.random((4, 5))

    def misfit(u, c):
        for _ in range(12):
            u = logistic.step(u, c)
        return np.sum(u * u)

    value, gradient = logistic.value_and_gradient(u, c, 12)
    assert value == misfit(u, c)
    assert product(gradient, directions) == pytest.approx(along(misfit, (u, c), directions), rel=1e-13)


@pytest.mark.parametrize("policy", [pb.SaveAll(), pb.Binomial(1), pb.Binomial(3), pb.Recompute()])
def test_following_a_schedule_gives_the_same_bits(policy):
    u, c = np.random.default_rng(0).random((2, 5))
    table = schedules.prepared(policy.schedule(12))
    by_table = logistic.value_and_gradient_by(schedules.follow, table, u, c, 12)
    value, gradient = logistic.value_and_gradient(u, c, 12)
    assert by_table[0] == value
    assert [g.tobytes() for g in by_table[1]] == [g.tobytes() for g in gradient]


def test_the_lstm_by_hand():
    rng = np.random.default_rng(0)
    shapes = ((3, 8), (2, 8), (8,))
    params, directions = ([rng.normal(size=shape) for shape in shapes] for _ in range(2))
    xs, start = rng.normal(size=(4, 5, 3)), rng.normal(size=(2, 5, 2))

    def loss(*params):
        state = (*start, 0.0)
        for x in xs:
            state = lstm.step(params, x, state)
        return state[2]

    value, gradient = lstm.value_and_gradient(params, xs, *start)
    assert value == loss(*params)
    assert product(gradient, directions) == pytest.approx(along(loss, params, directions), rel=1e-12)


def test_the_network_by_hand():
    rng = np.random.default_rng(0)
    shapes = ((3, 4), (4,), (4, 5), (5,), (5, 6), (6,))
    params, directions = ([rng.normal(size=shape) for shape in shapes] for _ in range(2))
    images, labels = rng.normal(size=(7, 3)), rng.integers(6, size=7)
    value, gradient = mlp.value_and_gradient(params, images, labels)
    assert value == pytest.approx(mlp.loss(params, images, labels), rel=1e-15)
    h = 1e-6
    above, below = (mlp.loss([p + s * d for p, d in zip(params, directions, strict=True)], images, labels)
        for s in (h, -h))  # fmt: skip
    assert product(gradient, directions) == pytest.approx((above - below) / (2 * h), rel=1e-7)


@pytest.mark.parametrize(
    "parts",
    [["hot"], pytest.param(["small", "differing", "lstm", "making", "network", "potential"], marks=pytest.mark.slow)],
    ids=["first", "others"],
)
def test_the_benchmark_runs(tmp_path, parts):
    """Parts that are small when quick; what is missing has a row too."""
    path = tmp_path / "rows.json"
    command = [sys.executable, str(BENCHMARKS / "bench_staging.py"), "--quick", "--json", str(path), "--only", *parts]
    subprocess.run(command, check=True, capture_output=True)
    rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
    assert all(list(row) == COLUMNS for row in rows)
    assert all(row["x"] is not None or row["note"] for row in rows)
    small = [row for row in rows if row["work"].endswith(("save-all", "Binomial(20)")) and row["candidate"] != "hand"]
    assert len(small) >= 8 * ("small" in parts)
    assert {row["note"] for row in small} <= {"same bits"}


def test_every_figure_has_a_name_of_its_own():
    limits = loaded("staged/limits.py").LIMITS
    assert len({limit.text for limit in limits}) == len(limits)
    assert len({(limit.work, limit.candidate, limit.over) for limit in limits}) == len(limits)
