"""prod, max, min and logaddexp of many elements, and ``reduce`` of their ufuncs and of np.add.

Each has two primitives. ``f`` reduces all elements; ``f_where`` takes ``initial`` and ``where`` as operands, too, and
reads nothing of the masked elements.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.primitives.reducing.sums import ADD, is_true, reduce_by, sum_, sum_where
from pullback.primitives.shared.axes import Axis, as_loop_reads, keep
from pullback.primitives.shared.gather_scatter import put
from pullback.primitives.shared.products_of_others import is_ordinary, loses_nothing, products_of_others
from pullback.rules.declaration import Composite, Primitive, composite, primitive
from pullback.words.specs import ArraySpec
from pullback.words.undocumented import ABSENT

MULTIPLY: Any = np.multiply.reduce


def _ufunc_reduce(ufunc: Any, plain: Primitive, general: Primitive, identity: float | None) -> Composite:
    """``ufunc.reduce`` by the primitives of :func:`reduce_by`."""

    def reduce(
        array: Any,
        axis: Axis = 0,
        dtype: Any = None,
        out: Any = None,
        keepdims: bool = False,
        initial: Any = ABSENT,
        where: Any = True,
    ) -> Any:
        params = {"axis": axis, "dtype": dtype, "keepdims": keepdims}
        if "dtype" not in plain.params:
            params.pop("dtype")
        array = array if plain.linear else as_loop_reads(array, dtype)
        return reduce_by(plain, general, identity, array, initial, where, **params)

    return composite(ufunc.reduce, name=f"{ufunc.__name__}.reduce")(reduce)


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
MANY_PLACES = 0.1
"""The part of all elements from which a pass over a mask takes less time than writing to places."""
FEW = 4096
"""Elements up to which it always does."""


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
    if x_spec.size <= FEW or places.size > MANY_PLACES * x_spec.size:
        return np.where(hit, share, 0)
    share = np.broadcast_to(share, x_spec.shape)[np.unravel_index(places, x_spec.shape)]
    return put(share, places, shape=x_spec.shape, distinct=True)


def shares(
    ct: Any, x: Any, initial: Any, where: Any, out: Any, x_spec: ArraySpec, axis: Axis, hit: Callable[[Any, Any], Any]
) -> tuple[Any, Any, Any]:
    """Which elements ``hit`` the extremum, whether ``initial`` does, and the share of each in the cotangent."""
    top = keep(out, x_spec.shape, axis)
    elements, start = hit(x, top) & where, hit(initial, top)
    winners = ADD(elements, axis, out.dtype, keepdims=True) + start
    return elements, start, keep(ct, x_spec.shape, axis) / np.maximum(winners, 1)


def _to_elements(ct: Any, x: Any, initial: Any, where: Any, out: Any, x_spec: ArraySpec, axis: Axis) -> Any:
    elements, _, share = shares(ct, x, initial, where, out, x_spec, axis, _hit)
    return np.where(elements, share, 0)


def _to_initial(ct: Any, x: Any, initial: Any, where: Any, out: Any, x_spec: ArraySpec, axis: Axis) -> Any:
    _, start, share = shares(ct, x, initial, where, out, x_spec, axis, _hit)
    return np.where(start, share, 0)


def _extremum(ufunc: Any, *functions: Any) -> tuple[Primitive, Primitive, Composite, Composite]:
    """The two primitives of maximum or minimum, NumPy's function, and ``ufunc.reduce``."""
    name = functions[0].__name__
    plain = primitive(
        lambda x, *, axis, keepdims: ufunc.reduce(x, axis, None, None, keepdims),
        name=f"reduce_{name}",
        reach="reduced",
        masks=True,
        vjps={"x": _shared},
    )
    general = primitive(
        lambda x, initial, where, *, axis, keepdims: ufunc.reduce(x, axis, None, None, keepdims, initial, where),
        name=f"reduce_{name}_where",
        reach="reduced",
        nondiff=("where",),
        masks=True,
        vjps={"x": _to_elements, "initial": _to_initial},
    )

    def function(
        a: Any, axis: Axis = None, out: Any = None, keepdims: Any = False, initial: Any = ABSENT, where: Any = True
    ) -> Any:
        return reduce_by(plain, general, None, a, initial, where, axis=axis, keepdims=is_true(keepdims))

    made = composite(*functions, name=name, direct=plain, how={"axis": None, "keepdims": False})(function)
    return plain, general, made, _ufunc_reduce(ufunc, plain, general, None)


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
    a = as_loop_reads(a, dtype)
    return reduce_by(prod, prod_where, 1, a, initial, where, axis=axis, dtype=dtype, keepdims=is_true(keepdims))


EXTREMA_AND_PRODUCTS: tuple[Primitive | Composite, ...] = (
    _ufunc_reduce(np.add, sum_, sum_where, 0),
    *(prod, prod_where, np_prod, _ufunc_reduce(np.multiply, prod, prod_where, 1)),
    *_extremum(np.maximum, np.max, np.amax),
    *_extremum(np.minimum, np.min, np.amin),
    *(logaddexp_reduce, logaddexp_where, _ufunc_reduce(np.logaddexp, logaddexp_reduce, logaddexp_where, -np.inf)),
)
