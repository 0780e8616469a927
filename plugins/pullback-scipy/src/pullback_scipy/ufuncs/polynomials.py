"""Orthogonal polynomials by their argument, Voigt's profile, and further distribution functions.

Source: the NIST Digital Library of Mathematical Functions, 7.19, 8.17, 13.3 and 18.9. By a degree, or a parameter of a
polynomial, there is no rule.
"""

from math import pi, sqrt
from typing import Any

import numpy as np
from scipy import special

from pullback_scipy.ufuncs.gammas import beta_density
from pullback_scipy.ufuncs.sigmoids import slope_of_wofz
from pullback_scipy.ufuncs.table import real_only, row

hermite, hermitenorm, laguerre = special.eval_hermite, special.eval_hermitenorm, special.eval_genlaguerre
gegenbauer, chebyu, jacobi = special.eval_gegenbauer, special.eval_chebyu, special.eval_jacobi


def _lower(n: Any) -> Any:
    """The degree below, and 0 of 0, where SciPy has NaN for -1."""
    return np.maximum(np.subtract(n, 1), 0)


# ----------------------------------------------------------------------------------------------- orthogonal polynomials
eval_legendre = row(special.eval_legendre, "n x", x=lambda ct, n, x: ct * gegenbauer(n - 1, 1.5, x))
eval_chebyt = row(special.eval_chebyt, "n x", x=lambda ct, n, x: ct * n * chebyu(n - 1, x))
eval_chebyu = row(chebyu, "n x", x=lambda ct, n, x: ct * 2 * gegenbauer(n - 1, 2.0, x))
eval_chebyc = row(special.eval_chebyc, "n x", x=lambda ct, n, x: ct * n * chebyu(n - 1, x / 2))
eval_chebys = row(special.eval_chebys, "n x", x=lambda ct, n, x: ct * gegenbauer(n - 1, 2.0, x / 2))
eval_sh_legendre = row(special.eval_sh_legendre, "n x", x=lambda ct, n, x: ct * 2 * gegenbauer(n - 1, 1.5, 2 * x - 1))
eval_sh_chebyt = row(special.eval_sh_chebyt, "n x", x=lambda ct, n, x: ct * 2 * n * chebyu(n - 1, 2 * x - 1))
eval_sh_chebyu = row(special.eval_sh_chebyu, "n x", x=lambda ct, n, x: ct * 4 * gegenbauer(n - 1, 2.0, 2 * x - 1))
eval_gegenbauer = row(
    gegenbauer, "n alpha x", x=lambda ct, n, alpha, x: ct * 2 * alpha * gegenbauer(n - 1, alpha + 1, x)
)
eval_jacobi = row(
    jacobi,
    "n alpha beta x",
    x=lambda ct, n, alpha, beta, x: ct * (n + alpha + beta + 1) / 2 * jacobi(n - 1, alpha + 1, beta + 1, x),
)
eval_laguerre = row(special.eval_laguerre, "n x", x=lambda ct, n, x: -ct * laguerre(n - 1, 1.0, x))
eval_genlaguerre = row(laguerre, "n alpha x", x=lambda ct, n, alpha, x: -ct * laguerre(n - 1, alpha + 1, x))
eval_hermite = row(hermite, "n x", x=lambda ct, n, x: ct * 2 * n * hermite(_lower(n), x))
eval_hermitenorm = row(hermitenorm, "n x", x=lambda ct, n, x: ct * n * hermitenorm(_lower(n), x))


# ------------------------------------------------------------------------------------------- scaled functions, powers
def _scaled_slope(ufunc: Any, title: str, plain: str, v: Any, x: Any) -> Any:
    x = real_only(
        x, title, f"its scale reads the imaginary part alone: write np.exp(-np.abs(x.imag)) * special.{plain}(v, x)"
    )
    return 0.5 * (ufunc(v - 1, x) - ufunc(v + 1, x))


