"""Steps of plain code that do the same share what re-executes them, whatever they read and from how far."""

import gc
import tracemalloc

import numpy as np
import pytest

import pullback as pb
from pullback.programs.plain.plain_chain import PlainChain
from pullback.programs.replay import recipes
from pullback.programs.replay.step_recipes import HORIZON

N = 3 * HORIZON


def steady(x, n):
    for _ in pb.steps(n):
        x = x + 0.01 * np.sin(x) * x
    return np.sum(x * x)


def leapfrog(x, n):
    before, now = x, x * 1.01
    for k in pb.steps(n):
        before, now = now, 2.0 * now - before - 0.01 * np.sin(now) * (k + 1)
    return np.sum(now * before)


def first_value(x, n):
    first = None
    for _ in pb.steps(n):
        if first is None:
            first = np.exp(-x)
        x = x + 0.01 * first * np.cos(x)
    return np.sum(x)


def first_value_written(x, n):
    """A value of the first step is written long after."""
    kept = None
    for k in pb.steps(n):
        if kept is None:
            kept = x * 1.0
        if k == n - 2:
            kept *= x
            kept[0] = x[1]
        x = x + 0.01 * kept * np.cos(x)
    return np.sum(x * kept)


def in_turns(x, n):
    for k in pb.steps(n):
        x = x + 0.01 * np.sin(x) if k % 2 else x - 0.02 * np.cos(x) * x * x
        if k % 5 == 3:
            x[1:] += 0.1 * x[:-1]
    return np.sum(x)


def delayed(x, n):
    seen = [x] * (HORIZON + 3)
    for _ in pb.steps(n):
        x = x + 0.01 * np.sin(seen[-1 - HORIZON]) * seen[-2] - 0.001 * seen[-3 - HORIZON]
        seen.append(x)
    return np.sum(x)


def all_at_last(x, n):
    seen = []
    for k in pb.steps(n):
        x = x + 0.01 * np.sin(x)
        seen.append(np.sum(x * x))
        if k == n - 1:
            x = x * sum(seen)
    return np.sum(x)


def rows(x, n):
    """The index is another in each step, and so is a plain array."""
    table, made = x * np.ones((n, 1)), np.zeros((n, x.size), like=x)
    for k in pb.steps(n):
        x = x + 0.01 * table[k] * np.full(x.shape, float(k)) / n
        made[k] = x
    return np.sum(made[:, 0]) + np.sum(x)


def in_place(x, n):
    w = x * 1.0
    for k in pb.steps(n):
        half = w[::2]
        w[1:] += 0.01 * w[:-1]
        half *= 1.01
        w[k % w.size] = np.sin(x[0])
        w[np.array([0, 2])] -= 0.1 * half[:2]
    return np.sum(w * w)


def inner_loop(x, n):
    for k in pb.steps(n):
        x = pb.fori_loop(0, 3, lambda j, u: u + 0.01 * np.sin(u) * (j + 1), x) * (1.0 + 0.001 * k)
    return np.sum(x)


def several_outputs(x, n):
    a = np.outer(x, x) + np.eye(x.size)
    for k in pb.steps(n):
        q, _ = np.linalg.qr(a)
        a = a + 0.01 * q * (-1.0) ** k
    return np.sum(a)


def own_row(x, n):
    """What is written looks at what it is written to, and neither depends on the input yet."""
    total = 0.0
    for k in pb.steps(n):
        w = np.array(np.linspace(0.1, 0.9, 12).reshape(3, 4) + k, like=x)
        row = w[k % 2]
        w[::-1] += row
        total = total + w * x[:4]
    return np.sum(total)


def new_shapes(x, n):
    for k in pb.steps(n):
        buffer = np.zeros(x.size + k % 3, like=x)
        buffer[: x.size - 1] += x[1:]
        x = x + 0.01 * np.sum(buffer)
    return np.sum(x)


PROGRAMS = [
    steady, leapfrog, first_value, first_value_written, in_turns, delayed, all_at_last, rows, in_place, inner_loop,
    several_outputs, own_row, new_shapes,
]  # fmt: skip
POLICIES = [pb.Recompute(), pb.Binomial(2), pb.Binomial(7)]


def bits_of(program, x, n, policy):
    value, gradient = pb.value_and_grad(program, policy=policy)(x, n)
    return np.asarray(value).tobytes(), gradient.tobytes()


