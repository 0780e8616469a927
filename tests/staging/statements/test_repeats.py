"""What is computed twice is computed once, unless somebody could tell."""

import numpy as np
import pytest
from tests.staging.generated.both_ways import loop_over, require_same, the_stage

import pullback as pb
from pullback.staging.generated import shelf
from pullback.staging.statements.repeats import without_repeats
from pullback.staging.statements.symbols import Program
from pullback.staging.statements.writes import ADD_TO

A = np.linspace(-1.0, 1.0, 4096).reshape(64, 64)


pytestmark = pytest.mark.usefixtures("nothing_is_known")


def left(function, *inputs, told=()):
    """What the statements of ``function`` make, and how many of them are left."""
    program = Program()
    symbols = [program.value(x) for x in inputs]
    found = function(program, *symbols)
    kept = frozenset(x.number for x in found)
    told = frozenset(statement.makes for statement in program.statements) if told else frozenset()
    return len(program.statements), len(without_repeats(program, program.statements, kept, told))


@pytest.mark.parametrize(
    "twice",
    [
        lambda x: (x * 2.0) + (x * 2.0),
        lambda x: np.sin(x) + np.sin(x),
        lambda x: x[1:] + x[1:],
        lambda x: x.T @ x + x.T @ x,
        lambda x: x.sum(axis=0) + x.sum(axis=0),
        lambda x: np.add.reduce(x, axis=1) * np.add.reduce(x, axis=1),
        lambda x: np.broadcast_to(x[0], (3, 64)) + np.broadcast_to(x[0], (3, 64)),
    ],
)  # fmt: skip
def test_the_same_function_of_the_same_values_is_called_once(twice):
    before, after = left(lambda _, x: [np.cos(twice(x))], A)
    assert before - 2 == 2 * (after - 2)


@pytest.mark.parametrize(
    "alike",
    [
        lambda x: (x * 0.0) / (x * -0.0),
        lambda x: (x * 1) + (x * 1.0),
        lambda x: (x * 2.0) + (2.0 * x),  # of two NaNs the first stays
        lambda x: x[1:] + x[:-1],
        lambda x: x.sum(axis=0, keepdims=True) + x.sum(axis=0),
        lambda x: (x + 1.0) * (x + 1e-300),
        lambda x: np.add(x, x) - np.subtract(x, x),
    ],
)  # fmt: skip
def test_what_differs_is_computed(alike):
    before, after = left(lambda _, x: [np.cos(alike(x))], A)
    assert before == after


def test_what_leaves_is_told_or_is_written_to_is_computed_on_its_own():
    assert left(lambda _, x: [np.sin(x), np.sin(x)], A) == (2, 2)
    assert left(lambda _, x: [np.sin(x) + np.sin(x)], A, told=True) == (3, 3)

    def written(program, x):
        one, other = np.sin(x), np.sin(x)
        return [program.write(one, ADD_TO, 0, 1.0), np.cos(other)]

    def looked_at(program, x):
        whole = np.sin(x)
        row = whole[1]
        after = program.write(whole, ADD_TO, 1, 1.0)
        return [row + whole[1], after]

    assert left(written, A) == (4, 4)
    assert left(looked_at, A) == (5, 5)
    assert left(lambda _, x: [np.cos(x.copy()) + np.sin(x.copy())], A) == (5, 5)


def body(k, u, x):
    h = np.tanh(u * x)
    return h + 0.1 * h * h  # whose rule multiplies the cotangent with the same h for both operands


def test_a_reverse_has_the_bits_of_recorded_steps_and_one_product_less():
    special = np.where(np.arange(64) % 5 == 0, [np.nan, np.inf, -0.0, 0.0] * 16, 0.5)
    with np.errstate(all="ignore"):
        require_same(loop_over(body), A[:1] + 0.5, special)

    def squared(k, u, x):
        return np.sin(u * u) * x

    shelf.forget()
    pb.grad(loop_over(squared))(A[0])
    with pb.using(staging="numpy"):
        pb.grad(loop_over(squared))(A[0])
    text = the_stage().reverse.text
    assert text.count(" * ") + text.count("multiply(") == 4  # by x and by what it multiplies, by the cosine, by u
