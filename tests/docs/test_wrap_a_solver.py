"""docs/wrap-a-solver.md: the text runs, and what it says is counted: one factorisation, transposed solves, nonzeros
only, equal bits."""

import sys
from types import ModuleType

import numpy as np
import pytest
from tests.docs.test_documents import ROOT, blocks
from tests.programs.measured import peak_of

import pullback as pb

NAME = "docs/wrap-a-solver.md"
BLOCKS = [(line, source) for line, source in blocks((ROOT / NAME).read_text("utf-8"), "python") if ">>> " not in source]
POLICIES = (pb.SaveAll(), pb.Recompute(), pb.Recompute(segments=7), pb.Binomial(1), pb.Binomial(4))


@pytest.fixture
def text(monkeypatch):
    """The namespace of the document, with ``splu`` counted and every triangular solve noted as (kind, shape)."""
    space = ModuleType("document")
    monkeypatch.setitem(sys.modules, "document", space)
    for line, source in BLOCKS:
        exec(compile("\n" * line + source, NAME, "exec"), space.__dict__)  # noqa: S102 - the text of our own document
    space.made, space.solves = [], []
    splu = space.splu
    monkeypatch.setattr(space, "splu", lambda matrix: Watched(splu(matrix), space))
    return space


class Watched:
    """A SuperLU object that notes what is asked of it."""

    def __init__(self, lu, space):
        self.lu, self.space, self.nnz = lu, space, lu.nnz
        space.made.append(lu.shape)

    def solve(self, b, trans):
        self.space.solves.append(trans)
        return self.lu.solve(b, trans)


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_the_factor_is_made_once_and_used_for_every_solve(text, policy):
    _, pull = pb.vjp(lambda c: text.misfit(c, text.u, text.observed, policy), text.c)
    pull(1.0)
    assert len(text.made) == 1
    assert text.solves.count("T") == 50, "one transposed solve for each step"
    assert text.solves.count("N") >= pull.report.n_forward


def test_a_factor_of_a_constant_matrix_is_made_once_too(text):
    factor = text.factorize(text.nonzeros(text.c), text.corners.indices, text.corners.indptr)
    text.made.clear()

    def last(u, policy):
        return np.sum(pb.fori_loop(0, 9, lambda k, u: text.solve(factor, u + u * u, trans="N"), u, policy=policy))

    expected = pb.grad(last)(text.u, pb.SaveAll())
    assert np.array_equal(pb.grad(last)(text.u, pb.Binomial(2)), expected)
    assert not text.made


@pytest.mark.parametrize("policy", POLICIES[1:], ids=repr)
def test_the_gradient_has_the_bits_of_save_all(text, policy):
    for c in (text.c, 1 + 0.3 * np.sin(np.arange(41.0))):
        expected = pb.grad(text.misfit)(c, text.u, text.observed, pb.SaveAll())
        assert pb.grad(text.misfit)(c, text.u, text.observed, policy).tobytes() == expected.tobytes()


def test_the_gradient_is_that_of_the_dense_program(text):
    """The same loop with np.linalg.solve and a dense matrix."""
    outer, r = np.arange(1, text.n), text.r

    def dense(c, u):
        matrix = np.zeros((text.n, text.n), like=c)
        matrix[np.arange(text.n), np.arange(text.n)] = 1 + r * (c[1:] + c[:-1])
        matrix[outer, outer - 1] = matrix[outer - 1, outer] = -r * c[1:-1]
        explicit = 2 * np.eye(text.n) - matrix
        for _ in range(5):
            u = np.linalg.solve(matrix, explicit @ u)
        return np.sum((u - text.observed) ** 2)

    def sparse(c, u):
        return np.sum((text.temperature(c, u, 5, None) - text.observed) ** 2)

    c = 1 + 0.3 * np.sin(np.arange(41.0))
    for given, expected in zip(pb.grad(sparse, (0, 1))(c, text.u), pb.grad(dense, (0, 1))(c, text.u), strict=True):
        np.testing.assert_allclose(given, expected, rtol=1e-9, atol=1e-12)


def test_nothing_of_the_size_of_the_dense_matrix_is_made(text):
    """A matrix of 3 000 rows would take 72 MB."""
    n = 3000
    rows = np.concatenate((np.arange(n), np.arange(1, n)))
    columns = np.concatenate((np.arange(n), np.arange(n - 1)))
    matrix = text.csc_array((np.where(rows == columns, 2.0, -0.5), (rows, columns)), shape=(n, n))

    def f(data, b):
        return np.sum(text.solve(text.factorize(data, matrix.indices, matrix.indptr), b, trans="N") ** 2)

    (data_ct, b_ct), peak = peak_of(pb.grad(f, (0, 1)), matrix.data, np.ones(n))
    assert data_ct.shape == matrix.data.shape
    assert b_ct.shape == (n,)
    assert peak < 4_000_000


def test_both_primitives_are_declared_as_the_text_says(text):
    assert text.factorize.nondiff == ("indices", "indptr")
    assert (
        text.factorize.opaque["out"](
            text.factorize.forward(text.pattern.data, text.pattern.indices, text.pattern.indptr)
        )
        > 0
    )
    (rule,) = text.solve.rules["b"]
    assert rule.joint
    assert rule.values == ("factor", "out")
