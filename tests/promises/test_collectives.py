"""Primitives that meet calls of other ranks: every rank makes the same calls forward and back, whatever is active or
reached there, under every policy."""

from functools import partial

import numpy as np
import pytest
from tests.programs.ranks import both_edges, on_ranks, shifted, total

import pullback as pb
from pullback import testing
from pullback.testing.comparing.bits import same_bits

N = 9
POLICIES = {
    "save-all": pb.SaveAll(),
    "recompute": pb.Recompute(3),
    "binomial": pb.Binomial(2),
    "mixed": pb.Mixed(3),
    "periodic": pb.Periodic(4),
    "tiered": pb.Tiered(1, 2),
    "budget": pb.Budget("1 MB"),
    "exact": pb.Budget("1 MB", exact=True),
    "keep": pb.Keep("sin"),
    "keep and binomial": pb.Keep("sin", outer=pb.Binomial(2)),
    "auto": "auto",
}
KINDS = ("plain", "steps", "fori_loop", "scan", "while_loop", "nested", "checkpoint", "checkpoint under a policy")
INPUTS = (np.array([0.4, -0.7, 1.1]), np.array([-0.2, 0.9, 0.3]))


def step(u, mine):
    """A step of a rank: what comes from the other, and what is its own."""
    came = shifted(u)
    left, right = both_edges(u[:1] * 0.5, came[-1:])
    return np.sin(came) * 0.7 + u * 0.2 + mine * 0.1 + left * right * 0.3


def repeated(kind, one, u):
    """``one(u)`` again and again, in a loop of this kind."""
    if kind == "plain":
        for _ in range(N):
            u = one(u)
        return u
    if kind == "steps":
        for _ in pb.steps(N):
            u = one(u)
        return u
    if kind == "fori_loop":
        return pb.fori_loop(0, N, lambda k, u: one(u), u)
    if kind == "scan":
        return pb.scan(lambda u, k: (one(u), np.sum(u)), u, length=N)[0]
    if kind == "while_loop":
        return pb.while_loop(lambda c: c[0] < N, lambda c: (c[0] + 1, one(c[1])), (0, u))[1]
    if kind == "nested":
        return pb.fori_loop(0, 3, lambda k, u: pb.fori_loop(0, 3, lambda j, v: one(v), u * 0.9), u)
    made = pb.checkpoint(one) if kind == "checkpoint" else pb.checkpoint(one, policy=pb.Binomial(2))
    for _ in range(N):
        u = made(u)
    return u


def loss_of(kind, rank, x, *, active, reached, shared):
    """What a rank returns: it need not depend on its input (``active``), nor on what it got (``reached``)."""
    mine = x if active[rank] else np.array([0.3, 0.1, -0.4])
    u = repeated(kind, lambda u: step(u, mine), mine * 0.5)
    if shared:
        u = u + total(np.sum(u * u))
    return np.sum(u * u) if reached[rank] else np.float64(0.25)


ACTIVITY = {
    "active": ((True, True), (True, True)),
    "inactive here": ((True, False), (True, True)),
    "unreached here": ((True, True), (False, True)),
    "inactive there, unreached here": ((True, False), (False, True)),
    "inactive and unreached there": ((True, False), (True, False)),
    "nothing reached": ((True, True), (False, False)),
}


def in_one_process(kind, *, active, reached, shared):
    """Both ranks as one program: the sum of their losses, of what both are given."""

    def of_both(xs):
        mine = [xs[r] if active[r] else np.array([0.3, 0.1, -0.4]) for r in (0, 1)]
        us = [m * 0.5 for m in mine]
        for k in range(N):
            if kind == "nested" and k % 3 == 0:
                us = [u * 0.9 for u in us]
            came = [us[1], us[0]]
            low, high = [u[:1] * 0.5 for u in us], [c[-1:] for c in came]
            edge = [high[1] * low[1], high[0] * low[0]]
            us = [np.sin(came[r]) * 0.7 + us[r] * 0.2 + mine[r] * 0.1 + edge[r] * 0.3 for r in (0, 1)]
        if shared:
            whole = np.sum(us[0] * us[0]) + np.sum(us[1] * us[1])
            us = [u + whole for u in us]
        return sum(np.sum(u * u) if reached[r] else 0.25 for r, u in enumerate(us)) + 0.0 * np.sum(xs)

    return of_both


