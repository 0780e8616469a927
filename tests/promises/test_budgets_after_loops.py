"""A ``Budget`` over drawn programs that read arrays from before their loops after them (``reading_programs``)."""

import numpy as np
import pytest
from tests.promises.reading_programs import SIZES, SLACK, Reading, drawn, fault_of, gradients, peak_of

import pullback as pb

FOUND = (  # each took more than its bytes before it was mended
    Reading(10_000, ((20, "fori", 60, 0, 0),), repeats=False, share=0.1),  # variables from before were not counted
    Reading(10_000, ((10, "iterator", 30, 0, 0),), repeats=True, share=0.1),  # nor what waits in a later pull
    Reading(10_000, ((20, "outputs", 7, 4, 3),), repeats=False, share=0.02),  # nor what waits to be run again
    Reading(125_000, ((10, "scan", 3, 4, 0),), repeats=False, share=0.6),  # nor all of a stack of outputs
    Reading(10_000, ((0, "while", 8, 3, 2), (3, "fori", 20, 1, 3), (3, "steps", 3, 4, 3)), repeats=False, share=0.0),
    # Refused between budgets that were accepted: a loop with all tapes and no snapshot could give up nothing,
    Reading(125_000, ((20, "fori", 13, 2, 0), (10, "fori", 12, 4, 4)), repeats=False, share=0.6),
    Reading(10_000, ((10, "nest", 25, 1, 3),), repeats=False, share=1.0),  # nor one with loops in its steps,
    Reading(10_000, ((10, "checkpoint", 58, 1, 2), (10, "iterator", 92, 0, 3)), repeats=False, share=1.0),  # nor code
    # Later steps of plain code may take more than the first.
    Reading(10_000, ((0, "steps", 21, 4, 3), (0, "checkpoint", 9, 1, 2), (20, "checkpoint", 9, 2, 3)), True, 0.6),
    # Cotangents of what passes through many steps of plain code were not there when its steps were run again,
    Reading(125_000, ((0, "iterator", 12, 4, 3), (20, "checkpoint", 6, 1, 0)), repeats=False, share=0.02),
    Reading(125_000, ((20, "checkpoint", 8, 1, 2),), repeats=False, share=0.02),
    Reading(10_000, ((10, "range", 113, 0, 4), (10, "fori", 7, 4, 2), (0, "range", 119, 3, 2)), True, 0.0),
    Reading(125_000, ((10, "range", 20, 3, 4),), repeats=False, share=0.0),  # tapes came where a small snapshot was
    # nor did the first steps of such code give way to the one under way.
    Reading(125_000, ((10, "outputs", 24, 3, 4), (3, "checkpoint", 10, 2, 4), (20, "fori", 15, 2, 0)), False, 0.1),
    Reading(10_000, ((3, "fori", 94, 2, 1), (10, "checkpoint", 21, 0, 2), (10, "scan", 72, 3, 3)), False, 0.0),
    Reading(125_000, ((20, "range", 10, 4, 1),), repeats=False, share=0.1),  # what variables have while code runs
    drawn(207),  # a second pull of loops in a loop was not asked for
    drawn(230),  # code whose schedule was not drawn was held whole, and could give up nothing for marked steps
)


@pytest.mark.parametrize("reading", FOUND, ids=str)
def test_what_was_found(reading):
    assert fault_of(reading) == ""


FEW = [seed for seed in range(12) if drawn(seed).size == min(SIZES)]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of numbers of drawn programs, which may overflow
@pytest.mark.parametrize("seed", [*FEW, *(pytest.param(k, marks=pytest.mark.slow) for k in range(500) if k not in FEW)])
def test_drawn_programs(seed):
    assert fault_of(drawn(seed)) == ""


def arrays_read_after_a_loop(x):
    ws = [x * (1 + 0.01 * k) for k in range(20)]
    u = pb.fori_loop(0, 100, lambda _, u: u + 0.01 * np.sin(u) * ws[0], x)
    return np.sum(u * u) + sum(np.sum(w * w * u) for w in ws)


@pytest.mark.parametrize("n_arrays", [36, 40, 45])
@pytest.mark.parametrize("repeats", [False, True])
def test_the_figure_for_code_after_a_loop_is_that_of_the_way_that_takes_less(n_arrays, repeats):
    """Held whole, or by its steps, a snapshot of which is all that it reads. It is enough at once, and little more than
    the least."""
    x = np.linspace(0.1, 1.0, 20_000)

    def run(nbytes):
        gradients(arrays_read_after_a_loop, pb.Budget(nbytes), x, repeats=repeats)

    with pytest.raises(pb.BudgetError) as refused:
        run(n_arrays * x.nbytes)
    run(refused.value.minimum_bytes)
    with pytest.raises(pb.BudgetError):
        run(int(refused.value.minimum_bytes / 1.05))


def passing_arrays(x):
    ws = [x * (1 + 0.01 * k) for k in range(20)]
    u = x
    for _ in range(40):
        u = np.tanh(u + 0.1 * np.sin(u))
    return np.sum(u) + sum(np.sum(np.sin(w * u)) for w in ws)


@pytest.mark.parametrize("repeats", [False, True])
def test_the_figure_for_plain_code_is_what_it_takes(repeats):
    """It is told when the program has run forward, once, and is enough; a peak is little less."""
    x = np.linspace(0.1, 1.0, 50_000)
    with pytest.raises(pb.BudgetError) as refused:
        gradients(passing_arrays, pb.Budget(1), x, repeats=repeats)
    policy = pb.Budget(refused.value.minimum_bytes)
    gradients(passing_arrays, policy, x, repeats=repeats)
    _, peak = peak_of(lambda: gradients(passing_arrays, policy, x, repeats=repeats))
    assert 0.9 * policy.max_bytes <= peak <= policy.max_bytes + SLACK, (peak / x.nbytes, policy.max_bytes / x.nbytes)


def test_code_after_a_loop_takes_what_it_needs_and_no_more():
    """More bytes run fewer steps, and the peak is that of the bytes."""
    x, f = np.linspace(0.1, 1.0, 20_000), arrays_read_after_a_loop
    found = []
    for n_arrays in (76, 90, 110, 150):
        policy = pb.Budget(n_arrays * x.nbytes)
        pb.grad(f, policy=policy)(x)
        assert peak_of(lambda policy=policy: pb.grad(f, policy=policy)(x))[1] <= n_arrays * x.nbytes
        _, pull = pb.vjp(f, x, policy=policy)
        pull(1.0)
        found.append(pull.report.n_forward)
    assert found == sorted(found, reverse=True), found


@pytest.mark.parametrize("n", [1, 30, 400])
def test_a_while_loop_with_room_for_a_part_has_the_bits_of_save_all(n):
    x = np.linspace(0.2, 0.9, 10_000)

    def f(x):
        u, _ = pb.while_loop(lambda s: s[1] < n, lambda s: (s[0] - 0.01 * np.sin(s[0]), s[1] + 1), (x, 0))
        return np.sum(u * u)

    wanted = pb.grad(f)(x)
    for nbytes in (4_000_000, 28_000_000, 100_000_000):
        assert pb.grad(f, policy=pb.Budget(nbytes))(x).tobytes() == wanted.tobytes()
