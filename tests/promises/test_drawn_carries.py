"""Drawn loops that return what they hold elsewhere, and catch what NumPy warns of: NumPy's value, one gradient under
every policy and staging, and the same derivative in forward mode."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.programs.drawn_carries import START, Carrying, drawn

import pullback as pb
from pullback.staging.generated.shelf import forget

POLICIES = (pb.SaveAll(), pb.Binomial(2), pb.Recompute(), pb.Periodic(5), pb.Keep(np.tanh, outer=pb.Binomial(2)))
TANGENT = np.array([1.0, -0.5, 0.3, 0.7])


def require_one_answer(program: Carrying) -> None:
    """All that is promised of one program."""
    forget()  # all of them are one body to the shelf of stages, which takes so many kinds of steps
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        before = START.copy()
        value = np.asarray(program.value(before))
        assert np.array_equal(before, START), program
        with pb.using(staging="off"):
            found, gradient = pb.value_and_grad(program.value)(START)
        assert found.tobytes() == value.tobytes(), f"{program}: {found}, not {value}"
        tangent = pb.jvp(program.value, (START,), (TANGENT,))[1]
        assert np.isclose(tangent, gradient @ TANGENT, rtol=1e-9, atol=1e-12), f"{program}: {tangent}"
        product = pb.hvp(program.value, (START,), (TANGENT,))
        for policy in POLICIES[1:3]:
            again = pb.hvp(program.value, (START,), (TANGENT,), policy=policy)
            assert np.allclose(again, product, rtol=1e-10, atol=1e-13), f"hvp, {policy}: {program}: {again}, {product}"
        for policy in POLICIES:
            for staging in ("auto", "numpy"):
                with pb.using(policy, staging=staging):
                    again = pb.value_and_grad(program.value)(START)
                assert [x.tobytes() for x in again] == [found.tobytes(), gradient.tobytes()], f"{policy}: {program}"


@settings(max_examples=14, derandomize=True, deadline=None)
@given(st.integers(0, 2**64))
def test_drawn_carries(number):
    require_one_answer(drawn(number))


def test_a_state_of_another_layout_comes_after_steps_that_one_function_did():
    """A step that is entered by what no list of operations is known for, in a run that has waited open."""
    require_one_answer(drawn(50066))


@pytest.mark.slow
@settings(max_examples=3000, deadline=None)
@given(st.integers(0, 2**64))
def test_many_drawn_carries(number):
    require_one_answer(drawn(number))
