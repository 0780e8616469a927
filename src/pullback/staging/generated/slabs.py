"""One large array for what the reverse reads of many steps in a row, in place of a small one for each.

Most of the time that a small new array takes goes into its pages, which the system hands out one by one; from 4 MB on
NumPy asks for large pages. The array is freed when nobody has a part of it any more: the last steps are reversed
first.
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from pullback.staging.generated.placing import Placement

NBYTES = 31 << 20
"""Bytes of a slab."""
LEAST = 1 << 22
"""Bytes from which the system is asked for large pages."""
LINE = 64
"""Bytes of a line of a cache, at which parts begin."""


def n_in_slab(plan: Placement, n_left: int, *, alone: bool = True) -> int:
    """The steps that a slab takes, where ``n_left`` come; 0 where arrays of their own are as good. Where they are not
    ``alone``, other stretches of steps come after they have been reversed: all slabs but the last are of one size
    then, so that a later one fits where one was."""
    nbytes = sum(_nbytes(kind) for kind, slot in zip(plan.fresh, plan.slots, strict=True) if slot)
    if not nbytes or nbytes >= LEAST:
        return 0
    n_steps = min(NBYTES // nbytes, n_left)
    if n_steps * nbytes < LEAST:
        return 0
    return n_steps if alone else min(n_left, -(-LEAST // nbytes))


def in_slab(
    plan: Placement, makers: Sequence[Callable[[], Any]], n_steps: int
) -> tuple[Sequence[Callable[[], Any]], np.ndarray[Any, Any] | None]:
    """The makers of what leaves a function, for so many calls, and the array of which those of slots hand out parts;
    for no calls the makers as they are."""
    if not n_steps:
        return makers, None
    each = [_nbytes(kind) if slot else 0 for kind, slot in zip(plan.fresh, plan.slots, strict=True)]
    memory, start = np.empty(n_steps * sum(each), np.uint8), 0
    found: list[Callable[[], Any]] = []
    for kind, maker, nbytes in zip(plan.fresh, makers, each, strict=True):
        if nbytes:
            shape, dtype = kind
            inner = np.empty((1, *shape), dtype).strides[1:]
            rows: Any = np.ndarray((n_steps, *shape), dtype, memory, start, (sum(each), *inner))
            maker = iter(rows).__next__  # noqa: PLW2901
        found.append(maker)
        start += nbytes
    return tuple(found), memory


def _nbytes(kind: tuple[tuple[int, ...], Any]) -> int:
    """Bytes of an array, in whole lines."""
    shape, dtype = kind
    return -(-prod(shape) * int(dtype.itemsize) // LINE) * LINE
