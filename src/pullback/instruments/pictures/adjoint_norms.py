"""How large the cotangent of every value is, in the steps of loop functions too: what influences the output, and by how
much.

A sweep is heard record by record. A loop function is one record, within whose pull its steps are swept, each on a tape
of its own; so what is heard is a tree, whose branches are laid beside the one step of the graph.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
from attrs import define, evolve, field

from pullback.memory.reverse_sweep import seeded, sweep
from pullback.recording.recorder import form_of
from pullback.recording.traps import hearing
from pullback.words.call_sites import site_line
from pullback.words.structures import flatten

Place = tuple[str, str, int]
"""What an operation is, and the file and line where it stands."""


NOWHERE: Final[Place] = ("", "", 0)
_SHORT: Final = {"captured value": "captured"}
"""Names of operations as a graph has them."""


@define(eq=False)
class Swept:
    """What was heard of one tape: of each record what it is and the norm of its cotangent, None where it had
    none; and of the tapes that were swept within it."""

    tape: Any
    step: Any = None
    """Its number, a tuple in nested loops; None of the program itself."""
    n_inputs: int = 0
    places: list[Place] = field(factory=list)
    """The place of each record; of inputs nothing is said."""
    norms: list[float | None] = field(factory=list)
    at: int = 0
    """The record that is pulled."""
    within: dict[int, list["Swept"]] = field(factory=dict)

    def begun(self) -> "Swept":
        """The sweep itself, whose records are known as far as they are there: some are made as they are reversed."""
        records = self.tape.records
        self.n_inputs = self.tape.n_inputs
        self.norms += [None] * (len(records) - len(self.norms))
        self.places += [NOWHERE] * (len(records) - len(self.places))
        for k, record in enumerate(records):
            if record is not None and k >= self.n_inputs:
                self.places[k] = _SHORT.get(name := form_of(record).name, name), *site_line(record[-1])
        return self


@define(eq=False)
class Listening:
    """Hears the sweep of a program, and those of the steps within it."""

    under_way: list[Swept] = field(factory=list)
    found: Swept | None = None

    def begins(self, tape: Any, step: Any) -> None:
        """A sweep begins, within the pull of a record of the one that is under way."""
        if not self.under_way:
            self.found = self.found or Swept(tape)
            self.under_way.append(self.found.begun())
            return
        around = self.under_way[-1]
        steps = around.within.setdefault(around.at, [])
        if not steps or steps[-1].tape is not tape:
            if steps:
                steps[-1].tape = None
            steps.append(Swept(tape, step))
        self.under_way.append(steps[-1].begun())

    def hears(self, ident: int, ct: Any) -> None:
        """The cotangent of a record."""
        now = self.under_way[-1]
        now.at = ident
        if ct is not None:
            now.norms[ident] = _norm(ct)

    def ends(self) -> None:
        """That sweep is over."""
        self.under_way.pop()


def with_adjoints(graph: Any, traced: Any, outputs: Iterable[Any]) -> Any:
    """The graph of a trace with the 2-norm of each value's cotangent, where every element of the outputs has the
    cotangent 1: of the program, and step by step of the loop functions in it. An output is a handle, or None where it
    is none of the trace.

    All records hold what they read. Raises ``ShapesOnlyError`` without values.
    """
    tape, listening = traced.tape, Listening()
    outs = [out for out in outputs if out is not None]
    for out in outs:
        if hasattr(out._value, "__pullback_hollow__"):
            out._value.item()  # without values there are no norms: it refuses
    ones = [np.ones(np.shape(out._value), np.asarray(out._value).dtype)[()] for out in outs]
    with hearing(listening):
        sweep(tape, tape.n_inputs, len(tape.records), [seeded(tape, outs, ones)])
    swept = listening.found
    assert swept is not None  # a sweep begins, be it over no records
    return evolve(graph, adjoints=tuple(swept.norms), nodes=_nodes(graph.nodes, [(swept, range(len(graph.nodes)))]))


def _nodes(nodes: Sequence[Any], swept: Sequence[tuple[Swept, Sequence[int | None]]]) -> tuple[Any, ...]:
    """The nodes of which ``swept`` were heard, the body of each loop with the cotangents of its steps. With what was
    heard comes, for each node, the record that does the same."""
    found = []
    for node in nodes:
        if node.body is not None:
            steps = [step for each, at in swept for step in _steps(each, at[node.ident])]
            node = evolve(node, body=_body(node.body, steps))  # noqa: PLW2901
        found.append(node)
    return tuple(found)


def _steps(swept: Swept, at: int | None) -> list[Swept]:
    """The steps of the loop at a record, the first step first."""
    return [] if at is None else swept.within.get(at, [])[::-1]


def _body(body: Any, steps: Sequence[Swept]) -> Any:
    graph = body.graph
    places = [NOWHERE] * graph.n_inputs
    places += [("loop" if each.steps else each.name, each.file, each.line) for each in graph.nodes[graph.n_inputs :]]
    matched = [_matched(places, graph.n_inputs, step) for step in steps]
    by_step = [
        tuple(None if k is None else step.norms[k] for step, k in zip(steps, row, strict=True))
        for row in zip(*matched, strict=True)
    ] or [()] * len(places)
    largest = tuple(max((size for size in sizes if size is not None), default=None) for sizes in by_step)
    others = sum(step.places != places for step in steps)
    within = _nodes(graph.nodes, list(zip(steps, matched, strict=True)))
    return evolve(
        body,
        graph=evolve(graph, adjoints=largest, nodes=within),
        steps=tuple(step.step for step in steps),
        by_step=tuple(by_step),
        n_others=others,
    )


def _matched(places: Sequence[Place], n_inputs: int, step: Swept) -> Sequence[int | None]:
    """The record of another step that does the same as each operation of the step that is drawn. Steps may differ: then
    it is the record of the same operation with as many before it at its line; None where there is none."""
    if step.places == places:
        return range(len(places))
    at = {key: k for k, key in enumerate(_counted(step.places, step.n_inputs))}
    return [at.get(key) for key in _counted(places, n_inputs)]


def _counted(places: Sequence[Place], n_inputs: int) -> list[tuple[Any, int]]:
    """The places, each with how many of the same were before it; of inputs the numbers."""
    seen: Counter[Any] = Counter()
    found: list[tuple[Any, int]] = []
    for k, place in enumerate(places):
        key = "input" if k < n_inputs else place
        found.append((key, seen[key]))
        seen[key] += 1
    return found


def _norm(ct: Any) -> float:
    """The norm of an array, or of all arrays of a structure."""
    leaves = [np.asarray(leaf) for leaf in flatten(ct)[0]]
    return float(np.sqrt(sum(float(np.sum(np.abs(leaf) ** 2)) for leaf in leaves if leaf.dtype.kind in "fc")))
