"""numpy.matrix in adopted code: * is the matrix product, two axes stay two, and traced numbers can be written in."""

import numpy as np
import pytest

import pullback as pb

pytestmark = pytest.mark.filterwarnings("ignore:the matrix subclass")  # NumPy's

PROGRAMS = """
import numpy as np

def elements(x):
    D = x[0] * np.matrix([[1, x[1], 0], [x[1], 1, 0], [0, 0, (1 - x[1]) / 2]])
    B = np.matrix(np.arange(6.0).reshape(3, 2)) / 3
    K = np.zeros((4, 4))
    K[np.ix_([0, 2], [0, 2])] += B.T * D * B
    K[1:3, 1:3] += 2 * B.T * D * B
    K[2:, 2:] *= B.T * D * B
    K += np.eye(4)
    K[0:2, 0:2] = K[0:2, 0:2] - np.matrix([[0.0, x[0]], [0.1, 0.0]])
    return np.linalg.det(K) + np.sum(np.linalg.solve(K, np.ones(4)))

def filtered(x):
    F, H = np.matrix([[1.0, 0.1], [0.0, 1.0]]), np.matrix([[1.0, 0.0]])
    P, Q, R = np.matrix(np.eye(2)), x[0] * np.asmatrix(np.eye(2)), np.matrix(x[1])
    s, total = np.matrix([[0.0], [1.0]]), 0.0
    for k in range(4):
        s, P = F * s, F * P * F.T + Q
        S = H * P * H.T + R
        K = P * H.T * S.I
        y = np.matrix([[np.sin(k * 1.0)]]) - H * s
        s = s + K * y
        P = (np.eye(2) - K * H) * P
        total += (y.T * S.I * y)[0, 0] + np.log(np.linalg.det(S))
    assert isinstance(P, np.matrix) and isinstance(P, np.ndarray) and type(P) is np.matrix
    assert isinstance(P, np.ndarray | None) and isinstance(P, (int, (np.matrix,))) and not isinstance(P, float | None)
    P[0, 0] += x[1]
    P *= 2.0
    P -= np.eye(2)
    P /= 3.0
    P += x[0]
    v, w = P[:, 0], P[0]
    total += (w * v)[0, 0] + P.sum(axis=0)[0, 1] + P.mean() + np.trace(P) + P.A1[3] + np.asarray(P)[1, 1]
    return total + (P**2)[0, 1] + np.sum(np.hstack([P, v])) + np.concatenate((P, w), axis=0).sum() + P.max()

def blocks(x):
    A = np.bmat([[np.eye(2) * x[0], np.zeros((2, 1))], [x[:2][None], np.ones((1, 1)) * x[1]]])
    plain = np.bmat([[np.eye(2), np.zeros((2, 1))]]) * A
    b = np.matrix("1; 2; 3") * x[1]
    total = (A * b).sum() + np.linalg.inv(A)[0, 0] + np.array(A * b).flatten()[0] + (A @ b)[1, 0] + plain[1, 1]
    wide = np.concatenate((np.eye(3) * x[0], A), axis=1) * np.vstack([np.ones((3, 3)), np.asarray(A)]) * A
    total += wide.sum() + (np.hstack([A, b]) * np.bmat([[A], [b.T]]))[0, 1]
    total += (np.r_[np.eye(3), A].T * np.c_[np.ones((3, 3)), A].T * np.asanyarray(A))[1, 2]
    total += (np.kron(np.eye(2) * x[0], A) * np.kron(np.ones((2, 3)), b))[1, 2]
    total += (np.c_[np.matrix([[1.0], [2.0]]), np.eye(2)] * A)[0, 1]
    total += (3.0 * A / 2.0 - A)[2, 2] + (-A)[0, 0] + abs(A).std() + (1.0 / (A + 2.0))[0, 1]
    return total + ([x[0], 1, 2] * A)[0, 1]

A, WHOLE = np.matrix([[1, 0.5], [0, 1]]), np.matrix([[1, 2], [3, 4]])
B, STATE = np.matrix([0.0, 1.0]).T, np.matrix([[0.0], [0.0]])

def of_the_module(x):
    STATE[0, 0], before = x[0], STATE[1, 0]
    y = A * STATE + B * x[1] + WHOLE * STATE
    STATE[0, 0] = before
    return y.sum() + (A * WHOLE)[0, 1] + (B.T * np.ones(2)[:, None] * x[1])[0, 0]

def written(x):
    M = np.matrix(np.zeros((2, 2)))
    for i in range(2):
        for j in range(2):
            M[i, j] = x[i] * x[j] + (i == j)
    M[:, 0] = M[:, 0] + np.matrix([[1.0], [2.0]])
    M[1] = x
    a = np.zeros((2, 2))
    view = np.asmatrix(a)
    view[0, 1] = x[0]
    total = a[0, 1] * view[0, 1]
    for row in M:
        total += row[0, 0] * 2
    total += (x * np.ones(2) * M).sum() + (M > 0.5).sum() + (M == M).all() + np.dot(M, M).sum() + np.linalg.norm(M)
    y, z = np.linalg.solve(M, np.matrix(x).T), np.linalg.solve(M, x)
    total += (y.T * y)[0, 0] + (z * z)[0] + (np.copy(M) * M.A)[0, 1] + y.squeeze()[0, 1] + (y.I * y)[0, 0] + y.I[0, 1]
    total += M.argmax(axis=1)[1, 0] * x[0] + M.argmin() * x[1]
    return total + M.reshape(1, 4)[0, 3] * M.ravel().shape[1] + sum(M.tolist()[0]) + (M.H - M.conj().T + M.real).sum()
"""


