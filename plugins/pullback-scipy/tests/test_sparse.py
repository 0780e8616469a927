"""pullback_scipy.sparse and sparse.linalg: SciPy's values, right derivatives to second order, one factorisation."""

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg

import pullback as pb
from pullback_scipy import sparse as mirrored
from pullback_scipy.sparse import linalg as mirrored_linalg
from pullback_scipy.sparse_arrays import direct

RNG = np.random.default_rng(11)
N = 5
PATTERN = scipy.sparse.random_array((N, N), density=0.5, rng=RNG, format="csr") + 3 * scipy.sparse.eye_array(N)
PATTERN = scipy.sparse.csr_array(PATTERN)
DATA, X = PATTERN.data, RNG.normal(size=N)
ROWS, COLUMNS = np.array([0, 1, 1, 3, 0, 2]), np.array([1, 1, 2, 0, 1, 4])
COO = RNG.normal(size=6)
XX = RNG.normal(size=(N, 2))


def programs(sp, la):
    """Name to (function of traced arrays, operands), with SciPy's modules or ours."""

    def csr(data):
        return sp.csr_array((data, PATTERN.indices, PATTERN.indptr), shape=(N, N))

    def spd(data):
        a = csr(data)
        return (a @ a.T).tocsr()

    def coo(data):
        return sp.coo_array((data, (ROWS, COLUMNS)), shape=(N, N))

    def written(data):
        a = csr(data)
        b = a.copy()
        b.data[:2] = 0.5 * data[1]
        b.setdiag(2.0 * data[:3])
        b.setdiag(data[0], k=1)
        b.eliminate_zeros()
        return b - a

    return {
        "copied and written": (lambda d, x: written(d) @ x, DATA, X),
        "product": (lambda d, x: csr(d) @ x, DATA, X),
        "product columns": (lambda d, x: csr(d) @ x, DATA, XX),
        "product left": (lambda d, x: x @ csr(d), DATA, X),
        "product matrix": (lambda d, x: sp.csr_matrix((d, PATTERN.indices, PATTERN.indptr)) * x, DATA, X),
        "product csc": (lambda d, x: csr(d).tocsc().T @ x, DATA, X),
        "product coo": (lambda d, x: coo(d) @ x, COO, X),
        "coo to csr": (lambda d, x: coo(d).tocsr() @ x, COO, X),
        "coo toarray": (lambda d: coo(d).toarray(), COO),
        "diagonal": (lambda d: csr(d).diagonal(1), DATA),
        "sum": (lambda d: csr(d).sum(axis=0), DATA),
        "slices": (lambda d: csr(d)[1:4, ::2].toarray(), DATA),
        "element": (lambda d: csr(d)[2, 2], DATA),
        "sums": (lambda d, c: (csr(d) + 2 * coo(c) - sp.eye_array(N)).toarray(), DATA, COO),
        "products": (lambda d, c: (csr(d) @ coo(c) @ PATTERN).toarray(), DATA, COO),
        "multiply": (lambda d, x: csr(d).multiply(x).toarray(), DATA, X),
        "diags": (lambda x: sp.diags([x[1:], x, -x[:-1]], [-1, 0, 1]).toarray(), X),
        "diags product": (lambda x, y: sp.diags_array([x, x[:4]], offsets=[0, 1]).tocsr() @ y, X, X[::-1]),
        "spdiags": (lambda x: sp.spdiags(x, [0, 1], N, N).toarray(), XX.T),
        "blocks": (lambda d: sp.bmat([[csr(d), None], [PATTERN, csr(2 * d)]], format="csr").toarray(), DATA),
        "stacks": (lambda d: sp.vstack([sp.hstack([csr(d), PATTERN]), sp.hstack([PATTERN, csr(d)])]).toarray(), DATA),
        "kron": (lambda d, c: sp.kron(csr(d), coo(c)).toarray(), DATA, COO),
        "kronsum": (lambda d, c: sp.kronsum(csr(d), coo(c), format="csc").toarray(), DATA, COO),
        "kronsum with a plain one": (lambda d: sp.kronsum(sp.eye_array(2), csr(d)).toarray(), DATA),
        "triangles": (lambda d: (sp.tril(csr(d)) - 2 * sp.triu(csr(d), 1, "csc")).toarray(), DATA),
        "found": (lambda d: np.sum(np.stack([k * sp.find(csr(d))[2] for k in range(1, 4)]), axis=0), DATA),
        "dia": (lambda x: sp.dia_array((x, [0, 1]), shape=(N, N + 1)) @ np.arange(N + 1.0), XX.T),
        "dia of one": (lambda x: sp.dia_matrix((x, -1), shape=(N, N)) * np.ones(N), X),
        "dia of another": (lambda d: sp.dia_matrix(csr(d)).toarray(), DATA),
        "powers": (lambda d: (sp.csr_matrix(csr(d)) ** 3 + csr(d).power(2) - csr(d) ** 2 * 0.5).toarray(), DATA),
        "powers of coo": (lambda d: coo(d).power(3).toarray(), COO),
        "a row": (lambda d: sp.csr_matrix(csr(d)).getrow(-1) @ X, DATA),
        "a column": (lambda d: sp.csc_matrix(csr(d)).getcol(1) @ X[:1], DATA),
        "trace": (lambda d: csr(d).trace() * csr(d).count_nonzero() + np.sum(csr(d).nonzero()[0]), DATA),
        "conjugates": (lambda d: (np.conj(csr(1j * d)) @ (1j * np.arange(5.0)) - np.abs(csr(-d)) @ X).real, DATA),
        "parts": (lambda d: (csr((2 + 3j) * d).real - csr((2 + 3j) * d).conj().imag).toarray(), DATA),
        "operators of arrays": (lambda d: np.ones((2, 5)) @ csr(d) + (np.ones((5, 5)) + csr(d))[:2], DATA),
        "from dense": (lambda x: sp.csc_array(x) @ np.ones(2), XX),
        "spsolve": (lambda d, b: la.spsolve(csr(d).tocsc(), b), DATA, X),
        "spsolve columns": (lambda d, b: la.spsolve(csr(d).tocsc(), b), DATA, XX),
        "splu": (lambda d, b: la.splu(csr(d).tocsc()).solve(b), DATA, X),
        "splu transposed": (lambda d, b: la.splu(csr(d).tocsc()).solve(b, "T"), DATA, XX),
        "splu of a plain matrix": (lambda b: la.splu(PATTERN.tocsc()).solve(b), X),
        "factorized": (lambda d, b: la.factorized(csr(d).tocsc())(b), DATA, X),
        "cg": (lambda d, b: la.cg(spd(d), b, rtol=1e-14)[0], DATA, X),
        "cg preconditioned": (lambda d, b: la.cg(spd(d), b, rtol=1e-14, M=np.diag([1, 2, 1, 1, 2]))[0], DATA, X),
        "gmres": (lambda d, b: la.gmres(csr(d), b, rtol=1e-14, M=np.triu(np.ones((N, N))))[0], DATA, X),
        "bicgstab": (lambda d, b: la.bicgstab(csr(d), b, rtol=1e-14)[0], DATA, X),
        "minres": (lambda d, b: la.minres(spd(d), b, rtol=1e-14)[0], DATA, X),
        "operator": (
            lambda d, b: la.gmres(la.LinearOperator((N, N), lambda v: csr(d) @ v, dtype=float), b, rtol=1e-14)[0],
            DATA,
            X,
        ),
    }


