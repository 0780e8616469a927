"""Reductions: prod, max, min, logaddexp.

A primitive ``f`` reduces all elements; ``f_where`` also takes ``initial`` and ``where`` as operands, and nothing of the
masked elements is read. A cotangent is spread back as a view with stride 0
(:func:`pullback.primitives.shared.axes.spread`).
"""

from typing import Any

import numpy as np

from pullback.primitives.reducing.sums import (
    ABSENT,
    ADD,
    cast_to,
    is_true,
    reduce_by,
)
from pullback.primitives.shared.axes import Axis, keep
from pullback.primitives.shared.factors import is_ordinary, loses_nothing, products_of_others
from pullback.primitives.shared.picking import put
from pullback.rules.declaration import Composite, Primitive, composite, primitive
from pullback.words.specs import ArraySpec

MULTIPLY: Any = np.multiply.reduce


# --------------------------------------------------------------------------------------------------------- sum and mean


# ---------------------------------------------------------------------------------------------------------- var and std


# -------------------------------------------------------------------------------------------------------------- product
def _prod_rule(ct: Any, x: Any, out: Any, x_spec: ArraySpec, axis: Axis) -> Any:
    if is_ordinary(out) and loses_nothing(x, axis):
        return keep(ct * out, x_spec.shape, axis) / x
    return _others(ct, x, x_spec, axis)


def _others(ct: Any, x: Any, x_spec: ArraySpec, axis: Axis) -> Any:
    return keep(ct, x_spec.shape, axis) * products_of_others(x, axis) if x_spec.size else np.ones_like(x)


prod = primitive(
    lambda x, *, axis, dtype, keepdims: MULTIPLY(x, axis, dtype, None, keepdims),
    name="reduce_prod",
    reach="reduced",
    vjps={"x": _prod_rule},
)
prod_where = primitive(
    lambda x, initial, where, *, axis, dtype, keepdims: MULTIPLY(x, axis, dtype, None, keepdims, initial, where),
    name="reduce_prod_where",
    reach="reduced",
    nondiff=("where",),
    masks=True,
    vjps={
        "x": lambda ct, x, initial, where, x_spec, axis: np.where(
            where, _others(ct * initial, np.where(where, x, 1), x_spec, axis), 0
        ),
        "initial": lambda ct, x, where, axis, keepdims: ct * MULTIPLY(np.where(where, x, 1), axis, keepdims=keepdims),
    },
)


# -------------------------------------------------------------------------------------------------- maximum and minimum
# Ties share the cotangent equally. A NaN wins against everything, so it is what the cotangent goes to.
MANY_PLACES = 0.1  # from that part of all elements on, a pass over a mask is sooner done than the writing to places


def _hit(value: Any, out: Any) -> Any:
    return (value == out) | (value != value)  # noqa: PLR0124 - only a NaN differs from itself


def _shared(ct: Any, x: Any, out: Any, x_spec: ArraySpec, axis: Axis) -> Any:
    if not x_spec.shape:
        return ct
    hit, share = x == keep(out, x_spec.shape, axis), keep(ct, x_spec.shape, axis)
    if np.any(out != out):  # noqa: PLR0124 - only a NaN differs from itself
        hit |= x != x  # noqa: PLR0124
    places = np.flatnonzero(hit)
    if places.size != out.size:
        share = share / ADD(hit, axis, out.dtype, keepdims=True)
    if places.size > MANY_PLACES * x_spec.size:
        return np.where(hit, share, 0)
    share = np.broadcast_to(share, x_spec.shape)[np.unravel_index(places, x_spec.shape)]
    return put(share, places, shape=x_spec.shape, distinct=True)


def _shared_where(ct: Any, x: Any, initial: Any, where: Any, out: Any, x_spec: ArraySpec, axis: Axis) -> Any:
    top = keep(out, x_spec.shape, axis)
    hit = _hit(x, top) & where
    winners = ADD(hit, axis, out.dtype, keepdims=True) + _hit(initial, top)
    return np.where(hit, keep(ct, x_spec.shape, axis) / np.maximum(winners, 1), 0)


def _shared_initial(ct: Any, x: Any, initial: Any, where: Any, out: Any, x_spec: ArraySpec, axis: Axis) -> Any:
    top = keep(out, x_spec.shape, axis)
    first = _hit(initial, top)
    winners = ADD(_hit(x, top) & where, axis, out.dtype, keepdims=True) + first
    return np.where(first, keep(ct, x_spec.shape, axis) / np.maximum(winners, 1), 0)


def _extremum(name: str, ufunc: Any) -> tuple[Primitive, Primitive]:
    """The two primitives of one of maximum and minimum."""
    plain = primitive(
        lambda x, *, axis, keepdims: ufunc.reduce(x, axis, None, None, keepdims),
        name=f"reduce_{name}",
        reach="reduced",
        masks=True,
        vjps={"x": _shared},
    )
    where = primitive(
        lambda x, initial, where, *, axis, keepdims: ufunc.reduce(x, axis, None, None, keepdims, initial, where),
        name=f"reduce_{name}_where",
        reach="reduced",
        nondiff=("where",),
        masks=True,
        vjps={"x": _shared_where, "initial": _shared_initial},
    )
    return plain, where


