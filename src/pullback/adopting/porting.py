"""The smallest patch that makes a file traceable without adoption, found by running it: the lines that make the buffers
into which traced values are written, and those that hand a traced number to ``math``."""

import ast
import difflib
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
from attrs import define, field, frozen

from pullback.adopting import watched
from pullback.adopting.importing import load_file
from pullback.adopting.namespaces import Namespace
from pullback.adopting.owning import COPIES
from pullback.recording.handles import Handle, is_array
from pullback.tracing.running import run_traced
from pullback.words.errors import InputFileError

WITH_LIKE = frozenset(
    "zeros ones empty full eye identity tri arange fromfunction array asarray asanyarray ascontiguousarray "
    "asfortranarray frombuffer fromiter loadtxt genfromtxt fromfile".split()
)
"""NumPy functions that take ``like=``."""


Span = tuple[int, int, int, int]
"""First line and column, last line and column of an expression."""
NOWHERE: Span = (0, 0, 0, 0)
"""The span of what the file does not make."""


@frozen
class Patch:
    """A unified diff, empty where nothing need be changed; the whole program with it; and what cannot be said so."""

    text: str
    program: str
    notes: tuple[str, ...]


@define
class Made:
    """An array that the program made, and where: the span of the expression, and what is traced there."""

    span: Span
    handle: Any
    likes: tuple[str, bool] | None
    """A traced name in scope, and whether it is an array."""
    numpy: str | None
    """The name of NumPy in the module."""
    elsewhere: str = ""
    """File and line, where it is another file."""


@define
class Notebook:
    """What is noted while the program runs."""

    path: str
    made: list[Made] = field(factory=list)
    calls: dict[Span, str] = field(factory=dict)
    """Spans of calls that were given traced numbers, to the function's name."""
    notes: dict[str, None] = field(factory=dict)

    def note_made(self, handle: Any, frame: FrameType) -> None:
        """An array has become a handle, in the expression that ``frame`` executes."""
        span = span_of(frame)
        if span is not None:
            where = "" if frame.f_code.co_filename == self.path else f"{frame.f_code.co_filename}:{span[0]}"
            self.made.append(Made(span, handle, traced_name(frame), numpy_name(frame), where))

    def note_call(self, name: str, frame: FrameType) -> None:
        """A function of Python's was given a traced number."""
        span = span_of(frame)
        if frame.f_code.co_filename == self.path and span is not None:
            self.calls[span] = name

    def note_argument(self, name: str, handle: Any, frame: FrameType) -> None:
        """An argument from outside."""
        self.made.append(Made(NOWHERE, handle, (f"{name!r} of {frame.f_code.co_name}", True), None))