OURS = programs(mirrored, mirrored_linalg)
THEIRS = programs(scipy.sparse, scipy.sparse.linalg)


@pytest.mark.parametrize("name", OURS)
def test_values_are_those_of_scipy(name):
    (ours, *operands), (theirs, *_) = OURS[name], THEIRS[name]
    out, _ = pb.vjp(ours, *operands)
    expected = theirs(*operands)
    assert np.shape(out) == np.shape(expected)
    np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.share(4, of=lambda name: 0)
@pytest.mark.parametrize("name", OURS)
def test_derivatives_of_two_orders_are_right(name):
    f, *operands = OURS[name]
    pb.testing.check_grads(f, tuple(operands), order=2)


def unsorted(sp, la):
    """Programs of nonzeros that stand in no order, two of them at one place; SciPy's functions sort them in place."""
    indices = np.array([2, 0, 1, 1, 0, 2, 1, 2])

    def a(data, kind=sp.csr_array):
        return kind((data, indices.copy(), np.array([0, 3, 6, 8])), shape=(3, 3))

    b = np.array([1.0, -2.0, 0.5])
    return [
        lambda data: la.spsolve(a(data), b),
        lambda data: la.spsolve(a(data).T, b),
        lambda data: la.splu(a(data, sp.csc_array)).solve(b, "T"),
        lambda data: la.eigsh(a(data) + a(data).T, 1, sigma=0.0, v0=b)[0],
        lambda data: a(data).mean(axis=0),
        lambda data: (a(data) / 3.0).toarray(),
        lambda data: sp.vstack([a(data), a(data)], dtype=np.float32).toarray().astype(float),
        lambda data: sp.kronsum(a(data), a(data)).toarray(),
    ]


