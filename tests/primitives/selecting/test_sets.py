"""``unique`` and the set operations gather from the first of equals."""

import numpy as np
from tests.primitives.gradients import same, weighted_by

import pullback as pb


# ----------------------------------------------------------------------------------------------------------------- sets
def test_unique_gathers_from_the_first_of_equals():
    x = np.array([3.0, 1.0, 3.0, 2.0, 1.0])
    same(pb.grad(weighted_by(np.unique, [1, 10, 100]))(x), [100, 1, 0, 10, 0])


def test_unique_keeps_named_tuples_and_plain_indices():
    def f(x):
        result = np.unique_all(x)
        assert type(result).__name__ == "UniqueAllResult"
        assert isinstance(result.indices, np.ndarray)
        values, counts = np.unique_counts(x)
        return np.sum(result.values * values * counts)

    same(pb.grad(f)(np.array([3.0, 1.0, 3.0])), [12.0, 2.0, 0.0])


def test_unique_of_zeros_of_both_signs_has_numpys_bits():
    x = np.array([0.0, -0.0, 1.0, -0.0])
    out, pull = pb.vjp(np.unique, x)
    np.testing.assert_array_equal(np.signbit(out), np.signbit(np.unique(x)))
    same(pull(np.array([5.0, 7.0]))[0], [5, 0, 7, 0])


def test_set_operations_gather_from_their_operands():
    x, y = np.array([2.0, 1.0, 4.0]), np.array([4.0, 3.0])
    both = pb.grad(lambda x, y: np.sum(np.union1d(x, y) * np.array([1, 10, 100, 1000])), argnums=(0, 1))(x, y)
    same(both[0], [10, 1, 1000])
    same(both[1], [0, 100])
    both = pb.grad(lambda x, y: np.sum(np.intersect1d(x, y)), argnums=(0, 1))(x, y)
    same(both[0], [0, 0, 1])
    same(both[1], [0, 0])
    same(pb.grad(weighted_by(lambda x: np.setdiff1d(x, y), [1, 10]))(x), [10, 1, 0])
    same(pb.grad(weighted_by(lambda y: np.setxor1d(x, y), [1, 10, 100]))(y), [0, 100])
