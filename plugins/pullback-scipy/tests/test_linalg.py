"""pullback_scipy.linalg: SciPy's values bit for bit, right derivatives to second order, equal bits under policies."""

import numpy as np
import pytest
from scipy import linalg

import pullback as pb
from pullback_scipy import linalg as mirrored

RNG = np.random.default_rng(7)
A = RNG.normal(size=(4, 4)) + 4 * np.eye(4)
B, V = RNG.normal(size=(4, 2)), RNG.normal(size=4)
C = RNG.normal(size=(4, 4)) + 1j * RNG.normal(size=(4, 4)) + 4 * np.eye(4)
S = A @ A.T
Q, R = A[::-1], A[1:3, :2]
H = C @ C.conj().T
AB = RNG.normal(size=(4, 5)) + np.array([[0], [5], [0], [0]])
SB = np.array([[0, 0, 0.3, -0.2, 0.4], [0, 0.5, -0.4, 0.3, 0.6], [3, 4, 5, 4, 3.5]])
N = RNG.normal(size=(4, 3))
W = RNG.normal(size=5)
LARGE = np.array([9, 0, 0, 0])


def spd(a):
    return a @ np.conjugate(a.T)


def functions(m):
    """Name to (function of the traced operands, operands), where ``m`` is SciPy's module or ours."""
    return {
        "solve": (m.solve, A, B),
        "solve vector": (m.solve, A, V),
        "solve complex": (m.solve, C, B + 1j * B[::-1]),
        "solve transposed": (lambda a, b: m.solve(a, b, transposed=True), A, B),
        "solve gen": (lambda a, b: m.solve(a, b, assume_a="gen"), A, V),
        "solve pos": (lambda a, b: m.solve(spd(a), b, assume_a="pos"), A, V),
        "solve sym": (lambda a, b: m.solve(a + a.T, b, assume_a="sym", lower=True), A, V),
        "solve her": (lambda a, b: m.solve(spd(a), b, assume_a="her"), C, B + 0j),
        "solve_triangular": (m.solve_triangular, A, B),
        "solve_triangular lower": (lambda a, b: m.solve_triangular(a, b, lower=True, trans="T"), A, V),
        "solve_triangular unit": (lambda a, b: m.solve_triangular(a, b, trans=1, unit_diagonal=True), C, V),
        "solve_triangular conjugate": (lambda a, b: m.solve_triangular(a, b, "C"), A, V),
        "lstsq": (lambda a, b: m.lstsq(a, b)[0], N, B),
        "lstsq squares": (lambda a, b: np.sum(m.lstsq(a, b, lapack_driver="gelsy")[1]) + m.lstsq(a, b)[3], N, V),
        "lstsq wide": (lambda a, b: m.lstsq(a, b, cond=1e-10, lapack_driver="gelss")[0], N.T, V[:3]),
        "lstsq cut off": (lambda a, b: m.lstsq(a, b, cond=0.6)[0], A, V),
        "solve_banded": (lambda ab, b: m.solve_banded((2, 1), ab, b), AB, W),
        "solve_banded columns": (lambda ab, b: m.solve_banded((2, 1), ab, b), AB, np.stack([W, 2 * W**2], 1)),
        "solve_banded upper": (lambda ab, b: m.solve_banded((1, 2), ab, b), AB[[2, 3, 1, 0]] + 0j, W),
        "solveh_banded": (m.solveh_banded, SB, W),
        "solveh_banded lower": (
            lambda ab, b: m.solveh_banded(ab, b, lower=True),
            np.array([SB[2], np.roll(SB[1], -1), np.roll(SB[0], -2)]),
            np.stack([W, W**2], 1),
        ),
        "solve_toeplitz": (lambda c, r, b: m.solve_toeplitz((c, r), b), V + LARGE, V[::-1] + LARGE, V),
        "solve_toeplitz symmetric": (m.solve_toeplitz, V + LARGE, B),
        "inv": (m.inv, A),
        "inv complex": (m.inv, C),
        "det": (m.det, A),
        "pinv": (m.pinv, N),
        "norm": (m.norm, A),
        "norm 2 axis": (lambda a: m.norm(a, 2, axis=1), N),
        "norm 1": (lambda a: m.norm(a, 1), N),
        "cholesky": (lambda a: m.cholesky(spd(a)), A),
        "cholesky lower": (lambda a: m.cholesky(spd(a), lower=True), C),
        "cho_factor": (lambda a: m.cho_factor(spd(a))[0], A),
        "cho_solve": (lambda a, b: m.cho_solve(m.cho_factor(spd(a)), b), A, B),
        "cho_solve lower": (lambda a, b: m.cho_solve(m.cho_factor(spd(a), lower=True), b), C, V),
        "lu_factor": (lambda a: m.lu_factor(a)[0], A[::-1]),
        "lu_solve": (lambda a, b: m.lu_solve(m.lu_factor(a), b), A[::-1], B),
        "lu_solve transposed": (lambda a, b: m.lu_solve(m.lu_factor(a), b, 1), C[[2, 0, 1, 3]], V),
        "expm": (m.expm, A / 4),
        "expm stack": (m.expm, np.stack([A / 4, A.T / 5])[:, :2, :2]),
        "expm_frechet": (m.expm_frechet, A[:2, :2] / 4, S[:2, :2] / 9),
        "sqrtm": (m.sqrtm, S),
        "logm": (m.logm, S),
        "cosm": (m.cosm, A / 3),
        "sinm": (m.sinm, A / 3),
        "tanhm": (m.tanhm, A / 4),
        "fractional_matrix_power": (lambda a: m.fractional_matrix_power(a, 0.3), S),
        "solve_sylvester": (m.solve_sylvester, A, S, B @ B.T),
        "solve_continuous_lyapunov": (m.solve_continuous_lyapunov, A, S),
        "solve_continuous_are": (
            lambda a, b, q, r: m.solve_continuous_are(a, b, spd(q), spd(r)),
            A,
            B,
            A[::-1],
            A[1:3, :2],
        ),
        "solve_discrete_are": (
            lambda a, b, q, r: m.solve_discrete_are(a, b, spd(q), spd(r)),
            A,
            B,
            A[::-1],
            A[1:3, :2],
        ),
        "solve_discrete_lyapunov": (m.solve_discrete_lyapunov, A / 9, S[:, ::-1]),
        "eigh": (lambda a: m.eigh(a + a.T), A),
        "eigh values": (lambda a: m.eigh(a + a.T, eigvals_only=True), A),
        "eigh upper": (lambda a: m.eigh(spd(a), lower=False, driver="evd")[0], C),
        "eigvalsh": (lambda a: m.eigvalsh(a + a.T), A),
        "eig": (lambda a: np.abs(m.eig(a)[1]) + np.real(m.eig(a)[0]), A),
        "eigvals": (lambda a: np.real(m.eigvals(a) ** 2), A),
        "svd": (lambda a: m.svd(a, full_matrices=False), N),
        "svd values": (lambda a: m.svd(a, compute_uv=False), N),
        "svd values by gesvd": (lambda a: m.svd(a, compute_uv=False, lapack_driver="gesvd"), N),
        "svdvals": (m.svdvals, N),
        "qr": (m.qr, A),
        "qr economic": (lambda a: m.qr(a, mode="economic"), N),
        "qr r": (lambda a: m.qr(a, mode="r")[0], A),
        "block_diag": (lambda a, v: m.block_diag(a, v, np.ones((2, 1))), N, V),
        "toeplitz": (m.toeplitz, V, W),
        "toeplitz complex": (m.toeplitz, V + 1j * V[::-1]),
        "hankel": (m.hankel, V, W),
        "circulant": (m.circulant, V),
        "companion": (m.companion, V),
        "khatri_rao": (m.khatri_rao, N, N[:2]),
        "toeplitz stack": (m.toeplitz, np.stack([V, V[::-1]]), np.stack([W, W[::-1]])),
        "toeplitz of stacks": (m.toeplitz, np.stack([V, V[::-1]])[:, None], W),
        "circulant stack": (m.circulant, np.stack([V, V[::-1]])),
        "companion stack": (m.companion, np.stack([V, V[::-1] + 3])),
        "sinm stack": (m.sinm, np.stack([A / 4, A.T / 5])[:, :2, :2]),
        "logm stack": (m.logm, np.stack([S, S + 1])),
        "pinv stack": (m.pinv, np.stack([N, 2 * N[::-1]])),
    }


