"""The per-step outputs of a loop function."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from attrs import define, field

from pullback.recording.handles import Handle
from pullback.words.specs import new_array, spec_of


@define(eq=False)
class Outputs:
    """The per-step outputs of ``n`` steps (None: unknown), stacked: written where a step runs for the first time."""

    n: int | None
    n_written: int = field(default=0, init=False)
    stacks: list[Any] = field(factory=list, init=False)
    comes: Callable[[int], object] = bool  # told the bytes that they will take, before they do

    def write(self, k: int, ys: Sequence[Any]) -> None:
        """Take the outputs of step ``k``: into buffers made at the first step, or lists of an outer trace's handles."""
        if k < self.n_written:
            return
        self.n_written += 1
        if k == 0:
            self.comes((self.n or 0) * sum(getattr(y, "nbytes", 8) for y in ys))
            self.stacks = [
                [] if isinstance(y, Handle) else new_array((self.n or 0, *np.shape(y)), spec_of(y).dtype) for y in ys
            ]
        for place, y in enumerate(ys):
            stack = self.stacks[place]
            if isinstance(y, Handle) and not isinstance(stack, list):
                stack = self.stacks[place] = list(stack[:k])  # an outer trace has come in after the first step
            if isinstance(stack, list):
                stack.append(y)
            else:
                stack[k] = y

    def taken(self) -> list[Any]:
        """The stacked arrays, which are given away."""
        stacks, self.stacks = self.stacks, []
        return [np.stack(stack) if isinstance(stack, list) else stack for stack in stacks]
