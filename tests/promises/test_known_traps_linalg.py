"""One test for each trap that other systems fall into, by its number: the rows of linear algebra and of Fourier
transforms."""

import numpy as np
import pytest

import pullback as pb
from pullback.testing import check_grads
from pullback.words.errors import NotDifferentiableError

RNG = np.random.default_rng(4)
V, W = RNG.normal(size=3), RNG.normal(size=4)
M, S = RNG.normal(size=(3, 4)), RNG.normal(size=(2, 3, 3)) + 3 * np.eye(3)
A, C = S[0], S[1] + 1j * RNG.normal(size=(3, 3))
BOX = RNG.normal(size=(2, 3, 4))
INF = np.inf


def slope(f, *xs):
    """The gradient of the sum of ``f``: an array, or a tuple of them where there are several arguments."""
    with np.errstate(all="ignore"):
        found = pb.grad(lambda *a: np.sum(f(*a)), tuple(range(len(xs))))(*xs)
    return found[0] if len(xs) == 1 else found


def same(found, right, rtol=1e-13, atol=1e-14):
    np.testing.assert_allclose(found, right, rtol=rtol, atol=atol)
    assert np.shape(found) == np.shape(right)


def right_to_second_order(*rows):
    """Each row is a function and its arrays: NumPy's bits, and derivatives of two orders as of differences."""
    for f, *xs in rows:
        assert np.array_equal(pb.vjp(f, *xs)[0], f(*xs))
        check_grads(f, tuple(xs), order=2)


@pytest.mark.parametrize("ord", [None, 0.5, 1, 2, 3, INF, -INF, -1, 0])
def test_row_12_the_norm_of_zeros(ord):
    same(slope(lambda x: np.linalg.norm(x, ord), np.zeros(3)), np.zeros(3))
    same(slope(lambda x: np.linalg.norm(x, ord, axis=1, keepdims=True), np.zeros((2, 3))), np.zeros((2, 3)))


@pytest.mark.parametrize("ord", ["fro", "nuc", 1, -1, 2, -2, INF, -INF])
def test_row_12_the_norm_of_a_matrix_of_zeros(ord):
    same(slope(lambda x: np.linalg.norm(x, ord), np.zeros((2, 3))), np.zeros((2, 3)))


def test_row_25_einsum():
    same(slope(lambda a: np.einsum("ii->", a), A), np.eye(3))
    same(slope(lambda a: np.einsum("ii->i", a) * V, A), np.diag(V))
    right_to_second_order(
        (lambda x, y: np.einsum("...i,i", x, y), BOX, W),
        (lambda x, y: np.einsum("ij,jk->ik", x, y), M[:, :1], np.ones((1, 2))),
        (lambda x: np.einsum("ij,jk", x, x), A),
        (lambda x, y: np.einsum(x, [0, 1], y, [1], [0]), M, W),
        (lambda x, y: np.einsum(x, [0, 1], y, [1]), M, W),
        (lambda x, y, z: np.einsum("ij,jk,kl->il", x, y, z, optimize=True), M.T, A, M),
        (lambda x: np.einsum("ij->j", x), M),
        (lambda x, y: np.einsum("ij,j->i", x, y), M, W + 1j),
    )
    wide = slope(lambda x: np.einsum("ij,j->i", x, np.ones(4)), M.astype(np.float32))
    assert wide.dtype == np.float32


def test_row_26_matmul():
    right_to_second_order(
        (np.matmul, V, V),
        (np.matmul, V, BOX),
        (np.matmul, BOX, W),
        (np.matmul, BOX[:, None], RNG.normal(size=(5, 4, 2))),
    )
    gx, gy = slope(np.matmul, np.zeros((2, 0)), np.zeros((0, 3)))
    assert (gx.shape, gy.shape) == ((2, 0), (0, 3))


