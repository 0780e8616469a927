"""Bessel, Hankel and Struve functions, elliptic integrals, hypergeometric functions and the dilogarithm.

Source: the NIST Digital Library of Mathematical Functions, 10.6, 10.29, 11.4, 13.3, 15.5, 19.4 and 25.12. By an order,
or a parameter of a hypergeometric function, there is no rule.
"""

from math import pi
from typing import Any

import numpy as np
from scipy import special

import pullback as pb
from pullback_scipy.ufuncs.table import real_only, row


def _quotient(out: Any, x: Any) -> Any:
    """The quotient out / x of a function that is x / 2 near 0."""
    small = np.abs(x) < 1e-7
    return np.where(small, 0.5, out / np.where(small, 1.0, x))


def _share(v: Any, x: Any, out: Any) -> Any:
    """The product of v and out / x, of a function that is 0 at 0 as a power of x above v is."""
    zero = x == 0
    return np.where(zero, 0.0, v / np.where(zero, 1.0, x) * out)


def _polynomial(coefficients: tuple[float, ...], m: Any) -> Any:
    """Horner's rule, the lowest power first."""
    total: Any = coefficients[-1]
    for coefficient in coefficients[-2::-1]:
        total = total * m + coefficient
    return total


def _series(a: float, b: float, c: float, factor: float) -> tuple[float, ...]:
    """The first coefficients of the hypergeometric function, times a factor."""
    made = [factor]
    for k in range(17):
        made.append(made[-1] * (a + k) * (b + k) / ((c + k) * (k + 1)))
    return tuple(made)


OF_K, OF_E = _series(1.5, 1.5, 2.0, pi / 8), _series(0.5, 1.5, 2.0, -pi / 8)


def _slope_of_k(m: Any, k: Any) -> Any:
    """(E - (1 - m) K) / (2 m (1 - m)), near 0 by its power series."""
    near = np.abs(m) < 0.1
    far = np.where(near, 0.5, m)
    closed = (special.ellipe(far) - (1 - far) * np.where(near, special.ellipk(0.5), k)) / (2 * far * (1 - far))
    return np.where(near, _polynomial(OF_K, np.where(near, m, 0.0)), closed)


def _slope_of_e(m: Any, e: Any) -> Any:
    """(E - K) / (2 m), near 0 by its power series."""
    near = np.abs(m) < 0.1
    far = np.where(near, 0.5, m)
    closed = (np.where(near, special.ellipe(0.5), e) - special.ellipk(far)) / (2 * far)
    return np.where(near, _polynomial(OF_E, np.where(near, m, 0.0)), closed)


def _mean_of_ive(v: Any, x: Any) -> Any:
    x = real_only(x, "ive", "its scale reads the real part alone: write np.exp(-np.abs(x.real)) * special.iv(v, x)")
    return 0.5 * (special.ive(v - 1, x) + special.ive(v + 1, x))


def _two_sided(ufunc: Any, sign: int, factor: float = 0.5) -> pb.Primitive:
    """A function with f_v' = factor (f_(v-1) + sign f_(v+1))."""
    if sign < 0:
        return row(ufunc, "v x", x=lambda ct, v, x: ct * factor * (ufunc(v - 1, x) - ufunc(v + 1, x)))
    return row(ufunc, "v x", x=lambda ct, v, x: ct * factor * (ufunc(v - 1, x) + ufunc(v + 1, x)))


def _of_struve(ufunc: Any, sign: int, v: Any, x: Any, out: Any) -> Any:
    """f_(v-1) - v f_v / x; for v = 0 the same as 2 / pi + sign f_1, which has all its derivatives at 0, too."""
    whole = np.equal(v, 0)
    if not np.any(whole):
        return ufunc(v - 1, x) - _share(v, x, out)
    of_zero = 2 / np.pi + sign * ufunc(1, x)
    if np.all(whole):
        return of_zero
    others = np.where(whole, 1.0, v)
    return np.where(whole, of_zero, ufunc(others - 1, x) - _share(others, x, out))


