"""Where decompositions are not unique: coinciding and vanishing values, the triangle that is not read, bases of a
space, phases."""

import numpy as np
import pytest

import pullback as pb
from pullback_linalg.eigen import eig, matching

RNG = np.random.default_rng(3)
I3 = np.eye(3)
Q = np.linalg.qr(RNG.normal(size=(3, 3)))[0]
U, V = np.linalg.qr(RNG.normal(size=(4, 4)))[0], np.linalg.qr(RNG.normal(size=(4, 4)))[0]
G = RNG.normal(size=(3, 3))
M = RNG.normal(size=(3, 3))
UNITARY = np.linalg.qr(RNG.normal(size=(3, 3)) + 1j * RNG.normal(size=(3, 3)))[0]


def hermitian_part(x):
    return (x + x.conj().swapaxes(-1, -2)) / 2


# ----------------------------------------------------------------------------------------------------------------- eigh
@pytest.mark.parametrize("f", [np.linalg.eigvalsh, lambda a: np.linalg.eigh(a)[0]], ids=["eigvalsh", "eigh"])
@pytest.mark.parametrize(
    "a", [I3, I3 + 0j, Q @ np.diag([1.0, 1.0, 2.0]) @ Q.T, np.zeros((3, 3)), np.eye(3, dtype=np.float32)]
)
def test_functions_of_eigenvalues_alone_are_finite_where_these_coincide(f, a):
    assert np.allclose(pb.grad(lambda a: np.sum(f(a)))(a), I3)
    assert np.allclose(pb.grad(lambda a: np.sum(f(a) ** 2))(a), 2 * a, atol=1e-6)
    largest = pb.grad(lambda a: np.max(f(a)))(
        a
    )  # an element of the subdifferential: a density matrix of the largest eigenvalue's space
    assert np.isclose(np.trace(largest), 1) and np.isclose(np.sum(largest * a.T), np.max(f(a)))


@pytest.mark.parametrize("ct", [np.ones(3), np.full(3, -2.0)])
def test_a_cotangent_of_zeros_for_the_vectors_does_nothing(ct):
    _, pull = pb.vjp(np.linalg.eigh, I3)
    assert np.array_equal(
        pull(np.linalg.eigh(I3)._replace(eigenvalues=ct, eigenvectors=np.zeros((3, 3))))[0], np.diag(ct)
    )


def test_vectors_of_coinciding_values_give_nan_and_never_a_number():
    """With the same cotangents f may be <G, exp(A)> or a constant: see pullback_linalg.gauge."""

    def exponential(a):
        w, v = np.linalg.eigh(a)
        return np.sum(G * ((v * np.exp(w)) @ v.T))

    def itself(a):
        w, v = np.linalg.eigh(a)
        return np.sum(G * ((v * w) @ v.T))

    for a in (I3, Q @ np.diag([1.0, 1.0, 2.0]) @ Q.T):
        assert np.isnan(pb.grad(exponential)(a)).any()
        assert np.isnan(pb.grad(lambda a: np.linalg.eigh(a)[1][0, 0])(a)).any()
    assert np.isnan(pb.grad(itself)(np.zeros((3, 3)))).any()  # the cotangent of the vectors is zero: G @ v * 0


@pytest.mark.parametrize("basis", [I3, Q, UNITARY], ids=["diagonal", "real", "complex"])
def test_vectors_of_single_values_are_right_beside_coinciding_ones(basis):
    a = hermitian_part(basis @ np.diag([1.0, 1.0, 2.0]) @ basis.conj().T)
    g = hermitian_part(M.astype(a.dtype))

    def f(a):
        w, v = np.linalg.eigh(hermitian_part(a))
        return np.sum(g * (v[:, 2:] @ v[:, 2:].conj().T).T).real + np.sum(w**2)

    # dP = (1 - P) da P / (2 - 1) + its adjoint, for the projector P on the single eigenvector
    p = basis[:, 2:] @ basis[:, 2:].conj().T
    expected = (I3 - p) @ g @ p + p @ g @ (I3 - p) + 2 * a
    assert np.allclose(pb.grad(f)(a), expected.T, atol=1e-9)


