"""The running state and the books of plain steps are told: by the report, by the plan, at the peak, and nothing of them
is left."""

import numpy as np
import pytest

import pullback as pb
from pullback.schedules import simulate

N, X = 60, np.linspace(0.1, 1.0, 500)


def by_loop(x):
    return np.sum(pb.fori_loop(0, N, lambda k, u: u - 0.01 * np.sin(u), x))


def by_while(x):
    return np.sum(pb.while_loop(lambda s: s[0] < N, lambda s: (s[0] + 1, s[1] - 0.01 * np.sin(s[1])), (0, x))[1])


def by_steps(x):
    for _ in pb.steps(N):
        x = x - 0.01 * np.sin(x)
    return np.sum(x)


@pytest.mark.parametrize("policy", [pb.SaveAll(), pb.Recompute(), pb.Binomial(3), pb.Budget("1 MB")], ids=repr)
@pytest.mark.parametrize("f", [by_loop, by_while, by_steps])
def test_the_plan_tells_what_the_report_tells(f, policy):
    plan = pb.plan(f, X, policy=policy)
    _, pull = pb.vjp(f, X, policy=policy)
    pull(1.0)
    report = pull.report
    assert (plan.peak_bytes, plan.bytes_by_reason) == (report.peak_bytes, report.bytes_by_reason)
    assert sum(report.bytes_by_reason.values()) == report.peak_bytes
    pull(1.0)
    assert pull.report.peak_bytes == report.peak_bytes
    pull.close()
    assert not any(pull.ledger.now.values())
    assert (pull.ledger.state_bytes, pull.ledger.books_of) == (0, {})


@pytest.mark.parametrize("f", [by_loop, by_steps])
def test_steps_that_are_run_again_have_a_running_state(f):
    _, pull = pb.vjp(f, X, policy=pb.Binomial(3))
    pull(1.0)
    simulation = simulate(pb.Binomial(3).schedule(N), N, state_bytes=X.nbytes, tape_bytes=X.nbytes)
    told = pull.report.bytes_by_reason
    assert told["state"] == simulation.working_bytes == X.nbytes
    assert told["snapshot"] + told["saved"] == simulation.peak_bytes


def test_nothing_runs_where_nothing_is_run_again():
    _, pull = pb.vjp(by_loop, X)
    pull(1.0)
    assert "state" not in pull.report.bytes_by_reason


@pytest.mark.parametrize("labelled", [False, True])
def test_the_books_of_a_marked_loop_grow_by_less_than_a_hundred_bytes_a_step(labelled):
    books = []
    for n in (1_000, 3_000):

        def f(x, n=n):
            for _ in pb.steps(n):
                slope = np.sin(x)
                x = x - 0.01 * (pb.name(slope, "slope") if labelled else slope)
            return np.sum(x)

        _, pull = pb.vjp(f, np.ones(1), policy=pb.Binomial(3))
        books.append(pull.report.bytes_by_reason["bookkeeping"])
        pull.close()
    assert 40 < (books[1] - books[0]) / 2_000 < 100


@pytest.mark.parametrize("policy", [pb.Recompute(), pb.Periodic(10)], ids=repr)
def test_the_first_run_tells_what_those_by_functions_tell(policy):
    """A value that a tape holds and the next step reads is there once, whoever executes the steps."""

    def by_cells(w):
        total, h, x = 0.0, np.zeros((10, 20)), np.ones((10, 20))
        for _ in pb.steps(100):
            z = h @ w
            x = 0.5 * x + np.tanh(z)
            h = np.tanh(x) * np.exp(-z)
            total = total + np.sum(h * h)
        return total

    w, peaks = np.eye(20) * 0.9 + 0.01, []
    for staging in ("off", "auto", "auto"):
        with pb.using(staging=staging):
            peaks.append(pb.plan(by_cells, w, policy=policy).peak_bytes)
            _, pull = pb.vjp(by_cells, w, policy=policy)
            pull(1.0)
            peaks.append(pull.report.peak_bytes)
            pull.close()
    assert len(set(peaks)) == 1, peaks


@pytest.mark.parametrize("policy", [pb.Recompute(), pb.Binomial(10), pb.Periodic(10)], ids=repr)
def test_what_a_snapshot_or_the_caller_has_is_no_state(policy):
    def program(x):
        return np.sum(np.tanh(2.0 * x + 1.0) * np.exp(-x * x) + np.sqrt(1.0 + x * x))

    plan = pb.plan(program, X, policy=policy)
    _, pull = pb.vjp(program, X, policy=policy)
    pull(1.0)
    assert plan.bytes_by_reason == pull.report.bytes_by_reason
    assert pull.report.bytes_by_reason.get("state", 0) <= X.nbytes
