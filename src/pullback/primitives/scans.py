
"""Scans: running sums and products, and differences of neighbours."""

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from pullback.arrays import ArraySpec
from pullback.declare import Composite, Primitive, composite, primitive
from pullback.handles import plain_value
from pullback.primitives.axes import BACKWARDS, cut, integral
from pullback.primitives.versions import available, served

ABSENT: Any = np._NoValue  # noqa: SLF001 - the default in NumPy's own signatures


def _cumsum_rule(ct: Any, x_spec: ArraySpec, axis: int) -> Any:
    """Element i is in every sum from i on: the running sum from the other end."""
    backwards = cut(x_spec.ndim, axis, BACKWARDS)
    return np.add.accumulate(ct[backwards], axis)[backwards]


cumsum = primitive(
    lambda x, *, axis, dtype: np.add.accumulate(x, axis, dtype),
    name="scan_sum",
    linear=("x",),
    vjps={"x": _cumsum_rule},
)


def _from_the_end(b: Any, a: Any, axis: int, n: int) -> Any:
    """The s with s[i] = b[i] + a[i] s[i + 1] along ``axis`` of length ``n``, and s[n - 1] = b[n - 1]; ``a`` is one shorter than ``b``.

    Recursive doubling (Hillis and Steele, Data parallel algorithms, Commun. ACM 29(12), 1986): log2(n) sweeps and no division,
    so that zeros among ``a`` are no special case.
    """
    ndim, width, s = len(b.shape), 1, b
    while width < n:
        head, tail, rest = (cut(ndim, axis, part) for part in (slice(n - width), slice(width, None), slice(n - width, None)))
        s = np.concatenate((s[head] + a * s[tail], s[rest]), axis)
        if 2 * width < n:
            a = a[cut(ndim, axis, slice(n - 2 * width))] * a[tail]
        width *= 2
    return s


def _cumprod_rule(ct: Any, x: Any, x_spec: ArraySpec, axis: int) -> Any:
    """The product before i, times the sum over j >= i of ct[j] and the product from i + 1 to j."""
    ndim, n = x_spec.ndim, x_spec.shape[axis]
    if n == 0:
        return ct
    later = _from_the_end(ct, x[cut(ndim, axis, slice(1, None))], axis, n)
    one = np.ones((*x_spec.shape[:axis], 1, *x_spec.shape[axis + 1 :]), x_spec.dtype)
    before = np.concatenate((one, np.multiply.accumulate(x[cut(ndim, axis, slice(-1))], axis)), axis)
    return before * later


cumprod = primitive(
    lambda x, *, axis, dtype: np.multiply.accumulate(x, axis, dtype),
    name="scan_prod",
    vjps={"x": _cumprod_rule},
)


def _line(a: Any, axis: int | None) -> tuple[Any, int]:
    """The array to scan and its axis, not negative: all elements in C order where ``axis`` is None."""
    if axis is None:
        return np.ravel(a), 0
    line = np.reshape(a, (1,)) if a.ndim == 0 else a
    return line, normalize_axis_index(axis, line.ndim)


def _scan(scan: Primitive, a: Any, axis: int | None, dtype: Any) -> Any:
    line, along = _line(plain_value(a) if integral(dtype) else a, axis)
    return scan(line, axis=along, dtype=dtype)


@composite(np.cumsum, name="cumsum")
def np_cumsum(a: Any, axis: int | None = None, dtype: Any = None, out: Any = None) -> Any:
    """numpy.cumsum."""
    return _scan(cumsum, a, axis, dtype)


@composite(np.cumprod, name="cumprod")
def np_cumprod(a: Any, axis: int | None = None, dtype: Any = None, out: Any = None) -> Any:
    """numpy.cumprod."""
    return _scan(cumprod, a, axis, dtype)


@composite(np.add.accumulate, name="add.accumulate")
def add_accumulate(array: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
    """numpy.add.accumulate."""
    return _scan(cumsum, array, normalize_axis_index(axis, array.ndim), dtype)


@composite(np.multiply.accumulate, name="multiply.accumulate")
def multiply_accumulate(array: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
    """numpy.multiply.accumulate."""
    return _scan(cumprod, array, normalize_axis_index(axis, array.ndim), dtype)


def _cumulative(scan: Primitive, identity: int, x: Any, axis: int | None, dtype: Any, include_initial: bool) -> Any:
    if axis is None and x.ndim > 1:
        message = f"cumulative_sum and cumulative_prod of an array of {x.ndim} axes need axis=; numpy.cumsum and numpy.cumprod do not"
        raise ValueError(message)
    line, along = _line(plain_value(x) if integral(dtype) else x, axis or 0)
    scanned = scan(line, axis=along, dtype=dtype)
    if not include_initial:
        return scanned
    first = np.full((*line.shape[:along], 1, *line.shape[along + 1 :]), identity, scanned.dtype)
    return np.concatenate((first, scanned), along)


@composite(*available("cumulative_sum"))  # since NumPy 2.1
def cumulative_sum(x: Any, /, *, axis: int | None = None, dtype: Any = None, out: Any = None, include_initial: bool = False) -> Any:
    """numpy.cumulative_sum."""
    return _cumulative(cumsum, 0, x, axis, dtype, include_initial)


@composite(*available("cumulative_prod"))  # since NumPy 2.1
def cumulative_prod(x: Any, /, *, axis: int | None = None, dtype: Any = None, out: Any = None, include_initial: bool = False) -> Any:
    """numpy.cumulative_prod."""
    return _cumulative(cumprod, 1, x, axis, dtype, include_initial)


@composite(np.diff)
def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = ABSENT, append: Any = ABSENT) -> Any:
    """numpy.diff: neighbours subtracted, n times; slices of the array, so nothing is saved."""
    if n == 0:
        return a
    if n < 0:
        message = f"diff(n={n}): the order must not be negative"
        raise ValueError(message)
    middle = a if hasattr(a, "ndim") else np.asarray(a)
    along = normalize_axis_index(axis, middle.ndim)
    ends = [_edge(end, middle.shape, along) for end in (prepend, append)]
    joined = [*ends[0], middle, *ends[1]]
    line = np.concatenate(joined, along) if len(joined) > 1 else middle
    after, before = cut(middle.ndim, along, slice(1, None)), cut(middle.ndim, along, slice(-1))
    for _ in range(n):
        line = np.subtract(line[after], line[before])
    return line


def _edge(value: Any, shape: tuple[int, ...], axis: int) -> tuple[Any, ...]:
    """What diff joins on one side: nothing, an array, or a number repeated along the edge."""
    if value is ABSENT:
        return ()
    edge = value if hasattr(value, "ndim") else np.asarray(value)
    return (np.broadcast_to(edge, (*shape[:axis], 1, *shape[axis + 1 :])) if edge.ndim == 0 else edge,)


SCANS: tuple[Primitive | Composite, ...] = (
    cumsum, cumprod, np_cumsum, np_cumprod, add_accumulate, multiply_accumulate, *served(cumulative_sum, cumulative_prod), diff,
)  # fmt: skip
