"""What is planned is what is booked, to the byte."""

import warnings

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.programs.stages import BODIES, Program, Stage, programs

import pullback as pb
from pullback.stores import Disk, Stored

SAVE_ALL = pb.SaveAll()
KNOWN_LENGTH = (SAVE_ALL, pb.Recompute(), pb.Recompute(3), *(pb.Binomial(s) for s in range(1, 7)))

ON_DISK = (Stored(pb.Binomial(2), memory=Disk()), Stored(pb.SaveAll(), memory=Disk(queue=1)), pb.Tiered(1, 2))


def require_plan_is_report(program, policy):
    x = np.linspace(0.3, 0.8, program.size).astype(program.dtype)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", pb.PolicyWarning)
        plan = pb.plan(program, x, policy=policy)
        out, pull = pb.vjp(program, x, policy=policy)
        pull(np.ones_like(out))
    report = pull.report
    assert (plan.n_forward, plan.peak_bytes, plan.bytes_by_reason) == (
        report.n_forward,
        report.peak_bytes,
        report.bytes_by_reason,
    )
    pull.close()
    assert pull.report.live_bytes == 0


LOOPS = ("fori_loop", "scan", "while_loop")


@settings(max_examples=30)
@given(programs(LOOPS), st.sampled_from(KNOWN_LENGTH))
def test_plan_is_report(program, policy):
    require_plan_is_report(program, policy)


@settings(max_examples=16)
@given(programs((*LOOPS, "steps", "plain")), st.sampled_from(KNOWN_LENGTH))
def test_plan_is_report_with_plain_code(program, policy):
    require_plan_is_report(program, policy)


@pytest.mark.slow
@settings(max_examples=10_000)
@given(programs((*LOOPS, *LOOPS, "steps", "plain")), st.sampled_from(KNOWN_LENGTH))
def test_plan_is_report_of_many(program, policy):
    require_plan_is_report(program, policy)


@pytest.mark.share(8, of=lambda name, policy: name)
@pytest.mark.parametrize("policy", KNOWN_LENGTH[:4], ids=repr)
@pytest.mark.parametrize("name", BODIES)
def test_plan_of_each_body(name, policy):
    for kind in LOOPS:
        for size in (5, 100):
            require_plan_is_report(Program((Stage(kind, name, 7),), size, "float64"), policy)


SPECIAL = {
    "a loop nothing depends on": lambda x: (pb.fori_loop(0, 6, lambda k, u: np.sin(u) * u, x), (x * x).sum())[1],
    "a loop behind stop_gradient": lambda x: (
        pb.stop_gradient(pb.fori_loop(0, 6, lambda k, u: np.sin(u) * u, x)) * x
    ).sum(),
    "a loop of plain values": lambda x: (
        pb.fori_loop(0, 6, lambda k, u: np.sin(u) * u, np.linspace(0, 1, 100)) * x
    ).sum(),
    "a leaf nothing depends on": lambda x: pb.fori_loop(0, 6, lambda k, s: (np.sin(s[0]), s[1] * s[1]), (x, x))[
        0
    ].sum(),
    "a slice enters": lambda x: pb.fori_loop(0, 6, lambda k, u: np.sin(u) * u, x[10:20]).sum(),
    "a strided slice enters": lambda x: pb.fori_loop(0, 6, lambda k, u: np.sin(u) * u, x[::2]).sum(),
    "a broadcast view enters": lambda x: pb.fori_loop(
        0, 6, lambda k, u: np.sin(u) * u, np.broadcast_to(x[:3], (4, 3))
    ).sum(),
    "two slices of one array enter": lambda x: sum(
        s.sum() for s in pb.fori_loop(0, 9, lambda k, s: (np.sin(s[0]) * s[1], s[1] * 0.5), (x[:60], x[20:80][:60]))
    ),
    "an array enters twice": lambda x: sum(
        s.sum() for s in pb.fori_loop(0, 9, lambda k, s: (np.sin(s[0]) * s[1], s[1] * 0.5), (x, x))
    ),
    "loops in a loop that nothing depends on": lambda x: (
        pb.fori_loop(
            0, 9, lambda k, u: pb.fori_loop(0, 4, lambda j, v: np.sin(v) * 0.9 + 0.1 * u, u), np.linspace(0, 1, 50)
        ).sum()
        + x.sum()
    ),
    "a constant in each step": lambda x: pb.fori_loop(0, 6, lambda k, u: np.sin(u) * np.full(100, 0.5 + k), x).sum(),
    "no step": lambda x: (pb.fori_loop(0, 0, lambda k, u: np.sin(u) * u, x) * x).sum(),
    "a while of no step": lambda x: (pb.while_loop(lambda u: False, lambda u: np.sin(u) * u, x) * x).sum(),
    "the outer code holds what steps hold": lambda x: (x * x * pb.fori_loop(0, 6, lambda k, u: u * u * x, x)).sum(),
    "xs traced": lambda x: pb.scan(lambda u, row: (np.sin(u) * row, u[:3]), x, x[None] * np.ones((6, 1)))[1].sum(),
    "xs plain": lambda x: pb.scan(lambda u, row: (np.sin(u) * row, u[:3]), x, np.ones((6, 100)))[1].sum(),
    "a mask that stays from step 1 on": lambda x: pb.fori_loop(
        0, 6, lambda k, u: np.where(u > 0.55, u, 0.5) * (1.2 + 0.1 * k) * np.where(u > 0.1, u, 1), x
    ).sum(),
    "complex": lambda x: np.abs(pb.fori_loop(0, 6, lambda k, u: u * (0.6 + 0.4j) * np.cos(u), x * 1j)).sum(),
}


