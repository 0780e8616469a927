"""A wave divided over ranks: the serial program's value and gradient, and the same bits under every policy, in every
form of a loop, staged or not; also where ranks take no part in it."""

from functools import partial

import numpy as np
from cases import WORLD, case, run_cases

import pullback as pb
from pullback_mpi import Communicator

COMM = Communicator(WORLD)
N_STEPS, SHAPE = 25, (18, 8)
SPEED = 0.4 + 0.1 * np.random.default_rng(0).random(SHAPE)
ROWS = COMM.slices(SHAPE)
POLICIES = (
    pb.SaveAll(), pb.Recompute(), pb.Recompute(3), pb.Binomial(4), pb.Mixed(4), pb.Periodic(7), pb.Budget("40 kB"),
    pb.Tiered(2, 2, directory=None), "auto",
)  # fmt: skip
SOME = POLICIES if WORLD.size == 2 else POLICIES[::3]
"""Where there are more ranks than cores a share of them will do."""
STAGINGS = ("off", "auto")
"""Every form of a loop meets every policy once, staged or not by turns: the core's own tests have all pairs."""


def advance(k, around, u, u_prev, speed, source):
    """The next field; ``around`` has one row more on both sides."""
    u_next = 2.0 * u - u_prev
    u_next[:, 1:-1] += speed[:, 1:-1] * (around[2:, 1:-1] + around[:-2, 1:-1] + u[:, 2:] + u[:, :-2] - 4.0 * u[:, 1:-1])
    u_next[source] += np.sin(0.3 * k)
    return u_next


def looped(form, step, state, staging):
    """The state after all steps, by one form of a loop."""
    if form == "fori_loop":
        return pb.fori_loop(0, N_STEPS, step, state, staging=staging)
    if form == "scan":
        return pb.scan(lambda s, k: (step(k, s), None), state, np.arange(N_STEPS), staging=staging)[0]
    if form == "while_loop":
        counted = (0.0, *state)
        return pb.while_loop(
            lambda s: s[0] < N_STEPS, lambda s: (s[0] + 1.0, *step(s[0], s[1:])), counted, staging=staging
        )[1:]
    for k in pb.steps(N_STEPS, staging=staging) if form == "steps" else range(N_STEPS):
        state = step(k, state)
    return state


def misfit(c, exchange, total, source, receivers, form="fori_loop", staging="auto"):
    """The misfit of the recordings of some rows; ``exchange`` gives rows with one more on both sides."""

    def step(k, state):
        u_prev, u, loss = state
        u_next = advance(k, exchange(u), u, u_prev, c, source)
        return u, u_next, loss + np.sum((u_next[receivers] - 0.1) ** 2)

    start = np.zeros_like(c), np.zeros_like(c), 0.0
    return total(looped(form, step, start, staging)[2])


def serial():
    """Value and gradient of the undivided program."""

    def exchange(u):
        return np.concatenate([np.zeros((1, SHAPE[1])), u, np.zeros((1, SHAPE[1]))])

    recorded = (slice(2, 3), 4), (slice(None), 2)
    return pb.value_and_grad(lambda c: misfit(c, exchange, lambda loss: loss, *recorded))(SPEED)


def divided(policy=None, **options):
    """Value and gradient of this rank's rows."""
    first, last = ROWS[0].start, ROWS[0].stop
    source = (slice(2 - first, 3 - first) if first <= 2 < last else slice(0, 0), 4)

    def loss(c):
        return misfit(c, lambda u: COMM.halo(u, 1, 0), COMM.total, source, (slice(None), 2), **options)

    with COMM.agree(policy):
        return pb.value_and_grad(loss)(SPEED[ROWS])


HELD = COMM.slices(SHAPE, (1, 1))
OWN = slice(ROWS[0].start - HELD[0].start, ROWS[0].stop - HELD[0].start)


def filled(policy=None, **options):
    """The same by the undivided step on rows with those of the neighbours, which are exchanged after it."""
    first, last = HELD[0].start, HELD[0].stop
    source = (slice(2 - first, 3 - first) if first <= 2 < last else slice(0, 0), 4)

    def loss(c):
        def step(k, state):
            u_prev, u, loss = state
            u_next = advance(k, np.concatenate([edge, u, edge]), u, u_prev, c, source)
            u_next = COMM.fill(u_next, 1, 0)
            return u, u_next, loss + np.sum((u_next[OWN, 2] - 0.1) ** 2)

        edge = np.zeros((1, SHAPE[1]))
        return COMM.total(looped(options.get("form", "fori_loop"), step, start(c), options.get("staging", "auto"))[2])

    def start(c):
        return np.zeros_like(c), np.zeros_like(c), 0.0

    with COMM.agree(policy):
        value, gradient = pb.value_and_grad(loss)(SPEED[HELD])
    return value, gradient[OWN]