def span_of(frame: FrameType) -> Span | None:
    """First line and column, last line and column of the expression that a frame executes."""
    positions = list(frame.f_code.co_positions())[frame.f_lasti // 2]
    line, last, column, end = positions
    return None if None in positions else (line or 0, column or 0, last or 0, end or 0)


def traced_name(frame: FrameType) -> tuple[str, bool] | None:
    """A name of the function that stands for a traced value, an array if there is one."""
    found = [(n, is_array(x)) for n, x in frame.f_locals.items() if isinstance(x, Handle) and x._id is not None]
    ordered = sorted(found, key=lambda pair: not pair[1])
    return ordered[0] if ordered else None


def numpy_name(frame: FrameType) -> str | None:
    """The name of NumPy in the module of a frame."""
    for name, given in frame.f_globals.items():
        if isinstance(given, Namespace) and given.__name__ == "numpy":
            return name
    return None


def ported(path: str, name: str, arguments: Callable[[Any], tuple[tuple[Any, ...], tuple[int, ...]]]) -> Patch:
    """The patch for function ``name`` of a file, called with what ``arguments`` gives for it."""
    file = Path(path).absolute()
    if not file.is_file():
        raise InputFileError(f"there is no file {path}; write the path to a Python file, then a colon and the function")
    module = load_file(f"{COPIES}.ported_{file.stem}", str(file), beside=str(file.parent))
    function = getattr(module, name, None)
    if not callable(function):
        raise InputFileError(f"{path} defines no function {name}; name one that stands at its top level")
    args, argnums = arguments(function)
    notebook = Notebook(str(file))
    with watched.watching(notebook):
        run_traced(function, args, {}, argnums, allow_int=False, policy=None, ledger=None)
    return written(notebook, path, file.read_text("utf-8"))


def written(notebook: Notebook, path: str, text: str) -> Patch:
    """The patch, from what was noted."""
    values = _assigned(text)
    edits: dict[Span, str] = {}
    notes = dict(notebook.notes)
    for made in notebook.made:
        if made.handle._id is None:
            continue
        if made.elsewhere:
            notes[f"{made.elsewhere} makes a buffer into which traced values are written: port that file, too"] = None
        elif made.span == NOWHERE:
            given = "" if made.likes is None else made.likes[0]
            notes[f"the argument {given} is written to: pass an array of the trace, or differentiate by it"] = None
        elif made.likes is None:
            notes[
                f"no traced value is in scope at {path}:{made.span[0]}, which makes a buffer: hand one in, and add 0 "
                "times it"
            ] = None
        else:
            span = values.get(made.span, made.span)
            edits[span] = _edited(made, _segment(text, span), alone=span in values.values())
    for span, called in notebook.calls.items():
        place, new = _called_by_numpy(span, called, notebook, text)
        edits[place] = new
    lines = text.splitlines(keepends=True)
    for (line, column, last, end), replacement in sorted(edits.items(), reverse=True):
        tail = lines[last - 1][_at(lines[last - 1], end) :]
        lines[line - 1 : last] = [lines[line - 1][: _at(lines[line - 1], column)] + replacement + tail]
    program = "".join(lines)
    diff = difflib.unified_diff(text.splitlines(True), program.splitlines(True), f"a/{path}", f"b/{path}")
    return Patch("".join(diff), program, tuple(notes))


def _span(node: Any) -> Span:
    return node.lineno, node.col_offset, node.end_lineno, node.end_col_offset


def _assigned(text: str) -> dict[Span, Span]:
    """The spans of assignments, and of what is assigned, to that of what is assigned."""
    found: dict[Span, Span] = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            found[_span(node)] = found[_span(node.value)] = _span(node.value)
    return found


def _at(line: str, column: int) -> int:
    """The place of a column, which Python counts in bytes."""
    return len(line.encode()[:column].decode())


def _segment(text: str, span: Span) -> str:
    line, column, last, end = span
    lines = text.splitlines(keepends=True)[line - 1 : last]
    lines[-1] = lines[-1][: _at(lines[-1], end)]
    lines[0] = lines[0][_at(lines[0], column) :]
    return "".join(lines)


def _edited(made: Made, source: str, *, alone: bool) -> str:
    """What to write in the place of an expression that makes a buffer; ``alone`` is one that is assigned to a name. A
    traced number is no ``like=``: plain NumPy refuses a float there."""
    name, array = made.likes or ("", False)
    value = ast.parse(f"({source})", mode="eval").body
    function = value.func if isinstance(value, ast.Call) else None
    attr = getattr(function, "attr", getattr(function, "id", ""))
    if array and attr in WITH_LIKE and hasattr(np, attr):
        return f"{source.rstrip()[:-1].rstrip().rstrip(',')}, like={name})"
    if array and made.numpy is not None:
        return f"{made.numpy}.array({source}, like={name})"
    tight = isinstance(value, ast.Call | ast.Name | ast.Attribute | ast.Subscript | ast.BinOp)
    added = f"{source if tight else f'({source})'} + 0 * {name}"
    return added if alone else f"({added})"


def _called_by_numpy(span: Span, name: str, notebook: Notebook, text: str) -> tuple[Span, str]:
    """Where the name of Python's own function stands, and that of NumPy's which means it; none for a conversion."""
    source = _segment(text, span)
    call = ast.parse(f"({source})", mode="eval").body
    numpy = next((made.numpy for made in notebook.made if made.numpy is not None), "numpy")
    if not isinstance(call, ast.Call):
        return span, source
    written_as = ast.get_source_segment(f"({source})", call.func) or ""
    place = (span[0], span[1], span[0], span[1] + len(written_as.encode()))
    return place, "" if name in ("float", "complex") else f"{numpy}.{name}"
