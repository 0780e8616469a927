"""Per-step outputs and rows that are differentiated by: such steps go straight on as others do, with the same bits."""

import numpy as np
import pytest

import pullback as pb
from pullback.loops.stepping import straight_steps
from pullback.loops.stepping.held_steps import StepKind
from pullback.loops.stepping.reverse_pass import Pass
from pullback.loops.stepping.staged_steps import StagedSteps
from pullback.testing.comparing.bits import same_bits
from pullback.words.structures import flatten

X, ROWS = np.array([0.3, -0.7, 1.1, 0.2]), np.random.default_rng(0).random((60, 4))
FLAGS = (np.arange(60) % 2).astype(float)
POLICIES = (pb.SaveAll(), pb.Recompute(3), pb.Binomial(2), pb.Budget(20_000))


def one(u, row):
    v = u + 0.1 * row * np.sin(u)
    return v, np.sum(v * v)


def itself(u, row):
    v = u * np.cos(row)
    return v, v


def several(u, row):
    v = u + 0.1 * row * np.sin(u)
    return v, {"sum": np.sum(v), "parts": (v[::2], u * row)}


def plain_besides(u, row):
    v = np.exp(-u) * row
    return v, (v, 2.0, np.arange(3))


def two_leaves(state, row):
    u, s = state
    return (u * row + 0.1 * s, s + np.sum(u)), u[1]


def no_output(u, row):
    return u + 0.1 * row * np.cos(u), None


def changes_at_the_end(u, row):
    v = u * np.cos(row)
    return (v, v + 1.0) if row[0] < 2 else (v, v * 2.0)


BODIES = (one, itself, several, plain_besides, two_leaves, no_output, changes_at_the_end)


def scanned(body, staging):
    """A function of the initial state and the rows, in which all that the loop gives counts."""

    def f(x, rows):
        start = (x, np.sum(x)) if body is two_leaves else x
        with pb.using(staging=staging):
            state, ys = pb.scan(body, start, rows)
        return sum(np.sum(np.sin(part)) for part in (*flatten(state)[0], *flatten(ys)[0]))

    return f


@pytest.fixture
def single(monkeypatch):
    """The steps that were recorded one by one."""
    seen, recorded = [], StagedSteps.recorded

    def counted(self, k, state, *, keeps=True):
        seen.append(k)
        return recorded(self, k, state, keeps=keeps)

    monkeypatch.setattr(StagedSteps, "recorded", counted)
    return seen


@pytest.mark.parametrize("argnums", [(0,), (0, 1)], ids=["plain rows", "rows"])
@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_the_bits_are_those_of_recorded_steps(body, argnums, single):
    rows = ROWS.copy()
    rows[-1, 0] = 3.0
    for policy in POLICIES:
        expected = pb.value_and_grad(scanned(body, "off"), argnums, policy=policy)(X, rows)
        for _ in range(3):
            single.clear()
            assert same_bits(pb.value_and_grad(scanned(body, "numpy"), argnums, policy=policy)(X, rows), expected)
        if policy == POLICIES[0] and body not in (plain_besides, changes_at_the_end):
            assert len(single) <= 3


@pytest.mark.parametrize("argnums", [(0,), (0, 1)], ids=["plain rows", "rows"])
@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_a_report_is_that_of_recorded_steps(body, argnums):
    def run(staging):
        f = scanned(body, staging)
        held = (lambda x: f(x, ROWS)) if argnums == (0,) else f
        given = (X, ROWS)[: len(argnums)]
        _, pull = pb.vjp(held, *given, policy=pb.SaveAll())
        cts = pull(1.0)
        return cts, pull.report.bytes_by_reason

    expected = run("off")
    for _ in range(3):
        cts, held = run("numpy")
        assert same_bits(cts, expected[0])
        assert held == expected[1]


@pytest.mark.parametrize("argnums", [(0,), (0, 1)], ids=["plain rows", "rows"])
@pytest.mark.parametrize("body", BODIES[:-1], ids=lambda body: body.__name__)
@pytest.mark.parametrize("policy", POLICIES[:3], ids=repr)
def test_steps_go_back_in_a_row(policy, body, argnums, monkeypatch):
    """With the rows of cotangents that they take, and those that they give."""
    seen, enter, reverse = [], Pass.enter, StepKind.reverse

    def entered(self, work, step, *args, **kwargs):
        seen.append(step)
        return enter(self, work, step, *args, **kwargs)

    def reversed_one(self, step, seeds, *, own=False):
        seen.append(step.k)
        return reverse(self, step, seeds, own=own)

    monkeypatch.setattr(Pass, "enter", entered)
    monkeypatch.setattr(StepKind, "reverse", reversed_one)
    gradient = pb.grad(scanned(body, "numpy"), argnums, policy=policy)
    for _ in range(3):
        seen.clear()
        gradient(X, ROWS)
    assert len(seen) <= (len(ROWS) if body is plain_besides else 8)


LAYOUTS = {
    "of a sum": lambda: np.broadcast_to(0.7, (60, 3, 4)),
    "of a sum of rows": lambda: np.broadcast_to(np.linspace(0.1, 1.0, 4), (60, 3, 4)),
    "turned": lambda: np.linspace(0.1, 1.0, 720).reshape(4, 3, 60).T,
    "backwards": lambda: np.linspace(0.1, 1.0, 720).reshape(60, 3, 4)[::-1, ::-1, ::-1],
}