@pytest.mark.share(2, of=lambda **_: "")
@pytest.mark.parametrize("staging", ["off", "numpy"])
@pytest.mark.parametrize("policy", POLICIES, ids=repr)
@pytest.mark.parametrize("program", PROGRAMS)
def test_same_bits_as_save_all(program, policy, staging):
    x = np.linspace(0.3, 1.1, 5)
    for n in (N, HORIZON, 3):
        with pb.using(staging=staging):
            assert bits_of(program, x, n, policy) == bits_of(program, x, n, pb.SaveAll())


@pytest.mark.parametrize("program", PROGRAMS)
def test_staged_steps_hold_the_same_bytes(program):
    x, reports = np.linspace(0.3, 1.1, 600), []
    for staging in ("off", "numpy"):
        with pb.using(staging=staging):
            small = program in (several_outputs, own_row, new_shapes)
            _, pull = pb.vjp(lambda x: program(x, N), x[:4] if small else x, policy=pb.Binomial(4))
            pull(1.0)
            reports.append((pull.report.peak_bytes, pull.report.n_forward, pull.report.bytes_by_reason))
            pull.close()
    assert reports[0] == reports[1]


@pytest.mark.parametrize("staging", ["off", "numpy"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_second_pull_starts_again(program, staging):
    x = np.linspace(0.3, 1.1, 5)
    with pb.using(staging=staging):
        _, pull = pb.vjp(lambda x: program(x, N), x, policy=pb.Binomial(3))
    assert pull(1.0)[0].tobytes() == pull(1.0)[0].tobytes() == pb.grad(program, policy=pb.SaveAll())(x, N).tobytes()


def patterns_of(program, n):
    held = []
    original = PlainChain.finish

    def finish(chain):
        original(chain)
        held.append(len({id(pattern) for pattern in chain.recipes.patterns}))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PlainChain, "finish", finish)
        pb.grad(lambda x: program(x, n), policy=pb.Binomial(3))(np.linspace(0.3, 1.1, 5))
    return held[0]


@pytest.mark.parametrize(
    ("program", "most"), [(steady, 2), (leapfrog, 3), (first_value, HORIZON + 3), (in_turns, 20), (several_outputs, 3)]
)
def test_equal_steps_share_a_pattern(program, most):
    assert patterns_of(program, 200) <= most


@pytest.mark.parametrize("program", [steady, leapfrog, first_value, in_turns])
def test_a_step_costs_few_bytes(program):
    """Beside what the policy holds: none of these programs makes plain arrays in its steps."""

    def held(n):
        _, pull = pb.vjp(lambda x: program(x, n), np.linspace(0.3, 1.1, 5), policy=pb.Binomial(3))
        gc.collect()
        return tracemalloc.get_traced_memory()[0], pull

    held(100)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        few, pull = held(150)
        pull.close()
        del pull
        gc.collect()
        between = tracemalloc.get_traced_memory()[0]
        many, pull = held(650)
        pull.close()
    finally:
        tracemalloc.stop()
    assert ((many - between) - (few - before)) / 500 < 250


def test_steps_share_a_pattern_from_the_first_call_of_a_program_on():
    """While Python specializes the instructions of a program, it does what it did."""

    def fresh(x):  # code that nobody has called
        for _ in pb.steps(200):
            x = x + 0.01 * x[::-1]
        return np.sum(x)

    booked = set()
    for _ in range(3):
        _, pull = pb.vjp(fresh, np.ones(5), policy=pb.Binomial(5))
        pull(1.0)
        booked.add(pull.report.bytes_by_reason["bookkeeping"])
    assert len(booked) == 1


def test_another_thread_may_meet_an_operand_at_the_same_time(monkeypatch):
    made = recipes.Operand

    def interrupted(place):
        monkeypatch.setattr(recipes, "Operand", made)
        recipes.operand_at(place)  # by the other thread
        return made(place)

    monkeypatch.setattr(recipes, "_OPERANDS", type(recipes._OPERANDS)())
    monkeypatch.setattr(recipes, "Operand", interrupted)
    assert [recipes.operand_at(k).place for k in range(3)] == [0, 1, 2]
    assert recipes.operand_at(1) is recipes.operand_at(1)