# --------------------------------------------------------------------------------------------------------------- Bessel
j0 = row(special.j0, x=lambda ct, x: -ct * special.j1(x))
j1 = row(special.j1, x=lambda ct, x, out: ct * (special.j0(x) - _quotient(out, x)))
y0 = row(special.y0, x=lambda ct, x: -ct * special.y1(x))
y1 = row(special.y1, x=lambda ct, x, out: ct * (special.y0(x) - out / x))
i0 = row(special.i0, x=lambda ct, x: ct * special.i1(x))
i1 = row(special.i1, x=lambda ct, x, out: ct * (special.i0(x) - _quotient(out, x)))
k0 = row(special.k0, x=lambda ct, x: -ct * special.k1(x))
k1 = row(special.k1, x=lambda ct, x, out: -ct * (special.k0(x) + out / x))
jv = _two_sided(special.jv, -1)
yv = _two_sided(special.yv, -1)
yn = row(special.yn, "n x", x=lambda ct, n, x: ct * 0.5 * (special.yn(n - 1, x) - special.yn(n + 1, x)))
iv = _two_sided(special.iv, 1)
kv = _two_sided(special.kv, 1, -0.5)
kn = row(special.kn, "n x", x=lambda ct, n, x: ct * -0.5 * (special.kv(n - 1.0, x) + special.kv(n + 1.0, x)))
hankel1 = _two_sided(special.hankel1, -1)
hankel2 = _two_sided(special.hankel2, -1)

# Scaled by exp(-abs(x)), or by exp(x); real arguments.
i0e = row(special.i0e, x=lambda ct, x, out: ct * (special.i1e(x) - np.sign(x) * out))
i1e = row(special.i1e, x=lambda ct, x, out: ct * (special.i0e(x) - _quotient(out, x) - np.sign(x) * out))
ive = row(
    special.ive,
    "v x",
    x=lambda ct, v, x, out: ct * (_mean_of_ive(v, x) - np.sign(x) * out),
)
k0e = row(special.k0e, x=lambda ct, x, out: ct * (out - special.k1e(x)))
k1e = row(special.k1e, x=lambda ct, x, out: ct * (out - special.k0e(x) - out / x))
kve = row(
    special.kve, "v x", x=lambda ct, v, x, out: ct * (out - 0.5 * (special.kve(v - 1, x) + special.kve(v + 1, x)))
)
struve = row(special.struve, "v x", x=lambda ct, v, x, out: ct * _of_struve(special.struve, -1, v, x, out))
modstruve = row(special.modstruve, "v x", x=lambda ct, v, x, out: ct * _of_struve(special.modstruve, 1, v, x, out))

# ----------------------------------------------------------------------------------- hypergeometric functions, elliptic
hyp0f1 = row(special.hyp0f1, "v x", x=lambda ct, v, x: ct / v * special.hyp0f1(v + 1, x))
hyp1f1 = row(special.hyp1f1, "a b x", x=lambda ct, a, b, x: ct * (a / b) * special.hyp1f1(a + 1, b + 1, x))
hyp2f1 = row(
    special.hyp2f1, "a b c x", x=lambda ct, a, b, c, x: ct * (a * b / c) * special.hyp2f1(a + 1, b + 1, c + 1, x)
)
ellipk = row(special.ellipk, m=lambda ct, m, out: ct * _slope_of_k(m, out))
ellipkm1 = row(special.ellipkm1, p=lambda ct, p: -ct * _slope_of_k(1 - p, special.ellipkm1(p)))
ellipe = row(special.ellipe, m=lambda ct, m, out: ct * _slope_of_e(m, out))
ellipkinc = row(special.ellipkinc, "phi m", phi=lambda ct, phi, m: ct / np.sqrt(1 - m * np.sin(phi) ** 2))
ellipeinc = row(special.ellipeinc, "phi m", phi=lambda ct, phi, m: ct * np.sqrt(1 - m * np.sin(phi) ** 2))


def _spence(ct: Any, x: Any) -> Any:
    """Ct log(x) / (1 - x), which is -ct at 1; near 1 by the series of log(1 + t) / t."""
    t = x - 1
    near = np.abs(t) < 1e-2
    small, large = np.where(near, t, 0.0), np.where(near, 0.5, t)
    series = 1 - small * (1 / 2 - small * (1 / 3 - small * (1 / 4 - small * (1 / 5 - small * (1 / 6 - small / 7)))))
    return -ct * np.where(near, series, np.log(1 + large) / large)


spence = row(special.spence, x=_spence)

BESSELS = (
    j0, j1, y0, y1, i0, i1, k0, k1, jv, yv, yn, iv, kv, kn, hankel1, hankel2,
    i0e, i1e, ive, k0e, k1e, kve, struve, modstruve,
    hyp0f1, hyp1f1, hyp2f1, ellipk, ellipkm1, ellipe, ellipkinc, ellipeinc, spence,
)  # fmt: skip
