"""Long runs: a million executed steps hold no more than a hundred thousand do plus 10 MB, and ten million actions go
through the state machine within 1 GiB. Each in a process of its own, whose peak never falls."""

import subprocess
import sys

import pytest

PEAK = """
import re
from pathlib import Path

def peak():
    return 1024 * int(re.search("VmHWM:(.*)kB", Path("/proc/self/status").read_text()).group(1))
"""
EXECUTED = """
import numpy as np
import pullback as pb

def f(x):
    if {form!r} == "fori":
        return np.sum(pb.fori_loop(0, {n}, lambda k, u: u * 0.99999, x))
    for _ in pb.steps({n}):
        x = x * 0.99999
    return np.sum(x)

value, pull = pb.vjp(f, np.linspace(0.1, 1.0, 8), policy=pb.Binomial({snapshots}))
pull(1.0)
print(pull.report.n_forward, peak())
"""
SIMULATED = """
import pullback as pb
from pullback.schedules import simulate

n, sizes = {n}, dict(state_bytes=1000, tape_bytes=1000)
found = simulate({policy}.schedule(n, **sizes), n, **sizes)
print(found.n_actions, peak())
"""
pytestmark = [
    pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="/proc tells the peak there"),
]  # fmt: skip


def run(text):
    done = subprocess.run([sys.executable, "-c", PEAK + text], capture_output=True, text=True, check=True)
    return map(int, done.stdout.split())


@pytest.mark.parametrize(("form", "snapshots", "n"), [("fori", 30, 200_000), ("steps", 6, 80_000)])
def test_a_million_steps_hold_little_more_than_a_hundred_thousand(form, snapshots, n):
    few, before = run(EXECUTED.format(form=form, snapshots=snapshots, n=n // 10))
    many, after = run(EXECUTED.format(form=form, snapshots=snapshots, n=n))
    assert few < 130_000
    assert many >= 1_000_000
    assert after <= before + 10_000_000, (before, after)


@pytest.mark.parametrize(("policy", "n"), [("pb.Binomial(50)", 1_850_000), ("pb.SaveAll()", 2_000_001)])
def test_ten_million_actions_go_through_the_machine_within_a_gibibyte(policy, n):
    actions, peak = run(SIMULATED.format(policy=policy, n=n))
    assert actions >= 10_000_000
    assert peak < 2**30
