"""The part of SciPy in the shim: values are SciPy's, derivatives are those of differences, to second order where it
is promised."""

import numpy as np
import pytest
from scipy import integrate as scipy_integrate
from scipy import linalg as scipy_linalg
from scipy import special as scipy_special
from scipy import stats as scipy_stats

import pullback as pb
from pullback_autograd import grad, hessian, jacobian
from pullback_autograd.misc.flatten import flatten
from pullback_autograd.scipy import integrate, linalg, signal, special
from pullback_autograd.scipy.stats import multivariate_normal, norm
from pullback_autograd.test_util import check_grads

X = np.array([0.3, 0.7, 1.4])
SMALL = np.array([0.2, 0.5, 0.8])

# -------------------------------------------------------------------------------------------------------------- special
UNARY = {
    **dict.fromkeys("expit erf erfc ndtr log_ndtr psi digamma gamma gammaln rgamma j0 j1 y0 y1 i0 i1".split(), X),
    **dict.fromkeys("logit erfinv erfcinv".split(), SMALL),
}


@pytest.mark.parametrize("name", UNARY)
def test_a_special_function_of_one_argument(name):
    function, at = getattr(special, name), UNARY[name]
    np.testing.assert_array_equal(function(at), getattr(scipy_special, name)(at))
    check_grads(function)(at)
    assert grad(lambda x: np.sum(function(x)))(at.astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize(
    ("name", "arguments", "argnum"),
    [
        ("beta", (X, SMALL), (0, 1)),
        ("betaln", (X, SMALL), (0, 1)),
        ("betainc", (2.0, 1.5, SMALL), 2),
        ("gammainc", (2.0, X), 1),
        ("gammaincc", (2.0, X), 1),
        ("jn", (2, X), 1),
        ("yn", (2, X), 1),
        ("iv", (2.0, X), 1),
        ("ive", (2.0, X), 1),
        ("polygamma", (1, X), 1),
    ],
)
def test_a_special_function_of_several_arguments(name, arguments, argnum):
    function = getattr(special, name)
    np.testing.assert_array_equal(function(*arguments), getattr(scipy_special, name)(*arguments))
    check_grads(function, argnum)(*arguments)


def test_the_order_of_a_special_function_has_no_derivative():
    with pytest.raises(pb.MissingRuleError, match="iv"):
        grad(lambda v: special.iv(v, 2.0))(1.5)
    np.testing.assert_allclose(special.multigammaln(X + 2, 3), scipy_special.multigammaln(X + 2, 3))
    check_grads(lambda x: special.multigammaln(x, 3))(X + 2)
    assert grad(lambda x: special.gammasgn(x) * x)(-0.5) == scipy_special.gammasgn(-0.5)


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 1)])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_logsumexp(axis, keepdims, weighted):
    a, b = np.outer(X, SMALL - 0.4), np.outer(SMALL, X) if weighted else None
    value = special.logsumexp(a, axis=axis, b=b, keepdims=keepdims)
    expected = scipy_special.logsumexp(a, axis=axis, b=b, keepdims=keepdims)
    np.testing.assert_array_equal(value, expected)
    assert np.shape(value) == np.shape(expected)
    check_grads(lambda a: special.logsumexp(a, axis=axis, b=b, keepdims=keepdims))(a)
    if weighted:
        check_grads(lambda b: special.logsumexp(a, axis=axis, b=b, keepdims=keepdims))(b)


def test_logsumexp_at_the_ends():
    total = special.logsumexp
    np.testing.assert_allclose(grad(total)(np.array([1000.0, 1000.0])), [0.5, 0.5], rtol=1e-12)
    np.testing.assert_array_equal(grad(total)(np.array([-np.inf, 0.0])), [0.0, 1.0])
    np.testing.assert_array_equal(grad(total)(np.array([-np.inf, -np.inf])), [0.0, 0.0])
    np.testing.assert_array_equal(grad(total)(np.array([np.inf, 1.0])), [1.0, 0.0])
    assert grad(total)(3.0) == 1.0
    weights = np.array([1.0, -3.0, 0.5])
    value, sign = special.logsumexp(X, b=weights, return_sign=True)
    assert (value, sign) == scipy_special.logsumexp(X, b=weights, return_sign=True)
    check_grads(lambda a: special.logsumexp(a, b=weights, return_sign=True)[0])(X)


# ---------------------------------------------------------------------------------------------------------------- stats
@pytest.mark.parametrize("name", ["logpdf", "pdf", "cdf", "logcdf", "sf", "logsf"])
def test_the_normal_distribution(name):
    function = getattr(norm, name)
    np.testing.assert_allclose(function(X, 0.2, 1.3), getattr(scipy_stats.norm, name)(X, 0.2, 1.3), rtol=1e-14)
    check_grads(function, (0, 1, 2))(X, 0.2, 1.3)


