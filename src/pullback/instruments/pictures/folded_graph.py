"""What a picture of a graph shows: boxes and arrows. A large graph is folded: the steps of a loop onto one step, then
the operations of a function of the source onto one box."""

import ast
import linecache
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import PurePath
from typing import Any, Final

from attrs import evolve, frozen

from pullback.instruments.pictures.repeated_stretches import Stretch, repeated_stretches
from pullback.memory.ledger import mib
from pullback.words.errors import PullbackError

MOST: Final = 60
"""Boxes that are read at a glance; a graph of more is folded."""
SIZE: Final = "|ct| "
NO_INFLUENCE: Final = "no influence"
"""What is said of a value on which no output depends."""
FOLDS: Final = ("auto", "off", "steps", "functions")


@frozen
class Box:
    """One node, or several that are folded: their operation, what is said of them, and how often they occur."""

    key: int
    title: str
    lines: tuple[str, ...]
    kind: str
    """``input``, ``operation``, ``loop`` or ``folded``."""
    saved_bytes: int
    adjoint: float | None = None
    """The norm of the largest of their cotangents."""
    is_output: bool = False
    step: int | None = None
    """The number of the group of steps that it is in."""


@frozen
class Arrow:
    """A value that a box reads; ``carried`` from one step to the next, or back, where the boxes are folded."""

    source: int
    target: int
    carried: bool


@frozen
class Picture:
    """Boxes in the order of the program, arrows, the groups of steps by what is said of them, and how it was folded."""

    title: str
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]
    steps: tuple[str, ...]
    bodies: tuple[Any, ...]
    """The last of these groups are one step each of loop functions, the outer ones first."""
    notes: tuple[str, ...]
    """How it was folded, and what is left out."""
    is_folded: bool


def folded(graph: Any, fold: str, adjoints: Any) -> Picture:
    """The :class:`Picture` of a graph. Raises ``PullbackError`` for another word than those of ``FOLDS``."""
    if fold not in FOLDS:
        raise PullbackError(f"draw(fold={fold!r}) takes one of {', '.join(map(repr, FOLDS))}")
    n, notes = len(graph.nodes), list[str]()
    stretches: list[Stretch] = []
    groups: dict[Any, list[int]] = {k: [k] for k in range(n)}
    if fold == "steps" or (fold == "auto" and n > MOST):
        stretches = steps_of(graph)
        groups = _grouped(n, _by_step(stretches))
        if stretches:
            notes = [f"folded: of {n} nodes, the steps of a loop are drawn as one"]
    if fold == "functions" or (fold == "auto" and len(groups) > MOST):
        stretches, groups = [], _grouped(n, _by_function(graph))
        notes = [f"folded: of {n} nodes, the operations of a function are drawn as one"]
    is_folded = bool(notes)
    boxes = [_box(graph, number, group, stretches, adjoints) for number, group in enumerate(groups.items())]
    arrows, texts, bodies = _arrows(graph, groups), [_step_text(graph, each) for each in stretches], list[Any]()
    alone = deque((number, graph.nodes[k]) for number, (k, *others) in enumerate(groups.values()) if not others)
    while alone:
        number, node = alone.popleft()
        if node.body is not None and len(node.body.graph) > MOST:
            notes.append(_left_out(node))
        elif node.body is not None:
            texts.append(_body_text(node, boxes[number].title, adjoints))
            bodies.append(node.body)
            alone.extend(enumerate(node.body.graph, len(boxes)))  # loops within it
            _add_body(node.body, number, len(texts) - 1, boxes, arrows, told=adjoints is not None)
    return Picture(graph.title, tuple(boxes), tuple(arrows), tuple(texts), tuple(bodies), tuple(notes), is_folded)


def _body_text(node: Any, title: str, adjoints: Any) -> str:
    """``one of 40 steps of fori_loop at wave.py:9, at a cut 256 KiB live``, and how many steps differ from it."""
    text = f"one of {node.steps.n} steps of {title} at {node.where}, at a cut {mib(node.steps.state_bytes)} live"
    n = node.body.n_others if adjoints is not None else 0
    return text + f"; of {n} other{'' if n == 1 else 's'} the operations in common" * bool(n)


