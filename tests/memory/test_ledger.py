"""The ledger: what is booked is what the allocator says is there."""

import gc
import tracemalloc
import warnings
from typing import Any

import numpy as np
import pytest
from attrs import frozen
from tests.programs.stages import Program, Stage, written

import pullback as pb

SAVE_ALL = pb.SaveAll()


@pytest.mark.parametrize("policy", [SAVE_ALL, pb.Binomial(4)], ids=repr)
def test_a_report_is_the_same_at_every_call(policy):
    """Buffers are told apart by more than their place in memory, which another may take when they are gone."""
    program = Program(
        (Stage("plain", "buffers", 5), Stage("fori_loop", "buffers", 1), Stage("fori_loop", "nonlinear", 1)),
        5,
        "float64",
    )
    found = []
    for _ in range(20):
        _, pull = pb.vjp(program, np.linspace(0.3, 0.8, 5), policy=policy)
        pull(1.0)
        found.append(pull.report.peak_bytes)
    assert len(set(found)) == 1


# Booked is held: against the allocator, in arrays of 480 kB, so that Python objects stay below a quarter of one.
LENGTH = 60_000
ARRAY = LENGTH * 8
OBJECTS = ARRAY // 4
CONSTANT = np.linspace(0.5, 1.0, LENGTH)
STEPS = 12


@frozen
class Measured:
    """A program, and the ``working`` arrays that one step or one rule has at once besides what is booked.

    No program reads its input but by ``x * 1.0``, which saves nothing; where a policy holds the input itself, it is not
    added.
    """

    f: Any
    working: int


def unmarked(x):
    u = x * 1.0
    for _ in range(STEPS):
        u = np.sin(u) * u
    return u.sum()


def marked(x):
    u, c = x * 1.0, x * 0.9
    for _ in pb.steps(STEPS):
        u = np.sin(u) * c * CONSTANT
    return u.sum()


def wave(x):
    c2, zero = (x * 1.0) * 0.3, np.zeros(LENGTH)

    def body(k, carry):
        before, u, loss = carry
        after = 2 * u - before
        after[1:-1] += c2[1:-1] * (u[2:] - 2 * u[1:-1] + u[:-2])
        after[3] += 1.0
        return u, after, loss + (after[::5000] ** 2).sum()

    return pb.fori_loop(0, STEPS, body, (zero, np.zeros(LENGTH), 0.0))[2]


def captured(x):
    a = x * 1.0
    return pb.fori_loop(0, STEPS, lambda k, u: np.sin(u) * a, a * 0.5).sum()


