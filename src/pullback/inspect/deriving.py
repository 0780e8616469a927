"""From a tape to its graph: nodes from records, and the spec of every value from what the records around it say.

A record does not hold the spec of its output. But a rule that brings a cotangent back to its operand holds the
operand's, an elementwise operation whose cotangents need no such thing has the spec of its operands, and what is saved
has its own. So the tape of an ordinary save-all run tells all specs that matter, and nothing is added to that run.
"""

import inspect
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from pullback.inspect.graph import Graph, Node, Output, Slot, Steps, graph_from
from pullback.loops.loop_record import LOOP, LoopRecord
from pullback.memory.ledger import Ledger, tape_holdings
from pullback.policies.save_all import SaveAll
from pullback.recording.handles import Handle
from pullback.recording.recorder import COMPONENT, INPUT
from pullback.recording.tape import Tape
from pullback.recording.writes import WRITE_OPCODES
from pullback.rules.forms import FORMS, Form
from pullback.tracing.running import Traced, run_traced
from pullback.words.call_sites import site_line, site_text
from pullback.words.specs import ArraySpec, buffer_of, shared_spec, spec_of
from pullback.words.structures import flatten, paths

_LONGEST = 40
Record = tuple[Any, ...]


def traced_once(f: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Traced, Ledger]:
    """One run of ``f`` under save-all, every float or complex leaf of the arguments an input, and the ledger of its
    loops."""
    ledger = Ledger()
    return run_traced(f, args, {}, range(len(args)), allow_int=True, policy=SaveAll(), ledger=ledger), ledger


def graph_of(traced: Traced, f: Callable[..., Any]) -> Graph:
    """The graph of a finished trace."""
    tape = traced.tape
    records = whole_records(traced)
    outputs = _outputs(traced)
    specs = specs_of(records, traced, outputs)
    labels = input_labels(traced, f)
    slots = Slots(tape)
    nodes = [_node(ident, record, labels, slots) for ident, record in enumerate(records)]
    named = tuple(Output(label, handle._id if handle is not None else None) for label, handle in outputs)
    return graph_from(name_of(f), nodes, specs, tape.n_inputs, named)


def name_of(f: Any) -> str:
    """What to call a function in a title."""
    return str(getattr(f, "__name__", type(f).__name__))


def whole_records(traced: Traced) -> list[Record | None]:
    """The records; where ``checkpoint`` let go of what one held, the record without it."""
    entries = traced.governor.entries if traced.governor is not None else {}
    return [
        entries[k].skeleton if record is None and k in entries else record
        for k, record in enumerate(traced.tape.records)
    ]


def input_labels(traced: Traced, f: Callable[..., Any]) -> list[str]:
    """The inputs by the names of the parameters: ``c``, ``params['w']``; ``argument 2`` where the signature does not
    tell."""
    try:
        kinds = inspect.Parameter
        parameters = inspect.signature(f).parameters.values()
        names = [p.name for p in parameters if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)]
    except (TypeError, ValueError):
        names = []

    def named(match: re.Match[str]) -> str:
        number = int(match[1])
        return names[number] if number < len(names) else match[0]

    return [re.sub(r"^argument (\d+)", named, given.label) for given in traced.inputs]


def _outputs(traced: Traced) -> list[tuple[str, Any]]:
    """Path and handle of every leaf returned; None for a leaf that does not depend on the inputs."""
    leaves, _ = flatten(traced.out)
    labels = paths(traced.out)
    return [
        (label, leaf if _is_active(leaf, traced.tape) else None) for label, leaf in zip(labels, leaves, strict=True)
    ]


def _is_active(leaf: Any, tape: Tape) -> bool:
    return isinstance(leaf, Handle) and leaf._tape is tape and leaf._id is not None


# ---------------------------------------------------------------------------------------------------------------- specs


class SpecSolver:
    """Values of equal spec joined into classes (union-find), and the spec of each class as soon as one of its values
    tells it."""

    def __init__(self, n: int) -> None:
        self.parent = list(range(n))
        self.known: dict[int, ArraySpec] = {}

    def find(self, i: int) -> int:
        """The representative of value ``i``."""
        parent = self.parent
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    def learn(self, i: int, spec: Any) -> None:
        """Value ``i`` has this spec; anything but a spec says nothing."""
        if isinstance(spec, ArraySpec):
            self.known.setdefault(self.find(i), spec)

    def same(self, i: int, j: int) -> None:
        """Two values have one spec."""
        a, b = self.find(i), self.find(j)
        if a != b:
            self.parent[b] = a
            spec = self.known.pop(b, None)
            if spec is not None:
                self.known.setdefault(a, spec)

    def spec(self, i: int) -> ArraySpec | None:
        """What is known of value ``i``."""
        return self.known.get(self.find(i))


