import json
import tracemalloc
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pullback as pb
from pullback.policies.mixed import Mixed, units_of
from pullback.schedules import Advance, Delete, EndForward, EndReverse, Load, Record, Reverse, Save, simulate
from pullback.scheduling.optimal.binomial_split import forward_steps
from pullback.testing import check_policy
from pullback.words.errors import PolicyError

ORACLE = json.loads((Path(__file__).parent / "oracles" / "mixed.json").read_text("utf-8"))


@pytest.mark.parametrize("s", sorted({row[1] for row in ORACLE["rows"]}))
def test_every_row_of_the_oracle(s):
    for n, slots, *expected in ORACLE["rows"]:
        if slots == s:
            simulation = simulate(Mixed(s).schedule(n), n)
            found = [simulation.n_forward, simulation.peak_slots, simulation.n_writes, simulation.n_reads]
            assert found == expected, (n, s)


def test_four_steps_with_one_slot_by_hand():
    assert list(Mixed(1).schedule(4)) == [
        Save("state", 0),
        Advance(0, 3),
        Record(3),
        EndForward(),
        Reverse(3),
        Load("state", 0),
        Advance(0, 2),
        Record(2),
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


def test_no_step_one_step_and_enough_slots():
    assert list(Mixed(3).schedule(0)) == [EndForward(), EndReverse()]
    assert list(Mixed(3).schedule(1)) == [Record(0), EndForward(), Reverse(0), EndReverse()]
    assert list(Mixed(10**9).schedule(30)) == list(pb.SaveAll().schedule(30))


@given(n=st.integers(0, 120), s=st.integers(1, 20), sizes=st.tuples(st.integers(0, 40), st.integers(0, 40)))
def test_never_dearer_than_binomial_nor_larger_than_its_slots(n, s, sizes):
    state, tape = sizes
    known = {"state_bytes": state, "tape_bytes": tape}
    simulation = simulate(Mixed(s).schedule(n, **known), n, **known)
    assert simulation.n_forward <= forward_steps(n, s)
    assert simulation.peak_bytes <= s * max(state, tape) + tape


@given(n=st.integers(1, 40), s=st.integers(1, 12), data=st.data())
def test_a_loop_may_be_left_early(n, s, data):
    m = data.draw(st.integers(0, n))
    assert simulate(Mixed(s).schedule(n), m).n == m


def test_the_sizes_say_what_a_tape_takes():
    assert [units_of(4, *sizes) for sizes in ((0, 5), (8, 8), (8, 11), (8, 20), (20, 8), (8, 1))] == [
        (1, 1), (1, 1), (1, 1), (1, 3), (2, 1), (8, 1),
    ]  # fmt: skip
    steps = [
        simulate(Mixed(10).schedule(300, state_bytes=a, tape_bytes=b), 300).n_forward
        for a, b in ((100, 1), (8, 3), (10, 11), (3, 8), (1, 100))
    ]
    assert steps == sorted(steps)
    assert steps[2] == simulate(Mixed(10).schedule(300), 300).n_forward
    assert steps[-1] == forward_steps(300, 10)


def test_longer_than_the_table_it_is_cut_as_binomial_cuts():
    n, s = 20_000, 5
    assert simulate(Mixed(s).schedule(n), n).n_forward < forward_steps(n, s)
    schedule = Mixed(5).schedule(10**9)
    next(schedule)
    tracemalloc.start()
    try:
        for _ in islice(schedule, 5_000):
            pass
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


def test_the_length_must_be_known():
    with pytest.raises(
        PolicyError, match=r"Mixed\(3\) needs a known length .*Use pb.steps\(n\) with a number, or SaveAll"
    ):
        Mixed(3).schedule(None)


@pytest.mark.parametrize("slots", [1, 3, 40])
def test_programs_have_the_bits_of_save_all(slots):
    check_policy(Mixed(slots))


def test_predicted_is_measured():
    def f(x):
        return np.sum(pb.fori_loop(0, 40, lambda k, u: u + 0.1 * np.sin(u) * u, x))

    x = np.linspace(0.1, 1.0, 50)
    policy = pb.Mixed(4)
    planned = pb.plan(f, x, policy=policy)
    _, pull = pb.vjp(f, x, policy=policy)
    pull(1.0)
    assert (planned.peak_bytes, planned.n_forward) == (pull.report.peak_bytes, pull.report.n_forward)
    pull.close()


def test_it_is_a_value():
    assert Mixed(4) == Mixed(snapshots=4) != Mixed(5)
    assert repr(Mixed(4)) == "Mixed(4)"
    with pytest.raises(PolicyError, match="snapshots must be at least 1, got 0"):
        Mixed(0)


@pytest.mark.parametrize("staging", ["off", "auto"])
@pytest.mark.parametrize("slots", [1, 2, 5, 60])
def test_marked_steps_and_loop_functions_at_two_inputs(slots, staging):
    def body(k, state):
        u, v = state
        w = 2.0 * u - v
        w[1:-1] += 0.1 * np.sin(u[2:]) * u[:-2]
        return w, u

    def marked(x):
        state = x * 1.0, x * 0.5
        for k in pb.steps(40):
            state = body(k, state)
        return np.sum(state[0] ** 2)

    def looped(x):
        return np.sum(pb.fori_loop(0, 40, body, (x * 1.0, x * 0.5))[0] ** 2)

    with pb.using(staging=staging):
        for f in (marked, looped):
            for x in (np.linspace(0.1, 0.2, 7), np.linspace(-0.3, 0.1, 7)):
                value, gradient = pb.value_and_grad(f)(x)
                v, g = pb.value_and_grad(f, policy=Mixed(slots))(x)
                assert (v.tobytes(), g.tobytes()) == (value.tobytes(), gradient.tobytes())
