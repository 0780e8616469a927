"""``Graph``: a recorded program as people and planners read it. It has nodes, sizes and lifetimes, and holds no array.

The number of a node is its place on the tape. So the nodes stand in topological order, and every question here is one
pass over them. The value that a node makes has the number of the node.
"""

from collections.abc import Iterator
from functools import cached_property
from pathlib import PurePath
from typing import Any

from attrs import asdict, frozen

from pullback.instruments.inspect.tables import as_text
from pullback.instruments.pictures.graph_drawing import GraphDrawing, draw_graph
from pullback.words.errors import PullbackError
from pullback.words.specs import ArraySpec

SHOWN = 80
"""Nodes that ``str`` lists before it leaves out the middle."""


@frozen
class Slot:
    """One value that a node holds: ``name`` as the rule declares it (``x``, ``out``, ``lu``), ``nbytes`` of its
    whole buffer."""

    name: str
    spec: ArraySpec | None
    nbytes: int
    reason: str
    buffer: int
    """Equal numbers are the same memory: it counts once."""


@frozen
class Steps:
    """The steps of a loop: how many, bytes of the state between two of them, bytes that one recorded step holds."""

    n: int
    state_bytes: int
    tape_bytes: int

    def __str__(self) -> str:
        return f"{self.n} steps of {self.tape_bytes:,} B"


@frozen
class Node:
    """One operation. An operand that does not depend on the inputs is None in ``operands``; ``detail`` says which part
    or option is meant.

    Operands without a derivative (an index, a condition) are not listed as read.
    """

    ident: int
    name: str
    operands: tuple[int | None, ...] = ()
    detail: str = ""
    saved: tuple[Slot, ...] = ()
    file: str = ""
    line: int = 0
    view: bool = False
    """The output may share memory with the first operand."""
    steps: Steps | None = None
    n_outputs: int = 1
    """More than one: the value is a tuple, and the components that are used are nodes of their own."""
    body: "Body | None" = None
    """One step of a loop function."""

    @property
    def reads(self) -> tuple[int, ...]:
        """The values it reads, an operand given twice named twice."""
        return tuple(i for i in self.operands if i is not None)

    @property
    def where(self) -> str:
        """``file.py:12``, the user's line; empty where there is none."""
        return place_text(self.file, self.line)

    @property
    def text(self) -> str:
        """The operation as it is listed: ``multiply(%1, _)``; the underscore is an operand that does not depend on
        the inputs."""
        if not self.operands:
            return f"{self.name} {self.detail}".rstrip()
        arguments = ", ".join("_" if i is None else f"%{i}" for i in self.operands)
        return f"{self.name}({arguments}) {self.detail}".rstrip()


@frozen
class Var:
    """The value that a node makes.

    ``spec`` is None for what is no array (a tuple of results) and where nothing on the tape tells it: then no result of
    the program depends on the value.
    """

    ident: int
    spec: ArraySpec | None
    readers: tuple[int, ...]
    storage: int
    """The value whose memory this one looks at: its own number unless it is a view."""
    is_output: bool = False

    @property
    def nbytes(self) -> int:
        """Bytes of a dense array of this spec; 0 where the spec is not known."""
        return self.spec.nbytes if self.spec is not None else 0


@frozen
class Output:
    """One leaf of what the function returned: the path to it, and its value, or None for one that does not depend on
    the inputs."""

    label: str
    ident: int | None


