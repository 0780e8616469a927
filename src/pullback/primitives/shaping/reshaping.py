"""The same elements in another shape, order of axes or dtype: reshape, transpose, squeeze, flip, copy, astype.

All are linear and save nothing. Where NumPy gives a view, so do these (``view=True``). Whether a result is a view is
read off the result itself, since reshape may copy.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from pullback.primitives.shared.axes import BACKWARDS, integral
from pullback.recording.handles import plain_value
from pullback.rules.declaration import Composite, Primitive, composite, primitive
from pullback.words.call_sites import site_here, site_text
from pullback.words.errors import ConversionError

# ---------------------------------------------------------------------------------------------------------------- views
reshape = primitive(
    lambda x, *, shape, order: x.reshape(shape, order=order) if type(x) is np.ndarray else np.reshape(x, shape, order),
    name="view_reshape",
    view=True,
    linear=("x",),
    vjps={"x": lambda ct, x_spec, order: ct.reshape(x_spec.shape, order=order)},
)
transpose = primitive(
    lambda x, *, axes: x.transpose(axes) if type(x) is np.ndarray else np.transpose(x, axes),
    name="view_transpose",
    view=True,
    linear=("x",),
    vjps={"x": lambda ct, axes: ct.transpose(_inverse(axes))},
)
squeeze = primitive(
    lambda x, *, axis: np.squeeze(x, axis),
    name="view_squeeze",
    view=True,
    linear=("x",),
    vjps={"x": lambda ct, x_spec: ct.reshape(x_spec.shape)},
)
broadcast_to = primitive(
    lambda x, *, shape: np.broadcast_to(x, shape),
    name="view_broadcast",
    view=True,
    linear=("x",),
    vjps={"x": lambda ct: ct},
)


def _inverse(axes: tuple[int, ...]) -> tuple[int, ...]:
    """The permutation that undoes ``axes``; negative axes count from the end."""
    inverse = [0] * len(axes)
    for place, axis in enumerate(axes):
        inverse[axis % len(axes)] = place
    return tuple(inverse)


# --------------------------------------------------------------------------------------------------------------- copies
python_number = primitive(
    lambda x: x.item() if hasattr(x, "item") else x, name="python_number", linear=("x",), vjps={"x": lambda ct: ct}
)
copy = primitive(
    lambda x, *, order: np.array(x, order=order, copy=True), name="copy_array", linear=("x",), vjps={"x": lambda ct: ct}
)
lay_out = primitive(
    lambda x, *, strides: _laid_out(x, strides), name="lay_out", linear=("x",), vjps={"x": lambda ct: ct}
)
astype = primitive(
    lambda x, *, dtype, order, casting: (x if hasattr(x, "astype") else np.asarray(x)).astype(dtype, order, casting),
    name="cast",
    linear=("x",),
    vjps={"x": lambda ct: ct},
)


# ---------------------------------------------------------------------------------------------------- NumPy's functions
def arrays_of(values: Iterable[Any]) -> list[Any]:
    """The values as arrays: lists and numbers become arrays, handles and arrays stay as they are."""
    return [a if hasattr(type(a), "shape") or hasattr(a, "shape") else np.asarray(a) for a in values]


def need_axes(name: str, array: Any, least: int) -> None:
    """Raise ValueError for an array of fewer axes than ``least``."""
    if array.ndim < least:
        raise ValueError(f"{name} takes an array of at least {least} axes, not {array.ndim}")


def _memory_order(a: Any) -> tuple[int, ...]:
    """The axes from the largest stride to the smallest: the order of order='K'.

    NumPy's iterator sorts by insertion from the last axis, and an axis of stride 0 or length 1 stays beside its
    neighbour.
    """
    steps = [0 if n == 1 else abs(step) for n, step in zip(a.shape, a.strides, strict=True)]
    order: list[int] = []
    for axis in reversed(range(a.ndim)):
        place = len(order)
        for k in reversed(range(len(order))):
            if steps[axis] and steps[order[k]]:
                if steps[order[k]] <= steps[axis]:
                    break
                place = k
        order.insert(place, axis)
    return tuple(reversed(order))


def _laid_out(x: Any, strides: tuple[int, ...]) -> Any:
    """A copy of ``x`` that owns its memory, with these strides, which leave no gaps."""
    out = np.empty_like(np.lib.stride_tricks.as_strided(np.empty(0, x.dtype), x.shape, strides))
    out[...] = x
    return out


def laid_as(x: Any, plain: Any) -> Any:
    """``x`` copied, without gaps, its axes in memory in the order of those of ``plain``."""
    axes = _memory_order(plain)
    return np.transpose(np.copy(np.transpose(x, axes), order="C"), _inverse(axes))


def _is_dense(a: Any, axes: tuple[int, ...]) -> bool:
    """True when the elements of ``a`` lie in memory without gaps, the last one of ``axes`` varying fastest."""
    step = a.itemsize
    for axis in reversed(axes):
        if a.shape[axis] != 1 and a.strides[axis] != step:
            return False
        step *= a.shape[axis]
    return True


def _c_or_f(a: Any, order: str) -> str:
    """order='A' is F for an array that is dense in Fortran order and not in C order, else C; the others are
    themselves."""
    if order != "A":
        return order
    axes = tuple(range(a.ndim))
    return "F" if _is_dense(a, axes[::-1]) and not _is_dense(a, axes) else "C"


@composite(np.reshape, name="reshape")
def np_reshape(a: Any, /, shape: Any, order: str = "C", *, copy: bool | None = None) -> Any:
    """numpy.reshape."""
    sizes = (
        (shape,)
        if type(shape) is int
        else tuple(shape)
        if hasattr(shape, "__iter__") and getattr(shape, "shape", None) != ()
        else (shape,)
    )
    shaped = reshape(a, shape=sizes, order=order if order == "C" else _c_or_f(a, order))
    if copy is False and shaped.size and not np.may_share_memory(shaped, a):
        raise ValueError("Unable to avoid creating a copy while reshaping.")
    return np.copy(shaped) if copy else shaped


@composite(np.ravel, name="ravel")
def ravel(a: Any, order: str = "C") -> Any:
    """numpy.ravel. order='K' takes the axes in the order of their strides, as they lie in memory."""
    lined = np.transpose(a, _memory_order(a)) if order == "K" else a
    flat = reshape(lined, shape=(-1,), order="C" if order == "K" else _c_or_f(a, order))
    return flat if flat.flags.c_contiguous else np.copy(flat)  # reshape would leave a strided line a view


@composite(np.transpose, name="transpose")
def np_transpose(a: Any, axes: Any = None) -> Any:
    """numpy.transpose and numpy.permute_dims."""
    return transpose(a, axes=tuple(range(a.ndim))[::-1] if axes is None else tuple(axes))


@composite(np.matrix_transpose, np.linalg.matrix_transpose)
def matrix_transpose(x: Any, /) -> Any:
    """numpy.matrix_transpose."""
    need_axes("matrix_transpose", x, 2)
    return np.swapaxes(x, -1, -2)


@composite(np.swapaxes)
def swapaxes(a: Any, axis1: int, axis2: int) -> Any:
    """numpy.swapaxes."""
    first, second = normalize_axis_index(axis1, a.ndim), normalize_axis_index(axis2, a.ndim)
    axes = list(range(a.ndim))
    axes[first], axes[second] = second, first
    return transpose(a, axes=tuple(axes))


@composite(np.moveaxis)
def moveaxis(a: Any, source: Any, destination: Any) -> Any:
    """numpy.moveaxis."""
    origins = normalize_axis_tuple(source, a.ndim, "source")
    targets = normalize_axis_tuple(destination, a.ndim, "destination")
    if len(origins) != len(targets):
        raise ValueError(f"moveaxis needs as many destinations as sources: {source} to {destination}")
    axes = [k for k in range(a.ndim) if k not in origins]
    for target, origin in sorted(zip(targets, origins, strict=True)):
        axes.insert(target, origin)
    return transpose(a, axes=tuple(axes))


@composite(np.rollaxis)
def rollaxis(a: Any, axis: int, start: int = 0) -> Any:
    """numpy.rollaxis: ``axis`` moved to stand before the axis ``start``."""
    origin = normalize_axis_index(axis, a.ndim)
    before = normalize_axis_index(start, a.ndim + 1) if start >= 0 else start + a.ndim
    if not 0 <= before <= a.ndim:
        raise np.exceptions.AxisError(start, a.ndim, "start")
    return np.moveaxis(a, origin, before - (origin < before))


@composite(np.expand_dims)
def expand_dims(a: Any, axis: Any) -> Any:
    """numpy.expand_dims."""
    places = axis if isinstance(axis, tuple | list) else (axis,)
    ndim = a.ndim + len(places)
    new = normalize_axis_tuple(places, ndim)
    extents = iter(a.shape)
    return reshape(a, shape=tuple(1 if k in new else next(extents) for k in range(ndim)), order="C")


@composite(np.squeeze, name="squeeze")
def np_squeeze(a: Any, axis: Any = None) -> Any:
    """numpy.squeeze; with nothing to squeeze, the array itself."""
    return a if axis is None and np.ndim(a) and 1 not in a.shape else squeeze(a, axis=axis)


@composite(np.broadcast_to, name="broadcast_to")
def np_broadcast_to(array: Any, shape: Any, subok: bool = False) -> Any:
    """numpy.broadcast_to."""
    return broadcast_to(array, shape=tuple(shape) if hasattr(shape, "__iter__") else (shape,))


@composite(np.broadcast_arrays)
def broadcast_arrays(*args: Any, subok: bool = False) -> tuple[Any, ...]:
    """numpy.broadcast_arrays."""
    arrays = arrays_of(args)
    shape = np.broadcast_shapes(*(a.shape for a in arrays))
    return tuple(a if a.shape == shape else np.broadcast_to(a, shape) for a in arrays)


@composite(np.flip)
def flip(m: Any, axis: Any = None) -> Any:
    """numpy.flip: a view by slices with step -1."""
    axes = range(m.ndim) if axis is None else normalize_axis_tuple(axis, m.ndim)
    return m[tuple(BACKWARDS if k in axes else slice(None) for k in range(m.ndim))]


@composite(np.flipud)
def flipud(m: Any) -> Any:
    """numpy.flipud."""
    need_axes("flipud", m, 1)
    return m[BACKWARDS]


@composite(np.fliplr)
def fliplr(m: Any) -> Any:
    """numpy.fliplr."""
    need_axes("fliplr", m, 2)
    return m[:, BACKWARDS]


@composite(np.rot90)
def rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Any:
    """numpy.rot90: ``k`` quarter turns from the first of ``axes`` towards the second."""
    first, second = normalize_axis_tuple(axes, m.ndim, "axes")
    turned = m[...] if k % 2 == 0 else np.swapaxes(m, first, second)
    flipped = {0: (), 1: (first,), 2: (first, second), 3: (second,)}[k % 4]
    return np.flip(turned, flipped) if flipped else turned


@composite(np.astype, name="astype")
def np_astype(
    x: Any,
    dtype: Any,
    /,
    order: str = "K",
    casting: str = "unsafe",
    subok: bool = True,
    copy: bool = True,
    *,
    device: Any = None,
) -> Any:
    """numpy.astype, and the arguments of the method of that name."""
    if device not in (None, "cpu"):
        raise ValueError(f'Device not understood. Only "cpu" is allowed, but received: {device}')
    if not copy and np.dtype(dtype) == x.dtype:
        return x
    if np.dtype(dtype).hasobject:
        raise ConversionError(
            f"an array of objects made of a tracer would drop the derivative (at {site_text(site_here())}); use a "
            "floating dtype"
        )
    return astype(plain_value(x) if integral(dtype) else x, dtype=np.dtype(dtype), order=order, casting=casting)


@composite(np.copy, name="copy")
def np_copy(a: Any, order: str = "K", subok: bool = False) -> Any:
    """numpy.copy."""
    return copy(a, order=order)


@composite(np.atleast_1d)
def atleast_1d(*arys: Any) -> Any:
    """numpy.atleast_1d."""
    return _each(arys, lambda a: np.reshape(a, (1,)) if a.ndim == 0 else a)


@composite(np.atleast_2d)
def atleast_2d(*arys: Any) -> Any:
    """numpy.atleast_2d."""
    return _each(arys, lambda a: np.reshape(a, (1,) * (2 - a.ndim) + a.shape) if a.ndim < 2 else a)


@composite(np.atleast_3d)
def atleast_3d(*arys: Any) -> Any:
    """numpy.atleast_3d: a line becomes (1, n, 1), a matrix (m, n, 1), what has three axes or more is handed on
    itself."""
    return _each(arys, lambda a: np.reshape(a, ((1, 1), (1,), ())[a.ndim] + a.shape + (1,)) if a.ndim < 3 else a)


def _each(arrays: tuple[Any, ...], function: Any) -> Any:
    """``function`` of every array; a single result stands alone."""
    results = tuple(map(function, arrays_of(arrays)))
    return results[0] if len(results) == 1 else results


SHAPING: tuple[Primitive | Composite, ...] = (
    reshape, transpose, squeeze, broadcast_to, copy, astype,
    np_reshape, ravel, np_transpose, matrix_transpose, swapaxes, moveaxis, rollaxis, expand_dims, np_squeeze,
    np_broadcast_to,
    broadcast_arrays, flip, flipud, fliplr, rot90, np_astype, np_copy, atleast_1d,
    atleast_2d, atleast_3d,
)  # fmt: skip
