"""Sparse Jacobians: equal to dense ones, by few derivatives, and a structure that misses something is told."""

import numpy as np
import pytest
from scipy import sparse

import pullback as pb
from pullback.transforms.derivatives.forward import LinearMap
from pullback.transforms.derivatives.pulls import Pull
from pullback.transforms.sparsity import sparse_jacobians
from pullback.transforms.sparsity.sparse_jacobians import as_pattern
from pullback.words.errors import NotDifferentiableError, PullbackError, StructureError

X = np.random.default_rng(0).standard_normal(12)
MODES = ("auto", "forward", "reverse")


def burgers(u):
    """A band of three."""
    out = np.zeros_like(u)
    out[1:-1] = u[1:-1] * (u[2:] - u[:-2]) + (u[2:] - 2 * u[1:-1] + u[:-2])
    return out


def arrow(x):
    """Every row has two entries, but the last."""
    return np.concatenate([x[1:] * x[0], np.sum(x**2)[None]])


def gather(x):
    """A full column and a full row, so that neither direction has few colours alone."""
    return np.concatenate([np.sin(x[:5]) + x[11], np.prod(x)[None]])


def residuals(params, t):
    """Several leaves, of which one is an integer, and a Python float."""
    return {"fit": params["amplitude"] * np.exp(-t * params["rate"]), "prior": params["rate"] - 1.0, "n": params["n"]}


PARAMS = {"amplitude": np.array([1.0, 2.0, 3.0]), "rate": 0.5, "n": 3}


def dense_of(f, x):
    return pb.jacobian(f)(x).reshape(-1, np.size(x))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "f", [burgers, arrow, gather, np.sin, lambda x: np.sum(x**2), lambda x: x.reshape(3, 4).T[::2]]
)
def test_it_is_the_dense_jacobian(f, mode):
    found = pb.sparse_jacobian(f, mode=mode)(X)
    assert isinstance(found, sparse.csr_array)
    np.testing.assert_allclose(found.toarray(), dense_of(f, X), rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("mode", MODES)
def test_structures_of_arguments_and_results(mode):
    t = np.array([0.1, 0.2, 0.3])
    found = pb.sparse_jacobian(residuals, (0, 1), mode=mode)(PARAMS, t)
    decay = np.exp(-t * 0.5)
    amplitude = PARAMS["amplitude"]
    expected = np.zeros((4, 7))  # amplitude 3, rate 1, t 3; fit 3, prior 1
    expected[:3, :3], expected[:3, 3], expected[:3, 4:] = (
        np.diag(decay),
        -t * amplitude * decay,
        np.diag(-0.5 * amplitude * decay),
    )
    expected[3, 3] = 1.0
    np.testing.assert_allclose(found.toarray(), expected, rtol=1e-14)
    assert found.nnz == 10
    by_name = pb.sparse_jacobian(residuals, argnames="t", mode=mode)(PARAMS, t=t)
    np.testing.assert_allclose(by_name.toarray(), expected[:, 4:], rtol=1e-14)


def test_the_number_of_derivatives_is_that_of_the_colours(monkeypatch):
    """The colours of a band do not grow with its length."""
    counts = []
    for n in (20, 200, 2000):
        seen = []
        linearize = pb.linearize

        def counted(f, *primals, seen=seen, linearize=linearize):
            out, push = linearize(f, *primals)
            return out, lambda several: (seen.extend(several), push(several))[1]

        monkeypatch.setattr("pullback.transforms.sparsity.sparse_jacobians.linearize", counted)
        x = np.random.default_rng(n).standard_normal(n)
        found = pb.sparse_jacobian(burgers)(x)
        monkeypatch.undo()
        assert found.nnz == 3 * (n - 2)
        counts.append(len(seen))
    assert counts == [3, 3, 3]


def test_auto_takes_the_direction_with_fewer_colours(monkeypatch):
    pulls = []
    vjp = pb.vjp

    def counted(f, *primals, policy=None):
        out, pull = vjp(f, *primals, policy=policy)

        class Counted:
            seed_bytes = pull.seed_bytes

            def __call__(self, cts):
                pulls.extend(cts)
                return pull(cts)

            def close(self):
                pull.close()

        return out, Counted()

    monkeypatch.setattr("pullback.transforms.sparsity.sparse_jacobians.vjp", counted)
    # One pull for all rows, a column for each of four.
    wide = lambda x: np.sum(x.reshape(3, 4) ** 3, axis=1)  # noqa: E731
    np.testing.assert_allclose(pb.sparse_jacobian(wide)(X).toarray(), dense_of(wide, X), rtol=1e-14)
    assert len(pulls) == 1
    pb.sparse_jacobian(burgers)(X)
    assert len(pulls) == 1


def test_entries_of_the_structure_are_stored_though_they_are_zero():
    found = pb.sparse_jacobian(lambda x: x[1:] * x[:-1])(np.zeros(4))
    assert found.nnz == 6
    assert not found.data.any()


def test_dtype_follows_the_values():
    assert pb.sparse_jacobian(burgers)(X.astype(np.float32)).dtype == np.float32
    assert pb.sparse_jacobian(lambda x: x.astype(np.float64) * 2)(X.astype(np.float32)).dtype == np.float64


@pytest.mark.parametrize("policy", [None, pb.Binomial(2)], ids=repr)
def test_rows_under_a_policy(policy):
    f = lambda x: pb.fori_loop(0, 4, lambda k, u: u + 0.1 * np.sin(np.roll(u, 1)), x)  # noqa: E731
    found = pb.sparse_jacobian(f, mode="reverse", policy=policy)(X)
    np.testing.assert_allclose(found.toarray(), dense_of(f, X), rtol=1e-13)
    assert found.nnz == 5 * 12


def given_structures():
    pattern = np.zeros((12, 12), bool)
    for k in range(1, 11):
        pattern[k, k - 1 : k + 2] = True
    yield "dense", pattern
    yield "csr", sparse.csr_array(pattern)
    yield "coo with values", sparse.coo_matrix(pattern * 2.5)
    yield "pair", np.nonzero(pattern)
    yield "entries named twice", tuple(np.concatenate([part, part]) for part in np.nonzero(pattern))
    yield "too much", np.ones((12, 12), bool)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("name", "structure"), list(given_structures()))
