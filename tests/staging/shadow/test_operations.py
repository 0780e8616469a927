"""When two operations say the same, and which plain value may take the place of another."""

import numpy as np
import pytest

from pullback.recording.tape import Tape
from pullback.staging.shadow.operations import (
    Constant,
    Operation,
    entering,
    enters_as,
    is_like,
    likeness,
    result_of,
    same,
)
from pullback.tracing.tracer import KINDS
from pullback.words.specs import carries_derivative

A = np.arange(6.0)


def test_a_constant_is_taken_whatever_it_holds_if_its_kind_is_the_same():
    known = Constant.of(A)
    assert known.admits(A * 2)
    for other in (A[::-1], A[:3], A.astype("f4"), A.reshape(2, 3), list(A), 1.0):
        assert not known.admits(other)
    assert Constant.of(1.0).admits(2.0)
    assert not Constant.of(1.0).admits(2)
    assert not Constant.of(1.0).admits(np.float64(2.0))
    assert not Constant.of(np.float32(1)).admits(np.float64(1))


def test_the_result_is_part_of_an_operation():
    def sum_of(a):
        return Operation(np.sum, (0,), {"axis": 0}, (1,), (result_of(a, "tracer"),))

    assert same(sum_of(A), sum_of(A + 1))
    assert not same(sum_of(A), sum_of(A[::2]))
    assert not same(sum_of(A), sum_of(A.astype("f4")))
    assert result_of(A, "tracer").array
    assert result_of(A, "tracer").dense
    assert not result_of(A[::2], "tracer").dense
    assert not result_of(A[0], "tracer").array


LEAVES = (
    np.zeros(3), np.zeros((3, 1)), np.zeros(3, "f4"), np.zeros(3, ">f8"), np.zeros(6)[::2], np.zeros(3, int), 1.0, 1,
    1j, True, None, "a", np.float64(1), np.float32(1), np.int64(1), np.complex64(1), np.zeros(()), np.longdouble(1),
)  # fmt: skip


@pytest.mark.parametrize("before", LEAVES, ids=repr)
@pytest.mark.parametrize("after", LEAVES, ids=repr)
def test_what_enters_again_is_told_as_what_enters(before, after):
    result, found = (entering(leaf) if carries_derivative(leaf) else None for leaf in (before, after))
    assert enters_as(result, after) == (result == found)


@pytest.mark.parametrize("given", [(1, 1.0, "a", None), ([1, 2], {"axis": (0, 1)}), (np.float64, np.dtype("f4"), ...)])
def test_a_likeness_is_like_its_own_alone(given):
    like = likeness(given, TAPE)
    assert is_like(like, given, TAPE)
    assert not is_like(like, [*given], TAPE)
    assert not is_like(like, (*given, 1), TAPE)
    for other in (True, 1, 2.0, -0.0, None, np.array(1.0), np.int64(1), slice(None)):
        assert not is_like(like, (other, *given[1:]), TAPE) or (type(other), other) == (type(given[0]), given[0])


@pytest.mark.parametrize("given", [np.ones(2), [np.ones(2)], {"a": object()}, slice(1), {1, 2}, lambda: 0])
def test_what_can_change_has_no_likeness(given):
    assert likeness((1, given), TAPE) is None


TAPE = Tape(1, KINDS)
