"""Joining and splitting. Of the cotangent of a joined array each operand gets a slice, which is a view. Splits are
slices, too, and views as NumPy's are."""

from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from pullback.primitives.shaping.as_array import as_array, promoting
from pullback.primitives.shaping.reshaping import arrays_of, need_axes
from pullback.primitives.shared.axes import Shape, cut
from pullback.primitives.shared.numpy_names import available, served
from pullback.rules.declaration import Composite, Primitive, composite, primitive


def _concatenate(*arrays: Any, axis: int, starts: Shape, dtype: Any, casting: str) -> Any:
    """The arrays behind each other.

    ``starts`` holds where each begins along ``axis``, and the end. The rule of an operand then looks at no other
    operand: n of them cost O(n), not O(n^2).
    """
    return np.concatenate(arrays, axis, dtype=dtype, casting=casting)  # type: ignore[call-overload]


concatenate = primitive(
    _concatenate,
    name="join_concatenate",
    reach="moved",
    linear=("arrays",),
    vjps={
        "arrays": lambda ct, index, axis, starts: ct[cut(len(ct.shape), axis, slice(starts[index], starts[index + 1]))]
    },
)
stack = primitive(
    lambda *arrays, axis, dtype, casting: np.stack(arrays, axis, dtype=dtype, casting=casting),
    name="join_stack",
    reach="moved",
    linear=("arrays",),
    vjps={"arrays": lambda ct, index, axis: ct[cut(len(ct.shape), axis, index)]},
)


@composite(np.concatenate, name="concatenate")
def np_concatenate(
    arrays: Any, /, axis: int | None = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind"
) -> Any:
    """numpy.concatenate and numpy.concat."""
    parts = arrays_of(arrays)
    if axis is None:  # only then may Python numbers be among the operands, and they take the dtype of the others
        if dtype is None and any(np.ndim(a) == 0 for a in parts):
            dtype = np.result_type(*map(promoting, arrays))
        parts, axis = [np.ravel(a) for a in parts], 0
    shapes = [part.shape for part in parts]
    ndim = len(shapes[0])
    if not ndim:
        raise ValueError("zero-dimensional arrays cannot be concatenated; join scalars with np.stack([...])")
    along = normalize_axis_index(axis, ndim)
    for place, shape in enumerate(shapes):
        if len(shape) != ndim:
            raise ValueError(
                f"arrays to concatenate have {ndim} axes at place 0 and {len(shape)} at place {place}; "
                "reshape one of them"
            )
    starts = (0, *accumulate([shape[along] for shape in shapes]))
    return concatenate(*parts, axis=along, starts=starts, dtype=dtype, casting=casting)


