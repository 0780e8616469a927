"""NumPy's reductions and scans that pass over NaN: nansum, nanmean, nanvar, nanmax, nancumsum and their kin.

A NaN gets the cotangent 0. So does every element of a slice that holds nothing but NaN. Sums and products first replace
NaN, in a copy like NumPy's. Maxima and minima are those of ``np.fmax`` and ``np.fmin``. Means and variances are NumPy's
own functions with the rules of ``sums`` and ``variances``, under a mask without the NaN.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.primitives.reducing.sums import is_true, to_mean
from pullback.primitives.reducing.variances import about_mean, correct_ddof, halved_over
from pullback.primitives.shared.axes import Axis, count
from pullback.recording.handles import plain_value
from pullback.rules.declaration import Composite, Primitive, composite, primitive
from pullback.words.call_sites import warn_user
from pullback.words.specs import ArraySpec
from pullback.words.undocumented import ABSENT


# ------------------------------------------------------------------------------------------------ sums, products, scans
def _replaced(x: Any, *, number: float) -> Any:
    """A copy in the layout of the one that NumPy makes, so that what adds it up does so in the same order."""
    copy = np.array(x)
    np.copyto(copy, number, where=np.isnan(x))
    return copy


replace_nan = primitive(
    _replaced, name="replace_nan", reach="place", masks=True, vjps={"x": lambda ct, x: np.where(np.isnan(x), 0, ct)}
)


def _numbers(a: Any, number: float) -> Any:
    """``a`` without NaN; an array of integers, which comes here beside a traced ``where`` or ``initial``, has none."""
    return replace_nan(a, number=number) if a.dtype.kind in "fc" else a


def _reduction(function: Any, plain: Any, number: float) -> Composite:
    """``function`` is ``plain`` with ``number`` in the place of every NaN."""

    def reduce(
        a: Any,
        axis: Axis = None,
        dtype: Any = None,
        out: Any = None,
        keepdims: Any = ABSENT,
        initial: Any = ABSENT,
        where: Any = ABSENT,
    ) -> Any:
        return plain(_numbers(a, number), axis, dtype, keepdims=keepdims, initial=initial, where=where)

    return composite(function, name=function.__name__)(reduce)


def _scan(function: Any, plain: Any, number: float) -> Composite:
    def scan(a: Any, axis: int | None = None, dtype: Any = None, out: Any = None) -> Any:
        return plain(_numbers(a, number), axis, dtype)

    return composite(function, name=function.__name__)(scan)


nansum, nanprod = _reduction(np.nansum, np.sum, 0), _reduction(np.nanprod, np.prod, 1)
nancumsum, nancumprod = _scan(np.nancumsum, np.cumsum, 0), _scan(np.nancumprod, np.cumprod, 1)


# ------------------------------------------------------------------------------------------------------- mean, var, std
# NumPy warns of slices without elements from within the forward.
def _present(x: Any, where: Any) -> Any:
    return ~np.isnan(x) & where


mean = primitive(
    lambda x, where, *, axis, dtype, keepdims: np.nanmean(x, axis, dtype, keepdims=keepdims, where=where),
    name="nan_mean",
    reach="reduced",
    nondiff=("where",),
    masks=True,
    vjps={"x": lambda ct, x, where, x_spec, axis: to_mean(ct, _present(x, where), x_spec, axis)},
)


def _middle(x: Any, present: Any, x_spec: ArraySpec, axis: Axis, dtype: Any) -> Any:
    """The mean that var is about, axes kept; 0 where there is nothing. In two rounds, so that of equal numbers it is
    that number."""
    n = np.maximum(count(present, x_spec, axis).real, 1)
    mean = np.sum(x, axis, dtype, keepdims=True, where=present) / n
    return mean + np.sum(x - mean, axis, dtype, keepdims=True, where=present) / n


def _var_or_std(name: str, function: Any, to_var: Callable[[Any, Any], Any]) -> tuple[Primitive, Primitive]:
    """The two primitives of nanvar or nanstd: about the mean of what is present, and about a mean that is an operand.
    ``to_var`` turns a cotangent of the function into one of var."""

    def to_x(ct: Any, x: Any, mean: Any, where: Any, out: Any, x_spec: ArraySpec, axis: Axis, ddof: float) -> Any:
        return about_mean(to_var(ct, out), x, mean, _present(x, where), x_spec, axis, ddof)

    def to_x_about_own_mean(
        ct: Any, x: Any, where: Any, out: Any, x_spec: ArraySpec, axis: Axis, dtype: Any, ddof: float
    ) -> Any:
        present = _present(x, where)
        return about_mean(to_var(ct, out), x, _middle(x, present, x_spec, axis, dtype), present, x_spec, axis, ddof)

    own = primitive(
        lambda x, where, *, axis, dtype, ddof, keepdims: function(x, axis, dtype, None, ddof, keepdims, where=where),
        name=f"nan_{name}",
        reach="reduced",
        nondiff=("where",),
        masks=True,
        vjps={"x": to_x_about_own_mean},
    )
    about = primitive(
        lambda x, mean, where, *, axis, dtype, ddof, keepdims: function(
            x, axis, dtype, None, ddof, keepdims, where=where, mean=mean
        ),
        name=f"nan_{name}_about",
        reach="reduced",
        nondiff=("where",),
        masks=True,
        vjps={
            "x": to_x,
            "mean": lambda ct, x, mean, where, out, x_spec, axis, ddof: (
                -to_x(ct, x, mean, where, out, x_spec, axis, ddof)
            ),
        },
    )
    return own, about


var, var_about = _var_or_std("var", np.nanvar, lambda ct, var: ct)
std, std_about = _var_or_std("std", np.nanstd, halved_over)


@composite(np.nanmean, name="nanmean")
def np_nanmean(
    a: Any, axis: Axis = None, dtype: Any = None, out: Any = None, keepdims: Any = ABSENT, *, where: Any = ABSENT
) -> Any:
    """numpy.nanmean."""
    return mean(a, _mask(where), axis=axis, dtype=dtype, keepdims=is_true(keepdims))


def _numpy_function(function: Any, own: Primitive, about: Primitive) -> Composite:
    """np.nanvar or np.nanstd: about the mean of the slice, or about one that the caller passes."""

    def var_or_std(
        a: Any, axis: Axis = None, dtype: Any = None, out: Any = None, ddof: float = 0, keepdims: Any = ABSENT, *,
        where: Any = ABSENT, mean: Any = ABSENT, correction: Any = ABSENT,
    ) -> Any:  # fmt: skip
        params = {
            "axis": axis, "dtype": dtype, "ddof": correct_ddof(ddof, correction), "keepdims": is_true(keepdims),
        }  # fmt: skip
        return own(a, _mask(where), **params) if mean is ABSENT else about(a, mean, _mask(where), **params)

    return composite(function, name=function.__name__)(var_or_std)


np_nanvar, np_nanstd = _numpy_function(np.nanvar, var, var_about), _numpy_function(np.nanstd, std, std_about)


def _mask(where: Any) -> Any:
    """A mask has no derivative, even where it is traced; True for none."""
    return True if where is ABSENT else plain_value(where)


# -------------------------------------------------------------------------------------------------- maximum and minimum
def _extremum(function: Any, past_nan: Any) -> Composite:
    """np.nanmax or np.nanmin: ties share. Warns as NumPy does where a slice holds nothing but NaN."""

    def extremum(
        a: Any, axis: Axis = None, out: Any = None, keepdims: Any = ABSENT, initial: Any = ABSENT, where: Any = ABSENT
    ) -> Any:
        options = {name: value for name, value in (("initial", initial), ("where", where)) if value is not ABSENT}
        result = past_nan.reduce(a, axis, keepdims=is_true(keepdims), **options)
        if np.any(np.isnan(result)):
            warn_user("All-NaN slice encountered", RuntimeWarning)
        return result

    return composite(function, name=function.__name__)(extremum)


nanmax, nanmin = _extremum(np.nanmax, np.fmax), _extremum(np.nanmin, np.fmin)

NANS: tuple[Primitive | Composite, ...] = (
    replace_nan, mean, var, var_about, std, std_about,
    nansum, nanprod, nancumsum, nancumprod, np_nanmean, np_nanvar, np_nanstd, nanmax, nanmin,
)  # fmt: skip
