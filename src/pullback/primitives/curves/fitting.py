"""``np.polyfit``: the least squares problem min |w (V c - y)| with V the powers of x, and its other outputs.

With A = w V, b = w y, r = b - A c and P the pseudo-inverse of A, a change of A and b moves c by

    dc = P (db - dA c) + P P^H dA^H r        (Golub and Pereyra, SIAM J. Numer. Anal. 10(2), 1973, eq. 4.12,
                                              at full column rank)

The first rules stand on numpy.linalg and need no plugin; a second derivative traces them, and there pullback-linalg
serves pinv and svd.
"""

from typing import Any

import numpy as np

from pullback.primitives.shaping.as_array import as_array
from pullback.recording.handles import plain_value
from pullback.rules.declaration import Composite, Primitive, composite, primitive
from pullback.words.call_sites import warn_user
from pullback.words.errors import NotDifferentiableError
from pullback.words.specs import INEXACT


def _design(x: Any, w: Any, deg: int) -> Any:
    powers = np.vander(x, deg + 1)
    return powers if w is None else powers * w[:, None]


def _scale(a: Any) -> Any:
    """NumPy's scaling of the columns of A."""
    return np.sqrt(np.sum(a * a, axis=0))


def _fit(x: Any, y: Any, w: Any = None, *, deg: int, rcond: Any) -> tuple[Any, ...]:
    return np.polyfit(x, y, deg, rcond, full=True, w=w)[:4]


OUTPUTS = ("c", "residuals", "rank", "s")
fit: Primitive = primitive(_fit, name="polynomial_fit", operands=("x", "y"), params=("deg", "rcond"), outputs=OUTPUTS)
weighted_fit: Primitive = primitive(
    _fit, name="weighted_polynomial_fit", operands=("x", "y", "w"), params=("deg", "rcond"), outputs=OUTPUTS
)


def _adjoint(ct: Any, a: Any, b: Any, c: Any, rcond: Any) -> tuple[Any, Any]:
    """The cotangents of A and b; b and c as columns."""
    ct_c, ct_residuals, _, ct_s = ct
    scale = _scale(a)
    scaled = a / scale
    r = b - a @ c
    ct_a, ct_b = 0 * a, 0 * r
    if ct_c is not None:
        inverse = np.linalg.pinv(scaled, rcond) / scale[:, None]
        ct_b = inverse.T @ ct_c.reshape(c.shape)
        ct_a = np.conj(r) @ np.conj(np.conj(inverse) @ ct_b).T - ct_b @ c.T
    if ct_residuals is not None and ct_residuals.shape[0]:
        more = 2 * np.conj(r) * ct_residuals
        ct_a, ct_b = ct_a - more @ c.T, ct_b + more
    if ct_s is not None:
        u, _, vh = np.linalg.svd(scaled, full_matrices=False)
        of_scaled = (np.conj(u) * ct_s) @ np.conj(vh)
        ct_a = ct_a + (of_scaled - scaled * np.sum(of_scaled * scaled, axis=0)) / scale
    return ct_a, ct_b


def _to_points(ct_a: Any, x: Any, w: Any, deg: int) -> Any:
    """The cotangent of x from that of A: the slope of the power k is k times the power k - 1."""
    ct_v = ct_a if w is None else ct_a * w[:, None]
    return np.sum(ct_v[:, :-1] * np.arange(deg, 0, -1) * np.vander(x, deg), axis=1)


@fit.vjp("x", "y")
def _fit_rule(
    ct: Any, x: Any, y: Any, c: Any, rank: Any, deg: int, rcond: Any, needed: frozenset[str]
) -> tuple[Any, Any]:
    return _cotangents(ct, x, y, None, c, rank, deg, rcond, needed)[:2]


@weighted_fit.vjp("x", "y", "w")
def _weighted_rule(
    ct: Any, x: Any, y: Any, w: Any, c: Any, rank: Any, deg: int, rcond: Any, needed: frozenset[str]
) -> tuple[Any, Any, Any]:
    return _cotangents(ct, x, y, w, c, rank, deg, rcond, needed)


