"""The NumPy functions that the plugin serves: NumPy's values bit for bit, right derivatives, equal bits under
policies."""

import numpy as np
import pytest

import pullback as pb
from pullback_linalg.solve import substitute

RNG = np.random.default_rng(5)
V, W = RNG.normal(size=3), RNG.normal(size=3)
M, N = RNG.normal(size=(2, 3)), RNG.normal(size=(3, 4))
A, B = RNG.normal(size=(3, 3)) + 4 * np.eye(3), RNG.normal(size=(3, 2))
T, U = RNG.normal(size=(2, 3, 4)), RNG.normal(size=(4, 3, 2))
S = RNG.normal(size=(2, 3, 3)) + 4 * np.eye(3)
Z, ZV = M + 1j * RNG.normal(size=M.shape), V + 1j * W
ONE = np.array(1.5)

# NumPy has matvec and vecmat since 2.2.
SINCE_2_2, REFUSED_SINCE_2_2 = {}, []
if hasattr(np, "matvec"):
    SINCE_2_2 = {
        "matvec": (np.matvec, Z, ZV),
        "matvec axes": (lambda x, y: np.matvec(x, y, axes=[(0, 1), 1, 0]), T, U[:, :, 0].copy()),
        "vecmat": (np.vecmat, ZV, N),
        "vecmat axes": (
            lambda x, y: np.vecmat(x, y, axes=[0, (1, 2), 0]),
            U,
            np.ascontiguousarray(T.transpose(0, 2, 1)),
        ),
    }
    REFUSED_SINCE_2_2 = [
        (lambda x: np.matvec(x, x[0], signature="dd->d"), "numpy.matvec with signature="),
        (lambda x: np.vecmat(x[0], x, signature="dd->d"), "numpy.vecmat with signature="),
    ]