@pytest.mark.parametrize("k", range(8))
def test_nonzeros_in_no_order_are_left_as_they_are(k):
    data = np.array([0.5, 4.0, -1.0, 5.0, 0.25, 1.0, 2.0, 6.0])
    ours, theirs = unsorted(mirrored, mirrored_linalg)[k], unsorted(scipy.sparse, scipy.sparse.linalg)[k]
    expected = theirs(data.copy())
    assert np.asarray(pb.vjp(ours, data)[0]).tobytes() == np.asarray(expected).tobytes()
    assert data.tolist() == [0.5, 4.0, -1.0, 5.0, 0.25, 1.0, 2.0, 6.0]
    if k != 6:  # single precision
        pb.testing.check_grads(lambda data: ours(data * 1.0), (data,), order=2)


def test_what_factors_and_other_modes_hold_is_refused():
    with pytest.raises(pb.NotDifferentiableError, match="splu made of traced values has no 'L'"):
        pb.vjp(lambda d: mirrored_linalg.splu(mirrored.csc_array((d, [0], [0, 1]))).L.toarray(), np.ones(1))
    with pytest.raises(pb.NotDifferentiableError, match="mode='buckling'"):
        pb.vjp(lambda d: mirrored_linalg.eigsh(mirrored.diags(d), 1, sigma=1.5, mode="buckling")[0], np.arange(1.0, 5))
    a = np.diag(np.arange(7.0, 12)) + RNG.normal(size=(N, N))
    far = scipy.sparse.diags(1 / np.diag(a))
    with pytest.raises(pb.ConvergenceError, match="residual"):  # SciPy's says that it has converged
        pb.grad(lambda a: np.sum(mirrored_linalg.tfqmr(a, X, M=far, rtol=1e-12)[0]))(a)
    single = a.astype(np.float32)
    out, _ = pb.vjp(lambda a: mirrored_linalg.gmres(a, X.astype(np.float32))[0], single)
    assert out.dtype == np.float32


def test_eigsh_has_values_and_vectors():
    symmetric = PATTERN + PATTERN.T
    data = scipy.sparse.csr_array(symmetric).data

    def f(data):
        a = mirrored.csr_array((data, symmetric.indices, symmetric.indptr), shape=(N, N))
        a = (a + a.T) * 0.5
        w, v = mirrored_linalg.eigsh(a, 2, which="LA")
        return np.sum(np.sin(w)) + np.sum(v[:, 0] ** 2 * np.arange(N)) + np.sum(v[:, 1] ** 4)

    pb.testing.check_grads(f, (data,), order=1)


def test_a_policy_factors_once(monkeypatch):
    made, splu = [], scipy.sparse.linalg.splu

    def counted(*args, **kwargs):
        made.append(args)
        return splu(*args, **kwargs)

    monkeypatch.setattr(direct.linalg, "splu", counted)

    def misfit(data, policy):
        lu = mirrored_linalg.splu(mirrored.csc_array((data, PATTERN.indices, PATTERN.indptr), shape=(N, N)))
        return np.sum(pb.fori_loop(0, 12, lambda k, u: lu.solve(u) + X, X, policy=policy) ** 2)

    gradients = [pb.grad(misfit)(DATA, policy) for policy in (pb.SaveAll(), pb.Recompute(), pb.Binomial(3))]
    assert len(made) == 3
    assert len({g.tobytes() for g in gradients}) == 1


def test_a_matrix_is_of_the_class_that_it_stands_for():
    def f(d):
        a = mirrored.csr_matrix((d, PATTERN.indices, PATTERN.indptr))
        assert isinstance(a, mirrored.csr_matrix)
        assert not isinstance(a, mirrored.csc_matrix)
        assert mirrored.issparse(a)
        return np.sum(a @ X)

    assert isinstance(mirrored.csr_matrix(PATTERN), scipy.sparse.csr_matrix)
    assert pb.grad(f)(DATA).shape == DATA.shape


def test_a_system_whose_transpose_does_not_converge_raises():
    def f(b):
        return mirrored_linalg.gmres(PATTERN, b, rtol=1e-14, maxiter=1, restart=1)[0]

    with pytest.raises(pb.ConvergenceError, match=r"gmres: the transposed system.*maxiter="):
        pb.grad(lambda b: np.sum(f(b)))(X)


