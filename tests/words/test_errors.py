"""Errors are values: they come back whole from another process."""

import pickle

import pytest

import pullback as pb
from pullback.words.errors import StructureError


@pytest.mark.parametrize(
    "error", [pb.BudgetError("too little", 30), pb.ConvergenceError("too far", 0.5, 3), StructureError("another")]
)
def test_errors_come_back_from_another_process(error):
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - what was dumped just now
    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))
