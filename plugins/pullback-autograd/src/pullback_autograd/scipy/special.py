"""``scipy.special`` with derivatives; a name without one is SciPy's own.

The rules are from the NIST Digital Library of Mathematical Functions (https://dlmf.nist.gov): 5.4-5.15 gamma and its
kin, 7.2 error functions, 8.8 incomplete gamma, 8.17 incomplete beta, 10.6 and 10.29 Bessel functions.
"""

from typing import Any

import numpy as np
from scipy import special

from pullback import Primitive, primitive, value

ROOT_PI = float(np.sqrt(np.pi))
ROOT_2PI = float(np.sqrt(2 * np.pi))


def _table(ufunc: Any, name: str = "", **rules: Any) -> Primitive:
    """One line of a table: a ufunc and a rule per operand. SciPy has some of the derivatives in float64 only, so
    results are cast."""
    made: Primitive = primitive(ufunc, name=name or ufunc.__name__, operands=tuple(rules), elementwise=True, vjps=rules)
    return made


# -------------------------------------------------------------------------------------------- sigmoids, error functions
expit = _table(special.expit, x=lambda ct, out: ct * (out * (1 - out)))
logit = _table(special.logit, x=lambda ct, x: ct / (x * (1 - x)))
erf = _table(special.erf, x=lambda ct, x: ct * (2 / ROOT_PI * np.exp(-(x**2))))
erfc = _table(special.erfc, x=lambda ct, x: ct * (-2 / ROOT_PI * np.exp(-(x**2))))
erfinv = _table(special.erfinv, x=lambda ct, out: ct * (ROOT_PI / 2 * np.exp(out**2)))
erfcinv = _table(special.erfcinv, x=lambda ct, out: ct * (-ROOT_PI / 2 * np.exp(out**2)))
ndtr = _table(special.ndtr, x=lambda ct, x: ct * (np.exp(-0.5 * x**2) / ROOT_2PI))
log_ndtr = _table(special.log_ndtr, x=lambda ct, x, out: ct * (np.exp(-0.5 * x**2 - out) / ROOT_2PI))

# ------------------------------------------------------------------------------------------------------- gamma and beta
_polygamma = primitive(
    lambda x, *, n: special.polygamma(n, x), name="polygamma", vjps={"x": lambda ct, x, n: ct * polygamma(n + 1, x)}
)
psi = _table(special.psi, name="psi", x=lambda ct, x: ct * polygamma(1, x))
digamma = psi
gamma = _table(special.gamma, x=lambda ct, x, out: ct * (out * psi(x)))
gammaln = _table(special.gammaln, x=lambda ct, x: ct * psi(x))
rgamma = _table(special.rgamma, x=lambda ct, x, out: ct * (-out * psi(x)))
beta = _table(
    special.beta,
    a=lambda ct, a, b, out: ct * (out * (psi(a) - psi(a + b))),
    b=lambda ct, a, b, out: ct * (out * (psi(b) - psi(a + b))),
)
betaln = _table(
    special.betaln, a=lambda ct, a, b: ct * (psi(a) - psi(a + b)), b=lambda ct, a, b: ct * (psi(b) - psi(a + b))
)
betainc = primitive(
    special.betainc,
    name="betainc",
    operands=("a", "b", "x"),
    vjps={"x": lambda ct, a, b, x: ct * np.exp((a - 1) * np.log(x) + (b - 1) * np.log1p(-x) - betaln(a, b))},
)
gammainc = primitive(
    special.gammainc,
    name="gammainc",
    operands=("a", "x"),
    vjps={"x": lambda ct, a, x: ct * np.exp((a - 1) * np.log(x) - x - gammaln(a))},
)
gammaincc = primitive(
    special.gammaincc,
    name="gammaincc",
    operands=("a", "x"),
    vjps={"x": lambda ct, a, x: -ct * np.exp((a - 1) * np.log(x) - x - gammaln(a))},
)
_multigammaln = primitive(
    lambda a, *, d: special.multigammaln(a, d),
    name="multigammaln",
    vjps={"a": lambda ct, a, d: ct * sum(psi(a - 0.5 * k) for k in range(d))},
)


