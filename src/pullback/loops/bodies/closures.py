"""Freezes what a function closes over, so that it is the same when the function is called again."""

from collections.abc import Callable, Iterator
from types import CellType, FunctionType, MethodType
from typing import Any

import numpy as np
from attrs import define, field

from pullback.recording.handles import Handle, freeze, plain_value, read_only
from pullback.recording.tape import PAUSED
from pullback.travelling.made_functions import MadeFunction, with_function
from pullback.words.structures import flatten, map_leaves
from pullback.words.undocumented import rebound_names

MAX_DEPTH = 8
"""How many functions within functions are followed."""


@define(eq=False)
class Frozen:
    """What freezing functions made: one new cell for each old one, however many functions share it."""

    handles: list[Any] = field(factory=list)
    """The frozen handles."""
    cells: dict[int, tuple[CellType, CellType]] = field(factory=dict)
    """The old and the new cell, by the identity of the old one."""
    changed: set[int] = field(factory=set)
    """The identities of cells that the functions bind anew (``nonlocal``): these stay, for all who share them."""

    lasting: list[CellType] = field(factory=list)
    """The new cells."""
    of_handles: list[CellType] = field(factory=list)
    """The new cells that hold handles."""

    def put(self, content: Any) -> Any:
        """A tracer as it is now; one that stands for its value only, as that value: its trace may have ended when the
        function is called again."""
        while isinstance(content, Handle):
            handle = freeze(content)
            if handle._tape.mode != PAUSED:
                self.handles.append(handle)
                return handle
            content = read_only(handle._value)
        return content


def frozen_function(f: Any, frozen: Frozen) -> Any:
    """``f`` with the present contents of its closure cells and defaults, and of the functions in them: later rebinding
    cannot reach it. What is made is noted in ``frozen``."""
    frozen.changed.update(_changed_cells(f, 0))
    return _frozen(f, frozen.put, frozen, ())


def detached_function(f: Any, keep: Callable[[Any], Any]) -> Any:
    """``f`` for a call after the trace: in its cells and defaults, and in the dicts, lists and tuples there,
    ``keep(array)`` for a plain array, and for a tracer its plain value."""

    def lasting(leaf: Any) -> Any:
        if isinstance(leaf, Handle):
            return read_only(plain_value(freeze(leaf)))
        return keep(leaf) if type(leaf) is np.ndarray else leaf

    def put(content: Any) -> Any:  # does not name itself: a cycle would keep the tape until the collector comes
        if isinstance(content, dict | list | tuple) and any(type(leaf) is np.ndarray for leaf in flatten(content)[0]):
            return map_leaves(lasting, content)
        return lasting(content)

    return _frozen(f, put, Frozen(), ())


def _changed_cells(f: Any, depth: int) -> Iterator[int]:
    """The cells that a function binds anew, or a function that it reaches through its cells."""
    f = f.__func__ if isinstance(f, MethodType) else f
    f = f.func if isinstance(f, MadeFunction) else f
    if not isinstance(f, FunctionType) or depth > MAX_DEPTH:
        return
    for name, cell in zip(f.__code__.co_freevars, f.__closure__ or (), strict=True):
        if name in rebound_names(f.__code__):
            yield id(cell)
        if filled(cell) and cell.cell_contents is not f:
            yield from _changed_cells(cell.cell_contents, depth + 1)


def _frozen(f: Any, put: Callable[[Any], Any], frozen: Frozen, within: tuple[Any, ...]) -> Any:
    if isinstance(f, MethodType):
        return MethodType(_frozen(f.__func__, put, frozen, within), f.__self__)
    if isinstance(f, MadeFunction):
        return with_function(f, _frozen(f.func, put, frozen, within))
    if (
        not isinstance(f, FunctionType)
        or not (f.__closure__ or f.__defaults__ or f.__kwdefaults__)
        or len(within) > MAX_DEPTH
    ):
        return f
    within = (*within, f)
    cells = tuple(_frozen_cell(cell, put, frozen, within) for cell in f.__closure__ or ())
    defaults = tuple(_frozen_content(value, put, frozen, within) for value in f.__defaults__ or ())
    copy_of = FunctionType(f.__code__, f.__globals__, f.__name__, defaults, cells)
    copy_of.__kwdefaults__ = {
        name: _frozen_content(value, put, frozen, within) for name, value in (f.__kwdefaults__ or {}).items()
    }
    copy_of.__dict__.update(f.__dict__)
    copy_of.__module__ = f.__module__
    return copy_of


def _frozen_cell(cell: CellType, put: Callable[[Any], Any], frozen: Frozen, within: tuple[Any, ...]) -> CellType:
    """The cell in the place of another. One that names a function around it stays: it may be bound later, and a copy
    would be a cycle."""
    if id(cell) in frozen.changed or not filled(cell) or any(cell.cell_contents is f for f in within):
        return cell
    if id(cell) not in frozen.cells:
        new = CellType(_frozen_content(cell.cell_contents, put, frozen, within))
        frozen.cells[id(cell)] = cell, new
        frozen.lasting.append(new)
        if isinstance(new.cell_contents, Handle):
            frozen.of_handles.append(new)
    return frozen.cells[id(cell)][1]


def _frozen_content(content: Any, put: Callable[[Any], Any], frozen: Frozen, within: tuple[Any, ...]) -> Any:
    if isinstance(content, FunctionType | MethodType | MadeFunction):
        return _frozen(content, put, frozen, within)
    if isinstance(content, dict | list | tuple) and any(isinstance(leaf, Handle) for leaf in _leaves(content)):
        return map_leaves(put, content)
    return put(content)


def _leaves(content: Any) -> list[Any]:
    try:
        return flatten(content)[0]
    except RecursionError:  # it holds itself, as a node that knows its parent: it is no structure, but watched
        return []


def filled(cell: CellType) -> bool:
    """Whether a cell of a closure has been bound to something."""
    try:
        _ = cell.cell_contents
    except ValueError:
        return False
    return True