def test_bicg_and_what_is_made_of_nonzeros():
    def matrix(data):
        return mirrored.csc_array((data, PATTERN.indices, PATTERN.indptr), shape=(N, N))

    def f(data, b):
        a = matrix(data)
        return mirrored_linalg.bicg(a, b, rtol=1e-12)[0], abs(a).sum(axis=0), a.mean()

    pb.testing.check_grads(f, (DATA, X), order=1)
    with pytest.raises(AttributeError, match=r"a traced sparse array has no 'maximum' here.*A\.with_data"):
        pb.grad(lambda data: matrix(data).maximum(2).sum())(DATA)


@pytest.mark.parametrize("which", ["SM", "LA", "SA"])
def test_eigenvalues_alone_are_in_the_order_of_scipy(which):
    symmetric = scipy.sparse.csc_array(PATTERN + PATTERN.T)
    options = {"k": 2, "which": which, "return_eigenvectors": False, "v0": np.ones(N)}
    expected = scipy.sparse.linalg.eigsh(symmetric, **options)

    def f(data):
        return mirrored_linalg.eigsh(mirrored.csc_array((data, symmetric.indices, symmetric.indptr)), **options)

    np.testing.assert_allclose(pb.vjp(f, symmetric.data)[0], expected, rtol=1e-10)


SCALED = {
    "k * A": lambda k, a, x: (k * a) @ x,
    "A * k": lambda k, a, x: (a * k) @ (x * k),
    "A / k": lambda k, a, x: (a / k) @ x,
    "A - k * A": lambda k, a, x: (a - k * a) @ x,
    "exp(k) * A + A": lambda k, a, x: (np.exp(k) * a + a) @ x,
    "x[1] * A": lambda k, a, x: ((x * k)[1] * a) @ x,
    "A * x": lambda k, a, x: (a * (x * k)).sum(axis=-1),
}


@pytest.mark.parametrize("kind", ["csr_matrix", "csr_array", "csc_matrix", "coo_array", "lil_matrix", "dia_matrix"])
@pytest.mark.parametrize("name", SCALED)
def test_a_plain_sparse_array_times_a_traced_number_is_one_with_traced_nonzeros(name, kind):
    a = getattr(scipy.sparse, kind)(PATTERN)

    def f(k):
        return np.sum(np.sin(SCALED[name](k, a, X)))

    value, gradient = pb.value_and_grad(f)(0.7)
    assert np.asarray(value).tobytes() == np.asarray(f(0.7)).tobytes()
    np.testing.assert_allclose(gradient, (f(0.7 + 1e-6) - f(0.7 - 1e-6)) / 2e-6, rtol=1e-7)
    assert pb.grad(f, policy=pb.Recompute())(0.7) == gradient
    np.testing.assert_allclose(pb.jvp(f, (0.7,), (1.0,))[1], gradient, rtol=1e-12)
    slope = (pb.grad(f)(0.7 + 1e-5) - pb.grad(f)(0.7 - 1e-5)) / 2e-5
    np.testing.assert_allclose(pb.hvp(f, (0.7,), (1.0,)), slope, rtol=1e-6)


def test_np_sum_of_a_traced_sparse_array():
    a = scipy.sparse.csr_array(PATTERN)
    np.testing.assert_allclose(pb.grad(lambda k: np.sum(k * a, dtype=float))(0.7), a.sum())
    with pytest.raises(pb.NotDifferentiableError, match=r"no sum with out=; write out\[\.\.\.\] = A\.sum\(axis\)"):
        pb.grad(lambda k: np.sum(k * a, axis=0, out=np.zeros(N)))(0.7)


def test_a_function_without_a_rule_takes_what_depends_on_no_input_and_refuses_the_rest_by_name(tmp_path):
    (tmp_path / "norms.py").write_text(
        "import numpy as np\n"
        "import scipy.sparse as sp\n"
        "import scipy.sparse.linalg as la\n"
        "def fixed(x):\n"
        "    a = sp.diags([np.ones(2), 2 * np.ones(3)], [1, 0], format='csc')\n"
        "    return la.norm(a) * np.sum(x) + np.sum(la.expm(a) @ x)\n"
        "def moving(x):\n"
        "    return la.norm(sp.diags([x], [0]))\n"
    )
    norms, x = pb.adopt(tmp_path / "norms.py"), np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(np.sum(pb.grad(norms.fixed)(x) * x), norms.fixed(x), rtol=1e-13)
    with pytest.raises(pb.MissingRuleError, match=r"scipy\.sparse\.linalg\.norm has no rule for a traced sparse array"):
        pb.grad(norms.moving)(x)


