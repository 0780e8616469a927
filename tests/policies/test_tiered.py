import json
import time
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pullback as pb
from pullback.policies.tiered import Tiered
from pullback.schedules import Advance, Delete, EndForward, EndReverse, Load, Record, Reverse, Save, simulate
from pullback.scheduling.machine.simulator import machine_for, play
from pullback.scheduling.optimal.two_level_table import two_level
from pullback.words.errors import PolicyError

ORACLES = Path(__file__).parent / "oracles"
OPTIMUM = json.loads((ORACLES / "multilevel_opt.json").read_text("utf-8"))
MULTISTAGE = json.loads((ORACLES / "multistage.json").read_text("utf-8"))


def simulated(policy, n):
    costs = {"write_cost": {"disk": policy.write_cost}, "read_cost": {"disk": policy.read_cost}}
    return simulate(policy.schedule(n), n, **costs)


def fits(schedule, n, ram, disk):
    """Whether no tier ever holds more than it may; the schedule is carried out to its end."""
    machine, most = machine_for(schedule, n), {"memory": 0, "disk": 0}
    for _ in play(schedule, n, machine):
        most |= {tier: max(most[tier], len(held)) for tier, held in machine.stored.items()}
    return most["memory"] <= ram and (disk is None or most["disk"] <= disk)


@pytest.mark.parametrize("row", OPTIMUM["rows"], ids=lambda row: "-".join(map(str, row[:-1])))
def test_every_row_of_the_oracle(row):
    step, write, read, ram, disk, optimum = row
    policy = Tiered(ram, None if disk < 0 else disk, write_cost=write / step, read_cost=read / step)
    for n, cost in zip(OPTIMUM["n"], optimum, strict=True):
        x = simulated(policy, n)
        assert (x.cost - n) * step == pytest.approx(cost, rel=1e-12), n
        assert fits(policy.schedule(n), n, ram, policy.disk_snapshots)


def test_where_the_disk_costs_nothing_it_is_binomial():
    for n, ram, disk, forward, *_ in MULTISTAGE["rows"]:
        assert simulated(Tiered(ram, disk, write_cost=0, read_cost=0), n).n_forward == forward


@pytest.mark.parametrize("price", [0.5, 2, 10])
def test_never_dearer_than_multistage(price):
    for n, ram, disk, forward, _, _, _, _, writes, reads in MULTISTAGE["rows"]:
        cost = simulated(Tiered(ram, disk, write_cost=price, read_cost=price), n).cost
        assert cost <= forward + price * (writes + reads)


def fewest(n, ram, disk, write, read):
    """Every choice, without any table: what D and D' of the module's docstring say, and RAM by trying."""

    @cache
    def memory(k, s):
        if k <= 1:
            return 0
        return min((m + memory(k - m, s - 1) + memory(m, s) for m in range(1, k)), default=0) if s else float("inf")

    @cache
    def live(m, k, *, stored):
        best = memory(k, ram)
        if m:
            paid = 0 if stored else write
            tried = [j + live(m - 1, k - j, stored=False) + read + live(m, j, stored=True) for j in range(1, k)]
            best = min(best, paid + min(tried, default=best))
        return best

    return n + live(n if disk is None else disk, n, stored=False)


prices = st.integers(0, 30) | st.floats(0, 30)


@given(n=st.integers(0, 30), ram=st.integers(0, 4), disk=st.integers(0, 5) | st.none(), write=prices, read=prices)
@settings(max_examples=300, deadline=None)
def test_the_optimum_by_trying_everything(n, ram, disk, write, read):
    if ram == 0 == disk:
        return
    policy = Tiered(ram, disk, write_cost=write, read_cost=read)
    assert simulated(policy, n).cost == pytest.approx(fewest(n, ram, disk, write, read), rel=1e-12)


@given(n=st.integers(1, 80), ram=st.integers(0, 4), disk=st.integers(0, 5) | st.none(), price=prices, data=st.data())
@settings(deadline=None)
def test_a_loop_may_be_left_early_or_tell_its_length_late(n, ram, disk, price, data):
    if ram == 0 == disk:
        return
    policy = Tiered(ram, disk, write_cost=price, read_cost=price)
    end = data.draw(st.integers(0, n))
    for schedule in (policy.schedule(n), policy.schedule(None)):
        assert fits(schedule, end, ram, disk)


def test_four_steps_by_hand():
    assert list(Tiered(1, 1, write_cost=0.5, read_cost=0.5).schedule(4)) == [
        Save("state", 0, "disk"),
        Advance(0, 1),
        Save("state", 1),
        Advance(1, 3),
        Record(3),
        EndForward(),
        Reverse(3),
        Load("state", 1),
        Advance(1, 2),
        Record(2),
        Reverse(2),
        Load("state", 1),
        Delete("state", 1),
        Record(1),
        Reverse(1),
        Load("state", 0, "disk"),
        Delete("state", 0, "disk"),
        Record(0),
        Reverse(0),
        EndReverse(),
    ]


