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


# -------------------------------------------------------------------------------------------------------------- dtypes
READ_AS_REAL = {
    "prod": lambda z, dtype: np.prod(z, axis=0, dtype=dtype),
    "prod where": lambda z, dtype: np.prod(z, axis=0, dtype=dtype, initial=2, where=[True, False, True]),
    "cumprod": lambda z, dtype: np.cumprod(z, dtype=dtype),
    "nanprod": lambda z, dtype: np.nanprod(z, dtype=dtype),
    "cumulative_prod": lambda z, dtype: np.cumulative_prod(z, axis=1, dtype=dtype),
    "divide.reduce": lambda z, dtype: np.divide.reduce(z, dtype=dtype),
    "divide.accumulate": lambda z, dtype: np.divide.accumulate(z, axis=1, dtype=dtype),
    "hypot.reduce": lambda z, dtype: np.hypot.reduce(z.real, axis=1, dtype=dtype),
    "fmax.reduce": lambda z, dtype: np.fmax.reduce(z, axis=1, dtype=dtype),
    "maximum.accumulate": lambda z, dtype: np.maximum.accumulate(z, axis=1, dtype=dtype),
    "multiply.reduceat": lambda z, dtype: np.multiply.reduceat(z, [1, 0], axis=1, dtype=dtype),
    "logaddexp.reduce": lambda z, dtype: np.logaddexp.reduce(z.real, dtype=dtype),
}


@pytest.mark.parametrize("name", READ_AS_REAL)
@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
def test_a_loop_of_reals_sees_no_imaginary_part(name):
    fold, z = READ_AS_REAL[name], np.array([[0.7 + 1j, -1.3 + 2j, 1.9 - 1j], [1.1 - 3j, 0.4 + 1j, -0.8 + 0.5j]])
    weighted = weighted_by(lambda z: fold(z, float).ravel(), np.cos(np.arange(fold(z, float).size)))
    got = pb.grad(weighted)(z)
    np.testing.assert_array_equal(got.imag, 0)
    np.testing.assert_array_equal(got.real, pb.grad(lambda x: weighted(x + 0j))(z.real))
    pb.testing.check_grads(weighted, (z,), order=1)


@pytest.mark.parametrize("ufunc", [np.fmax, np.fmin, np.maximum, np.minimum])
def test_an_extremum_is_found_among_the_elements_as_they_are_rounded(ufunc):
    same(pb.grad(lambda x: ufunc.reduce(x, dtype=np.float32))(np.array([0.3, 0.3 + 1e-12])), [0.5, 0.5])
    assert np.sum(pb.grad(lambda x: ufunc.reduceat(x, [0], dtype=np.float32)[0])(np.array([0.1, 0.7]))) == 1


def test_a_segment_of_one_element_is_that_element():
    x = np.array([-0.5, 2.0, -3.0])
    value, slope = pb.value_and_grad(lambda x: np.sum(np.hypot.reduceat(x, [0, 1, 0])))(x)
    assert value == np.sum(np.hypot.reduceat(x, [0, 1, 0]))
    same(slope[:1], [1 + x[0] / np.linalg.norm(x)])


@pytest.mark.parametrize("fold", [np.prod, np.multiply.reduce, np.maximum.reduce, np.fmax.reduce])
def test_a_list_beside_a_traced_out_is_cast_too(fold):
    def f(x):
        out = np.zeros_like(x)
        fold([[1.0, 2.0], [3.0, 0.5]], axis=0, dtype=np.float32, out=out)
        return np.sum(out * x)

    same(pb.grad(f)(np.ones(2)), fold([[1.0, 2.0], [3.0, 0.5]], axis=0))