@pytest.mark.parametrize("f", [np.linalg.eigh, np.linalg.eigvalsh], ids=["eigh", "eigvalsh"])
@pytest.mark.parametrize("uplo", ["L", "U", "l", "u"])
def test_the_cotangent_is_hermitian_or_stands_in_the_triangle_that_is_read(f, uplo):
    s = hermitian_part(M + 1j * G)
    mask = np.tri(3, k=-1, dtype=bool) if uplo in "Uu" else np.tri(3, k=-1, dtype=bool).T
    half = np.where(mask, np.nan, s)

    def loss(a):
        out = f(a, uplo)
        return np.sum(np.sin(out)) if not isinstance(out, tuple) else np.sum(np.sin(out[0]) + np.abs(out[1]) ** 2)

    given = pb.grad(loss)(s)
    assert np.allclose(given, given.conj().T)
    assert np.array_equal(pb.grad(loss)(half), in_one_triangle(given, uplo in "Ll"))
    pb.testing.check_grads(loss, (np.where(mask, 0.0, s),), order=2)


def in_one_triangle(g, lower):
    return np.tril(g) + np.tril(g.conj().T, -1) if lower else np.triu(g) + np.triu(g.conj().T, 1)


def test_a_matrix_of_which_one_triangle_is_filled_has_the_whole_gradient():
    """As the usual quaternion of a rotation is found (Bar-Itzhack, 2000)."""

    def quaternion(angle):
        c, s = np.cos(angle), np.sin(angle)
        k = pb.numpy.array([[c - 1, 0, 0, 0], [0, 1 - c, 0, 0], [0, 0, 1 - c - c, 0], [0, 0, s + s, c + c + 1]]) / 3
        v = np.linalg.eigh(k)[1][:, -1]
        return (np.abs(v) / np.sqrt(np.sum(v * v)))[2:]

    for angle in (0.3, 1.2):
        pb.testing.check_grads(quaternion, (angle,), order=2)
        assert np.allclose(pb.jacobian(quaternion)(angle), [np.cos(angle / 2) / 2, -np.sin(angle / 2) / 2])


def test_a_matrix_that_is_symmetric_but_for_rounding_keeps_the_symmetric_convention():
    s = hermitian_part(M)
    s[0, 1] = np.nextafter(s[0, 1], 9.0)
    given = pb.grad(lambda a: np.sum(np.linalg.eigvalsh(a) ** 3))(s)
    assert np.allclose(given, given.T)


def test_a_wrong_uplo_raises_as_in_numpy():
    with pytest.raises(ValueError, match="UPLO argument must be 'L' or 'U'"):
        pb.grad(lambda a: np.linalg.eigvalsh(a, "x")[0])(I3)


def test_the_phase_is_that_of_numpy_even_where_its_component_is_tiny():
    """Block by block, the first component of the last vector is 1e-12: a function without a phase must not divide by
    it."""
    a = np.diag([1.0, 2.0, 4.0]).astype(complex)
    a[1, 2], a[2, 1] = 0.3j, -0.3j
    a[0, 1] = a[1, 0] = 1e-12

    def f(a):
        v = np.linalg.eigh(hermitian_part(a))[1]
        return np.sum(G * np.abs(v) ** 2)

    pb.testing.check_grads(f, (a,), order=1)
    assert np.max(np.abs(pb.grad(f)(a))) < 100


# ------------------------------------------------------------------------------------------------------------------ eig
@pytest.mark.parametrize("a", [I3, I3 + 0j, np.diag([2.0, 1.0, 1.0])])
def test_functions_of_eigvals_are_finite_where_these_coincide_with_all_vectors(a):
    assert np.allclose(pb.grad(lambda a: np.sum(np.linalg.eigvals(a)).real)(a), I3)
    assert np.allclose(pb.grad(lambda a: np.sum(np.linalg.eig(a)[0] ** 2).real)(a), 2 * a)
    assert np.isnan(pb.grad(lambda a: np.linalg.eig(a)[1][1, 1].real)(a)).any()


def test_a_defective_matrix_gives_no_small_number():
    """The eigenvalues 1 +- sqrt(e) of [[1, 1], [e, 1]] have an infinite slope at e = 0."""
    _, pull = pb.vjp(np.linalg.eigvals, np.array([[1.0, 1.0], [0.0, 1.0]]))
    assert not np.abs(pull(np.array([1.0, 0.0]))[0][1, 0]) < 1e12
    with pytest.raises(
        pb.NotDifferentiableError, match="the eigenvectors are linearly dependent"
    ):  # LAPACK's are so within rounding only
        eig.rules["a"][0].fn((np.ones(2), None), np.zeros(2), np.array([[1.0, 1.0], [0.0, 0.0]]))