def _left_out(node: Any) -> str:
    return (
        f"the step of {node.name} at {node.where} is left out: it has {len(node.body.graph)} nodes, more than {MOST}; "
        "body.graph.draw() of the node of the loop draws it, folded"
    )


def _add_body(body: Any, loop: int, step: int, boxes: list[Box], arrows: list[Arrow], *, told: bool) -> None:
    """The operations of a step of a loop function, below the box of the loop; with the cotangents of all steps where
    these are ``told``."""
    first, graph = len(boxes), body.graph
    sizes = graph.adjoints if told else None
    added = [evolve(_box(graph, first + k, (k, [k]), [], sizes), step=step) for k in range(len(graph))]
    if told:
        for box, each in zip(added, body.by_step, strict=True):
            boxes.append(evolve(box, lines=_with_sizes(box.lines, steps_text(each, body.steps))))
    else:
        boxes += added
    for node in graph:
        arrows += [Arrow(loop, first + node.ident, False)] * (not node.reads)
        arrows += [Arrow(first + k, first + node.ident, False) for k in dict.fromkeys(node.reads)]
    arrows += [Arrow(first + last, first + entered, True) for last, entered in body.carried]


def _with_sizes(lines: tuple[str, ...], text: str) -> tuple[str, ...]:
    return tuple(text if line == NO_INFLUENCE or line.startswith(SIZE) else line for line in lines)


def steps_text(sizes: Sequence[float | None], steps: Sequence[Any]) -> str:
    """How the norm of a cotangent goes over the steps: ``|ct| 0.2 at step 0, 3 at step 7, 1 at step 39``, which are
    the first, that where it is largest, and the last."""
    known = [(size, step) for size, step in zip(sizes, steps, strict=True) if size is not None]
    if not known:
        return NO_INFLUENCE
    largest = max(known, key=lambda each: (each[0] == each[0], each[0]))  # a NaN is the largest of none
    if all(size == largest[0] for size, _ in known) and len(known) > 1:
        told = f"{largest[0]:.3g} at {len(known)} steps"
    else:
        shown = sorted({known.index(each): each for each in (known[0], largest, known[-1])}.items())
        told = ", ".join(f"{size:.3g} at step {_number(step)}" for _, (size, step) in shown)
    n_without = len(sizes) - len(known)
    return f"{SIZE}{told}" + f", none at {n_without} step{'' if n_without == 1 else 's'}" * bool(n_without)


def _number(step: Any) -> str:
    """``7``; in nested loops ``3.7``, the outer step first."""
    return ".".join(map(str, step)) if isinstance(step, tuple) else str(step)


def steps_of(graph: Any) -> list[Stretch]:
    """The stretches of nodes that repeat: a Python loop's steps, each cut where the fewest bytes are live."""
    first, live, found = graph.n_inputs, graph.live_bytes(), []
    for stretch in repeated_stretches([(node.name, node.file, node.line, node.detail) for node in graph.nodes[first:]]):
        begin = stretch.start + first
        starts = range(begin, begin + stretch.slack + 1)
        found.append(stretch._replace(start=min(starts, key=lambda k: live[k + stretch.period - 1])))
    return found


def _by_step(stretches: Iterable[Stretch]) -> Callable[[int], Any]:
    """The group of a node: that of all nodes at its place in a step."""
    places: dict[int, Any] = {}
    for stretch in stretches:
        for k in range(stretch.start, stretch.stop):
            places[k] = stretch.start, (k - stretch.start) % stretch.period
    return lambda k: places.get(k, k)


def _grouped(n: int, key: Callable[[int], Any]) -> dict[Any, list[int]]:
    groups: dict[Any, list[int]] = {}
    for k in range(n):
        groups.setdefault(key(k), []).append(k)
    return groups


