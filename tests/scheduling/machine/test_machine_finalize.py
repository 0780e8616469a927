"""A loop that ends when the schedule did not know it: everywhere, between any two actions."""

import pytest
from tests.scheduling.optimal.held_steps import held_forward_steps

from pullback.policies.binomial import Binomial
from pullback.policies.recompute import Recompute
from pullback.policies.save_all import SaveAll
from pullback.schedules import Advance, EndForward, EndReverse, Machine, Record, simulate
from pullback.scheduling.machine.simulator import machine_for, play
from pullback.words.errors import PolicyError, ScheduleError

POLICIES = [
    SaveAll(),
    Recompute(),
    Recompute(1),
    Recompute(4),
    Binomial(1),
    Binomial(3),
    Binomial(30),
    Binomial(3, online="wmi"),
]
STEPS = 14


def reverse_the_rest(machine, schedule, n):
    """Finalize both and run to the end; the machine refuses whatever is wrong."""
    schedule.finalize(n)
    machine.finalize(n)
    for action in schedule:
        machine.apply(action)
    assert machine.done
    assert schedule.n == n


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_a_schedule_can_end_between_any_two_actions(policy, known):
    n = STEPS if known else None
    for count in range(60):
        schedule, machine = policy.schedule(n), Machine(n)
        for _ in range(count):
            action = next(schedule)
            if isinstance(action, EndForward):
                return
            machine.apply(action)
        reverse_the_rest(machine, schedule, machine.cursor)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_a_schedule_can_end_before_the_last_action_it_gave_is_run(policy, known):
    """A break in the body of a step: the action was taken, its step does not count."""
    n = STEPS if known else None
    for count in range(60):
        schedule, machine = policy.schedule(n), Machine(n)
        for _ in range(count):
            machine.apply(next(schedule))
        action = next(schedule)
        if isinstance(action, EndForward):
            return
        if isinstance(action, Advance | Record):
            reverse_the_rest(machine, schedule, machine.cursor)


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_a_loop_can_be_left_after_any_step(policy):
    for left in range(STEPS + 1):
        simulation = simulate(policy.schedule(STEPS), left)
        assert simulation.n == left
        assert simulation.n_forward >= left


@pytest.mark.parametrize("s", [1, 2, 3, 5, 20])
def test_the_reverse_after_an_early_end_is_optimal_for_the_snapshots_held(s):
    for n in range(1, 26):
        for left in range(n):
            schedule = Binomial(s).schedule(n)
            machine, held = machine_for(schedule, left), []
            for action in play(schedule, left, machine):
                if isinstance(action, EndForward):
                    held = sorted(step for _, step in machine.stored.get("memory", ()))
            simulation = simulate(Binomial(s).schedule(n), left)
            assert simulation.peak_slots <= s
            assert simulation.n_forward == (held_forward_steps(held, left, s, lookback=False) if left else 0), (n, left)


def test_an_early_end_at_no_step():
    for policy in POLICIES:
        schedule = policy.schedule(10)
        schedule.finalize(0)
        assert list(schedule) == [EndForward(), EndReverse()]


def test_finalize_at_the_known_length_changes_nothing():
    schedule = Binomial(2).schedule(6)
    head = [next(schedule) for _ in range(3)]
    schedule.finalize(6)
    assert head + list(schedule) == list(Binomial(2).schedule(6))


def test_finalize_after_the_sweep_is_refused():
    schedule = Binomial(2).schedule(6)
    while next(schedule) != EndForward():
        pass
    with pytest.raises(
        ScheduleError, match=r"finalize\(3\) came after EndForward of <schedule of Binomial\(2\) for n=6"
    ):
        schedule.finalize(3)


def test_finalize_beyond_the_known_length_is_refused():
    with pytest.raises(
        PolicyError, match=r"the loop ran 7 steps and <schedule of Binomial\(2\) for n=6.*was made for 6"
    ):
        Binomial(2).schedule(6).finalize(7)


def test_finalize_elsewhere_is_refused():
    schedule = Binomial(2).schedule(None)
    assert next(schedule) == Advance(0, 1)
    with pytest.raises(ScheduleError, match=r"finalize\(5\): after Advance\(0, 1\) the loop can stand at 0 .. 1 only"):
        schedule.finalize(5)


def test_finalize_twice_is_refused():
    schedule = Binomial(2).schedule(None)
    for _ in range(5):
        next(schedule)
    schedule.finalize(3)
    schedule.finalize(3)
    with pytest.raises(ScheduleError, match=r"finalize\(2\): the schedule was finalized before"):
        schedule.finalize(2)


def test_finalize_at_no_number_is_refused():
    with pytest.raises(PolicyError, match=r"the length of the loop must be a whole number, got 2.0"):
        Binomial(2).schedule(None).finalize(2.0)