FUNCTIONS = {
    **SINCE_2_2,
    "x @ y": (lambda x, y: x @ y, M, N),
    "constant @ x": (lambda x: M @ x, N),
    "x @ constant": (lambda x: x @ N, M),
    "x @ x.T": (lambda x: x @ x.T, M),
    "x.T @ x, the same operand twice": (lambda x: x.T @ x, Z),
    "matmul of strided operands": (lambda x, y: np.matmul(x[::-1, ::2], y[:2, ::-1]), N, M),
    "matmul of complex operands": (np.matmul, Z, ZV),
    "matmul axes": (lambda x, y: np.matmul(x, y, axes=[(0, 1), (1, 2), (0, 2)]), M,
        T[:2, :, :3].swapaxes(0, 1).swapaxes(1, 2)),
    "matmul axes of a vector": (lambda x, y: np.matmul(x, y, axes=[(0, 2), (0,), (0,)]), T, RNG.normal(size=4)),
    "matmul dtype": (lambda x, y: np.matmul(x, y, dtype=np.complex128), M, N),
    "matmul of a list": (lambda x: np.matmul([[1.0, 2.0, 3.0]], x), N),
    "linalg.matmul": (np.linalg.matmul, M, N),
    "vecdot": (np.vecdot, Z, ZV),
    "vecdot axis": (lambda x, y: np.vecdot(x, y, axis=0), T, T + 1),
    "vecdot axis keepdims": (lambda x, y: np.vecdot(x, y, axis=1, keepdims=True), T, T + 1),
    "vecdot keepdims": (lambda x, y: np.vecdot(x, y, keepdims=True), T, T + 1),
    "vecdot axes": (lambda x, y: np.vecdot(x, y, axes=[1, 1]), U, M),
    "vecdot axes with an output": (lambda x, y: np.vecdot(x, y, axes=[(1,), (1,), ()]), U, M),
    "linalg.vecdot": (lambda x, y: np.linalg.vecdot(x, y, axis=0), Z, M),
    "vdot": (np.vdot, Z, M),
    "dot": (np.dot, M, N),
    "dot by keyword": (lambda x, y: np.dot(a=x, b=y), M, N),
    "x.dot(y)": (lambda x, y: x.dot(y), V, W),
    "dot of a number": (lambda x: np.dot(2.0, x), V),
    "dot of a 0-d array": (np.dot, ONE, M),
    "dot of many axes": (np.dot, T, U[:, :2].swapaxes(0, 1).copy()),
    "inner": (np.inner, M, M[:1]),
    "inner of many axes": (np.inner, T, U.transpose(2, 1, 0).copy()),
    "linalg.outer": (np.linalg.outer, V, W),
    "outer": (np.outer, M, V),
    "outer of a number": (lambda x: np.outer(x, 2.0), V),
    "tensordot": (np.tensordot, T, np.ascontiguousarray(U.swapaxes(0, 1))),
    "tensordot 0": (lambda x, y: np.tensordot(x, y, 0), V, M),
    "tensordot 1": (lambda x, y: np.tensordot(x, y, axes=1), T, U),
    "tensordot negative": (lambda x, y: np.tensordot(x, y, ([-1, 0], [0, -1])), T, U),
    "tensordot single": (lambda x, y: np.tensordot(x, y, axes=(1, 1)), T, U),
    "tensordot by keyword": (lambda x, y: np.tensordot(x, b=y, axes=((1,), (-2,))), T, U),
    "tensordot numpy axes": (lambda x, y: np.tensordot(x, y, np.array([[2, 1], [0, 1]])), T, U),
    "linalg.tensordot": (lambda x, y: np.linalg.tensordot(x, y, axes=1), M, N),
    "kron": (np.kron, M, N),
    "kron of vectors": (np.kron, V, W),
    "kron of different dimensions": (np.kron, V, T),
    "kron of a number": (np.kron, ONE, M),
    "kron in Fortran order": (lambda x, y: np.kron(x.T, y.T), M, N),
    "trace": (np.trace, A),
    "x.trace": (lambda x: x.trace(), A),
    "trace offset": (lambda x: np.trace(x, offset=1), N),
    "trace outside": (lambda x: np.trace(x, offset=-5), N),
    "trace axes": (lambda x: np.trace(x, 1, -1, 0), T),
    "trace dtype": (lambda x: np.trace(x, dtype=np.float32), A),
    "linalg.trace": (lambda x: np.linalg.trace(x, offset=-1), S),
    "einsum": (lambda x, y: np.einsum("ij,jk->ik", x, y), M, N),
    "einsum of sublists": (lambda x, y: np.einsum(x, [0, 1], y, [1, 2], [2, 0]), M, N),
    "einsum of sublists without an output": (lambda x, y: np.einsum(x, [7, 3], y, [3, 1]), M, N),
    "einsum of sublists with an ellipsis": (lambda x, y: np.einsum(x, [..., 0], y, [..., 0], [...]), T, T[0]),
    "einsum of one sublist": (lambda x: np.einsum(x, [0, 0]), A),
    "einsum of a constant": (lambda x: np.einsum("i,ij,j", V, x, V), A),
    "einsum of one operand twice": (lambda x: np.einsum("ij,kj->ik", x, x), M),
    "einsum with a path": (lambda x, y: np.einsum("ij,jk,kl->il", x, y, N.T, optimize=["einsum_path", (0, 1), (0, 1)]),
        M, N),
    "einsum large": (lambda x, y: np.einsum("ij,jk->ik", x, y), RNG.normal(size=(41, 41)), RNG.normal(size=(41, 41))),
    "einsum dtype": (lambda x, y: np.einsum("i,i", x, y, dtype=np.float32, casting="same_kind"), V, W),
    "einsum of complex operands": (lambda x, y: np.einsum("ij,j->i", x, y), Z, ZV),
    "einsum diagonal": (lambda x: np.einsum("...ii->...i", x), S),
    "solve": (np.linalg.solve, A, B),
    "solve a vector": (np.linalg.solve, A, V),
    "solve for b": (lambda b: np.linalg.solve(A, b), V),
    "solve for a": (lambda a: np.linalg.solve(a, V), A),
    "solve for a, whole numbers on the right": (lambda a: np.linalg.solve(a, np.array([1, 2, 3])), A),
    "solve with a matrix of whole numbers": (lambda b: np.linalg.solve(np.array([[3, 1, 0], [1, 4, 0], [0, 2, 5]]), b),
        V),
    "solve a batch": (np.linalg.solve, S, np.stack([B, B + 1])),
    "solve a batch for one vector": (np.linalg.solve, S, V),
    "solve one matrix for a batch": (np.linalg.solve, A, np.stack([B, B + 1])),
    "solve without columns": (np.linalg.solve, A, np.zeros((3, 0))),
    "solve nothing": (np.linalg.solve, np.zeros((0, 0)), np.zeros(0)),
    "solve complex": (np.linalg.solve, A + 0.5j * A.T, ZV),
    "solve a list": (lambda x: np.linalg.solve([[2.0, 1.0], [0.0, 3.0]], x[:2]), V),
}  # fmt: skip
ROWS = [pytest.param(f, xs, id=name) for name, (f, *xs) in FUNCTIONS.items()]


def nonlinear(f):
    """A function whose second derivative is not that of a bilinear one."""
    return lambda *xs: f(*(x + 0.1 * x * x for x in xs))


def steps(x):
    """The strides that mean something: of axes with more than one element."""
    return [step for step, n in zip(x.strides, x.shape, strict=True) if n > 1]


@pytest.mark.parametrize(("f", "xs"), ROWS)
def test_values_and_layout_are_those_of_numpy(f, xs):
    expected = np.array(f(*xs), order="K")  # where NumPy gives a view, vjp hands out a copy of it
    given = np.asarray(pb.vjp(f, *xs)[0])
    assert (given.dtype, given.shape) == (expected.dtype, expected.shape)
    assert steps(given) == steps(expected)
    assert given.tobytes() == expected.tobytes()


@pytest.mark.share(6)
@pytest.mark.parametrize(("f", "xs"), ROWS)
def test_derivatives_of_two_orders_are_right(f, xs):
    pb.testing.check_grads(nonlinear(f), tuple(xs), order=2)


