"""The tape, the hot form of a recorded program: an append-only list of tuples in single-assignment order.

A record is ``(opcode, ids of active operands..., saved values..., specs..., params?, site)``; its own id is its place in the list, so
the list is the topological order. It holds integers and arrays only: nothing the garbage collector must walk, and never
a handle of its own tape (a cycle would keep every tape alive).
"""

import ast
import sys
from bisect import bisect_right
from collections.abc import Sequence
from os import sep
from threading import Lock, get_ident
from types import CodeType, FrameType
from typing import Any, Final

import numpy as np
from attrs import define

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

FORWARD: Final = 5
"""Forward mode: operations on handles compute tangents and append nothing."""

MODE_NAMES = ("recording", "replayable", "paused", "closed", "captured", "forward")


@define
class Kept:
    """The small plain array that was copied last, as it was then, and its copy: a loop that reads one array again and again shares it."""

    array: Any
    spec: Any
    data: bytes
    copy: Any


NOTHING_KEPT: Final = Kept(None, None, b"", None)


class Tape:
    """Records of one trace, with what the trace knows of itself. ``mode`` is falsy on the hot path and only there."""

    __slots__ = (
        "__weakref__", "captures", "chain", "code", "constants", "enclosing", "inner", "kept", "kinds",
        "ledger", "level", "marks", "masks", "mode", "n_inputs", "outer", "overlapping", "records",
        "repeatable", "sites", "tangents", "thread", "trap",
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
        self.masks = False
        """Whether some elements were left out (``where``, ``clip``, a mask as a key): their cotangents are 0 and stay 0."""
        self.marks: Any = None
        """Which values have been marked by name (``naming.Marks``); None before the first."""
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
        self.tangents: Any = None
        """While FORWARD: what computes the tangents."""
        self.overlapping: frozenset[Any] = frozenset()
        """Ids of inputs that share memory with another input: they may not be written."""
        self.repeatable = False
        """Whether the reverse pass may be run again (a ``pull`` that stays)."""
        self.trap: Any = None
        """What looks at every result while a trap is in force; the mode is not RECORDING then."""
        self.kept = NOTHING_KEPT
        self.code: CodeType | None = None
        """The user's code that made the last record, and the ids of its call sites by instruction offset."""
        self.sites: Sequence[int] = ()

    def meet(self, other: "Tape") -> None:
        """A handle of ``other`` is a value here: cotangents will be handles of the innermost trace met, which meets the others."""
        before = self.outer
        if before is None:
            self.outer = other
        elif other is not before:
            inner, around = (other, before) if other.level > before.level else (before, other)
            inner.meet(around)
            self.outer = inner
        if self.mode == REPLAYABLE:
            self.chain.met()

    def close(self) -> None:
        """End the trace: every later use of one of its handles raises."""
        self.mode = CLOSED
        self.constants = {}
        self.kept = NOTHING_KEPT

    def __repr__(self) -> str:
        return f"<Tape of {len(self.records)} records, level {self.level}, {MODE_NAMES[self.mode]}>"


_SITES: list[tuple[CodeType, int]] = []
"""Code objects that made a record, each with the first of its call sites: one for every instruction offset."""
_STARTS: list[int] = []
_SITES_OF: dict[int, Sequence[int]] = {}
"""Id of a code object in ``_SITES``, which keeps it alive so that its id stays its own, to its call sites by instruction offset."""
_LOCK = Lock()
_HERE = __file__.rpartition(sep)[0]
_LIBRARY = (_HERE, np.__file__.rpartition(sep)[0], "/pullback_linalg/", "/pullback_fft/", "-packages/scipy/")
_STANDARD = ast.__file__.rpartition(sep)[0] + sep
_USER = (f"{_HERE}{sep}demos{sep}",)
_KNOWN_FILES: dict[str, bool] = {}


def intern_site(frame: FrameType) -> int:
    """The id of the user's call site at or above ``frame``: frames inside pullback, its plugins and NumPy are passed over."""
    while True:
        sites = _SITES_OF.get(id(frame.f_code))
        if sites is None:
            sites = _sites_of(frame.f_code)
        if sites:
            return sites[frame.f_lasti]
        if frame.f_back is None:
            return 0  # no user is on the stack
        frame = frame.f_back


def find_site(tape: Tape, frame: FrameType) -> int:
    """As :func:`intern_site`; the tape remembers the sites of the user's code, so that its next call there finds its own at once."""
    sites = _sites_of(frame.f_code)
    if not sites:
        return intern_site(frame)
    tape.code, tape.sites = frame.f_code, sites
    return sites[frame.f_lasti]


def site_here(depth: int) -> int:
    """The site of the caller ``depth`` frames above this function's caller."""
    return intern_site(sys._getframe(depth + 1))


def _sites_of(code: CodeType) -> Sequence[int]:
    """The call sites of a code object by instruction offset; none for a library's."""
    sites = _SITES_OF.get(id(code))
    if sites is None:
        with _LOCK:
            if id(code) not in _SITES_OF:
                start = _STARTS[-1] + len(_SITES[-1][0].co_code) if _SITES else 0
                _SITES.append((code, start))
                _STARTS.append(start)
                _SITES_OF[id(code)] = () if _is_library(code.co_filename) else list(range(start, start + len(code.co_code)))
            sites = _SITES_OF[id(code)]
    return sites


def _is_library(filename: str) -> bool:
    known = _KNOWN_FILES.get(filename)
    if known is None:
        inside = any(part in filename for part in _LIBRARY) or filename.startswith("<pullback")
        inside = inside or (filename.startswith(_STANDARD) and "-packages" not in filename)
        known = _KNOWN_FILES[filename] = inside and not any(part in filename for part in _USER)
    return known


def site_code(site: int) -> tuple[CodeType, int]:
    """The code object of a call site, and the offset of its instruction."""
    code, first = _SITES[bisect_right(_STARTS, site) - 1]
    return code, site - first


def site_line(site: int) -> tuple[str, int]:
    """File and line of a call site."""
    code, offset = site_code(site)
    for start, stop, line in code.co_lines():
        if start <= offset < stop and line is not None:
            return code.co_filename, line
    return code.co_filename, code.co_firstlineno


def site_text(site: int) -> str:
    """``file:line`` of a call site, as error messages print it."""
    filename, line = site_line(site)
    return f"{filename}:{line}"
