"""The policy of ``checkpoint``: hold the entry, run everything again once."""

import pytest

from pullback.policies.run_again import RunAgain
from pullback.schedules import simulate


@pytest.mark.parametrize("n", [0, 1, 2, 7])
def test_every_step_is_run_twice_and_the_entry_alone_is_held(n):
    simulation = simulate(RunAgain().schedule(n), n, state_bytes=10, tape_bytes=1)
    assert simulation.n_forward == 2 * n
    assert simulation.peak_slots == max(min(n, 1), n - 1)
    assert simulation.peak_bytes == (max(10, n) if n else 0)


def test_it_is_a_value():
    assert RunAgain() == RunAgain()
    assert repr(RunAgain()) == "RunAgain()"