@pytest.mark.filterwarnings("ignore:the matrix subclass")  # of the original's
def test_what_a_sparse_matrix_gives_has_two_axes_and_the_products_of_numpy_matrix(tmp_path, monkeypatch):
    (tmp_path / "old_style.py").write_text(
        "import numpy as np\n"
        "import scipy.sparse as sp\n"
        "ROWS, COLUMNS = [0, 1, 2, 0, 1, 2], [0, 1, 2, 1, 2, 0]\n"
        "def f(x):\n"
        "    u = np.arange(1.0, 4.0).reshape(3, 1)\n"
        "    K = sp.csr_matrix((np.concatenate([x, x**2]), (ROWS, COLUMNS)), shape=(3, 3))\n"
        "    D = K.todense()\n"
        "    D[0, 2] = x[1]\n"
        "    found = [(D * u).sum(), (D * D)[0, 1], (u.T * D).sum(), (x * np.ones(3) @ D).sum(), (D @ x).sum()]\n"
        "    found += [(D.T * D - D**2).sum(), (2.0 * D + np.eye(3))[1].sum(), D[:, 1].T.A[0, 2], (-D / 2).mean()]\n"
        "    found += [(D.I * D * u)[1, 0], (np.linalg.inv(D) * u).sum(), np.sum(np.linalg.solve(D, u) ** 2)]\n"
        "    found += [np.array(K.sum(axis=1)).flatten()[1], K.sum(axis=0).A1[2], (np.asarray(D) * x).sum()]\n"
        "    found += [(K.sum(axis=0) * K.sum(axis=-1))[0, 0], np.array(D.flatten())[0, :].sum()]\n"
        "    found += [(np.eye(3) - D + 1.0).sum(axis=0)[0, 1], K.mean(axis=1)[2, 0], len(D) * D.size * x[0]]\n"
        "    found += [(D.copy() - u).sum(), np.sum(D * D), np.mean(D, axis=1)[1, 0], ((K + np.eye(3)) * u)[0, 0]]\n"
        "    found += [((K * D) * u)[1, 0], ((K * np.matrix(np.eye(3))) * u).sum()]\n"
        "    return sum(found)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    plain, copy, x = __import__("old_style").f, pb.adopt(tmp_path / "old_style.py").f, np.array([1.0, 2.0, 3.0])
    value, gradient = pb.value_and_grad(copy)(x)
    np.testing.assert_allclose(value, plain(x), rtol=1e-13)
    differences = [(plain(x + 1e-6 * e) - plain(x - 1e-6 * e)) / 2e-6 for e in np.eye(3)]
    np.testing.assert_allclose(gradient, differences, rtol=1e-6)
    assert (pb.grad(copy, policy=pb.Recompute())(x) == gradient).all()


def test_what_such_a_matrix_does_not_serve_is_refused():
    def dense(x):
        return mirrored.csr_matrix(np.outer(x, x)).todense()

    with pytest.raises(pb.NotDifferentiableError, match=r"the attribute 'partition' .* write S\.toarray\(\)"):
        pb.grad(lambda x: dense(x).partition(1))(X)
    with pytest.raises(pb.NotDifferentiableError, match=r"numpy\.sort of a traced numpy\.matrix has no derivative"):
        pb.grad(lambda x: np.sort(dense(x)))(X)
    with pytest.raises(pb.NotDifferentiableError, match=r"numpy\.exp of a traced sparse array has no derivative here"):
        pb.grad(lambda x: np.exp(mirrored.csr_matrix(np.outer(x, x))))(X)
    with pytest.raises(TypeError, match="does not support ufuncs"):
        pb.grad(lambda x: np.exp(dense(x)))(X)


def test_a_program_writes_into_a_class_of_scipy(tmp_path):
    (tmp_path / "writes_a_class.py").write_text(
        "import scipy.sparse as sp\n"
        "sp.csr_matrix.doubled_by_a_program = lambda self: 2.0 * self\n"
        "def f(x):\n"
        "    return sp.csr_matrix([[1.0]]).doubled_by_a_program().sum() * x\n"
    )
    try:
        assert pb.grad(pb.adopt(tmp_path / "writes_a_class.py").f)(3.0) == 2.0
        assert hasattr(scipy.sparse.csr_matrix, "doubled_by_a_program")
    finally:
        del scipy.sparse.csr_matrix.doubled_by_a_program
