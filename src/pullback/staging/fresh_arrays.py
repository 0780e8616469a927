"""Arrays that leave a generated function, used again as soon as nobody has them."""

from sys import getrefcount
from typing import Any

import numpy as np

MOST_FRESH = 4
"""How many arrays of a kind are looked through."""


def _count_unused() -> int:
    """What is counted for an array that only such a list has."""
    arrays = [np.empty(1)]
    return max(getrefcount(arrays[k]) for k in range(1))


UNUSED = _count_unused()


class Fresh:
    """Arrays of one kind that leave a function: one that has come back, since nobody has it any more, or a new one."""

    __slots__ = ("_arrays", "_dtype", "_shape")

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        self._shape, self._dtype = shape, dtype
        self._arrays: list[Any] = []

    def __call__(self) -> Any:
        arrays = self._arrays
        for k in range(len(arrays)):
            if getrefcount(arrays[k]) <= UNUSED:
                return arrays[k]
        made = np.empty(self._shape, self._dtype)
        if len(arrays) < MOST_FRESH:
            arrays.append(made)
        return made
