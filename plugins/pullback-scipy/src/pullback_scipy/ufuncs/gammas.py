"""The gamma function and its kin, beta, and the distribution functions that are made of them.

The rules are those of the NIST Digital Library of Mathematical Functions (https://dlmf.nist.gov): 5.2, 5.9 and 5.15 for
gamma, psi and its derivatives, 25.11 for the zeta function, 8.8 for the incomplete gamma function, 8.17 for beta.
"""

from math import log, pi
from typing import Any

import numpy as np
from scipy import special

from pullback_scipy.ufuncs.table import real_only, row

ZETA, RIEMANN = special._ufuncs._zeta, special._ufuncs._riemann_zeta  # noqa: SLF001 - what special.zeta calls


def gamma_density(a: Any, x: Any) -> Any:
    """The slope of the incomplete gamma function by x."""
    return np.exp(special.xlogy(a - 1, x) - x - special.gammaln(a))


def beta_density(a: Any, b: Any, x: Any) -> Any:
    """The slope of the incomplete beta function by x."""
    return np.exp(special.xlogy(a - 1, x) + special.xlog1py(b - 1, -x) - special.betaln(a, b))


def student_density(df: Any, t: Any) -> Any:
    """The slope of Student's distribution function."""
    scale = special.gammaln((df + 1) / 2) - special.gammaln(df / 2) - np.log(df * pi) / 2
    return np.exp(scale - (df + 1) / 2 * np.log1p(t * t / df))


def _slope_of_rgamma(x: Any) -> Any:
    """Minus psi / gamma, which is (-1)^n n! at a pole -n of both."""
    pole = (np.real(x) <= 0) & (x == np.round(np.real(x)))
    if not pole.any():
        return -special.rgamma(x) * special.psi(x)
    at = np.where(pole, 0.5, x)
    sign = 1.0 - 2.0 * np.mod(np.real(x), 2)
    return np.where(pole, sign * special.gamma(1 - np.where(pole, x, 0.0)), -special.rgamma(at) * special.psi(at))


def _before_expn(n: Any, x: Any) -> Any:
    """The exponential integral of order ``n - 1``, which SciPy has not for -1."""
    first = np.asarray(n) == 0
    if not first.any():
        return special.expn(n - 1, x)
    at = np.where(first, x, 1.0)
    return np.where(first, np.exp(-at) / at * (1 + 1 / at), special.expn(np.maximum(np.asarray(n) - 1, 0), x))


# ---------------------------------------------------------------------------------------------------------------- gamma
gamma = row(special.gamma, x=lambda ct, x, out: ct * out * special.psi(x))
gammaln = row(special.gammaln, x=lambda ct, x: ct * special.psi(x))
loggamma = row(special.loggamma, x=lambda ct, x: ct * special.psi(x))
rgamma = row(special.rgamma, x=lambda ct, x: ct * _slope_of_rgamma(x))
psi = row(special.psi, x=lambda ct, x: ct * special.zeta(2.0, real_only(x, "psi", "SciPy has no trigamma there")))
zeta = row(ZETA, "s q", q=lambda ct, s, q: -ct * s * special.zeta(s + 1, q))
poch = row(
    special.poch,
    z=lambda ct, z, m, out: ct * out * (special.psi(z + m) - special.psi(z)),
    m=lambda ct, z, m, out: ct * out * special.psi(z + m),
)
binom = row(
    special.binom,
    n=lambda ct, n, k, out: ct * out * (special.psi(n + 1) - special.psi(n - k + 1)),
    k=lambda ct, n, k, out: ct * out * (special.psi(n - k + 1) - special.psi(k + 1)),
)