def test_row_27_products():
    many = RNG.normal(size=(2, 4, 3))
    right_to_second_order(
        (np.dot, BOX, many),
        (np.dot, np.array(1.5), M),
        (np.inner, M, BOX),
        (np.outer, M, A),
        (np.kron, M, A[:, :2]),
        (lambda x, y: np.tensordot(x, y, 0), V, W),
        (lambda x, y: np.tensordot(x, y, 1), BOX, many[0]),
        (lambda x, y: np.tensordot(x, y, ([0, -1], [0, 1])), BOX, many),
        (lambda x: np.tensordot(BOX, b=x, axes=[[-1], [0]]), W),
    )


VECTOR_ORDS = [0.5, 1, 2, 3, INF, -INF, None]
MATRIX_ORDS = ["fro", "nuc", 1, -1, 2, -2, INF, -INF]


def test_row_33_norms_of_every_order():
    for ord in VECTOR_ORDS:
        right_to_second_order((lambda x, o=ord: np.linalg.norm(x, o, axis=1, keepdims=True), BOX))
    for ord in MATRIX_ORDS:
        right_to_second_order((lambda x, o=ord: np.linalg.norm(x, o, axis=(2, 0), keepdims=True), BOX))
    right_to_second_order((np.linalg.norm, BOX))
    same(slope(lambda x: np.linalg.norm(x, 0), V), np.zeros(3))
    same(slope(lambda x: np.linalg.norm(x, INF), np.array([1.0, -5.0, 2.0])), [0, -1, 0])
    u, _, vh = np.linalg.svd(M, full_matrices=False)
    same(slope(lambda x: np.linalg.norm(x, "nuc"), M), u @ vh)


def test_row_44_symmetric_eigenvalues():
    same(slope(np.linalg.eigvalsh, np.eye(3)), np.eye(3))
    same(slope(lambda a: np.linalg.eigh(a)[0], np.eye(3)), np.eye(3))
    assert np.isnan(
        slope(lambda a: np.linalg.eigh(a)[1][0] * V, np.eye(3))
    ).any()  # documented: no derivative, and no number
    for uplo in "LU":
        symmetric = np.tril(A) + np.tril(A, -1).T if uplo == "L" else np.triu(A) + np.triu(A, 1).T
        gradient = slope(lambda a, u=uplo: np.linalg.eigvalsh(a, UPLO=u) * V, symmetric)
        same(gradient, gradient.T)  # documented: the symmetric convention, whichever triangle is read
        keep, beyond = (np.tril, -1) if uplo == "L" else (np.triu, 1)  # of another matrix in the triangle that is read
        same(slope(lambda a, u=uplo: np.linalg.eigvalsh(a, UPLO=u) * V, A), keep(gradient) + keep(gradient, beyond))
    right_to_second_order((lambda a: np.linalg.eigvalsh(a + a.conj().T), C))


def test_row_45_singular_values_and_vectors():
    assert np.isfinite(slope(lambda a: np.linalg.svd(a)[1], np.eye(3))).all()
    same(slope(lambda a: np.linalg.svd(a)[1] ** 2, np.eye(3)), 2 * np.eye(3))
    right_to_second_order(
        (lambda a: np.linalg.svd(a, compute_uv=False), M), (lambda a: np.linalg.svd(a, compute_uv=False), M.T)
    )

    def rebuilt(a):
        u, s, vh = np.linalg.svd(a, full_matrices=False)
        return (u * s**2) @ vh

    for a in (M, M.T, M + 1j * M[::-1]):
        check_grads(rebuilt, (a,), order=1)
    with pytest.raises(NotDifferentiableError, match="basis"):
        slope(lambda a: np.linalg.svd(a, full_matrices=True)[0][:, 3:] ** 2 * np.arange(4.0)[:, None], M.T[:, :2])


def test_row_46_cholesky():
    spd = A @ A.T + np.eye(3)
    gradient = slope(lambda a: np.linalg.cholesky(a) * np.arange(9.0).reshape(3, 3), spd)
    same(gradient, gradient.T)
    spoiled = np.tril(spd) + np.triu(np.full((3, 3), np.nan), 1)
    one = np.tril(gradient) + np.tril(gradient, -1)
    same(slope(lambda a: np.linalg.cholesky(a) * np.arange(9.0).reshape(3, 3), spoiled), one)
    hermitian = C @ C.conj().T + np.eye(3)
    right_to_second_order((lambda a: np.linalg.cholesky(a + a.conj().T), hermitian))
    if np.lib.NumpyVersion(np.__version__) >= "2.0.0":
        upper = slope(lambda a: np.linalg.cholesky(a, upper=True).T * np.arange(9.0).reshape(3, 3), spd)
        same(upper, gradient)


