"""A policy of a user's own: a frozen class and one generator."""

import inspect

import pytest
from attrs import frozen

from pullback.policies.base import MemoryPolicy
from pullback.schedules import Advance, Delete, EndForward, EndReverse, Load, Record, Reverse, Save, simulate
from pullback.words.errors import PolicyError, ScheduleError


@frozen
class Every(MemoryPolicy):
    """A snapshot every ``period`` steps; inside a period each step is reached again from the snapshot."""

    period: int

    def actions(self, n, *, state_bytes=0, tape_bytes=0):
        starts = list(range(0, n, self.period))
        for start in starts:
            stop = min(start + self.period, n)
            yield Save("state", start)
            yield Advance(start, stop)
        yield EndForward()
        for start in reversed(starts):
            for step in reversed(range(start, min(start + self.period, n))):
                yield Load("state", start)
                if step > start:
                    yield Advance(start, step)
                else:
                    yield Delete("state", start)
                yield Record(step)
                yield Reverse(step)
        yield EndReverse()


def test_it_is_short():
    assert len(inspect.getsource(Every).splitlines()) < 40


@pytest.mark.parametrize(
    ("n", "period", "n_forward", "peak"), [(0, 3, 0, 0), (1, 3, 2, 1), (10, 3, 10 + 6 * 3 + 1, 4), (9, 9, 9 + 45, 1)]
)
def test_it_is_simulated_like_ours(n, period, n_forward, peak):
    simulation = simulate(Every(period).schedule(n), n)
    assert (simulation.n_forward, simulation.peak_slots) == (n_forward, peak)


def test_it_is_a_value():
    assert Every(3) == Every(3) != Every(4)
    assert repr(Every(3)) == "Every(period=3)"


def test_it_needs_a_known_length():
    with pytest.raises(
        PolicyError, match=r"Every\(period=3\) needs a known length and this loop does not know its own.*steps\(n\)"
    ):
        Every(3).schedule(None)


def test_it_cannot_end_early():
    schedule = Every(3).schedule(10)
    next(schedule)
    next(schedule)
    with pytest.raises(
        PolicyError,
        match=r"Every\(period=3\) needs a known length: it was planned for n=10 and the loop ended after 2 steps",
    ):
        schedule.finalize(2)
    schedule.finalize(10)
    assert next(schedule) == Save("state", 3)


def test_bad_lengths_are_refused_before_it_is_asked():
    with pytest.raises(PolicyError, match="the number of steps must be at least 0, got -1"):
        Every(3).schedule(-1)


def test_a_policy_without_actions_is_refused():
    @frozen
    class Nothing(MemoryPolicy):
        pass

    with pytest.raises(PolicyError, match=r"Nothing yields no actions for n=3. Write actions"):
        Nothing().schedule(3)


def test_a_wrong_policy_raises_at_the_wrong_action():
    @frozen
    class Forgetful(MemoryPolicy):
        def actions(self, n, *, state_bytes=0, tape_bytes=0):
            yield Advance(0, n - 1)
            yield Record(n - 1)
            yield EndForward()
            yield Reverse(n - 1)
            yield Load("state", 0)

    with pytest.raises(ScheduleError, match=r"Load\('state', 0\) does not fit: no state 0 is stored"):
        simulate(Forgetful().schedule(4), 4)
