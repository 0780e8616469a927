"""What is known of a value in a loop before it runs: how it depends on the inputs, and how many axes it has."""

from typing import Final, NamedTuple

WHOLE: Final = 0
"""An integer, of Python's or NumPy's: what may be an index."""
PLAIN: Final = 1
"""A number, or an array of numbers, that depends on no input."""
ACTIVE: Final = 2
"""What may depend on the inputs."""


class LoopKind(NamedTuple):
    """How a value depends on the inputs, and how many axes it has."""

    level: int
    rank: int


NOTHING: Final = LoopKind(WHOLE, 0)
"""The kind of a name that has no value."""
FLAG: Final = "_pb_a_"
"""The prefix of variables that tell, as the loop runs, what its branches decide: whether a number depends on the inputs
by now, and whether an array that does has been written."""


class RefusedError(Exception):
    """A loop cannot be written backwards: why not."""


def joined(one: LoopKind | None, other: LoopKind) -> LoopKind:
    """The kind of a name that stands for values of both."""
    if one is None:
        return other
    if one.rank != other.rank:
        raise RefusedError("a name stands for arrays of different numbers of axes")
    return LoopKind(max(one.level, other.level), one.rank)
