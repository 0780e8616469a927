"""Columns by a generated function for many directions: the bits of columns one by one, and whatever could make them
others is asked in each call."""

import numpy as np
import pytest
from optree import tree_map

import pullback as pb
from pullback.staging.generated.forward_statements import NotStageableError
from pullback.staging.pulls import push_functions, repeated_tangents
from pullback.transforms.derivatives import jacobian_rows_and_columns
from pullback.transforms.derivatives.forward import LinearMap
from pullback.transforms.derivatives.jacobian_rows_and_columns import Task

RNG = np.random.default_rng(0)
X, MATRIX = RNG.normal(size=7), RNG.normal(size=(7, 7))
FACTOR = 2.0


def vector(x):
    z = np.tanh(MATRIX @ x) * x[::-1] + np.exp(-x * x) * FACTOR
    return np.concatenate([z[1:] + x[:-1] * np.sum(x), np.roll(x, 2), x[:2]])


def number(x):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2) + np.dot(x, MATRIX @ x)


def of_two(x, y, scale):
    return {"a": np.sin(x) * y[:, None] * scale, "b": np.sum(y), "c": x[0]}


def number_of_two(w, b, y):
    return np.sum((w @ y + b) ** 3)


PROGRAMS = {
    "jacobian": (lambda: pb.jacobian(vector, mode="forward"), (X,)),
    "hessian": (lambda: pb.hessian(number), (X,)),
    "several arguments": (lambda: pb.jacobian(of_two, (0, 1), mode="forward"), (X[:3], X[:2], 3.0)),
    "hessian by two": (lambda: pb.hessian(number_of_two, (0, 1)), (MATRIX[:2, :3].copy(), X[:2].copy(), X[:3])),
    "structures": (
        lambda: pb.jacobian(lambda p: (p["w"] @ p["b"], [p["b"] ** 2]), mode="forward"),
        ({"w": MATRIX[:2, :3].copy(), "b": X[:3].copy()},)
    ),
    "float32": (lambda: pb.jacobian(lambda x: x[:, None] * x * np.float32(2), mode="forward"), (X.astype("f4"),)),
}  # fmt: skip


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    """The columns that were computed one by one; it pays at once to make a function."""
    columns, pushed = [], Task._pushed
    jacobian_rows_and_columns._KNOWN.clear()
    monkeypatch.setattr(jacobian_rows_and_columns, "ENOUGH", 1)
    monkeypatch.setattr(Task, "_pushed", lambda task, *told: (columns.append(told[0]), pushed(task, *told))[1])
    return columns


def bits(tree):
    return [np.asarray(leaf).tobytes() for leaf in pb.ravel(tree)[0].reshape(-1)]


def one_by_one(derivative, *args):
    with pb.using(staging="off"):
        return derivative(*args)


def warm(derivative, *args):
    for _ in range(3):
        derivative(*args)
    return derivative


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_bits_are_those_of_columns_one_by_one(name, alone):
    make, args = PROGRAMS[name]
    derivative = warm(make(), *args)
    others = tree_map(lambda arg: arg if isinstance(arg, float) else arg * -0.5, args)
    for at in (args, others if len(args) < 3 else (others[0], *args[1:])):
        alone.clear()
        found = derivative(*at)
        assert len(alone) == 1  # which tells the structure
        assert bits(found) == bits(one_by_one(derivative, *at))


def test_what_a_function_reads_is_compared_in_each_call(monkeypatch, alone):
    derivative = warm(PROGRAMS["jacobian"][0](), X)
    before = derivative(X)
    with monkeypatch.context() as patch:
        patch.setitem(globals(), "FACTOR", -3.0)
        found = derivative(X)
        assert bits(found) == bits(one_by_one(derivative, X)) != bits(before)
    MATRIX[3, 0] += 1.0
    try:
        assert bits(derivative(X)) == bits(one_by_one(derivative, X)) != bits(before)
    finally:
        MATRIX[3, 0] -= 1.0
    assert bits(derivative(X)) == bits(one_by_one(derivative, X))
    several = warm(PROGRAMS["several arguments"][0](), X[:3], X[:2], 3.0)
    for scale in (5.0, -0.0, 3.0):
        assert bits(several(X[:3], X[:2], scale)) == bits(one_by_one(several, X[:3], X[:2], scale))


