"""Sets: unique and its kin, union1d, intersect1d, setdiff1d, setxor1d.

Each picks values out of its operands. The cotangent of a value goes to the first element of that value, in the order of
the operands; in intersect1d that is one of the first operand. Indices, inverses and counts are plain.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.primitives.selecting.sorting import rises, stable_order
from pullback.primitives.shared.gather_scatter import put
from pullback.recording.handles import plain_value
from pullback.rules.declaration import Composite, Primitive, composite, primitive
from pullback.words.specs import ArraySpec


def _first_places(values: Any, line: Any) -> Any:
    """Where the values stand in the line. A value that occurs k times among them takes the first k elements of that
    value; so does NaN."""
    if not values.size:
        return np.zeros(0, np.intp)
    order, _ = stable_order(line, 0)
    ranked = line[order]
    if rises(values, 0):
        return order[np.searchsorted(ranked, values)]
    among, _ = stable_order(values, 0)
    wanted = values[among]
    repeats = np.arange(wanted.size) - np.searchsorted(wanted, wanted)
    places = np.empty(values.size, np.intp)
    places[among] = order[np.searchsorted(ranked, wanted) + repeats]
    return places


def _drawn(*arrays: Any, function: Callable[..., Any], options: tuple[tuple[str, Any], ...]) -> Any:
    values = function(*arrays, **dict(options))
    plain, line = plain_value(values), np.concatenate([np.ravel(plain_value(a)) for a in arrays])
    return values, {"places": _first_places(plain, line.astype(plain.dtype, copy=False))}


def _to_operand(ct: Any, places: Any, arrays_spec: tuple[ArraySpec, ...], index: int) -> Any:
    """What was drawn from this operand; the places of the others come before or after."""
    start, spec = sum(s.size for s in arrays_spec[:index]), arrays_spec[index]
    inside = (places >= start) & (places < start + spec.size)
    return put(ct[inside], places[inside] - start, shape=spec.shape, distinct=True)


drawn = primitive(_drawn, name="drawn_values", residuals=("places",), masks=True, vjps={"arrays": _to_operand})


# --------------------------------------------------------------------------------------------------------------- unique
def _rows(x: Any, *, axis: int, options: tuple[tuple[str, Any], ...]) -> Any:
    values = np.unique(x, axis=axis, **dict(options))
    plain = plain_value(x)
    first = np.unique(plain, return_index=True, axis=axis, **dict(options))[1]
    return values, {"places": np.arange(plain.size).reshape(plain.shape).take(first, axis)}


rows = primitive(
    _rows,
    name="unique_rows",
    residuals=("places",),
    masks=True,
    vjps={"x": lambda ct, places, x_spec: put(ct, places, shape=x_spec.shape, distinct=True)},
)


@composite(np.unique)
def unique(
    ar: Any, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False,
    axis: int | None = None,
    **options: Any,
) -> Any:  # fmt: skip
    """numpy.unique, with its options ``equal_nan`` and, since NumPy 2.3, ``sorted``."""
    flags = (return_index, return_inverse, return_counts)
    pairs = tuple(options.items())
    if axis is None or ar.ndim < 2:
        values = drawn(ar, function=np.unique, options=pairs if axis is None else (("axis", axis), *pairs))
    else:
        values = rows(ar, axis=axis, options=pairs)
    if not any(flags):
        return values
    # Its type takes no variables.
    return (values, *np.unique(plain_value(ar), *flags, axis, **options)[1:])  # type: ignore[call-overload]


def _unique_with(function: Callable[..., Any]) -> Composite:
    """np.unique_all, np.unique_counts or np.unique_inverse: NumPy's named tuple with traced values. They are sorted, as
    are all that NumPy makes together with indices, inverses or counts."""

    def unique_with(x: Any) -> Any:
        values = drawn(x, function=np.unique, options=(("equal_nan", False),))
        return function(plain_value(x))._replace(values=values)

    return composite(function, name=function.__name__)(unique_with)


@composite(np.unique_values)
def unique_values(x: Any) -> Any:
    """numpy.unique_values; not sorted since NumPy 2.3."""
    return drawn(x, function=np.unique_values, options=())


# ----------------------------------------------------------------------------------------------------------- operations
@composite(np.union1d)
def union1d(ar1: Any, ar2: Any) -> Any:
    """numpy.union1d."""
    return drawn(ar1, ar2, function=np.union1d, options=())


@composite(np.intersect1d)
def intersect1d(ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False) -> Any:
    """numpy.intersect1d."""
    values = drawn(ar1, ar2, function=np.intersect1d, options=(("assume_unique", assume_unique),))
    if not return_indices:
        return values
    return (values, *np.intersect1d(plain_value(ar1), plain_value(ar2), assume_unique, return_indices=True)[1:])


def _difference(function: Callable[..., Any]) -> Composite:
    """np.setdiff1d or np.setxor1d."""

    def difference(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
        return drawn(ar1, ar2, function=function, options=(("assume_unique", assume_unique),))

    return composite(function, name=function.__name__)(difference)


SETS: tuple[Primitive | Composite, ...] = (
    *(drawn, rows, unique, unique_values),
    *(_unique_with(np.unique_all), _unique_with(np.unique_counts), _unique_with(np.unique_inverse)),
    *(union1d, intersect1d, _difference(np.setdiff1d), _difference(np.setxor1d)),
)
