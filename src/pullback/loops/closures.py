"""What a function closes over, replaced by what lasts until the function is called again."""

from collections.abc import Callable
from types import CellType, FunctionType, MethodType
from typing import Any

import numpy as np

from pullback.recording.handles import Handle, freeze, plain_value, read_only
from pullback.recording.tape import PAUSED
from pullback.words.structures import flatten, map_leaves

MAX_DEPTH = 8
"""How many functions within functions are followed."""


def frozen_function(f: Any, handles: list[Any], cells: list[CellType]) -> Any:
    """``f`` with the present contents of its closure cells and defaults, and of the functions in them: later rebinding
    cannot reach it.

    Tracers in cells are frozen to the value they stand for now; the frozen ones are added to ``handles``, and
    the cells that hold them to ``cells``.
    """

    def put(content: Any) -> Any:
        while isinstance(content, Handle):
            frozen = freeze(content)
            if frozen._tape.mode != PAUSED:
                handles.append(frozen)
                return frozen
            content = read_only(
                frozen._value
            )  # it stands for its value, and may have ended when the function is called again
        return content

    return _frozen(f, put, cells, 0)


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

    return _frozen(f, put, [], 0)


def _frozen(f: Any, put: Callable[[Any], Any], of_handles: list[CellType], depth: int) -> Any:
    if isinstance(f, MethodType):
        return MethodType(_frozen(f.__func__, put, of_handles, depth), f.__self__)
    if (
        not isinstance(f, FunctionType)
        or not (f.__closure__ or f.__defaults__ or f.__kwdefaults__)
        or depth > MAX_DEPTH
    ):
        return f
    cells = []
    for before in f.__closure__ or ():
        cell = before
        if filled(cell) and cell.cell_contents is not f:  # a function that names itself may be bound later
            cell = CellType(_frozen_content(cell.cell_contents, put, of_handles, depth))
            if isinstance(cell.cell_contents, Handle):
                of_handles.append(cell)
        cells.append(cell)
    defaults = tuple(_frozen_content(value, put, of_handles, depth) for value in f.__defaults__ or ())
    copy_of = FunctionType(f.__code__, f.__globals__, f.__name__, defaults, tuple(cells))
    copy_of.__kwdefaults__ = {
        name: _frozen_content(value, put, of_handles, depth) for name, value in (f.__kwdefaults__ or {}).items()
    }
    copy_of.__dict__.update(f.__dict__)
    return copy_of


def _frozen_content(content: Any, put: Callable[[Any], Any], of_handles: list[CellType], depth: int) -> Any:
    if isinstance(content, FunctionType | MethodType):
        return _frozen(content, put, of_handles, depth + 1)
    if isinstance(content, dict | list | tuple) and any(isinstance(leaf, Handle) for leaf in flatten(content)[0]):
        return map_leaves(put, content)
    return put(content)


def filled(cell: CellType) -> bool:
    """Whether a cell of a closure has been bound to something."""
    try:
        _ = cell.cell_contents
    except ValueError:
        return False
    return True
