import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pullback as pb
from pullback.policies.periodic import Periodic
from pullback.schedules import Advance, Delete, EndForward, EndReverse, Load, Record, Reverse, Save, simulate
from pullback.testing import check_policy
from pullback.words.errors import PolicyError

ORACLE = json.loads((Path(__file__).parent / "oracles" / "twolevel.json").read_text("utf-8"))


def in_tier(counts, tier):
    """The count of a tier where "disk" is always one of them."""
    return counts.get(tier, 0) if isinstance(counts, dict) else counts * (tier == "disk")


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("period", sorted({row[1] for row in ORACLE["rows"]}))
def test_every_row_of_the_oracle(period, known):
    for n, length, s, *expected in ORACLE["rows"]:
        if length != period:
            continue
        x = simulate(Periodic(period, snapshots=s, tier="disk").schedule(n if known else None), n)
        slots = [in_tier(x.peak_slots, "memory"), in_tier(x.peak_slots, "disk")]
        traffic = [in_tier(x.n_writes, "memory"), in_tier(x.n_reads, "memory"), in_tier(x.n_reads, "disk")]
        assert [x.n_forward, *slots, *traffic] == expected, (n, period, s)
        assert x.n_lookback == 0


def test_five_steps_by_hand():
    assert list(Periodic(3).schedule(5)) == [
        Save("state", 0),
        Advance(0, 3),
        Record(3),
        Save("tape", 3),
        Record(4),
        EndForward(),
        Reverse(4),
        Load("tape", 3),
        Delete("tape", 3),
        Reverse(3),
        Load("state", 0),
        Delete("state", 0),
        Record(0),
        Save("tape", 0),
        Record(1),
        Save("tape", 1),
        Record(2),
        Reverse(2),
        Load("tape", 1),
        Delete("tape", 1),
        Reverse(1),
        Load("tape", 0),
        Delete("tape", 0),
        Reverse(0),
        EndReverse(),
    ]


@given(n=st.integers(0, 200), period=st.integers(1, 50))
def test_the_tapes_of_one_period(n, period):
    known = simulate(Periodic(period).schedule(n), n, state_bytes=7, tape_bytes=3)
    last = (n - 1) % period + 1 if n else 0
    assert known.n_forward == 2 * n - last
    assert known.peak_bytes == max(
        7 * ((n - last) // period) + 3 * last, min(n - last, 1) * (7 * ((n - last) // period - 1) + 3 * period)
    )
    unknown = simulate(Periodic(period).schedule(None), n)
    assert unknown.n_forward == max(0, 2 * n - 1)
    assert unknown.n_lookback == min(n, 1)


@given(n=st.integers(1, 60), period=st.integers(1, 20), snapshots=st.none() | st.integers(0, 4), data=st.data())
def test_a_loop_may_be_left_early(n, period, snapshots, data):
    m = data.draw(st.integers(0, n))
    assert simulate(Periodic(period, snapshots=snapshots).schedule(n), m).n == m


@pytest.mark.parametrize(
    "policy", [Periodic(1), Periodic(3), Periodic(100), Periodic(4, snapshots=0), Periodic(7, snapshots=2)]
)
def test_programs_have_the_bits_of_save_all(policy):
    check_policy(policy)


@pytest.mark.parametrize("policy", [Periodic(5), Periodic(5, snapshots=1)])
def test_predicted_is_measured(policy):
    def known(x):
        return np.sum(pb.fori_loop(0, 23, lambda k, u: u + 0.1 * np.sin(u) * u, x))

    def unknown(x):
        u, _ = pb.while_loop(lambda s: s[1] < 23, lambda s: (s[0] + 0.1 * np.sin(s[0]), s[1] + 1), (x, 0))
        return np.sum(u)

    x = np.linspace(0.1, 1.0, 50)
    for f in (known, unknown):
        planned = pb.plan(f, x, policy=policy)
        value, pull = pb.vjp(f, x, policy=policy)
        [gradient] = pull(1.0)
        assert value == f(x)  # a while_loop ends inside an Advance of several steps
        assert (planned.peak_bytes, planned.n_forward) == (pull.report.peak_bytes, pull.report.n_forward)
        assert gradient.tobytes() == pb.grad(f)(x).tobytes()
        pull.close()


def test_it_is_a_value():
    assert Periodic(4) == Periodic(period=4) != Periodic(4, snapshots=0)
    assert [repr(Periodic(4)), repr(Periodic(4, snapshots=2))] == ["Periodic(4)", "Periodic(4, snapshots=2)"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"period": 0}, "period must be at least 1, got 0. Pass the number of steps"),
        ({"period": 2, "snapshots": -1}, "snapshots must be at least 0, got -1"),
        ({"period": 2, "tier": 3}, "tier must be the name of a tier, or a place of pullback.stores, got 3"),
    ],
)
def test_bad_settings(arguments, message):
    with pytest.raises(PolicyError, match=message):
        Periodic(**arguments)
