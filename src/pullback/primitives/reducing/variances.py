"""Variances and standard deviations, about their own mean or a given one."""

from typing import Any

import numpy as np

from pullback.primitives.reducing.sums import (
    ABSENT,
    is_true,
)
from pullback.primitives.shared.axes import Axis, count, extent, keep
from pullback.rules.declaration import Composite, Primitive, composite, primitive
from pullback.words.specs import ArraySpec


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


def _std_rule(
    ct: Any, x: Any, out: Any, x_spec: ArraySpec, out_spec: ArraySpec, axis: Axis, dtype: Any, ddof: float
) -> Any:
    off = _centred(x, axis, dtype)
    off = off - np.mean(
        off, axis, keepdims=True
    )  # once more: of equal numbers whose mean rounds, std is as small as the deviations
    return keep(halved_over(ct, out) * (2 * _per_degree(x_spec, out_spec, ddof)), x_spec.shape, axis) * off


var = primitive(
    lambda x, *, axis, dtype, ddof, keepdims: np.var(x, axis, dtype, None, ddof, keepdims),
    name="reduce_var",
    reach="reduced",
    vjps={"x": _var_rule},
)


std = primitive(
    lambda x, *, axis, dtype, ddof, keepdims: np.std(x, axis, dtype, None, ddof, keepdims),
    name="reduce_std",
    reach="reduced",
    vjps={"x": _std_rule},
)


# With mean= given, the mean is an operand of its own, and n counts what where= lets through.
def about_mean(ct: Any, x: Any, mean: Any, where: Any, x_spec: ArraySpec, axis: Axis, ddof: float) -> Any:
    """The cotangent of the elements for one of var about ``mean``: 2 conj(x - mean) / (n - ddof) where the mask is
    true, else 0."""
    degrees = count(where, x_spec, axis).real - ddof
    scale = keep(ct, x_spec.shape, axis) * np.where(degrees > 0, 2 / np.where(degrees > 0, degrees, 1), np.nan).astype(
        degrees.dtype
    )
    off = np.where(where, x, mean) - mean
    return np.where(where, scale * (np.conjugate(off) if off.dtype.kind == "c" else off), 0)


var_about = primitive(
    lambda x, mean, where, *, axis, dtype, ddof, keepdims: np.var(
        x, axis, dtype, None, ddof, keepdims, mean=mean, where=where
    ),
    name="reduce_var_about",
    reach="reduced",
    nondiff=("where",),
    masks=True,
    vjps={
        "x": about_mean,
        "mean": lambda ct, x, mean, where, x_spec, axis, ddof: -about_mean(ct, x, mean, where, x_spec, axis, ddof),
    },
)


std_about = primitive(
    lambda x, mean, where, *, axis, dtype, ddof, keepdims: np.std(
        x, axis, dtype, None, ddof, keepdims, mean=mean, where=where
    ),
    name="reduce_std_about",
    reach="reduced",
    nondiff=("where",),
    masks=True,
    vjps={
        "x": lambda ct, x, mean, where, out, x_spec, axis, ddof: about_mean(
            halved_over(ct, out), x, mean, where, x_spec, axis, ddof
        ),
        "mean": lambda ct, x, mean, where, out, x_spec, axis, ddof: (
            -about_mean(halved_over(ct, out), x, mean, where, x_spec, axis, ddof)
        ),
    },
)


def _spreadness(
    plain: Primitive,
    about: Primitive,
    a: Any,
    axis: Axis,
    dtype: Any,
    ddof: float,
    keepdims: Any,
    where: Any,
    middle: Any,
    correction: Any,
) -> Any:
    """Var or std: about the mean of the unmasked elements, or about the mean that is given."""
    if correction is not ABSENT:
        if ddof != 0:
            message = f"ddof={ddof} and correction={correction} mean the same; give one of them"
            raise ValueError(message)
        ddof = correction
    params = {"axis": axis, "dtype": dtype, "ddof": ddof, "keepdims": is_true(keepdims)}
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


VARIANCES: tuple[Primitive | Composite, ...] = (var, var_about, std, std_about, np_var, np_std)
