"""Runs that are killed by the system at drawn moments, and taken up: same bits, and little is done twice."""

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest
from tests.resuming.killed_runs import PROGRAMS, N, gradient

from pullback.schedules import simulate
from pullback.scheduling.machine.actions import Advance, EndReverse, Load, Record, Save
from pullback.scheduling.machine.machine import Machine

PROGRAM = Path(__file__).with_name("killed_runs.py")
N_LOOPS = {"one loop": 1}
pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


@pytest.fixture(autouse=True)
def another_directory(tmp_path, monkeypatch):
    """What a program leaves there goes with it."""
    monkeypatch.chdir(tmp_path)


def longest_segment(policy, n):
    """The most forward steps between two points at which all that is stored is on disk."""
    machine, longest, steps = Machine(n), 0, 0
    disk = "memory" if "Stored" in repr(policy) else "disk"
    for action in policy.schedule(n):
        if type(action) is Load and alone_on(disk, machine):
            steps = 0
        machine.apply(action)
        steps += action.stop - action.start if type(action) is Advance else type(action) is Record
        longest = max(longest, steps)
        if type(action) is Save and alone_on(disk, machine):
            steps = 0
        if type(action) is EndReverse:
            return longest
    raise AssertionError("the schedule has no end")


def alone_on(disk, machine):
    others = [entries for tier, entries in machine.stored.items() if entries and tier != disk]
    return machine.tape is None and not others and all(kind == "state" for kind, _ in machine.stored.get(disk, ()))


def killed(name, lists):
    """What came of runs that are killed at moments of a list each."""
    moments = [",".join(map(str, kills)) for kills in ([], *lists)]
    done = subprocess.run([sys.executable, str(PROGRAM), name, *moments], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def require_taken_up(name, lists):
    whole, *others = killed(name, lists)
    policy, bits = PROGRAMS[name][1], gradient(name).hex()
    assert whole[0] == bits
    assert whole[2:4] == [0, []], "files are left"
    twice = N_LOOPS.get(name, 2) * (longest_segment(policy, N) + 1)  # and step 0
    for kills, (found, steps, n_killed, left, _) in zip(lists, others, strict=True):
        assert found == bits, f"killed at {kills}"
        assert steps <= whole[1] + n_killed * twice, f"killed at {kills}: {steps} steps, {whole[1]} without"
        assert not left, f"killed at {kills}"
    return [other[2] for other in others]


@pytest.mark.parametrize("name", ["one loop", "from another directory"])
def test_three_kills(name):
    assert require_taken_up(name, [[45, 60, 20]]) == [3]


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_twenty_kills(name):
    drawn, n_moments = random.Random(name), killed(name, [])[0][4]  # noqa: S311
    lists = [[drawn.randrange(1, n_moments)] for _ in range(12)]
    lists += [[drawn.randrange(1, n_moments // 3) for _ in range(3)] for _ in range(4)]
    assert sum(require_taken_up(name, lists)) >= 20


def test_the_bound_is_less_than_the_loop():
    """Else it would say nothing."""
    policy = PROGRAMS["one loop"][1]
    assert longest_segment(policy, N) < simulate(policy.schedule(N), N).n_forward // 4
