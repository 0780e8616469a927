"""Scans: running sums and products (cumsum, cumprod and their kin), and differences of neighbours (diff)."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from pullback.primitives.shared.axes import BACKWARDS, Shape, as_loop_reads, cut
from pullback.primitives.shared.masked_arithmetic import silent, times
from pullback.primitives.shared.numpy_names import available, served
from pullback.primitives.shared.products_of_others import is_ordinary
from pullback.recording.handles import plain_value
from pullback.rules.declaration import Composite, Primitive, composite, primitive
from pullback.words.specs import ArraySpec
from pullback.words.undocumented import ABSENT


def _cumsum_rule(ct: Any, x_spec: ArraySpec, axis: int) -> Any:
    """Element i is in every sum from i on: the running sum from the other end."""
    backwards = cut(x_spec.ndim, axis, BACKWARDS)
    return np.add.accumulate(ct[backwards], axis)[backwards]


cumsum = primitive(
    lambda x, *, axis, dtype: np.add.accumulate(x, axis, dtype),
    name="scan_sum",
    reach="before",
    linear=("x",),
    vjps={"x": _cumsum_rule},
)


# The recurrence s[k] = b[k] + a[k] s[k + 1] along the first axis, from s[n - 1] = b[n - 1] on; ``a`` is one shorter
# than ``b``. No division, so zeros among ``a`` are no special case. Blocks of BLOCK elements run side by side, each
# from 0 on, with the products of their a's; what enters a block from behind is a recurrence over the blocks (the scan
# of G. E. Blelloch, Prefix sums and their applications, CMU-CS-90-190, 1990, in three sweeps).
BLOCK = 32


@silent
def _scanned(b: Any, a: Any) -> Any:
    """The recurrence. Where it gives a NaN, perhaps of infinities that a 0 hides, once more with products in which
    zeros win."""
    s = _recurrence(b, a, np.multiply)
    return _recurrence(b, a, times) if np.isnan(s).any() else s


def _recurrence(b: Any, a: Any, product: Callable[[Any, Any], Any]) -> Any:
    n, rest = len(b), b.shape[1:]
    if n <= BLOCK:
        s = np.array(b)
        for k in range(n - 2, -1, -1):
            s[k] += product(s[k + 1], a[k])
        return s
    blocks = -(-n // BLOCK)
    s, products = _in_blocks(b, blocks), _in_blocks(a, blocks)
    for k in range(BLOCK - 2, -1, -1):
        s[k] += product(s[k + 1], products[k])
        products[k] *= products[k + 1]
    behind = _recurrence(s[0, 1:], products[0, 1:-1], product)
    s[:, :-1] += product(np.broadcast_to(behind, s[:, :-1].shape), products[:, :-1])
    return s.swapaxes(0, 1).reshape(blocks * BLOCK, *rest)[:n]


def _in_blocks(line: Any, blocks: int) -> Any:
    """``line``, followed by zeros: element k of every block side by side in memory."""
    padded = np.zeros((blocks * BLOCK, *line.shape[1:]), line.dtype)
    padded[: len(line)] = line
    return np.ascontiguousarray(padded.reshape(blocks, BLOCK, *line.shape[1:]).swapaxes(0, 1))


recurrence: Primitive = primitive(_scanned, name="scan_recurrence", operands=("b", "a"))


@recurrence.vjp("b", "a")
def _recurrence_rule(ct: Any, a: Any, out: Any) -> Any:
    """The transposed recurrence runs the other way. The cotangent of a[k] is s[k + 1] times that of b[k]."""
    ct_b = recurrence(ct[::-1], a[::-1])[::-1]
    return ct_b, times(ct_b[:-1], out[1:])


def from_the_end(b: Any, a: Any, axis: int) -> Any:
    """:data:`recurrence` along ``axis``."""
    return np.moveaxis(recurrence(np.moveaxis(b, axis, 0), np.moveaxis(a, axis, 0)), 0, axis)


@silent
def _cumprod_rule(ct: Any, x: Any, x_spec: ArraySpec, axis: int) -> Any:
    """The sum over j >= i of ct[j] out[j], over x[i]; where that divides by 0, the product before i times the sum over
    j >= i of ct[j] and the product from i + 1 to j."""
    ndim, n = x_spec.ndim, x_spec.shape[axis]
    if n == 0:
        return ct
    out = np.multiply.accumulate(x, axis)
    if is_ordinary(out):
        backwards = cut(ndim, axis, BACKWARDS)
        return np.add.accumulate((ct * out)[backwards], axis)[backwards] / x
    later = from_the_end(ct, x[cut(ndim, axis, slice(1, None))], axis)
    one = np.ones((*x_spec.shape[:axis], 1, *x_spec.shape[axis + 1 :]), x_spec.dtype)
    before = np.concatenate((one, out[cut(ndim, axis, slice(-1))]), axis)
    return times(later, before)


cumprod = primitive(
    lambda x, *, axis, dtype: np.multiply.accumulate(x, axis, dtype),
    name="scan_prod",
    reach="before",
    vjps={"x": _cumprod_rule},
)


def _line(a: Any, axis: int | None) -> tuple[Any, int]:
    """The array to scan and its axis, not negative: all elements in C order where ``axis`` is None."""
    if axis is None:
        return a if a.ndim == 1 else np.ravel(a), 0
    line = np.reshape(a, (1,)) if a.ndim == 0 else a
    return line, normalize_axis_index(axis, line.ndim)


def _alone(axis: Any) -> Any:
    """The axis in a tuple of one, which ufuncs take; anything else as it is."""
    return axis[0] if isinstance(axis, tuple) and len(axis) == 1 else axis


def _functions(scan: Primitive, function: Any, ufunc: Any, newer_name: str) -> tuple[Primitive | Composite, ...]:
    """NumPy's names of a scan: ``np.cumsum``, ``np.add.accumulate``, and since NumPy 2.1 ``np.cumulative_sum``."""

    def cumulate(a: Any, axis: int | None = None, dtype: Any = None, out: Any = None) -> Any:
        line, along = _line(as_loop_reads(a, dtype), axis)
        return scan(line, axis=along, dtype=dtype)

    def accumulate(array: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
        return cumulate(array, normalize_axis_index(_alone(axis), array.ndim), dtype)

    def cumulative(
        x: Any, /, *, axis: int | None = None, dtype: Any = None, out: Any = None, include_initial: bool = False
    ) -> Any:
        if axis is None and x.ndim > 1:
            raise ValueError(f"{newer_name}: {x.ndim} axes need axis=; numpy.{function.__name__} goes without")
        line, along = _line(as_loop_reads(x, dtype), (axis if include_initial else _alone(axis)) or 0)
        result = scan(line, axis=along, dtype=dtype)
        if not include_initial:
            return result
        shape = (*line.shape[:along], 1, *line.shape[along + 1 :])
        return np.concatenate((np.full_like(plain_value(result), ufunc.identity, shape=shape), result), along)

    return (
        composite(function, name=function.__name__)(cumulate),
        composite(ufunc.accumulate, name=f"{ufunc.__name__}.accumulate")(accumulate),
        *served(composite(*available(newer_name), name=newer_name)(cumulative)),
    )


# The differences of neighbours and what undoes them are transposes of each other, so that each is the other's rule.
def _undiff(x: Any, *, shape: Shape, axis: int) -> Any:
    """Each element less the one behind it, as if zeros stood around them: the transpose of numpy.diff of an array of
    ``shape``."""
    if not x.shape[axis]:
        return np.zeros(shape, x.dtype)
    undone, ndim = np.empty(shape, x.dtype), len(shape)
    first, before, after, last = (
        cut(ndim, axis, part) for part in (slice(1), slice(-1), slice(1, None), slice(-1, None))
    )
    undone[first] = -x[first]  # not np.negative into a strided out=, which reads strided float64 wrongly (NumPy 2.4)
    np.subtract(x[before], x[after], out=undone[cut(ndim, axis, slice(1, -1))])
    undone[last] = x[last]
    return undone


undiff: Primitive = primitive(
    _undiff,
    name="undone_differences",
    linear=("x",),
    vjps={"x": lambda ct, axis: neighbours(ct, axis=axis)},
)
neighbours: Primitive = primitive(
    lambda x, *, axis: np.diff(x, axis=axis),
    name="difference_of_neighbours",
    linear=("x",),
    vjps={"x": lambda ct, x_spec, axis: undiff(ct, shape=x_spec.shape, axis=axis)},
)


@composite(np.diff)
def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = ABSENT, append: Any = ABSENT) -> Any:
    """numpy.diff: neighbours subtracted, n times."""
    if n == 0:
        return a
    if n < 0:
        raise ValueError(f"diff(n={n}): the order must not be negative")
    middle = a if hasattr(a, "ndim") else np.asarray(a)
    along = normalize_axis_index(axis, middle.ndim)
    ends = [_edge(end, middle.shape, along) for end in (prepend, append)]
    joined = [*ends[0], middle, *ends[1]]
    line = np.concatenate(joined, along) if len(joined) > 1 else middle
    for _ in range(n):
        line = neighbours(line, axis=along)
    return line


def _edge(value: Any, shape: tuple[int, ...], axis: int) -> tuple[Any, ...]:
    """What diff joins on one side: nothing, an array, or a number repeated along the edge."""
    if value is ABSENT:
        return ()
    edge = value if hasattr(value, "ndim") else np.asarray(value)
    return (np.broadcast_to(edge, (*shape[:axis], 1, *shape[axis + 1 :])) if edge.ndim == 0 else edge,)


SCANS: tuple[Primitive | Composite, ...] = (
    *(cumsum, *_functions(cumsum, np.cumsum, np.add, "cumulative_sum")),
    *(cumprod, *_functions(cumprod, np.cumprod, np.multiply, "cumulative_prod"), recurrence),
    *(neighbours, undiff, diff),
)