@frozen(repr=False)
class Graph:
    """A program as recorded once. ``nodes[i]`` makes ``values[i]``; the first ``n_inputs`` nodes are the inputs."""

    name: str
    nodes: tuple[Node, ...]
    values: tuple[Var, ...]
    n_inputs: int
    outputs: tuple[Output, ...]
    adjoints: tuple[float | None, ...] | None = None
    """The norm of each value's cotangent with ``record(..., cotangents=True)``, None where no output depends on it."""

    def __len__(self) -> int:
        return len(self.nodes)

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes)

    @property
    def inputs(self) -> tuple[Node, ...]:
        """The nodes of the inputs."""
        return self.nodes[: self.n_inputs]

    @property
    def saved_bytes(self) -> int:
        """Bytes held for the reverse, every buffer once."""
        return sum(nbytes for _, nbytes in self._first_holders().values())

    def depths(self) -> list[int]:
        """The number of edges on the longest path that leads to each node."""
        depth = [0] * len(self.nodes)
        for node in self.nodes:
            for i in node.reads:
                depth[node.ident] = max(depth[node.ident], depth[i] + 1)
        return depth

    def levels(self) -> list[list[int]]:
        """Node numbers by the longest path that leads to them; no node reads another of its level."""
        depth = self.depths()
        levels: list[list[int]] = [[] for _ in range(max(depth, default=-1) + 1)]
        for ident, level in enumerate(depth):
            levels[level].append(ident)
        return levels

    def distance(self, i: int, j: int) -> int | None:
        """Edges on the longest path from node ``i`` to node ``j``; None where none leads there, ``IndexError`` for
        an unknown node."""
        for ident in (i, j):
            if not 0 <= ident < len(self.nodes):
                raise IndexError(f"the graph of {self.name} has the nodes 0 to {len(self.nodes) - 1}, not {ident}")
        longest: dict[int, int] = {i: 0}
        for node in self.nodes[i + 1 : j + 1]:
            before = [longest[k] for k in node.reads if k in longest]
            if before:
                longest[node.ident] = max(before) + 1
        return longest.get(j)

    def last_reads(self) -> list[int]:
        """The last node that reads each value or a view of it; one past the end for an output, its own number if nobody
        does."""
        last = list(range(len(self.nodes)))
        for value in self.values:
            end = len(self.nodes) if value.is_output else max(value.readers, default=value.ident)
            last[value.storage] = max(last[value.storage], end)
        return last

    def live_bytes(self) -> list[int]:
        """Element ``k``: bytes of the cut after node ``k``: values made by nodes ``0 .. k`` that a later node reads or
        the function returns.

        A view counts as the memory it looks at, once. These are the sizes of snapshots, one for each place where the
        program could be cut; constants and what pullbacks hold are not in them. A value of unknown spec counts nothing:
        nobody needs it.
        """
        change = [0] * (len(self.nodes) + 1)
        for ident, last in enumerate(self.last_reads()):
            if last > ident:
                change[ident] += self.values[ident].nbytes
                change[last] -= self.values[ident].nbytes
        live, total = [], 0
        for step in change[: len(self.nodes)]:
            total += step
            live.append(total)
        return live

    def cut(self, k: int) -> tuple[int, ...]:
        """The values in the cut after node ``k``, whose bytes ``live_bytes()[k]`` adds up."""
        last = self.last_reads()
        return tuple(i for i in range(k + 1) if self.values[i].storage == i and last[i] > k)

    def draw(self, *, fold: str = "auto", cotangents: bool | None = None) -> GraphDrawing:
        """The graph as a picture: ``.text``, ``.svg``, ``.mermaid``, ``.dot`` and ``.save(path)``; a notebook shows it.

        It bears shapes, what is saved, steps and cuts, and the user's lines. A graph of more than 60 nodes is folded,
        and says so: a step that repeats is drawn once, then the operations of a function as one. ``fold`` asks for one
        of these: ``"steps"``, ``"functions"``, or ``"off"``. With ``cotangents`` (default: where they were recorded)
        every box tells the norm of its cotangent, by which it influences the output.

        Raises ``PullbackError`` where cotangents are asked for that were not recorded, and, when the SVG is asked for,
        where more than 600 boxes are left or the layout library (extra ``plot``) is missing.
        """
        if cotangents and self.adjoints is None:
            raise PullbackError(
                f"the graph of {self.name} has no cotangents; record them: record(f, *args, cotangents=True)"
            )
        return draw_graph(self, fold, None if cotangents is False else self.adjoints)

    def to_dict(self) -> dict[str, Any]:
        """Everything in it as plain values, ready for ``json.dump``: a node for each operation, never folded; the step
        of a loop function is a graph of its own under ``body``."""
        return {
            "name": self.name,
            "n_inputs": self.n_inputs,
            "saved_bytes": self.saved_bytes,
            "nodes": [self._node_dict(node) for node in self.nodes],
            "outputs": [asdict(output) for output in self.outputs],
        }

    def _node_dict(self, node: Node) -> dict[str, Any]:
        value, body = self.values[node.ident], node.body
        found: dict[str, Any] = {name: getattr(node, name) for name in ("ident", "name", "operands", "detail")}
        found |= {"spec": None if value.spec is None else str(value.spec), "nbytes": value.nbytes}
        found |= {"readers": value.readers, "storage": value.storage, "is_output": value.is_output}
        found["saved"] = [asdict(s) | {"spec": None if s.spec is None else str(s.spec)} for s in node.saved]
        found |= {"file": node.file, "line": node.line}
        found["steps"] = None if node.steps is None else asdict(node.steps)
        found["body"] = None if body is None else body.to_dict()
        if self.adjoints is not None:
            found["cotangent_norm"] = self.adjoints[node.ident]
        return found

    def listing(self, limit: int | None = SHOWN) -> str:
        """One line for each node; with more than ``limit`` nodes the middle is left out."""
        n = len(self.nodes)
        ends = n if limit is None or n <= limit else limit // 2
        first = self._first_holders()
        rows = [self._row(node, first) for node in (*self.nodes[:ends], *self.nodes[max(ends, n - ends) :])]
        widths = [max((len(row[c]) for row in rows), default=0) for c in range(5)]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        if len(rows) < n:
            lines.insert(ends, f"... {n - len(rows)} more; listing(None) shows all")
        returned = ", ".join(f"{o.label} = {_name(o)}" if o.label else _name(o) for o in self.outputs)
        return "\n".join([self.title, *lines, f"returns {returned or 'nothing'}"])

    @property
    def title(self) -> str:
        """The name, how many nodes of which kind, and the bytes saved."""
        counts = (
            _count(self.n_inputs, "input"),
            _count(len(self.nodes) - self.n_inputs, "operation"),
            _count(len(self.outputs), "output"),
        )
        return f"{self.name}: {', '.join(counts)}; {self.saved_bytes:,} B saved"

    def held_by(self, ident: int) -> int:
        """Bytes of the buffers that node ``ident`` is the first to hold."""
        return self._held.get(ident, 0)

    @cached_property
    def _held(self) -> dict[int, int]:
        sums: dict[int, int] = {}
        for holder, nbytes in self._first_holders().values():
            sums[holder] = sums.get(holder, 0) + nbytes
        return sums

    def spec_text(self, ident: int) -> str:
        """The shape and dtype of a value, the steps of a loop, or how many results there are."""
        return _spec_text(self.values[ident], self.nodes[ident])

    def _first_holders(self) -> dict[int, tuple[int, int]]:
        """The first node that holds each buffer, and its bytes."""
        first: dict[int, tuple[int, int]] = {}
        for node in self.nodes:
            for slot in node.saved:
                first.setdefault(slot.buffer, (node.ident, slot.nbytes))
        return first

    def _row(self, node: Node, first: dict[int, tuple[int, int]]) -> tuple[str, str, str, str, str]:
        holders = [first[slot.buffer][0] for slot in node.saved]
        saved = ", ".join(
            f"{slot.name} " + (f"{slot.nbytes:,} B" if holder == node.ident else f"(held by %{holder})")
            for slot, holder in zip(node.saved, holders, strict=True)
        )
        return (
            f"%{node.ident}",
            node.text,
            _spec_text(self.values[node.ident], node),
            f"saves {saved}" if saved else "",
            node.where,
        )

    def __str__(self) -> str:
        return self.listing()

    def _repr_html_(self) -> str:
        return as_text(str(self))

    def __repr__(self) -> str:
        return f"<Graph of {self.title}>"