@pytest.mark.parametrize(("f", "xs"), [row for row in ROWS if "dtype" not in row.id])
@pytest.mark.parametrize("least", [np.float32, np.complex64])
def test_the_precision_is_kept(f, xs, least):
    xs = [x.astype(np.complex64 if x.dtype.kind == "c" else least) for x in xs]
    out, pull = pb.vjp(f, *xs)
    assert [ct.dtype for ct in pull(np.ones_like(out))] == [x.dtype for x in xs]


@pytest.mark.parametrize(
    ("f", "xs"), [row for row in ROWS if row.id.split()[0] in {"x", "dot", "einsum", "kron", "solve", "vdot"}]
)
def test_policies_give_the_same_bits(f, xs):
    def steps(*xs):
        for _ in pb.steps(3):
            out = f(*xs)
            xs = tuple(x + 0.01 * np.sum(np.abs(out)) * x for x in xs)
        return np.sum(xs[0].real)

    expected = pb.grad(steps, tuple(range(len(xs))))(*xs)
    for policy in (pb.Recompute(), pb.Binomial(1)):
        for ct, ref in zip(pb.grad(steps, tuple(range(len(xs))), policy=policy)(*xs), expected, strict=True):
            assert ct.tobytes() == ref.tobytes()


@pytest.mark.parametrize("a", [A, A + 0.2j], ids=["real", "complex"])
def test_a_loop_that_solves_has_the_same_bits_advanced_and_recorded(a):
    """A loop function advances on plain arrays, with NumPy's own solve, and records ours: another bit raises
    ReplayError."""

    def program(a, b, policy):
        u = pb.fori_loop(0, 7, lambda k, u: np.linalg.solve(a, u @ (a / 6) + np.cos(u.real)), b, policy=policy)
        return np.sum(np.abs(u) ** 2)

    expected = pb.grad(program, (0, 1))(a, V.astype(a.dtype), pb.SaveAll())
    for policy in (pb.Recompute(), pb.Binomial(2)):
        given = pb.grad(program, (0, 1))(a, V.astype(a.dtype), policy)
        assert [g.tobytes() for g in given] == [e.tobytes() for e in expected]


def test_a_written_diagonal_is_written_in_the_matrix():
    """np.einsum('ii->i', x) is a view, in NumPy and here."""

    def f(x):
        y = x * 1.0
        np.einsum("ii->i", y)[:] = 2.0
        return np.sum(y * y)

    assert np.array_equal(pb.grad(f)(A), 2 * A * (1 - np.eye(3)))


def test_einsum_places_a_cotangent_on_the_diagonal_without_nan():
    given = pb.vjp(lambda x: np.einsum("ii->i", x), np.eye(2))[1](np.array([np.inf, 1.0]))[0]
    assert np.array_equal(given, [[np.inf, 0.0], [0.0, 1.0]])


@pytest.mark.parametrize(
    ("f", "words"),
    [
        (lambda x: np.matmul(x, x, signature="dd->d"), "numpy.matmul with signature="),
        (lambda x: np.vecdot(x, x, axes=[0, 0], keepdims=True), "numpy.vecdot with axes=, keepdims="),
        *REFUSED_SINCE_2_2,
    ],
)
def test_a_keyword_that_is_not_served_says_so(f, words):
    with pytest.raises(pb.NotDifferentiableError, match=words):
        pb.vjp(f, A)


@pytest.mark.parametrize(
    ("f", "error", "words"),
    [
        (lambda x: np.matmul(x, x, axes=[(0, 1)]), ValueError, "matmul: axes= has 1 entries"),
        (lambda x: np.einsum(x, [0, 60]), ValueError, "label 60 of a sublist"),
        (lambda x: np.linalg.outer(x, x), ValueError, "one-dimensional"),
        (lambda x: np.einsum("ij,jk", x), ValueError, "fewer operands|more operands"),
        (lambda x: np.tensordot(x, x[:2], 1), ValueError, "shape-mismatch"),
        (lambda x: np.matmul(x, 2.0), ValueError, "does not have enough dimensions"),
        (lambda x: np.linalg.solve(x - x, x), np.linalg.LinAlgError, "Singular"),
    ],
)
def test_errors_are_numpys_or_name_the_remedy(f, error, words):
    with pytest.raises(error, match=words):
        pb.vjp(f, A)


def test_a_pivot_that_cannot_be_is_refused():
    with pytest.raises(ValueError, match="pivots from 0 to 9 do not belong to a matrix of 3 rows"):
        substitute(A, np.array([0, 9, 2], np.int32), B, transpose=False)


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
def test_an_einsum_of_reals_sees_no_imaginary_part():
    z = np.array([1 + 2j, 3 - 1j])
    gradient = pb.grad(lambda z: np.einsum("i,i", z, z, dtype=float, casting="unsafe"))(z)
    np.testing.assert_array_equal(gradient, [2, 6])
