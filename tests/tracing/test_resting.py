"""Operations on buffers that depend on nothing: at once where they depend on nothing, recorded from where they do."""

import operator

import numpy as np
import pytest

import pullback as pb

X = np.linspace(0.2, 1.0, 6).reshape(2, 3)
OPERATORS = (operator.add, operator.sub, operator.mul, operator.truediv)


def marked(x, operate):
    return operate(pb.name(np.ones(x.shape), "ones"), 2.0)


def written(x, operate):
    made = np.ones_like(x)
    made[0] = x[1]
    return operate(made, 2.0) + operate(np.ones_like(x), made) + operate(made, made)


def through_a_view(x, operate):
    made = np.ones_like(x)
    row = made[0]
    row[:] = x[1]
    return operate(3.0, made) + operate(row, made)


def beside_a_tracer(x, operate):
    return operate(x, np.full_like(x, 2.0)) + operate(np.full_like(x, 2.0), x)


def after_a_mark(x, operate):
    ones = pb.name(np.ones(x.shape), "ones")  # the run on handles without values ends here, and they get values
    return operate(np.exp(operate(x, 4.0)), ones)


@pytest.mark.parametrize("operate", OPERATORS, ids=lambda f: f.__name__)
@pytest.mark.parametrize(
    "program", [marked, written, through_a_view, beside_a_tracer, after_a_mark], ids=lambda f: f.__name__
)
def test_a_buffer_that_stands_for_a_record_is_no_constant(program, operate):
    def f(x):
        return np.sum(program(x, operate) * np.sin(x))

    pb.testing.check_grads(f, (X,))
    gradient = pb.grad(f)(X)
    staged = pb.grad(pb.staged(f))
    for _ in range(3):
        np.testing.assert_array_equal(staged(X), gradient)
    for policy in (pb.Binomial(2), pb.Recompute(), pb.Budget("1 MB")):
        np.testing.assert_array_equal(pb.grad(f, policy=policy)(X), gradient)


def test_handles_that_get_their_values_late_are_no_constants():
    def f(x):
        ones = pb.name(np.ones(x.shape), "ones")  # the run on handles without values ends here
        u = np.exp(x * 0.1) * ones
        return np.sum(u * u)

    assert pb.grad(pb.staged(f))(X).tobytes() == pb.grad(f)(X).tobytes()