def _cotangents(
    ct: Any, x: Any, y: Any, w: Any, c: Any, rank: Any, deg: int, rcond: Any, needed: frozenset[str]
) -> tuple[Any, Any, Any]:
    """The cotangents of x, y and w, those that are needed."""
    if needed - {"y"} and rank <= deg:
        raise NotDifferentiableError(
            f"np.polyfit has no derivative with respect to {' and '.join(sorted(needed - {'y'}))}: the {deg + 1} "
            f"columns of powers have the rank {rank}, so that the fit jumps when a point moves; lower deg, or centre "
            "and scale x"
        )
    if w is not None:
        w = w.astype(np.result_type(x, y))  # NumPy multiplies x and y in place
    columns = y.reshape((x.shape[0], -1))
    b = columns if w is None else columns * w[:, None]
    ct_a, ct_b = _adjoint(ct, _design(x, w, deg), b, c.reshape((deg + 1, -1)), rcond)
    ct_x = _to_points(ct_a, x, w, deg) if "x" in needed else None
    ct_w = np.sum(ct_a * np.vander(x, deg + 1), axis=1) + np.sum(ct_b * columns, axis=1) if "w" in needed else None
    return ct_x, (ct_b if w is None else ct_b * w[:, None]).reshape(y.shape), ct_w


# ------------------------------------------------------------------------------------------------------- the covariance
def _inverse_of_squares(x: Any, *weights: Any, deg: int) -> Any:
    """The inverse of A^T A, with NumPy's scaling."""
    a = _design(x, weights[0] if weights else None, deg)
    scale = _scale(a)
    scaled = a / scale
    return np.linalg.inv(np.dot(scaled.T, scaled)) / np.outer(scale, scale)


inverse_of_squares: Primitive = primitive(_inverse_of_squares, name="polynomial_fit_covariance")


def _squares_adjoint(ct: Any, x: Any, w: Any, out: Any, deg: int) -> Any:
    """The cotangent of A."""
    of_squares = -(out.T @ ct @ out.T)
    return _design(x, w, deg) @ (of_squares + of_squares.T)


@inverse_of_squares.vjp("x")
def _squares_x_rule(ct: Any, x: Any, weights: tuple[Any, ...], out: Any, deg: int) -> Any:
    w = weights[0] if weights else None
    return _to_points(_squares_adjoint(ct, x, w, out, deg), x, w, deg)


@inverse_of_squares.vjp("weights")
def _squares_weights_rule(ct: Any, x: Any, weights: tuple[Any, ...], out: Any, deg: int) -> Any:
    return np.sum(_squares_adjoint(ct, x, weights[0], out, deg) * np.vander(x, deg + 1), axis=1)


def _floating(v: Any) -> Any:
    v = as_array(v)
    return v if v.dtype.kind in INEXACT else v + 0.0


@composite(np.polyfit)
def polyfit(x: Any, y: Any, deg: Any, rcond: Any = None, full: bool = False, w: Any = None, cov: Any = False) -> Any:
    """numpy.polyfit; x, y and w may be traced. The rank and rcond of ``full=True`` are plain."""
    x, y, *weights = (_floating(v) for v in (x, y, w) if v is not None)
    deg, rcond = int(deg), x.size * np.finfo(x.dtype).eps if rcond is None else rcond
    c, residuals, rank, s = (weighted_fit if weights else fit)(x, y, *weights, deg=deg, rcond=rcond)
    rank = plain_value(rank)
    if full:
        return c, residuals, rank, s, rcond
    if rank != deg + 1:
        warn_user("Polyfit may be poorly conditioned", np.exceptions.RankWarning)
    if not cov:
        return c
    base = inverse_of_squares(x, *weights, deg=deg)
    if cov == "unscaled":
        return c, base if y.ndim == 1 else base[:, :, None]
    if x.shape[0] <= deg + 1:
        raise ValueError(
            f"np.polyfit(cov=True) needs more points than coefficients to scale the covariance; got {x.shape[0]} for "
            f"{deg + 1}"
        )
    factor = residuals / (x.shape[0] - (deg + 1))
    return c, (base if y.ndim == 1 else base[:, :, None]) * factor


FITTING: tuple[Primitive | Composite, ...] = (fit, weighted_fit, inverse_of_squares, polyfit)
