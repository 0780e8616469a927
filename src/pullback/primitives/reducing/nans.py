"""Reductions and scans that pass over NaN. A NaN gets the cotangent 0, and so does all of a slice that holds nothing
else.

Sums and products replace NaN first, by the copy that NumPy makes; maxima and minima are those of ``np.fmax`` and
``np.fmin``; means and variances are NumPy's own functions with the rules of ``reductions``, the NaN masked.
"""

from typing import Any
from warnings import warn

import numpy as np

from pullback.primitives.reducing.sums import masked_spread
from pullback.primitives.reducing.variances import about_mean, halved_over
from pullback.primitives.shared.axes import Axis, count, keep
from pullback.recording.handles import plain_value
from pullback.rules.declaration import Composite, Primitive, composite, primitive
from pullback.words.specs import ArraySpec

ABSENT: Any = np._NoValue  # noqa: SLF001 - the default in NumPy's own signatures


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


@composite(np.nansum)
def nansum(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = ABSENT,
    initial: Any = ABSENT,
    where: Any = ABSENT,
) -> Any:
    """numpy.nansum."""
    return np.sum(_numbers(a, 0), axis, dtype, keepdims=keepdims, initial=initial, where=where)


@composite(np.nanprod)
def nanprod(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = ABSENT,
    initial: Any = ABSENT,
    where: Any = ABSENT,
) -> Any:
    """numpy.nanprod."""
    return np.prod(_numbers(a, 1), axis, dtype, keepdims=keepdims, initial=initial, where=where)


@composite(np.nancumsum)
def nancumsum(a: Any, axis: int | None = None, dtype: Any = None, out: Any = None) -> Any:
    """numpy.nancumsum."""
    return np.cumsum(_numbers(a, 0), axis, dtype)


@composite(np.nancumprod)
def nancumprod(a: Any, axis: int | None = None, dtype: Any = None, out: Any = None) -> Any:
    """numpy.nancumprod."""
    return np.cumprod(_numbers(a, 1), axis, dtype)


# ------------------------------------------------------------------------------------------------------- mean, var, std
# NumPy warns of slices without elements from within the forward.
def _seen(x: Any, where: Any) -> Any:
    return ~np.isnan(x) & where


def _to_mean(ct: Any, x: Any, where: Any, x_spec: ArraySpec, axis: Axis) -> Any:
    seen = _seen(x, where)
    return masked_spread(
        keep(ct, x_spec.shape, axis) / np.maximum(count(seen, x_spec, axis).real, 1), x_spec, axis, seen
    )


mean = primitive(
    lambda x, where, *, axis, dtype, keepdims: np.nanmean(x, axis, dtype, keepdims=keepdims, where=where),
    name="nan_mean",
    reach="reduced",
    nondiff=("where",),
    masks=True,
    vjps={"x": _to_mean},
)


def _middle(x: Any, seen: Any, x_spec: ArraySpec, axis: Axis, dtype: Any) -> Any:
    """The mean that var is about, axes kept; 0 where there is nothing. In two rounds, so that of equal numbers it is
    that number."""
    n = np.maximum(count(seen, x_spec, axis).real, 1)
    mean = np.sum(x, axis, dtype, keepdims=True, where=seen) / n
    return mean + np.sum(x - mean, axis, dtype, keepdims=True, where=seen) / n


def _to_var(ct: Any, x: Any, where: Any, x_spec: ArraySpec, axis: Axis, dtype: Any, ddof: float) -> Any:
    seen = _seen(x, where)
    return about_mean(ct, x, _middle(x, seen, x_spec, axis, dtype), seen, x_spec, axis, ddof)


def _to_var_about(ct: Any, x: Any, mean: Any, where: Any, x_spec: ArraySpec, axis: Axis, ddof: float) -> Any:
    return about_mean(ct, x, mean, _seen(x, where), x_spec, axis, ddof)