@pytest.mark.parametrize("policy", [*KNOWN_LENGTH[:4], *ON_DISK], ids=repr)
@pytest.mark.parametrize("name", SPECIAL)
def test_plan_of_special_programs(name, policy):
    f, x = SPECIAL[name], np.linspace(0.3, 0.8, 100)
    plan = pb.plan(f, x, policy=policy)
    _, pull = pb.vjp(f, x, policy=policy)
    pull(1.0)
    report = pull.report
    assert (plan.n_forward, plan.peak_bytes, plan.bytes_by_reason) == (
        report.n_forward,
        report.peak_bytes,
        report.bytes_by_reason,
    )
    assert [traffic(store) for store in plan.stores] == [traffic(store) for store in report.stores]
    pull.close()
    assert pull.report.live_bytes == 0


def traffic(store):
    return store.tier, store.n_writes, store.n_reads, store.given_bytes


def test_a_plan_fits_where_the_run_does():
    """A loop inside a loop is forecast with other bytes around it; what the run needs is what counts."""

    def f(x):
        def step(s):
            u, k = s
            u = pb.fori_loop(0, 2, lambda j, q: np.sin(q), 0.9 * u)
            for _ in pb.steps(1):
                u = np.sin(u) * 0.9
            return u, k + 1

        return np.sum(pb.while_loop(lambda s: s[1] < 5, step, (x * 1.0, 0))[0])

    x, least = np.linspace(0.3, 0.8, 64), 1
    while True:
        try:
            _, pull = pb.vjp(f, x, policy=pb.Budget(least))
            pull(1.0)
            break
        except pb.BudgetError as error:
            least = error.minimum_bytes
    plan = pb.plan(f, x, policy=pb.Budget(least))
    assert (plan.n_forward, plan.peak_bytes) == (pull.report.n_forward, pull.report.peak_bytes)


@pytest.mark.parametrize("policy", KNOWN_LENGTH[:4], ids=repr)
def test_plan_of_a_body_that_changes_after_the_second_step(policy):
    """The third step tells that they are not alike, and the program is run; what first changes later is documented
    as not seen."""

    def f(x):
        return np.sum(pb.fori_loop(0, 7, lambda k, u: u * u if k < 2 else np.sin(u) * u * np.exp(-u), x))

    x = np.linspace(0.3, 0.8, 5)
    plan = pb.plan(f, x, policy=policy)
    _, pull = pb.vjp(f, x, policy=policy)
    pull(1.0)
    assert (plan.n_forward, plan.peak_bytes) == (pull.report.n_forward, pull.report.peak_bytes)


@settings(max_examples=16)
@given(
    st.lists(st.tuples(st.sampled_from("*+-*o"), st.integers(0, 2)), min_size=4, max_size=9),
    st.sampled_from([SAVE_ALL, pb.Recompute(3), pb.Binomial(2)]),
)
@example([("*", 0), ("+", 1), ("+", 2), ("*", 0)], SAVE_ALL)
@example([("*", 0), ("o", 0), ("*", 0)], SAVE_ALL)
def test_plan_is_report_of_staged_steps_that_share_arrays(drawn, policy):
    """Small plain arrays that come again, of which some are held by records and others are not; steps that turn off
    halfway from what is known."""
    turns = [False]

    def f(x):
        arrays = [np.linspace(0.2, 0.3 * (j + 1), 5) for j in range(3)]

        def body(k, u):
            for op, j in drawn:
                if op == "o":
                    u = np.cos(u) if turns[0] and k == 4 else np.sin(u)
                elif op == "*":
                    u = u * arrays[j]
                else:
                    u = u + arrays[j] if op == "+" else u - arrays[j]
            return u

        return np.sum(pb.fori_loop(0, 7, body, x, staging="numpy"))

    for turns[0] in (False, True, True, False):
        require_plan_is_report(Sized(f), policy)


class Sized:
    """A function of an array, with what ``require_plan_is_report`` asks for."""

    size, dtype = 5, "float64"

    def __init__(self, f):
        self.f = f

    def __call__(self, x):
        return self.f(x)
