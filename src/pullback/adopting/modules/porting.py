"""The smallest patch that makes a file traceable without adoption, found by running it: the lines that make the buffers
into which traced values are written, and those that hand a traced number to ``math``."""

import ast
import difflib
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import numpy as np
from attrs import define, evolve, field, frozen

from pullback.adopting.modules.arrays_as_handles import NOTEBOOK
from pullback.adopting.modules.importing import load_file
from pullback.adopting.modules.namespaces import Namespace
from pullback.recording.handles import BORROWED, Handle, is_array, plain_value, root_of
from pullback.tracing.running import Purpose, run_traced
from pullback.words.errors import InputFileError
from pullback.words.plugins import COPIES
from pullback.words.structures import flatten

WITH_LIKE = frozenset(
    "zeros ones empty full eye identity tri arange fromfunction array asarray asanyarray ascontiguousarray "
    "asfortranarray frombuffer fromiter loadtxt genfromtxt fromfile".split()
)
"""NumPy functions that take ``like=``."""


Span = tuple[int, int, int, int]
"""First line and column, last line and column of an expression."""
Arguments = Callable[[Any], tuple[tuple[Any, ...], tuple[int, ...]]]
"""What gives, for a function, the arguments of a call, and the numbers of those by which it is differentiated."""
OTHER = "the patched program gives another value: what it writes to is seen by another name, too; write it by hand"
NOWHERE: Span = (0, 0, 0, 0)
"""The span of what the file does not make."""
WITHIN = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>", "<lambda>")
"""Code that sees the names of the function around it."""


@frozen
class Patch:
    """A unified diff, empty where nothing need be changed; the whole program with it; and what cannot be said so."""

    text: str
    program: str
    notes: tuple[str, ...]


@define
class MadeArray:
    """An array that the program made, and where: the span of the expression, and what is traced there."""

    span: Span
    handle: Any
    likes: tuple[str, bool] | None
    """A traced name in scope, and whether it is an array."""
    numpy: str | None
    """The name of NumPy in the module."""
    note: str = ""
    """What is told of it where no line of the file can mend it."""
    name: str = ""
    """The name that it is bound to where that is noted."""


@define
class Notebook:
    """What is noted while the program runs."""

    path: str
    made: list[MadeArray] = field(factory=list)
    calls: dict[Span, str] = field(factory=dict)
    """Spans of calls that were given traced numbers, to the function's name."""
    joined: dict[Span, tuple[tuple[str, bool] | None, bool]] = field(factory=dict)
    """Spans of calls that make arrays of lists with traced numbers: a traced name, and whether the list is flat."""
    notes: dict[str, None] = field(factory=dict)

    def note_made(self, handle: Any, frame: FrameType, *, field: bool = False) -> None:
        """An array, or a field of one, has become a handle, in the expression that ``frame`` executes."""
        span = span_of(frame)
        if span is None:
            return
        note = ""
        if frame.f_code.co_filename != self.path:
            where = f"{frame.f_code.co_filename}:{span[0]}"
            note = f"{where} makes a buffer into which traced values are written: port that file, too"
        elif field:
            note = f"line {span[0]} makes a structured array, which has no traced form: make an array for each field"
        self.made.append(MadeArray(span, handle, traced_name(frame), numpy_name(frame), note))

    def note_bound(self, handle: Any, frame: FrameType) -> None:
        """A name has been bound to what was made of buffers, by another function than one that makes arrays."""
        root = root_of(handle)
        if root._id is None and root._flag != BORROWED and is_array(root) and not self.knows(root):
            self.note_made(root, frame)
            self.made[-1].name = next((n for n, x in frame.f_locals.items() if x is handle), "")

    def knows(self, handle: Any) -> bool:
        """Whether it was noted where a buffer was made."""
        return any(made.handle is handle for made in self.made)

    def note_call(self, name: str, frame: FrameType) -> None:
        """A function of Python's was given a traced number."""
        span = span_of(frame)
        if frame.f_code.co_filename == self.path and span is not None:
            self.calls[span] = name

    def note_joined(self, frame: FrameType, *, flat: bool) -> None:
        """``np.array`` was given a list with traced numbers."""
        span = span_of(frame)
        if frame.f_code.co_filename == self.path and span is not None:
            self.joined[span] = (traced_name(frame), flat)

    def note_argument(self, name: str, handle: Any, frame: FrameType) -> None:
        """An argument from outside."""
        self.made.append(
            MadeArray(
                NOWHERE, handle, None, None,
                f"the argument {name!r} of {frame.f_code.co_name} is written to: pass an array of the trace, or "
                "differentiate by it",
            )
        )  # fmt: skip

    def note_given(self, name: str, handle: Any, frame: FrameType) -> None:
        """An adopted function is given what was made of buffers in the call itself."""
        if handle._id is None and handle._flag != BORROWED and not self.knows(root_of(handle)):
            line = 0 if frame.f_back is None else frame.f_back.f_lineno
            note = f"line {line} makes what {frame.f_code.co_name} writes to as {name!r}: bind it to a name before"
            self.made.append(MadeArray(NOWHERE, handle, None, None, note))

    def note_of_module(self, array: Any, handle: Any, frame: FrameType) -> None:
        """An array of the module has become a handle."""
        if not self.knows(handle):
            name = next((n for n, x in frame.f_globals.items() if x is array), "an array of the module")
            note = f"{name}, an array of the module, is written to: write to a copy of it in the function"
            self.made.append(MadeArray(NOWHERE, handle, None, None, note))


