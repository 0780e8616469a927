"""What ranks agree on that run one program together: schedules that follow from bytes, and whether all went well."""

import time
from functools import partial

import numpy as np
import pytest
from tests.programs.ranks import HERE, Agreed, FailedElsewhereError, LostError, on_ranks, outcomes, shifted, total

import pullback as pb
from pullback.choosing import auto
from pullback.testing.comparing.bits import same_bits

N = 12
ROWS = (40, 3)
"""Uneven ranks: what one holds is many times what the other does."""
EDGE = 3
KINDS = ("steps", "fori_loop", "scan", "while_loop", "nested", "within steps")


def step(u, x):
    """Rows of its own, of which the last ones go to the next rank, and temporaries that only the large rank has."""
    came = shifted(u[-EDGE:])
    v = np.sin(u) * x
    if len(u) > EDGE:
        v = np.cos(v) * np.exp(-v * v) + v
    v[:EDGE] += came * 0.3
    return v


def loop(kind, x):
    u, one = x * 0.5, lambda k, u: step(u, x)
    if kind == "steps":
        for k in pb.steps(N):
            u = one(k, u)
        return u
    if kind == "fori_loop":
        return pb.fori_loop(0, N, one, u)
    if kind == "scan":
        return pb.scan(lambda u, k: (one(0, u), np.sum(u)), u, length=N)[0]
    if kind == "while_loop":
        return pb.while_loop(lambda c: c[0] < N, lambda c: (c[0] + 1, one(0, c[1])), (0, u))[1]
    if kind == "nested":
        return pb.fori_loop(0, 4, lambda k, u: pb.fori_loop(0, 3, one, u), u)
    for _ in pb.steps(4):
        u = pb.fori_loop(0, 3, one, u)
    return u


def loss(kind, x):
    u = loop(kind, x)
    return total(np.sum(u * u)) * 0.5


def inputs(rank):
    return np.linspace(0.3, 1.2, ROWS[rank]) * (1.0 if rank else 0.9)


def gradient(kind, policy, rank, agreement=None):
    with pb.using(agreement=agreement or Agreed()):
        return pb.grad(partial(loss, kind), policy=policy)(inputs(rank))


POLICIES = (
    pb.SaveAll(),
    pb.Recompute(),
    pb.Recompute(3),
    pb.Binomial(2),
    pb.Periodic(3),
    pb.Budget("1 MB"),
    pb.Budget("120 kB"),
    pb.Budget("90 kB"),
    pb.Budget("60 kB"),
    pb.Keep("sin", outer=pb.Recompute()),
    "auto",
)


