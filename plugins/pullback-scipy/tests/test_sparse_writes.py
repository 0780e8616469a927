"""Sparse arrays that are written by keys: drawn writes give SciPy's entries, and the derivatives of these."""

import numpy as np
import pytest
import scipy.sparse

import pullback as pb
from pullback_scipy import sparse as mirrored

M, N = 4, 5
X = np.array([0.7, -1.3, 2.1, 0.4])
KINDS = ("lil_matrix", "dok_matrix", "lil_array", "dok_array", "csr_matrix", "csc_matrix")


def one(rng, a, x):
    a[rng.integers(-M, M), rng.integers(-N, N)] = x[rng.integers(4)] * rng.choice([1.0, -2.0])


def one_more(rng, a, x):
    a[rng.integers(M), rng.integers(N)] += x[0] * x[1]


def plain(rng, a, x):
    a[rng.integers(M), rng.integers(N)] = rng.choice([0, 1.5])


def row_of_one(rng, a, x):
    i = rng.integers(M)
    a[i, :] = 0
    a[i, i] = 1.0


def row(rng, a, x):
    a[rng.integers(M), 1:] = x * rng.normal()


def column(rng, a, x):
    a[:, [rng.integers(N)]] = np.sin(x)[:, None]


def number_in_a_part(rng, a, x):
    a[1:3, ::2] = x[2]


def block(rng, a, x):
    rows, columns = rng.choice(M, 2, replace=False), rng.choice(N, 2, replace=False)
    a[np.ix_(rows, columns)] += np.outer(x[:2], x[2:])


def pairs(rng, a, x):
    a[[0, 2, 3], rng.choice(N, 3)] = x[1:]


def plain_numbers(rng, a, x):
    a[1:3, 2:4] = np.array([[0.0, 2.0], [3.0, 0.0]])


def diagonal(rng, a, x):
    a.setdiag(x[:3] if rng.integers(2) else x[0], int(rng.integers(-1, 2)))


def sparse_block(rng, a, x):
    a[1:3, :4] = scipy.sparse.coo_matrix(([1.0, 2.0, 0.5], ([0, 1, 1], [3, 0, 0])), shape=(2, 4))


def moved(rng, a, x):
    a[0, 0] = a[rng.integers(M), rng.integers(N)] * x[1] + 1.0
    a[3, :2] = a[1:2, 2:4].toarray()[0]


def masked(rng, a, x):
    a[np.arange(M) % 2 == 0, 0] = x[3]


WRITES = (one, one, one_more, plain, row_of_one, row, column, number_in_a_part, block, pairs, plain_numbers, diagonal,
          sparse_block, moved, masked)  # fmt: skip


@pytest.mark.filterwarnings("ignore:Changing the sparsity structure")  # SciPy's, of csr
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(8))
def test_drawn_writes_are_those_of_scipy(kind, seed):
    def written(sp, x):
        rng = np.random.default_rng([seed, KINDS.index(kind)])
        compressed = kind in ("csr_matrix", "csc_matrix")  # these are given an array with traced nonzeros
        a = getattr(sp, kind)(0.0 * x[0] * sp.eye(M, N, format="csr") if compressed else (M, N))
        for k in rng.integers(len(WRITES), size=rng.integers(1, 9)):
            WRITES[k](rng, a, x)
        b = a.copy()
        b[0, 0] = 7.0
        return a

    def f(x):
        a = written(mirrored, x)
        return a.toarray(), a.tocsr() @ np.arange(1.0, N + 1), a.T.tocsc() @ x

    out, pull = pb.vjp(f, X)
    plainly = written(scipy.sparse, X)
    expected = plainly.toarray(), plainly.tocsr() @ np.arange(1.0, N + 1), plainly.T.tocsc() @ X
    assert [np.asarray(each).tobytes() for each in out] == [np.asarray(each).tobytes() for each in expected]
    pb.testing.check_grads(f, (X,), order=2)
    seeds = tuple(map(np.cos, out))
    assert all(
        (pb.vjp(f, X, policy=policy)[1](seeds)[0] == pull(seeds)[0]).all()
        for policy in (pb.Recompute(), pb.Binomial(2))
    )


@pytest.mark.parametrize("kind", ["lil_matrix", "dok_matrix", "dok_array"])
def test_a_matrix_that_was_assembled_by_keys_is_solved(kind):
    """SciPy sorts the columns of its rows in place, whatever order they were written in."""

    def solved(m, la, k):
        a = getattr(m, kind)((4, 4))
        for e in range(3):
            a[e, e] += k * (1 + e)
            a[e + 1, e + 1] += k * (1 + e)
            a[e, e + 1] -= k * (1 + e)
            a[e + 1, e] -= k * (1 + e)
        a[0, :] = 0
        a[0, 0] = 1.0
        return la.spsolve(a.tocsr(), np.arange(1.0, 5.0))

    assert pb.vjp(lambda k: solved(mirrored, mirrored.linalg, k), 1.4)[0].tobytes() == solved(
        scipy.sparse, scipy.sparse.linalg, 1.4
    ).tobytes()  # fmt: skip
    pb.testing.check_grads(lambda k: solved(mirrored, mirrored.linalg, k), (1.4,), order=2)


def test_an_array_without_traced_entries_is_that_of_scipy():
    plain = mirrored.lil_matrix((2, 2))
    assert type(plain) is scipy.sparse.lil_matrix

    def f(x):
        a = mirrored.lil_matrix((2, 2))
        a[0, 1] = 2.0
        assert isinstance(a, mirrored.lil_matrix)
        assert (a.format, a.nnz, a.shape, a.dtype) == ("lil", 1, (2, 2), np.float64)
        assert type(a.tocsr()) is scipy.sparse.csr_matrix
        assert a.rows[0] == [1]
        a[0, 0] = x
        assert a.nnz == 2
        assert mirrored.isspmatrix_lil(a)
        assert not mirrored.isspmatrix_csr(a)
        assert mirrored.isspmatrix_csr(a.tocsr())
        assert not mirrored.isspmatrix_dia(a.tocsr())
        assert not mirrored.isspmatrix_bsr(a)
        return a.tocsr().asformat("dok").tolil().sum()

    assert pb.grad(f)(3.0) == 1.0


def test_an_array_of_integers_takes_no_traced_number():
    def f(x):
        mirrored.lil_matrix((2, 2), dtype=int)[0, 0] = x

    with pytest.raises(
        pb.NotDifferentiableError, match="int64 cannot hold a traced float64; make it with dtype=float64"
    ):
        pb.grad(f)(3.0)


def test_an_array_that_is_written_into_is_returned_in_another_format(tmp_path):
    file = tmp_path / "returns_a_matrix.py"
    file.write_text(
        "import scipy.sparse as sp\n"
        "def written(x):\n    A = sp.lil_matrix((2, 2))\n    A[0, 0] = x\n    return A\n"
        "def compressed(x):\n    return written(x).tocsr()\n"
    )
    program = pb.adopt(file)
    with pytest.raises(pb.NotDifferentiableError, match=r"neither returned .* give A\.tocsr\(\)"):
        pb.vjp(program.written, 3.0)
    out, pull = pb.vjp(program.compressed, 3.0)
    assert pull(out.with_data(np.array([2.0])))[0] == 2.0
