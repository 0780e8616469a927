"""``np.polyfit`` where the fit is not unique, and what it gives besides."""

import numpy as np
import pytest

import pullback as pb
from pullback.words.errors import NotDifferentiableError

GRID = np.array([0.0, 1.0, 3.0, 4.0])
HEIGHT = np.array([1.0, 3.0, -1.0, 0.0])  # slopes 2, -2, 1


def test_polyfit_warns_and_is_refused_where_the_fit_is_not_unique():
    x, y = np.array([1.0, 1.0, 2.0]), np.array([1.0, 2.0, 3.0])
    with pytest.warns(np.exceptions.RankWarning, match="poorly conditioned"):
        out, pull = pb.vjp(lambda y: np.polyfit(x, y, 2), y)
    np.testing.assert_allclose(pull(np.ones(3))[0] @ y, np.sum(out), rtol=1e-12)  # linear in y all the same
    with (
        pytest.warns(np.exceptions.RankWarning, match="poorly conditioned"),
        pytest.raises(NotDifferentiableError, match="the rank 2, so that the fit jumps"),
    ):
        pb.grad(lambda x: np.sum(np.polyfit(x, y, 2)))(x)


def test_the_rank_of_a_full_fit_is_plain():
    def fit(y):
        c, residuals, rank, _, rcond = np.polyfit(GRID, y, 1, full=True)
        assert type(rank) is np.int32
        assert type(rcond) is np.float64
        return np.sum(c) + residuals[0]

    assert np.isfinite(pb.grad(fit)(HEIGHT)).all()
    with pytest.raises(ValueError, match="more points than coefficients"):
        pb.vjp(lambda y: np.polyfit(GRID, y, 3, cov=True), HEIGHT)