@frozen
class Body:
    """One step of a loop function as a graph of its own, and which of its values the next step begins with: pairs of
    the value and the input that it becomes."""

    graph: Graph
    carried: tuple[tuple[int, int], ...]
    steps: tuple[Any, ...] = ()
    """The numbers of the steps with ``record(..., cotangents=True)``: in nested loops tuples, the outermost first."""
    by_step: tuple[tuple[float | None, ...], ...] = ()
    """The norm of each value's cotangent in each of these steps; ``adjoints`` of the graph has the largest."""
    n_others: int = 0
    """How many steps did something else than the one that is drawn; of those the operations in common are told."""

    def to_dict(self) -> dict[str, Any]:
        """The graph as plain values."""
        found = self.graph.to_dict() | {"carried": self.carried}
        if self.graph.adjoints is not None:
            found |= {"steps": self.steps, "n_other_steps": self.n_others}
            for node, sizes in zip(found["nodes"], self.by_step, strict=True):
                node["cotangent_norm_by_step"] = sizes
        return found


def place_text(file: str, line: int) -> str:
    """``file.py:12``; empty where there is no file."""
    return f"{PurePath(file).name}:{line}" if file else ""


def _spec_text(value: Var, node: Node) -> str:
    if node.steps is not None:
        return str(node.steps)
    if node.n_outputs > 1:
        return f"{node.n_outputs} results"
    return str(value.spec) if value.spec is not None else "?"


def _name(output: Output) -> str:
    return f"%{output.ident}" if output.ident is not None else "a constant"


def _count(n: int, word: str) -> str:
    return f"{n} {word}{'' if n == 1 else 's'}"


def graph_from(
    name: str, nodes: list[Node], specs: list[ArraySpec | None], n_inputs: int, outputs: tuple[Output, ...]
) -> Graph:
    """The :class:`Graph` of nodes in tape order: readers, views and outputs of every value follow from them."""
    readers: list[list[int]] = [[] for _ in nodes]
    storage = list(range(len(nodes)))
    for node in nodes:
        for i in dict.fromkeys(node.reads):
            readers[i].append(node.ident)
        if node.view and node.operands and node.operands[0] is not None:
            storage[node.ident] = storage[node.operands[0]]
    returned = {output.ident for output in outputs}
    values = tuple(Var(k, specs[k], tuple(readers[k]), storage[k], k in returned) for k in range(len(nodes)))
    return Graph(name, tuple(nodes), values, n_inputs, outputs)
