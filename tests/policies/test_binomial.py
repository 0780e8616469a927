import json
import tracemalloc
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pullback.policies.binomial import Binomial
from pullback.schedules import Advance, Delete, EndForward, EndReverse, Load, Record, Reverse, Save, simulate
from pullback.scheduling.optimal.binomial_split import forward_steps
from pullback.words.errors import PolicyError

ORACLE = json.loads((Path(__file__).parent / "oracles" / "revolve_binomial.json").read_text("utf-8"))
ROWS = ORACLE["trajectory"]["maximum"]

# The oracle counts an advance with the save before it as one action, a load with the delete after it as one, and the
# rest as we do: its count is ours without Save and Delete.
FUSED = (Advance, Record, Reverse, Load, EndForward, EndReverse)


@pytest.mark.parametrize("s", sorted({row[1] for row in ROWS}))
def test_every_row_of_the_oracle(s):
    rows = [row for row in ROWS if row[1] == s]
    assert len(rows) > 10
    for n, _, n_forward, peak, writes, reads, n_actions in rows:
        simulation = simulate(Binomial(s).schedule(n), n)
        found = (simulation.n_forward, simulation.peak_slots, simulation.n_writes, simulation.n_reads)
        assert found == (n_forward, peak, writes, reads), (n, s)
        assert simulation.n_lookback == 0
        assert sum(isinstance(action, FUSED) for action in Binomial(s).schedule(n)) == n_actions, (n, s)


def compact(actions):
    """S0 A0-3 R5 L3 D3: Save, Advance, Record and Reverse, Load, Delete."""
    words = []
    for action in actions:
        match action:
            case Save("state", step) | Load("state", step) | Delete("state", step):
                words.append(f"{type(action).__name__[0]}{step}")
            case Advance(start, stop):
                words.append(f"A{start}-{stop}")
            case Reverse(step):
                words.append(f"R{step}")
            case Record() | EndForward() | EndReverse():
                pass
    return " ".join(words)


def test_six_steps_with_two_snapshots_by_hand():
    by_hand = "S0 A0-3 S3 A3-5 R5 L3 A3-4 R4 L3 D3 R3 L0 A0-1 S1 A1-2 R2 L1 D1 R1 L0 D0 R0"
    assert compact(Binomial(2).schedule(6)) == by_hand
    assert simulate(Binomial(2).schedule(6), 6).n_forward == 14


def test_golden_actions():
    assert list(map(repr, Binomial(1).schedule(2))) == [
        "Save('state', 0)",
        "Advance(0, 1)",
        "Record(1)",
        "EndForward()",
        "Reverse(1)",
        "Load('state', 0)",
        "Delete('state', 0)",
        "Record(0)",
        "Reverse(0)",
        "EndReverse()",
    ]


def test_no_step_and_one_step():
    assert list(Binomial(3).schedule(0)) == [EndForward(), EndReverse()]
    assert list(Binomial(3).schedule(1)) == [Record(0), EndForward(), Reverse(0), EndReverse()]


@given(n=st.integers(0, 400), s=st.integers(1, 60))
def test_every_schedule_is_valid_and_optimal(n, s):
    simulation = simulate(Binomial(s).schedule(n), n)
    assert simulation.n_forward == forward_steps(n, s)
    assert simulation.peak_slots == max(0, min(s, n - 1))
    assert simulation.n_reads == max(0, n - 1)


def test_planning_a_billion_steps_takes_the_memory_of_the_snapshots():
    schedule = Binomial(50).schedule(10**9)
    tracemalloc.start()
    try:
        for _ in islice(schedule, 20_000):
            pass
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 50_000


def test_schedules_are_independent_and_used_once():
    policy = Binomial(2)
    first, second = policy.schedule(6), policy.schedule(6)
    head = [next(first) for _ in range(4)]
    assert list(second) == head + list(first)
    assert next(first, None) is None
    assert list(first) == []


def test_it_is_a_value():
    assert Binomial(20) == Binomial(snapshots=20) == Binomial(20, online="greedy")
    assert len({Binomial(20), Binomial(20), Binomial(21), Binomial(20, online="wmi")}) == 3
    assert repr(Binomial(20)) == "Binomial(20)"
    assert repr(Binomial(20, online="wmi")) == "Binomial(20, online='wmi')"
    assert eval(repr(Binomial(20, online="wmi"))) == Binomial(20, online="wmi")  # noqa: S307  the text is our own
    assert Binomial.__doc__.startswith("revolve")


@pytest.mark.parametrize(
    ("snapshots", "message"),
    [
        (
            0,
            (
                "snapshots must be at least 1, got 0. Pass the number of snapshots to hold at once, at least 1: x_0 "
                "takes one"
            ),
        ),
        (-3, "snapshots must be at least 1, got -3"),
        (2.0, "snapshots must be a whole number, got 2.0 of type float"),
        ("20", "snapshots must be a whole number, got '20' of type str"),
        (True, "snapshots must be a whole number, got True of type bool"),
        (None, "snapshots must be a whole number, got None"),
    ],
)
def test_bad_snapshots(snapshots, message):
    with pytest.raises(PolicyError, match=message):
        Binomial(snapshots)


def test_bad_online_rule():
    with pytest.raises(
        PolicyError, match=r"online must be one of 'greedy', 'wmi', 'wmi-beside', got 'moin'.*recomputes least"
    ):
        Binomial(3, online="moin")
    with pytest.raises(PolicyError, match=r"got \['greedy'\]"):
        Binomial(3, online=["greedy"])


@pytest.mark.parametrize(
    ("n", "message"),
    [
        (-1, "the number of steps must be at least 0, got -1. Pass n >= 0, or None"),
        (1.5, "the number of steps must be a whole number, got 1.5 of type float"),
        (True, "the number of steps must be a whole number, got True"),
    ],
)
def test_bad_lengths(n, message):
    with pytest.raises(PolicyError, match=message):
        Binomial(3).schedule(n)
