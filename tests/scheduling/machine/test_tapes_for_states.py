"""Tapes in the place of states: drawn policies, sizes and lengths, loops that end early, tapes that turn out larger."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pullback as pb
from pullback.schedules import simulate
from pullback.scheduling.machine.actions import Advance, Record, Reverse, Save
from pullback.scheduling.machine.machine import Machine
from pullback.scheduling.machine.tapes_for_states import OBJECT_BYTES, most_steps

KIB = 1024
POLICIES = st.one_of(
    st.builds(pb.Binomial, st.integers(1, 8)),
    st.builds(pb.Recompute, st.one_of(st.just("sqrt"), st.integers(1, 9))),
    st.builds(pb.Mixed, st.integers(1, 8)),
    st.builds(pb.Periodic, st.integers(1, 9)),
    st.builds(lambda period, inside: pb.Periodic(period, snapshots=inside), st.integers(1, 9), st.integers(0, 3)),
    st.builds(lambda ram: pb.Tiered(ram, 0), st.integers(1, 8)),
    st.builds(lambda ram: pb.Tiered(ram, None, write_cost=2, read_cost=2), st.integers(1, 3)),
)
SIZES = st.integers(1, 60).flatmap(
    lambda a: st.tuples(st.just(a * KIB), st.one_of(st.just(0), st.integers(0, a * KIB)))
)


@given(policy=POLICIES, n=st.integers(0, 60), sizes=SIZES)
def test_no_more_steps_than_were_planned_and_no_more_bytes_than_save_all(policy, n, sizes):
    state, tape = sizes
    told = {"state_bytes": state, "tape_bytes": tape}
    planned, found = simulate(policy.begin(n, **told), n, **told), simulate(policy.schedule(n, **told), n, **told)
    assert found.n_forward <= planned.n_forward
    if most_steps(state, tape):
        assert found.peak_bytes <= n * (tape + OBJECT_BYTES)  # what save-all takes, Python's own objects counted
    else:
        assert found == planned


@given(
    policy=POLICIES, n=st.integers(0, 60), sizes=SIZES, end=st.integers(0, 60), at=st.integers(1, 200),
    tape=st.integers(0, 80 * KIB),
)  # fmt: skip
def test_a_loop_may_end_early_and_tapes_may_turn_out_larger_at_any_action(policy, n, sizes, end, at, tape):
    schedule, machine = policy.schedule(n, state_bytes=sizes[0], tape_bytes=sizes[1]), Machine(n)
    end, reversed_steps = min(end, n), []
    ended = end == n

    def ends():
        schedule.finalize(end)
        machine.finalize(end)

    if not ended and end == 0:
        ends()
        ended = True
    for carried_out, planned in enumerate(schedule, 1):
        action = planned
        if type(action) is Advance and not ended and action.start < end < action.stop:
            action = Advance(action.start, end)
        machine.apply(action)
        if type(action) is Reverse:
            reversed_steps.append(action.step)
        if carried_out == at and schedule.larger is not None:
            schedule.larger(state_bytes=sizes[0], tape_bytes=tape)
        if not ended and machine.cursor == end:
            ends()
            ended = True
    assert machine.done
    assert reversed_steps == [*range(end)][::-1]


def test_a_tape_that_turns_out_larger_ends_the_span_under_way():
    schedule = pb.Periodic(1000).schedule(3000, state_bytes=8 << 20, tape_bytes=0)
    found = []
    for action in schedule:
        found.append(action)
        if action == Save("tape", 9):
            schedule.larger(state_bytes=8 << 20, tape_bytes=8 << 20)
        if len(found) == 24:
            break
    assert found[:2] == [Record(0), Save("tape", 0)]
    assert found[18:] == [
        Record(9), Save("tape", 9), Save("state", 10), Advance(10, 1000), Save("state", 1000), Advance(1000, 2000),
    ]  # fmt: skip


@pytest.mark.parametrize("policy", [pb.Binomial(3), pb.Recompute(), pb.Periodic(7)], ids=repr)
def test_of_an_unknown_length_empty_tapes_are_held_as_long_as_they_take_less_than_a_state(policy):
    def tapes(n, **sizes):
        schedule, machine = policy.schedule(None, **sizes), Machine(None)
        found = simulate(schedule, n, **sizes)
        assert machine.n is None
        return found

    state = 100 * OBJECT_BYTES + 1
    assert tapes(100, state_bytes=state, tape_bytes=0).n_forward == 100
    assert tapes(100, state_bytes=state, tape_bytes=0).peak_bytes == 0
    assert tapes(150, state_bytes=state, tape_bytes=0).n_forward == 100 + tapes(50, state_bytes=state).n_forward
    assert tapes(100, state_bytes=state, tape_bytes=8).n_forward == tapes(100, state_bytes=state).n_forward


def test_unknown_sizes_and_policies_that_count_bytes_change_nothing():
    assert list(pb.Binomial(3).schedule(20)) == list(pb.Binomial(3).schedule(20, state_bytes=1 << 20))
    assert pb.Binomial(3).schedule(20, state_bytes=1 << 20).larger is None
    assert pb.Budget("1 GB").schedule(20, state_bytes=1 << 20, tape_bytes=0).larger is None
