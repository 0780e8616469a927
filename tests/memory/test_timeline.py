"""The timeline of a call: its peak is the ledger's, its end is empty, and a call outside the block pays nothing."""

import numpy as np
import pytest

import pullback as pb
from pullback.memory import timeline
from pullback.memory.ledger import LEDGERS, Ledger
from pullback.memory.timeline import FORWARD, RECOMPUTE, REVERSE, timed

N = 40


def by_loop(x):
    return np.sum(pb.fori_loop(0, N, lambda k, u: u + 0.1 * np.sin(u), x))


def by_steps(x):
    for _ in pb.steps(N):
        x = x + 0.1 * np.sin(x)
    return np.sum(x)


def plainly(x):
    for _ in range(N):
        x = x + 0.1 * np.sin(x)
    return np.sum(x)


def run(f, policy, x=None):
    with timed() as ledger:
        _, pull = pb.vjp(ledger.watched(f), np.ones(100) if x is None else x, policy=policy)
        ledger.turn()
        pull(1.0)
        report = pull.report
        pull.close()
    return ledger.timeline(), report


@pytest.mark.parametrize("policy", [pb.SaveAll(), pb.Binomial(4), pb.Recompute(), pb.Budget(13_000)], ids=repr)
@pytest.mark.parametrize("f", [by_loop, by_steps, plainly])
def test_its_peak_is_that_of_the_report_to_the_byte(f, policy):
    line, report = run(f, policy)
    assert line.peak.nbytes == report.peak_bytes
    assert {reason: n for reason, n in line.peak.held.items() if n} == report.bytes_by_reason
    assert line.events[-1].nbytes == 0
    seconds = [event.seconds for event in line.events]
    assert seconds == sorted(seconds)
    assert (line.events[-1].phase, line.events[-1].n_forward) == (REVERSE, report.n_forward)


def test_events_tell_phase_and_step():
    line, _ = run(by_loop, pb.Binomial(4))
    phases = [event.phase for event in line.events]
    assert set(phases[: phases.index(REVERSE)]) <= {FORWARD, RECOMPUTE}
    assert RECOMPUTE in phases
    back = [e.step for e in line.events if e.phase == REVERSE and e.step is not None]
    assert [k for k, before in zip(back, [None, *back], strict=False) if k != before] == list(range(N - 1, -1, -1))
    assert all(event.seconds >= line.turned for event in line.events if event.phase != FORWARD)


def test_what_plain_records_hold_grows_while_they_are_recorded():
    line, _ = run(plainly, pb.SaveAll())
    grown = [event.nbytes for event in line.events if event.phase == FORWARD]
    assert grown == sorted(grown)
    assert len(set(grown)) == N + 1
    assert "peak 31.2 KiB" in str(line)
    assert line.to_dict()["held"]["saved"][-2:] == [32_000, 0]


def test_long_programs_keep_few_events_and_the_peak(monkeypatch):
    monkeypatch.setattr(timeline, "MOST", 20)
    line, report = run(by_loop, pb.SaveAll(), np.ones(2))
    assert 10 <= len(line.events) <= 20
    assert line.peak.nbytes == report.peak_bytes


def test_a_gradient_within_the_function_is_not_booked():
    def f(x):
        g = pb.grad(by_loop, policy=pb.Binomial(3))(np.ones(5000))
        return np.sum(x * g[:1])

    line, report = run(f, pb.SaveAll())
    _, pull = pb.vjp(f, np.ones(100))
    pull(1.0)
    assert line.peak.nbytes == report.peak_bytes == pull.report.peak_bytes


def test_outside_the_block_the_ledger_is_the_ordinary_one():
    with timed():
        pass
    assert LEDGERS.get() is Ledger
    _, pull = pb.vjp(np.sin, 1.0)
    assert type(pull.ledger) is Ledger
