"""Error functions, the normal distribution, sigmoids, entropies, losses and power transforms.

Source: the NIST Digital Library of Mathematical Functions, 7.2 and 7.10; the others are derivatives of their
definitions.
"""

from math import factorial, pi, sqrt
from typing import Any

import numpy as np
from scipy import special

from pullback_scipy.ufuncs.table import row

SLOPE, ROOT_2PI = 2 / sqrt(pi), sqrt(2 * pi)
MOMENTS = tuple(1 / (factorial(k) * (k + 2)) for k in range(15, -1, -1))


def normal_density(x: Any) -> Any:
    """The slope of the normal distribution function."""
    return np.exp(-0.5 * x * x) / ROOT_2PI


def _moment(z: Any) -> Any:
    """The integral of t exp(z t) for t from 0 to 1, (z exp z - exp z + 1) / z**2; near 0 by its power series."""
    near = np.abs(z) < 0.5
    small, large = np.where(near, z, 0.0), np.where(near, 1.0, z)
    series: Any = MOMENTS[0]
    for coefficient in MOMENTS[1:]:
        series = series * small + coefficient
    power = np.exp(large)
    return np.where(near, series, (large * power - power + 1) / (large * large))


def _ratio(x: Any, y: Any) -> Any:
    """The quotient x / y, and 0 where both are 0: the slope of a function that is 0 there for every y."""
    return np.where(x == 0, 0.0, x / np.where(x == 0, 1.0, y))


FAR = 50.0
"""Where the asymptotic series (DLMF 7.12) begins to give the difference of two nearly equal numbers."""


def _far(beyond: Any, x: Any, half: float, near: Any, factor: complex) -> Any:
    """``near``; where ``beyond`` factor (t + 3 t^2 + 15 t^3 + 105 t^4 + 945 t^5), t = half / x^2."""
    if not np.any(beyond):
        return near
    t = half / np.where(beyond, x, FAR) ** 2
    return np.where(beyond, factor * t * (1 + t * (3 + t * (15 + t * (105 + t * 945)))), near)


def slope_of_wofz(x: Any, out: Any) -> Any:
    """The slope of the Faddeeva function, of which ``out`` is the value at x."""
    return _far((np.abs(x) > FAR) & (np.imag(x) >= 0), x, 0.5, 1j * SLOPE - 2 * x * out, -1j * SLOPE)


def _hazard(x: Any, log_chance: Any) -> Any:
    """The density of the normal distribution at x divided by the chance of less: the exponents cancel below 0."""
    below = x < 0
    upper = np.where(below, 0.0, x)
    right = np.exp(-0.5 * upper * upper - np.where(below, 0.0, log_chance)) / ROOT_2PI
    return np.where(below, sqrt(2 / pi) / special.erfcx(np.where(below, -x, 0.0) / sqrt(2)), right)


# --------------------------------------------------------------------------------- error functions, normal distribution
erf = row(special.erf, x=lambda ct, x: ct * SLOPE * np.exp(-x * x))
erfc = row(special.erfc, x=lambda ct, x: ct * -SLOPE * np.exp(-x * x))
erfcx = row(special.erfcx, x=lambda ct, x, out: ct * _far(x > FAR, x, -0.5, 2 * x * out - SLOPE, SLOPE))
erfi = row(special.erfi, x=lambda ct, x: ct * SLOPE * np.exp(x * x))
erfinv = row(special.erfinv, x=lambda ct, out: ct / SLOPE * np.exp(out * out))
erfcinv = row(special.erfcinv, x=lambda ct, out: -ct / SLOPE * np.exp(out * out))
dawsn = row(special.dawsn, x=lambda ct, x, out: ct * _far(np.abs(x) > FAR, x, 0.5, 1 - 2 * x * out, -1.0))
wofz = row(special.wofz, x=lambda ct, x, out: ct * slope_of_wofz(x, out))
ndtr = row(special.ndtr, x=lambda ct, x: ct * normal_density(x))
log_ndtr = row(special.log_ndtr, x=lambda ct, x, out: ct * _hazard(x, out))
ndtri = row(special.ndtri, x=lambda ct, out: ct * ROOT_2PI * np.exp(0.5 * out * out))
ndtri_exp = row(special.ndtri_exp, x=lambda ct, x, out: ct / _hazard(out, x))
owens_t = row(
    special.owens_t,
    h=lambda ct, h, a: -ct * normal_density(h) * special.erf(a * h / sqrt(2)) / 2,
    a=lambda ct, h, a: ct * np.exp(-0.5 * h * h * (1 + a * a)) / (2 * pi * (1 + a * a)),
)

