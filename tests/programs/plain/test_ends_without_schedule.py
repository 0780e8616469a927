"""Code around loops, and in checkpoints, under a number of bytes."""

import gc
import tracemalloc

import numpy as np
import pytest

import pullback as pb

X = np.linspace(0.2, 0.9, 10_000)
SLACK = 64 * 1024


def layer(u):
    for _ in range(5):
        u = u + 0.1 * np.sin(u) * np.cos(u)
    return u


def checkpointed(x):
    for _ in range(8):
        x = pb.checkpoint(layer)(x)
    return np.sum(x * x)


def after_a_loop(x):
    x = pb.fori_loop(0, 6, lambda _, u: layer(u), x)
    for _ in range(8):
        x = layer(x)
    return np.sum(x * x)


def before_a_loop(x):
    for _ in range(8):
        x = layer(x)
    return np.sum(pb.fori_loop(0, 6, lambda _, u: layer(u), x) ** 2)


def between_steps(x):
    for _ in range(2):
        for _ in pb.steps(4):
            x = layer(x)
        for _ in range(4):
            x = layer(x)
    return np.sum(x * x)


PROGRAMS = (checkpointed, after_a_loop, before_a_loop, between_steps)


def peak_of(f, policy):
    gc.collect()
    tracemalloc.start()
    try:
        return pb.grad(f, policy=policy)(X), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("f", PROGRAMS)
def test_the_bytes_bind(f):
    wanted = pb.grad(f)(X)
    pb.grad(f, policy=pb.Budget(50 * X.nbytes))(X)  # loads what is needed
    found, peak = peak_of(f, pb.Budget(40 * X.nbytes))
    assert found.tobytes() == wanted.tobytes()
    assert peak <= 40 * X.nbytes + SLACK


@pytest.mark.parametrize("f", PROGRAMS)
def test_too_few_are_refused_before_much_is_held(f):
    with pytest.raises(pb.BudgetError) as caught:
        pb.grad(f, policy=pb.Budget(1))(X)
    assert caught.value.minimum_bytes < 40 * X.nbytes
    with pytest.raises(pb.BudgetError):
        peak_of(f, pb.Budget(1))
    assert len(gc.get_objects()) > 0


@pytest.mark.parametrize("f", PROGRAMS)
def test_with_room_for_all_nothing_is_run_again(f):
    counts = []
    for policy in (pb.SaveAll(), pb.Budget("1 GB")):
        _, pull = pb.vjp(f, X, policy=policy)
        pull(1.0)
        counts.append(pull.report.n_forward)
        pull.close()
    assert counts[1] == counts[0] or f is checkpointed  # there they are steps of the budget's own


def test_more_bytes_hold_more_of_a_checkpoint():
    def held(budget):
        _, pull = pb.vjp(checkpointed, X, policy=budget)
        pull(1.0)
        return pull.report.peak_bytes

    few, many = held(pb.Budget(30 * X.nbytes)), held(pb.Budget(90 * X.nbytes))
    assert few < 30 * X.nbytes < many < 90 * X.nbytes


def test_a_checkpoint_with_a_policy_of_its_own_is_counted():
    def f(x):
        for _ in range(4):
            x = pb.checkpoint(layer, policy=pb.SaveAll())(x)
        return np.sum(x * x)

    with pytest.raises(pb.BudgetError, match="a policy of its own"):
        pb.grad(f, policy=pb.Budget(20 * X.nbytes))(X)
    assert pb.grad(f, policy=pb.Budget(200 * X.nbytes))(X).tobytes() == pb.grad(f)(X).tobytes()


def test_a_second_reverse_pass_has_the_same_bits():
    for f in PROGRAMS:
        wanted = pb.grad(f)(X).tobytes()
        _, pull = pb.vjp(f, X, policy=pb.Budget(50 * X.nbytes))
        assert [pull(1.0)[0].tobytes() for _ in range(2)] == [wanted, wanted]
        pull.close()


@pytest.mark.parametrize("steps", [range, pb.steps])
def test_a_refusal_that_the_program_catches_is_raised_when_the_trace_ends(steps):
    """A step that is rejected is caught by ``except ValueError``, and :class:`BudgetError` is one."""

    def program(x):
        for _ in steps(31):
            try:
                x = np.sin(x) * x[0]
            except ValueError:
                x = 0.5 * x
        return np.sum(x)

    with pytest.raises(pb.BudgetError, match="too little"):
        pb.grad(program, policy=pb.Budget(100))(np.arange(1.0, 7.0))