def test_eigenvalues_are_matched_each_once():
    w = np.array([[1.0, 2.0, 3.0], [5.0, 5.0, 4.0]])
    assert np.array_equal(matching(w, w[:, [2, 0, 1]]), [[1, 2, 0], [4, 5, 3]])
    assert sorted(matching(w[1:], w[1:])[0]) == [0, 1, 2]


# ------------------------------------------------------------------------------------------------------------------ svd
SINGULAR_VALUES = {
    "svdvals": np.linalg.svdvals,
    "svd": lambda a: np.linalg.svd(a)[1],
    "compute_uv=False": lambda a: np.linalg.svd(a, compute_uv=False),
    "hermitian": lambda a: np.linalg.svd(a, hermitian=True)[1],
}


@pytest.mark.parametrize("values", SINGULAR_VALUES.values(), ids=SINGULAR_VALUES)
@pytest.mark.parametrize("a", [I3, I3 + 0j, np.eye(3, dtype=np.float32)])
def test_functions_of_singular_values_alone_are_finite_at_the_identity(values, a):
    assert np.allclose(pb.grad(lambda a: np.sum(values(a)))(a), I3)
    assert np.allclose(pb.grad(lambda a: np.sum(values(a) ** 2))(a), 2 * I3)


@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4)])
def test_singular_values_of_zero(shape):
    a = np.zeros(shape)
    assert np.array_equal(pb.grad(lambda a: np.sum(np.linalg.svdvals(a) ** 2))(a), a)
    nuclear = pb.grad(lambda a: np.sum(np.linalg.svdvals(a)))(a)
    assert np.allclose(np.linalg.svdvals(nuclear), 1)  # UV^T, a subgradient of the nuclear norm


def test_a_cotangent_of_zeros_for_the_singular_vectors_does_nothing():
    u, _, vh = np.linalg.svd(I3)
    _, pull = pb.vjp(np.linalg.svd, I3)
    assert np.allclose(pull(np.linalg.svd(I3)._replace(U=0 * u, S=np.ones(3), Vh=0 * vh))[0], I3)


def test_a_product_of_factors_with_vanishing_values_is_never_a_wrong_number():
    """u s vh is the matrix itself and its gradient g; where two values vanish, the vectors' cotangents do too, and
    do not tell g."""
    g = RNG.normal(size=(4, 4))

    def itself(a):
        u, s, vh = np.linalg.svd(a, full_matrices=False)
        return np.sum(g[: a.shape[0], : a.shape[1]] * ((u * s) @ vh))

    assert np.allclose(pb.grad(itself)(U @ np.diag([4.0, 3.0, 2.0, 1.0]) @ V.T), g)
    assert np.allclose(pb.grad(itself)(U @ np.diag([4.0, 3.0, 2.0, 0.0]) @ V.T), g)  # of square matrices one may vanish
    singular = np.diag([1.0, 2.0, 0.0, 0.0])
    for a in (
        np.zeros((4, 4)),
        singular,
        U @ singular @ V.T,
        singular[:, [0, 1, 3]],
        U @ singular[:, :3],
        V[:3, :3] @ singular[:3],
    ):
        assert np.isnan(pb.grad(itself)(a)).any()


def test_vectors_of_single_values_are_right_beside_vanishing_ones():
    a = U[:, :2] @ np.diag([3.0, 2.0]) @ V[:, :2].T  # rank two of four

    def f(a):
        u, s, vh = np.linalg.svd(a)
        return np.sum(M[0, 0] * (u[:, :1] * s[0]) @ vh[:1]) + np.sin(s[1])

    def smooth(a):  # by the eigenvectors of a^T a, differentiated by differences
        u, s, vh = np.linalg.svd(a)
        return M[0, 0] * s[0] * np.sum(u[:, 0]) * np.sum(vh[0]) + np.sin(s[1])

    given = pb.grad(f)(a)
    direction = RNG.normal(size=(4, 4))
    step = 1e-5
    assert np.isclose(
        np.sum(given * direction), (smooth(a + step * direction) - smooth(a - step * direction)) / (2 * step), rtol=1e-6
    )


