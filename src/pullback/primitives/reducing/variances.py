"""Variances and standard deviations, about the mean of the elements or about the mean that the caller passes."""

from typing import Any

import numpy as np

from pullback.primitives.reducing.sums import is_true
from pullback.primitives.shared.axes import Axis, count, extent, keep
from pullback.rules.declaration import Composite, Primitive, composite, primitive
from pullback.words.specs import ArraySpec
from pullback.words.undocumented import ABSENT


# var = sum |x - m|^2 / (n - ddof) with m the mean: d var = 2 Re(conj(x - m) dx) / (n - ddof), because sum(x - m) = 0.
# std = sqrt(var): ct / (2 std) in the place of ct, and 0 where std = 0 (a minimum, so 0 is a subgradient).
def _per_degree(x_spec: ArraySpec, out_spec: ArraySpec, ddof: float) -> float:
    """1 / (n - ddof); NaN where NumPy divides 0 by 0."""
    degrees = extent(x_spec, out_spec) - ddof
    return 1 / degrees if degrees > 0 else np.nan


def conjugate(x: Any) -> Any:
    """The conjugate; a real array itself, not the copy that NumPy makes."""
    return np.conjugate(x) if x.dtype.kind == "c" else x


def _centred(x: Any, axis: Axis, dtype: Any) -> Any:
    """conj(x - mean(x))."""
    return conjugate(x - np.mean(x, axis, dtype, keepdims=True))


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
    # Once more: where the mean of equal numbers is rounded, std is as small as the deviations from it.
    off = off - np.mean(off, axis, dtype, keepdims=True)
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


# With ``mean=`` the mean is an operand of its own, and n counts what ``where=`` lets through.
def about_mean(ct: Any, x: Any, mean: Any, where: Any, x_spec: ArraySpec, axis: Axis, ddof: float) -> Any:
    """The cotangent of the elements for one of var about ``mean``: 2 conj(x - mean) / (n - ddof) where the mask is
    true, else 0."""
    degrees = count(where, x_spec, axis).real - ddof
    per_degree = np.where(degrees > 0, 2 / np.where(degrees > 0, degrees, 1), np.nan).astype(degrees.dtype)
    scale = keep(ct, x_spec.shape, axis) * per_degree
    return np.where(where, scale * conjugate(np.where(where, x, mean) - mean), 0)


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


def correct_ddof(ddof: float, correction: Any) -> Any:
    """``ddof``, which NumPy also takes under the name ``correction``."""
    if correction is ABSENT:
        return ddof
    if ddof != 0:
        raise ValueError(f"ddof={ddof} and correction={correction} mean the same; give one of them")
    return correction


def _numpy_function(function: Any, plain: Primitive, about: Primitive) -> Composite:
    """np.var or np.std: ``plain`` where the call has neither a mask nor a mean, else ``about``."""

    def var_or_std(
        a: Any, axis: Axis = None, dtype: Any = None, out: Any = None, ddof: float = 0, keepdims: Any = False, *,
        where: Any = True, mean: Any = ABSENT, correction: Any = ABSENT,
    ) -> Any:  # fmt: skip
        params = {
            "axis": axis, "dtype": dtype, "ddof": correct_ddof(ddof, correction), "keepdims": is_true(keepdims),
        }  # fmt: skip
        mask = True if where is ABSENT else where
        if mean is ABSENT:
            if mask is True:
                return plain(a, **params)
            mean = np.mean(a, axis, dtype, keepdims=True, where=mask)
        return about(a, mean, mask, **params)

    return composite(function, name=function.__name__)(var_or_std)


np_var, np_std = _numpy_function(np.var, var, var_about), _numpy_function(np.std, std, std_about)

VARIANCES: tuple[Primitive | Composite, ...] = (var, var_about, std, std_about, np_var, np_std)
