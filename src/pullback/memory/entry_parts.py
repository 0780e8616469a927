"""An entry taken apart: its arrays, which go elsewhere, and a shell with a :class:`Part` in the place of each.

What is no plain array, or holds objects, stays in the shell as it is: numbers, handles of outer traces, opaque
residuals. So nothing is ever pickled. An array behind two leaves is one part.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import Factory, define, frozen

from pullback.words.specs import buffer_of


@frozen
class Part:
    """What stands in a shell for the place of array ``number`` of the entry."""

    number: int
    nbytes: int


@define(eq=False)
class Taken:
    """The arrays that were taken out of an entry, each once. Buffers whose ``id`` is among ``kept`` stay in it."""

    kept: frozenset[Any] = frozenset()
    arrays: list[np.ndarray[Any, Any]] = Factory(list)
    numbers: dict[int, int] = Factory(dict)

    def out(self, value: Any) -> Any:
        """The value with parts in the place of arrays, in tuples and lists at any depth."""
        kind = type(value)
        if kind is np.ndarray:
            if not value.nbytes or value.dtype.hasobject or (self.kept and id(buffer_of(value)) in self.kept):
                return value
            number = self.numbers.get(id(value))
            if number is None:
                number = self.numbers[id(value)] = len(self.arrays)
                self.arrays.append(value)
            return Part(number, value.nbytes)
        if kind is list or kind is tuple:
            return kind(map(self.out, value))
        return value


def put_in(value: Any, arrays: Sequence[Any]) -> Any:
    """The value with the arrays in the places of parts."""
    kind = type(value)
    if kind is Part:
        return arrays[value.number]
    if kind is list or kind is tuple:
        return kind(put_in(each, arrays) for each in value)
    return value


def held_bytes(value: Any) -> int:
    """Bytes of an array, wherever it is; nothing for anything else."""
    return value.nbytes if isinstance(value, np.ndarray | Part) else 0
