"""SaveAll keeps every tape; no step is a schedule, too."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pullback.policies.recompute import Recompute
from pullback.policies.save_all import SaveAll
from pullback.schedules import Delete, EndForward, EndReverse, Load, Record, Reverse, Save, simulate


def test_save_all_keeps_every_tape_and_the_last_in_work():
    assert list(SaveAll().schedule(2)) == [
        Record(0),
        Save("tape", 0),
        Record(1),
        EndForward(),
        Reverse(1),
        Load("tape", 0),
        Delete("tape", 0),
        Reverse(0),
        EndReverse(),
    ]


@given(n=st.integers(0, 200), known=st.booleans())
def test_save_all_runs_every_step_once(n, known):
    simulation = simulate(SaveAll().schedule(n if known else None), n, state_bytes=7, tape_bytes=3)
    assert (simulation.n_forward, simulation.n_lookback) == (n, 0)
    assert simulation.peak_slots == max(0, n - 1)
    assert simulation.peak_bytes == 3 * n


@pytest.mark.parametrize("policy", [SaveAll(), Recompute(), Recompute(3)])
def test_no_step(policy):
    assert list(policy.schedule(0)) == [EndForward(), EndReverse()]
    schedule = policy.schedule(None)
    schedule.finalize(0)
    assert list(schedule) == [EndForward(), EndReverse()]
