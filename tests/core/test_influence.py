"""What reaches what: never too little, for every case of every primitive; and exactly what it is where the structure
is known."""

import numpy as np
import pytest
from tests.primitives.rows import rows

import pullback as pb
from pullback.sparsity.influence import follow
from pullback.sparsity.input_sets import Sets
from pullback.sparsity.linear_structure import selected, structure_of
from pullback.sparsity.pattern_groups import groups_of_columns
from pullback.words.specs import carries_derivative
from pullback.words.structures import flatten, unflatten

ROWS = [pytest.param(row, id=row.name) for row in rows() if sum(np.size(x) for x in row.arrays) <= 60]


def joined(tree):
    parts = [np.reshape(leaf, -1) for leaf in flatten(tree)[0] if leaf is not None]
    return np.concatenate(parts) if parts else np.zeros(0)


def pattern_and_truth(f, *xs):
    """The pattern found, and which entries of the Jacobian are other than 0 at this point."""
    pattern, rows_found = follow(f, xs, range(len(xs)), {}), []
    with np.errstate(all="ignore"):
        out, pull = pb.vjp(f, *xs)
        leaves, definition = flatten(out)
        for k, leaf in enumerate(leaves):
            for i in range(np.size(leaf) if carries_derivative(leaf) else 0):
                turns = (1.0, 1j) if np.iscomplexobj(leaf) else (1.0,)
                seeds = [[None] * k + [np.reshape(np.eye(1, np.size(leaf), i)[0] * turn,
                    np.shape(leaf))] + [None] * (len(leaves) - k - 1)
                         for turn in turns]  # fmt: skip
                rows_found.append(np.any([joined(pull(unflatten(definition, seed))) != 0 for seed in seeds], axis=0))
    found = pattern.pattern().toarray()
    return found, np.stack(rows_found) if rows_found else np.zeros(found.shape, bool), pattern.coarse


@pytest.mark.parametrize("row", ROWS)
def test_no_dependence_is_missed(row):
    pattern, truth, _ = pattern_and_truth(row.outputs, *row.arrays)
    assert pattern.shape == truth.shape
    assert not np.argwhere(truth & ~pattern).size


def test_the_table_of_cases_is_looked_at():
    assert len(ROWS) > 500


X = np.random.default_rng(0).standard_normal(9)
M = np.random.default_rng(1).standard_normal((4, 5))
BAND = np.diag(np.ones(9)) + np.diag(np.ones(8), 1)
GENERATOR = np.random.default_rng(2)


def written(x):
    buffer = np.zeros_like(x)
    view = buffer[2:6]
    view += x[:4]
    buffer[0] = x[8] * x[7]
    buffer[[1, 1, 3]] += x[:3]
    np.add.at(buffer, [1, 1, 3], x[4:7])
    view[1] = x[0]
    return buffer


def heat(x):
    def body(k, u):
        u[1:-1] += 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])
        return u

    return pb.fori_loop(0, 3, body, x)


def complex_parts(x):
    z = x[:4] + 1j * x[4:8]
    w = z * z[0]
    return np.concatenate([w.real, z.imag])


EXACT = {
    "slices": (lambda x: x[1:] - x[:-1], X),
    "roll and cumsum": (lambda x: np.roll(x, 2) * np.cumsum(x), X),
    "writes": (written, X),
    "loop": (heat, X),
    "steps and checkpoint": (lambda x: [pb.checkpoint(np.sin)(x[k : k + 2]) for k in pb.steps(3)], X),
    "banded matrix": (lambda x: BAND @ x, X),
    "both factors": (lambda m: m @ m.T, M),
    "rows": (lambda m: np.sum(m * m, axis=1), M),
    "columns kept": (lambda m: np.prod(m, axis=0, keepdims=True), M),
    "joined": (lambda m: np.concatenate([m[0], m[:, 1] ** 2]).reshape(3, 3), M),
    "einsum": (lambda m: np.einsum("ij,ij->i", m, m), M),
    "convolve": (lambda x: np.convolve(x, [1.0, 0.0, 2.0], "same"), X),
    "statistics": (lambda x: np.mean(x) + x * np.var(x[:2]), X),
    "where": (lambda x: np.where(x > 0, x, np.roll(x, 1)), X),
    "a gradient": (pb.grad(lambda y: np.sum((y[1:] - y[:-1]) ** 4)), X),
    "norms": (lambda x: np.linalg.norm(x.reshape(3, 3), axis=1), X),
    "inner structure": (lambda x: np.stack([x, x])[:, ::3].T.copy(), X),
    "constants and integers": (lambda x: {"a": np.ones(3), "n": 3, "b": x[0] * 2.0}, X),
    "float32": (np.diff, X.astype(np.float32)),
    "scalar": (lambda x: x * 2.0, 3.0),
}


