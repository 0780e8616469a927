"""Reductions: sum, mean, var, std, prod, max, min, logaddexp.

A primitive ``f`` reduces all elements; ``f_where`` also takes ``initial`` and ``where`` as operands, and nothing of the masked
elements is read. A cotangent is spread back as a view with stride 0 (:func:`pullback.primitives.axes.spread`).
"""

from typing import Any

import numpy as np

from pullback.arrays import ArraySpec
from pullback.declare import Composite, Primitive, composite, primitive
from pullback.handles import plain_value
from pullback.primitives.axes import Axis, count, extent, integral, keep, spread
from pullback.primitives.factors import is_ordinary, loses_nothing, products_of_others
from pullback.primitives.picking import put

ABSENT: Any = np._NoValue  # noqa: SLF001 - the default in NumPy's own signatures; it differs from None for initial=
ADD: Any = np.add.reduce
MULTIPLY: Any = np.multiply.reduce


def masked_spread(ct: Any, x_spec: ArraySpec, axis: Axis, where: Any) -> Any:
    """``ct`` spread over the elements that took part, 0 over the others, even where ``ct`` is infinite."""
    return np.where(where, spread(ct, x_spec.shape, axis), 0)


# ----------------------------------------------------------------------------------------------------------- sum and mean
sum_ = primitive(
    lambda x, *, axis, dtype, keepdims: ADD(x, axis, dtype, None, keepdims),
    name="reduce_sum",
    linear=("x",),
    vjps={"x": lambda ct, x_spec, axis: spread(ct, x_spec.shape, axis)},
)
sum_where = primitive(
    lambda x, initial, where, *, axis, dtype, keepdims: ADD(x, axis, dtype, None, keepdims, initial, where),
    name="reduce_sum_where",
    nondiff=("where",),
    masks=True,
    vjps={"x": lambda ct, where, x_spec, axis: masked_spread(ct, x_spec, axis, where), "initial": lambda ct: ct},
)
mean = primitive(
    lambda x, *, axis, dtype, keepdims: np.mean(x, axis, dtype, keepdims=keepdims),
    name="reduce_mean",
    linear=("x",),
    vjps={"x": lambda ct, x_spec, out_spec, axis: spread(ct / (extent(x_spec, out_spec) or 1), x_spec.shape, axis)},
)
mean_where = primitive(
    lambda x, where, *, axis, dtype, keepdims: np.mean(x, axis, dtype, keepdims=keepdims, where=where),
    name="reduce_mean_where",
    nondiff=("where",),
    masks=True,
    vjps={
        "x": lambda ct, where, x_spec, axis: masked_spread(
            keep(ct, x_spec.shape, axis) / np.maximum(count(where, x_spec, axis).real, 1), x_spec, axis, where
        )
    },
)


# -------------------------------------------------------------------------------------------------------- var and std
# var = sum |x - m|^2 / (n - ddof) with m the mean: d var = 2 Re(conj(x - m) dx) / (n - ddof), because sum(x - m) = 0.
# std = sqrt(var): ct / (2 std) in the place of ct, and 0 where std = 0 (a minimum, so 0 is a subgradient).
def _per_degree(x_spec: ArraySpec, out_spec: ArraySpec, ddof: float) -> float:
    """1 / (n - ddof); NaN where NumPy divides 0 by 0."""
    degrees = extent(x_spec, out_spec) - ddof
    return 1 / degrees if degrees > 0 else np.nan


def _centred(x: Any, axis: Axis, dtype: Any) -> Any:
    """conj(x - mean(x))."""
    off = x - np.mean(x, axis, dtype, keepdims=True)
    return np.conjugate(off) if off.dtype.kind == "c" else off


def halved_over(ct: Any, std: Any) -> Any:
    """The cotangent of var that one of std amounts to: ct / (2 std), 0 where std = 0."""
    flat = std == 0
    return np.where(flat, 0, ct / np.where(flat, 2, 2 * std))


def _var_rule(ct: Any, x: Any, x_spec: ArraySpec, out_spec: ArraySpec, axis: Axis, dtype: Any, ddof: float) -> Any:
    return keep(ct * (2 * _per_degree(x_spec, out_spec, ddof)), x_spec.shape, axis) * _centred(x, axis, dtype)