OURS, THEIRS = functions(mirrored), functions(linalg)


@pytest.mark.parametrize("name", OURS)
def test_values_are_those_of_scipy(name):
    (ours, *operands), (theirs, *_) = OURS[name], THEIRS[name]
    out, _ = pb.vjp(ours, *operands)
    expected = theirs(*operands)
    for given, value in zip(*((x if isinstance(x, tuple) else (x,)) for x in (out, expected)), strict=True):
        assert np.shape(given) == np.shape(value)
        assert np.asarray(given).tobytes() == np.asarray(value).tobytes()


@pytest.mark.share(10, of=lambda name: 0)
@pytest.mark.parametrize("name", OURS)
def test_derivatives_of_two_orders_are_right(name):
    f, *operands = OURS[name]
    pb.testing.check_grads(f, tuple(operands), order=2)


@pytest.mark.parametrize(
    "name", ["eigh", "eig", "svd", "qr", "lu", "cho_factor", "expm_frechet", "solve", "block_diag"]
)
def test_many_matrices_at_once_are_refused_where_there_is_no_rule(name):
    f, many = getattr(mirrored, name), np.stack([S, S + 1])
    operands = (many, many) if name in ("solve", "expm_frechet", "block_diag") else (many,)
    with pytest.raises(pb.NotDifferentiableError, match=r"of many matrices at once, here of shape \(2, .*np\.stack"):
        pb.vjp(f, *operands)