jve = row(special.jve, "v x", x=lambda ct, v, x: ct * _scaled_slope(special.jve, "jve", "jv", v, x))
yve = row(special.yve, "v x", x=lambda ct, v, x: ct * _scaled_slope(special.yve, "yve", "yv", v, x))
hankel1e = row(
    special.hankel1e,
    "v x",
    x=lambda ct, v, x, out: ct * (0.5 * (special.hankel1e(v - 1, x) - special.hankel1e(v + 1, x)) - 1j * out),
)
hankel2e = row(
    special.hankel2e,
    "v x",
    x=lambda ct, v, x, out: ct * (0.5 * (special.hankel2e(v - 1, x) - special.hankel2e(v + 1, x)) + 1j * out),
)
hyperu = row(special.hyperu, "a b x", x=lambda ct, a, b, x: -ct * a * special.hyperu(a + 1, b + 1, x))
powm1 = row(
    special.powm1,
    x=lambda ct, x, y: ct * y * np.power(x, y - 1),
    y=lambda ct, x, out: ct * (1 + out) * np.log(x),
)


# ------------------------------------------------------------------------------------------------------ Voigt's profile
def _voigt(x: Any, sigma: Any, gamma: Any) -> tuple[Any, Any]:
    """The point at which w is read, and the slope of w there divided by 2 sqrt(pi) sigma^2."""
    z = (x + 1j * gamma) / (sqrt(2) * sigma)
    return z, slope_of_wofz(z, special.wofz(z)) / (2 * sqrt(pi) * sigma * sigma)


voigt_profile = row(
    special.voigt_profile,
    x=lambda ct, x, sigma, gamma: ct * np.real(_voigt(x, sigma, gamma)[1]),
    sigma=lambda ct, x, sigma, gamma, out: (
        ct * (-out / sigma - np.real(np.multiply(*_voigt(x, sigma, gamma))) * sqrt(2))
    ),
    gamma=lambda ct, x, sigma, gamma: -ct * np.imag(_voigt(x, sigma, gamma)[1]),
)


# ----------------------------------------------------------------------------------------------- distribution functions
def _ratio_density(dfn: Any, dfd: Any, x: Any) -> Any:
    """The slope of the distribution function of F."""
    total = dfd + dfn * x
    return beta_density(dfn / 2, dfd / 2, dfn * x / total) * (dfn * dfd / (total * total))


fdtr = row(special.fdtr, "dfn dfd x", x=lambda ct, dfn, dfd, x: ct * _ratio_density(dfn, dfd, x))
fdtrc = row(special.fdtrc, "dfn dfd x", x=lambda ct, dfn, dfd, x: -ct * _ratio_density(dfn, dfd, x))
fdtri = row(special.fdtri, "dfn dfd p", p=lambda ct, dfn, dfd, out: ct / _ratio_density(dfn, dfd, out))
bdtr = row(special.bdtr, "k n p", p=lambda ct, k, n, p: -ct * beta_density(np.floor(k) + 1, n - np.floor(k), p))
bdtrc = row(special.bdtrc, "k n p", p=lambda ct, k, n, p: ct * beta_density(np.floor(k) + 1, n - np.floor(k), p))
nbdtr = row(special.nbdtr, "k n p", p=lambda ct, k, n, p: ct * beta_density(n, np.floor(k) + 1, p))
nbdtrc = row(special.nbdtrc, "k n p", p=lambda ct, k, n, p: -ct * beta_density(n, np.floor(k) + 1, p))

POLYNOMIALS = (
    eval_legendre, eval_chebyt, eval_chebyu, eval_chebyc, eval_chebys, eval_sh_legendre, eval_sh_chebyt, eval_sh_chebyu,
    eval_gegenbauer, eval_jacobi, eval_laguerre, eval_genlaguerre, eval_hermite, eval_hermitenorm,
    jve, yve, hankel1e, hankel2e, hyperu, powm1, voigt_profile,
    fdtr, fdtrc, fdtri, bdtr, bdtrc, nbdtr, nbdtrc,
)  # fmt: skip