def specs_of(
    records: Sequence[Record | None], traced: Traced, outputs: Iterable[tuple[str, Any]]
) -> list[ArraySpec | None]:
    """The spec of every value; None for a tuple of results, and for a value that nothing returned depends on and no
    rule measured."""
    solver = SpecSolver(len(records))
    for ident, given in enumerate(traced.inputs):
        solver.learn(ident, given.spec)
    for _, handle in outputs:
        if handle is not None:
            solver.learn(handle._id, spec_of(handle._value))
    parts: dict[int, Sequence[Any]] = {}
    for ident, record in enumerate(records):
        if record is None:
            continue
        form = FORMS[record[0]]
        if record[0] == COMPONENT.opcode:
            _, parent, place, _, _ = record
            if place < len(parts.get(parent, ())):
                solver.learn(ident, parts[parent][place])
        elif record[0] == LOOP.opcode:
            parts[ident] = _learn_from_loop(record[2], solver)
        elif record[0] in WRITE_OPCODES:
            _learn_from_write(ident, form, record, solver)
        else:
            parts[ident] = _learn_from_call(ident, form, record, solver)
    _learn_from_views(records, solver)
    return [solver.spec(k) for k in range(len(records))]


def _learn_from_views(records: Sequence[Record | None], solver: SpecSolver) -> None:
    """Views that nobody reads: the view of one element that is broadcast to the shape has the spec, and looks at no
    array."""
    for ident, record in enumerate(records):
        if record is None or solver.spec(ident) is not None:
            continue
        form = FORMS[record[0]]
        prim, ids = form.primitive, form.ids(record)
        given = solver.spec(ids[0]) if prim.view and form.has_params and len(prim.operands) == len(ids) == 1 else None
        if given is not None:
            stand_in = np.broadcast_to(np.zeros((), given.dtype), given.shape)
            solver.learn(ident, shared_spec(prim.forward(stand_in, **dict(zip(prim.params, record[-2], strict=True)))))


def _learn_from_call(ident: int, form: Form, record: Record, solver: SpecSolver) -> Sequence[Any]:
    """What the record of a primitive tells of its operands and output; the specs of its parts where it has several
    outputs."""
    prim, ids = form.primitive, form.ids(record)
    if form.exact:
        for i in ids:
            solver.same(i, ident)
    by_name = {prim.name_of(position): i for position, i in zip(form.active, ids, strict=True)} | {"out": ident}
    by_name |= {f"@{position}": i for position, i in zip(form.active, ids, strict=True)}
    told = [
        (name.removesuffix("_spec"), spec) for name, spec in zip(form.specs, record[form.first_spec :], strict=False)
    ]
    told += [(name, _specs_in(value)) for name, value in zip(form.saved, form.saved_values(record), strict=True)]
    parts: Sequence[Any] = ()
    for name, spec in told:
        if name == "out" and isinstance(spec, tuple):
            parts = spec
        elif name == prim.family and isinstance(spec, tuple):
            for k, one in enumerate(spec):
                solver.learn(by_name.get(f"{name}[{k}]", ident), one if f"{name}[{k}]" in by_name else None)
        elif name in by_name:
            solver.learn(by_name[name], spec)
    return parts


def _specs_in(value: Any) -> Any:
    """The spec of a saved value, one each for a tuple of values; None for what is no array."""
    return tuple(map(shared_spec, value)) if isinstance(value, tuple) else shared_spec(value)


def _learn_from_write(ident: int, form: Form, record: Record, solver: SpecSolver) -> None:
    """A write leaves the array's spec as it was; its record holds that and the value's."""
    ids = form.ids(record)
    _, root_spec, _, value_spec = record[1 + form.n_ids : 5 + form.n_ids]
    solver.learn(ident, root_spec)
    if not form.name.endswith("value"):
        solver.same(ids[0], ident)
    if not form.name.endswith("root"):
        solver.learn(ids[-1], value_spec)


def _learn_from_loop(run: LoopRecord, solver: SpecSolver) -> Sequence[Any]:
    """What enters a loop has the spec of its first state; the specs of the state that leaves it."""
    for i, leaf in zip(run.entering, run.chain.start, strict=False):
        if i is not None:
            solver.learn(i, shared_spec(leaf))
    for i, spec in (run.chain.steps.captured_specs or {}).items():
        solver.learn(i, spec)
    return run.left_specs


# ---------------------------------------------------------------------------------------------------------------- nodes


