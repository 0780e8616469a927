"""The tape, the hot form of a recorded program: an append-only list of tuples in single-assignment order.

A record is ``(opcode, ids of active operands..., saved values..., specs..., params?, site)``; its own id is its place in the list, so
the list is the topological order. It holds integers and arrays only: nothing the garbage collector must walk, and never
a handle of its own tape (a cycle would keep every tape alive).
"""

import sys
from pathlib import Path
from threading import get_ident
from types import CodeType, FrameType
from typing import Any, Final

import numpy as np

RECORDING: Final = 0
"""Save-all: a record holds the declared values."""
REPLAYABLE: Final = 1
"""A policy may drop the saved values: what re-executes each record is written beside it."""
PAUSED: Final = 2
"""Operations on handles run on their values and give plain arrays."""
CLOSED: Final = 3
"""The trace has ended."""
CAPTURED: Final = 4
"""A loop body is being recorded on a tape of its own: handles of this one become inputs of that one, ``inner``."""

MODE_NAMES = ("recording", "replayable", "paused", "closed", "captured")


class Tape:
    """Records of one trace, with what the trace knows of itself. ``mode`` is falsy on the hot path and only there."""

    __slots__ = (
        "__weakref__", "captures", "chain", "constants", "copies_constants", "enclosing", "inner", "kinds", "ledger", "level", "mode", "n_inputs", "outer", "overlapping", "records",
        "repeatable", "thread",
    )  # fmt: skip

    def __init__(self, level: int, kinds: Any) -> None:
        self.kinds = kinds
        """The handle classes of this trace (see ``handles.Kinds``)."""
        self.records: list[tuple[Any, ...] | None] = []
        self.mode = RECORDING
        self.level = level
        self.thread = get_ident()
        self.outer: Tape | None = None
        """The tape whose handles are values here: then cotangents are handles too."""
        self.n_inputs = 0
        self.constants: dict[Any, Any] = {}
        """Copies of plain arrays that a pullback reads, by place in memory; shared while equal."""
        self.captures: dict[int, tuple[int, Any]] | None = None
        """For the tape of a loop's step: id in the enclosing tape to the id and value that stand for it here."""
        self.enclosing: Tape | None = None
        """For the tape of a loop's step: the tape the loop is an operation of."""
        self.inner: Tape | None = None
        """While CAPTURED: the tape of the step being recorded."""
        self.ledger: Any = None
        """Where loops of this trace book what they hold."""
        self.chain: Any = None
        """What governs the records made while REPLAYABLE: it decides where they are cut."""
        self.overlapping: frozenset[int] = frozenset()
        """Ids of inputs that share memory with another input: they may not be written."""
        self.repeatable = False
        """Whether the reverse pass may be run again (a ``pull`` that stays)."""
        self.copies_constants = True
        """False where no user code can run between the record of a plain array and its use by a pullback."""

    def close(self) -> None:
        """End the trace: every later use of one of its handles raises."""
        self.mode = CLOSED
        self.constants = {}

    def __repr__(self) -> str:
        return f"<Tape of {len(self.records)} records, level {self.level}, {MODE_NAMES[self.mode]}>"


_SITES: list[tuple[CodeType, int]] = []
_SITE_IDS: dict[tuple[int, int], int] = {}
RECENT: dict[int, tuple[CodeType, int]] = {}
"""Instruction offset to (code, site) of the last call seen there: one dict lookup and one identity test on the hot path."""
_HERE = str(Path(__file__).parent)
_LIBRARY = (_HERE, str(Path(np.__file__).parent), "/pullback_linalg/", "/pullback_fft/")
_USER = (f"{_HERE}/demos/",)
_KNOWN_FILES: dict[str, bool] = {}


def intern_site(frame: FrameType) -> int:
    """The id of the user's call site at or above ``frame``: frames inside pullback, its plugins and NumPy are passed over."""
    start = frame
    while _is_library(frame.f_code.co_filename) and frame.f_back is not None:
        frame = frame.f_back
    code, offset = frame.f_code, frame.f_lasti
    key = (id(code), offset)
    site = _SITE_IDS.get(key)
    if site is None:
        site = _SITE_IDS[key] = len(_SITES)
        _SITES.append((code, offset))  # keeps the code alive, so its id stays its own
    if frame is start:
        RECENT[offset] = (code, site)
    return site


def site_here(depth: int) -> int:
    """The site of the caller ``depth`` frames above this function's caller."""
    frame = sys._getframe(depth + 1)
    seen = RECENT.get(frame.f_lasti)
    if seen is not None and seen[0] is frame.f_code:
        return seen[1]
    return intern_site(frame)


def _is_library(filename: str) -> bool:
    known = _KNOWN_FILES.get(filename)
    if known is None:
        inside = any(part in filename for part in _LIBRARY) or filename.startswith("<pullback")
        known = _KNOWN_FILES[filename] = inside and not any(part in filename for part in _USER)
    return known


def site_line(site: int) -> tuple[str, int]:
    """File and line of a call site."""
    code, offset = _SITES[site]
    for start, stop, line in code.co_lines():
        if start <= offset < stop and line is not None:
            return code.co_filename, line
    return code.co_filename, code.co_firstlineno


def site_text(site: int) -> str:
    """``file:line`` of a call site, as error messages print it."""
    filename, line = site_line(site)
    return f"{filename}:{line}"