def test_a_structure_may_be_given(name, structure, mode):
    found = pb.sparse_jacobian(burgers, structure=structure, mode=mode)(X)
    np.testing.assert_allclose(found.toarray(), dense_of(burgers, X), rtol=1e-14)
    assert found.nnz == (144 if name == "too much" else 30)


def test_the_pattern_of_dependencies_is_a_structure():
    pattern = pb.dependencies(burgers, X, norms=False).matrix
    other = X[::-1].copy()
    np.testing.assert_allclose(
        pb.sparse_jacobian(burgers, structure=pattern)(other).toarray(), dense_of(burgers, other), rtol=1e-14
    )


# ------------------------------------------------------------------------------------------------------------ bad input


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("row", "column"), [(4, 3), (10, 11), (1, 0)])
def test_an_entry_that_the_structure_misses_is_named(row, column, mode):
    pattern = np.abs(dense_of(burgers, X)) > 0
    pattern[row, column] = False
    said = rf"misses entry \(row {row}, column {column}\) of the Jacobian at .*test_sparse_jacobians.py:\d+, which is"
    with pytest.raises(StructureError, match=said):
        pb.sparse_jacobian(burgers, structure=pattern, mode=mode)(X)
    silent = pb.sparse_jacobian(burgers, structure=pattern, mode=mode, check=False)(X)
    assert silent.nnz == 29


