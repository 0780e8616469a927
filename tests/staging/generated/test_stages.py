"""A stage: used once it gives the bytes of the recorded step; books what recorded steps book, and can become their
tape."""

import numpy as np
import pytest
from tests.staging.generated.both_ways import POLICIES, loop_over, the_stage

import pullback as pb
from pullback.memory.in_force import innermost
from pullback.staging.generated.forward_statements import NotStageableError
from pullback.staging.generated.stages import require_equal
from pullback.staging.generated.workspaces import Workspace
from pullback.testing.comparing.bits import same_bits

X = np.array([0.3, -0.7, 1.1, 0.2])


def body(k, u, x):
    v = np.sin(u) * x
    v[0] += u[1] * 0.5
    return v


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_the_report_is_that_of_recorded_steps(policy):
    reports = []
    for staging in ("off", "numpy"):
        with pb.using(staging=staging):
            _, pull = pb.vjp(loop_over(body, 30), X, policy=policy)
            held = pull.report.live_bytes
            pull(1.0)
            pull.close()
            reports.append((held, pull.report.n_forward, pull.report.peak_bytes, pull.report.bytes_by_reason))
            assert pull.report.live_bytes == 0
    assert reports[0] == reports[1]


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_measured_is_predicted(policy):
    planned = pb.plan(loop_over(body, 30), X, policy=policy)
    with pb.using(staging="numpy"):
        _, pull = pb.vjp(loop_over(body, 30), X, policy=policy)
        pull(1.0)
    assert the_stage()
    assert (planned.n_forward, planned.peak_bytes) == (pull.report.n_forward, pull.report.peak_bytes)


def test_record_and_advance_give_one_state():
    with pb.using(staging="numpy"):
        pb.grad(loop_over(body), policy=pb.Binomial(2))(X)
    stage, work = the_stage(), Workspace()
    inputs, captured, constants = [X], [X * 2], [0.5]
    (after,), _ = stage.record.function(inputs, captured, constants, *work.of(stage.record))
    ((advanced,),) = stage.advance.function(inputs, captured, constants, *work.of(stage.advance))
    assert same_bits(after, advanced)
    assert same_bits(after, body(0, X, X * 2))


def test_other_bytes_strides_or_counts_are_no_stage():
    a = np.arange(6.0)
    require_equal([a], [a.copy()], "it")
    for other in ([a * (1 + 1e-16) + 1e-15], [a.astype("f4")], [np.arange(12.0)[::2]], [a, a], [-np.zeros(6)]):
        with pytest.raises(NotStageableError):
            require_equal([a if other[0].any() else np.zeros(6)], other, "it")


def test_the_tape_that_a_stage_becomes_has_the_records_of_a_recorded_step():
    """Second order sweeps the tapes of steps."""

    def f(x):
        return np.sum(pb.fori_loop(0, 12, lambda k, u: np.sin(u) * x + u[0], x))

    def of(staging):
        with pb.using(staging=staging):
            return [pb.hvp(f, (X,), (X[::-1],)), pb.jvp(pb.grad(f), (X,), (X[::-1],)), pb.hessian(f)(X)]

    assert same_bits(of("numpy"), of("off"))


def test_nothing_is_traced_afterwards():
    with pb.using(staging="numpy"):
        pb.grad(loop_over(body))(X)
    assert innermost() is None
