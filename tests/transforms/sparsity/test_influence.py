"""What reaches what: never too little, for every case of every primitive; and exactly what it is where the structure
is known."""

import numpy as np
import pytest
from tests.primitives.rows import rows

import pullback as pb
from pullback.transforms.sparsity.followed_runs import follow
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


@pytest.mark.share(8, of=lambda row: row.covers, turn=1)
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
