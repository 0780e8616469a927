"""The arrays that generated functions work in, and those that leave them, used again as soon as nobody has them."""

from sys import getrefcount
from typing import Any

import numpy as np
from attrs import define, field

from pullback.memory.in_force import threads_in_force
from pullback.staging.generated import Generated

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


@define(eq=False)
class Workspace:
    """The arrays that the functions of a stage work in, of one execution of a loop; ``steps`` are those of the loop."""

    steps: Any = None
    threads: int | None = None
    """None for the number in force when a function is called."""
    arrays: dict[str, tuple[tuple[Any, ...], tuple[Any, ...]]] = field(factory=dict)

    def of(self, generated: Generated) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The buffers, and the makers of what leaves, of one function."""
        found = self.arrays.get(generated.name)
        if found is None:
            plan = generated.plan
            buffers = tuple(None if kind is None else np.empty(*kind) for kind in plan.buffers)
            found = self.arrays[generated.name] = buffers, tuple(Fresh(*kind) for kind in plan.fresh)
        return ((*found[0], threads_in_force(self.threads)), found[1]) if generated.plan.divided else found