def gradients(kind, x, policy, staging="auto", **how):
    def on(rank):
        with pb.using(staging=staging):
            mine = x if rank == 0 else x[::-1] * 1.3
            return pb.grad(lambda x: loss_of(kind, rank, x, **how), policy=policy)(mine)

    return on_ranks(2, on)


@pytest.mark.share(3, of=lambda kind, activity: "")
@pytest.mark.filterwarnings("ignore::pullback.PolicyWarning")
@pytest.mark.parametrize("activity", ACTIVITY)
@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_those_of_one_process_under_every_policy(kind, activity):
    active, reached = ACTIVITY[activity]
    for shared, x in zip((True, False), INPUTS, strict=True):
        how = {"active": active, "reached": reached, "shared": shared}
        wanted = pb.grad(in_one_process(kind, **how))(np.stack([x, x[::-1] * 1.3]))
        first = None
        for policy in POLICIES.values():
            if kind in ("while_loop", "plain") and isinstance(policy, pb.Mixed):
                continue  # it must know the length
            found, world = gradients(kind, x, policy, **how)
            first = first or found
            assert same_bits(found, first), policy
            assert world.sent[0] == world.sent[1], policy
        for rank in (0, 1):
            np.testing.assert_allclose(first[rank], wanted[rank] if active[rank] else 0.0, rtol=1e-12, atol=1e-15)