def test_row_47_determinants():
    same(slope(np.linalg.det, np.array([[1.0, 2.0], [2.0, 4.0]])), [[4, -2], [-2, 1]])
    same(slope(np.linalg.det, np.ones((3, 3))), np.zeros((3, 3)))
    assert slope(np.linalg.det, np.zeros((0, 0))).shape == (0, 0)
    same(slope(np.linalg.det, np.array([[5.0]])), [[1.0]])
    negative = A * np.array([-1.0, 1, 1])
    assert np.linalg.det(negative) < 0
    same(slope(lambda a: np.linalg.slogdet(a)[1], negative), np.linalg.inv(negative).T)


def test_row_48_solutions_and_inverses():
    inverse, ct = np.linalg.inv(A), RNG.normal(size=(3, 3))
    same(pb.vjp(np.linalg.inv, A)[1](ct)[0], -inverse.T @ ct @ inverse.T)
    low = RNG.normal(size=(4, 2)) @ RNG.normal(size=(2, 3))
    left, right = RNG.normal(size=(4, 4)), RNG.normal(size=(3, 3))
    right_to_second_order(
        (np.linalg.inv, S),
        (np.linalg.solve, S, V),
        (np.linalg.solve, A, M),
        (np.linalg.solve, A, S),
        (lambda a, b: np.linalg.lstsq(a, b, rcond=None)[0], M.T, W),
        (lambda a, b: np.linalg.lstsq(a, b, rcond=None)[0], M, V),
        (
            lambda t: np.linalg.pinv((np.eye(4) + t * left) @ low @ (np.eye(3) + t * right), rcond=1e-8),
            np.array(0.1),
        ),  # of rank 2
    )


def test_row_49_qr_and_general_eigenvalues():
    right_to_second_order(
        (lambda a: np.linalg.qr(a)[1], M.T), (lambda a: np.linalg.qr(a, mode="r"), M), (lambda a: np.linalg.qr(a)[0], M)
    )
    check_grads(lambda a: np.linalg.qr(a, mode="complete")[0][:, :3], (M.T,), order=1)
    for a in (A, C):
        check_grads(lambda a: np.real(np.linalg.eigvals(a) ** 2).sum(), (a,), order=1)
        check_grads(lambda a: np.abs(np.linalg.eig(a)[1]) ** 2, (a,), order=1)


@pytest.mark.share(3, of=lambda **_: "")
@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
def test_row_50_fourier_transforms(norm):
    z = V + 1j * V[::-1]
    for n in (2, 3, 5):
        right_to_second_order(
            (lambda x, n=n: np.fft.fft(x, n, norm=norm), z),
            (lambda x, n=n: np.fft.rfft(x, n, norm=norm), V),
            (lambda x, n=n: np.fft.irfft(x, n, norm=norm), z),
            (lambda x, n=n: np.fft.hfft(x, n, norm=norm), z),
            (lambda x, n=n: np.fft.ihfft(x, n, norm=norm), V),
        )
    right_to_second_order((lambda x: np.fft.fftn(x, axes=(0, 1, 0), norm=norm), BOX))
    gradient = pb.vjp(lambda z: np.fft.irfft(z, 4, norm=norm), z)[1](W)[0]
    assert gradient.imag[0] == gradient.imag[2] == 0  # of the constant and of the highest term NumPy ignores it


@pytest.mark.parametrize("n", [4, 5])
def test_row_51_shifts(n):
    ct = np.arange(float(n))
    same(pb.vjp(np.fft.fftshift, np.ones(n))[1](ct)[0], np.fft.ifftshift(ct))
    same(pb.vjp(np.fft.ifftshift, np.ones(n))[1](ct)[0], np.fft.fftshift(ct))