def scanned(x):
    return pb.scan(lambda u, _: (np.sin(u) * u, u[: LENGTH // STEPS]), x * 1.0, length=STEPS)[1].sum()


def counted(x):
    return pb.while_loop(lambda s: s[1] < STEPS, lambda s: (np.sin(s[0]) * s[0], s[1] + 1), (x * 1.0, 0))[0].sum()


def two_loops(x):
    u = pb.fori_loop(0, STEPS, lambda k, u: np.cos(u) * u, x * 1.0)
    return pb.fori_loop(0, STEPS, lambda k, u: np.sin(u) * u, u).sum()


def looped(x):
    return pb.fori_loop(0, STEPS, lambda k, u: np.sin(u) * u, x * 1.0).sum()


# For sin(u) * u at once: the cotangents ct * sin(u) and ct * u, cos(u), and its product with the latter. In a loop one
# of the four is booked, as the cotangent of the carry; in plain code also waits that of what was read before (x * 0.9),
# and a sum with it.
MEASURED = {
    "unmarked": Measured(unmarked, 4),
    "marked": Measured(marked, 6),
    "fori_loop": Measured(looped, 3),
    "of views": Measured(
        lambda x: pb.fori_loop(0, STEPS, lambda k, u: (np.sin(u) * u)[::-1], (x * 1.0)[::-1]).sum(), 3
    ),
    "captured": Measured(captured, 3),
    "in place": Measured(lambda x: pb.fori_loop(0, STEPS, written, x * 1.0).sum(), 3),
    "constant": Measured(
        lambda x: pb.fori_loop(0, STEPS, lambda k, u: u * CONSTANT, x * 1.0).sum(), 2
    ),  # the states around a step
    "wave": Measured(
        wave, 5
    ),  # counted: cotangents of both fields on their way through slices and writes, and of the product with c2
    "passed": Measured(
        lambda x: pb.fori_loop(0, STEPS, lambda k, s: (np.sin(s[0]) * s[1], s[1]), (x * 1.0, x * 0.9))[0].sum(), 3
    ),
    "two loops": Measured(two_loops, 3),
    "scan": Measured(scanned, 4),  # and the cotangent of the stacked outputs, as large as a state
    "while_loop": Measured(counted, 3),
}
MEASURED_POLICIES = (
    SAVE_ALL, pb.Recompute(), pb.Recompute(3), pb.Binomial(1), pb.Binomial(3), pb.Keep(), pb.Keep(np.sin, np.multiply),
)  # fmt: skip


@pytest.fixture
def allocator(all_loaded):
    """Bytes now and at the peak since the last call, counted from the start of the test."""
    gc.collect()
    tracemalloc.start()
    base = tracemalloc.get_traced_memory()[0]

    def figures() -> tuple[int, int]:
        now, peak = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        return now - base, peak - base

    yield figures
    tracemalloc.stop()


@pytest.mark.share(2, of=lambda **_: "")
@pytest.mark.parametrize("policy", MEASURED_POLICIES, ids=repr)
@pytest.mark.parametrize("name", MEASURED)
def test_the_report_is_what_the_allocator_says(name, policy, allocator):
    program, x = MEASURED[name], np.linspace(0.1, 1.0, LENGTH).copy()  # linspace itself gives a view
    objects = OBJECTS * 3 // 2 if isinstance(policy, pb.Keep) else OBJECTS  # at most 24 steps, each a tape governed
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pb.PolicyWarning)
        pb.vjp(program.f, x, policy=policy)[1].close()  # forms, call sites and caches are made once
        gc.collect()
        start = allocator()[0]
        out, pull = pb.vjp(program.f, x, policy=policy)
    held, forward_peak = (n - start for n in allocator())
    own = x.nbytes if id(x) in pull.ledger.held else 0  # made before the measurement
    at_peak = x.nbytes if isinstance(policy, pb.Keep) and not own else own  # these take it for a while
    live = pull.report.live_bytes - own
    assert live <= held <= live + objects, (
        f"after the forward {held / ARRAY:.2f} arrays are held, the ledger says {live / ARRAY:.2f}"
    )
    (gradient,) = pull(np.ones_like(out))
    after, reverse_peak = (n - start for n in allocator())
    report = pull.report
    live, held = report.live_bytes - own, after - gradient.nbytes
    assert live <= held <= live + objects, (
        f"after the reverse {held / ARRAY:.2f} arrays are held, the ledger says {live / ARRAY:.2f}"
    )
    peak, booked = max(forward_peak, reverse_peak), report.peak_bytes - at_peak
    assert booked <= peak, f"the ledger says {booked / ARRAY:.2f} arrays at the peak, the allocator {peak / ARRAY:.2f}"
    assert peak <= 1.02 * booked + program.working * ARRAY + objects, (
        f"peak {peak / ARRAY:.2f} arrays in the {'forward' if forward_peak == peak else 'reverse'}, ledger "
        f"{booked / ARRAY:.2f}"
    )
    pull.close()
    closed = allocator()[0] - start
    assert 0 <= closed - gradient.nbytes <= objects, (
        f"closed, {closed / ARRAY:.2f} arrays are held, one of them the gradient"
    )


@pytest.mark.parametrize("name", ["fori_loop", "wave"])
def test_the_first_step_is_not_kept_through_the_sweep(name, allocator):
    """Step 0 runs on tracers to find what the body captures; where the policy does not record it, its tape goes at
    once."""
    program, x = MEASURED[name], np.linspace(0.1, 1.0, LENGTH).copy()
    pb.vjp(program.f, x, policy=pb.Binomial(1))[1].close()  # forms, call sites and caches are made once
    gc.collect()
    start, _ = allocator()
    _, pull = pb.vjp(program.f, x, policy=pb.Binomial(1))
    forward_peak = allocator()[1] - start
    # besides what is booked in the end: the states before and after a step and what it makes on its way; the caller's
    # own zeros
    working = {"fori_loop": 2, "wave": 7}[name]
    assert forward_peak <= pull.report.live_bytes + working * ARRAY + OBJECTS, (
        f"{(forward_peak - pull.report.live_bytes) / ARRAY:.2f}"
    )
    pull.close()


def test_a_cotangent_buffer_of_traced_xs_is_booked():
    rows = np.ones((STEPS, 1))
    _, pull = pb.vjp(
        lambda x: pb.scan(lambda u, r: (np.sin(u) * r, None), x * 1.0, x[None] * rows)[0].sum(),
        np.linspace(0.1, 1.0, 100),
    )
    pull(1.0)
    assert pull.report.bytes_by_reason["cotangent"] >= (STEPS + 1) * 800


def test_a_constant_of_marked_steps_is_held_once():
    def f(x):
        u = x * 1.0
        for _ in pb.steps(STEPS):
            u = np.sin(u) * CONSTANT
        return u.sum()

    _, pull = pb.vjp(f, np.linspace(0.1, 1.0, LENGTH), policy=pb.Binomial(1))
    assert pull.report.bytes_by_reason["constant"] == ARRAY


def test_unmarked_code_is_cut_early():
    """Sixty records of sin(u) * u hold two arrays each; a policy with one snapshot need not hold half of them at
    once."""

    plain = Stage("plain", "nonlinear", 30)
    _, pull = pb.vjp(Program((plain,), 100, "float64"), np.linspace(0.1, 1.0, 100), policy=pb.Binomial(1))
    pull(1.0)
    assert pull.report.peak_bytes - pull.report.bytes_by_reason["bookkeeping"] <= 16 * 800


def test_what_a_step_takes_while_it_runs():
    x = np.linspace(0.1, 1.0, 20_000)

    def marked(u):
        for _ in pb.steps(40):
            u = np.sin(u) * u
        return np.sum(u)

    by_loop = lambda u: np.sum(pb.fori_loop(0, 40, lambda _, u: np.sin(u) * u, u))  # noqa: E731
    for f in (marked, by_loop):
        pull = pb.vjp(f, x, policy=pb.Budget("4 MB"))[1]
        # The sine, the state, the next one; back: both cotangents, what the rules make.
        assert 3 * x.nbytes <= pull.report.working_bytes <= 10 * x.nbytes
        assert pb.plan(f, x, policy=pb.Budget("4 MB")).working_bytes == pull.report.working_bytes
    assert pb.vjp(by_loop, x, policy=pb.Binomial(3))[1].report.working_bytes is None


@pytest.mark.parametrize("policy", [pb.SaveAll(), "auto", pb.Recompute(), pb.Budget("4 MB")])
def test_the_steps_of_marked_loops_are_counted_under_every_policy(policy):
    def marked(u):
        for _ in pb.steps(40):
            for _ in pb.steps(3):  # part of that step
                u = np.sin(u)
        return np.sum(u)

    assert pb.vjp(marked, np.ones(9), policy=policy)[1].report.n_forward == 40
