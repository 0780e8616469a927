"""The body of a loop as its executor calls it: closures frozen at entry, the carry checked."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CellType, FunctionType, MethodType
from typing import Any

import numpy as np
from attrs import define, field

from pullback.arrays import spec_of
from pullback.errors import StructureError
from pullback.handles import Handle, faithful_copy, freeze, plain_value, read_only
from pullback.structures import flatten, map_leaves, unflatten
from pullback.tape import PAUSED

MAX_DEPTH = 8


def frozen_function(f: Any, made: list[Any], cells: list[CellType]) -> Any:
    """``f`` with the present contents of its closure cells and defaults, and of the functions in them: later rebinding cannot reach it.

    Tracers in cells are frozen to the value they stand for now; the frozen ones are added to ``made``, and the
    cells that hold them to ``cells``.
    """

    def put(content: Any) -> Any:
        while isinstance(content, Handle):
            frozen = freeze(content)
            if frozen._tape.mode != PAUSED:
                made.append(frozen)
                return frozen
            content = read_only(frozen._value)  # it stands for its value, and may have ended when the function is called again
        return content

    return _frozen(f, put, cells, 0)


def detached_function(f: Any, keep: Callable[[Any], Any]) -> Any:
    """``f`` for a call after the trace: in its cells and defaults ``keep(array)`` for a plain array, and for a tracer its plain value."""

    def put(content: Any) -> Any:
        if isinstance(content, Handle):
            return read_only(plain_value(freeze(content)))
        return keep(content) if type(content) is np.ndarray else content

    return _frozen(f, put, [], 0)


def _frozen(f: Any, put: Callable[[Any], Any], of_handles: list[CellType], depth: int) -> Any:
    if isinstance(f, MethodType):
        return MethodType(_frozen(f.__func__, put, of_handles, depth), f.__self__)
    if not isinstance(f, FunctionType) or not (f.__closure__ or f.__defaults__ or f.__kwdefaults__) or depth > MAX_DEPTH:
        return f
    cells = []
    for cell in f.__closure__ or ():
        try:
            content = cell.cell_contents
        except ValueError:
            cells.append(cell)  # empty: a function that names itself, bound later
            continue
        cells.append(cell if content is f else CellType(_frozen_content(content, put, of_handles, depth)))
        if content is not f and isinstance(cells[-1].cell_contents, Handle):
            of_handles.append(cells[-1])
    defaults = tuple(_frozen_content(value, put, of_handles, depth) for value in f.__defaults__ or ())
    copy_of = FunctionType(f.__code__, f.__globals__, f.__name__, defaults, tuple(cells))
    copy_of.__kwdefaults__ = {name: _frozen_content(value, put, of_handles, depth) for name, value in (f.__kwdefaults__ or {}).items()}
    copy_of.__dict__.update(f.__dict__)
    return copy_of


def _frozen_content(content: Any, put: Callable[[Any], Any], of_handles: list[CellType], depth: int) -> Any:
    if isinstance(content, FunctionType | MethodType):
        return _frozen(content, put, of_handles, depth + 1)
    if isinstance(content, dict | list | tuple) and any(isinstance(leaf, Handle) for leaf in flatten(content)[0]):
        return map_leaves(lambda leaf: put(leaf) if isinstance(leaf, Handle) else leaf, content)
    return put(content)


@define(eq=False)
class Body:
    """``run(k, leaves, x)`` calls the user's body on unflattened leaves and gives the new leaves and those of its per-step output.

    ``call(k, carry, x)`` returns ``(carry, y)``. ``name`` and ``what`` are for messages.
    """

    call: Callable[[Any, Any, Any], tuple[Any, Any]]
    name: str
    definition: Any
    cells: list[CellType] = field(factory=list)
    """The cells of its closure that hold handles."""
    y_definition: Any = field(default=None, init=False)

    @contextmanager
    def on_values(self) -> Iterator[None]:
        """Within the block the cells of the closure hold values in the place of handles, so that the body runs at NumPy's own speed."""
        handles = [cell.cell_contents for cell in self.cells]
        for cell, handle in zip(self.cells, handles, strict=True):
            value = handle._value
            cell.cell_contents = freeze(value) if isinstance(value, Handle) else read_only(value)
        try:
            yield
        finally:
            for cell, handle in zip(self.cells, handles, strict=True):
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