def test_a_tail_of_the_normal_distribution_has_a_slope():
    assert grad(norm.logcdf)(-50.0) == pytest.approx(50.02, rel=1e-4)


ROOT = np.array([[1.0, 0.2, -0.1], [0.0, 0.8, 0.3], [0.1, 0.0, 1.2]])
COVARIANCE = ROOT @ ROOT.T


@pytest.mark.parametrize(
    ("x", "mean", "cov"),
    [
        (X, SMALL, COVARIANCE),
        (np.stack([X, SMALL]), SMALL, COVARIANCE),
        (np.stack([[X, SMALL]] * 3), list(SMALL), COVARIANCE),
        (X, SMALL, 2.0),
        (X, SMALL, SMALL),
        (X, None, COVARIANCE),
        (X, None, 1.5),
        (0.7, 0.1, 1.5),
        (X, 0.1, 1.5),
    ],
)
def test_the_multivariate_normal_distribution(x, mean, cov):
    value = multivariate_normal.logpdf(x, mean, cov)
    expected = scipy_stats.multivariate_normal.logpdf(x, mean, cov)
    np.testing.assert_allclose(value, expected, rtol=1e-13)
    assert np.shape(value) == np.shape(expected)
    np.testing.assert_allclose(
        multivariate_normal.pdf(x, mean, cov), scipy_stats.multivariate_normal.pdf(x, mean, cov), rtol=1e-13
    )  # fmt: skip
    check_grads(lambda x: multivariate_normal.logpdf(x, mean, cov))(x)
    np.testing.assert_allclose(
        multivariate_normal.entropy(mean, cov), scipy_stats.multivariate_normal.entropy(mean, cov), rtol=1e-13
    )


def test_the_multivariate_normal_distribution_in_mean_and_covariance():
    check_grads(lambda m, root: multivariate_normal.logpdf(X, m, root @ root.T), (0, 1))(SMALL, ROOT)
    check_grads(lambda scale: multivariate_normal.logpdf(X, SMALL, scale))(2.0)
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        multivariate_normal.logpdf(X, SMALL, np.ones((3, 3)) - 2 * np.eye(3))


# --------------------------------------------------------------------------------------------------------------- linalg
@pytest.mark.share(3)
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("trans", [0, 1, "N", "T"])
@pytest.mark.parametrize("unit_diagonal", [False, True])
@pytest.mark.parametrize("b", [X, np.outer(X, SMALL)], ids=["vector", "matrix"])
def test_a_triangular_solve(lower, trans, unit_diagonal, b):
    options = {"lower": lower, "trans": trans, "unit_diagonal": unit_diagonal}
    a = COVARIANCE + np.arange(9.0).reshape(3, 3) / 10  # both triangles are filled: one is to be ignored
    np.testing.assert_array_equal(
        linalg.solve_triangular(a, b, **options), scipy_linalg.solve_triangular(a, b, **options)
    )
    check_grads(lambda a, b: linalg.solve_triangular(a, b, **options), (0, 1))(a, b)


@pytest.mark.parametrize("lower", [False, True])
def test_a_solve_from_a_cholesky_factor(lower):
    np.testing.assert_allclose(
        linalg.cho_solve(linalg.cho_factor(COVARIANCE, lower), X), np.linalg.solve(COVARIANCE, X), rtol=1e-13
    )
    np.testing.assert_allclose(linalg.cholesky(COVARIANCE, lower), scipy_linalg.cholesky(COVARIANCE, lower), atol=1e-15)
    check_grads(lambda r, b: linalg.cho_solve(linalg.cho_factor(r @ r.T, lower), b), (0, 1))(ROOT, X)
    check_grads(linalg.solve, (0, 1))(COVARIANCE, X)


def test_sylvester_roots_and_blocks():
    a, b, q = COVARIANCE, np.array([[1.0, 0.3], [0.1, 2.0]]), np.arange(6.0).reshape(3, 2)
    np.testing.assert_array_equal(linalg.solve_sylvester(a, b, q), scipy_linalg.solve_sylvester(a, b, q))
    check_grads(linalg.solve_sylvester, (0, 1, 2))(a, b, q)
    np.testing.assert_array_equal(linalg.sqrtm(a), scipy_linalg.sqrtm(a))
    check_grads(linalg.sqrtm)(a)
    np.testing.assert_array_equal(linalg.block_diag(a, X, q), scipy_linalg.block_diag(a, X, q))
    check_grads(linalg.block_diag, (0, 1, 2))(a, X, q)