@pytest.mark.filterwarnings("ignore::pullback.PolicyWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_uneven_ranks_take_one_schedule_under_policies_that_read_bytes(kind):
    wanted, _ = on_ranks(2, partial(gradient, kind, pb.SaveAll()), agrees=True)
    done = 0
    for policy in POLICIES:
        found, errors, world = outcomes(2, partial(gradient, kind, policy), agrees=True)
        assert not any(isinstance(error, LostError) for error in errors), (policy, errors)
        assert world.sent[0] == world.sent[1]
        if any(errors):
            assert all(isinstance(error, pb.BudgetError | FailedElsewhereError) for error in errors), (policy, errors)
            continue
        assert same_bits(found, wanted), policy
        done += 1
    assert done >= 8


@pytest.mark.parametrize("policy", [pb.SaveAll(), pb.Binomial(2), pb.Recompute()], ids=str)
def test_uneven_ranks_whose_calls_come_in_some_steps_agree_on_sizes_in_step_0(policy):
    def on(rank, first, policy):
        def one(x, k, u):
            return step(u, x) if k % 3 == first else u * x

        with pb.using(agreement=Agreed()):
            return pb.grad(lambda x: total(np.sum(pb.fori_loop(0, N, partial(one, x), x) ** 2)), policy=policy)(
                inputs(rank)
            )

    for first in (0, 2):
        wanted, _ = on_ranks(2, lambda rank, first=first: on(rank, first, pb.SaveAll()), agrees=True)
        found, errors, world = outcomes(2, lambda rank, first=first: on(rank, first, policy), agrees=True)
        if first == 0 or policy == pb.SaveAll():
            assert same_bits(found, wanted)
            assert world.sent[0] == world.sent[1]
        else:
            assert all("Sizes may differ where step 0 makes a call" in str(error) for error in errors), errors


def test_auto_goes_by_the_rank_that_has_fewest_bytes(monkeypatch):
    def free():
        return 2 * 60_000 if HERE.rank else 2 * 10**9

    monkeypatch.setattr(auto, "_free", free)
    for kind in ("fori_loop", "steps", "while_loop"):
        wanted, _ = on_ranks(2, partial(gradient, kind, pb.SaveAll()), agrees=True)
        found, world = on_ranks(2, partial(gradient, kind, "auto"), agrees=True)
        assert same_bits(found, wanted)
        assert world.sent[0] == world.sent[1]
        assert world.sent[0].count("forth 1") >= N


@pytest.mark.parametrize("kind", ["steps", "fori_loop", "while_loop", "within steps"])
@pytest.mark.parametrize(
    "policies",
    [(pb.SaveAll(), pb.Binomial(5)), (pb.Binomial(5), pb.Binomial(6)), (pb.Budget("1 MB"), pb.Budget("2 MB"))],
    ids=str,
)
def test_unequal_policies_raise_on_all(kind, policies):
    _, errors, _ = outcomes(2, lambda rank: gradient(kind, policies[rank], rank), agrees=True)
    for error in errors:
        assert isinstance(error, pb.PolicyError | FailedElsewhereError), errors
    assert any(isinstance(error, pb.PolicyError) and "under" in str(error) for error in errors)


def test_unequal_lengths_raise_on_all():
    def on(rank):
        with pb.using(agreement=Agreed()):
            return pb.grad(lambda x: np.sum(pb.fori_loop(0, 5 + rank, lambda k, u: shifted(u) * x, x)))(np.ones(3))

    _, errors, _ = outcomes(2, on, agrees=True)
    assert all(isinstance(error, pb.PolicyError) for error in errors)
    assert "5 steps" in str(errors[0])
    assert "6 steps" in str(errors[1])


# ------------------------------------------------------------------------------------------------- errors end all ranks
class OwnError(Exception):
    pass


@pb.primitive
def fails_back(x):
    return x * 1.0


@fails_back.vjp("x")
def _(ct):
    raise OwnError("in a rule")


def breaks(where, kind, x, rank):
    """A program whose rank 1 fails there."""

    def one(k, u):
        if where == "first step" and rank == 1:
            raise OwnError(where)
        v = step(u, x)
        if where == "a later step" and rank == 1 and breaks.calls > 5:
            raise OwnError(where)
        if where == "a rule" and rank == 1:
            v = fails_back(v)
        breaks.calls += rank
        return v

    breaks.calls = 0
    if where == "before" and rank == 1:
        raise OwnError(where)
    u = x * 0.5
    if kind == "steps":
        for k in pb.steps(N):
            u = one(k, u)
    elif kind == "nested":
        u = pb.fori_loop(0, 4, lambda k, u: pb.fori_loop(0, 3, one, u), u)
    elif kind == "plain":
        for k in range(N):
            u = one(k, u)
    else:
        u = pb.fori_loop(0, N, one, u)
    if where == "after" and rank == 1:
        raise OwnError(where)
    u = u + total(np.sum(u))
    return u if where == "no scalar" and rank == 1 else np.sum(u)


@pytest.mark.filterwarnings("ignore::pullback.PolicyWarning")
@pytest.mark.parametrize("policy", [pb.SaveAll(), pb.Recompute(3)], ids=str)
@pytest.mark.parametrize("kind", ["plain", "steps", "fori_loop", "nested"])
@pytest.mark.parametrize("where", ["before", "first step", "a later step", "after", "a rule", "no scalar"])
def test_an_error_on_one_rank_becomes_one_on_all(where, kind, policy):
    made = [Agreed(), Agreed()]

    def on(rank):
        with pb.using(agreement=made[rank]):
            return pb.grad(lambda x: breaks(where, kind, x, rank), policy=policy)(inputs(rank))

    began = time.monotonic()
    _, errors, _ = outcomes(2, on, agrees=True)
    assert time.monotonic() - began < 15  # nobody has waited for a message that never comes
    assert isinstance(errors[0], FailedElsewhereError), errors
    assert isinstance(errors[1], pb.NotDifferentiableError if where == "no scalar" else OwnError), errors
    for agreement in made:
        told = [error for error in agreement.asked if isinstance(error, Exception)]
        assert len(told) <= 1  # each failure is told once
    assert isinstance(made[1].asked[-1], Exception)


def test_a_replay_error_on_one_rank_ends_all():
    def on(rank):
        seen = [0]

        def body(k, u):
            seen[0] += 1
            return shifted(u) * (1.0 + (seen[0] if rank == 1 else 0.0))

        with pb.using(agreement=Agreed()):
            return pb.grad(lambda x: np.sum(pb.fori_loop(0, N, body, x)), policy=pb.Recompute(3))(np.ones(3))

    _, errors, _ = outcomes(2, on, agrees=True)
    assert isinstance(errors[1], pb.ReplayError)
    assert isinstance(errors[0], FailedElsewhereError | pb.ReplayError)


def test_without_an_error_ranks_meet_at_few_points():
    made = [Agreed(), Agreed()]
    on_ranks(2, lambda rank: gradient("fori_loop", pb.Recompute(3), rank, made[rank]), agrees=True)
    for agreement in made:
        assert [type(each) is tuple for each in agreement.asked] == [True, True, False, False, False, False]


def test_a_program_that_sends_nothing_asks_nobody():
    agreement = Agreed()
    with pb.using(agreement=agreement):
        x = np.ones(3)
        pb.grad(lambda x: np.sum(pb.fori_loop(0, 30, lambda k, u: np.sin(u), x)), policy=pb.Recompute())(x)
        out, pull = pb.vjp(np.sin, x)
        pull(out)
        pb.jvp(np.sin, (x,), (x,))
    assert agreement.asked == []


def test_pulls_and_products_outside_the_block_go_on_agreeing():
    def on(rank):
        with pb.using(agreement=Agreed()):
            out, pull = pb.vjp(partial(loss, "fori_loop"), inputs(rank), policy=pb.Recompute())
        return [pull(np.ones_like(out))[0] for _ in range(2)]

    found, world = on_ranks(2, on, agrees=True)
    assert world.sent[0] == world.sent[1]
    assert same_bits(found[0][0], found[0][1])

    def fails(rank):
        with pb.using(agreement=Agreed()):
            out, pull = pb.vjp(lambda x: breaks("a rule", "fori_loop", x, rank), inputs(rank))
        return pull(np.ones_like(out))

    _, errors, _ = outcomes(2, fails, agrees=True)
    assert isinstance(errors[0], FailedElsewhereError)
    assert isinstance(errors[1], OwnError)


def test_what_is_no_agreement_is_refused():
    with pytest.raises(pb.PolicyError, match="has no largest"):
        pb.using(agreement=object())


def test_ranks_cannot_agree_on_a_pool():
    pool = pb.BudgetPool("10 MB")
    for kind in ("fori_loop", "steps"):
        _, errors, _ = outcomes(2, partial(gradient, kind, pool), agrees=True)
        assert any(isinstance(error, pb.PolicyError) for error in errors)
        assert all(isinstance(error, pb.PolicyError | FailedElsewhereError) for error in errors)
