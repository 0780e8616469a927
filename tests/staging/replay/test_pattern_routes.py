"""Steps of one pattern in a row: the values of each are found in the next without a look at their kinds."""

import numpy as np
import pytest

import pullback as pb
from pullback.staging.replay import pattern_shelf
from pullback.staging.replay.staged_patterns import StagedPatterns

N = 60
X = np.linspace(0.3, 1.1, 5)
TABLE = np.cos(np.arange(N))


def one_value(x):
    u = x
    for _ in pb.steps(N):
        u = u + 0.01 * (x * u * (1.0 - u))
    return np.sum(u * u)


def two_values(x):
    before, u = x * 0.5, x
    for _ in pb.steps(N):
        before, u = u, 1.8 * u - 0.9 * before - 0.01 * np.sin(u)
    return np.sum(u * before)


def handed_on(x):
    """A value waits two steps before it is read."""
    a = b = c = x
    for _ in pb.steps(N):
        a, b, c = 0.9 * c + 0.05 * np.sin(a), a, b
    return np.sum(a * b * c)


def constants(x):
    """A plain operand is another in each step."""
    u = x
    for k in pb.steps(N):
        u = u * 0.9 + float(TABLE[k]) * x
    return np.sum(u * u)


def one_constant(x):
    """Only one step has another."""
    u = x
    for k in pb.steps(N):
        u = u * (0.5 if k == 31 else 0.99) + 0.01 * x
    return np.sum(u * u)


def kinds(x):
    """A plain operand is of another kind from the middle on."""
    u = x
    for k in pb.steps(N):
        u = u * (0.99 if k < 30 else np.float64(0.98)) + 0.01 * x
    return np.sum(u * u)


def far_back(x):
    """Every step reads what was made many steps before: no route tells that."""
    made = [x * (1.0 + 0.01 * k) for k in range(20)]
    for k in pb.steps(N):
        made.append(0.5 * made[k] + 0.4 * np.tanh(made[-1]))
    return np.sum(made[-1] * made[-7])


def views(x):
    u = x
    for _ in pb.steps(N):
        u = u[::-1] * 0.99 + 0.01 * x
    return np.sum(u * u)


PROGRAMS = [one_value, two_values, handed_on, constants, one_constant, kinds, far_back, views]


def bits_of(program, x, policy, staging):
    with pb.using(staging=staging):
        value, gradient = pb.value_and_grad(program, policy=policy)(x)
    return np.asarray(value).tobytes(), gradient.tobytes()


@pytest.mark.parametrize("policy", [pb.Recompute(), pb.Binomial(2), pb.Binomial(5)], ids=repr)
@pytest.mark.parametrize("program", PROGRAMS)
def test_same_bits_as_save_all(program, policy):
    pattern_shelf._SHELF.clear()
    for x in (X, X, -0.7 * X, np.float32(0.9) * X.astype(np.float32)):
        assert bits_of(program, x, policy, "numpy") == bits_of(program, x, pb.SaveAll(), "off")


@pytest.mark.parametrize(("program", "runs"), [(p, p != far_back) for p in PROGRAMS])
def test_a_row_of_steps_is_looked_at_once(program, runs, monkeypatch):
    """Of several seeds, whose sweeps go side by side."""
    two = lambda x: np.stack([program(x), 2.0 * program(x)])  # noqa: E731
    with pb.using(staging="numpy"):
        pb.jacobian(two, policy=pb.Binomial(1), mode="reverse")(X)
    rows, run = [], StagedPatterns._run

    def noted(patterns, first, *others):
        after = run(patterns, first, *others)
        rows.append(after - first)
        return after

    monkeypatch.setattr(StagedPatterns, "_run", noted)
    with pb.using(staging="numpy"):
        pb.jacobian(two, policy=pb.Binomial(1), mode="reverse")(X)
    assert (max(rows, default=0) > N // 4) == runs