@pytest.mark.parametrize(
    "a", [RNG.normal(size=(5, 2)), RNG.normal(size=(2, 5)), RNG.normal(size=(3, 2)) + 1j * RNG.normal(size=(3, 2))]
)
def test_a_basis_of_the_null_space_is_refused_and_its_projector_is_not(a):
    def last(a):
        u, s, vh = np.linalg.svd(a)
        return u[:, len(s) :] if a.shape[0] > a.shape[1] else vh[len(s) :].T

    def projector(a):
        x = last(a)
        return x @ x.conj().T

    def some(a):
        x = last(a)
        return np.sum(np.arange(x.shape[0])[:, None] * x).real + np.sum(x[0]).imag

    with pytest.raises(
        pb.NotDifferentiableError, match=r"past the singular values is any basis of its space.*full_matrices=False"
    ):
        pb.grad(some)(a)
    pb.testing.check_grads(projector, (a,), order=2)


# ------------------------------------------------------------------------------------------------------------- cholesky
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.complex64])
def test_cholesky_does_not_read_the_other_triangle(upper, dtype):
    p = (M @ M.T + I3 + (1j * (G - G.T) / 9 if dtype is np.complex64 else 0)).astype(dtype)
    half = np.where(np.tri(3, k=-1, dtype=bool) if upper else np.tri(3, k=-1, dtype=bool).T, np.nan, p)

    def f(a):
        return np.sum(np.abs(np.linalg.cholesky(a, upper=upper)) ** 4)

    given = pb.grad(f)(p)
    assert given.dtype == dtype
    assert np.allclose(given, given.conj().T, rtol=1e-5)
    assert np.array_equal(pb.grad(f)(half), in_one_triangle(given, not upper))


def test_cholesky_gives_the_symmetric_convention():
    """log det by its factor has the gradient a^-1, in both triangles."""
    p = M @ M.T + I3
    given = pb.grad(lambda a: 2 * np.sum(np.log(np.diagonal(np.linalg.cholesky(a)))))(p)
    assert np.allclose(given, np.linalg.inv(p))


def test_cholesky_of_an_indefinite_matrix_raises_as_in_numpy():
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        pb.grad(lambda a: np.sum(np.linalg.cholesky(a)))(-I3)


# ------------------------------------------------------------------------------------------------------------------- qr
@pytest.mark.parametrize("mode", ["reduced", "complete", "r"])
def test_qr_of_dependent_columns_has_no_derivative(mode):
    a = np.array([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]])
    with pytest.raises(pb.NotDifferentiableError, match=r"numpy\.linalg\.qr of a matrix whose columns are dependent"):
        pb.grad(lambda a: np.sum(np.linalg.qr(a, mode)[0]))(a)


def test_the_last_columns_of_a_complete_q_where_the_matrix_is_triangular_already():
    a = np.array([[2.0, 1.0], [0.0, 3.0], [0.0, 0.0], [0.0, 0.0]])

    def last(a):
        return np.linalg.qr(a, "complete").Q[:, 2:]

    def weighted(a, weight):
        x = last(a)
        return np.sum(weight * (x @ x.T))

    assert np.allclose(pb.grad(weighted)(a, np.diag([1.0, 2, 3, 4])), 0)
    skewed = np.arange(16.0).reshape(4, 4) + np.arange(4) ** 2
    expected = -2 * hermitian_part(skewed)[2:, :2] @ np.linalg.inv(a[:2]).T
    given = pb.grad(weighted)(a, skewed)
    assert np.allclose(given[:2], 0) and np.allclose(given[2:], expected)
    with pytest.raises(pb.NotDifferentiableError, match=r"mode='complete'.*any basis of its space"):
        pb.grad(lambda a: np.sum(skewed[:, :2] * last(a)))(a)
    with pytest.raises(
        pb.NotDifferentiableError, match="mode='raw' of a matrix with a column that is triangular already"
    ):
        pb.grad(lambda a: np.sum(np.linalg.qr(a, "raw")[0]))(a)


def test_qr_of_a_wide_matrix_of_one_row_and_of_a_column():
    row, column = np.array([[3.0, 4.0]]), np.array([[3.0], [4.0]])
    assert np.allclose(pb.grad(lambda a: np.sum(np.linalg.qr(a, "raw")[0]))(row), 1)
    assert np.allclose(pb.grad(lambda a: np.sum(np.linalg.qr(a).R ** 2))(row), 2 * row)
    assert np.allclose(pb.grad(lambda a: np.linalg.qr(a).R[0, 0])(column), -column / 5)


def test_an_unknown_mode_raises_as_in_numpy():
    with pytest.raises(ValueError, match="Unrecognized mode 'no'"):
        pb.grad(lambda a: np.sum(np.linalg.qr(a, "no")[0]))(I3)