@pytest.mark.parametrize("policy", POLICIES[:3], ids=repr)
@pytest.mark.parametrize("name", LAYOUTS)
def test_cotangents_of_outputs_in_any_layout(name, policy, single):
    """A step has its row in C order, be it recorded or staged."""
    f = lambda x: pb.scan(lambda u, row: (u * np.cos(row), u * 1.5), x, ROWS)[1]  # noqa: E731
    x = np.linspace(0.1, 1.0, 12).reshape(3, 4)

    def pulled(staging):
        with pb.using(policy, staging=staging):
            return pb.vjp(f, x)[1](LAYOUTS[name]())

    wanted = pulled("off")
    for _ in range(3):
        single.clear()
        assert same_bits(pulled("numpy"), wanted)
    assert len(single) <= 3 + len(ROWS) * isinstance(policy, pb.Recompute)


def test_rows_of_large_arrays_do_not_make_a_step_large(single):
    """A record that keeps a row keeps the array that it is a part of, which the loop has in any case."""
    rows = np.resize(ROWS, (500, 1000))
    f = lambda x, rows: np.sum(pb.scan(lambda u, row: (u * np.cos(row * u), None), x, rows)[0])  # noqa: E731
    for _ in range(2):
        single.clear()
        pb.grad(f, (0, 1), policy=pb.Binomial(4))(np.resize(X, 1000), rows)
    assert 0 < len(single) <= 5


def test_cotangents_that_the_caller_has_given_are_not_written_to():
    """Those of outputs are rows of the caller's array; that of the state may be one of them."""
    f = lambda x: pb.scan(lambda u, _: (np.sin(u) * 1.0, u), x, length=40, staging="numpy")  # noqa: E731
    for _ in range(3):
        _, pull = pb.vjp(f, X)
        seeds = np.ones(4), np.linspace(0.1, 1.0, 160).reshape(40, 4)
        before = [seed.copy() for seed in seeds]
        pull(seeds)
        assert same_bits(seeds, before)


def test_the_body_rests_where_it_gives_an_output_or_gets_rows_that_enter(monkeypatch):
    proved, recorded_on = [], straight_steps.recorded_on

    def counted(known, steps, k, stop, *others):
        reached = recorded_on(known, steps, k, stop, *others)
        proved.append(reached[0] - k)
        return reached

    monkeypatch.setattr(straight_steps, "recorded_on", counted)
    for argnums in ((0,), (0, 1)):
        for _ in range(2):
            proved.clear()
            pb.grad(scanned(one, "auto"), argnums)(X, ROWS)
        assert sum(proved) >= 50


@pytest.mark.parametrize("rows", [(FLAGS,), (FLAGS, ROWS), {"flags": FLAGS}], ids=["one", "two", "named"])
def test_rows_in_a_structure_are_those_of_each_step(rows):
    """A body that takes them as they come, without a look at what they are."""

    def body(u, row):
        return u * np.where(next(iter(row.values())) if isinstance(row, dict) else row[0], 1.0, 0.9), None

    def as_they_are(u, row):
        return u * np.where(row, 1.0, 0.9), None

    for step in (body, *((as_they_are,) if rows == (FLAGS,) else ())):
        f = lambda x, step=step: np.sum(pb.scan(step, x, rows)[0])  # noqa: E731
        expected = f(np.array([1.3]))
        for _ in range(3):
            assert pb.value_and_grad(f)(np.array([1.3]))[0] == expected
            assert pb.vjp(f, np.array([1.3]))[0] == expected


def test_an_output_of_another_structure_is_told_with_its_step():
    def body(u, row):
        v = u * np.cos(row)
        return (v, (v, v)) if row[0] > 2 else (v, v)

    rows = ROWS.copy()
    rows[41, 0] = 3.0
    with pytest.raises(pb.StructureError, match="step 41 returned a per-step output"):
        pb.grad(lambda x: np.sum(pb.scan(body, x, rows)[1]))(X)


def in_place(u, row):
    v = u * 0.99
    v[1:] += 0.1 * row[0][:-1] * u[:-1]
    return v, v[::2]


PAIRS = {
    "both": lambda u, row: (u + 0.1 * row[0] * np.sin(u) * row[1], np.sum(u * row[1])),
    "one of them": lambda u, row: (u * 0.9 + row[1], row[1] * 2.0),
    "given back": lambda u, row: (u * 0.9 + row[0], row[0]),
    "neither": lambda u, row: (u * 0.99 + 0.01 * np.sin(u), u),
    "in place": in_place,
}


@pytest.mark.parametrize("argnums", [(0,), (0, 1), (0, 2), (0, 1, 2), (1,)], ids=str)
@pytest.mark.parametrize("name", PAIRS)
def test_rows_of_which_some_enter(name, argnums):
    def f(x, some, others):
        state, ys = pb.scan(PAIRS[name], x, (some, others))
        return np.sum(np.sin(state)) + np.sum(np.sin(ys))

    given = X, ROWS, ROWS[::-1].copy()
    for policy in POLICIES:
        with pb.using(staging="off"):
            expected = pb.value_and_grad(f, argnums, policy=policy)(*given)
        for _ in range(3):
            assert same_bits(pb.value_and_grad(f, argnums, policy=policy)(*given), expected)