max_, max_where = _extremum("max", np.maximum)
min_, min_where = _extremum("min", np.minimum)


# ------------------------------------------------------------------------------------------------------------ logaddexp
def _infinite(value: Any) -> Any:
    return (value == np.inf) | (value == -np.inf)


def softmax(ct: Any, x: Any, out: Any, x_spec: ArraySpec, axis: Axis, exp: Any) -> Any:
    """``ct`` exp(x - out); where ``out`` is infinite, the elements equal to it share."""
    top = keep(out, x_spec.shape, axis)
    unsure = _infinite(top)
    hit = (x == top) & unsure
    winners = np.maximum(ADD(hit, axis, out.dtype, keepdims=True), 1)
    weight = exp(np.where(unsure, -np.inf, x - np.where(unsure, 0, top)))
    return keep(ct, x_spec.shape, axis) * np.where(hit, 1 / winners, weight)


logaddexp_reduce = primitive(
    lambda x, *, axis, dtype, keepdims: np.logaddexp.reduce(x, axis, dtype, keepdims=keepdims),
    name="reduce_logaddexp",
    reach="reduced",
    vjps={"x": lambda ct, x, out, x_spec, axis: softmax(ct, x, out, x_spec, axis, np.exp)},
)
logaddexp_where = primitive(
    lambda x, initial, where, *, axis, dtype, keepdims: np.logaddexp.reduce(
        x, axis, dtype, keepdims=keepdims, initial=initial, where=where
    ),
    name="reduce_logaddexp_where",
    reach="reduced",
    nondiff=("where",),
    masks=True,
    vjps={
        "x": lambda ct, x, where, out, x_spec, axis: np.where(
            where, softmax(ct, np.where(where, x, -np.inf), out, x_spec, axis, np.exp), 0
        ),
        "initial": lambda ct, initial, out: (
            ct * np.exp(np.where(initial == out, 0, initial - np.where(_infinite(out), 0, out)))
        ),
    },
)


# ------------------------------------------------------------------------- NumPy's functions, methods and ufunc methods


@composite(np.prod, name="prod")
def np_prod(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = ABSENT,
    where: Any = True,
) -> Any:
    """numpy.prod."""
    return reduce_by(prod, prod_where, 1, a, initial, where, axis=axis, dtype=dtype, keepdims=is_true(keepdims))


@composite(np.max, np.amax, name="max")
def np_max(
    a: Any, axis: Axis = None, out: Any = None, keepdims: Any = False, initial: Any = ABSENT, where: Any = True
) -> Any:
    """numpy.max and numpy.amax."""
    return reduce_by(max_, max_where, None, a, initial, where, axis=axis, keepdims=is_true(keepdims))


@composite(np.min, np.amin, name="min")
def np_min(
    a: Any, axis: Axis = None, out: Any = None, keepdims: Any = False, initial: Any = ABSENT, where: Any = True
) -> Any:
    """numpy.min and numpy.amin."""
    return reduce_by(min_, min_where, None, a, initial, where, axis=axis, keepdims=is_true(keepdims))


@composite(np.multiply.reduce, name="multiply.reduce")
def multiply_reduce(
    array: Any,
    axis: Axis = 0,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = ABSENT,
    where: Any = True,
) -> Any:
    """numpy.multiply.reduce."""
    return reduce_by(prod, prod_where, 1, array, initial, where, axis=axis, dtype=dtype, keepdims=keepdims)


@composite(np.maximum.reduce, name="maximum.reduce")
def maximum_reduce(
    array: Any,
    axis: Axis = 0,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = ABSENT,
    where: Any = True,
) -> Any:
    """numpy.maximum.reduce."""
    return reduce_by(max_, max_where, None, cast_to(array, dtype), initial, where, axis=axis, keepdims=keepdims)


@composite(np.minimum.reduce, name="minimum.reduce")
def minimum_reduce(
    array: Any,
    axis: Axis = 0,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = ABSENT,
    where: Any = True,
) -> Any:
    """numpy.minimum.reduce."""
    return reduce_by(min_, min_where, None, cast_to(array, dtype), initial, where, axis=axis, keepdims=keepdims)


@composite(np.logaddexp.reduce, name="logaddexp.reduce")
def np_logaddexp_reduce(
    array: Any,
    axis: Axis = 0,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = ABSENT,
    where: Any = True,
) -> Any:
    """numpy.logaddexp.reduce: log(sum(exp(x)))."""
    return reduce_by(
        logaddexp_reduce, logaddexp_where, -np.inf, array, initial, where, axis=axis, dtype=dtype, keepdims=keepdims
    )


EXTREMA_AND_PRODUCTS: tuple[Primitive | Composite, ...] = (
    prod, prod_where, max_, max_where, min_, min_where, logaddexp_reduce, logaddexp_where,
    np_prod, np_max, np_min, multiply_reduce, maximum_reduce, minimum_reduce, np_logaddexp_reduce,
)  # fmt: skip
