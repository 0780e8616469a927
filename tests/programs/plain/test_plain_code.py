"""Policies on plain code that marks no steps, or marks some and not all."""

import warnings

import numpy as np
import pytest
from tests.programs.policies import UNTOLD, same_everywhere

import pullback as pb

pytestmark = pytest.mark.filterwarnings(UNTOLD)


def test_unmarked_steps():
    def f(x):
        u, scale = x * 1, x * x
        for k in range(17):
            u = np.sin(u) * scale + 0.1 * k
        return np.sum(u * x)

    same_everywhere(f)


def test_two_marked_loops_and_code_between():
    def f(x):
        u = x * x
        for _ in pb.steps(7):
            u = np.sin(u) + x
        v = np.exp(u * 0.1)
        v[0] = u[1]
        for k in pb.steps(5):
            v = np.cos(v) * u + k
        return np.sum(v * u)

    same_everywhere(f)


@pytest.mark.parametrize("left_at", [None, 35])
def test_large_constants_are_told_of(left_at):
    def f(x):
        u = x * 1
        for k in pb.steps(40):
            if k == left_at:
                break
            u = u * np.full(5000, 1.0 + 0.001 * k) + np.sin(x)
        return np.sum(u)

    x = np.ones(5000)
    with pytest.warns(
        pb.PolicyWarning,
        match=r"Binomial.* of plain arrays that the steps read.*test_plain_code\.py:\d+.*fori_loop or scan",
    ):
        gradient = pb.grad(f, policy=pb.Binomial(3))(x)
    assert gradient.tobytes() == pb.grad(f)(x).tobytes()


def test_a_warning_that_is_an_error_is_raised_where_the_loop_was_left_by_break():
    def f(x):
        u = x * 1
        for k in pb.steps(40):
            if k == 35:
                break
            u = u * np.full(5000, 1.0 + 0.001 * k)
        return np.sum(u)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(pb.PolicyWarning, match="of plain arrays that the steps read"):
            pb.grad(f, policy=pb.Binomial(3))(np.ones(5000))
