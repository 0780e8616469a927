"""The body of a loop as its executor calls it: closures frozen at entry, the carry checked."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CellType, FunctionType, MethodType
from typing import Any

import numpy as np
from attrs import define, field, frozen

from pullback.arrays import spec_of
from pullback.errors import StructureError
from pullback.handles import Handle, faithful_copy, freeze
from pullback.structures import flatten, map_leaves, unflatten
from pullback.tape import PAUSED

MAX_DEPTH = 8


@frozen
class Captive:
    """A frozen handle in the closure of a body, and the cell that it is in; None where it is in a structure."""

    handle: Any
    cell: CellType | None


def frozen_function(f: Any, made: list[Captive], depth: int = 0) -> Any:
    """``f`` with the present contents of its closure cells, and of those of the functions in them: later rebinding cannot reach it.

    Tracers in cells are frozen to the value they stand for now, and added to ``made``.
    """
    if isinstance(f, MethodType):
        return MethodType(frozen_function(f.__func__, made, depth), f.__self__)
    if not isinstance(f, FunctionType) or not f.__closure__ or depth > MAX_DEPTH:
        return f
    cells = []
    for cell in f.__closure__:
        try:
            content = cell.cell_contents
        except ValueError:
            cells.append(cell)  # empty: a function that names itself, bound later
            continue
        cells.append(cell if content is f else _frozen_cell(content, made, depth))
    copy_of = FunctionType(f.__code__, f.__globals__, f.__name__, f.__defaults__, tuple(cells))
    copy_of.__kwdefaults__ = f.__kwdefaults__
    copy_of.__dict__.update(f.__dict__)
    return copy_of


def _frozen_cell(content: Any, made: list[Captive], depth: int) -> CellType:
    cell = CellType()
    cell.cell_contents = _frozen_content(content, made, depth, cell)
    return cell


def _frozen_content(content: Any, made: list[Captive], depth: int, cell: CellType | None = None) -> Any:
    if isinstance(content, Handle):
        handle = freeze(content)
        if handle._tape.mode == PAUSED:  # it stands for its value, and may have ended when the function is called again
            return _frozen_content(_read_only(handle._value), made, depth, cell)
        made.append(Captive(handle, cell))
        return handle
    if isinstance(content, FunctionType | MethodType):
        return frozen_function(content, made, depth + 1)
    if isinstance(content, dict | list | tuple) and any(isinstance(leaf, Handle) for leaf in flatten(content)[0]):
        return map_leaves(lambda leaf: _frozen_content(leaf, made, MAX_DEPTH) if isinstance(leaf, Handle) else leaf, content)
    return content


def _read_only(value: Any) -> Any:
    """An array that a body may not write to, since it captures it; anything else as it is."""
    if isinstance(value, np.ndarray):
        value = value.view()
        value.flags.writeable = False
    return value


@define(eq=False)
class Body:
    """``run(k, leaves, x)`` calls the user's body on unflattened leaves and gives the new leaves and those of its per-step output.

    ``call(k, carry, x)`` returns ``(carry, y)``. ``name`` and ``what`` are for messages.
    """

    call: Callable[[Any, Any, Any], tuple[Any, Any]]
    name: str
    definition: Any
    captives: list[Captive] = field(factory=list)
    y_definition: Any = field(default=None, init=False)

    @contextmanager
    def on_values(self) -> Iterator[None]:
        """Within the block the cells of the closure hold values in the place of handles, so that the body runs at NumPy's own speed."""
        for each in self.captives:
            if each.cell is not None:
                each.cell.cell_contents = freeze(value) if isinstance(value := each.handle._value, Handle) else _read_only(value)
        try:
            yield
        finally:
            for each in self.captives:
                if each.cell is not None:
                    each.cell.cell_contents = each.handle

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
            message = f"{self.name}: step {k} returned a per-step output of structure {y_definition}, earlier steps {self.y_definition}"
            raise StructureError(message)
        return new, ys

    def require_same(self, before: list[Any], after: list[Any], k: int) -> None:
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


def as_before(before: list[Any], after: list[Any]) -> list[Any]:
    """The leaves after a step; a Python float stays one: a tracer over it gives float64, which would promote float32 in a later step."""
    return [float(new) if type(old) is float and type(new) is np.float64 else new for old, new in zip(before, after, strict=True)]


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