def span_of(frame: FrameType) -> Span | None:
    """First line and column, last line and column of the expression that a frame executes."""
    positions = list(frame.f_code.co_positions())[frame.f_lasti // 2]
    line, last, column, end = positions
    return None if None in positions else (line or 0, column or 0, last or 0, end or 0)


def traced_name(frame: FrameType) -> tuple[str, bool] | None:
    """A name of the function that stands for a traced value, an array if there is one."""
    found = [(n, is_array(x)) for n, x in frame.f_locals.items() if isinstance(x, Handle) and x._id is not None]
    if frame.f_code.co_name in WITHIN and frame.f_back is not None and frame.f_back.f_code.co_name not in WITHIN:
        found += [pair for pair in [traced_name(frame.f_back)] if pair is not None]
    ordered = sorted(found, key=lambda pair: not pair[1])
    return ordered[0] if ordered else None


def numpy_name(frame: FrameType) -> str | None:
    """The name of NumPy in the module of a frame."""
    for name, given in frame.f_globals.items():
        if isinstance(given, Namespace) and given.__name__ == "numpy":
            return name
    return None


def ported(path: str, name: str, arguments: Arguments) -> Patch:
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
    told = NOTEBOOK.set(notebook)
    try:
        found = run_traced((function, args, {}), argnums, Purpose(), policy=None, ledger=None).out
    finally:
        NOTEBOOK.reset(told)
    patch = written(notebook, path, file.read_text("utf-8"))
    return patch if patch.notes else evolve(patch, notes=left(patch.program, file, name, arguments, found))


def left(program: str, file: Path, name: str, arguments: Arguments, found: Any) -> tuple[str, ...]:
    """What a patched program, by running it, still refuses, and whether it gives another value than was ``found``."""
    module = ModuleType(f"patched_{file.stem}")
    module.__file__ = str(file)
    sys.modules[module.__name__] = module
    sys.path.insert(0, str(file.parent))
    try:
        exec(compile(program, str(file), "exec"), module.__dict__)  # noqa: S102 - the user's own program
        function = getattr(module, name)
        args, argnums = arguments(function)
        out = run_traced((function, args, {}), argnums, Purpose(), policy=None, ledger=None).out
    except Exception as error:  # noqa: BLE001 - it is told
        lines = [part.lineno for part in traceback.extract_tb(error.__traceback__) if part.filename == str(file)]
        return (
            f"line {lines[-1] if lines else '?'} of the patched program still raises: {str(error).partition(';')[0]}",
        )
    finally:
        sys.path.remove(str(file.parent))
        del sys.modules[module.__name__]
    before, after = ([np.asarray(plain_value(leaf)).tobytes() for leaf in flatten(each)[0]] for each in (found, out))
    return () if before == after else (OTHER,)


def written(notebook: Notebook, path: str, text: str) -> Patch:
    """The patch, from what was noted."""
    values = _assigned(text)
    edits: dict[Span, str] = {}
    notes = dict(notebook.notes)
    for made in notebook.made:
        if made.handle._id is None:
            continue
        if made.note:
            notes[made.note] = None
        elif made.likes is None:
            notes[
                f"no traced value is in scope at {path}:{made.span[0]}, which makes a buffer: hand one in, and add 0 "
                "times it"
            ] = None
        else:
            span = values.get((made.span, made.name)) or values.get((made.span, ""), made.span)
            if span[:2] == span[2:]:  # one of several results of a call
                edits[span] = f"\n{_indent(text, span)}{made.name} = {_edited(made, made.name, alone=True)}"
            else:
                edits[span] = _edited(made, _segment(text, span), alone=span in values.values())
    for span, called in notebook.calls.items():
        place, new = _called_by_numpy(span, called, notebook, text)
        edits[place] = new
    for span, (likes, flat) in notebook.joined.items():
        new_text = _joined(_segment(text, span), likes, flat=flat)
        if new_text is not None:
            edits[span] = new_text
    lines = text.splitlines(keepends=True)
    for (line, column, last, end), replacement in sorted(edits.items(), reverse=True):
        tail = lines[last - 1][_at(lines[last - 1], end) :]
        lines[line - 1 : last] = [lines[line - 1][: _at(lines[line - 1], column)] + replacement + tail]
    program = "".join(lines)
    diff = difflib.unified_diff(text.splitlines(True), program.splitlines(True), f"a/{path}", f"b/{path}")
    return Patch("".join(diff), program, tuple(notes))


def _span(node: Any) -> Span:
    return node.lineno, node.col_offset, node.end_lineno, node.end_col_offset


def _assigned(text: str) -> dict[tuple[Span, str], Span]:
    """The spans of assignments, and of what is assigned, to that of what is assigned; with a name, where there are
    several, that of its part. Of one of several results of a call the span is the end of the line."""
    found: dict[tuple[Span, str], Span] = {}
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        found[_span(node), ""] = found[_span(node.value), ""] = _span(node.value)
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        if isinstance(target, ast.Tuple | ast.List):
            parts = node.value.elts if isinstance(node.value, ast.Tuple | ast.List) else []
            end = node.end_lineno or 0
            at_end = (end, len(text.splitlines()[end - 1].encode()))
            for k, part in enumerate(target.elts):
                if isinstance(part, ast.Name):
                    found[_span(node), part.id] = _span(parts[k]) if k < len(parts) else (*at_end, *at_end)
    return found


def _indent(text: str, span: Span) -> str:
    """The space before a statement that ends where a span does."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.end_lineno == span[0]:
            return " " * node.col_offset
    return ""


def _at(line: str, column: int) -> int:
    """The place of a column, which Python counts in bytes."""
    return len(line.encode()[:column].decode())


def _segment(text: str, span: Span) -> str:
    line, column, last, end = span
    lines = text.splitlines(keepends=True)[line - 1 : last]
    lines[-1] = lines[-1][: _at(lines[-1], end)]
    lines[0] = lines[0][_at(lines[0], column) :]
    return "".join(lines)


def _edited(made: MadeArray, source: str, *, alone: bool) -> str:
    """What to write in the place of an expression that makes a buffer; ``alone`` is one that is assigned to a name. A
    traced number is no ``like=``: plain NumPy refuses a float there."""
    name, array = made.likes or ("", False)
    value = ast.parse(f"({source})", mode="eval").body
    function = value.func if isinstance(value, ast.Call) else None
    attr = getattr(function, "attr", getattr(function, "id", ""))
    if array and attr in WITH_LIKE and hasattr(np, attr) and isinstance(value, ast.Call):
        return _with_like(source, value, name)
    if array and made.numpy is not None:
        return f"{made.numpy}.array({source}, like={name})"
    tight = isinstance(value, ast.Call | ast.Name | ast.Attribute | ast.Subscript | ast.BinOp)
    added = f"{source if tight else f'({source})'} + 0 * {name}"
    return added if alone else f"({added})"


def _with_like(source: str, call: ast.Call, name: str) -> str:
    """The text of a call, which was parsed in parentheses, with ``like=`` after its last argument."""
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    last = max(given, key=lambda part: (part.end_lineno or 0, part.end_col_offset or 0))
    line, column = last.end_lineno or 1, (last.end_col_offset or 0) - (last.end_lineno == 1)
    lines = source.splitlines(keepends=True)
    place = _at(lines[line - 1], column)
    while line == last.end_lineno and lines[line - 1][place : place + 1] == ")" and _closes(source, line, place):
        place += 1
    lines[line - 1] = f"{lines[line - 1][:place]}, like={name}{lines[line - 1][place:]}"
    return "".join(lines)


def _closes(source: str, line: int, place: int) -> bool:
    """Whether a parenthesis closes an argument, and not the call."""
    lines = source.splitlines(keepends=True)
    before = "".join(lines[: line - 1]) + lines[line - 1][: place + 1]
    return bool(source[len(before) :].strip()) and before.count("(") > before.count(")")


def _joined(source: str, likes: tuple[str, bool] | None, *, flat: bool) -> str | None:
    """``np.array`` of a list with traced numbers, as plain NumPy takes it; None where it has no short form."""
    call = ast.parse(f"({source})", mode="eval").body
    if not isinstance(call, ast.Call):
        return None
    if likes is not None and likes[1]:
        return _with_like(source, call, likes[0])
    if flat and len(call.args) == 1 and not call.keywords and isinstance(call.func, ast.Attribute):
        head = ast.get_source_segment(f"({source})", call.func.value) or ""
        return f"{head}.stack{source[len(head) + 1 + len(call.func.attr) :]}"
    return None


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
