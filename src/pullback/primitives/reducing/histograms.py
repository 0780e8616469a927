"""Histograms: bincount, histogram, histogram2d, histogramdd, histogram_bin_edges.

Counts are sums of weights, so a weight gets the cotangent of its bin. As a function of the data a count is constant
between its jumps. That derivative is 0, and counts without weights are plain. Without ``range`` and without an array of
edges NumPy places the edges between the least and the greatest element. Then they move with the data and carry that
derivative. So does a density, which is divided by the widths of the bins.
"""

from typing import Any

import numpy as np

from pullback.primitives.shared.gather_scatter import pick
from pullback.recording.handles import Handle, plain_value
from pullback.rules.declaration import Composite, Primitive, composite, primitive

# ----------------------------------------------------------------------------------------------------- counts by number
count_weights = primitive(
    lambda weights, x, *, minlength: np.bincount(x, weights, minlength),
    name="count_weights",
    nondiff=("x",),
    linear=("weights",),
    vjps={"weights": lambda ct, x: pick(ct, x, distinct=False)},
)


@composite(np.bincount)
def bincount(x: Any, /, weights: Any = None, minlength: int = 0) -> Any:
    """numpy.bincount; ``x`` are integers, so the weights alone have a derivative."""
    x = plain_value(x)
    return (
        np.bincount(x, None, minlength)
        if weights is None
        else count_weights(weights, np.asarray(x), minlength=minlength)
    )


# ---------------------------------------------------------------------------------------------------------------- edges
def _shares(n: int, dtype: Any) -> Any:
    return np.linspace(0, 1, n + 1, dtype=dtype)


even_edges = primitive(
    lambda first, last, *, n, dtype: np.linspace(first, last, n + 1, dtype=dtype),
    name="even_edges",
    vjps={
        "first": lambda ct, n: np.sum(ct * (1 - _shares(n, ct.dtype))),
        "last": lambda ct, n: np.sum(ct * _shares(n, ct.dtype)),
    },
)


def _ends(a: Any, range: Any) -> tuple[Any, Any]:
    """The outer edges as NumPy takes them: those of ``range``, else the least and the greatest element, else 0 and 1.
    Where both are equal, half a unit to either side."""
    first, last = range if range is not None else (np.min(a), np.max(a)) if np.size(plain_value(a)) else (0, 1)
    return (first - 0.5, last + 0.5) if first == last else (first, last)


def _edges(a: Any, bins: Any, range: Any, plain: Any, dtype: Any) -> Any:
    """The edges with their derivative; ``plain`` are their values. They are ``bins`` itself, or evenly spaced between
    the ends."""
    if np.ndim(plain_value(bins)):
        return bins if isinstance(bins, Handle) else plain
    ends = _ends(a, range)
    return even_edges(*ends, n=len(plain) - 1, dtype=dtype) if any(isinstance(end, Handle) for end in ends) else plain


def _plain_range(range: Any) -> Any:
    return None if range is None else tuple(plain_value(end) for end in range)


@composite(np.histogram_bin_edges)
def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:
    """numpy.histogram_bin_edges; they move with the data where ``range`` is None and ``bins`` is no array."""
    plain = np.histogram_bin_edges(plain_value(a), plain_value(bins), _plain_range(range), plain_value(weights))
    return _edges(a, bins, range, plain, plain.dtype)


# ----------------------------------------------------------------------------------------------------------- histograms
def _bin_of(sample: Any, edges: Any) -> Any:
    """The bin of each number, the right edge of the last in it; -1 or the number of bins for what is in none."""
    return np.where(sample == edges[-1], len(edges) - 2, np.searchsorted(edges, sample, "right") - 1)


def _even_bin_of(sample: Any, edges: Any) -> Any:
    """As :func:`_bin_of` for edges of equal distance: a guess, which rounding may have put into the neighbour."""
    n = len(edges) - 1
    inside = (sample >= edges[0]) & (sample <= edges[-1])
    bins = ((np.where(inside, sample, edges[0]) - edges[0]) * (n / (edges[-1] - edges[0]))).astype(np.intp)
    np.minimum(bins, n - 1, out=bins)
    bins -= sample < edges[bins]
    bins += (sample >= edges[bins + 1]) & (bins < n - 1)
    return np.where(inside, bins, -1)


def _to_weights(ct: Any, sample: Any, edges: tuple[Any, ...], even: tuple[Any, ...], weights_spec: Any) -> Any:
    """The cotangent of its bin to each weight; nothing to those outside of all."""
    bins = [
        (_bin_of if n is None else _even_bin_of)(column, edge)
        for column, edge, n in zip(sample, edges, even, strict=True)
    ]
    inside = np.logical_and.reduce([(b >= 0) & (b < n) for b, n in zip(bins, ct.shape, strict=True)])
    places = np.ravel_multi_index(tuple(np.where(inside, b, 0) for b in bins), ct.shape)
    return np.reshape(np.where(inside, pick(ct, places, distinct=False), 0), weights_spec.shape)


