"""pullback_scipy.stats: SciPy's values bit for bit; derivatives by points, locations, scales and shapes."""

import numpy as np
import pytest
from scipy import stats

import pullback as pb
from pullback_scipy import stats as mirrored
from pullback_scipy.probability.densities import CONTINUOUS, DISCRETE

Q = np.array([0.07, 0.31, 0.52, 0.83, 0.96])
SHAPES = {
    "lognorm": (0.7,), "gamma": (1.7,), "beta": (1.3, 2.4), "t": (4.5,), "chi2": (3.3,), "chi": (2.6,), "f": (3.1, 5.2),
    "invgamma": (2.5,), "invgauss": (0.8,), "pareto": (2.2,), "weibull_min": (1.6,), "weibull_max": (1.6,),
    "powerlaw": (1.9,), "triang": (0.4,), "vonmises": (1.8,), "gennorm": (1.6,), "genextreme": (0.3,),
    "skewnorm": (1.4,), "loggamma": (1.2,), "poisson": (2.7,), "bernoulli": (0.3,), "binom": (7, 0.3), "geom": (0.3,),
    "nbinom": (3.5, 0.4),
}  # fmt: skip
BY_SHAPES = ("norm", "lognorm", "pareto", "weibull_min", "weibull_max", "powerlaw", "triang", "genextreme", "skewnorm")
"""Those whose distribution functions have a derivative by their shapes, too."""


def check(f, operands, rtol=1e-6):
    out, pull = pb.vjp(f, *operands)
    seed = np.cos(np.arange(np.size(out))).reshape(np.shape(out))
    directions = [np.sin(1 + np.arange(np.size(x))).reshape(np.shape(x)) for x in operands]
    step = 1e-5

    def moved(s):
        return np.sum(seed * f(*(x + s * v for x, v in zip(operands, directions, strict=True))))

    differences = (8 * (moved(step) - moved(-step)) - moved(2 * step) + moved(-2 * step)) / (12 * step)
    given = sum(np.sum(ct * v) for ct, v in zip(pull(seed), directions, strict=True))
    np.testing.assert_allclose(given, differences, rtol=rtol, atol=1e-9)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_distributions(name):
    ours, theirs, shapes = getattr(mirrored, name), getattr(stats, name), SHAPES.get(name, ())
    loc, scale = 0.4, 1.3
    x = theirs.ppf(Q, *shapes, loc, scale)
    methods = ["pdf", "logpdf"] + (["cdf", "sf", "logcdf", "logsf"] if CONTINUOUS[name].cdf else [])
    for method in methods:
        expected = getattr(theirs, method)(x, *shapes, loc, scale)
        out, _ = pb.vjp(lambda x, method=method: getattr(ours, method)(x, *shapes, loc=loc, scale=scale), x)
        assert np.asarray(out).tobytes() == expected.tobytes()
        check(lambda x, loc, scale, method=method: getattr(ours, method)(x, *shapes, loc, scale), (x, loc, scale))
        if shapes and (method in ("pdf", "logpdf") or name in BY_SHAPES):
            check(lambda *s, method=method: getattr(ours(*s), method)(x), (*shapes, loc, scale), 1e-5)
    if CONTINUOUS[name].cdf:
        check(lambda q, loc, scale: ours.ppf(q, *shapes, loc, scale), (Q, loc, scale), 1e-5)
        check(lambda q: ours.isf(q, *shapes), (Q,), 1e-5)


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_distributions(name):
    ours, theirs, shapes = getattr(mirrored, name), getattr(stats, name), SHAPES[name]
    k = np.arange(0, 9) if name != "bernoulli" else np.arange(2)
    fixed, p = shapes[:-1], shapes[-1]
    for method in ["pmf", "logpmf"] + (["cdf", "sf"] if DISCRETE[name].cdf else []):
        expected = getattr(theirs, method)(k, *shapes)
        finite = np.isfinite(expected)

        def f(p, method=method, finite=finite):
            return getattr(ours, method)(k[finite], *fixed, p)

        out, _ = pb.vjp(f, p)
        assert np.asarray(out).tobytes() == expected[finite].tobytes()
        check(f, (p,))


def test_points_outside_of_the_support_have_the_derivative_zero():
    x = np.array([-1.0, 0.5, 2.0])
    assert pb.grad(lambda x: np.sum(mirrored.beta.pdf(x, 2.0, 3.0)))(x)[[0, 2]].tolist() == [0.0, 0.0]
    assert pb.grad(lambda x: np.sum(mirrored.expon.cdf(x)))(x)[0] == 0.0
    assert pb.vjp(lambda x: mirrored.gamma.logpdf(x, 2.0), x)[0][0] == -np.inf


def test_the_multivariate_normal_distribution():
    rng = np.random.default_rng(0)
    x, mean, a = rng.normal(size=(4, 3)), rng.normal(size=3), rng.normal(size=(3, 3))
    cov = a @ a.T + np.eye(3)
    out, _ = pb.vjp(lambda x: mirrored.multivariate_normal.logpdf(x, mean, cov), x)
    assert np.asarray(out).tobytes() == stats.multivariate_normal.logpdf(x, mean, cov).tobytes()
    check(lambda x, m, a: mirrored.multivariate_normal.logpdf(x, m, a @ a.T + np.eye(3)), (x, mean, a))
    check(lambda x, m: mirrored.multivariate_normal(m, cov).pdf(x), (x[0], mean))


