"""The body of a loop as its executor calls it: on handles or on values, the carry checked."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CellType
from typing import Any

import numpy as np
from attrs import define, field

from pullback.recording.copies import faithful_copy
from pullback.recording.handles import Handle, freeze, plain_value, read_only
from pullback.recording.tape import CAPTURED, PAUSED
from pullback.words.digests import digest
from pullback.words.errors import ReplayError, StructureError
from pullback.words.specs import spec_of
from pullback.words.structures import flatten, unflatten


@define(eq=False)
class Body:
    """``run(k, leaves, x)`` calls the user's body on unflattened leaves and gives the new leaves and those of its
    per-step output.

    ``call(k, carry, x)`` returns ``(carry, y)``. ``name`` is for messages.
    """

    call: Callable[[Any, Any, Any], tuple[Any, Any]]
    name: str
    definition: Any
    cells: list[CellType] = field(factory=list)
    """The cells of its closure that hold handles."""
    y_definition: Any = field(default=None, init=False)

    @contextmanager
    def on_values(self) -> Iterator[None]:
        """Within the block the cells of the closure hold values in the place of handles, so that the body runs at
        NumPy's own speed.

        Those of a trace that goes on meanwhile, around the one that the loop is an operation of, stay: it
        differentiates what is computed.
        """
        held = [(cell, cell.cell_contents) for cell in self.cells]
        held = [(cell, handle) for cell, handle in held if handle._tape.mode in (PAUSED, CAPTURED)]
        for cell, handle in held:
            value = handle._value
            cell.cell_contents = freeze(value) if isinstance(value, Handle) else read_only(value)
        try:
            yield
        finally:
            for cell, handle in held:
                cell.cell_contents = handle

    def run(self, k: Any, leaves: list[Any], x: Any) -> tuple[list[Any], list[Any]]:
        """One step. Raises :class:`StructureError` where the carry changes its structure, a shape or a dtype."""
        carry, y = self.call(k, unflatten(self.definition, leaves), x)
        new, definition = flatten(carry)
        if definition != self.definition:
            message = (
                f"{self.name}: the carry had structure {self.definition} and step {k} returned {definition}; return "
                f"what came in, same structure"
            )
            raise StructureError(message)
        ys, y_definition = flatten(y)
        if self.y_definition is None:
            self.y_definition = y_definition
        elif y_definition != self.y_definition:
            message = (
                f"{self.name}: step {k} returned a per-step output of structure {y_definition}, earlier steps "
                f"{self.y_definition}; return one structure from every step"
            )
            raise StructureError(message)
        return new, ys

    def require_same_bytes(self, wanted: tuple[bytes, ...], leaves: list[Any], happened: str, where: str) -> None:
        """Raise :class:`ReplayError` where leaves of a re-run have not the digests ``wanted``; it says what
        ``happened``, and ``where``."""
        wrong = [str(k) for k, (a, b) in enumerate(zip(wanted, digests(leaves), strict=True)) if a != b]
        if wrong:
            message = (
                f"{self.name}: {happened}, in leaf {', '.join(wrong)} of {where}. The body reads something that "
                "changed in between: an array or object changed from outside, a global counter, a random generator "
                "that the loop cannot reach. Make it part of the state, or pass the array as an argument"
            )
            raise ReplayError(message)

    def require_same_specs(self, before: list[Any], after: list[Any], k: int) -> None:
        """Raise :class:`StructureError` where a leaf of the carry changes shape or dtype; a Python number may become
        what NumPy makes of it."""
        for number, (old, new) in enumerate(zip(before, after, strict=True)):
            if type(new) is type(old) is np.ndarray:
                if new.shape == old.shape and new.dtype == old.dtype:
                    continue
            elif not hasattr(old, "dtype") and np.shape(old) == getattr(new, "shape", ()):
                continue
            given, expected = spec_of(new), spec_of(old)
            if given != expected:
                message = (
                    f"{self.name}: leaf {number} of the carry is {expected} before step {k} and {given} after it; "
                    "a loop's carry keeps shape and dtype. Convert the initial value, or the result with .astype"
                )
                raise StructureError(message)


def digests(leaves: list[Any]) -> tuple[bytes, ...]:
    """Of the values of leaves, under whatever traces. A number is told by its value, be it Python's or NumPy's."""
    values = [plain_value(leaf) for leaf in leaves]
    return tuple(
        np.asarray(v).tobytes() if isinstance(v, int | float | complex | np.generic) else digest(v) for v in values
    )


def as_before(before: list[Any], after: list[Any]) -> list[Any]:
    """The leaves after a step; a Python float stays one: a tracer over it gives float64, which would promote float32
    in a later step."""
    return [
        float(new) if type(old) is float and type(new) is np.float64 else new
        for old, new in zip(before, after, strict=True)
    ]


def separate(leaves: list[Any]) -> list[Any]:
    """The leaves with no two sharing memory, so that a body that writes to one does not write to another."""
    seen: set[int] = set()
    apart = []
    for given in leaves:
        leaf = given
        if isinstance(leaf, np.ndarray) and (leaf.base is not None or id(leaf) in seen):
            leaf = faithful_copy(leaf)
        seen.add(id(leaf))
        apart.append(leaf)
    return apart
