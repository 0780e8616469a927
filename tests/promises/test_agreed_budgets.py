"""Loops that communicate, one after the other under one number of bytes: an earlier one gives up what a later one needs
more, on every rank alike, however uneven the ranks are."""

from functools import partial

import numpy as np
import pytest
from tests.programs.ranks import Agreed, on_ranks, outcomes, total

import pullback as pb
from pullback.testing.comparing.bits import same_bits

LENGTHS = (4000, 150)
"""How long the parts of the ranks are."""
MB = (1, 1.2, 1.5, 2, 2.6, 3.5)


def step(scale, u):
    return np.sin(u) * scale + total(np.mean(u)) * 0.1


def loop(n, scale, x):
    return pb.fori_loop(0, n, lambda k, u: step(scale, u), x)


def two_loops(rank, x):
    return np.sum(loop(30, 0.9, loop(40, 0.8, x)) ** 2)


def a_loop_of_its_own(rank, x):
    """Rank 0 has a loop in which it computes alone, which needs bytes that the first one holds."""
    u = loop(40, 0.8, x)
    if rank == 0:
        u = pb.fori_loop(0, 50, lambda k, v: np.cos(v) * 0.7 + v * 0.1, u)
    return np.sum(loop(20, 0.9, u) ** 2)


def code_after(rank, x):
    u = loop(40, 0.8, x)
    for _ in range(2 if rank else 9):
        u = np.sin(u) * u
    return np.sum(u**2)


def of_unknown_length(rank, x):
    u = loop(40, 0.8, x)
    u = pb.while_loop(lambda c: c[0] < 25, lambda c: (c[0] + 1, step(0.9, c[1])), (0, u))[1]
    return np.sum(loop(10, 0.7, u) ** 2)


def marked(n, scale, x):
    for _ in pb.steps(n):
        x = step(scale, x)
    return x


def marked_twice(rank, x):
    return np.sum(marked(30, 0.9, marked(40, 0.8, x)) ** 2)


def marked_after_a_loop(rank, x):
    return np.sum(marked(30, 0.9, loop(40, 0.8, x)) ** 2)


def marked_before_and_after_loops(rank, x):
    """Rank 0 has marked steps of its own, too, in which it computes alone."""
    u = marked(30, 0.8, x)
    if rank == 0:
        u = pb.fori_loop(0, 50, lambda k, v: np.cos(v) * 0.7 + v * 0.1, u)
    return np.sum(marked(15, 0.9, loop(20, 0.9, u)) ** 2)


PROGRAMS = (
    two_loops, a_loop_of_its_own, code_after, of_unknown_length,
    marked_twice, marked_after_a_loop, marked_before_and_after_loops,
)  # fmt: skip


def part(rank):
    return np.linspace(0.1, 1.0, LENGTHS[rank])


def gradient(program, policy, rank):
    with pb.using(agreement=Agreed()):
        return pb.grad(partial(program, rank), policy=policy)(part(rank))


@pytest.mark.parametrize("program", PROGRAMS)
def test_uneven_ranks_give_up_the_same(program):
    wanted, _ = on_ranks(2, lambda r: gradient(program, pb.SaveAll(), r), agrees=True)
    ran = 0
    for mb in MB:
        policy = pb.Budget(int(mb * 1e6))
        found, errors, world = outcomes(2, lambda r, policy=policy: gradient(program, policy, r), agrees=True)
        if any(errors):
            assert all(errors)
            assert any(isinstance(error, pb.BudgetError) for error in errors), errors
            continue
        ran += 1
        assert same_bits(found, wanted)
        assert world.sent[0] == world.sent[1]
    assert ran >= len(MB) - 2


@pytest.mark.parametrize("program", [two_loops, marked_twice, marked_after_a_loop])
def test_pulls_are_called_again(program):
    def on(rank):
        with pb.using(agreement=Agreed()):
            out, pull = pb.vjp(partial(program, rank), part(rank), policy=pb.Budget("1.5 MB"))
            return [out, *pull(1.0), *pull(2.0)]

    def wanted(rank):
        with pb.using(agreement=Agreed()):
            out, pull = pb.vjp(partial(program, rank), part(rank))
            return [out, *pull(1.0), *pull(2.0)]

    found, world = on_ranks(2, on, agrees=True)
    assert same_bits(found, on_ranks(2, wanted, agrees=True)[0])
    assert world.sent[0] == world.sent[1]


@pytest.mark.parametrize("program", [two_loops, marked_twice, marked_after_a_loop, marked_before_and_after_loops])
def test_a_budget_that_serves_without_an_agreement_serves_with_one(program):
    def on(rank, agrees):
        x = np.linspace(0.1, 1.0, LENGTHS[0])
        with pb.using(agreement=Agreed() if agrees else None):
            _, pull = pb.vjp(partial(program, 1), x, policy=pb.Budget("1 MB"))
            pull(1.0)
            return pull.report.n_forward, pull.report.peak_bytes

    alone, _ = on_ranks(2, lambda r: on(r, False))
    agreed, _ = on_ranks(2, lambda r: on(r, True), agrees=True)
    assert agreed == alone
    assert agreed[0][0] > 70  # of the first loop steps run again, which save-all does not


def grows(rank, x):
    """What rank 0 holds of later steps is more than of the first, and of all less than a state."""

    def body(k, state):
        a, b, c, d = state
        a = np.sin(a) * 0.5 + total(np.mean(b)) * 0.1
        if rank == 0 and k > 3:
            a = np.sin(np.sin(a))
        return a, b, c, d

    return sum(np.sum(u) for u in pb.fori_loop(0, 40, body, (x, x * 2.0, x * 3.0, x * 4.0)))


@pytest.mark.parametrize("policy", [pb.Binomial(3), pb.Recompute(4), pb.Periodic(7)])
def test_tapes_that_grow_on_one_rank_alone(policy):
    wanted, _ = on_ranks(2, lambda r: gradient(grows, pb.SaveAll(), r), agrees=True)
    found, world = on_ranks(2, lambda r: gradient(grows, policy, r), agrees=True)
    assert same_bits(found, wanted)
    assert world.sent[0] == world.sent[1]
