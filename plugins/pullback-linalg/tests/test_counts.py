"""What is kept and how often something costly is done: counted, not timed."""

from typing import ClassVar

import numpy as np
import pytest

import pullback as pb
from pullback_linalg import solve
from pullback_linalg.contractions import dot
from pullback_linalg.products import matmul

RNG = np.random.default_rng(6)
A = RNG.normal(size=(6, 6)) + 5 * np.eye(6)
PRODUCTS = {np.matmul, np.dot, np.tensordot, np.multiply, np.einsum, np.vecdot}


class Counted(np.ndarray):
    """An array that notes the products it takes part in."""

    calls: ClassVar[list[str]] = []

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        self.note(ufunc)
        return getattr(ufunc, method)(*map(np.asarray, inputs), **kwargs)

    def __array_function__(self, func, types, args, kwargs):
        self.note(func)
        return func(*(np.asarray(a) if isinstance(a, Counted) else a for a in args), **kwargs)

    def note(self, func):
        if func in PRODUCTS:
            self.calls.append(func.__name__)


@pytest.mark.parametrize("primitive", [matmul, dot], ids=lambda p: p.name)
@pytest.mark.parametrize("x", [(4, 5), (2, 4, 5), (5,), (3, 2, 4, 5)])
@pytest.mark.parametrize("y", [(5,), (5, 3), (2, 5, 3)])
def test_each_cotangent_is_one_product(primitive, x, y):
    x, y = RNG.normal(size=x), RNG.normal(size=y)
    ct = np.asarray(primitive(x, y)).view(Counted)
    for operand in ("x", "y"):
        (rule,) = primitive.rules[operand]
        values = {"x": x, "y": y, "x_spec": x, "y_spec": y}
        Counted.calls.clear()
        rule.fn(ct, *(values[name] for name in rule.reads))
        assert len(Counted.calls) == 1, Counted.calls


def test_a_product_with_a_constant_keeps_the_constant_alone():
    x = RNG.normal(size=(50, 6))
    _, pull = pb.vjp(lambda x: x @ A, x)
    assert pull.report.bytes_by_reason == {"constant": A.nbytes}
    _, pull = pb.vjp(lambda a: x @ a, A)
    assert pull.report.bytes_by_reason == {"constant": x.nbytes}


@pytest.fixture
def factorisations(monkeypatch):
    """How often LAPACK's getrf was asked for, and NumPy's solve."""
    counts = {"getrf": 0, "solve": 0}
    factor, numpy_solve = solve.factor, np.linalg.solve

    def counted_factor(a):
        counts["getrf"] += 1
        return factor(a)

    def counted_solve(a, b):
        counts["solve"] += isinstance(a, np.ndarray) and isinstance(b, np.ndarray)
        return numpy_solve(a, b)

    monkeypatch.setattr(solve, "factor", counted_factor)
    monkeypatch.setattr(np.linalg, "solve", counted_solve)
    return counts


def test_solve_factors_once_and_every_pull_substitutes(factorisations):
    out, pull = pb.vjp(solve.np_solve, A, RNG.normal(size=6))
    forward = dict(factorisations)
    assert forward == {"getrf": 1, "solve": 1}
    for _ in range(3):
        pull(np.ones_like(out))
    assert factorisations == forward
    assert pull.report.bytes_by_reason["residual"] == A.nbytes + 6 * np.dtype(np.int32).itemsize


def test_solve_without_scipy_solves_again_and_keeps_no_factor(factorisations, monkeypatch):
    monkeypatch.setattr(solve, "HAS_SCIPY", False)
    b = RNG.normal(size=6)
    out, pull = pb.vjp(solve.np_solve, A, b)
    factorisations.clear()
    factorisations.update(getrf=0, solve=0)
    a_ct, b_ct = pull(np.ones_like(out))
    assert factorisations == {"getrf": 0, "solve": 1}
    assert "residual" not in pull.report.bytes_by_reason
    np.testing.assert_allclose(b_ct, np.linalg.inv(A).T @ np.ones(6), rtol=1e-12)
    np.testing.assert_allclose(a_ct, -np.outer(b_ct, out), rtol=1e-12)


def test_the_second_derivative_for_the_right_side_alone_needs_the_matrix_only():
    b, v = RNG.normal(size=6), RNG.normal(size=6)

    def slope(b):
        return np.sum(pb.grad(lambda b: np.sum(np.linalg.solve(A, b) ** 3))(b) * v)

    inverse = np.linalg.inv(A)
    np.testing.assert_allclose(pb.grad(slope)(b), inverse.T @ (6 * (inverse @ b) * (inverse @ v)), rtol=1e-10)