def same_everywhere(found, expected, what):
    """Whether the bits are the same on every rank, told on every rank."""
    differs = not all(map(np.array_equal, found, expected))
    assert not any(WORLD.allgather(differs)), what


@case
def the_serial_program_is_met():
    value, gradient = serial()
    got, part = divided()
    assert abs(got - value) <= 1e-14 * abs(value)
    assert np.max(np.abs(COMM.gather(part) - gradient)) <= 1e-15 * np.max(np.abs(gradient)) * 4
    assert np.max(np.abs(gradient)) > 1e-3


@case
def fill_meets_the_serial_program_under_every_policy_and_form():
    value, gradient = serial()
    expected = filled(staging="off")
    assert abs(expected[0] - value) <= 1e-14 * abs(value)
    assert np.max(np.abs(COMM.gather(expected[1]) - gradient)) <= 1e-15 * np.max(np.abs(gradient)) * 4
    for number, policy in enumerate(SOME):
        for turn, form in enumerate(("fori_loop", "steps", "plain")):
            staging = STAGINGS[(number + turn) % 2] if form != "plain" else "off"
            if form != "plain" or isinstance(policy, pb.SaveAll | pb.Binomial | pb.Recompute):
                same_everywhere(filled(policy, form=form, staging=staging), expected, (form, staging, policy))


def by_wide_edges(w, policy, form):
    """Value and gradient where ``w`` rows of both fields are exchanged every ``w`` steps."""
    held = COMM.slices(SHAPE, w)
    own = slice(ROWS[0].start - held[0].start, ROWS[0].stop - held[0].start)
    here = held[0].start <= 2 < held[0].stop
    row = (2 - held[0].start) * here

    def loss(c):
        c = COMM.fill(1.0 * c, w, 0)

        def step(k, state):
            u_prev, u, loss = state
            if k % w == 0:
                COMM.fill(u_prev, w, 0)
                COMM.fill(u, w, 0)
            u_next = advance(k, np.concatenate([edge, u, edge]), u, u_prev, c, (slice(row, row + here), 4))
            return u, u_next, loss + np.sum((u_next[own, 2] - 0.1) ** 2)

        edge = np.zeros((1, SHAPE[1]))
        return COMM.total(looped(form, step, (np.zeros_like(c), np.zeros_like(c), 0.0), "auto")[2])

    with COMM.agree(policy):
        value, gradient = pb.value_and_grad(loss)(SPEED[held])
    return value, gradient[own]


@case
def wide_edges_every_few_steps_meet_the_serial_program():
    value, gradient = serial()
    for form in ("fori_loop", "steps"):
        expected = by_wide_edges(3, pb.SaveAll(), form)
        assert abs(expected[0] - value) <= 1e-14 * abs(value)
        assert np.max(np.abs(COMM.gather(expected[1]) - gradient)) <= 1e-15 * np.max(np.abs(gradient)) * 8
        for policy in SOME[1:]:
            same_everywhere(by_wide_edges(3, policy, form), expected, (form, policy))


@case
def loop_functions_under_every_policy():
    for turn, form in enumerate(("fori_loop", "scan", "while_loop")[: 3 if WORLD.size == 2 else 1]):
        expected = divided(form=form, staging="off")
        for number, policy in enumerate(SOME):
            staging = STAGINGS[(number + turn) % 2]
            if form != "while_loop" or not isinstance(policy, pb.Mixed | pb.Tiered | pb.Budget):
                same_everywhere(divided(policy, form=form, staging=staging), expected, (form, staging, policy))


@case
def marked_steps_under_every_policy():
    expected = divided(form="fori_loop")
    for number, policy in enumerate(SOME):
        staging = STAGINGS[number % 2]
        same_everywhere(divided(policy, form="steps", staging=staging), expected, (staging, policy))


@case
def plain_code_under_policies():
    expected = divided(form="fori_loop")
    for policy in (pb.SaveAll(), pb.Binomial(4), pb.Recompute(), pb.Budget("4 MB", exact=True)):
        same_everywhere(divided(policy, form="plain"), expected, policy)