@pytest.mark.parametrize("name", EXACT)
def test_what_is_followed_is_followed_exactly(name):
    pattern, truth, coarse = pattern_and_truth(*EXACT[name])
    np.testing.assert_array_equal(pattern, truth)
    assert not coarse


def test_complex_values_are_followed_by_element():
    pattern, truth, _ = pattern_and_truth(complex_parts, X)
    assert not np.any(truth & ~pattern)
    assert pattern.sum() == 2 + 3 * 4 + 4 * 2


def test_a_zero_by_chance_is_kept():
    pattern, truth, _ = pattern_and_truth(lambda x: x[1:] * x[:-1], np.zeros(4))
    assert not truth.any()
    assert pattern.sum() == 6


def test_what_is_not_known_is_all_on_all_and_said():
    @pb.primitive
    def twisted(x):
        return x[::-1] * x

    @twisted.vjp("x")
    def _(ct, x):
        return ct * x[::-1] + (ct * x)[::-1]

    pattern, _, coarse = pattern_and_truth(lambda x: twisted(x[1:4]), X)
    assert pattern[:, 1:4].all() and not pattern[:, [0, 4, 5, 6, 7, 8]].any()
    ((name, line),) = coarse
    assert name == "twisted"
    assert "test_influence.py:" in line


def test_a_primitive_of_ones_own_named_like_ours_is_not_taken_for_it():
    @pb.primitive
    def reduce_first(x, *, axis, keepdims):
        return np.full(np.sum(x, axis=axis, keepdims=keepdims).shape, x[0, 0])

    @reduce_first.vjp("x")
    def _(ct, x_spec):
        return np.where(np.arange(20).reshape(x_spec.shape) == 0, np.sum(ct), 0.0)

    pattern, truth, coarse = pattern_and_truth(lambda m: reduce_first(m, axis=0, keepdims=False), M)
    assert pattern.all() and truth[:, 0].all()
    assert coarse


def test_one_that_says_that_it_is_elementwise_is_believed():
    @pb.primitive(elementwise=True)
    def softplus(x):
        return np.logaddexp(0.0, x)

    @softplus.vjp("x")
    def _(ct, x):
        return ct / (1.0 + np.exp(-x))

    pattern, truth, _ = pattern_and_truth(softplus, X)
    np.testing.assert_array_equal(pattern, truth)


# ----------------------------------------------------------------------------------------------------------------- sets


@pytest.mark.parametrize("seed", range(5))
def test_sets_are_sets(seed):
    """Against Python's own."""
    rng = np.random.default_rng(seed)
    table = Sets()
    names = list(table.sources(12))
    known = [frozenset((k,)) for k in range(12)] + [frozenset()]
    names.append(np.int64(0))
    for _ in range(40):
        i, j = rng.integers(0, len(names), (2, 5))
        made = table.union(np.array([names[k] for k in i]), np.array([names[k] for k in j]))
        names += list(made)
        known += [known[a] | known[b] for a, b in zip(i, j, strict=True)]
    for name, members in zip(names, known, strict=True):
        assert set(table.of(np.array([name]))[1].tolist()) == members
    by_name = dict(zip(map(int, names), known, strict=True))
    assert len(by_name) == len(set(known)), "equal sets have one name"


def test_sets_that_no_longer_grow_cost_nothing():
    table = Sets()
    u = table.sources(16)
    for _ in range(40):
        u = table.union(u, np.roll(u, 1), np.roll(u, -1))
    assert len(set(u.tolist())) == 1
    before = table.used
    for _ in range(40):
        u = table.union(u, np.roll(u, 1), np.roll(u, -1))
    assert table.used == before