def test_other_kinds_of_arguments(alone):
    derivative = warm(pb.jacobian(lambda x: np.sin(x) * x.sum(), mode="forward"), X)
    for at in (X[::-1], np.repeat(X, 2)[::2], X[:4], X.astype("f4"), X.reshape(7, 1)):
        assert bits(derivative(at)) == bits(one_by_one(derivative, at))


def test_a_tangent_that_is_nan_has_the_bits_of_one_by_one(alone):
    derivative = warm(pb.jacobian(lambda x: np.log(x) * x[::-1], mode="forward"), np.abs(X))
    at = np.abs(X)
    at[2] = 0.0
    with np.errstate(all="ignore"):
        assert bits(derivative(at)) == bits(one_by_one(derivative, at))


CALLS = []


def counting(x):
    CALLS.append(1)
    return np.sin(x)


@pytest.mark.parametrize("f", [counting, lambda x: x * (2.0 if x[0] > 0 else 3.0), np.sort])
def test_what_is_not_proved_runs_for_each_column(f, alone):
    derivative = warm(pb.jacobian(f, mode="forward"), X)
    for at in (X, -X):
        alone.clear()
        assert bits(derivative(at)) == bits(one_by_one(derivative, at))
        assert len(alone) == 2 * len(X)


def test_settings_in_force_and_chunks(alone):
    derivative = warm(pb.hessian(number), X)
    for block in (pb.using(pb.Binomial(2)), pb.using(staging="off")):
        alone.clear()
        with block:
            derivative(X)
        assert len(alone) == len(X)
    alone.clear()
    small = warm(pb.jacobian(vector, mode="forward", chunk=8 * 7 * 15), X)
    assert bits(small(X)) == bits(one_by_one(small, X))


def test_other_bits_end_it(monkeypatch, alone):
    def refuses(*_):
        raise NotStageableError("other bits")

    monkeypatch.setattr(repeated_tangents, "require_equal", refuses)
    derivative = warm(pb.hessian(number), X)
    alone.clear()
    assert bits(derivative(X)) == bits(one_by_one(derivative, X))
    assert len(alone) == 2 * len(X)


BIG = np.random.default_rng(5).normal(size=(6000, 4))


def skinned(x, big):
    """A product of matrices, and one of elements, with large operands that lie in the other order."""
    return np.sum((x.reshape(2, 4) @ big.T) * big.T[:2], axis=0) * 0.5


def test_what_directions_share_is_laid_in_order_once_for_all(monkeypatch):
    laid, lay = [], push_functions.laid_in_order

    def noted(*given):
        laid.append(len(lay(*given)))
        return lay(*given)

    monkeypatch.setattr(push_functions, "laid_in_order", noted)
    monkeypatch.setattr(repeated_tangents, "laid_in_order", noted)
    x, other = RNG.normal(size=(2, 8))
    derivative = warm(pb.jacobian(skinned, mode="forward"), x, BIG)
    for at in (x, other):
        laid.clear()
        assert bits(derivative(at, BIG)) == bits(one_by_one(derivative, at, BIG))
        assert laid == [2]
    directions = [(row,) for row in np.eye(8)]
    for at in (x, other, x, other):
        laid.clear()
        _, push = pb.linearize(lambda x: skinned(x, BIG), at)
        found = push(directions * 6)
        with pb.using(staging="off"):
            wanted = pb.linearize(lambda x: skinned(x, BIG), at)[1](directions * 6)
        assert bits(found) == bits(wanted)
    assert set(laid) == {2}
    assert len(laid) <= 2  # once for each number of directions that go together


