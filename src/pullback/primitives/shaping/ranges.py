"""Ranges with differentiable ends, grids, and the powers of a line: linspace, logspace, geomspace, meshgrid, vander."""

from typing import Any

import numpy as np

from pullback.primitives.shaping.as_array import as_array
from pullback.primitives.shaping.nested_lists import as_operand
from pullback.primitives.shared.axes import integral
from pullback.primitives.shared.masked_arithmetic import over, silent, times
from pullback.recording.handles import plain_value
from pullback.rules.declaration import Composite, Primitive, composite, primitive
from pullback.words.specs import ArraySpec


# --------------------------------------------------------------------------------------------------- from start to stop
def _share(ct: Any, num: int, endpoint: bool, axis: int) -> Any:
    """How far each element is on the way from start to stop: 0 for the first, 1 for stop itself; beside ``ct`` along
    ``axis``."""
    steps = num - 1 if endpoint else num
    way = np.arange(num, dtype=np.result_type(ct.real.dtype, np.float64)) / max(steps, 1)
    return way.reshape((num,) + (1,) * (len(ct.shape) - 1 - axis % len(ct.shape)))


def _to_start(ct: Any, num: int, endpoint: bool, axis: int) -> Any:
    return np.add.reduce(ct * (1 - _share(ct, num, endpoint, axis)), axis)


def _to_stop(ct: Any, num: int, endpoint: bool, axis: int) -> Any:
    return np.add.reduce(ct * _share(ct, num, endpoint, axis), axis)


linspace = primitive(
    lambda start, stop, *, num, endpoint, dtype, axis: np.linspace(start, stop, num, endpoint, False, dtype, axis),
    name="linear_range",
    linear=("start", "stop"),
)


@linspace.vjp("start", "stop")  # type: ignore[untyped-decorator]
def _to_ends(ct: Any, num: int, endpoint: bool, axis: int) -> tuple[Any, Any]:
    to_stop = _to_stop(ct, num, endpoint, axis)
    return np.add.reduce(ct, axis) - to_stop, to_stop


# Element k is start**(1 - t) stop**t, on NumPy's branch where they are complex: its slopes are (1 - t) out / start and
# t out / stop.
geomspace = primitive(
    lambda start, stop, *, num, endpoint, dtype, axis: np.geomspace(start, stop, num, endpoint, dtype, axis),
    name="geometric_range",
    vjps={
        "start": lambda ct, start, out, num, endpoint, axis: over(_to_start(ct * out, num, endpoint, axis), start),
        "stop": lambda ct, stop, out, num, endpoint, axis: over(_to_stop(ct * out, num, endpoint, axis), stop),
    },
)


@composite(np.linspace, name="linspace")
def np_linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    **_device: Any,
) -> Any:
    """numpy.linspace; the step of ``retstep`` is traced, too, even where ``dtype`` makes the range one of integers."""
    start, stop = as_operand(start), as_operand(stop)
    ends = map(plain_value, (start, stop)) if integral(dtype) else (start, stop)
    line = linspace(*ends, num=num, endpoint=endpoint, dtype=dtype, axis=axis)
    if not retstep:
        return line
    steps = num - 1 if endpoint else num
    return line, np.subtract(stop, start) / steps if steps > 0 else np.nan


@composite(np.logspace)
def logspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None, axis: int = 0
) -> Any:
    """numpy.logspace: powers of ``base``, which may be traced and an array."""
    start, stop, base = as_operand(start), as_operand(stop), as_operand(base)
    if not isinstance(base, float | int) and np.ndim(base):
        start, stop, base = (as_array(end) for end in (start, stop, base))
        ndim = max(end.ndim for end in (start, stop, base))
        start, stop, base = (end.reshape((1,) * (ndim - end.ndim) + end.shape) for end in (start, stop, base))
        base = np.expand_dims(base, axis)
    powers = np.power(base, np.linspace(start, stop, num, endpoint, axis=axis))
    return powers if dtype is None else powers.astype(dtype, copy=False)


@composite(np.geomspace, name="geomspace")
def np_geomspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> Any:
    """numpy.geomspace."""
    ends = as_operand(start), as_operand(stop)
    return geomspace(
        *(map(plain_value, ends) if integral(dtype) else ends), num=num, endpoint=endpoint, dtype=dtype, axis=axis
    )


# ----------------------------------------------------------------------------------------------------- grids and powers
_VIEWS: Any = type(np.meshgrid([0], sparse=True, copy=False))
"""A list before NumPy 2.5, a tuple since."""


@composite(np.meshgrid)
def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    """numpy.meshgrid; with ``copy=False`` views of the lines."""
    if indexing not in {"xy", "ij"}:
        raise ValueError(f"np.meshgrid(indexing={indexing!r}): it must be 'xy' or 'ij'")
    ndim = len(xi)
    places = [1, 0, *range(2, ndim)] if indexing == "xy" and ndim > 1 else range(ndim)
    lines = [as_array(x).reshape((1,) * k + (-1,) + (1,) * (ndim - 1 - k)) for k, x in zip(places, xi, strict=True)]
    grids = _VIEWS(lines) if sparse else np.broadcast_arrays(*lines, subok=True)
    return tuple(np.copy(grid) for grid in grids) if copy else grids


@silent
def _powers_rule(ct: Any, x: Any, x_spec: ArraySpec, increasing: bool) -> Any:
    """The slope of the power k is k times the power k - 1."""
    terms = ct.shape[1]
    if terms < 2:
        return np.zeros_like(x)
    if increasing:
        return np.sum(times(ct[:, 1:] * np.arange(1, terms), np.vander(x, terms - 1, increasing=True)), axis=1)
    return np.sum(times(ct[:, :-1] * np.arange(terms - 1, 0, -1), np.vander(x, terms - 1)), axis=1)


powers = primitive(
    lambda x, *, terms, increasing: np.vander(x, terms, increasing),
    name="powers_of_line",
    vjps={"x": _powers_rule},
)


@composite(np.vander)
def vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:
    """numpy.vander."""
    return powers(x, terms=N, increasing=increasing)


RANGES: tuple[Primitive | Composite, ...] = (
    *(linspace, geomspace, np_linspace, logspace, np_geomspace, meshgrid),
    *(powers, vander),
)
