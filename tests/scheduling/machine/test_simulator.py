import pytest
from hypothesis import given
from hypothesis import strategies as st

from pullback.policies.binomial import Binomial
from pullback.policies.save_all import SaveAll
from pullback.schedules import Advance, Delete, EndForward, EndReverse, Load, Record, Reverse, Save, Transfer, simulate
from pullback.words.errors import ScheduleError

TWO_TIERS = [
    Save("state", 0),
    Transfer("state", 0, "memory", "disk"),
    Delete("state", 0),
    Advance(0, 1),
    Save("state", 1),
    Advance(1, 2),
    Record(2),
    EndForward(),
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


def test_tiers_are_counted_apart():
    simulation = simulate(
        TWO_TIERS,
        3,
        state_bytes=100,
        tape_bytes=7,
        forward_cost=10,
        reverse_cost=2,
        write_cost={"disk": 3},
        read_cost={"disk": 5, "memory": 1},
    )
    assert simulation.n_forward == 5
    assert simulation.peak_slots == {"memory": 1, "disk": 1}
    assert simulation.n_writes == {"memory": 2, "disk": 1}
    assert simulation.n_reads == {"memory": 2, "disk": 1}
    assert simulation.peak_bytes == 107  # the disk is no memory
    assert simulation.working_bytes == 100
    assert simulation.cost == 10 * 5 + 2 * 3 + 3 * 1 + (5 * 1 + 1 * 2)


def test_one_price_for_all_tiers():
    assert simulate(TWO_TIERS, 3, write_cost=2, read_cost=0.5).cost == 5 + 2 * 3 + 0.5 * 3


@given(n=st.integers(1, 120), s=st.integers(1, 20), state=st.integers(0, 50), tape=st.integers(0, 50))
def test_peak_bytes_of_binomial(n, s, state, tape):
    simulation = simulate(Binomial(s).schedule(n), n, state_bytes=state, tape_bytes=tape)
    held = min(s, n - 1)
    # The slot of a snapshot is free again when its own step is recorded, but the first tape is made with all slots
    # full.
    assert simulation.peak_bytes == held * state + tape
    assert simulation.working_bytes == state


def test_unknown_length_keeps_two_states_live():
    simulation = simulate(Binomial(2).schedule(None), 9, state_bytes=8)
    assert (simulation.n_lookback, simulation.working_bytes) == (1, 16)


def test_a_simulation_prints_as_a_table():
    assert str(simulate(Binomial(2).schedule(None), 6, state_bytes=800, tape_bytes=100)) == (
        "schedule of 6 steps, 36 actions\n  cost           14\n  n_forward      14  (2.33 per step)\n  n_lookback     "
        "1\n  peak_slots     2\n  n_writes       4\n  n_reads        5\n  peak_bytes     1700\n  working_bytes  1600"
    )
    assert "  n_writes       memory 2, disk 1\n" in str(simulate(TWO_TIERS, 3))
    assert str(simulate(SaveAll().schedule(0), 0)).startswith("schedule of 0 steps, 2 actions\n  cost           0\n")


def test_simulations_are_values():
    first, second = (simulate(Binomial(2).schedule(6), 6) for _ in range(2))
    assert first == second


def test_a_schedule_of_another_length_is_refused():
    with pytest.raises(ScheduleError, match=r"EndForward\(\) does not fit: x_7 is not reached"):
        simulate(list(Binomial(2).schedule(6)), 7)
    with pytest.raises(ScheduleError, match=r"Advance\(3, 5\) does not fit: the steps left end at x_4"):
        simulate(list(Binomial(2).schedule(6)), 4)


def test_a_schedule_that_stops_is_refused():
    with pytest.raises(ScheduleError, match=r"the actions stop before EndReverse \(x_1 live.*Yield every action"):
        simulate(TWO_TIERS[:-1], 3)
