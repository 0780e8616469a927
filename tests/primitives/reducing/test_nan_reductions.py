"""Functions that pass over NaN: no part and gradient 0 for it, NumPy's warnings."""

import numpy as np
import pytest
from tests.primitives.gradients import same

import pullback as pb

NAN, INF = np.nan, np.inf
UP = np.arange(1.0, 10.0)


def test_fmax_and_nanmax_ignore_nan():
    x = np.array([NAN, 2.0, 2.0, 1.0])
    for function in (np.fmax.reduce, np.nanmax):
        same(pb.grad(function)(x), [0, 0.5, 0.5, 0])
    same(pb.grad(np.nanmin)(x), [0, 0, 0, 1])
    same(pb.grad(lambda x: np.nanmax(x, initial=5.0))(x), [0, 0, 0, 0])
    same(pb.grad(lambda x: np.nanmax(x, initial=2.0))(x), [0, 1 / 3, 1 / 3, 0])


# ------------------------------------------------------------------------------------------------------------------ NaN
@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (np.nansum, [1, 0, 1, 1]),
        (np.nanprod, [6, 0, 3, 2]),
        (np.nanmean, [1 / 3, 0, 1 / 3, 1 / 3]),
        (np.nanvar, [-2 / 3, 0, 0, 2 / 3]),
        (np.nanmax, [0, 0, 0, 1]),
        (np.nanmin, [1, 0, 0, 0]),
        (np.nanmedian, [0, 0, 1, 0]),
        (lambda x: np.sum(np.nancumsum(x)), [4, 0, 2, 1]),
        (lambda x: np.sum(np.nancumprod(x)), [10, 0, 4, 2]),
    ],
)
def test_nan_has_no_part_and_gradient_zero(function, expected):
    np.testing.assert_allclose(pb.grad(function)(np.array([1.0, NAN, 2.0, 3.0])), expected, rtol=1e-15)


def test_a_column_of_nan_gives_numpys_warning_and_gradient_zero():
    x = np.array([[1.0, NAN], [4.0, NAN]])
    warnings = {
        np.nanmean: "Mean of empty slice", np.nanmax: "All-NaN slice", np.nanmin: "All-NaN slice",
        np.nanmedian: "All-NaN slice",
        np.nanvar: "Degrees of freedom", np.nanstd: "Degrees of freedom",
    }  # fmt: skip
    for function, text in warnings.items():
        with pytest.warns(RuntimeWarning, match=text):
            out, pull = pb.vjp(lambda x, f=function: f(x, 0), x)
        assert np.isnan(out[1])
        gradient = pull(np.ones(2))[0]
        assert np.isfinite(gradient).all()
        same(gradient[:, 1], [0, 0])


def test_nanstd_of_equal_numbers_has_gradient_zero():
    same(pb.grad(np.nanstd)(np.array([2.0, NAN, 2.0])), [0, 0, 0])


def test_nan_functions_of_a_degree_too_few_are_nan_only_where_numbers_are():
    with pytest.warns(RuntimeWarning, match="Degrees of freedom"):
        _, pull = pb.vjp(lambda x: np.nanvar(x, ddof=1), np.array([2.0, NAN]))
    np.testing.assert_array_equal(pull(1.0)[0], [NAN, 0])


def test_ddof_and_correction_together_are_refused():
    with pytest.raises(ValueError, match="ddof=1 and correction=1 mean the same"):
        pb.grad(lambda x: np.nanvar(x, ddof=1, correction=1))(UP)
