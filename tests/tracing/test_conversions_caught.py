"""Conversions that are refused, and a program that catches the error: it is told that it may have gone another way."""

import math
import warnings

import numpy as np
import pytest

import pullback as pb

X = np.array([1.0, 2.0, 3.0])
WHAT = r"caught an error of pullback, and went on: float\(\) of a tracer.*at .*test_conversions_caught\.py:\d+.*np\.exp"


def growth(t):
    try:
        return math.exp(t)
    except:  # noqa: E722 - as others have written
        return 2.0


def plain(x):
    return np.sum(x * x) * growth(x[0])


def marked(x):
    for _ in pb.steps(3):
        x = x * growth(x[0])
    return np.sum(x)


def looped(x):
    return np.sum(pb.fori_loop(0, 3, lambda _, u: u * growth(u[0]), x))


def nested(x):
    return np.sum(pb.grad(plain)(x))


WAYS = {
    "grad": lambda f: pb.grad(f)(X),
    "grad under a policy": lambda f: pb.grad(f, policy=pb.Recompute())(X),
    "vjp": lambda f: pb.vjp(f, X),
    "jvp": lambda f: pb.jvp(f, (X,), (X,)),
    "linearize": lambda f: pb.linearize(f, X),
    "hvp": lambda f: pb.hvp(f, (X,), (X,)),
    "staged": lambda f: pb.grad(pb.staged(f))(X),
}


CASES = [
    (f, way)
    for f in (plain, marked, looped, nested)
    for way in WAYS
    if (f, way) != (looped, "grad under a policy")  # its steps run plainly first: see the next test
]


@pytest.mark.parametrize(("f", "way"), CASES)
def test_a_program_that_goes_on_after_a_refusal_is_warned_of(f, way):
    with pytest.warns(pb.RefusalWarning, match=WHAT):
        WAYS[way](f)


def test_in_a_loop_the_step_that_is_run_again_differs_loudly():
    with pytest.warns(pb.RefusalWarning, match=WHAT), pytest.raises(pb.ReplayError):
        pb.grad(looped, policy=pb.Binomial(2))(X)


@pytest.mark.parametrize("staged", [False, True])
def test_each_call_of_a_gradient_that_is_called_often_says_so(staged):
    gradient = pb.grad(pb.staged(plain) if staged else plain)
    for _ in range(60):
        with pytest.warns(pb.RefusalWarning):
            gradient(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pb.grad(lambda x: np.sum(x * x))(X)


def test_an_error_after_that_says_what_was_refused():
    def failing(x):
        growth(x[0])
        raise ValueError("no sign change")

    with pytest.raises(ValueError, match="no sign change") as caught:
        pb.grad(failing)(X)
    [note] = caught.value.__notes__
    assert note.startswith("pullback: before that the program caught an error of pullback, and went on: float()")


def test_a_refusal_that_ends_the_program_is_raised_as_it_is():
    with pytest.raises(pb.ConversionError) as caught:
        pb.grad(lambda x: np.sum(x) * math.exp(x[0]))(X)
    assert "went on" not in str(caught.value)
