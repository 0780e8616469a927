"""Arithmetic on traced Python floats: Python's values and types, the derivatives of the ufuncs, the same bits under policies."""

import operator

import numpy as np
import pytest

import pullback as pb
from pullback.primitives.operators import OPERATORS as PRIMITIVES

X, Y = 2.75, -1.5
OPERATORS = {
    "operator_add": (operator.add, X, Y),
    "operator_subtract": (operator.sub, X, Y),
    "operator_multiply": (operator.mul, X, Y),
    "operator_divide": (operator.truediv, X, Y),
    "operator_remainder": (operator.mod, X, Y),
    "operator_power": (operator.pow, X, Y),
    "operator_positive": (operator.pos, X),
    "operator_negative": (operator.neg, X),
    "operator_absolute": (abs, Y),
}
NAMES = sorted(entry.name for entry in PRIMITIVES)


@pytest.mark.parametrize("name", NAMES)
def test_a_result_is_a_float(name):
    f, *xs = OPERATORS[name]
    out, _ = pb.vjp(f, *xs)
    assert (out, type(out)) == (f(*xs), float)


@pytest.mark.parametrize("policy", [pb.SaveAll(), pb.Recompute(), pb.Binomial(1)])
@pytest.mark.parametrize("name", NAMES)
def test_derivatives_are_those_of_arrays(name, policy):
    f, *xs = OPERATORS[name]
    places = tuple(range(len(xs)))
    given = pb.grad(f, places, policy=policy)(*xs)
    expected = pb.grad(f, places)(*(np.array(x) for x in xs))
    np.testing.assert_array_equal(given, expected)


@pytest.mark.parametrize("name", NAMES)
def test_a_float_takes_the_dtype_of_what_it_meets(name):
    f, *xs = OPERATORS[name]
    single = np.ones(2, np.float32)
    assert (f(*xs) * single).dtype == np.float32
    assert pb.vjp(lambda *xs: f(*xs) * single, *xs)[0].dtype == np.float32