@pytest.mark.parametrize("seed", range(4))
def test_the_structure_of_a_matrix_is_found_from_products(seed):
    rng = np.random.default_rng(seed)
    k, n = rng.integers(1, 40, 2)
    matrix = rng.standard_normal((k, n)) * (rng.random((k, n)) < [0.05, 0.3, 0.0, 1.0][seed])
    rows_found, columns_found = structure_of(lambda x: matrix @ x, int(n), int(k))
    found = np.zeros((k, n), bool)
    found[rows_found, columns_found] = True
    np.testing.assert_array_equal(found, matrix != 0)


def test_a_band_takes_few_products_and_a_full_matrix_gives_up():
    n, products = 1000, 0

    def banded(x):
        nonlocal products
        products += 1
        return 2 * x - np.concatenate([x[1:], [0.0]])

    found = structure_of(banded, n, n)
    assert len(found[0]) == 2 * n - 1
    assert products < 80
    assert structure_of(lambda x: np.full(n, np.sum(x)), n, n, limit=100) is None


def test_maps_that_hand_on_elements_are_told_from_others():
    assert selected(lambda x: x[[2, 0, 0]], 3).tolist() == [2, 0, 0]
    assert selected(lambda x: np.concatenate([[0.0], x]), 2).tolist() == [-1, 0, 1]
    for other in (lambda x: 2.0 * x, np.cumsum, lambda x: x[:1] + x[1:2], lambda x: -x):
        assert selected(other, 4) is None
    assert selected(lambda x: x, 0) is None


@pytest.mark.parametrize("seed", range(4))
def test_no_row_has_two_columns_of_one_group(seed):
    from scipy.sparse import csr_array  # noqa: PLC0415 - beside the library's own lazy import

    pattern = csr_array(np.random.default_rng(seed).random((30, 20)) < 0.1)
    groups = groups_of_columns(pattern)
    for row in pattern.toarray():
        mine = groups[row]
        assert len(set(mine.tolist())) == len(mine)
    assert groups_of_columns(csr_array(np.zeros((3, 4), bool))).tolist() == [0] * 4


def _solve(g, y):
    return np.linalg.solve(np.stack([g(e) for e in np.eye(len(y))], axis=1), y)


IMPLICIT = {
    "fixed_point": (lambda u: pb.fixed_point(lambda a, y: 0.3 * np.cos(y) + a, u, np.zeros(6)), 6),
    "complex": (lambda u: np.abs(pb.fixed_point(lambda a, v: 0.3 * np.exp(-v) + a * 1j, u, np.zeros(6, complex))), 6),
    "root": (
        lambda u: pb.custom_root(
            lambda v: v**3 - u[::-1], u, lambda f, v: np.cbrt(U[::-1]), lambda g, y: y / g(np.ones(6))
        ),
        6,
    ),
    "scalar": (
        lambda u: pb.custom_root(lambda v: v - u[0] * u[1], 0.1, lambda f, v: U[0] * U[1], lambda g, y: y / g(1.0)),
        2,
    ),
    "blocks": (
        lambda u: pb.custom_linear_solve(
            lambda v: np.concatenate([2 * v[:3] + v[2::-1], 3 * v[3:]]), u, _solve, _solve
        ),
        8,
    ),
    "coupled": (
        lambda u: pb.custom_linear_solve(lambda v: 3 * v - np.roll(v, 1) - np.roll(v, -1), u, _solve, symmetric=True),
        36,
    ),
}
U = np.linspace(0.5, 2.0, 6)


@pytest.mark.parametrize("name", IMPLICIT)
def test_implicit_solutions(name):
    f, entries = IMPLICIT[name]
    found = pb.dependencies(f, U, norms=False)
    dense = pb.jacobian(f)(U).reshape(-1, 6)
    assert np.array_equal(found.matrix.toarray(), dense != 0)
    assert found.matrix.nnz == entries
    np.testing.assert_allclose(pb.sparse_jacobian(f)(U).toarray(), dense, rtol=1e-9, atol=1e-12)


def test_implicit_solution_of_a_structure():
    def f(u):
        def matvec(d):
            return {"a": d["a"] * 2, "b": d["b"] * u[:3]}

        def solve(_, b):
            return {"a": b["a"] / 2, "b": b["b"] / U[:3]}

        return pb.custom_linear_solve(matvec, {"a": u[3:], "b": u[1:4]}, solve, symmetric=True)

    found = pb.dependencies(f, U, norms=False)
    assert found.of("u", "['a']").entries == 3
    assert found.of("u", "['b']").entries == 6