@pytest.mark.parametrize(
    ("structure", "said"),
    [
        (
            np.ones((3, 12), bool),
            r"structure has shape \(3, 12\), the Jacobian at .* has \(12, 12\): elements of the output by",
        ),
        (
            (np.array([0, 12]), np.array([0, 0])),
            r"structure names row 12; the Jacobian at .* has shape \(12, 12\), so rows 0 to 11",
        ),
        ((np.array([0]), np.array([-1])), r"structure names column -1"),
        ((np.array([0.5]), np.array([1])), r"is float64\[1\] and int64\[1\]; give two integer arrays of one length"),
        (np.ones((12, 12)), r"structure is float64\[12, 12\]; give a boolean matrix"),
        (np.ones(12, bool), r"structure is bool\[12\]; give a boolean matrix"),
    ],
)
def test_a_structure_that_is_none_is_refused(structure, said):
    with pytest.raises(StructureError, match=said):
        pb.sparse_jacobian(burgers, structure=structure)(X)


def test_other_bad_input():
    with pytest.raises(
        StructureError, match=r"mode='columns' of sparse_jacobian; choose one of 'auto', 'forward', 'reverse'"
    ):
        pb.sparse_jacobian(burgers, mode="columns")
    with pytest.raises(
        NotDifferentiableError, match=r"an argument of sparse_jacobian at .* is complex128\[12\]; write f in real"
    ):
        pb.sparse_jacobian(burgers)(X + 0j)
    with pytest.raises(NotDifferentiableError, match=r"the output of sparse_jacobian at .* is complex128\[12\]"):
        pb.sparse_jacobian(lambda x: x * 1j)(X)
    with pytest.raises(
        NotDifferentiableError, match=r"argument 1 of sparse_jacobian at .* is int64\[3\], which carries no derivative"
    ):
        pb.sparse_jacobian(np.multiply, (0, 1))(np.ones(3), np.arange(3))
    with pytest.raises(NotDifferentiableError, match=r"is float16\[3\], which scipy.sparse does not hold; convert it"):
        pb.sparse_jacobian(np.sin)(np.ones(3, np.float16))
    with pytest.raises(NotDifferentiableError, match="is traced; a sparse matrix holds no tracers"):
        pb.grad(lambda x: pb.sparse_jacobian(burgers)(x).sum())(X)


def test_a_function_that_is_another_each_time_is_found_out():
    calls = iter(range(100))
    with pytest.raises(StructureError, match="gives other values, or takes other branches, when it is run again; make"):
        pb.sparse_jacobian(lambda x: x * (1.0 + next(calls)), structure=np.eye(12, dtype=bool))(X)


def test_without_scipy_the_extra_is_named(monkeypatch):
    def absent(name):
        raise ImportError(name)

    monkeypatch.setattr("pullback.words.optional_libraries.import_module", absent)
    with pytest.raises(PullbackError, match=r"scipy is missing: install pullback\[demo\]"):
        as_pattern(np.eye(2, dtype=bool))


def test_nothing_at_all():
    empty = pb.sparse_jacobian(lambda x: x[:0])(X)
    assert empty.shape == (0, 12)
    assert pb.sparse_jacobian(lambda x: np.ones(3))(X).shape == (3, 12)
    assert pb.sparse_jacobian(np.sin)(np.zeros(0)).shape == (0, 0)


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_the_colours_go_together_as_many_as_may_be_held(mode, monkeypatch):
    def f(x):
        y = np.sin(x[1:-1]) * x[2:] - x[:-2] ** 2
        return y * x[:8].sum() if mode == "forward" else np.concatenate([y, y[:8].sum()[None]])

    x, lengths = np.linspace(0.1, 1.0, 30), []
    owner = LinearMap if mode == "forward" else Pull
    each, place = owner.each, 1 if mode == "forward" else 2

    def told(*args, **named):
        lengths.append(len(args[place]))
        return each(*args, **named)

    monkeypatch.setattr(owner, "each", told)
    derivative = pb.sparse_jacobian(f, mode=mode, check=False, policy=pb.Budget("1 GB") if mode == "reverse" else None)
    together = derivative(x)
    assert lengths[-1] > 3
    n_colours = lengths[-1]
    lengths.clear()
    monkeypatch.setattr(sparse_jacobians, "SEED_BYTES", 1)
    alone = derivative(x)
    assert lengths[-n_colours:] == [1] * n_colours
    assert together.data.tobytes() == alone.data.tobytes()
