"""Elements chosen by a condition: where, select, choose, clip, nan_to_num.

The cotangent goes to the elements that were chosen. The others get an exact 0, never 0 times something infinite.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.primitives.elementwise.ufunc_rules import is_complex
from pullback.primitives.shaping.as_array import as_array, promoting
from pullback.primitives.shared.masked_arithmetic import where_false, where_true
from pullback.recording.handles import Handle
from pullback.rules.declaration import Composite, Primitive, composite, primitive
from pullback.words.errors import NotDifferentiableError
from pullback.words.undocumented import ABSENT, CLIP

# ---------------------------------------------------------------------------------------------------- where and its kin
where = primitive(
    np.where,
    operands=("condition", "x", "y"),
    nondiff=("condition",),
    linear=("x", "y"),
    masks=True,
    vjps={"x": where_true, "y": where_false},
)


@composite(np.where, name="numpy.where", direct=where)
def np_where(condition: Any, *branches: Any) -> Any:
    """numpy.where; with the condition alone, the places where it is true."""
    if type(condition) is not np.ndarray and hasattr(type(condition), "__pullback_record__"):
        condition = condition != 0  # plain: a condition has no derivative
    return where(condition, *branches) if branches else np.nonzero(condition)


@composite(np.select)
def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Any:
    """numpy.select: the first choice whose condition holds."""
    if len(condlist) != len(choicelist) or not len(condlist):
        counts = f"{len(choicelist)} choices for {len(condlist)} conditions"
        raise ValueError(f"np.select needs as many choices as conditions, and at least one; got {counts}")
    for k, condition in enumerate(map(np.asarray, condlist)):
        if condition.dtype != np.bool_:
            raise TypeError(
                f"np.select: condition {k} has dtype {condition.dtype}, expected bool; compare it with something"
            )
    *choices, result = _alike((*choicelist, default))
    for condition, choice in zip(reversed(condlist), reversed(choices), strict=True):
        result = where(np.asarray(condition), choice, result)
    return _laid_out(result)


@composite(np.choose)
def choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Any:
    """numpy.choose: element by element, the choice of that number."""
    count, index = len(choices), np.asarray(a)
    if mode == "raise" and ((index < 0) | (index >= count)).any():
        raise ValueError(
            f"np.choose: indices from {index.min()} to {index.max()}, but {count} choices; use mode='wrap' or "
            "mode='clip'"
        )
    index = index % count if mode == "wrap" else np.clip(index, 0, count - 1)
    options = _alike([choices[k] for k in range(count)])
    result = where(index == 0, options[0], options[-1])
    for k in range(1, count - 1):
        result = where(index == k, options[k], result)
    return _laid_out(result) if result.shape else result[()]


def _laid_out(result: Any) -> Any:
    """The result in C order, as NumPy lays out what it selects."""
    return np.copy(result, order="C") if result.shape and not result.flags.c_contiguous else result


def _alike(choices: Sequence[Any]) -> list[Any]:
    """The choices as arrays of the dtype that they have in common, which a Python number, traced or not, takes from
    the others."""
    arrays = [as_array(c) for c in choices]
    numbers = (Handle, int, float, complex)
    dtype = np.result_type(
        *(promoting(c if isinstance(c, numbers) else a) for c, a in zip(choices, arrays, strict=True))
    )
    return [c if c.dtype == dtype else c.astype(dtype) for c in arrays]


# ----------------------------------------------------------------------------------------------------------------- clip
# min(max(x, low), high): where low > high, everything is high. Between the bounds, bounds included, x has the slope 1.
# Elsewhere the bound has it. np.greater, not >, because both bounds may be complex numbers of Python, which only NumPy
# orders.
clamp = primitive(
    CLIP,
    name="clamp",
    operands=("x", "low", "high"),
    elementwise=True,
    serves=(CLIP,),
    masks=True,
    vjps={
        "x": lambda ct, x, low, high: where_true(ct, ~((x < low) | (x > high) | np.greater(low, high))),
        "low": lambda ct, x, low, high: where_true(ct, (x < low) & np.less_equal(low, high)),
        "high": lambda ct, x, low, high: where_true(ct, (x > high) | np.greater(low, high)),
    },
)
at_least = primitive(
    np.maximum,
    name="at_least",
    operands=("x", "low"),
    elementwise=True,
    masks=True,
    vjps={"x": lambda ct, x, low: where_true(ct, ~(x < low)), "low": lambda ct, x, low: where_true(ct, x < low)},
)
at_most = primitive(
    np.minimum,
    name="at_most",
    operands=("x", "high"),
    elementwise=True,
    masks=True,
    vjps={"x": lambda ct, x, high: where_true(ct, ~(x > high)), "high": lambda ct, x, high: where_true(ct, x > high)},
)


@composite(np.clip)
def clip(
    a: Any,
    a_min: Any = ABSENT,
    a_max: Any = ABSENT,
    out: Any = None,
    *,
    min: Any = ABSENT,
    max: Any = ABSENT,
    **options: Any,
) -> Any:
    """numpy.clip; either bound may be None, and both may be traced. Of a ufunc's keywords it takes dtype= and
    casting=."""
    a = as_array(a)
    if "where" in options:
        raise NotDifferentiableError(
            "np.clip of a tracer takes no where=; select around it: np.where(mask, np.clip(x, low, high), x)"
        )
    if a_min is ABSENT and a_max is ABSENT:
        a_min, a_max = (None if bound is ABSENT else bound for bound in (min, max))
    elif a_min is ABSENT or a_max is ABSENT:
        raise TypeError(f"clip() missing 1 required positional argument: {'a_min' if a_min is ABSENT else 'a_max'!r}")
    elif min is not ABSENT or max is not ABSENT:
        raise ValueError("np.clip got its bounds twice, as a_min, a_max and as min, max; pass one pair")
    if a_min is None and a_max is None:
        return np.positive(a, **options)
    if a_min is None:
        return np.minimum(a, a_max, **options) if options else at_most(a, a_max)
    if a_max is None:
        return np.maximum(a, a_min, **options) if options else at_least(a, a_min)
    return CLIP(a, a_min, a_max, **options) if options else clamp(a, a_min, a_max)


# ----------------------------------------------------------------------------------------------------------- nan_to_num
def _finite_part(ct: Any, x: Any) -> Any:
    """Ct where x is finite, part by part where it is complex; 0 where a number was put in."""
    if is_complex(x):
        return np.where(np.isfinite(x.real), ct.real, 0) + 1j * np.where(np.isfinite(x.imag), ct.imag, 0)
    return np.where(np.isfinite(x), ct, 0)


nan_to_num = primitive(
    lambda x, *, nan, posinf, neginf: np.nan_to_num(x, True, nan, posinf, neginf),
    name="nan_to_num",
    reach="place",
    masks=True,
    vjps={"x": _finite_part},
)


@composite(np.nan_to_num, name="numpy.nan_to_num")
def np_nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    """numpy.nan_to_num; with copy=False, x itself is written."""
    clean = nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf)
    if copy or not x.shape:
        return clean
    x[...] = clean
    return x


SELECTION: tuple[Primitive | Composite, ...] = (
    *(where, np_where, select, choose),
    *(clamp, at_least, at_most, clip),
    *(nan_to_num, np_nan_to_num),
)