@pytest.mark.parametrize("name", ["elements", "filtered", "blocks", "written", "of_the_module"])
def test_a_program_with_matrices_has_its_gradient(name, tmp_path, monkeypatch):
    (tmp_path / "with_matrices.py").write_text(PROGRAMS)
    monkeypatch.syspath_prepend(tmp_path)
    plain, copy = getattr(__import__("with_matrices"), name), getattr(pb.adopt("with_matrices"), name)
    x = np.array([0.9, 0.35])
    assert copy(x) == plain(x)
    value, gradient = pb.value_and_grad(copy)(x)
    np.testing.assert_allclose(value, plain(x), rtol=1e-14)
    differences = [(plain(x + 1e-6 * e) - plain(x - 1e-6 * e)) / 2e-6 for e in np.eye(2)]
    np.testing.assert_allclose(gradient, differences, rtol=1e-6)
    if name == "of_the_module":
        assert (pb.adopt("with_matrices").STATE == 0).all()
    for policy in (pb.Recompute(), pb.Binomial(3), pb.Budget("1 GB")):
        assert (pb.grad(copy, policy=policy)(x) == gradient).all()
    np.testing.assert_allclose(pb.jvp(copy, (x,), (np.ones(2),))[1], gradient.sum(), rtol=1e-12)


def test_a_part_of_a_matrix_of_the_module_is_not_written_into(tmp_path):
    (tmp_path / "with_a_part.py").write_text(
        "import numpy as np\nB = np.matrix([0.0, 1.0]).T\ndef f(x):\n    B[0, 0] = 2.0\n    return (B * x).sum()\n"
    )
    with pytest.raises(pb.WriteError, match=r"is written to .*np\.array\(a\) for a matrix, and @ for its products"):
        pb.grad(pb.adopt(tmp_path / "with_a_part.py").f)(2.0)


def test_matrices_of_the_namespace_are_made_of_traced_values():
    pnp = pb.numpy

    def f(x):
        a = pnp.matrix([[x, 1.0], [2.0, x]])
        assert isinstance(a, pnp.matrix)
        assert pnp.asmatrix(a) is a
        return (a * pnp.bmat([[a, a]])).sum()

    np.testing.assert_allclose(pb.grad(f)(3.0), 2 * (2 * 2 * 3.0 + 2 * 3.0), rtol=1e-14)
    assert type(pnp.matrix([[1.0]])) is np.matrix
    assert type(pnp.bmat([[np.eye(2)]])) is np.matrix


def test_a_matrix_is_a_structure_around_its_array():
    def state(x):
        a = pb.numpy.matrix([[x[0], 1.0], [0.5, x[1]]])
        return pb.fori_loop(0, 2, lambda _, m: m * m, a, policy=pb.Binomial(1))

    x = np.array([0.7, 1.2])
    out, pull = pb.vjp(state, x)
    a = np.array([[x[0], 1.0], [0.5, x[1]]])
    np.testing.assert_allclose(out.A, np.linalg.matrix_power(a, 4), rtol=1e-14)
    total = pb.grad(lambda x: np.sum(np.sin(state(x).A)))(x)
    np.testing.assert_allclose(pull(type(out)(np.cos(out.A)))[0], total, rtol=1e-13)
    tangent = pb.jvp(lambda x: np.sum(np.sin(state(x).A)), (x,), (np.ones(2),))[1]
    np.testing.assert_allclose(tangent, total.sum(), rtol=1e-13)
    with pytest.raises(pb.StructureError, match="the cotangent has structure"):
        pull(np.ones((2, 2)))


@pytest.mark.parametrize(
    ("use", "error", "message"),
    [
        (np.sort, pb.NotDifferentiableError, r"numpy\.sort of a traced numpy\.matrix .* np\.asarray\(M\)"),
        (lambda m: m.partition(1), pb.NotDifferentiableError, "the attribute 'partition' of a traced numpy.matrix"),
        (float, pb.ConversionError, r"write M\[0, 0\]"),
        (np.exp, TypeError, "does not support ufuncs"),
    ],
)
def test_what_a_matrix_does_not_serve_is_refused(use, error, message):
    with pytest.raises(error, match=message):
        pb.grad(lambda x: use(pb.numpy.matrix([[x]])))(2.0)


def test_an_array_takes_the_traced_array_that_a_class_of_the_program_gives_for_itself(tmp_path):
    (tmp_path / "with_a_wrapper.py").write_text(
        "import numpy as np\n"
        "class Wrapper:\n"
        "    def __init__(self, array):\n"
        "        self.array = np.array(array, dtype=float)\n"
        "    def __array__(self, dtype=None, copy=None):\n"
        "        return self.array\n"
        "    def __mul__(self, other):\n"
        "        return Wrapper(self.array @ np.asarray(other))\n"
        "    def __rmul__(self, other):\n"
        "        return Wrapper(np.asarray(other) @ self.array)\n"
        "def f(x):\n"
        "    w = Wrapper([[x[0], 1.0], [0.0, x[1]]])\n"
        "    return (x * w + np.ones(2) / w.array.max() - w).sum() + (w * x).array[1] + (x[0] * w)[0, 1]\n"
    )
    f = pb.adopt(tmp_path / "with_a_wrapper.py").f
    x = np.array([0.7, 1.9])
    value, gradient = pb.value_and_grad(f)(x)
    assert value == f(x)
    np.testing.assert_allclose(gradient, [(f(x + 1e-6 * e) - f(x - 1e-6 * e)) / 2e-6 for e in np.eye(2)], rtol=1e-7)
