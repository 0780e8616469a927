"""A step as it was recorded: what a stage is made from."""

from typing import Any

from attrs import define, field

from pullback.recording.tape import Tape
from pullback.shadow.operations import Operation, Result


@define(eq=False)
class Recorded:
    """A step that was recorded in the ordinary way, with what its shadow run wrote down: what a stage is made from."""

    tape: Tape
    operations: list[Operation]
    ranges: list[tuple[int, int]]
    inputs: list[Any]
    captured: list[tuple[int, Any]]
    constants: list[Any]
    kinds: list[Result | None]
    """Of the leaves of the state; None for one without derivative."""
    places: tuple[list[int | None], list[int | None]]
    """Records of the leaves that enter, and of those of ``xs``."""
    left: list[tuple[int, Any] | None]
    """Record and spec of each leaf and output that leaves, None where it does not depend on the inputs."""
    returned: list[Any]
    """Values of the leaves and outputs."""
    after: list[Any]
    """The state after the step, in which Python's numbers are such again."""
    masks: bool
    read: list[Any] = field(factory=list)
    """The values that were read while it ran, and what calls have given that have an effect."""
    ordered: list[Any] = field(factory=list)
    """The second of these."""

    @property
    def entered(self) -> list[int]:
        """Record of each input."""
        return [i for part in self.places for i in part if i is not None]
