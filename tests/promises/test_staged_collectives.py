"""Steps that communicate are staged: the same bits and the same messages as recorded, whichever ranks use a stage."""

from functools import partial

import numpy as np
import pytest
from tests.programs.ranks import HERE, on_ranks, outcomes, shifted, total

import pullback as pb
from pullback.staging.generated.shelf import shelves_of
from pullback.testing.comparing.bits import same_bits

N = 30
POLICIES = {
    "save-all": pb.SaveAll(), "recompute": pb.Recompute(4), "binomial": pb.Binomial(3), "periodic": pb.Periodic(7),
    "tiered": pb.Tiered(1, 2), "budget": pb.Budget("1 MB"),
}  # fmt: skip
X = np.array([0.4, -0.7, 1.1, 0.2])
STAGINGS = ("off", "auto", "numpy")


def everywhere(f, policy=None, n=2):
    """What ``f(rank)`` gives on each rank, recorded and staged: the same, by the same messages."""
    found = []
    for staging in STAGINGS:

        def on(rank, staging=staging):
            with pb.using(policy, staging=staging):
                return f(rank)

        found.append(on_ranks(n, on))
    (first, world), *others = found
    for again, other in others:
        assert same_bits(again, first)
        assert other.sent == world.sent
    return first


def stages_of(body):
    return [stage for shelf in shelves_of(body) for variants in shelf.variants for stage in variants.stages]


def wave(k, u, mine):
    came = shifted(u)
    return np.sin(came) * 0.7 + u * 0.2 + mine * 0.1 + total(np.sum(u)) * 0.01


def loop(body, x, n=N):
    return np.sum(pb.fori_loop(0, n, body, x * 0.5) ** 2)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_step_that_communicates_is_staged_under_every_policy(policy):
    bodies = {}

    def on(rank):
        def loss(x):
            def body(k, u):
                return wave(k, u, x)

            bodies[rank] = body
            return loop(body, x)

        return pb.grad(loss)(X * (1 + rank))

    everywhere(on, POLICIES[policy])
    made = stages_of(bodies[0])
    assert made
    assert all(stage.collective for stage in made)
    assert made[0].reverse.text.count("pull_shifted(") == 1


def branches(k, u, rank):
    """On rank 1 some steps do more than on rank 0, by their number and by a value."""
    came = shifted(u)
    if rank == 1 and k in (5, 17):
        came = np.cos(came) * u
    if rank == 1 and pb.value(u)[0] > 0.3:
        came = came * 1.5
    u = came * 0.6 + u * 0.3
    return u + total(np.sum(u)) * 0.1


@pytest.mark.parametrize("policy", POLICIES)
def test_one_rank_records_a_step_that_the_other_one_has_staged(policy):
    def on(rank):
        return pb.grad(lambda x: loop(lambda k, u: branches(k, u, rank), x))(X * (1 + rank))

    everywhere(on, POLICIES[policy])


@pytest.mark.parametrize("policy", POLICIES)
def test_one_rank_stages_and_the_other_one_does_not(policy):
    def on(rank, stagings):
        with pb.using(POLICIES[policy], staging=stagings[rank]):
            return pb.grad(lambda x: loop(lambda k, u: branches(k, u, rank), x))(X * (1 + rank))

    first, world = on_ranks(2, partial(on, stagings=("off", "off")))
    for stagings in (("numpy", "off"), ("off", "numpy"), ("auto", "numpy")):
        found, other = on_ranks(2, partial(on, stagings=stagings))
        assert same_bits(found, first)
        assert other.sent == world.sent


@pytest.mark.parametrize("policy", ["save-all", "binomial"])
@pytest.mark.parametrize("reached", [(True, False), (False, False)])
@pytest.mark.parametrize("active", [(True, True), (True, False)])
def test_ranks_that_depend_on_nothing_or_are_not_reached(active, reached, policy):
    def on(rank):
        def loss(x):
            mine = x if active[rank] else np.array([0.3, 0.1, -0.4, 0.2])
            u = pb.fori_loop(0, N, lambda k, u: wave(k, u, mine), mine * 0.5)
            return np.sum(u * u) if reached[rank] else np.float64(0.25)

        return pb.grad(loss)(X * (1 + rank))

    everywhere(on, POLICIES[policy])


