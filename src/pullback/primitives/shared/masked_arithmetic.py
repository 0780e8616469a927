"""Products and quotients of a cotangent with a slope that may be infinite or undefined: a cotangent of 0 stays 0.

``where(x > 0, log(x), 0)`` sends the cotangent 0 to ``log`` wherever it masks ``log(x)``. There 0 / 0 or 0 * inf would
make a NaN of an element on which the result does not depend. So rules with a singularity divide with :func:`over` and
multiply with :func:`times`. An infinite derivative stays infinite where the cotangent is not 0. Where an infinite
cotangent meets a slope of 0, as in the chain of ``sqrt(x * x)`` at 0, the result is 0 as well.

Both are primitives, so that a rule that uses them can itself be differentiated. Neither warns: the user's own forward
has done so where there was cause.
"""

from collections.abc import Callable, Sequence
from functools import cache, wraps
from math import isfinite
from typing import Any

import numpy as np

from pullback.recording.handles import Handle, layout_of
from pullback.rules.declaration import Primitive, primitive
from pullback.rules.generated_code import compile_function
from pullback.words.undocumented import error_state, is_quiet, quiet


def silent(rule: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator for a rule whose slope may overflow or be undefined at elements that are masked, or where its
    derivative is infinite."""

    @wraps(rule)
    def silenced(*args: Any, **kwargs: Any) -> Any:
        if is_quiet(error_state()):  # as in a sweep
            return rule(*args, **kwargs)
        with quiet():
            return rule(*args, **kwargs)

    return silenced


ARRAY_OR_NUMBER = (np.ndarray, float, int, np.float64, np.float32)
"""Types for which the primitive need not be asked whether it is to be recorded."""


_MULTIPLIED, _DIVIDED = float.__mul__, float.__truediv__

SMALL = 4096
"""Elements up to which a dot product runs in one thread."""


def _free_of_nan(result: Any) -> Any:
    """True where there is no NaN; False may also mean that infinities met. One pass without a temporary: NaN goes
    through the least of all, and through a dot product, which takes less of a small array; a large one is divided among
    threads that may have to be waited for."""
    if type(result) is np.ndarray and result.ndim:
        if result.size > SMALL and result.dtype.kind == "f":
            result = result.min()
        else:
            flat = result.ravel("K")
            result = flat.dot(flat)
    return result == result  # noqa: PLR0124 - the test for NaN, on a scalar


def _zero_wins(ct: Any, slope: Any, result: Any) -> Any:
    """The result, with 0 for every NaN that comes from 0 * inf, inf * 0 or 0 * NaN; a NaN among the cotangents
    stays."""
    nothing = (ct == 0) | ((slope == 0) & np.isinf(ct))
    return np.where(nothing & np.isnan(result), 0, result)


def _quotient(cotangent: Any, slope: Any) -> Any:
    # Python's own arithmetic has the bits of NumPy's, warns of nothing, and takes a fifth of the time.
    if type(cotangent) is type(slope) is np.float64 and slope != 0:
        result = np.float64(_DIVIDED(cotangent, slope))
        if result == result:  # noqa: PLR0124 - as above
            return result
    return _quotient_silently(cotangent, slope)


def _product(cotangent: Any, slope: Any) -> Any:
    if type(cotangent) is type(slope) is np.float64:  # as in a quotient
        result = np.float64(_MULTIPLIED(cotangent, slope))
        if result == result:  # noqa: PLR0124 - as above
            return result
    return _product_silently(cotangent, slope)


@silent
def _quotient_silently(cotangent: Any, slope: Any) -> Any:
    result = np.divide(cotangent, slope)
    return result if _free_of_nan(result) else _zero_wins(cotangent, np.reciprocal(slope), result)


@silent
def _product_silently(cotangent: Any, slope: Any) -> Any:
    result = np.multiply(cotangent, slope)
    return result if _free_of_nan(result) else _zero_wins(cotangent, slope, result)


@silent
def _quotient_into(cotangent: Any, slope: Any, out: Any) -> Any:
    """``_quotient`` in ``out``, in which neither operand lies."""
    np.divide(cotangent, slope, out=out)
    if not _free_of_nan(out):
        out[...] = _zero_wins(cotangent, np.reciprocal(slope), out)
    return out


@silent
def _product_into(cotangent: Any, slope: Any, out: Any) -> Any:
    """``_product`` in ``out``, in which neither operand lies."""
    np.multiply(cotangent, slope, out=out)
    if not _free_of_nan(out):
        out[...] = _zero_wins(cotangent, slope, out)
    return out


def _one_after_the_other(ct: Any, slopes: Sequence[Any], divides: tuple[bool | None, ...]) -> Any:
    left = iter(slopes)
    for divided in divides:
        ct = np.negative(ct) if divided is None else (_quotient if divided else _product)(ct, next(left))
    return ct


@cache
def chained(divides: tuple[bool | None, ...]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """A function that multiplies a cotangent with one slope after the other, or divides it where ``divides`` says so,
    all of one shape and dtype of real numbers; and one that does so into an array in which no operand lies. What was
    NaN once is NaN at the end, so the last result alone is asked. None in ``divides`` is a change of sign: two of them
    are none in whatever is not NaN, since products and quotients are rounded alike on both sides of 0."""
    ufuncs = ["divide" if divided else "multiply" for divided in divides if divided is not None]
    slopes = [f"s{k}" for k in range(len(ufuncs))]
    source = _CHAIN.format(
        slopes=", ".join(slopes),
        first=ufuncs[0],
        others="".join(
            f"    {ufunc}(out, {slope}, out)\n" for ufunc, slope in list(zip(ufuncs, slopes, strict=True))[1:]
        ),
        signed="negative(out, out)" if divides.count(None) % 2 else "out",
    )
    masked_chain = compile_function("masked_chain", source, {**_OF_CHAINS, "divides": divides})

    def masked_chain_into(ct: Any, *operands: Any) -> Any:
        return masked_chain(ct, *operands)  # the last is ``out``

    return masked_chain, masked_chain_into


_CHAIN = """def masked_chain(ct, {slopes}, out=None):
    if not is_quiet(error_state()):  # as it is in a sweep
        with quiet():
            return masked_chain(ct, {slopes}, out)
    out = {first}(ct, s0, out)
{others}    if out.size <= small:
        flat = out.ravel("K")
        nan = flat.dot(flat)
        free = nan == nan
    else:
        free = free_of_nan(out)
    if free:
        return {signed}
    out[...] = one_after_the_other(ct, ({slopes},), divides)
    return out
"""
_OF_CHAINS = {
    "multiply": np.multiply, "divide": np.divide, "negative": np.negative, "is_quiet": is_quiet, "quiet": quiet,
    "error_state": error_state, "small": SMALL, "free_of_nan": _free_of_nan,
    "one_after_the_other": _one_after_the_other,
}  # fmt: skip


def where_true(ct: Any, condition: Any) -> Any:
    """``ct`` where ``condition`` holds, else 0: np.where takes six times as long as a product where a mask is
    irregular. The product has the sign of ``ct`` in its zeros. Symbols write it down as one call, since it looks at the
    values."""
    for operand in (ct, condition):
        whole = getattr(type(operand), "__pullback_whole__", None)
        if whole is not None:
            return whole(_where_true, _where_true_into, ct, condition)
    return _where_true(ct, condition)


@silent
def _where_true(ct: Any, condition: Any, out: Any = None) -> Any:
    if type(ct) is not np.ndarray or type(condition) is not np.ndarray or condition.dtype.char != "?":
        return np.where(condition, ct, 0)
    # a product would turn the condition into numbers bit by bit, along each row: up to five times as long
    mask = condition.astype(ct.dtype)
    if out is None and mask.shape == ct.shape and mask.flags.c_contiguous and ct.flags.c_contiguous:
        out = mask
    result = np.multiply(ct, mask, out=out)
    return result if _free_of_nan(result) else np.where(np.isnan(result), np.where(condition, ct, 0), result)


def _where_true_into(ct: Any, condition: Any, out: Any) -> Any:
    """``_where_true`` in ``out``, in which neither operand lies."""
    result = _where_true(ct, condition, out)
    if result is not out:
        out[...] = result
    return out


def where_false(ct: Any, condition: Any) -> Any:
    """``ct`` where ``condition`` does not hold, else 0."""
    return where_true(ct, np.logical_not(condition))


def _where_sent(ct: Any, cotangent: Any, slope: Any, *, divides: bool) -> Any:
    """Ct, but 0 where a cotangent of 0 met a singular slope."""
    if isinstance(slope, Handle) and isinstance(layout_of(slope), Handle):  # without a value: it is decided later
        return where_sent(ct, cotangent, slope, divides=divides)
    if type(slope) is np.float64 and (slope != 0 if divides else isfinite(slope)):
        return ct
    singular = slope == 0 if divides else ~np.isfinite(slope)
    return np.where((cotangent == 0) & singular, 0, ct) if np.any(singular) else ct


def _sent(sent: Any, cotangent: Any, slope: Any, divides: bool) -> Any:
    found = _where_sent(sent, cotangent, slope, divides=divides)
    return found if isinstance(sent, np.ndarray) else found[()]


where_sent = primitive(
    _sent,
    name="where_sent",
    elementwise=True,
    operands=("sent", "cotangent", "slope"),
    params=("divides",),
    nondiff=("cotangent", "slope"),
    vjps={"sent": lambda ct, cotangent, slope, divides: _where_sent(ct, cotangent, slope, divides=divides)},
)


# In the rules for the slope the masked factor is the saved one, so it comes first: its zeros win. Where a 0 met a
# singular slope the product is 0 because nothing depends on it, so nothing depends on the cotangent either.
masked_multiply = primitive(
    _product,
    name="masked_multiply",
    elementwise=True,
    vjps={
        "cotangent": lambda ct, cotangent, slope: times(_where_sent(ct, cotangent, slope, divides=False), slope),
        "slope": lambda ct, cotangent: times(cotangent, ct),
    },
)
masked_divide = primitive(
    _quotient,
    name="masked_divide",
    elementwise=True,
    vjps={
        "cotangent": lambda ct, cotangent, slope: over(_where_sent(ct, cotangent, slope, divides=True), slope),
        "slope": lambda ct, slope, out: over(times(-out, ct), slope),
    },
)


def times(ct: Any, slope: Any) -> Any:
    """The product ``ct * slope``, and 0 wherever ``ct`` is 0. ``ct`` has the shape of the result."""
    if type(slope) in ARRAY_OR_NUMBER and type(ct) in ARRAY_OR_NUMBER:
        return _product(ct, slope)
    return _asked(masked_multiply, _product_into, ct, slope)


def over(ct: Any, slope: Any) -> Any:
    """The quotient ``ct / slope``, and 0 wherever ``ct`` is 0. ``ct`` has the shape of the result."""
    if type(slope) in ARRAY_OR_NUMBER and type(ct) in ARRAY_OR_NUMBER:
        if type(slope) is float and slope:
            return ct / slope
        return _quotient(ct, slope)
    whole = as_one_call(slope)
    if whole is not None:
        return whole(over, _over_into, ct, slope)
    return _asked(masked_divide, _quotient_into, ct, slope)


def _over_into(ct: Any, slope: Any, out: Any) -> Any:
    out[...] = over(ct, slope)
    return out


def as_one_call(number: Any) -> Any:
    """How a call is written down as one statement, where a symbol stands for a number of Python's: what a rule asks of
    such a number may be different in the next call. None where it is no symbol, or one of NumPy's."""
    whole = getattr(type(number), "__pullback_whole__", None)
    return None if whole is None or hasattr(number, "dtype") else whole


def _asked(prim: Primitive, into: Any, ct: Any, slope: Any) -> Any:
    """The primitive; symbols write its forward down as one call, since it looks at the values."""
    for operand in (ct, slope):
        whole = getattr(type(operand), "__pullback_whole__", None)
        if whole is not None:
            return whole(prim.forward, into, ct, slope, chain=(chained, prim is masked_divide))
    return prim(ct, slope)


MASKED: tuple[Primitive, ...] = (masked_multiply, masked_divide)