@case
def overlapped_exchanges_under_policies():
    def loss(c):
        def step(k, u):
            exchange = COMM.start(u, 1, 0)
            inside = np.sin(c * u)
            p = COMM.finish(exchange)
            return 0.9 * inside + 0.1 * (p[2:] + p[:-2])

        return COMM.total(np.sum(pb.fori_loop(0, N_STEPS, step, np.ones_like(c)) ** 2))

    found = []
    for policy in (pb.SaveAll(), pb.Binomial(3), pb.Recompute()):
        for staging in ("off", "auto"):
            with COMM.agree(policy), pb.using(staging=staging):
                found.append(pb.value_and_grad(loss)(SPEED[ROWS]))
    for other in found[1:]:
        same_everywhere(other, found[0], "overlapped")


@case
def a_rank_that_is_inactive():
    """Rank 1 holds zeros that depend on nothing, rank 0 sends a traced row, the loss is on rank 1."""

    def loss(c, policy):
        u = c * c if WORLD.rank == 0 else np.zeros((3, 2))
        u = pb.fori_loop(0, 5, lambda k, u: COMM.halo(u, 1, 0)[:-2] * 1.5, u, policy=policy)
        return COMM.total(np.sum(u) if WORLD.rank == 1 else 0.0)

    for policy in (pb.SaveAll(), pb.Binomial(2), pb.Recompute(2)):
        with COMM.agree():
            gradient = pb.grad(partial(loss, policy=policy))(np.full((3, 2), 0.5))
        assert (np.max(np.abs(gradient)) > 1.0) == (WORLD.rank == 0)


@case
def a_rank_whose_communications_nobody_reads():
    def loss(c):
        for k in range(3):
            p = COMM.halo(c * (k + 1.0), 1, 0, periodic=True)
        return COMM.total(np.sum(p) if WORLD.rank == 0 else 0.0 * np.sum(c))

    with COMM.agree():
        gradient = pb.grad(loss)(np.ones((3, 2)))
    total = COMM.total(np.sum(gradient))
    assert total == 3.0 * 2 * 5


@case
def plain_values_all_over():
    """Nothing that is communicated depends on the argument on any rank, and something is communicated still."""
    with COMM.agree(pb.Binomial(2)):
        gradient = pb.grad(lambda c: np.sum(c) * pb.value(COMM.total(np.float64(2.0))))(np.ones(2))
    assert np.array_equal(gradient, np.full(2, 2.0 * WORLD.size))


@case
def uneven_ranks_under_policies_that_read_bytes():
    rows = 40 if WORLD.rank == 0 else 3
    c = np.full((rows, 6), 0.5)

    def loss(c, form):
        def step(k, u):
            p = COMM.halo(u, 1, 0, periodic=True)
            return np.sin(u) * c + 0.1 * (p[2:] + p[:-2])

        return COMM.total(np.sum(looped(form, step, np.ones_like(c), "auto") ** 2))

    def looped(form, step, u, staging):
        if form == "fori_loop":
            return pb.fori_loop(0, 60, step, u, staging=staging)
        for k in pb.steps(60):
            u = step(k, u)
        return u

    for form in ("fori_loop", "steps"):
        found = []
        for policy in (None, pb.Recompute("sqrt"), pb.Budget("60 kB"), "auto", pb.Mixed(5)):
            with COMM.agree(policy):
                found.append(pb.value_and_grad(partial(loss, form=form))(c))
        for other in found[1:]:
            same_everywhere(other, found[0], form)


@case
def checkpoints():
    def stepped(u):
        return np.sin(COMM.halo(u, 1, 0, periodic=True)[1:-1] * u)

    def loss(u, made):
        for _ in range(3):
            u = made(u)
        return COMM.total(np.sum(u * u))

    with COMM.agree():
        found = [pb.value_and_grad(partial(loss, made=made))(SPEED[ROWS]) for made in (stepped, pb.checkpoint(stepped))]
    same_everywhere(found[1], found[0], "checkpoint")


@case
def communications_do_not_depend_on_the_values():
    """A rank whose part is left out by a mask communicates as the others do."""

    def loss(c):
        u = pb.fori_loop(0, 6, lambda k, u: COMM.halo(u, 1, 0, periodic=True)[1:-1] * c, c)
        return COMM.total(np.sum(np.where(WORLD.rank == 0, u, 0.0)))

    for policy in (pb.SaveAll(), pb.Binomial(2)):
        with COMM.agree(policy):
            gradient = pb.grad(loss)(np.full((3, 2), 0.9))
        assert np.any(gradient) == (WORLD.rank == 0)


run_cases()