def _by_function(graph: Any) -> Callable[[int], Any]:
    """The group of a node: that of all operations in its function of the source."""
    functions = cache(functions_of)  # for this picture: the file may be another for the next

    def key(k: int) -> Any:
        node = graph.nodes[k]
        return k if k < graph.n_inputs else function_at(node.file, node.line, functions)

    return key


def _box(graph: Any, number: int, group: tuple[Any, list[int]], stretches: list[Stretch], adjoints: Any) -> Box:
    key, members = group
    first, last, n = graph.nodes[members[0]], members[-1], len(members)
    held = sum(graph.held_by(k) for k in members)
    known = [adjoints[k] for k in members if adjoints[k] is not None] if adjoints is not None else []
    if isinstance(key, str) and n > 1:
        names = list(dict.fromkeys(graph.nodes[k].name for k in members))
        kind, title = "folded", key or "elsewhere"
        lines = [f"{n} operations: {', '.join(names[:4])}{', ...' if len(names) > 4 else ''}"]
    else:
        kind = "input" if first.ident < graph.n_inputs else "loop" if first.steps else "operation"
        title = f"{f'{n} x ' if n > 1 else ''}{first.name} {first.detail}".rstrip()
        lines = [graph.spec_text(last) if n > 1 else f"%{last} {graph.spec_text(last)}"]
    if held:
        lines.append(f"saves {mib(held)}")
    step = next((k for k, each in enumerate(stretches) if each.start <= members[0] < each.stop), None)
    if adjoints is not None and step is not None:
        lines.append(steps_text([adjoints[k] for k in members], range(n)))
    elif adjoints is not None:
        lines.append(f"{SIZE}{max(known):.3g}" if known else NO_INFLUENCE)
    lines += [first.where] if first.where else []
    is_output = any(graph.values[k].is_output for k in members)
    return Box(number, title, tuple(lines), kind, held, max(known, default=None), is_output, step)


def _arrows(graph: Any, groups: dict[Any, list[int]]) -> list[Arrow]:
    """One arrow for all values between two boxes. That the operations of a function read each other goes without
    saying."""
    box = {k: number for number, members in enumerate(groups.values()) for k in members}
    functions = {number for number, key in enumerate(groups) if isinstance(key, str)}
    pairs = {(box[k], box[node.ident]) for node in graph.nodes for k in node.reads}
    return [Arrow(a, b, a >= b) for a, b in sorted(pairs) if a != b or a not in functions]


def _step_text(graph: Any, stretch: Stretch) -> str:
    """``60 steps of 5 operations at wave.py:7-8, 1.2 MiB saved in all; at a cut 156 KiB live``."""
    nodes = graph.nodes[stretch.start : stretch.stop]
    held = sum(graph.held_by(node.ident) for node in nodes)
    live = graph.live_bytes()
    cuts = [live[stretch.start + stretch.period * k - 1] for k in range(1, stretch.n_steps)]
    operations = f"{stretch.period} operation{'' if stretch.period == 1 else 's'}"
    return f"{stretch.n_steps} steps of {operations}, {mib(held)} saved in all; at a cut at most {mib(max(cuts))} live"


Functions = Callable[[str], tuple[tuple[int, int, str], ...]]


def functions_of(file: str) -> tuple[tuple[int, int, str], ...]:
    """First line, last line and name of every function of a file."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):  # a cell of a notebook with magics, a file that is not Python
        return ()
    kinds = ast.FunctionDef | ast.AsyncFunctionDef
    return tuple(
        (each.lineno, each.end_lineno or each.lineno, each.name) for each in ast.walk(tree) if isinstance(each, kinds)
    )


def function_at(file: str, line: int, functions: Functions = functions_of) -> str:
    """The name of the innermost function that a line of a file is in; that of the file where it is in none."""
    found = [(start, name) for start, stop, name in functions(file) if start <= line <= stop]
    name = PurePath(file).name
    return f"{max(found)[1]} in {name}" if found else name