def test_a_name_without_a_rule_is_scipys_and_refuses_a_tracer():
    assert linalg.expm is scipy_linalg.expm
    assert special.sindg is scipy_special.sindg
    with pytest.raises(pb.ConversionError, match="would drop the derivative"):
        grad(lambda a: linalg.expm(a)[0, 0])(ROOT)
    with pytest.raises(pb.UnknownFunctionError, match=r"no primitive for .*sindg"):
        grad(lambda x: np.sum(special.sindg(x)))(X)


# ------------------------------------------------------------------------------------------------------------ integrate
TIMES = np.array([0.0, 0.3, 0.9, 1.4])
EXACT = {"rtol": 1e-11, "atol": 1e-11}


def pendulum(y, t, drag, push):
    return [y[1], -drag["linear"] * y[1] - np.sin(y[0]) + push * np.cos(t)]


def test_the_adjoint_of_an_ode_in_everything_it_depends_on():
    y0, arguments = np.array([1.0, 0.2]), ({"linear": 0.3}, 0.5)
    value = integrate.odeint(pendulum, y0, TIMES, arguments, **EXACT)
    np.testing.assert_array_equal(value, scipy_integrate.odeint(pendulum, y0, TIMES, args=arguments, **EXACT))
    weights = np.cos(np.arange(8.0)).reshape(4, 2)

    def loss(y0, t, arguments):
        return np.sum(weights * integrate.odeint(pendulum, y0, t, arguments, **EXACT))

    at = (y0, TIMES, arguments)
    gradients = grad(loss, (0, 1, 2))(*at)
    vector, unflatten = flatten(at)
    slopes = [
        (loss(*unflatten(vector + 1e-5 * unit)) - loss(*unflatten(vector - 1e-5 * unit))) / 2e-5
        for unit in np.eye(vector.size)
    ]
    np.testing.assert_allclose(flatten(gradients)[0], slopes, rtol=1e-5, atol=1e-6)


def test_an_ode_without_arguments_and_its_second_derivative():
    def end(y0):
        return integrate.odeint(lambda y, t: -(y**2), np.stack([y0]), np.array([0.0, 1.0]), **EXACT)[1, 0]

    assert grad(end)(1.0) == pytest.approx(0.25, rel=1e-8)  # y(1) = y0 / (1 + y0)
    assert hessian(end)(1.0) == pytest.approx(-0.25, rel=1e-6)


def test_what_an_ode_may_not_close_over():
    with pytest.raises((pb.ConversionError, ValueError), match=r"drop the derivative|setting an array element"):
        grad(lambda k: np.sum(integrate.odeint(lambda y, t: -k * y, np.ones(1), TIMES)))(1.0)


# --------------------------------------------------------------------------------------------------------------- signal
@pytest.mark.parametrize(
    ("shapes", "options"),
    [
        (((5,), (3,)), {}),
        (((5,), (3,)), {"mode": "valid"}),
        (((3,), (5,)), {"mode": "valid"}),
        (((4, 5), (2, 3)), {"mode": "full"}),
        (((4, 5), (2, 3)), {"mode": "valid"}),
        (((4, 5), (2, 3)), {"axes": ([1], [1])}),
        (((2, 3, 6), (3, 4, 3)), {"axes": ([2], [2]), "dot_axes": ([1], [0]), "mode": "valid"}),
        (((2, 3, 5, 6), (3, 4, 2, 3)), {"axes": ([2, 3], [2, 3]), "dot_axes": ([1], [0])}),
    ],
)
def test_convolve(shapes, options):
    A, B = (np.sin(1.0 + np.arange(np.prod(shape))).reshape(shape) for shape in shapes)
    check_grads(lambda A, B: signal.convolve(A, B, **options), (0, 1))(A, B)
    theirs = pytest.importorskip("autograd.scipy.signal", reason="compares with autograd, which is not installed")
    given, expected = signal.convolve(A, B, **options), theirs.convolve(A, B, **options)
    np.testing.assert_allclose(given, expected, rtol=1e-12, atol=1e-14)
    assert given.shape == expected.shape


def test_what_convolve_refuses():
    with pytest.raises(pb.NotDifferentiableError, match="convolve knows the modes"):
        signal.convolve(X, X, mode="middle")
    with pytest.raises(ValueError, match="at least as long in every axis"):
        signal.convolve(np.ones((2, 5)), np.ones((3, 2)), mode="valid")
    assert jacobian(lambda a: signal.convolve(a, SMALL))(X).shape == (5, 3)
