"""Gather and scatter: elements picked out of an array by their places (:data:`pick`), and cotangents put back there
(:data:`put`). Sorting, quantiles and sets use them.

A place is the number of an element in C order. Both primitives are linear, and each is the rule of the other.
"""

from math import prod
from typing import Any

import numpy as np

from pullback.rules.declaration import Primitive, primitive
from pullback.words.specs import ArraySpec

COUNTED = "efdFD"
"""The dtypes that ``np.bincount`` adds up without a loss: it works in float64."""


def _put(values: Any, places: Any, *, shape: tuple[int, ...], distinct: bool) -> Any:
    """An array of ``shape`` with the sum of the values at each place; ``distinct`` says that no place is named
    twice."""
    size, dtype = prod(shape), values.dtype
    if distinct or dtype.char not in COUNTED:
        out = np.zeros(shape, dtype)  # of its own shape from the start: a gradient that is a view would be copied
        line = out.reshape(-1)
        if distinct:
            line[places] = values
        else:
            np.add.at(line, places, values)
        return out
    line, flat = places.reshape(-1), values.reshape(-1)
    if dtype.kind == "f":
        return np.bincount(line, flat, size).astype(dtype, copy=False).reshape(shape)
    out = np.empty(size, dtype)
    out.real, out.imag = np.bincount(line, flat.real, size), np.bincount(line, flat.imag, size)
    return out.reshape(shape)


put = primitive(
    _put,
    name="put_at_places",
    nondiff=("places",),
    linear=("values",),
    vjps={"values": lambda ct, places, distinct: pick(ct, places, distinct=distinct)},
)
pick: Primitive = primitive(
    lambda x, places, *, distinct: np.reshape(x, -1)[places],
    name="pick_places",
    nondiff=("places",),
    linear=("x",),
    vjps={"x": lambda ct, places, x_spec, distinct: put(ct, places, shape=x_spec.shape, distinct=distinct)},
)


def places_along(order: Any, axis: int) -> Any:
    """Places for indices along one axis, such as ``np.argsort`` gives; ``axis`` is that of ``order``, whose shape is
    the array's."""
    if order.ndim == 1:
        return order
    return np.take_along_axis(np.arange(order.size).reshape(order.shape), order, axis)


def put_back(ct: Any, places: Any, x_spec: ArraySpec) -> Any:
    """The cotangent of an array of which distinct elements were taken: each gets its own, the others 0."""
    return put(ct, places, shape=x_spec.shape, distinct=True)


PICKING: tuple[Primitive, ...] = (put, pick)
