"""The functions of scipy.special that convert their arguments before NumPy could tell: logsumexp, softmax, ..."""

from typing import Any

import numpy as np
from scipy import special

import pullback as pb
from pullback_scipy.mirroring import as_array, mirror, primitive

# --------------------------------------------------------------------------------------------------- derivatives of psi
_polygamma: Any = primitive(
    lambda x, *, n: special.polygamma(n, x),
    name="special.polygamma",
    elementwise=True,
    vjps={"x": lambda ct, x, n: ct * _polygamma(x, n=n + 1)},
)
_multigammaln = primitive(
    lambda a, *, d: special.multigammaln(a, d),
    name="special.multigammaln",
    elementwise=True,
    vjps={"a": lambda ct, a, d: ct * sum(special.psi(a - 0.5 * k) for k in range(d))},
)


@mirror(special.polygamma, "x")
def polygamma(n: Any, x: Any) -> Any:
    """The n-th derivative of psi."""
    return _polygamma(as_array(x), n=n)


@mirror(special.multigammaln, "a")
def multigammaln(a: Any, d: Any) -> Any:
    """The logarithm of the multivariate gamma function."""
    return _multigammaln(as_array(a), d=int(d))


# ------------------------------------------------------------------------------------------------- exponentials of sums
def _log_sum(a: Any, *, axis: Any) -> Any:
    return special.logsumexp(a, axis=axis, keepdims=True)


def _log_weighted(a: Any, b: Any, *, axis: Any, signed: bool) -> Any:
    out = special.logsumexp(a, axis=axis, b=b, keepdims=True, return_sign=signed)
    return out[0] if signed else out


def _shares(a: Any, out: Any) -> Any:
    """exp(a - out); where out is infinite, 0, and 1 at an infinity, whose share the others lose."""
    finite = a - np.where(np.isfinite(out), out, 0.0)
    return np.exp(np.where(out == np.inf, np.where(a == np.inf, 0.0, -np.inf), finite))


log_sum = primitive(_log_sum, name="special.logsumexp", vjps={"a": lambda ct, a, out: ct * _shares(a, out)})
_weighted = primitive(_log_weighted, name="special.logsumexp_weighted")


def _sign(a: Any, b: Any, axis: Any) -> Any:
    return special.logsumexp(pb.value(a), axis=axis, b=pb.value(b), keepdims=True, return_sign=True)[1]


def _weighted_rule(ct: Any, a: Any, b: Any, out: Any, axis: Any, needed: Any) -> tuple[Any, Any]:
    share = ct * _sign(a, b, axis) * _shares(a, out)
    if "a" not in needed:
        return None, share
    without = (pb.value(b) == 0) & ~np.isfinite(pb.value(share))  # SciPy leaves these out, however large a is
    of_a = (np.where(without, 0.0, share) if without.any() else share) * b
    return of_a, share if "b" in needed else None


_weighted.vjp("a", "b", fn=_weighted_rule)


@mirror(special.logsumexp, "a b")
def logsumexp(a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False) -> Any:
    """log(sum(b exp(a))) over ``axis``; with ``return_sign`` of the magnitude of the sum, and its sign."""
    a = as_array(a)
    b = b if b is None else as_array(b)
    if b is None and not return_sign:
        out = log_sum(a, axis=axis)
        return out if keepdims else _squeezed(out, axis)
    weights = np.ones((), a.dtype) if b is None else b
    out = _weighted(a, weights, axis=axis, signed=return_sign)
    sign = _sign(a, weights, axis) if return_sign else None
    if not keepdims:
        out, sign = _squeezed(out, axis), None if sign is None else _squeezed(sign, axis)
    return (out, sign) if return_sign else out


def _squeezed(x: Any, axis: Any) -> Any:
    return np.squeeze(x, axis)[()] if x.ndim else x


def _softmax_rule(ct: Any, out: Any, axis: Any) -> Any:
    weighted = ct * out
    return weighted - out * np.sum(weighted, axis=axis, keepdims=True)


_softmax = primitive(
    lambda x, *, axis: special.softmax(x, axis=axis), name="special.softmax", vjps={"x": _softmax_rule}
)
_log_softmax = primitive(
    lambda x, *, axis: special.log_softmax(x, axis=axis),
    name="special.log_softmax",
    vjps={"x": lambda ct, out, axis: ct - np.exp(out) * np.sum(ct, axis=axis, keepdims=True)},
)


@mirror(special.softmax, "x")
def softmax(x: Any, axis: Any = None) -> Any:
    """exp(x) divided by its sum over ``axis``."""
    return _softmax(as_array(x), axis=axis)


@mirror(special.log_softmax, "x")
def log_softmax(x: Any, axis: Any = None) -> Any:
    """The logarithm of :func:`softmax`."""
    return _log_softmax(as_array(x), axis=axis)


FOLDS = (_polygamma, _multigammaln, log_sum, _weighted, _softmax, _log_softmax)
