"""Arithmetic on traced Python floats: Python's values and types, the derivatives of the ufuncs, the same bits under
policies."""

import operator

import numpy as np
import pytest

import pullback as pb
from pullback.primitives.elementwise.operators import OPERATORS as PRIMITIVES

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


# ------------------------------------------------------------------------- operators that NumPy's scalars compute apart


@pytest.mark.parametrize("operator", ["*", "/", "**"])
@pytest.mark.parametrize("captured", [False, True])
@pytest.mark.parametrize("n", [3, 40])
def test_a_scalar_before_a_traced_scalar_has_the_bits_of_two_scalars_in_every_run_of_a_step(operator, captured, n):
    """Recorded, computed plainly and staged."""
    rng = np.random.default_rng(4)
    factor = np.complex128(0.3 + 0.77j)
    step = {"*": lambda u: factor * u, "/": lambda u: factor / u, "**": lambda u: factor**u}[operator]

    def f(z):
        body = (lambda _, u: 0.1 * (step(u) + step(z))) if captured else (lambda _, u: step(u) + 0.5)
        return pb.fori_loop(0, n, body, z).real

    for _ in range(10):
        z = np.complex128(complex(*rng.normal(size=2)))
        u = z
        for _ in range(n):
            u = 0.1 * (step(u) + step(z)) if captured else step(u) + 0.5
        value, gradient = pb.value_and_grad(f)(z)
        assert value == u.real
        assert pb.grad(f, policy=pb.Binomial(1))(z).tobytes() == gradient.tobytes()


def test_the_ufunc_by_name_is_the_ufunc():
    factor, z = np.complex128(0.3 + 0.77j), np.complex128(-1.3 + 0.2j)
    for function in (np.multiply, np.divide, np.power):
        assert pb.vjp(lambda z, g=function: g(factor, z), z)[0] == function(factor, z)
