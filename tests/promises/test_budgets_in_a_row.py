"""One ``Budget`` over loops that follow one another, and over the code between them: each loop that needs more than is
free is told a figure once, which is enough for it; ``tracemalloc``'s peak stays within the bytes, and what is planned
is what is booked."""

import gc
import warnings
from functools import lru_cache

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.programs.measured import peak_of
from tests.promises.test_budgets_bind import PARTS, SLACK, C, X, body_of

import pullback as pb

body = lru_cache(None)(body_of)
FORMS = ("fori", "scan", "while", "steps")
OTHERS = ("plain", "checkpoint")
"""Code without marks, and calls of a checkpoint."""


def looped(form, n, step, u, v):
    if form == "fori":
        return pb.fori_loop(0, n, lambda k, s: step(*s), (u, v))
    if form == "scan":
        (u, v), ys = pb.scan(lambda s, k: (step(*s), s[0][:3]), (u, v), np.arange(n))
        return u + np.sum(ys), v
    if form == "while":
        return pb.while_loop(lambda s: pb.value(s[2]) < n, lambda s: (*step(*s[:2]), s[2] + 1), (u, v, 0))[:2]
    if form in ("plain", "checkpoint"):
        run = pb.checkpoint(step) if form == "checkpoint" else step
        for _ in range(n):
            u, v = run(u, v)
        return u, v
    if form == "nest":
        inner = lambda _, s: pb.fori_loop(0, n // 4 + 1, lambda k, s: step(*s), s)  # noqa: E731 - short
        return pb.fori_loop(0, 4, inner, (u, v))
    for _ in pb.steps(n):
        u, v = step(u, v)
    return u, v


def program(loops):
    def f(x, c):
        u, v = x * 1.5, np.cos(x)
        for form, n, parts in loops:
            u, v = looped(form, n, lambda u, v, parts=parts: body(parts)(u, v, c), u, v)
        return np.sum(u * v)

    return f


def gradient(f, policy, x=X, *, heard):
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", pb.PolicyWarning)  # marked steps hold the constants that each of them reads
        if not heard:
            return pb.grad(f, policy=policy)(x, C), None
        _, pull = pb.vjp(f, x, C, policy=policy)
        return pull(1.0)[0], pull.report


def enough(loops, nbytes, *, heard):
    """These bytes, or those that are enough for every loop; each tells its own at most once, as does the code around
    them, but other code may tell of several of its steps."""
    f = program(loops)
    for _ in range(len(loops) + 1 if all(form in FORMS for form, _, _ in loops) else 15):
        try:
            gradient(f, pb.Budget(nbytes), heard=heard)
        except pb.BudgetError as error:
            nbytes = error.minimum_bytes
        else:
            return nbytes
    gradient(f, pb.Budget(nbytes), heard=heard)
    return nbytes


def assert_binds(loops, arrays, heard):
    f, budget = program(loops), enough(loops, arrays * X.nbytes, heard=heard)
    for x in (X, X[::-1].copy()):
        wanted, _ = gradient(f, pb.SaveAll(), x, heard=heard)
        (found, _), peak = peak_of(gradient, f, pb.Budget(budget), x, heard=heard)
        assert np.array_equal(found, wanted, equal_nan=True)
        assert peak <= budget + SLACK, (peak / X.nbytes, budget / X.nbytes)


def assert_planned(loops, arrays):
    f, policy = program(loops), pb.Budget(enough(loops, arrays * X.nbytes, heard=True))
    plan = pb.plan(f, X, C, policy=policy)
    _, report = gradient(f, policy, heard=True)
    assert (plan.n_forward, plan.bytes_by_reason) == (report.n_forward, report.bytes_by_reason)


parts = st.lists(st.integers(0, len(PARTS) - 1), min_size=1, max_size=3).map(tuple)
loops = st.lists(st.tuples(st.sampled_from(FORMS), st.integers(1, 30), parts), min_size=2, max_size=3)
with_others = st.lists(
    st.tuples(st.sampled_from((*FORMS, "nest", *OTHERS, *OTHERS)), st.integers(1, 20), parts), min_size=1, max_size=3
)
checked = settings(deadline=None, suppress_health_check=list(HealthCheck))


@given(loops=loops, arrays=st.integers(8, 200), heard=st.booleans())
@example(loops=[("fori", 20, (3,)), ("fori", 10, (0, 3, 10))], arrays=40, heard=False)
@example(loops=[("while", 12, (0,)), ("steps", 9, (3,)), ("scan", 9, (2, 0))], arrays=8, heard=True)
@settings(checked, max_examples=2)
def test_drawn_rows_bind(loops, arrays, heard):
    assert_binds(loops, arrays, heard)


@pytest.mark.slow
@given(loops=loops, arrays=st.integers(8, 200), heard=st.booleans())
@settings(checked, max_examples=100)
def test_many_drawn_rows_bind(loops, arrays, heard):
    assert_binds(loops, arrays, heard)


@given(loops=with_others, arrays=st.integers(1, 100), heard=st.booleans())
@example(loops=[("plain", 12, (3, 5)), ("fori", 6, (0, 3)), ("checkpoint", 12, (3, 5))], arrays=28, heard=False)
@example(loops=[("steps", 1, (1,))], arrays=1, heard=False)
@example(
    loops=[("scan", 13, (9,)), ("checkpoint", 1, (0, 7, 3))], arrays=12, heard=True
)  # the code after the loop is held for the next pull
@settings(checked, max_examples=1)
def test_code_between_loops_binds(loops, arrays, heard):
    assert_binds(loops, arrays, heard)


@pytest.mark.slow
@given(loops=with_others, arrays=st.integers(1, 100), heard=st.booleans())
@settings(checked, max_examples=500)
def test_much_code_between_loops_binds(loops, arrays, heard):
    assert_binds(loops, arrays, heard)


@given(loops=loops, arrays=st.integers(8, 200))
@example(loops=[("fori", 20, (3,)), ("while", 10, (0, 3, 10)), ("fori", 20, (3,))], arrays=40)
@settings(checked, max_examples=1)
def test_drawn_rows_are_planned(loops, arrays):
    assert_planned(loops, arrays)


@pytest.mark.slow
@given(loops=loops, arrays=st.integers(8, 200))
@settings(checked, max_examples=100)
def test_many_drawn_rows_are_planned(loops, arrays):
    assert_planned(loops, arrays)


def after_stacked_rows(x, c):
    (x, _), ys = pb.scan(lambda s, _: ((np.sin(s[1]), s[0]), s[0]), (x, c), length=15)
    return x, c, ys


def after_a_product(x, c):
    return x, c, np.outer(np.ones(30), x)


@pytest.mark.filterwarnings("ignore::pullback.PolicyWarning")
@pytest.mark.parametrize("marked", [False, True])
@pytest.mark.parametrize("before", [after_stacked_rows, after_a_product])
def test_what_a_variable_has_counts_though_no_pullback_reads_it(before, marked):
    def step(_, s):
        return np.tanh(s[0] * s[1]) * C, s[1] + 0.1 * np.sin(s[0])

    def f(x, c):
        u, v, there = before(np.sin(x), np.cos(c))
        if marked:
            for _ in pb.steps(28):
                u, v = step(_, (u, v))
        else:
            u, v = pb.fori_loop(0, 28, step, (u, v))
        return np.sum(u * v) + 0 * there.size

    budget, wanted = 12 * X.nbytes, pb.grad(f)(X, C)
    for _ in range(4):
        try:
            pb.grad(f, policy=pb.Budget(budget))(X, C)
            break
        except pb.BudgetError as error:
            budget = error.minimum_bytes
    for more in (1.0, 1.5):
        gradient = pb.grad(f, policy=pb.Budget(int(more * budget)))
        gradient(X, C)
        found, peak = peak_of(gradient, X, C)
        assert found.tobytes() == wanted.tobytes()
        assert peak <= int(more * budget) + SLACK


def test_what_code_after_a_loop_holds_for_the_next_pull_is_left_free():
    def f(x, c):
        u, v = np.sin(x), np.cos(c)
        u, v = pb.fori_loop(0, 13, lambda k, s: (np.where(s[0] > 0.5, s[0], 0.9 * s[1]), s[1]), (u, v))
        u, v = np.cos(v), np.cos(u)
        u = np.tanh(u * C * v) * C
        return np.sum(np.cos(u) * v)

    budget = 12 * X.nbytes
    for _ in range(4):
        try:
            gradient(f, pb.Budget(budget), heard=True)
        except pb.BudgetError as error:
            budget = error.minimum_bytes
    _, pull = pb.vjp(f, X, C, policy=pb.Budget(budget))
    for _ in range(2):
        gc.collect()
        before = pull.report.live_bytes
        _, peak = peak_of(pull, 1.0)
        assert before + peak <= budget + SLACK


def test_ample_bytes_cost_nothing_and_fewer_are_shared():
    loops = [("fori", 30, (3,)), ("fori", 30, (3,))]
    f = program(loops)
    _, ample = gradient(f, pb.Budget("100 MB"), heard=True)
    assert ample.n_forward == 60
    steps = [gradient(f, pb.Budget(int(k * X.nbytes)), heard=True)[1].n_forward for k in (30, 50, 80, 120)]
    assert steps == sorted(steps, reverse=True)
    assert steps[1] <= 140