def _std_rule(ct: Any, x: Any, out: Any, x_spec: ArraySpec, out_spec: ArraySpec, axis: Axis, dtype: Any, ddof: float) -> Any:
    off = _centred(x, axis, dtype)
    off = off - np.mean(off, axis, keepdims=True)  # once more: of equal numbers whose mean rounds, std is as small as the deviations
    return keep(halved_over(ct, out) * (2 * _per_degree(x_spec, out_spec, ddof)), x_spec.shape, axis) * off


var = primitive(
    lambda x, *, axis, dtype, ddof, keepdims: np.var(x, axis, dtype, None, ddof, keepdims),
    name="reduce_var",
    vjps={"x": _var_rule},
)
std = primitive(
    lambda x, *, axis, dtype, ddof, keepdims: np.std(x, axis, dtype, None, ddof, keepdims),
    name="reduce_std",
    vjps={"x": _std_rule},
)


# With mean= given, the mean is an operand of its own, and n counts what where= lets through.
def about_mean(ct: Any, x: Any, mean: Any, where: Any, x_spec: ArraySpec, axis: Axis, ddof: float) -> Any:
    """The cotangent of the elements for one of var about ``mean``: 2 conj(x - mean) / (n - ddof) where the mask is true, else 0."""
    degrees = count(where, x_spec, axis).real - ddof
    scale = keep(ct, x_spec.shape, axis) * np.where(degrees > 0, 2 / np.where(degrees > 0, degrees, 1), np.nan).astype(degrees.dtype)
    off = np.where(where, x, mean) - mean
    return np.where(where, scale * (np.conjugate(off) if off.dtype.kind == "c" else off), 0)


var_about = primitive(
    lambda x, mean, where, *, axis, dtype, ddof, keepdims: np.var(x, axis, dtype, None, ddof, keepdims, mean=mean, where=where),
    name="reduce_var_about",
    nondiff=("where",),
    masks=True,
    vjps={
        "x": about_mean,
        "mean": lambda ct, x, mean, where, x_spec, axis, ddof: -about_mean(ct, x, mean, where, x_spec, axis, ddof),
    },
)
std_about = primitive(
    lambda x, mean, where, *, axis, dtype, ddof, keepdims: np.std(x, axis, dtype, None, ddof, keepdims, mean=mean, where=where),
    name="reduce_std_about",
    nondiff=("where",),
    masks=True,
    vjps={
        "x": lambda ct, x, mean, where, out, x_spec, axis, ddof: about_mean(halved_over(ct, out), x, mean, where, x_spec, axis, ddof),
        "mean": lambda ct, x, mean, where, out, x_spec, axis, ddof: -about_mean(halved_over(ct, out), x, mean, where, x_spec, axis, ddof),
    },
)


# ------------------------------------------------------------------------------------------------------------- product
def _prod_rule(ct: Any, x: Any, out: Any, x_spec: ArraySpec, axis: Axis) -> Any:
    if is_ordinary(out) and loses_nothing(x, axis):
        return keep(ct * out, x_spec.shape, axis) / x
    return _others(ct, x, x_spec, axis)


def _others(ct: Any, x: Any, x_spec: ArraySpec, axis: Axis) -> Any:
    return keep(ct, x_spec.shape, axis) * products_of_others(x, axis) if x_spec.size else np.ones_like(x)


prod = primitive(
    lambda x, *, axis, dtype, keepdims: MULTIPLY(x, axis, dtype, None, keepdims),
    name="reduce_prod",
    vjps={"x": _prod_rule},
)
prod_where = primitive(
    lambda x, initial, where, *, axis, dtype, keepdims: MULTIPLY(x, axis, dtype, None, keepdims, initial, where),
    name="reduce_prod_where",
    nondiff=("where",),
    masks=True,
    vjps={
        "x": lambda ct, x, initial, where, x_spec, axis: np.where(where, _others(ct * initial, np.where(where, x, 1), x_spec, axis), 0),
        "initial": lambda ct, x, where, axis, keepdims: ct * MULTIPLY(np.where(where, x, 1), axis, keepdims=keepdims),
    },
)