# ----------------------------------------------------------------------------------------------------------------- beta
beta = row(
    special.beta,
    a=lambda ct, a, b, out: ct * out * (special.psi(a) - special.psi(a + b)),
    b=lambda ct, a, b, out: ct * out * (special.psi(b) - special.psi(a + b)),
)
betaln = row(
    special.betaln,
    a=lambda ct, a, b: ct * (special.psi(a) - special.psi(a + b)),
    b=lambda ct, a, b: ct * (special.psi(b) - special.psi(a + b)),
)
betainc = row(special.betainc, "a b x", x=lambda ct, a, b, x: ct * beta_density(a, b, x))
betaincc = row(special.betaincc, "a b x", x=lambda ct, a, b, x: -ct * beta_density(a, b, x))
betaincinv = row(special.betaincinv, "a b y", y=lambda ct, a, b, out: ct / beta_density(a, b, out))
betainccinv = row(special.betainccinv, "a b y", y=lambda ct, a, b, out: -ct / beta_density(a, b, out))

# ----------------------------------------------------------------------------------------------- distribution functions
gammainc = row(special.gammainc, "a x", x=lambda ct, a, x: ct * gamma_density(a, x))
gammaincc = row(special.gammaincc, "a x", x=lambda ct, a, x: -ct * gamma_density(a, x))
gammaincinv = row(special.gammaincinv, "a y", y=lambda ct, a, out: ct / gamma_density(a, out))
gammainccinv = row(special.gammainccinv, "a y", y=lambda ct, a, out: -ct / gamma_density(a, out))
stdtr = row(special.stdtr, "df t", t=lambda ct, df, t: ct * student_density(df, t))
stdtrit = row(special.stdtrit, "df p", p=lambda ct, df, out: ct / student_density(df, out))
chdtr = row(special.chdtr, "v x", x=lambda ct, v, x: ct * gamma_density(v / 2, x / 2) / 2)
chdtrc = row(special.chdtrc, "v x", x=lambda ct, v, x: -ct * gamma_density(v / 2, x / 2) / 2)
chdtri = row(special.chdtri, "v p", p=lambda ct, v, out: -2 * ct / gamma_density(v / 2, out / 2))
gdtr = row(
    special.gdtr,
    "a b x",
    a=lambda ct, a, b, x: ct * x * gamma_density(b, a * x),
    x=lambda ct, a, b, x: ct * a * gamma_density(b, a * x),
)
gdtrc = row(
    special.gdtrc,
    "a b x",
    a=lambda ct, a, b, x: -ct * x * gamma_density(b, a * x),
    x=lambda ct, a, b, x: -ct * a * gamma_density(b, a * x),
)
pdtr = row(special.pdtr, "k m", m=lambda ct, k, m: -ct * gamma_density(np.floor(k) + 1, m))
pdtrc = row(special.pdtrc, "k m", m=lambda ct, k, m: ct * gamma_density(np.floor(k) + 1, m))

# ---------------------------------------------------------------------------------------- exponential integrals, powers
LN10 = log(10)
exp1 = row(special.exp1, x=lambda ct, x: -ct * np.exp(-x) / x)
expi = row(special.expi, x=lambda ct, x: ct * np.exp(x) / x)
expn = row(special.expn, "n x", x=lambda ct, n, x: -ct * _before_expn(n, x))
exp2 = row(special.exp2, x=lambda ct, out: ct * log(2) * out)
exp10 = row(special.exp10, x=lambda ct, out: ct * LN10 * out)
expm1 = row(special.expm1, x=lambda ct, x: ct * np.exp(x))
log1p = row(special.log1p, x=lambda ct, x: ct / (1 + x))
cbrt = row(special.cbrt, x=lambda ct, out: ct / (3 * out * out))
cosm1 = row(special.cosm1, x=lambda ct, x: -ct * np.sin(x))

GAMMAS = (
    gamma, gammaln, loggamma, rgamma, psi, zeta, poch, binom,
    beta, betaln, betainc, betaincc, betaincinv, betainccinv,
    gammainc, gammaincc, gammaincinv, gammainccinv, stdtr, stdtrit, chdtr, chdtrc, chdtri, gdtr, gdtrc, pdtr, pdtrc,
    exp1, expi, expn, exp2, exp10, expm1, log1p, cbrt, cosm1,
)  # fmt: skip
