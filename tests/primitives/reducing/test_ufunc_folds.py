"""``reduce`` and ``accumulate`` where a convention decides, and where NumPy itself is wrong."""

import numpy as np
import pytest
from tests.primitives.gradients import same, weighted_by

import pullback as pb
from pullback.words.errors import NotDifferentiableError


@pytest.mark.parametrize("axis", [0, -1, None, ()])
def test_a_fold_of_a_number_is_the_number_along_any_axis(axis):
    assert pb.grad(lambda x: np.hypot.reduce(x, axis=axis))(np.float32(-0.7)) == -1
    assert pb.grad(lambda x: np.subtract.reduce(x, axis=axis))(np.array(0.7)) == 1


@pytest.mark.parametrize("ufunc", [np.subtract, np.divide, np.hypot, np.copysign])
@pytest.mark.parametrize(("shape", "axis"), [((0, 3), 1), ((0, 3), (0, 1)), ((2, 0, 3), -1), ((2, 0, 3), None)])
def test_folds_of_nothing_have_an_empty_gradient(ufunc, shape, axis):
    if ufunc is not np.hypot and axis in (None, (0, 1)):  # no identity
        axis = len(shape) - 1
    same(pb.grad(lambda x: np.sum(ufunc.reduce(x, axis=axis)))(np.zeros(shape)), np.zeros(shape))


NAN, INF = np.nan, np.inf
UP = np.arange(1.0, 10.0)


@pytest.mark.parametrize("ufunc", [np.maximum, np.fmax])
def test_a_running_maximum_goes_to_the_first_of_equals(ufunc):
    x = np.array([1.0, 3.0, 2.0, 3.0, 4.0])
    same(pb.grad(weighted_by(ufunc.accumulate, [1, 10, 100, 1000, 10000]))(x), [1, 1110, 0, 0, 10000])


def test_a_running_maximum_stays_at_the_first_nan_and_fmax_passes_over_it():
    x = np.array([1.0, NAN, 2.0, NAN])
    weights = [1, 10, 100, 1000]
    same(pb.grad(weighted_by(lambda x: np.nan_to_num(np.fmax.accumulate(x)), weights))(x), [11, 0, 1100, 0])
    _, pull = pb.vjp(np.maximum.accumulate, x)
    same(pull(np.array(weights, float))[0], [1, 1110, 0, 0])


# ---------------------------------------------------------------------------------------------------------------- folds
@pytest.mark.parametrize("ufunc", [np.power, np.arctan2])
def test_a_reduction_that_numpy_gets_wrong_is_refused_and_never_differentiated(ufunc):
    x = np.array([1.3, 0.7, 1.9, 1.1])
    right = np.allclose(ufunc.reduce(x), ufunc.accumulate(x)[-1], 1e-9)
    if right:
        np.testing.assert_allclose(pb.grad(ufunc.reduce)(x), pb.grad(lambda x: ufunc.accumulate(x)[-1])(x))
    else:
        with pytest.raises(
            NotDifferentiableError, match=rf"numpy.{ufunc.__name__}.reduce of this array .* take the last of"
        ):
            pb.grad(ufunc.reduce)(x)


def test_hypot_reduce_is_a_norm():
    same(pb.grad(np.hypot.reduce)(np.array([3.0, -4.0])), [0.6, -0.8])
    same(pb.grad(np.hypot.reduce)(np.zeros(3)), [0, 0, 0])
    same(pb.grad(np.hypot.reduce)(np.array([-2.0])), [-1])


def test_a_fold_that_cannot_be_reordered_has_one_axis():
    with pytest.raises(ValueError, match="not reorderable"):
        pb.grad(lambda x: np.subtract.reduce(x, axis=(0, 1), initial=1.0))(np.ones((2, 2)))
    with pytest.raises(ValueError, match="does not have an identity"):
        pb.grad(lambda x: np.fmax.reduce(x, where=x > 0))(np.ones(3))


def test_reductions_of_questions_are_plain():
    def f(x):
        assert isinstance(np.logical_or.accumulate(x > 1), np.ndarray)
        return np.sum(x) * np.logical_and.reduce(x) + np.logical_xor.reduce(x)

    same(pb.grad(f)(UP), np.ones(9))


def test_logaddexp_accumulate_of_large_numbers():
    same(pb.grad(lambda x: np.logaddexp.accumulate(x)[-1])(np.array([1000.0, 1000.0, -1000.0])), [0.5, 0.5, 0])