def gammasgn(x: Any) -> Any:
    """The sign of :func:`gamma`, plain: its derivative is 0."""
    return special.gammasgn(value(x))


def polygamma(n: int, x: Any) -> Any:
    """The n-th derivative of :func:`psi` at ``x``."""
    return _polygamma(x, n=n)


def multigammaln(a: Any, d: int) -> Any:
    """The logarithm of the multivariate gamma function of dimension ``d``."""
    return _multigammaln(a, d=d)


# ----------------------------------------------------------------------------------------------------- Bessel functions
j0: Primitive = _table(special.j0, x=lambda ct, x: -ct * j1(x))
y0: Primitive = _table(special.y0, x=lambda ct, x: -ct * y1(x))
j1: Primitive = _table(special.j1, x=lambda ct, x: ct * (0.5 * (j0(x) - jn(2, x))))
y1: Primitive = _table(special.y1, x=lambda ct, x: ct * (0.5 * (y0(x) - yn(2, x))))
i0: Primitive = _table(special.i0, x=lambda ct, x: ct * i1(x))
i1: Primitive = _table(special.i1, x=lambda ct, x: ct * (0.5 * (i0(x) + iv(2, x))))


def _of_order(ufunc: Any, rule: Any) -> Primitive:
    """A function of an order and an argument: the derivative in the order has no rule, so a traced order raises."""
    made: Primitive = primitive(ufunc, name=ufunc.__name__, operands=("v", "x"), vjps={"x": rule})
    return made


jn: Primitive = _of_order(special.jn, lambda ct, v, x: ct * (0.5 * (jn(v - 1, x) - jn(v + 1, x))))
yn: Primitive = _of_order(special.yn, lambda ct, v, x: ct * (0.5 * (yn(v - 1, x) - yn(v + 1, x))))
iv: Primitive = _of_order(special.iv, lambda ct, v, x: ct * (0.5 * (iv(v - 1, x) + iv(v + 1, x))))
ive: Primitive = _of_order(
    special.ive, lambda ct, v, x, out: ct * (0.5 * (ive(v - 1, x) + ive(v + 1, x)) - np.sign(x) * out)
)


# ------------------------------------------------------------------------------------------------------------ logsumexp
def _log_sum(a: Any, b: Any, sign: Any, *, axis: Any, signed: bool) -> Any:
    out = special.logsumexp(a, axis=axis, b=b, keepdims=True, return_sign=signed)
    return out[0] if signed else out


def _shares(a: Any, out: Any, sign: Any) -> Any:
    """exp(a) / sum(b exp(a)); 0 where the sum is 0, and 1 at an infinity, whose share the others lose."""
    finite = a - np.where(np.isfinite(out), out, 0.0)
    return sign * np.exp(np.where(out == np.inf, np.where(a == np.inf, 0.0, -np.inf), finite))


_logsumexp = primitive(
    _log_sum,
    name="logsumexp",
    nondiff=("sign",),
    vjps={
        "a": lambda ct, a, b, out, sign: ct * (b * _shares(a, out, sign)),
        "b": lambda ct, a, out, sign: ct * _shares(a, out, sign),
    },
)


def logsumexp(a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False) -> Any:
    """log(sum(b exp(a))) over ``axis``; with ``return_sign`` of the magnitude of the sum, and its sign. Real arrays."""
    if not np.ndim(a):
        a, keepdims = np.reshape(a, (1,)), False
    axis = tuple(range(max(np.ndim(a), np.ndim(b)))) if axis is None else axis
    sign: Any = 1.0
    if return_sign:
        sign = special.logsumexp(value(a), axis=axis, b=value(b), keepdims=True, return_sign=True)[1]
    out = _logsumexp(a, 1.0 if b is None else b, sign, axis=axis, signed=return_sign)
    if not keepdims:
        out, sign = np.squeeze(out, axis)[()], np.squeeze(sign, axis)[()] if return_sign else sign
    return (out, sign) if return_sign else out


def __getattr__(name: str) -> Any:
    """SciPy's own; it raises :class:`UnknownFunctionError` or :class:`ConversionError` on a tracer."""
    return getattr(special, name)