def _spreadness(name: str, function: Any, of_var: Any) -> tuple[Primitive, Primitive]:
    """The two primitives of one of nanvar and nanstd: about the mean of what is seen, and about one that is given.
    ``of_var`` is the cotangent of var for one of the function."""
    own = primitive(
        lambda x, where, *, axis, dtype, ddof, keepdims: function(x, axis, dtype, None, ddof, keepdims, where=where),
        name=f"nan_{name}",
        reach="reduced",
        nondiff=("where",),
        masks=True,
        vjps={
            "x": lambda ct, x, where, out, x_spec, axis, dtype, ddof: _to_var(
                of_var(ct, out), x, where, x_spec, axis, dtype, ddof
            ),
        },
    )
    given = primitive(
        lambda x, mean, where, *, axis, dtype, ddof, keepdims: function(
            x, axis, dtype, None, ddof, keepdims, where=where, mean=mean
        ),
        name=f"nan_{name}_about",
        reach="reduced",
        nondiff=("where",),
        masks=True,
        vjps={
            "x": lambda ct, x, mean, where, out, x_spec, axis, ddof: _to_var_about(
                of_var(ct, out), x, mean, where, x_spec, axis, ddof
            ),
            "mean": lambda ct, x, mean, where, out, x_spec, axis, ddof: (
                -_to_var_about(of_var(ct, out), x, mean, where, x_spec, axis, ddof)
            ),
        },
    )
    return own, given


var, var_about = _spreadness("var", np.nanvar, lambda ct, var: ct)
std, std_about = _spreadness("std", np.nanstd, halved_over)


@composite(np.nanmean, name="nanmean")
def np_nanmean(
    a: Any, axis: Axis = None, dtype: Any = None, out: Any = None, keepdims: Any = ABSENT, *, where: Any = ABSENT
) -> Any:
    """numpy.nanmean."""
    return mean(a, _mask(where), axis=axis, dtype=dtype, keepdims=_flag(keepdims))


@composite(np.nanvar, name="nanvar")
def np_nanvar(
    a: Any, axis: Axis = None, dtype: Any = None, out: Any = None, ddof: float = 0, keepdims: Any = ABSENT, *,
    where: Any = ABSENT, mean: Any = ABSENT, correction: Any = ABSENT,
) -> Any:  # fmt: skip
    """numpy.nanvar."""
    params = {"axis": axis, "dtype": dtype, "ddof": _degrees(ddof, correction), "keepdims": _flag(keepdims)}
    return var(a, _mask(where), **params) if mean is ABSENT else var_about(a, mean, _mask(where), **params)


@composite(np.nanstd, name="nanstd")
def np_nanstd(
    a: Any, axis: Axis = None, dtype: Any = None, out: Any = None, ddof: float = 0, keepdims: Any = ABSENT, *,
    where: Any = ABSENT, mean: Any = ABSENT, correction: Any = ABSENT,
) -> Any:  # fmt: skip
    """numpy.nanstd."""
    params = {"axis": axis, "dtype": dtype, "ddof": _degrees(ddof, correction), "keepdims": _flag(keepdims)}
    return std(a, _mask(where), **params) if mean is ABSENT else std_about(a, mean, _mask(where), **params)


def _degrees(ddof: float, correction: Any) -> Any:
    if correction is ABSENT:
        return ddof
    if ddof != 0:
        message = f"ddof={ddof} and correction={correction} mean the same; give one of them"
        raise ValueError(message)
    return correction


def _flag(keepdims: Any) -> bool:
    return keepdims is not ABSENT and bool(keepdims)


def _mask(where: Any) -> Any:
    """A mask has no derivative, even where it is traced; True for none."""
    return True if where is ABSENT else plain_value(where)


# -------------------------------------------------------------------------------------------------- maximum and minimum
@composite(np.nanmax)
def nanmax(
    a: Any, axis: Axis = None, out: Any = None, keepdims: Any = ABSENT, initial: Any = ABSENT, where: Any = ABSENT
) -> Any:
    """numpy.nanmax: ties share."""
    return _told(np.fmax.reduce(a, axis, keepdims=_flag(keepdims), **_given(initial, where)))


@composite(np.nanmin)
def nanmin(
    a: Any, axis: Axis = None, out: Any = None, keepdims: Any = ABSENT, initial: Any = ABSENT, where: Any = ABSENT
) -> Any:
    """numpy.nanmin: ties share."""
    return _told(np.fmin.reduce(a, axis, keepdims=_flag(keepdims), **_given(initial, where)))


def _given(initial: Any, where: Any) -> dict[str, Any]:
    return {name: value for name, value in (("initial", initial), ("where", where)) if value is not ABSENT}


def _told(result: Any) -> Any:
    """The result, after NumPy's warning where a slice held nothing else than NaN."""
    if np.any(np.isnan(result)):
        warn("All-NaN slice encountered", RuntimeWarning, stacklevel=2)
    return result


NANS: tuple[Primitive | Composite, ...] = (
    replace_nan, mean, var, var_about, std, std_about,
    nansum, nanprod, nancumsum, nancumprod, np_nanmean, np_nanvar, np_nanstd, nanmax, nanmin,
)  # fmt: skip
