"""Sorting of ties, NaN and complex numbers, along any axis and in place."""

import numpy as np
import pytest
from tests.primitives.gradients import same, weighted_by

import pullback as pb

NAN, INF = np.nan, np.inf
UP = np.arange(1.0, 10.0)


# -------------------------------------------------------------------------------------------------------------- sorting
@pytest.mark.parametrize("kind", [None, "quicksort", "heapsort", "stable"])
def test_sort_of_ties_keeps_their_order_whatever_the_kind(kind):
    x = np.array([2.0, 1.0, 2.0, 1.0, 2.0])
    same(pb.grad(weighted_by(lambda x: np.sort(x, kind=kind), [1, 2, 3, 4, 5]))(x), [3, 1, 4, 2, 5])


def test_sort_of_many_ties_is_stable():
    x = np.tile([3.0, 1.0, 2.0], 40)
    same(pb.grad(weighted_by(np.sort, np.arange(120)))(x), np.argsort(np.argsort(x, kind="stable")))


def test_partition_is_a_permutation():
    x = np.array([2.0, 1.0, 2.0, 0.0, 2.0])
    gradient = pb.grad(weighted_by(lambda x: np.partition(x, 2), [1, 2, 3, 4, 5]))(x)
    assert sorted(gradient) == [1, 2, 3, 4, 5]
    np.testing.assert_array_equal(x[np.argsort(gradient)], np.partition(x, 2))


def test_nan_stands_last_in_sort():
    same(pb.grad(weighted_by(np.sort, [1, 2, 3, 4]))(np.array([NAN, 2.0, NAN, 1.0])), [3, 2, 4, 1])


def test_sort_of_all_axes_and_of_one():
    x = np.array([[3.0, 1.0], [2.0, 0.0]])
    same(pb.grad(weighted_by(lambda x: np.sort(x, None), [1, 2, 3, 4]))(x), [[4, 2], [3, 1]])
    same(pb.grad(weighted_by(lambda x: np.sort(x, 0), [[1, 2], [3, 4]]))(x), [[3, 4], [1, 2]])


def test_complex_numbers_are_sorted_by_real_then_imaginary_part():
    z = np.array([1 + 2j, 0 + 5j, 1 - 1j])
    same(pb.grad(lambda z: np.sum(np.sort(z).real * np.array([1, 2, 3])))(z), [3, 1, 2], np.complex128)


def test_argsort_is_plain():
    same(pb.grad(lambda x: np.sum(x[np.argsort(x)] * np.array([1, 2, 3])))(np.array([3.0, 1.0, 2.0])), [3, 1, 2])


def test_sort_and_partition_of_an_array_are_in_place():
    def f(x):
        y = x * 1
        y.sort()
        z = -y
        z.partition(1)
        return np.sum(y * np.array([1, 10, 100])) + z[0]

    same(pb.grad(f)(np.array([3.0, 1.0, 2.0])), [99, 1, 10])


def test_fields_cannot_order_numbers():
    with pytest.raises(ValueError, match="Cannot specify order"):
        pb.grad(lambda x: np.sum(np.sort(x, order="a")))(UP)