@pytest.mark.filterwarnings("ignore::pullback.PolicyWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_staged_or_not_the_bits_and_the_messages_are_the_same(kind):
    how = {"active": (True, False), "reached": (False, True), "shared": True}
    for policy in (pb.SaveAll(), pb.Binomial(2)):
        found = [gradients(kind, INPUTS[0], policy, staging, **how) for staging in ("off", "numpy")]
        assert same_bits(found[0][0], found[1][0])
        assert found[0][1].sent == found[1][1].sent


def test_a_row_that_one_rank_sends_to_another_whose_own_depends_on_nothing():
    def on(rank):
        def loss(x):
            came = shifted(x if rank == 0 else np.zeros(3))
            return np.sum(np.cos(came)) if rank == 1 else np.float64(1.0)

        return pb.grad(loss)(INPUTS[0])

    found, world = on_ranks(2, on)
    np.testing.assert_allclose(found[0], -np.sin(INPUTS[0]))
    assert world.sent == [["forth 1", "back -1"]] * 2


# ---------------------------------------------------------------------------------- again, several seeds, second order
def pulled(kind, policy, rank, *, active, reached):
    """Pulls of one ``vjp`` again and again, once of two seeds at once."""
    x = (INPUTS[0], INPUTS[0][::-1] * 1.3)[rank]
    out, pull = pb.vjp(lambda x: loss_of(kind, rank, x, active=active, reached=reached, shared=True), x, policy=policy)
    found = [pull(np.ones_like(out)), *pull([np.ones_like(out), 2.0 * np.ones_like(out)]), pull(np.ones_like(out))]
    pull.close()
    return [ct for (ct,) in found]


@pytest.mark.filterwarnings("ignore::pullback.PolicyWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_pulls_that_are_called_again_and_for_several_seeds(kind):
    for active, reached in (ACTIVITY["active"], ACTIVITY["inactive there, unreached here"]):
        wanted, _ = gradients(kind, INPUTS[0], None, active=active, reached=reached, shared=True)
        for policy in (pb.SaveAll(), pb.Recompute(3), pb.Binomial(2), pb.Keep("sin"), pb.Budget("1 MB", exact=True)):
            on = partial(pulled, kind, policy, active=active, reached=reached)
            found, world = on_ranks(2, on)
            assert world.sent[0] == world.sent[1]
            for rank in (0, 1):
                once, again, twice, last = found[rank]
                assert same_bits(once, wanted[rank])
                assert same_bits(again, wanted[rank])
                assert same_bits(last, wanted[rank])
                assert same_bits(twice, 2.0 * wanted[rank])


def test_a_pull_that_is_called_very_often_goes_on_sending():
    def on(rank):
        out, pull = pb.vjp(lambda x: np.sum(np.sin(shifted(x))), INPUTS[rank])
        return [pull(np.ones_like(out))[0] for _ in range(60)]

    found, world = on_ranks(2, on)
    assert world.sent == [["forth 1", *["back -1"] * 60]] * 2
    assert all(same_bits(each, found[0][0]) for each in found[0])


@pytest.mark.share(2, of=lambda kind, activity: "")
@pytest.mark.filterwarnings("ignore::pullback.PolicyWarning")
@pytest.mark.parametrize("kind", ["plain", "steps", "fori_loop", "nested", "while_loop"])
@pytest.mark.parametrize("activity", ["active", "inactive here", "unreached here", "inactive there, unreached here"])
def test_tangents_and_products_with_hessians_take_all_ranks(kind, activity):
    active, reached = ACTIVITY[activity]
    how = {"active": active, "reached": reached, "shared": True}
    x, t = (INPUTS[0], INPUTS[0][::-1] * 1.3), (INPUTS[1], INPUTS[1] * 0.5)

    whole = in_one_process(kind, **how)
    both, along = np.stack(x), np.stack([t[0] * active[0], t[1] * active[1]])
    _, slope = pb.jvp(whole, (both,), (along,))
    product = pb.hvp(whole, (both,), (along,))
    for policy in (pb.SaveAll(), pb.Binomial(2)):
        found, world = on_ranks(
            2,
            lambda r, p=policy: (
                pb.jvp(lambda x: loss_of(kind, r, x, **how), (x[r],), (t[r],))[1],
                pb.hvp(lambda x: loss_of(kind, r, x, **how), (x[r],), (t[r],), policy=p),
            ),
        )
        assert world.sent[0] == world.sent[1]
        np.testing.assert_allclose(found[0][0] + found[1][0], slope, rtol=1e-12)
        for rank in (0, 1):
            wanted = product[rank] if active[rank] else 0.0
            np.testing.assert_allclose(found[rank][1], wanted, rtol=1e-10, atol=1e-13)


def test_a_gradient_of_a_gradient_takes_all_ranks():
    def both(xs):
        def inner(ys):
            return np.sum(np.sin(ys[1] * 2.0) ** 2) + np.sum(np.sin(ys[0] * 2.0) ** 2) * 0.0

        g = pb.grad(inner)(xs)
        return np.sum(g[0] ** 2) + np.sum(g[1] ** 2)

    wanted = pb.grad(both)(np.stack(INPUTS))

    def on(rank):
        def inner(y):
            came = shifted(y * 2.0 if rank == 1 else np.zeros(3))
            return np.sum(np.sin(came) ** 2) if rank == 0 else np.float64(0.0)

        return pb.grad(lambda x: np.sum(pb.grad(inner)(x) ** 2))(INPUTS[rank])

    found, world = on_ranks(2, on)
    assert world.sent[0] == world.sent[1]
    np.testing.assert_allclose(found[1], wanted[1], rtol=1e-12)
    np.testing.assert_allclose(found[0], 0.0)


# ------------------------------------------------------------------------------------------------------- what is told
def test_a_collective_primitive_is_ordered_and_is_no_elementwise_one():
    assert shifted.ordered
    for options, match in (
        ({"elementwise": True}, "leave elementwise out"),
        ({"residuals": ("r",)}, "return them as outputs"),
        ({"view": True}, "can be no view"),
    ):
        with pytest.raises(pb.DeclarationError, match=match):
            pb.primitive(lambda x: x, name="it", collective=True, **options)


def test_a_call_that_fails_is_not_made_again():
    calls = []

    @pb.primitive(collective=True)
    def fails(x):
        calls.append("forward")
        raise ValueError("no neighbour")

    @fails.vjp("x")
    def _(ct):
        raise AssertionError

    with pytest.raises(ValueError, match="no neighbour"):
        pb.grad(lambda x: np.sum(fails(x)))(INPUTS[0])
    assert calls == ["forward"]

    @pb.primitive(collective=True)
    def fails_back(x):
        return x * 2.0

    @fails_back.vjp("x")
    def _(ct):
        calls.append("back")
        raise ValueError("no answer")

    with pytest.raises(ValueError, match="no answer"):
        pb.grad(lambda x: np.sum(fails_back(x)))(INPUTS[0])
    assert calls == ["forward", "back"]


def test_a_loop_that_nothing_traced_enters_makes_its_calls_from_step_0_on():
    def on(rank):
        def late(k, u):
            return shifted(u) if k else u

        return pb.grad(lambda x: np.sum(pb.fori_loop(0, 4, late, np.ones(3))) + np.sum(x))(INPUTS[0])

    with pytest.raises(pb.TracerError, match="step 0 has called no such primitive"):
        on_ranks(2, on)


def test_calls_that_begin_later_than_step_0_and_come_in_some_steps():
    def late(k, u, mine):
        return np.sin(shifted(u)) + mine if k % 3 == 2 else np.sin(u) + mine

    def on(rank, policy, staging):
        with pb.using(staging=staging):
            return pb.grad(
                lambda x: np.sum(pb.fori_loop(0, 40, lambda k, u: late(k, u, x), x)) * (rank == 0), policy=policy
            )(INPUTS[rank])

    wanted, world = on_ranks(2, lambda r: on(r, pb.SaveAll(), "off"))
    assert len(world.sent[0]) == 26
    for policy in (pb.SaveAll(), pb.Recompute(5), pb.Binomial(3)):
        for staging in ("off", "auto", "numpy"):
            found, world = on_ranks(2, lambda r, p=policy, s=staging: on(r, p, s))
            assert same_bits(found, wanted)
            assert world.sent[0] == world.sent[1]


@pytest.mark.parametrize("first", [0, 2])
def test_plans_of_loops_that_make_calls_are_those_of_the_run(first):
    def late(k, u):
        return np.sin(shifted(u)) if k >= first else np.sin(u)

    def on(rank):
        def f(x):
            return np.sum(pb.fori_loop(0, 9, late, x))

        said = pb.plan(f, INPUTS[rank], policy=pb.Binomial(2))
        _, pull = pb.vjp(f, INPUTS[rank], policy=pb.Binomial(2))
        pull(1.0)
        return said.n_forward, pull.report.n_forward

    found, world = on_ranks(2, on)
    assert found[0] == found[1]
    assert found[0][0] == found[0][1]
    assert world.sent[0] == world.sent[1]


def test_a_program_that_marks_no_steps_is_held_whole_and_says_so():
    def on(rank):
        return gradient_of_plain(rank)

    def gradient_of_plain(rank):
        how = {"active": (True, True), "reached": (True, True), "shared": True}
        return pb.grad(lambda x: loss_of("plain", rank, x, **how), policy=pb.Binomial(2))(INPUTS[0])

    with pytest.warns(pb.PolicyWarning, match="calls a collective primitive"):
        on_ranks(2, on)


@pytest.mark.filterwarnings("error::pullback.PolicyWarning")
def test_a_program_with_a_loop_and_a_total_after_it_says_nothing():
    how = {"active": (True, True), "reached": (True, True), "shared": True}
    for kind in ("fori_loop", "steps"):
        gradients(kind, INPUTS[0], pb.Binomial(2), **how)


def test_small_functions_that_are_called_often_go_on_sending():
    def on(rank):
        f = pb.grad(lambda x: np.sum(np.sin(shifted(x)) * (rank == 0)))
        staged = pb.grad(pb.staged(lambda x: np.sum(np.cos(shifted(np.ones(3) * 0.5)) * x)))
        return [f(INPUTS[0] * k) for k in range(60)], [staged(INPUTS[0] * k) for k in range(60)]

    _, world = on_ranks(2, on)
    assert world.sent == [["forth 1", "back -1"] * 120] * 2


def test_a_collective_primitive_is_checked_on_all_ranks_at_once():
    def on(rank):
        testing.check_primitive(shifted, INPUTS[rank])
        testing.check_primitive(total, INPUTS[rank])
        testing.check_primitive(both_edges, INPUTS[rank], INPUTS[rank] * 2.0)

    on_ranks(2, on)

    @pb.primitive(collective=True)
    def kept(x):
        return x * 2.0

    @kept.vjp("x")
    def _(ct, x):
        return ct * 2.0

    with pytest.raises(pb.CheckError, match="never needed"):
        testing.check_primitive(kept, INPUTS[0])