def test_a_frozen_distribution_and_second_order():
    frozen = mirrored.norm(0.3, 1.2)
    assert frozen.mean() == 0.3
    pb.testing.check_grads(frozen.logcdf, (Q,), order=2)
    pb.testing.check_grads(lambda m, s: mirrored.t(3.0, m, s).logpdf(Q), (0.3, 1.2), order=2)


def test_what_is_refused():
    with pytest.raises(pb.MissingRuleError, match=r"special\.gammainc.*'a'"):
        pb.grad(lambda a: mirrored.gamma.cdf(1.0, a))(2.0)
    for method in ("mean", "rvs", "support"):
        for use in (
            lambda t, m=method: getattr(mirrored.norm, m)(t),
            lambda t, m=method: getattr(mirrored.norm(t), m)(),
        ):
            with pytest.raises(pb.NotDifferentiableError, match=rf"scipy\.stats\.norm\.{method} has no derivative"):
                pb.vjp(use, 2.0)
    with pytest.raises(pb.NotDifferentiableError, match=r"cdf with a traced mean or cov"):
        pb.vjp(lambda t: mirrored.multivariate_normal(t, np.eye(2)).cdf(np.zeros(2)), np.zeros(2))
    with pytest.raises(pb.NotDifferentiableError, match="singular covariance"):
        pb.grad(lambda x: mirrored.multivariate_normal.logpdf(x, cov=np.ones((2, 2)), allow_singular=True))(np.ones(2))
    with pytest.raises(pb.NotDifferentiableError, match=r"scipy\.stats\.invgauss\.cdf"):
        pb.grad(lambda x: mirrored.invgauss.cdf(x, 0.8))(2.0)


def test_arguments_that_scipy_does_not_take_are_its_errors():
    for use in (
        lambda m, x: m.norm.logpdf(x, mu=0.0, sigma=2.0), lambda m, x: m.norm.pdf(x, 0.0, 1.0, 2.0),
        lambda m, x: m.norm.pdf(x, 0.0, loc=1.0), lambda m, x: m.gamma.pdf(x),
        lambda m, x: m.poisson.pmf(2, x, scale=x),
    ):  # fmt: skip
        for m in (mirrored, stats):
            with pytest.raises(TypeError):
                pb.vjp(lambda x, m=m, use=use: use(m, x if m is mirrored else 0.5), 0.5)
    assert pb.vjp(lambda q: mirrored.norm.ppf(q=q), 0.3)[0] == stats.norm.ppf(0.3)


def test_a_density_has_its_derivative_at_the_ends_of_its_support_too():
    """The least of a sample is the scale of a Pareto distribution."""
    x = np.array([1.0, 1.5, 3.0])
    assert np.isclose(pb.grad(lambda b: np.sum(mirrored.pareto.logpdf(x, b)))(2.0), 1.5 - np.sum(np.log(x)))
    assert pb.grad(lambda x: mirrored.expon.logpdf(x, scale=2.0))(0.0) == -0.5
    assert pb.vjp(lambda x: mirrored.gamma.logpdf(x, 2.0), np.zeros(1))[1](np.ones(1))[0] == 0.0
    assert pb.grad(lambda x: mirrored.laplace.cdf(x, 0.7, 1.9))(0.7) == 0.5 / 1.9


def test_multivariate_normal_distributions_of_plain_parameters_take_traced_points():
    cov = np.array([[2.0, 0.3], [0.3, 1.0]])
    x = np.array([[0.3, -0.2], [1.0, 2.0]])
    frozen = mirrored.multivariate_normal([1.0, 0.5], cov, allow_singular=True)
    out, _ = pb.vjp(frozen.logpdf, x)
    assert np.asarray(out).tobytes() == stats.multivariate_normal([1.0, 0.5], cov).logpdf(x).tobytes()
    check(frozen.pdf, (x,))
    check(lambda x, c: mirrored.multivariate_normal.logpdf(x, [0.3], c), (x[0], np.array([[2.0]])))
    assert frozen.entropy() == stats.multivariate_normal([1.0, 0.5], cov).entropy()


@pytest.mark.parametrize("name", [name for name in CONTINUOUS if CONTINUOUS[name].cdf])
def test_logarithms_of_tails_have_their_digits(name):
    """Where the sum of a tail has lost its own."""
    ours, theirs, shapes = getattr(mirrored, name), getattr(stats, name), SHAPES.get(name, ())
    for method, ends in (("logcdf", theirs.ppf), ("logsf", theirs.isf)):
        x = ends(np.array([1e-12, 1e-7, 0.2]), *shapes)
        log = getattr(theirs, method)(x, *shapes)
        slope = np.exp(theirs.logpdf(x, *shapes) - log) * (1 if method == "logcdf" else -1)
        got = pb.grad(lambda x, m=method: np.sum(getattr(ours, m)(x, *shapes)))(x)
        np.testing.assert_allclose(got, slope, rtol=1e-6)


def test_far_tails_have_their_digits():
    check(lambda c: mirrored.genextreme.logcdf(-50.0, c), (0.2,))
    check(mirrored.halfnorm.logsf, (30.0,))
    check(lambda mu: mirrored.poisson.sf(np.array([40, 60]), mu), (2.7,))
    x = np.array([-40.0, -8.0])
    slope = np.exp(stats.norm.logpdf(x) - stats.norm.logcdf(x))
    assert np.allclose(pb.grad(lambda x: np.sum(mirrored.norm.logcdf(x)))(x), slope)
    assert np.allclose(pb.grad(lambda x: np.sum(mirrored.logistic.logsf(x)))(-20 * x), [-1.0, -1.0])
