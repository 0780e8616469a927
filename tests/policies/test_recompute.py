"""Recompute: every step at most twice, about the root of them held."""

from math import isqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pullback.policies.recompute import Recompute, best_segments
from pullback.policies.save_all import SaveAll
from pullback.schedules import Advance, Delete, EndForward, EndReverse, Load, Record, Reverse, Save, simulate
from pullback.words.errors import PolicyError


@given(n=st.integers(1, 300), k=st.integers(1, 40))
def test_recompute_runs_every_step_twice_but_the_last_segment(n, k):
    simulation = simulate(Recompute(k).schedule(n), n, state_bytes=7, tape_bytes=3)
    k = min(k, n)
    q = -(-n // k)
    assert simulation.n_forward == 2 * n - q
    assert simulation.peak_bytes == (k - 1) * 7 + q * 3
    assert simulation.peak_slots == k - 1 + q - 1


def test_recompute_by_hand():
    assert list(Recompute(2).schedule(4)) == [
        Save("state", 0),
        Advance(0, 2),
        Record(2),
        Save("tape", 2),
        Record(3),
        EndForward(),
        Reverse(3),
        Load("tape", 2),
        Delete("tape", 2),
        Reverse(2),
        Load("state", 0),
        Delete("state", 0),
        Record(0),
        Save("tape", 0),
        Record(1),
        Reverse(1),
        Load("tape", 0),
        Delete("tape", 0),
        Reverse(0),
        EndReverse(),
    ]


@given(n=st.integers(1, 400))
def test_sqrt_segments(n):
    simulation = simulate(Recompute().schedule(n), n, tape_bytes=1)
    assert simulation.peak_bytes <= 2 * isqrt(n) + 1
    assert list(Recompute().schedule(n)) == list(Recompute(best_segments(n)).schedule(n))


def test_sqrt_segments_follow_the_sizes():
    def held(state_bytes, tape_bytes):
        return [
            a
            for a in Recompute().schedule(100, state_bytes=state_bytes, tape_bytes=tape_bytes)
            if type(a) is Save and a.kind == "state"
        ]

    assert len(held(1, 100)) == 99  # a tape is dear: segments of one step
    assert len(held(100, 1)) == 0  # a snapshot is dear: one segment
    assert len(held(4, 1)) == 4  # q = sqrt(100 * 4) = 20
    assert len(held(4, 0)) == 9  # unknown: q = sqrt(100)


@given(n=st.integers(0, 500), k=st.integers(1, 12))
def test_unknown_length_holds_at_most_the_slots_and_runs_every_step_twice_at_most(n, k):
    simulation = simulate(Recompute(k).schedule(None), n, state_bytes=1)
    assert simulation.n_forward == max(0, 2 * n - 1)
    assert simulation.n_lookback == min(n, 1)
    assert simulation.peak_bytes <= k  # snapshots: tapes have no bytes here


@given(n=st.integers(1, 2000), state=st.integers(1, 9), tape=st.integers(1, 9))
def test_unknown_length_stays_near_the_root(n, state, tape):
    schedule = Recompute().schedule(None, state_bytes=state, tape_bytes=tape)
    simulation = simulate(schedule, n, state_bytes=state, tape_bytes=tape)
    best = simulate(Recompute().schedule(n, state_bytes=state, tape_bytes=tape), n, state_bytes=state, tape_bytes=tape)
    assert simulation.peak_bytes <= 1.8 * best.peak_bytes + 2 * (state + tape)


def test_unknown_length_doubles_its_period():
    schedule = Recompute(4).schedule(None)
    actions = [next(schedule) for _ in range(45)]
    held, seen = [], []
    for action in actions:
        if isinstance(action, Save):
            held.append(action.step)
            seen.append(list(held))
        if isinstance(action, Delete):
            held.remove(action.step)
    assert seen[3:] == [[0, 1, 2, 3], [0, 2, 4], [0, 2, 4, 6], [0, 4, 8], [0, 4, 8, 12], [0, 8, 16], [0, 8, 16, 24]]


def test_segments_are_values():
    assert Recompute() == Recompute("sqrt") != Recompute(4) == Recompute(segments=4)
    assert [repr(Recompute()), repr(Recompute(4)), repr(SaveAll())] == ["Recompute()", "Recompute(4)", "SaveAll()"]
    assert len({SaveAll(), SaveAll(), Recompute()}) == 2


@pytest.mark.parametrize(
    ("segments", "message"),
    [
        (0, "segments must be at least 1, got 0. Pass the number of segments"),
        (2.5, "segments must be a whole number, got 2.5"),
        (True, "segments must be a whole number, got True"),
        ("cbrt", "segments must be a whole number or 'sqrt', got 'cbrt'. Pass the number of segments"),
    ],
)
def test_bad_segments(segments, message):
    with pytest.raises(PolicyError, match=message):
        Recompute(segments)