weighted_histogram = primitive(
    lambda weights, sample, edges, *, bins, reach: np.histogram(
        sample, edges if bins is None else bins, reach, weights=weights
    )[0],
    name="weighted_histogram",
    nondiff=("sample", "edges"),
    linear=("weights",),
    masks=True,
    vjps={
        "weights": lambda ct, sample, edges, bins, weights_spec: _to_weights(
            ct, (sample.reshape(-1),), (edges,), (bins,), weights_spec
        )
    },
)


@composite(np.histogram)
def histogram(a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    """numpy.histogram: the counts and the edges."""
    sample, reach = np.asarray(plain_value(a)), _plain_range(range)
    plain_bins = plain_value(bins)
    plain = np.histogram_bin_edges(sample, plain_bins, reach, plain_value(weights))
    edges = _edges(a, bins, range, plain, plain.dtype)
    if isinstance(weights, Handle):
        even = None if np.ndim(plain_bins) else len(plain) - 1
        counts = weighted_histogram(weights, sample, plain, bins=even, reach=reach)
    else:
        counts = np.histogram(sample, plain_bins, reach, weights=weights)[0]
    if not density:
        return counts, edges
    widths = np.diff(edges)
    return counts / (widths if widths.dtype == np.float64 else widths.astype(np.float64)) / counts.sum(), edges


weighted_histogram_nd = primitive(
    lambda weights, sample, *edges, bins, reach: np.histogramdd(
        sample, [edge if n is None else n for n, edge in zip(bins, edges, strict=True)], reach, weights=weights
    )[0],
    name="weighted_histogram_nd",
    nondiff=("sample", "edges"),
    linear=("weights",),
    masks=True,
    vjps={
        "weights": lambda ct, sample, edges, bins, weights_spec: _to_weights(ct, sample.T, edges, bins, weights_spec)
    },
)


@composite(np.histogramdd)
def histogramdd(sample: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    """numpy.histogramdd: the counts, and a list of edges."""
    columns = _columns(sample)
    plain = np.stack([np.asarray(plain_value(column)) for column in columns], 1)
    each = list(bins) if _length(bins) else [bins] * len(columns)
    reach: Any = [None] * len(columns) if range is None else [None if r is None else _plain_range(r) for r in range]
    counts, plain_edges = np.histogramdd(plain, [plain_value(b) for b in each], reach, weights=plain_value(weights))
    ranges = [None] * len(columns) if range is None else range
    edges = [_edges(c, b, r, edge, None) for c, b, r, edge in zip(columns, each, ranges, plain_edges, strict=True)]
    if isinstance(weights, Handle):
        even = tuple(None if np.ndim(plain_value(b)) else b for b in each)
        counts = weighted_histogram_nd(weights, plain, *plain_edges, bins=even, reach=tuple(reach))
    if density:
        total = counts.sum()
        for k, edge in enumerate(edges):
            counts = counts / np.reshape(np.diff(edge), tuple(-1 if j == k else 1 for j in _numbers(len(edges))))
        counts = counts / total
    return counts, type(plain_edges)(edges)


def _columns(sample: Any) -> list[Any]:
    """One array for each dimension: the columns of a matrix, or the members of a sequence."""
    if isinstance(sample, list | tuple):
        return list(sample) if np.ndim(plain_value(sample[0])) else [np.asarray(sample)]
    return [sample[:, k] for k in _numbers(sample.shape[1])] if sample.ndim == 2 else [sample]


def _length(bins: Any) -> int:
    """``len(bins)``, 0 of a number."""
    return len(bins) if isinstance(bins, list | tuple) else (*np.shape(plain_value(bins)), 0)[0]


def _numbers(n: int) -> tuple[int, ...]:
    """0 to n - 1; ``range`` is an argument here."""
    return tuple(np.arange(n).tolist())


@composite(np.histogram2d)
def histogram2d(x: Any, y: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    """numpy.histogram2d: the counts, and the edges of either axis."""
    counts, edges = histogramdd([x, y], bins if _length(bins) < 3 else [bins, bins], range, density, weights)
    return counts, edges[0], edges[1]


HISTOGRAMS: tuple[Primitive | Composite, ...] = (
    count_weights, bincount, even_edges, histogram_bin_edges,
    weighted_histogram, histogram, weighted_histogram_nd, histogramdd, histogram2d,
)  # fmt: skip
