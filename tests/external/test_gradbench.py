"""The tool for GradBench, judged by GradBench's own evaluations on small inputs, where ``PULLBACK_GRADBENCH`` names a
checkout with the C++ tool ``manual`` built, which knows the right values."""

import os
from pathlib import Path

import pytest
from benchmarks.gradbench.sessions import QUICK, measured

CHECKOUT = Path(os.environ.get("PULLBACK_GRADBENCH", "no-checkout"))

pytestmark = pytest.mark.skipif(not CHECKOUT.is_dir(), reason="PULLBACK_GRADBENCH names no checkout of GradBench")


@pytest.mark.slow
@pytest.mark.parametrize("evaluation", QUICK)
def test_an_evaluation_finds_every_answer_valid(evaluation):
    rows = measured(evaluation, "pullback", CHECKOUT.resolve(), QUICK[evaluation])
    assert rows
    assert [row["valid"] for row in rows] == ["yes"] * len(rows)
    if evaluation not in ("hello", "saddle", "particle"):
        assert all("ratio" in row for row in rows)  # both functions were asked