@pytest.mark.parametrize(("ram", "disk"), [(3, None), (3, 4), (2, 40), (0, 30), (5, 1)])
def test_beyond_the_tables(ram, disk, monkeypatch):
    exact = simulated(Tiered(ram, disk, write_cost=3, read_cost=2), 700).cost
    monkeypatch.setattr("pullback.scheduling.optimal.two_level_table.MOST_ROWS", 150)
    two_level.cache_clear()
    policy = Tiered(ram, disk, write_cost=3, read_cost=2)
    cost, fit = simulated(policy, 700).cost, fits(policy.schedule(700), 700, ram, disk)
    two_level.cache_clear()
    assert exact <= cost <= 1.2 * exact
    assert fit


@pytest.mark.slow
@pytest.mark.parametrize(("ram", "disk"), [(10, None), (10, 20), (50, 500)])
def test_planning_is_fast(ram, disk):
    two_level.cache_clear()
    began = time.process_time()
    next(Tiered(ram, disk, write_cost=2, read_cost=2).schedule(10_000))
    assert time.process_time() - began < 4  # two on an idle machine


def test_a_loop_of_a_billion_steps_streams():
    schedule = Tiered(10, 100, write_cost=2, read_cost=2).schedule(10**9)
    assert [type(next(schedule)) for _ in range(4)] == [Save, Advance, Save, Advance]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ((1, -1), "disk_snapshots must be at least 0, got -1"),
        ((1.5, 1), "ram_snapshots must be a whole number, got 1.5"),
        ((0, 0), r"Tiered\(0, 0\) holds no snapshot at all"),
    ],
)
def test_refused(values, message):
    with pytest.raises(PolicyError, match=message):
        Tiered(*values)


@pytest.mark.parametrize("value", [-1, "2", float("nan"), float("inf"), None, True])
@pytest.mark.parametrize("name", ["write_cost", "read_cost"])
def test_a_cost_is_a_number(name, value):
    with pytest.raises(PolicyError, match=f"{name} must be a finite number of at least 0, got {value!r}"):
        Tiered(1, 1, **{name: value})


def test_a_directory_is_a_path(tmp_path):
    assert Tiered(1, 1, directory=tmp_path).directory == str(tmp_path)
    with pytest.raises(PolicyError, match="directory must be a path or None, got 3 of type int"):
        Tiered(1, 1, directory=3)


def test_prints_as_it_is_made():
    assert repr(pb.Tiered(2, None, write_cost=2)) == "Tiered(2, None, write_cost=2.0)"
    assert pb.Tiered(2, 3) == pb.Tiered(2, 3, write_cost=1)


def loop(x, n):
    return np.sum(pb.fori_loop(0, n, lambda k, u: u + 0.1 * np.sin(u) * np.exp(-u * k), x))


@pytest.mark.parametrize("n", [1, 2, 9, 40])
@pytest.mark.parametrize(("ram", "disk"), [(1, 1), (0, 3), (2, None), (3, 0)])
def test_same_bits_and_bytes_as_planned(n, ram, disk):
    policy = Tiered(ram, disk, write_cost=0.5, read_cost=0.5)
    x = np.linspace(0.1, 2.0, 50)
    _, pull = pb.vjp(lambda x: loop(x, n), x, policy=policy)
    np.testing.assert_array_equal(pull(1.0)[0], pb.grad(lambda x: loop(x, n))(x))
    assert pull.report.n_forward == simulated(policy, n).n_forward
    assert pull.report.peak_bytes == pb.plan(lambda x: loop(x, n), x, policy=policy).peak_bytes


def test_same_bits_in_a_loop_of_unknown_length():
    def f(x):
        return np.sum(pb.while_loop(lambda u: np.sum(pb.value(u)) < 60, lambda u: u + 0.1 * np.sin(u), x))

    x = np.linspace(0.1, 2.0, 30)
    np.testing.assert_array_equal(pb.grad(f, policy=Tiered(1, 2))(x), pb.grad(f)(x))


def test_the_snapshots_on_disk_are_in_the_directory(tmp_path):
    files = []

    def body(k, u):
        files.append(len(list(tmp_path.glob("*/*.npy"))))
        return np.sin(u) * 1.1

    def f(x):
        return np.sum(pb.fori_loop(0, 30, body, x) ** 2)

    x = np.linspace(0.1, 1, 50)
    gradient = pb.grad(f, policy=Tiered(1, 4, directory=str(tmp_path), write_cost=2, read_cost=2))(x)
    np.testing.assert_array_equal(gradient, pb.grad(f)(x))
    assert max(files) > 0
    assert not list(tmp_path.iterdir())
