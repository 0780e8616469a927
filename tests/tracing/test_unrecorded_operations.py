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


ASKED = {
    "sum": lambda u, v: u.sum(),
    "sum of rows": lambda u, v: u.sum(axis=1),
    "np.sum": lambda u, v: np.sum(u, axis=(0, 1)),
    "mean": lambda u, v: np.mean(u, axis=0, keepdims=True),
    "max": lambda u, v: u.max(),
    "std": lambda u, v: u.std(0),
    "argmax": lambda u, v: u.argmax(axis=1),
    "any": lambda u, v: u.any(),
    "cumsum": lambda u, v: u.cumsum(),
    "dot": lambda u, v: np.dot(u, v.T),
    "u.dot": lambda u, v: u.dot(v.T),
    "@": lambda u, v: u @ v.T,
    "sin": lambda u, v: np.sin(u),
    "maximum": lambda u, v: np.maximum(u, v[:1]),
    "where": lambda u, v: np.where(u > 1, u, v),
    "clip": lambda u, v: u.clip(0.3, 2.0),
    "copy": lambda u, v: u.copy(),
    "like": lambda u, v: np.zeros_like(u),
    "float32": lambda u, v: u.astype(np.float32),
    "int": lambda u, v: u.astype(int),
    "same": lambda u, v: u.astype(float, copy=False),
    "reshape": lambda u, v: u.reshape(3, -1),
    "T": lambda u, v: u.T,
    "diff": lambda u, v: np.diff(u, 0),
    "roll": lambda u, v: np.roll(u, 1),
    "round": lambda u, v: u.round(1),
    "view": lambda u, v: np.sqrt(u[1:]) + v[:1],
    "allclose": np.allclose,
    "repeat": lambda u, v: u.repeat(2),
    "trace": lambda u, v: np.trace(u),
}


def found_in_float32(ask):
    return ask is ASKED["float32"]


@pytest.mark.parametrize("policy", [None, pb.Binomial(2)], ids=str)
@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)
def test_what_is_asked_of_a_buffer_is_what_numpy_says(ask, policy):
    """The same value, in memory of its own or seen through; traced values can be written into it, and into what it was
    made of, and each shows where NumPy would show it."""

    def f(c):
        u, v = np.array(X * 3, like=c), np.array(X + 1, like=c)
        found, plain = ask(u, v), ask(X * 3, X + 1)
        assert np.asarray(pb.value(found)).tobytes() == np.asarray(plain).tobytes()
        assert np.asarray(pb.value(found)).dtype == np.asarray(plain).dtype
        if np.ndim(plain) and np.asarray(plain).dtype.kind == "f":
            u[0, 0] = c
            found[-1] = found[0] * c
            return np.sum(found * 2.0) + np.sum(u * v)
        return c * float(plain) if np.ndim(plain) == 0 else c * np.sum(plain)

    def at(c):
        u, v = X * 3, X + 1
        found = ask(u, v)
        if np.ndim(found) and np.asarray(found).dtype.kind == "f":
            u[0, 0] = c
            found[-1] = found[0] * c
            return np.sum(found * 2.0) + np.sum(u * v)
        return c * float(found) if np.ndim(found) == 0 else c * np.sum(found)

    value, gradient = pb.value_and_grad(f, policy=policy)(np.float64(0.7))
    assert value == at(np.float64(0.7))
    h, rtol = 1e-5, 2e-2 if found_in_float32(ask) else 1e-6
    np.testing.assert_allclose(gradient, (at(0.7 + h) - at(0.7 - h)) / (2 * h), rtol=rtol)


def test_what_is_written_to_goes_the_ordinary_way():
    def f(c):
        u, v, w = np.array(X * 3, like=c), np.array(X + 1, like=c), np.zeros(3, like=c)
        np.sum(u, 0, None, w)
        total = u.sum(0, None, np.zeros(3, like=c))
        np.add(u, v, v)
        np.maximum(u, 1.0, out=u)
        w[0] = total[0] * c
        return np.sum(w * w) + np.sum(v * c) + np.sum(u)

    w, v = (X * 3).sum(0), X * 3 + (X + 1)
    gradient = pb.grad(f)(0.7)
    np.testing.assert_allclose(gradient, 2 * 0.7 * w[0] ** 2 + np.sum(v))
