"""Order statistics: median, quantile, percentile, and those that pass over NaN.

NumPy gives the values. Each is ``(1 - g) x[low] + g x[high]`` with two elements of the slice that stand next to each
other in its order and a weight g in [0, 1]; the forward keeps their places, and the cotangent is split between them by
the weight. In a slice with NaN, the NaN that is the result gets it all; the functions that pass over NaN give nothing
to a slice of nothing else.

Source of the methods: R. J. Hyndman and Y. Fan, Sample quantiles in statistical packages, The American Statistician
50(4), 1996.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from attrs import frozen
from numpy.lib.array_utils import normalize_axis_tuple

from pullback.primitives.reducing.statistics import beside
from pullback.primitives.reducing.sums import is_true
from pullback.primitives.shaping.creation import of_nothing
from pullback.primitives.shared.axes import Axis
from pullback.primitives.shared.gather_scatter import pick, put
from pullback.primitives.shared.masked_arithmetic import times
from pullback.recording.handles import Handle, plain_value
from pullback.rules.declaration import Composite, Primitive, composite, primitive
from pullback.words.call_sites import site_here, site_text
from pullback.words.errors import NotDifferentiableError
from pullback.words.specs import ArraySpec
from pullback.words.undocumented import ABSENT

MANY = 32
"""The number of ranks from which a sort takes less time than a partition."""


# ---------------------------------------------------------------------------------------------------------- the methods
@frozen
class Method:
    """How a quantile ``q`` of ``n`` elements is read off their order: at the real index ``index(n, q)``, between its
    neighbours."""

    index: Callable[[Any, Any], Any]
    weight: Callable[[Any], Any]
    """The weight of the upper neighbour, of the index; the derivative by the index is 1, or 0 where ``rate`` is
    None."""
    rate: Callable[[Any], Any] | None = None
    """The derivative of the index by ``q``; None where the result is constant between the jumps."""


def _fraction(index: Any) -> Any:
    return index - np.floor(index)


def _continuous(alpha: float, beta: float) -> Method:
    """Hyndman and Fan, definitions 4 to 9: index n q + m with m = alpha + q (1 - alpha - beta), counted from 0."""
    return Method(
        lambda n, q: n * q + (alpha + q * (1 - alpha - beta)) - 1, _fraction, lambda n: n + (1 - alpha - beta)
    )


def _nearest_even(n: Any, q: Any) -> Any:
    index = n * q - 1 - 0.5
    whole = np.floor(index)
    return np.where((index == whole) & (whole % 2 == 1), whole, whole + 1)


METHODS = {
    "linear": Method(lambda n, q: (n - 1) * q, _fraction, lambda n: n - 1),
    "interpolated_inverted_cdf": _continuous(0, 1),
    "hazen": _continuous(0.5, 0.5),
    "weibull": _continuous(0, 0),
    "median_unbiased": _continuous(1 / 3, 1 / 3),
    "normal_unbiased": _continuous(3 / 8, 3 / 8),
    "inverted_cdf": Method(lambda n, q: np.ceil(n * q - 1), np.zeros_like),
    "averaged_inverted_cdf": Method(lambda n, q: n * q - 1, lambda index: np.where(_fraction(index) == 0, 0.5, 1.0)),
    "closest_observation": Method(_nearest_even, np.zeros_like),
    "lower": Method(lambda n, q: np.floor((n - 1) * q), np.zeros_like),
    "higher": Method(lambda n, q: np.ceil((n - 1) * q), np.zeros_like),
    "nearest": Method(lambda n, q: np.around((n - 1) * q), np.zeros_like),
    "midpoint": Method(lambda n, q: (n - 1) * q, lambda index: np.where(_fraction(index) == 0, 0.0, 0.5)),
}
SCALE = {"quantile": 1, "nanquantile": 1, "percentile": 100, "nanpercentile": 100}
FORWARD: dict[str, Callable[..., Any]] = {
    f.__name__: f for f in (np.quantile, np.nanquantile, np.percentile, np.nanpercentile, np.median, np.nanmedian)
}


# ----------------------------------------------------------------------------------------------- places of the elements
def _rows(x: Any, axis: Axis) -> Any:
    """``x`` with the reduced axes as one, the last."""
    reduced = tuple(range(x.ndim)) if axis is None else normalize_axis_tuple(axis, x.ndim)
    kept = tuple(k for k in range(x.ndim) if k not in reduced)
    return np.transpose(x, (*kept, *reduced)).reshape(*(x.shape[k] for k in kept), -1)


def _neighbours(x: Any, axis: Axis, index_of: Callable[[Any], Any], skip_nan: bool) -> tuple[dict[str, Any], Any]:
    """The residuals ``low`` and ``high``, the places of the two elements, of shape ``q`` and then the axes that are
    left; and ``n``, how many elements of each slice count (-1 where the result is NaN whatever the elements are).

    Beside them the real index, which ``index_of(n)`` gives.
    """
    rows = _rows(x, axis)
    nan = np.isnan(rows)
    n = rows.shape[-1] - nan.sum(-1) if skip_nan else np.full(rows.shape[:-1], rows.shape[-1])
    index = index_of(n)
    first = np.floor(index).astype(np.intp)
    last = np.maximum(n - 1, 0)
    ranks = np.stack([np.clip(first, 0, last), np.clip(first + 1, 0, last)])
    if not skip_nan:
        ranks = np.where(nan.any(-1), last, ranks)
    kth = np.unique(ranks)
    order = np.argpartition(rows, kth, -1) if kth.size < MANY else np.argsort(rows, -1)
    wanted = np.moveaxis(ranks.reshape(-1, *n.shape), 0, -1)
    cells = _rows(np.arange(x.size).reshape(x.shape), axis)
    places = np.take_along_axis(cells, np.take_along_axis(order, wanted, -1), -1)
    low, high = np.moveaxis(places, -1, 0).reshape(ranks.shape)
    return {"low": low, "high": high, "n": np.where(n > 0, n, -1)}, index


def _split(ct: Any, low: Any, high: Any, n: Any, weight: Any, x_spec: ArraySpec) -> Any:
    """``ct`` put to both neighbours by their weights."""
    ct = np.where(n < 0, 0, np.reshape(ct, low.shape))
    weight = weight.astype(ct.dtype.char.lower())  # the real dtype of that precision
    parts = np.stack([times(ct, 1 - weight), times(ct, weight)])
    return put(parts, np.stack([low, high]), shape=x_spec.shape, distinct=False)


# ----------------------------------------------------------------------------------------------------------- primitives
def _quantile(x: Any, q: Any, *, function: str, axis: Axis, method: str, keepdims: bool) -> Any:
    out = FORWARD[function](x, q, axis, method=method, keepdims=keepdims)
    q = np.asarray(plain_value(q))
    narrow = q.dtype.kind == "f" and q.dtype.itemsize < np.dtype(float).itemsize
    index_of = partial(_index_in_numpy if narrow else _index, q, function=function, method=method)
    residuals, index = _neighbours(plain_value(x), axis, index_of, function.startswith("nan"))
    if METHODS[method].rate is not None:
        origin = np.floor(index) + (_index(q, residuals["n"], function, method) - index if narrow else 0)
    else:
        origin = _fraction(index) if narrow else METHODS[method].weight(index)
    return out, {**residuals, "origin": origin}


def _index_in_numpy(q: Any, n: Any, function: str, method: str) -> Any:
    """The real index as NumPy rounds it, which computes it in the dtype of ``q``: the quantile of 0, 1, ... itself.
    Beyond the ends, where the result is an end, that of exact arithmetic."""
    exact = _index(q, n, function, method)
    index = np.array(np.broadcast_to(exact, (*q.shape, *n.shape)), float)
    for count in np.unique(n[n > 0]):
        given = FORWARD[function.removeprefix("nan")](np.arange(float(count)), q, method=method)
        index[..., n == count] = np.asarray(given)[..., None]
    if not np.isfinite(index).all():
        raise NotDifferentiableError(
            f"numpy.{function} computes places in {q.dtype}, the dtype of q, which cannot hold them for {n.max()} "
            f"elements (called at {site_text(site_here())}); pass q.astype(float)"
        )
    return np.where((exact < 0) | (exact > n - 1), exact, index)


def _index(q: Any, n: Any, function: str, method: str) -> Any:
    """The real index, of the shape of ``low``."""
    return METHODS[method].index(n, np.reshape(q, (*np.shape(q), *(1,) * n.ndim)) / SCALE[function])


def _to_elements(
    ct: Any, q: Any, low: Any, high: Any, n: Any, origin: Any, x_spec: ArraySpec, function: str, method: str
) -> Any:
    """The cotangents of both neighbours, by the weight of the upper one: ``origin``, or the index counted from
    there."""
    weight = origin if METHODS[method].rate is None else _index(q, n, function, method) - origin
    return _split(ct, low, high, n, weight, x_spec)


def _to_q(ct: Any, x: Any, low: Any, high: Any, n: Any, q_spec: ArraySpec, function: str, method: str) -> Any:
    """The gap between the neighbours times the number of gaps per unit of ``q``; 0 where the index is beyond the
    ends."""
    rate = METHODS[method].rate
    assert rate is not None, "the composite takes the value of q where nothing depends on it"
    alone = (low == high) | (n < 0)
    gap = pick(x, np.where(alone, low, high), distinct=False) - pick(x, low, distinct=False)
    moved = np.where(alone, 0, times(np.reshape(ct, low.shape) * (rate(n) / SCALE[function]), np.where(alone, 0, gap)))
    return np.sum(np.reshape(moved, (*q_spec.shape, -1)), -1)


quantile = primitive(
    _quantile,
    name="order_statistic",
    residuals=("low", "high", "n", "origin"),
    masks=True,
    vjps={"x": _to_elements, "q": _to_q},
)


def _median(x: Any, *, function: str, axis: Axis, keepdims: bool) -> Any:
    out = FORWARD[function](x, axis, keepdims=keepdims)
    residuals, _ = _neighbours(plain_value(x), axis, lambda n: (n - 1) / 2, function == "nanmedian")
    return out, residuals


def _to_middle(ct: Any, low: Any, high: Any, n: Any, x_spec: ArraySpec) -> Any:
    """Half to each of two middle elements, all to one."""
    return _split(ct, low, high, n, np.where(n % 2 == 0, 0.5, 0.0), x_spec)


median = primitive(_median, name="middle", residuals=("low", "high", "n"), masks=True, vjps={"x": _to_middle})


def _first_places(x: Any, out: Any, weights: Any, axis: Axis) -> Any:
    """The place of the first element of its slice that has its value and a weight, for each result; -1 where there is
    none."""
    rows, heavy = _rows(x, axis), _rows(beside(weights, x.shape, axis) > 0, axis)
    cells = _rows(np.arange(x.size).reshape(x.shape), axis)
    places = []
    for value in out.reshape(-1, *rows.shape[:-1]):
        wanted = value[..., None]
        hit = ((rows == wanted) & heavy) | (np.isnan(rows) & np.isnan(wanted))
        first = np.take_along_axis(cells, hit.argmax(-1)[..., None], -1)[..., 0]
        places.append(np.where(hit.any(-1), first, -1))
    return np.stack(places)


def _weighted(x: Any, q: Any, weights: Any, *, function: str, axis: Axis, keepdims: bool) -> Any:
    out = FORWARD[function](x, q, axis, method="inverted_cdf", keepdims=keepdims, weights=weights)
    values = np.asarray(plain_value(out))
    places = _first_places(plain_value(x), values, weights, axis)
    if function.startswith("nan"):
        places = np.where(np.isnan(values.reshape(places.shape)), -1, places)
    return out, {"places": places}


def _to_places(ct: Any, places: Any, x_spec: ArraySpec) -> Any:
    return put(
        np.where(places < 0, 0, np.reshape(ct, places.shape)), np.maximum(places, 0), shape=x_spec.shape, distinct=False
    )


weighted = primitive(
    _weighted,
    name="weighted_order_statistic",
    nondiff=("q", "weights"),
    residuals=("places",),
    masks=True,
    vjps={"x": _to_places},
)


# ---------------------------------------------------------------------------------------------------- NumPy's functions
def _np_quantile(function: str) -> Composite:
    """NumPy's ``quantile``, ``percentile``, ``nanquantile`` or ``nanpercentile``. Nothing depends smoothly on ``q``
    where ``method`` jumps, nor on weights."""

    def order_statistic(
        a: Any, q: Any, axis: Axis = None, out: Any = None, overwrite_input: bool = False, method: str = "linear",
        keepdims: Any = ABSENT, *,
        weights: Any = None,
    ) -> Any:  # fmt: skip
        keepdims, weights = is_true(keepdims), plain_value(weights)
        if not (method in METHODS and METHODS[method].rate is not None and isinstance(q, Handle)):
            q = plain_value(q)
        if method not in METHODS or (weights is not None and method != "inverted_cdf") or not np.size(plain_value(a)):
            options = {} if weights is None else {"weights": weights}
            plain = FORWARD[function](plain_value(a), plain_value(q), axis, method=method, keepdims=keepdims, **options)
            return of_nothing(a, plain)
        if weights is not None:
            return weighted(a, q, weights, function=function, axis=axis, keepdims=keepdims)
        return quantile(a, q, function=function, axis=axis, method=method, keepdims=keepdims)

    return composite(FORWARD[function], name=function)(order_statistic)


def _np_median(function: str) -> Composite:
    """NumPy's ``median`` or ``nanmedian``. With ``overwrite_input`` NumPy may leave the operand in any order; here it
    stays as it is."""

    def middle(
        a: Any, axis: Axis = None, out: Any = None, overwrite_input: bool = False, keepdims: Any = ABSENT
    ) -> Any:
        keepdims = is_true(keepdims)
        if not a.size:  # NaN, or nothing
            return of_nothing(a, FORWARD[function](plain_value(a), axis, keepdims=keepdims))
        return median(a, function=function, axis=axis, keepdims=keepdims)

    return composite(FORWARD[function], name=function)(middle)


QUANTILES: tuple[Primitive | Composite, ...] = (
    *(quantile, median, weighted),
    *map(_np_median, ("median", "nanmedian")),
    *map(_np_quantile, ("quantile", "percentile", "nanquantile", "nanpercentile")),
)
