"""Sums and means (sum, mean). A cotangent is spread back as a view with stride 0, and nothing is saved."""

from functools import lru_cache
from typing import Any

import numpy as np

from pullback.primitives.shared.axes import Axis, Shape, count, divided, extent, integral, keep, kept_shape
from pullback.recording.handles import plain_value
from pullback.rules.declaration import Composite, Primitive, composite, primitive
from pullback.rules.unbroadcast import MANY, sum_along
from pullback.words.specs import ArraySpec
from pullback.words.undocumented import ABSENT

ADD: Any = np.add.reduce


@lru_cache(maxsize=1024)
def _strides(shape: Shape, axis: Axis, itemsize: int) -> Shape:
    """Strides that show a dense array of the kept shape as one of ``shape``: 0 along every reduced axis."""
    strides, step = [], itemsize
    for n, extent_kept in zip(reversed(shape), reversed(kept_shape(shape, axis)), strict=True):
        strides.append(step if n == extent_kept else 0)
        step *= extent_kept
    return tuple(reversed(strides))


def spread(ct: Any, shape: Shape, axis: Axis) -> Any:
    """A reduced value seen at ``shape`` again: a read-only view with stride 0 along the reduced axes, whatever
    ``keepdims`` was.

    Dense plain values skip np.broadcast_to, which costs 2-3 us on any size; the constructor costs 0.2 us.
    """
    if (type(ct) is np.ndarray and ct.flags.c_contiguous) or isinstance(ct, np.generic):
        view: Any = np.ndarray(shape, ct.dtype, ct, 0, _strides(shape, axis, ct.itemsize))
        view.setflags(write=False)
        return view
    return np.broadcast_to(ct.reshape(kept_shape(shape, axis)), shape)


def masked_spread(ct: Any, x_spec: ArraySpec, axis: Axis, where: Any) -> Any:
    """``ct`` spread over the elements that took part, 0 over the others, even where ``ct`` is infinite."""
    return np.where(where, spread(ct, x_spec.shape, axis), 0)


def to_mean(ct: Any, where: Any, x_spec: ArraySpec, axis: Axis) -> Any:
    """Its share in the mean's cotangent to every element that took part."""
    share = keep(ct, x_spec.shape, axis) / np.maximum(count(where, x_spec, axis).real, 1)
    return masked_spread(share, x_spec, axis, where)


sum_ = primitive(
    lambda x, *, axis, dtype, keepdims: (
        ADD(x, axis, dtype, None, keepdims)
        if type(x) is not np.ndarray or x.size < MANY or type(axis) is not int or dtype is not None
        else sum_along(x, axis, keepdims)
    ),
    name="reduce_sum",
    reach="reduced",
    linear=("x",),
    vjps={"x": lambda ct, x_spec, axis: spread(ct, x_spec.shape, axis)},
)


sum_where = primitive(
    lambda x, initial, where, *, axis, dtype, keepdims: ADD(x, axis, dtype, None, keepdims, initial, where),
    name="reduce_sum_where",
    reach="reduced",
    nondiff=("where",),
    masks=True,
    vjps={"x": lambda ct, where, x_spec, axis: masked_spread(ct, x_spec, axis, where), "initial": lambda ct: ct},
)


mean = primitive(
    lambda x, *, axis, dtype, keepdims: np.mean(x, axis, dtype, keepdims=keepdims),
    name="reduce_mean",
    reach="reduced",
    linear=("x",),
    vjps={
        "x": lambda ct, x_spec, out_spec, axis: spread(divided(ct, extent(x_spec, out_spec) or 1), x_spec.shape, axis)
    },
)


mean_where = primitive(
    lambda x, where, *, axis, dtype, keepdims: np.mean(x, axis, dtype, keepdims=keepdims, where=where),
    name="reduce_mean_where",
    reach="reduced",
    nondiff=("where",),
    masks=True,
    vjps={"x": to_mean},
)


def reduce_by(
    plain: Primitive, general: Primitive, identity: float | None, a: Any, initial: Any, where: Any, **params: Any
) -> Any:
    """The plain primitive where the call has neither ``initial`` nor ``where``; otherwise the general one, which starts
    from the identity."""
    unmasked = where is True or where is ABSENT
    if params.get("dtype") is not None and integral(params["dtype"]):
        a = plain_value(a)
    if initial is ABSENT or initial is None:
        if unmasked:
            return plain(a, **params)
        if identity is None:
            raise ValueError(
                f"{plain.name} has no identity, so where= needs initial= as well: the value where no element is "
                "let through"
            )
        initial = identity
    return general(a, initial, True if unmasked else where, **params)


@composite(np.sum, name="sum", direct=sum_, how={"axis": None, "dtype": None, "keepdims": False})
def np_sum(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = ABSENT,
    where: Any = True,
) -> Any:
    """numpy.sum."""
    if where is True and initial is ABSENT and dtype is None:
        return sum_(a, axis=axis, dtype=None, keepdims=is_true(keepdims))
    return reduce_by(sum_, sum_where, 0, a, initial, where, axis=axis, dtype=dtype, keepdims=is_true(keepdims))


@composite(np.mean, name="mean", direct=mean, how=np_sum.how)
def np_mean(
    a: Any, axis: Axis = None, dtype: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True
) -> Any:
    """numpy.mean."""
    if where is True and dtype is None:
        return mean(a, axis=axis, dtype=None, keepdims=is_true(keepdims))
    params = {"axis": axis, "dtype": dtype, "keepdims": is_true(keepdims)}
    a = plain_value(a) if integral(dtype) else a
    return mean(a, **params) if where is True or where is ABSENT else mean_where(a, where, **params)


def is_true(keepdims: Any) -> bool:
    """The flag as a bool: what was not passed is False."""
    return keepdims is not ABSENT and bool(keepdims)


SUMS: tuple[Primitive | Composite, ...] = (sum_, sum_where, mean, mean_where, np_sum, np_mean)