@composite(np.stack, name="stack")
def np_stack(arrays: Any, axis: int = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    """numpy.stack."""
    parts = arrays_of(arrays)
    return stack(*parts, axis=normalize_axis_index(axis, parts[0].ndim + 1), dtype=dtype, casting=casting)


def _at_least(parts: Any, ndim: int) -> list[Any]:
    """The arrays with axes of length 1 put in front, up to ``ndim``."""
    return [np.reshape(a, (1,) * (ndim - a.ndim) + a.shape) if a.ndim < ndim else a for a in arrays_of(parts)]


@composite(np.vstack)
def vstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    """numpy.vstack."""
    return np_concatenate(_at_least(tup, 2), 0, dtype=dtype, casting=casting)


@composite(np.hstack)
def hstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    """numpy.hstack."""
    parts = _at_least(tup, 1)
    return np_concatenate(parts, 0 if parts[0].ndim == 1 else 1, dtype=dtype, casting=casting)


@composite(np.dstack)
def dstack(tup: Any) -> Any:
    """numpy.dstack."""
    return np.concatenate([np.atleast_3d(a) for a in arrays_of(tup)], 2)


@composite(np.column_stack)
def column_stack(tup: Any) -> Any:
    """numpy.column_stack: a line becomes a column."""
    return np.concatenate([np.reshape(a, (-1, 1)) if a.ndim < 2 else a for a in arrays_of(tup)], 1)


@composite(np.append)
def append(arr: Any, values: Any, axis: int | None = None) -> Any:
    """numpy.append."""
    return np.concatenate((as_array(arr), as_array(values)), axis=axis)


@composite(np.block)
def block(arrays: Any) -> Any:
    """numpy.block: lists joined along the last axis, lists of these along the one before, and so on outwards."""
    depth = _depth(arrays)
    ndim = max([depth, *(leaf.ndim for leaf in arrays_of(_leaves(arrays)))])
    joined = _block(arrays, ndim, depth)
    return np.copy(joined) if depth == 0 else joined


def _depth(arrays: Any) -> int:
    """How deep the lists are nested; raises ValueError where two places differ, or a list is empty."""
    if isinstance(arrays, tuple):
        raise TypeError("block takes nested lists, and found a tuple: write it as a list")
    if not isinstance(arrays, list):
        return 0
    depths = {_depth(part) for part in arrays}
    if len(depths) != 1:
        what = f"the lists of block are nested to the depths {sorted(depths)}" if depths else "an empty list in block"
        raise ValueError(f"{what}; nest all to the same depth, each with at least one array")
    return 1 + depths.pop()


def _leaves(arrays: Any) -> list[Any]:
    return [leaf for part in arrays for leaf in _leaves(part)] if isinstance(arrays, list) else [arrays]


def _block(arrays: Any, ndim: int, depth: int) -> Any:
    if depth == 0:
        return _at_least((arrays,), ndim)[0]
    return np.concatenate([_block(part, ndim, depth - 1) for part in arrays], ndim - depth)


# ------------------------------------------------------------------------------------------------------------ splitting
def _sections(length: int, sections: Any) -> tuple[Any, ...]:
    """Where the parts begin and end: at the places given, or as evenly as may be, the longer ones first."""
    if np.ndim(sections):
        return (0, *(int(k) for k in sections), length)
    if sections <= 0:
        raise ValueError(f"a split into {sections} parts: the number of parts must be at least 1")
    each, longer = divmod(length, int(sections))
    return (0, *accumulate(each + (k < longer) for k in range(int(sections))))


@composite(np.array_split)
def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """numpy.array_split: views."""
    along = normalize_axis_index(axis, ary.ndim)
    ends = _sections(ary.shape[along], indices_or_sections)
    return [ary[cut(ary.ndim, along, slice(start, stop))] for start, stop in pairwise(ends)]


@composite(np.split)
def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """numpy.split: views of equal length, or between the given places."""
    if np.ndim(indices_or_sections) == 0 and ary.shape[axis] % indices_or_sections:
        raise ValueError(
            f"{ary.shape[axis]} elements do not split into {indices_or_sections} equal parts; use numpy.array_split"
        )
    return np.array_split(ary, indices_or_sections, axis)


def _split_along(function: Any, axis: int, least: int) -> Composite:
    """np.hsplit, np.vsplit or np.dsplit: a split along ``axis`` of an array of at least ``least`` axes."""

    def split_along(ary: Any, indices_or_sections: Any) -> list[Any]:
        need_axes(function.__name__, ary, least)
        return np.split(ary, indices_or_sections, axis if ary.ndim > 1 else 0)

    return composite(function, name=function.__name__)(split_along)


@composite(*available("unstack"))  # since NumPy 2.1
def unstack(x: Any, /, *, axis: int = 0) -> tuple[Any, ...]:
    """numpy.unstack: views."""
    need_axes("unstack", x, 1)
    along = normalize_axis_index(axis, x.ndim)
    return tuple(x[cut(x.ndim, along, k)] for k in range(x.shape[along]))


JOINING: tuple[Primitive | Composite, ...] = (
    concatenate, stack, np_concatenate, np_stack, vstack, hstack, dstack, column_stack, append, block,
    array_split, split, _split_along(np.hsplit, 1, 1), _split_along(np.vsplit, 0, 2), _split_along(np.dsplit, 2, 3),
    *served(unstack),
)  # fmt: skip