@pytest.mark.parametrize("policy", ["save-all", "binomial"])
def test_what_a_step_sends_and_does_not_use(policy):
    def on(rank):
        def body(k, u):
            shifted(u * 2.0)
            return np.sin(u)

        return pb.grad(partial(loop, body))(X * (1 + rank))

    everywhere(on, POLICIES[policy])


def test_parts_and_outputs_and_rows():
    def on(rank):
        def loss(x):
            def step(state, row):
                u, v = state
                u = u + shifted(v) * row
                v = v * 0.5
                v[1:] += 0.25 * shifted(u[:-1])
                return (u, v), np.sum(shifted(u) * v)

            (u, _), ys = pb.scan(step, (x * 0.5, x * 0.25), np.outer(np.linspace(0.1, 0.4, N), x))
            return np.sum(u) + np.sum(ys**2)

        return pb.grad(loss)(X * (1 + rank))

    everywhere(on)


def test_several_seeds_meet_at_every_call():
    def on(rank):
        def of(x):
            return pb.fori_loop(0, N, lambda k, u: wave(k, u, x), x * 0.5)

        return pb.jacobian(of, mode="reverse")(X * (1 + rank))

    everywhere(on)


def test_pulls_that_are_called_again():
    def on(rank):
        out, pull = pb.vjp(lambda x: pb.fori_loop(0, N, lambda k, u: wave(k, u, x), x * 0.5), X * (1 + rank))
        found = [out, *pull(np.ones(4)), *pull(np.arange(4.0)), *pull(np.ones((4, 2))[:, 0])]
        pull.close()
        return found

    everywhere(on, pb.Binomial(3))


@pb.primitive(collective=True, guarded=False, linear=("x",))
def turned(x, *, tag="forth"):
    """What the other rank has, or one's own; its rule gives what it was given, and parts that lie in another way."""
    return HERE.world.exchange(f"turned {tag}", x, 1 - HERE.rank, 1 - HERE.rank).reshape(np.shape(x))


@turned.vjp("x")
def _turned_back(ct, tag):
    turned(ct, tag="back")
    return ct if ct.ndim < 2 else np.asfortranarray(ct)[:, ::-1][:, ::-1]


def test_cotangents_that_are_no_arrays_of_their_own():
    x = np.arange(12.0).reshape(3, 4) / 10

    def on(rank):
        def body(k, u):
            came = turned(u)
            w = turned(came[:, 0])
            return np.sin(came) * 0.3 + u * 0.2 + np.sum(w) * np.cumsum(u, axis=0) * 0.1

        return pb.grad(lambda x: np.sum(pb.fori_loop(0, N, body, x) ** 2))(x * (1 + rank))

    everywhere(on)


@pb.primitive(collective=True, guarded=False, linear=("x",))
def fragile(x, *, tag="forth", at=-1):
    """As ``shifted``; its rule fails on rank 1 after so many calls."""
    return HERE.world.exchange(f"fragile {tag}", x, 1 - HERE.rank, 1 - HERE.rank).reshape(np.shape(x))


@fragile.vjp("x")
def _fragile_back(ct, tag):
    HERE.calls = getattr(HERE, "calls", 0) + 1
    if HERE.rank == 1 and HERE.calls == 7:
        raise ValueError("broken")
    return fragile(ct, tag="back")


@pytest.mark.parametrize("staging", STAGINGS)
def test_an_error_in_the_reverse_pass_names_the_line_and_the_step(staging):
    def on(rank):
        HERE.calls = 0
        with pb.using(staging=staging):
            return pb.grad(partial(loop, lambda k, u: np.sin(fragile(u)) + u * 0.1))(X)

    _, errors, _ = outcomes(2, on)
    notes = " ".join(errors[1].__notes__)
    assert type(errors[1]) is ValueError
    assert "test_staged_collectives.py" in notes
    assert "step 23 of fori_loop" in notes


def test_a_call_that_fails_in_a_staged_step_is_not_made_again():
    def on(rank):
        made = []

        def body(k, u):
            made.append(k)
            if k == 20:
                raise KeyError("the body's own")
            return np.sin(shifted(u)) + u * 0.1

        with pb.using(staging="numpy"):
            try:
                pb.grad(partial(loop, body))(X)
            except KeyError:
                return len(made)

    found, world = on_ranks(2, on)
    assert found == [21, 21]
    assert [len(sent) for sent in world.sent] == [20, 20]
