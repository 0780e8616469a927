"""Products by SciPy sparse arrays: SciPy's own values to the bit, the derivative to second order, in loops under
every policy."""

import numpy as np
import pytest
from scipy import sparse

import pullback as pb
from pullback.testing import check_grads

RNG = np.random.default_rng(0)
DENSE = RNG.normal(size=(5, 4)) * (RNG.uniform(size=(5, 4)) < 0.6)
X, COLUMNS, Y = RNG.normal(size=4), RNG.normal(size=(4, 3)), RNG.normal(size=5)
FORMATS = ["csr", "csc", "coo", "dia", "bsr", "lil", "dok"]
KINDS = [sparse.csr_array, sparse.csr_matrix]


def made(dense, kind, form):
    return kind(dense).asformat(form)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_values_and_cotangents(kind, form):
    a = made(DENSE, kind, form)
    for x, f, expected in (
        (X, lambda x: a @ x, lambda ct: DENSE.T @ ct),
        (COLUMNS, lambda x: a @ x, lambda ct: DENSE.T @ ct),
        (Y, lambda y: y @ a, lambda ct: ct @ DENSE.T),
        (RNG.normal(size=(2, 5)), lambda y: y @ a, lambda ct: ct @ DENSE.T),
    ):
        value, pull = pb.vjp(f, x)
        plain = f(x)
        assert value.tobytes() == np.asarray(plain).tobytes() and value.shape == plain.shape
        ct = RNG.normal(size=value.shape)
        np.testing.assert_allclose(pull(ct)[0], expected(ct), rtol=1e-13)
        check_grads(f, (x,), order=2)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("policy", [pb.SaveAll(), pb.Recompute(), pb.Binomial(1)], ids=repr)
def test_steps_with_a_sparse_operator_have_the_same_bits_however_they_are_run(policy, form):
    a = made(0.05 * DENSE.T @ DENSE, sparse.csr_array, form)

    def looped(x):
        return np.sum(pb.fori_loop(0, 12, lambda _, u: u - a @ u + 0.1 * np.sin(u), x) ** 2)

    def stepped(x):
        for _ in pb.steps(12):
            x = x - a @ x + 0.1 * np.sin(x)
        return np.sum(x**2)

    expected = pb.grad(stepped)(X)
    assert pb.grad(looped, policy=policy)(X).tobytes() == expected.tobytes()
    assert pb.grad(stepped, policy=policy)(X).tobytes() == expected.tobytes()


def test_complex_and_single_precision():
    a = sparse.csr_array(DENSE * (1 + 2j))
    check_grads(lambda z: a @ z, (X + 1j * X[::-1],), order=2)
    gradient = pb.grad(lambda x: np.sum(sparse.csr_array(DENSE.astype(np.float32)) @ x))(X.astype(np.float32))
    assert gradient.dtype == np.float32


def test_a_matrix_that_is_changed_afterwards_does_not_change_the_derivative():
    a = sparse.csr_array(DENSE)
    _, pull = pb.vjp(lambda x: np.sin(a @ x), X)
    a.data[:] = 0.0
    np.testing.assert_allclose(pull(Y)[0], DENSE.T @ (Y * np.cos(DENSE @ X)), rtol=1e-13)


def test_what_is_no_product_is_refused_with_the_line_and_the_rewrite():
    a = sparse.csr_array(DENSE)
    with pytest.raises(
        pb.ConversionError, match=r"test_sparse_products\.py:\d+\); .*computes on plain arrays: write A @ x"
    ):
        pb.grad(lambda x: np.sum(a.multiply(x)))(X)
    with pytest.raises(ValueError, match=r"dimension mismatch"):
        pb.grad(lambda y: np.sum(a @ y))(Y)