ROWS = {
    "rows": (lambda: pb.jacobian(vector), (X,)),
    "rows by mode": (lambda: pb.jacobian(vector, mode="reverse"), (X,)),
    "several arguments": (lambda: pb.jacobian(of_two, (0, 1), mode="reverse"), (X[:3], X[:2], 3.0)),
    "structures": (
        lambda: pb.jacobian(lambda p: {"a": p["w"] @ p["b"], "c": 3.0, "d": [p["b"][::-1] ** 2]}, mode="reverse"),
        ({"w": MATRIX[:2, :3].copy(), "b": X[:3].copy()},)
    ),
    "no way": (lambda: pb.jacobian(lambda x, y: (x * 2.0, np.cos(y)), (0, 1), mode="reverse"), (X, X[:2])),
    "where": (lambda: pb.jacobian(lambda x: np.maximum(x, 0.1) * np.abs(x) / x, mode="reverse"), (X,)),
    "float32": (lambda: pb.jacobian(lambda x: x[:, None] * x * np.float32(2), mode="reverse"), (X.astype("f4"),)),
}  # fmt: skip


@pytest.fixture
def recorded(monkeypatch):
    """The Jacobians by rows that were recorded; it pays at once to make a function."""
    runs, fill = [], Task._fill_rows
    monkeypatch.setattr(jacobian_rows_and_columns, "ENOUGH_ROWS", 1)
    monkeypatch.setattr(Task, "_fill_rows", lambda task, *given: (runs.append(1), fill(task, *given))[1])
    return runs


@pytest.mark.parametrize("name", ROWS)
def test_the_bits_are_those_of_rows_one_by_one(name, recorded):
    make, args = ROWS[name]
    derivative = warm(make(), *args)
    others = tree_map(lambda arg: arg if isinstance(arg, float) else arg * -0.5, args)
    for at in (args, others if len(args) < 3 else (others[0], *args[1:])):
        recorded.clear()
        found = derivative(*at)
        assert bool(recorded) is (name == "where")  # a rule decides by values
        assert bits(found) == bits(one_by_one(derivative, *at))


def test_what_rows_read_is_compared_in_each_call(monkeypatch, recorded):
    derivative = warm(pb.jacobian(vector), X)
    before = derivative(X)
    with monkeypatch.context() as patch:
        patch.setitem(globals(), "FACTOR", -3.0)
        assert bits(derivative(X)) == bits(one_by_one(derivative, X)) != bits(before)
    for at in (X[::-1], np.repeat(X, 2)[::2], X.astype("f4"), X * np.nan, np.where(X > 0, np.inf, X)):
        with np.errstate(all="ignore"):
            assert bits(derivative(at)) == bits(one_by_one(derivative, at))
    assert pb.grad(lambda x: np.sum(derivative(x)))(X).shape == X.shape


def test_rows_warn_as_the_function_does(recorded):
    def divided(x):
        return 1.0 / x

    derivative = warm(pb.jacobian(divided), X)
    recorded.clear()
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        derivative(np.where(X > 0.5, 0.0, X))
    told = []

    def tells(x):
        told.append(1)
        return x * 2.0

    derivative = warm(pb.jacobian(tells), X)
    told.clear()
    derivative(X)
    assert told == [1]


def test_one_direction_of_many_maps_is_computed_by_a_function(monkeypatch):
    monkeypatch.setattr(LinearMap, "n_made", 1000)
    runs, record = [], LinearMap._record
    monkeypatch.setattr(LinearMap, "_record", lambda own: (runs.append(1), record(own))[1])
    for at, n_calls in [(X, 1)] * 44 + [(X, 3), (-X, 3), (X, 12)]:
        runs.clear()
        _, push = pb.linearize(vector, at)
        found = [push(X * k) for k in range(1, n_calls + 1)]
        with pb.using(staging="off"):
            _, other = pb.linearize(vector, at)
            assert bits(found) == bits([other(X * k) for k in range(1, n_calls + 1)])
    assert runs == [1, 1]  # of both, once more are asked for
    runs.clear()
    _, push = pb.linearize(vector, X)
    assert bits(push(X)) == bits(other(X))
    assert not runs
