"""norm with every ord, vector_norm, matrix_norm.

The forward is NumPy's own norm; there is a primitive for each way the cotangent goes. At the origin, and at every other
point where a norm has a minimum in an element, that element gets 0; elements that tie for a maximum or minimum share.
Of a complex x the derivative of |x| is conj(x) / |x|.
"""

from collections.abc import Callable
from math import inf, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

import pullback as pb
from pullback_linalg.polar import POLAR, polar_part
from pullback_linalg.products import conj
from pullback_linalg.unguarded import primitive


def _traced(x: Any) -> bool:
    return hasattr(type(x), "__pullback_record__")


def _taken(axis: Any, ndim: int) -> tuple[int, ...]:
    """The axes of a norm, none negative."""
    axes = range(ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    return tuple(k % ndim for k in axes)


def _kept(v: Any, axis: Any, keepdims: bool, ndim: int) -> Any:
    """``v``, which has the shape of the result, with the axes of the norm as axes of one element."""
    axes = _taken(axis, ndim)
    return v if keepdims or len(axes) == ndim else np.expand_dims(v, axes)


def _unit_conjugate(x: NDArray[Any]) -> NDArray[Any]:
    """conj(x) / |x|, and 0 at 0: by the parts, since NumPy divides complex numbers by real ones as complex ones."""
    x = np.asarray(x)
    size = np.abs(x)
    size = size + (size == 0)
    out = np.empty_like(x)
    np.divide(x.real, size, out=out.real)
    np.divide(x.imag, -size, out=out.imag)
    return out


def _unit_conjugate_rule(ct: Any, x: Any, out: Any) -> Any:
    """-i Im(ct out) / x: the angle alone moves."""
    return -1j * np.imag(ct * out) / np.where(x == 0, 1, x)


unit_conjugate = primitive(_unit_conjugate, name="unit_conjugate", reach="place", vjps={"x": _unit_conjugate_rule})


def _phase(x: Any) -> Any:
    """The derivative of the absolute value: the sign, conj(x) / |x| of complex numbers, 0 at 0."""
    return unit_conjugate(x) if x.dtype.kind == "c" else np.sign(x)


def _norm(name: str, rule: Callable[..., Any]) -> Any:
    return primitive(
        lambda x, *, ord, axis, keepdims: np.linalg.norm(x, ord, axis, keepdims),  # noqa: A006 - NumPy's name
        name=f"norm_{name}",
        reach="reduced",
        vjps={"x": rule},
    )


# ------------------------------------------------------------------------------------------------------ of the elements
def _euclidean(ct: Any, x: Any, out: Any, axis: Any, keepdims: bool) -> Any:
    slope = np.where(out == 0, 0, ct) / np.where(out == 0, 1, out)
    return conj(x) * _kept(slope, axis, keepdims, x.ndim)


def _absolute(ct: Any, x: Any, axis: Any, keepdims: bool) -> Any:
    return _phase(x) * _kept(ct, axis, keepdims, x.ndim)


def _phase_where(x: Any, taken: NDArray[np.bool_], share: Any) -> Any:
    """``share`` times the phase of x where ``taken``, else 0. The last axis of x may be missing in both: it is taken
    whole."""
    if x.dtype.kind == "c" and _traced(x):  # only then has it a derivative
        weight = np.where(taken, share, 0)
        return _phase(x) * (weight if taken.ndim == x.ndim else weight[..., None])
    value, places = pb.value(x), np.nonzero(taken)
    slope = np.zeros(value.shape, value.dtype)
    weight = np.broadcast_to(share, taken.shape)[places]
    slope[places] = _phase(value[places]) * (weight if taken.ndim == x.ndim else weight[..., None])
    return slope


def _extreme(ct: Any, x: Any, out: Any, axis: Any, keepdims: bool) -> Any:
    size, top = np.abs(pb.value(x)), _kept(pb.value(out), axis, keepdims, x.ndim)
    taken = size == top
    if np.isnan(top).any():
        taken |= np.isnan(size)
    share = 1 / np.maximum(np.count_nonzero(taken, _taken(axis, x.ndim), keepdims=True), 1)
    return _kept(ct, axis, keepdims, x.ndim) * _phase_where(x, taken, share)


@np.errstate(all="ignore")
def _power(ct: Any, x: Any, ord: Any, out: Any, axis: Any, keepdims: bool) -> Any:
    """(|x| / out)^(ord - 1); 0 at elements that are 0, where for ord < 1 the norm has a minimum of infinite slope on
    both sides."""
    size, out = np.abs(x), _kept(out, axis, keepdims, x.ndim)
    safe = np.where(out == 0, 1, out)
    if ord > 1:
        slope = (size / safe) ** (ord - 1)
    else:
        nothing = (size == 0) | (out == 0)
        slope = np.where(nothing, 0, (safe / np.where(nothing, 1, size)) ** (1 - ord))
    signed = slope * _phase(x) if x.dtype.kind == "c" else np.copysign(slope, x)
    return signed * _kept(ct, axis, keepdims, x.ndim)


@np.errstate(all="ignore")
def _power_ord(ct: Any, x: Any, ord: Any, out: Any, axis: Any, keepdims: bool) -> Any:
    """The slope is out / ord sum r^ord log r, with r = |x| / out."""
    size, whole = np.abs(x), _kept(out, axis, keepdims, x.ndim)
    nothing = (size == 0) | (whole == 0)
    ratio = np.where(nothing, 1, size) / np.where(whole == 0, 1, whole)
    terms = np.where(nothing, 0, ratio**ord * np.log(ratio))
    return np.sum(ct * out / ord * np.sum(terms, axis=_taken(axis, x.ndim), keepdims=keepdims))


euclidean = _norm("euclidean", _euclidean)
absolute = _norm("absolute", _absolute)
extreme = _norm("extreme", _extreme)
power = primitive(
    lambda x, ord, *, axis, keepdims: np.linalg.norm(x, ord, axis, keepdims),  # noqa: A006 - as above
    name="norm_power",
    reach="reduced",
    vjps={"x": _power, "ord": _power_ord},
)


# ---------------------------------------------------------------------------------------------------------- of a matrix
def _of_sums(ct: Any, x: Any, ord: Any, axis: Any, keepdims: bool) -> Any:
    """The largest or smallest sum of absolute values: over rows for 1 and -1, over columns for the infinities."""
    rows, columns = _taken(axis, x.ndim)
    summed, chosen = (rows, columns) if abs(ord) == 1 else (columns, rows)
    sums = np.sum(np.abs(pb.value(x)), axis=summed, keepdims=True)
    best = sums.max(axis=chosen, keepdims=True, initial=0) if ord > 0 else sums.min(axis=chosen, keepdims=True)
    taken = (sums == best) | np.isnan(sums)
    share = taken / np.maximum(np.count_nonzero(taken, axis=chosen, keepdims=True), 1)
    slope = _phase_where(np.moveaxis(x, summed, -1), taken.squeeze(summed), share.squeeze(summed))
    return np.moveaxis(slope, -1, summed) * _kept(ct, axis, keepdims, x.ndim)


def _of_singular_values(ct: Any, x: Any, ord: Any, axis: Any, keepdims: bool) -> Any:
    axes = _taken(axis, x.ndim)
    if keepdims:
        ct = np.squeeze(ct, axes)
    slope = ct[..., None, None] * conj(polar_part(np.moveaxis(x, axes, (-2, -1)), which=ord))
    return np.moveaxis(slope, (-2, -1), axes)


of_sums = _norm("of_sums", _of_sums)
of_singular_values = _norm("of_singular_values", _of_singular_values)


def matrix_slope(ct: Any, x: Any, ord: Any) -> Any:
    """The cotangent of x from that of its norm over the last two axes."""
    axes = (-2, -1)
    if ord in ("f", "fro"):
        return _euclidean(ct, x, np.linalg.norm(x, ord, axes), axes, keepdims=False)
    rule = _of_singular_values if ord == "nuc" else _of_sums
    return rule(ct, x, ord, axes, keepdims=False)


# ---------------------------------------------------------------------------------------------------- NumPy's functions
@pb.composite(np.linalg.norm, name="linalg.norm")
def linalg_norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """numpy.linalg.norm: of the whole array, of vectors along an axis, of matrices along two."""
    if axis is not None and not isinstance(axis, tuple):
        try:
            axis = int(axis)
        except Exception as error:
            raise TypeError("'axis' must be None, an integer or a tuple of integers") from error
    axes = x.ndim if axis is None else len(axis) if isinstance(axis, tuple) else 1
    if _traced(ord):
        if axes == 1:
            return power(x, ord, axis=axis, keepdims=keepdims)
        message = (
            "numpy.linalg.norm of matrices has no derivative in ord; pass ord as a plain number, pullback.value(ord)"
        )
        raise pb.NotDifferentiableError(message)
    options = {"axis": axis, "keepdims": bool(keepdims)}
    if ord is None and (axis is None or axes in (1, 2)):
        return euclidean(x, ord=None, **options)
    if axes == 1 and not isinstance(ord, str) and ord != 0:
        kind = euclidean if ord == 2 else absolute if ord == 1 else extreme if abs(ord) == inf else None
        return power(x, ord, **options) if kind is None else kind(x, ord=ord, **options)
    if axes == 2 and ord in ("f", "fro", "nuc", 1, -1, 2, -2, inf, -inf):
        kind = euclidean if ord in ("f", "fro") else of_singular_values if ord in ("nuc", 2, -2) else of_sums
        return kind(x, ord=ord, **options)
    return np.linalg.norm(
        pb.value(x), ord, **options
    )  # ord 0 counts, which has no slope; else NumPy says what is wrong


@pb.composite(np.linalg.matrix_norm, name="linalg.matrix_norm")
def linalg_matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    """numpy.linalg.matrix_norm: over the last two axes."""
    return linalg_norm(x, ord, (-2, -1), keepdims)


@pb.composite(np.linalg.vector_norm, name="linalg.vector_norm")
def linalg_vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    """numpy.linalg.vector_norm: over any number of axes together."""
    ndim, shape = x.ndim, x.shape
    if axis is None:
        flat, along, axes = x.ravel(), 0, tuple(range(ndim))
    elif isinstance(axis, tuple):
        axes = np.lib.array_utils.normalize_axis_tuple(axis, ndim)
        rest = tuple(k for k in range(ndim) if k not in axes)
        flat = np.transpose(x, (*axes, *rest)).reshape((prod(shape[k] for k in axes), *(shape[k] for k in rest)))
        along = 0
    else:
        flat, along, axes = x, axis, np.lib.array_utils.normalize_axis_tuple(axis, ndim)
    result = linalg_norm(flat, ord, along)
    return result.reshape(tuple(1 if k in axes else n for k, n in enumerate(shape))) if keepdims else result


NORMS = (
    *POLAR, unit_conjugate, euclidean, absolute, extreme, power, of_sums, of_singular_values,
    linalg_norm, linalg_matrix_norm, linalg_vector_norm,
)  # fmt: skip
