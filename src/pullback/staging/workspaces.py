"""The arrays that generated functions work in."""

from typing import Any

import numpy as np
from attrs import define, field

from pullback.memory.in_force import threads_in_force
from pullback.staging.fresh_arrays import Fresh
from pullback.staging.generated import Generated


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