# ------------------------------------------------------------------------------------------------------------- sigmoids
# The factors by the function itself: out (1 - out) has no digits left of 1 - out where x is large.
expit = row(special.expit, x=lambda ct, x, out: ct * out * special.expit(-x))
logit = row(special.logit, x=lambda ct, x: ct / (x * (1 - x)))
log_expit = row(special.log_expit, x=lambda ct, x: ct * special.expit(-x))
exprel = row(special.exprel, x=lambda ct, x: ct * _moment(x))
wrightomega = row(special.wrightomega, x=lambda ct, out: ct * out / (1 + out))
lambertw = row(
    special._ufuncs._lambertw,  # noqa: SLF001 - what special.lambertw calls
    "z k tol",
    z=lambda ct, out: ct * np.exp(-out) / (1 + out),
)

# ---------------------------------------------------------------------------------------------------- entropies, losses
xlogy = row(special.xlogy, x=lambda ct, y: ct * np.log(y), y=lambda ct, x, y: ct * _ratio(x, y))
xlog1py = row(special.xlog1py, x=lambda ct, y: ct * np.log1p(y), y=lambda ct, x, y: ct * _ratio(x, 1 + y))
entr = row(special.entr, x=lambda ct, x: -ct * (np.log(x) + 1))
rel_entr = row(special.rel_entr, x=lambda ct, x, y: ct * (np.log(x / y) + 1), y=lambda ct, x, y: -ct * _ratio(x, y))
kl_div = row(special.kl_div, x=lambda ct, x, y: ct * np.log(x / y), y=lambda ct, x, y: ct * (1 - _ratio(x, y)))
huber = row(
    special.huber,
    delta=lambda ct, delta, r: ct * np.maximum(np.abs(r) - delta, 0.0),
    r=lambda ct, delta, r: ct * np.clip(r, -delta, delta),
)


def _pseudo_huber_delta(ct: Any, delta: Any, r: Any) -> Any:
    root = np.hypot(1.0, r / delta)
    return ct * (2 * delta * (root - 1) - r * r / (delta * root))


pseudo_huber = row(
    special.pseudo_huber, delta=_pseudo_huber_delta, r=lambda ct, delta, r: ct * r / np.hypot(1.0, r / delta)
)

# ----------------------------------------------------------------------------------------------------- power transforms
boxcox = row(
    special.boxcox,
    x=lambda ct, x, lmbda: ct * np.power(x, lmbda - 1),
    lmbda=lambda ct, x, lmbda: ct * np.log(x) ** 2 * _moment(lmbda * np.log(x)),
)
boxcox1p = row(
    special.boxcox1p,
    x=lambda ct, x, lmbda: ct * np.power(1 + x, lmbda - 1),
    lmbda=lambda ct, x, lmbda: ct * np.log1p(x) ** 2 * _moment(lmbda * np.log1p(x)),
)
inv_boxcox = row(
    special.inv_boxcox,
    y=lambda ct, y, lmbda, out: ct * out / (1 + lmbda * y),
    lmbda=lambda ct, y, lmbda, out: -ct * out * y * y * special.hyp2f1(2.0, 2.0, 3.0, -lmbda * y) / 2,
)
inv_boxcox1p = row(
    special.inv_boxcox1p,
    y=lambda ct, y, lmbda, out: ct * (1 + out) / (1 + lmbda * y),
    lmbda=lambda ct, y, lmbda, out: -ct * (1 + out) * y * y * special.hyp2f1(2.0, 2.0, 3.0, -lmbda * y) / 2,
)

SIGMOIDS = (
    erf, erfc, erfcx, erfi, erfinv, erfcinv, dawsn, wofz, ndtr, log_ndtr, ndtri, ndtri_exp, owens_t,
    expit, logit, log_expit, exprel, wrightomega, lambertw,
    xlogy, xlog1py, entr, rel_entr, kl_div, huber, pseudo_huber,
    boxcox, boxcox1p, inv_boxcox, inv_boxcox1p,
)  # fmt: skip
