"""Drawn loops that count in their state: one value and one gradient under every policy and staging, and the plain
loop's last state."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.programs.counting_bodies import START, Counting, counting

import pullback as pb
from pullback.staging.generated.shelf import forget
from pullback.testing.comparing.bits import same_bits
from pullback.words.structures import flatten

POLICIES = (pb.SaveAll(), pb.Binomial(3), pb.Recompute(), pb.Periodic(9), pb.Budget(40_000))
C = np.array([0.4, -0.2, 0.9, 1.3])


def require_one_answer(program: Counting) -> None:
    """All that is promised of one program."""
    forget()  # all of them are one body to the shelf of stages, which takes so many kinds of steps
    with np.errstate(all="ignore"):
        plain = flatten(program.last(START, C))[0]
        with pb.using(staging="off"):
            wanted = pb.value_and_grad(program.value, (0, 1))(START, C)
        total = sum(np.sum(np.tanh(leaf)) for leaf in plain)
        if not (program.gives and program.form == "scan"):
            alike = np.allclose(wanted[0], total, rtol=1e-12, atol=0.0, equal_nan=True)
            assert alike, f"{program.text}: {wanted[0]}, not {total}"
        for policy in POLICIES:
            for staging in ("auto", "auto", "numpy"):
                with pb.using(policy, staging=staging):
                    found = pb.value_and_grad(program.value, (0, 1))(START, C)
                assert same_bits(found, wanted), f"{policy}, {staging}: {program}\n{program.text}\n{found}\n{wanted}"


@settings(max_examples=12, derandomize=True, deadline=None)
@given(st.integers(0, 2**64))
def test_drawn_counting_loops(number):
    require_one_answer(counting(number))


@pytest.mark.slow
@settings(max_examples=2000, deadline=None)
@given(st.integers(0, 2**64))
def test_many_drawn_counting_loops(number):
    require_one_answer(counting(number))