# --------------------------------------------------------------------------------------------------- maximum and minimum
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
        masks=True,
        vjps={"x": _shared},
    )
    where = primitive(
        lambda x, initial, where, *, axis, keepdims: ufunc.reduce(x, axis, None, None, keepdims, initial, where),
        name=f"reduce_{name}_where",
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
    vjps={"x": lambda ct, x, out, x_spec, axis: softmax(ct, x, out, x_spec, axis, np.exp)},
)
logaddexp_where = primitive(
    lambda x, initial, where, *, axis, dtype, keepdims: np.logaddexp.reduce(
        x, axis, dtype, keepdims=keepdims, initial=initial, where=where
    ),
    name="reduce_logaddexp_where",
    nondiff=("where",),
    masks=True,
    vjps={
        "x": lambda ct, x, where, out, x_spec, axis: np.where(
            where, softmax(ct, np.where(where, x, -np.inf), out, x_spec, axis, np.exp), 0
        ),
        "initial": lambda ct, initial, out: ct * np.exp(np.where(initial == out, 0, initial - np.where(_infinite(out), 0, out))),
    },
)


# ------------------------------------------------------------------------- NumPy's functions, methods and ufunc methods
def _reduce(plain: Primitive, general: Primitive, identity: float | None, a: Any, initial: Any, where: Any, **params: Any) -> Any:
    """The primitive without ``initial`` and ``where`` when neither is given; otherwise the general one, from the identity."""
    unmasked = where is True or where is ABSENT
    if integral(params.get("dtype")):
        a = plain_value(a)
    if initial is ABSENT or initial is None:
        if unmasked:
            return plain(a, **params)
        if identity is None:
            message = f"{plain.name} has no identity, so where= needs initial= as well: the value where no element is let through"
            raise ValueError(message)
        initial = identity
    return general(a, initial, True if unmasked else where, **params)


@composite(np.sum, name="sum")
def np_sum(
    a: Any, axis: Axis = None, dtype: Any = None, out: Any = None, keepdims: Any = False, initial: Any = ABSENT, where: Any = True
) -> Any:
    """numpy.sum."""
    return _reduce(sum_, sum_where, 0, a, initial, where, axis=axis, dtype=dtype, keepdims=_flag(keepdims))


@composite(np.prod, name="prod")
def np_prod(
    a: Any, axis: Axis = None, dtype: Any = None, out: Any = None, keepdims: Any = False, initial: Any = ABSENT, where: Any = True
) -> Any:
    """numpy.prod."""
    return _reduce(prod, prod_where, 1, a, initial, where, axis=axis, dtype=dtype, keepdims=_flag(keepdims))


@composite(np.max, np.amax, name="max")
def np_max(a: Any, axis: Axis = None, out: Any = None, keepdims: Any = False, initial: Any = ABSENT, where: Any = True) -> Any:
    """numpy.max and numpy.amax."""
    return _reduce(max_, max_where, None, a, initial, where, axis=axis, keepdims=_flag(keepdims))


@composite(np.min, np.amin, name="min")
def np_min(a: Any, axis: Axis = None, out: Any = None, keepdims: Any = False, initial: Any = ABSENT, where: Any = True) -> Any:
    """numpy.min and numpy.amin."""
    return _reduce(min_, min_where, None, a, initial, where, axis=axis, keepdims=_flag(keepdims))


@composite(np.mean, name="mean")
def np_mean(a: Any, axis: Axis = None, dtype: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True) -> Any:
    """numpy.mean."""
    params = {"axis": axis, "dtype": dtype, "keepdims": _flag(keepdims)}
    a = plain_value(a) if integral(dtype) else a
    return mean(a, **params) if where is True or where is ABSENT else mean_where(a, where, **params)


def _spreadness(
    plain: Primitive, about: Primitive, a: Any, axis: Axis, dtype: Any, ddof: float, keepdims: Any, where: Any, middle: Any, correction: Any
) -> Any:
    """Var or std: about the mean of the unmasked elements, or about the mean that is given."""
    if correction is not ABSENT:
        if ddof != 0:
            message = f"ddof={ddof} and correction={correction} mean the same; give one of them"
            raise ValueError(message)
        ddof = correction
    params = {"axis": axis, "dtype": dtype, "ddof": ddof, "keepdims": _flag(keepdims)}
    masked = where is not True and where is not ABSENT
    if middle is ABSENT and not masked:
        return plain(a, **params)
    mask = where if masked else True
    return about(a, np.mean(a, axis, dtype, keepdims=True, where=mask) if middle is ABSENT else middle, mask, **params)


