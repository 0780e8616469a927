"""``scipy.stats`` with derivatives: densities and distribution functions of the usual distributions; a name without one
is SciPy's own."""

from scipy import stats

from pullback_scipy.mirroring import fall_through
from pullback_scipy.probability.distributions import DISTRIBUTIONS
from pullback_scipy.probability.several_numbers import multivariate_normal, zscore

(
    norm, expon, uniform, laplace, logistic, cauchy, halfcauchy, halfnorm, halflogistic, gumbel_r, gumbel_l,
    rayleigh, maxwell, lognorm, gamma, beta, t, chi2, chi, f, invgamma, invgauss, pareto, weibull_min,
    weibull_max, powerlaw, triang, vonmises, gennorm, genextreme, skewnorm, loggamma, poisson, bernoulli,
    binom, geom, nbinom,
) = DISTRIBUTIONS.values()  # fmt: skip
__getattr__, __dir__ = fall_through(stats, globals())
__all__ = [
    "bernoulli", "beta", "binom", "cauchy", "chi", "chi2", "expon", "f", "gamma", "genextreme", "gennorm",
    "geom", "gumbel_l", "gumbel_r", "halfcauchy", "halflogistic", "halfnorm", "invgamma", "invgauss",
    "laplace", "loggamma", "logistic", "lognorm", "maxwell", "multivariate_normal", "nbinom", "norm",
    "pareto", "poisson", "powerlaw", "rayleigh", "skewnorm", "t", "triang", "uniform", "vonmises",
    "weibull_max", "weibull_min", "zscore",
]  # fmt: skip
