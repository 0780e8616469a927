"""Whether a run is of the program whose pattern is known: a pattern holds for as long as the operations stay what it
was found from.

It follows from the inputs' shapes, from the operations in their order and what each of them reads, and of values only
from constants that are indices, conditions, or factors in what is linear. These are noted in the run that finds the
pattern, and compared with in a later one, which follows nothing and so costs little more than a run of the function.
"""

from collections.abc import Mapping
from types import EllipsisType
from typing import Any

import numpy as np
from attrs import define, field

from pullback.rules.declaration import Primitive
from pullback.words.digests import digest

_THEMSELVES = (str, bytes, bool, int, type, np.dtype, np.ufunc, Primitive, EllipsisType, type(None))
_NUMBERS = (float, complex, np.generic)


class UntoldError(Exception):
    """Raised of an object of which nobody can say whether it is still what it was."""


@define(eq=False)
class NotedProgram:
    """The operations of one run, noted in order; where those of an earlier run are ``known``, compared with them."""

    known: tuple[Any, ...] | None = None
    entries: list[Any] = field(factory=list)
    count: int = 0
    same: bool = True
    """Whether all is as it was known so far; while nothing is, whether a later run can be compared with this one."""

    @property
    def complete(self) -> bool:
        """Whether the run was that of the known program, to its end."""
        return self.known is not None and self.same and self.count == len(self.known)

    def note(self, *parts: Any) -> int:
        """The number of an operation that follows from these parts."""
        number = self.count
        self.count += 1
        if not self.same:
            return number
        try:
            entry = told(parts)
        except UntoldError:
            self.same = False
            self.entries.clear()
            return number
        if self.known is None:
            self.entries.append(entry)
        else:
            self.same = number < len(self.known) and self.known[number] == entry
        return number

    def differs(self) -> None:
        """What cannot be compared has been met."""
        self.same = False
        self.entries.clear()


def told(x: Any) -> Any:
    """What is equal for equal constants or parameters, also of another run, and holds no array.

    Raises :class:`UntoldError` for an object that may have changed since.
    """
    if isinstance(x, _THEMSELVES):
        return type(x), x
    if isinstance(x, np.ndarray) and not x.dtype.hasobject:
        return digest(x)
    if isinstance(x, tuple | list):
        return type(x), tuple(map(told, x))
    if isinstance(x, _NUMBERS):
        return type(x), repr(x)
    if isinstance(x, slice):
        return slice, told(x.start), told(x.stop), told(x.step)
    if isinstance(x, Mapping):
        return tuple((name, told(value)) for name, value in x.items())
    raise UntoldError
