"""Where each marked step begins on a tape that holds all of them."""

from typing import Any

from attrs import define, field


@define(eq=False)
class MarkedSteps:
    """Steps of a trace that holds all of them, as they were marked."""

    cuts: list[int]
    """The first record of each; at last, where they end."""
    staging: str
    threads: int
    runs: list[list[int]] = field(factory=list, init=False)
    """Begin and end of stretches of steps each of which was written by the function that has written the one before, on
    the same values as counted from the step, or from before all steps."""
    way: Any = field(default=None, init=False)
    """The function by which the last of them was written, and what it worked on."""

    def wrote(self, start: int, stop: int, way: Any) -> None:
        """A step has been written in such a way."""
        if self.runs and self.runs[-1][1] == start and self.way == way:
            self.runs[-1][1] = stop
        else:
            self.runs.append([start, stop])
            self.way = way

    def n_alike(self, stop: int, length: int) -> int:
        """How many steps before record ``stop``, of so many records each, were written in one way."""
        return next(((stop - first) // length for first, end in reversed(self.runs) if first < stop <= end), 0)