class Slots:
    """The slots of every record of a tape: buffers numbered as they are met, each number alive as long as this
    object."""

    def __init__(self, tape: Tape) -> None:
        self.tape = tape
        self.numbers: dict[Any, int] = {}
        self.counted: set[Any] = set()
        self.alive: list[Any] = []

    def of(self, ident: int) -> tuple[Slot, ...]:
        """What record ``ident`` holds; for a loop what its steps hold, one slot for each reason."""
        record = self.tape.records[ident]
        if record is None:
            return ()
        if record[0] == LOOP.opcode:
            return self._of_loop(record)
        return tuple(
            Slot(h.name, spec_held(h), h.nbytes, h.reason, self._number(h.buffer)) for h in tape_holdings((record,))
        )

    def _of_loop(self, record: Record) -> tuple[Slot, ...]:
        """All buffers of one reason under one number, so that a later record that holds one of them counts nothing."""
        sums: dict[str, int] = {}
        numbers: dict[str, int] = {}
        for run, _ in loop_runs((record,)):
            held = (*run.chain.store.of("state").values(), *step_tapes(run).values())
            for key, nbytes, reason in (item for each in held for item in each.items):
                if reason not in numbers:
                    numbers[reason] = self._number([])
                if (
                    self.numbers.setdefault(key, numbers[reason]) == numbers[reason]
                    and (key, reason) not in self.counted
                ):
                    self.counted.add((key, reason))
                    sums[reason] = sums.get(reason, 0) + nbytes
        return tuple(
            Slot("snapshots" if reason == "snapshot" else "steps", None, n, reason, numbers[reason])
            for reason, n in sums.items()
        )

    def _number(self, buffer: Any) -> int:
        number = self.numbers.get(id(buffer))
        if number is None:
            number = self.numbers[id(buffer)] = len(self.alive)
            self.alive.append(buffer)
        return number


def step_tapes(run: LoopRecord) -> Mapping[int, Any]:
    """The recorded steps that a loop holds, by step."""
    found = run.chain.store.of("tape")
    if run.chain.work is not None:
        found[max(found, default=-1) + 1] = run.chain.work
    return dict(sorted(found.items()))


def loop_runs(records: Iterable[Record | None]) -> Iterator[tuple[LoopRecord, str]]:
    """Every loop that records hold, with the user's line, those inside recorded steps after those around them."""
    todo = deque([records])
    while todo:
        for record in todo.popleft():
            if record is not None and record[0] == LOOP.opcode:
                yield record[2], site_text(record[-1])
                todo.extend(step.tape.records for step in step_tapes(record[2]).values())


def spec_held(held: Any) -> ArraySpec | None:
    """The spec of a buffer that a record holds; None for an opaque value."""
    return shared_spec(buffer_of(held.buffer)) if isinstance(held.buffer, np.ndarray) else None


def _node(ident: int, record: Record | None, labels: list[str], slots: Slots) -> Node:
    if record is None:
        return Node(ident, "released")
    form = FORMS[record[0]]
    file, line = site_line(record[-1])
    if record[0] == INPUT.opcode:
        return Node(ident, "input", detail=labels[ident] if ident < len(labels) else "")
    if record[0] == LOOP.opcode:
        run = record[2]
        steps = Steps(run.n or 0, run.sizes.get("state_bytes", 0), run.sizes.get("tape_bytes", 0))
        return Node(ident, run.name, record[1], saved=slots.of(ident), file=file, line=line, steps=steps)
    if record[0] == COMPONENT.opcode:
        return Node(ident, "component", (record[1],), f"[{record[2]}]", file=file, line=line)
    operands: list[int | None] = [None] * form.arity
    for position, i in zip(form.active, form.ids(record), strict=True):
        operands[position] = i
    n_outputs = max(1, len(form.primitive.outputs))
    view, saved = form.primitive.view, slots.of(ident)
    return Node(ident, form.name, tuple(operands), _detail(form, record), saved, file, line, view, n_outputs=n_outputs)


def _detail(form: Form, record: Record) -> str:
    """The part a write goes to, or the static parameters that the rules read."""
    if record[0] in WRITE_OPCODES:
        region = record[1 + form.n_ids]
        steps = "".join(
            f"[{said(params['key'])}]" if "key" in params else f".{prim.name}" for prim, params in region.steps
        )
        return steps if steps and region.key is Ellipsis else f"{steps}[{said(region.key)}]"
    if not form.has_params:
        return ""
    given = zip(form.primitive.params, record[-2], strict=True)
    chosen = [(name, value) for name, value in given if value is not None and value is not False]
    return ", ".join(f"[{said(value)}]" if name == "key" else f"{name}={said(value)}" for name, value in chosen)


def said(value: Any) -> str:
    """A static parameter in a few characters; an array by its spec."""
    if isinstance(value, slice):
        parts = ["" if part is None else str(part) for part in (value.start, value.stop, value.step)]
        text = ":".join(parts if parts[2] else parts[:2])
    elif isinstance(value, tuple):
        text = ", ".join(map(said, value))
        text = f"({text})" if not any(isinstance(part, slice) or part is Ellipsis for part in value) else text
    elif value is Ellipsis:
        text = "..."
    elif isinstance(value, np.ndarray | Handle):
        text = str(shared_spec(value))
    else:
        text = repr(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
