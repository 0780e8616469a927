"""Determinants of matrices that are singular, empty, out of range or not finite."""

import numpy as np
import pytest

import pullback as pb

RNG = np.random.default_rng(11)


def of_rank(m, n, rank, dtype="f8"):
    factors = RNG.normal(size=(2, m, rank)), RNG.normal(size=(2, rank, n))
    left, right = (f[0] + 1j * f[1] if dtype == "c16" else f[0] for f in factors)
    return left @ right


A = RNG.normal(size=(3, 3)) + 2 * np.eye(3)


def leibniz(a):
    return (
        a[0, 0] * (a[1, 1] * a[2, 2] - a[1, 2] * a[2, 1])
        - a[0, 1] * (a[1, 0] * a[2, 2] - a[1, 2] * a[2, 0])
        + a[0, 2] * (a[1, 0] * a[2, 1] - a[1, 1] * a[2, 0])
    )


SINGULAR = {
    "rank 2": of_rank(3, 3, 2), "rank 2 but for rounding": of_rank(3, 3, 2) + 1e-13 * A,
    "nearly rank 2": of_rank(3, 3, 2) + 1e-9 * A,
    "rank 1": np.ones((3, 3)), "rank 0": np.zeros((3, 3)), "diagonal of rank 2": np.diag([1.0, 2, 0]),
    "identity": np.eye(3),
    "complex of rank 2": of_rank(3, 3, 2, "c16"), "complex of rank 1": of_rank(3, 3, 1, "c16"), "regular": A,
}  # fmt: skip


@pytest.mark.parametrize("a", SINGULAR.values(), ids=SINGULAR)
def test_a_singular_matrix_has_the_cofactors_of_the_polynomial_and_their_derivative(a):
    def first(f):
        return pb.grad(lambda a: np.real(f(a)))(a)

    def second(f):
        return pb.grad(lambda a: np.sum(np.real(A * pb.grad(lambda a: np.real(f(a)))(a))))(a)

    assert np.allclose(first(np.linalg.det), first(leibniz), rtol=1e-11, atol=1e-13)
    assert np.allclose(second(np.linalg.det), second(leibniz), rtol=1e-8, atol=1e-10)


def test_the_determinant_of_a_singular_matrix_has_its_cofactors():
    assert np.allclose(pb.grad(np.linalg.det)(np.array([[1.0, 2], [2, 4]])), [[4, -2], [-2, 1]], rtol=1e-14)
    third = of_rank(4, 4, 2)
    assert np.allclose(pb.grad(np.linalg.det)(third), 0, atol=1e-13)
    mixed = np.stack([np.array([[1.0, 2], [2, 4]]), np.eye(2)])
    assert np.allclose(pb.grad(lambda a: np.sum(np.linalg.det(a)))(mixed), [[[4, -2], [-2, 1]], [[1, 0], [0, 1]]])


def test_determinants_of_no_and_of_one_element():
    assert pb.value_and_grad(np.linalg.det)(np.zeros((0, 0)))[0] == 1
    assert np.array_equal(pb.grad(np.linalg.det)(np.array([[0.0]])), [[1.0]])
    assert np.array_equal(pb.grad(np.linalg.det)(np.array([[2.0]])), [[1.0]])


def test_a_determinant_out_of_range_has_finite_cofactors():
    with np.errstate(over="ignore"):
        assert np.allclose(pb.grad(np.linalg.det)(np.diag([1e200, 1e200])), np.diag([1e200, 1e200]))
    assert np.allclose(pb.grad(np.linalg.det)(np.diag([1e-200, 1e-200])) * 1e200, np.eye(2))


def test_a_matrix_that_is_not_finite_spoils_its_own_cofactors_only():
    a = np.stack([np.eye(2), np.full((2, 2), np.nan)])
    with np.errstate(all="ignore"):
        given = pb.grad(lambda a: np.sum(np.linalg.det(a)))(a)
    assert np.array_equal(given[0], np.eye(2)) and np.isnan(given[1]).all()


def test_slogdet_of_a_singular_matrix_has_an_infinite_slope_that_a_mask_hides():
    a = np.stack([np.array([[1.0, 2], [2, 4]]), np.eye(2)])
    slope = pb.grad(lambda a: np.sum(np.linalg.slogdet(a).logabsdet[0]))(a)
    assert np.array_equal(slope[0], [[np.inf, -np.inf], [-np.inf, np.inf]])
    masked = pb.grad(lambda a: np.sum(np.where([False, True], np.linalg.slogdet(a)[1], 0)))(a)
    assert np.array_equal(masked, [np.zeros((2, 2)), np.eye(2)])


def test_the_sign_of_a_real_determinant_has_no_slope():
    assert np.array_equal(pb.grad(lambda a: np.linalg.slogdet(a).sign)(A), np.zeros((3, 3)))