@composite(np.var, name="var")
def np_var(
    a: Any, axis: Axis = None, dtype: Any = None, out: Any = None, ddof: float = 0, keepdims: Any = False, *,
    where: Any = True, mean: Any = ABSENT, correction: Any = ABSENT,
) -> Any:  # fmt: skip
    """numpy.var."""
    return _spreadness(var, var_about, a, axis, dtype, ddof, keepdims, where, mean, correction)


@composite(np.std, name="std")
def np_std(
    a: Any, axis: Axis = None, dtype: Any = None, out: Any = None, ddof: float = 0, keepdims: Any = False, *,
    where: Any = True, mean: Any = ABSENT, correction: Any = ABSENT,
) -> Any:  # fmt: skip
    """numpy.std."""
    return _spreadness(std, std_about, a, axis, dtype, ddof, keepdims, where, mean, correction)


@composite(np.add.reduce, name="add.reduce")
def add_reduce(
    array: Any, axis: Axis = 0, dtype: Any = None, out: Any = None, keepdims: bool = False, initial: Any = ABSENT, where: Any = True
) -> Any:
    """numpy.add.reduce."""
    return _reduce(sum_, sum_where, 0, array, initial, where, axis=axis, dtype=dtype, keepdims=keepdims)


@composite(np.multiply.reduce, name="multiply.reduce")
def multiply_reduce(
    array: Any, axis: Axis = 0, dtype: Any = None, out: Any = None, keepdims: bool = False, initial: Any = ABSENT, where: Any = True
) -> Any:
    """numpy.multiply.reduce."""
    return _reduce(prod, prod_where, 1, array, initial, where, axis=axis, dtype=dtype, keepdims=keepdims)


@composite(np.maximum.reduce, name="maximum.reduce")
def maximum_reduce(
    array: Any, axis: Axis = 0, dtype: Any = None, out: Any = None, keepdims: bool = False, initial: Any = ABSENT, where: Any = True
) -> Any:
    """numpy.maximum.reduce."""
    return _reduce(max_, max_where, None, _as_dtype(array, dtype), initial, where, axis=axis, keepdims=keepdims)


@composite(np.minimum.reduce, name="minimum.reduce")
def minimum_reduce(
    array: Any, axis: Axis = 0, dtype: Any = None, out: Any = None, keepdims: bool = False, initial: Any = ABSENT, where: Any = True
) -> Any:
    """numpy.minimum.reduce."""
    return _reduce(min_, min_where, None, _as_dtype(array, dtype), initial, where, axis=axis, keepdims=keepdims)


@composite(np.logaddexp.reduce, name="logaddexp.reduce")
def np_logaddexp_reduce(
    array: Any, axis: Axis = 0, dtype: Any = None, out: Any = None, keepdims: bool = False, initial: Any = ABSENT, where: Any = True
) -> Any:
    """numpy.logaddexp.reduce: log(sum(exp(x)))."""
    return _reduce(logaddexp_reduce, logaddexp_where, -np.inf, array, initial, where, axis=axis, dtype=dtype, keepdims=keepdims)


def _flag(keepdims: Any) -> bool:
    return keepdims is not ABSENT and bool(keepdims)


def _as_dtype(array: Any, dtype: Any) -> Any:
    return array if dtype is None else np.astype(array, dtype)


REDUCTIONS: tuple[Primitive | Composite, ...] = (
    sum_, sum_where, mean, mean_where, var, var_about, std, std_about, prod, prod_where, max_, max_where, min_, min_where,
    logaddexp_reduce, logaddexp_where,
    np_sum, np_mean, np_var, np_std, np_prod, np_max, np_min,
    add_reduce, multiply_reduce, maximum_reduce, minimum_reduce, np_logaddexp_reduce,
)  # fmt: skip
