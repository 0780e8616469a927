"""``record``: the graph of a program, made from the tape of one run under save-all.

A record makes a node. It does not hold the spec of its output, but three things tell it: a rule that sums a cotangent
over broadcast axes holds the spec of its operand, an elementwise operation without broadcasting has the spec of its
operands, and a saved value has its own. So an ordinary run tells all specs that matter, and records nothing for it.
"""

import inspect
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from typing import Any, Final

import numpy as np

from pullback.instruments.inspect.graph import Body, Graph, Node, Output, Slot, Steps, graph_from
from pullback.instruments.pictures.adjoint_norms import with_adjoints
from pullback.loops.functions.loop_record import LOOP, LoopRecord
from pullback.memory.ledger import Ledger, tape_holdings
from pullback.policies.save_all import SaveAll
from pullback.programs.marks.checkpoints import without_checkpoints
from pullback.programs.marks.named_values import BEGUN, PASSED
from pullback.recording.crossing import CAPTURE
from pullback.recording.handles import Handle
from pullback.recording.recorder import INPUT
from pullback.recording.results import COMPONENT
from pullback.recording.tape import Tape
from pullback.recording.writes import WRITE_OPCODES
from pullback.rules.forms import FORMS, Form
from pullback.shapes_only.equal_specs import SpecSolver
from pullback.shapes_only.hollow_arrays import has_spec, shapes_alone
from pullback.tracing.running import Purpose, Traced
from pullback.transforms.derivatives.argnums import name_of
from pullback.transforms.derivatives.pulls import Pull
from pullback.transforms.derivatives.reverse import traced_under
from pullback.words.call_sites import public, site_line
from pullback.words.specs import ArraySpec, buffer_of, shared_spec, spec_of
from pullback.words.structures import flatten, paths

_LONGEST = 40
Record = tuple[Any, ...]


@public
def record(f: Callable[..., Any], *args: Any, cotangents: bool = False) -> Graph:
    """The graph of ``f(*args)``: every operation that a float or complex leaf of the arguments reaches, in order.

    It holds names, shapes and dtypes, sizes in bytes and the user's lines, and no array. ``f`` runs once, under
    save-all. A loop function is one node with its number of steps.

    Parameters
    ----------
    f
        Any function.
    *args
        Its arguments.
    cotangents
        It is reversed, too, from a cotangent of ones, and the graph has the norm of each value's cotangent: which
        values influence the output, and by how much; for this a program with a ``checkpoint`` runs once more, without
        it.

    Returns
    -------
    A :class:`~pullback.instruments.inspect.graph.Graph`; ``.draw()`` makes it a picture.

    Raises
    ------
    PullbackError
        As :func:`vjp` of ``f``.

    Example
    -------
    >>> import numpy as np, pullback as pb
    >>> [node.name for node in pb.record(lambda x: np.sum(np.sin(x)), np.ones(3)).nodes]
    ['input', 'sin', 'reduce_sum']
    """
    with traced_once(f, args) as (traced, _):
        graph = graph_of(traced, f)
        if not cotangents or traced.governor is None:
            return _with_cotangents(graph, traced) if cotangents else graph
    with without_checkpoints(), traced_once(f, args) as (traced, _):
        return _with_cotangents(graph, traced)


def _with_cotangents(graph: Graph, traced: Traced) -> Graph:
    found: Graph = with_adjoints(graph, traced, (handle for _, handle in _outputs(traced)))
    return found


@contextmanager
def traced_once(f: Callable[..., Any], args: tuple[Any, ...], policy: Any = None) -> Iterator[tuple[Traced, Ledger]]:
    """One run of ``f`` under a policy, by default save-all, every float or complex leaf of the arguments an input, and
    the ledger of what is held; after the block nothing is."""
    with shapes_alone() if has_spec(args) else nullcontext():
        purpose = Purpose(allow_int=True, repeatable=True)
        traced, ledger = traced_under((f, args, {}), range(len(args)), policy or SaveAll(), purpose)
        with closing(Pull(traced, ledger)):
            yield traced, ledger


def graph_of(traced: Traced, f: Callable[..., Any]) -> Graph:
    """The graph of a finished trace."""
    tape = traced.tape
    records = whole_records(tape, traced.governor)
    outputs = _outputs(traced)
    known = [(handle._id, spec_of(handle._value)) for _, handle in outputs if handle is not None]
    specs = specs_of(records, [*enumerate(leaf.spec for leaf in traced.inputs), *known])
    labels = input_labels(traced.inputs, f)
    slots = Slots(tape)
    nodes = [_node(ident, record, labels, slots) for ident, record in enumerate(records)]
    ends = tuple(Output(label, handle._id if handle is not None else None) for label, handle in outputs)
    return graph_from(name_of(f), nodes, specs, tape.n_inputs, ends)


def whole_records(tape: Tape, governor: Any) -> list[Record | None]:
    """The records; one whose values a ``checkpoint`` or a policy has let go stands there without them."""
    chains = governor.chains if governor is not None else ()
    records = list(tape.records)
    for chain in chains:
        for k in chain.recipes:
            if records[k] is None:
                records[k] = chain.recipes.record_of(k)
    return records


def input_labels(inputs: Iterable[Any], f: Callable[..., Any]) -> list[str]:
    """The inputs of a trace by the names of the parameters: ``c``, ``params['w']``; ``argument 2`` where the signature
    does not tell."""
    try:
        kinds = inspect.Parameter
        parameters = inspect.signature(f).parameters.values()
        names = [p.name for p in parameters if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)]
    except (TypeError, ValueError):
        names = []

    def named(match: re.Match[str]) -> str:
        number = int(match[1])
        return names[number] if number < len(names) else match[0]

    return [re.sub(r"^argument (\d+)", named, leaf.label) for leaf in inputs]


def _outputs(traced: Traced) -> list[tuple[str, Any]]:
    """Path and handle of every leaf returned; None for a leaf that does not depend on the inputs."""
    active = [
        leaf if isinstance(leaf, Handle) and leaf._tape is traced.tape and leaf._id is not None else None
        for leaf in flatten(traced.out)[0]
    ]
    return list(zip(paths(traced.out), active, strict=True))


def specs_of(records: Sequence[Record | None], known: Iterable[tuple[int, Any]]) -> list[ArraySpec | None]:
    """The spec of every value, where some are known; None for a tuple of results, and for a value that no output
    depends on."""
    solver = SpecSolver(len(records))
    for ident, spec in known:
        solver.learn(ident, spec)
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
    """The specs of views that nobody reads: each view is taken of one zero broadcast to the shape, so that no array is
    needed."""
    for ident, record in enumerate(records):
        if record is None or solver.spec(ident) is not None:
            continue
        form = FORMS[record[0]]
        prim, ids = form.primitive, form.ids(record)
        spec = solver.spec(ids[0]) if prim.view and form.has_params and len(prim.operands) == len(ids) == 1 else None
        if spec is not None:
            stand_in = np.broadcast_to(np.zeros((), spec.dtype), spec.shape)
            solver.learn(ident, shared_spec(prim.forward(stand_in, **dict(zip(prim.params, record[-2], strict=True)))))


def _learn_from_call(ident: int, form: Form, record: Record, solver: SpecSolver) -> Sequence[Any]:
    """What the record of a primitive tells of its operands and output; the specs of its parts where it has several
    outputs."""
    prim, ids = form.primitive, form.ids(record)
    if form.entering is not None:
        return ()
    if form.exact:
        for i in ids:
            solver.same(i, ident)
    by_name: dict[int | str, int] = dict(zip(form.active, ids, strict=True))
    by_name.update((prim.name_of(position), i) for position, i in zip(form.active, ids, strict=True))
    by_name["out"] = ident
    facts: list[tuple[int | str, Any]] = list(zip(form.specs, record[form.first_spec :], strict=False))
    facts += [
        (name, tuple(map(shared_spec, value)) if isinstance(value, tuple) else shared_spec(value))
        for name, value in zip(form.saved, form.saved_values(record), strict=True)
    ]
    parts: Sequence[Any] = ()
    for name, spec in facts:
        if name == "out" and isinstance(spec, tuple):
            parts = spec
        elif name == prim.family and isinstance(spec, tuple):
            for k, one in enumerate(spec):
                if f"{name}[{k}]" in by_name:
                    solver.learn(by_name[f"{name}[{k}]"], one)
        elif name in by_name:
            solver.learn(by_name[name], spec)
    return parts


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


_OF_STEPS: Final = {"snapshot": "snapshots", "constant": "constants of steps"}
"""What a loop holds for a reason; of any other the steps."""


class Slots:
    """The slots of every record of a tape. Buffers are numbered in order of appearance and kept alive, so that the
    ``id`` of one is never given to another."""

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
            Slot(_OF_STEPS.get(reason, "steps"), None, n, reason, numbers[reason]) for reason, n in sums.items()
        )

    def _number(self, buffer: Any) -> int:
        number = self.numbers.get(id(buffer))
        if number is None:
            number = self.numbers[id(buffer)] = len(self.alive)
            self.alive.append(buffer)
        return number


def step_tapes(run: LoopRecord) -> Mapping[int, Any]:
    """The recorded steps that a loop holds, by step."""
    tapes = run.chain.store.of("tape")
    if run.chain.work is not None:
        tapes[max(tapes, default=-1) + 1] = run.chain.work
    return dict(sorted(tapes.items()))


def loop_runs(records: Iterable[Record | None]) -> Iterator[tuple[LoopRecord, int]]:
    """Every loop that records hold, with its call site; outer loops before those in their recorded steps."""
    todo = deque([records])
    while todo:
        for record in todo.popleft():
            if record is not None and record[0] == LOOP.opcode:
                yield record[2], record[-1]
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
        return Node(
            ident, run.name, record[1], saved=slots.of(ident), file=file, line=line, steps=steps, body=_body(run)
        )  # fmt: skip
    if record[0] == CAPTURE.opcode:
        return Node(ident, "captured", detail=f"%{record[1]}", file=file, line=line)
    if record[0] == COMPONENT.opcode:
        return Node(ident, "component", (record[1],), f"[{record[2]}]", file=file, line=line)
    operands: list[int | None] = [None] * form.arity if form.entering is None else list(form.ids(record))
    for position, i in zip(form.active, form.ids(record), strict=form.entering is None):
        operands[position] = i
    n_outputs = max(1, len(form.primitive.outputs))
    view, saved = form.primitive.view, slots.of(ident)
    return Node(ident, form.name, tuple(operands), _detail(form, record), saved, file, line, view, n_outputs=n_outputs)


def _body(run: LoopRecord) -> Body | None:
    """One recorded step, the second where there are several: it stands for those that follow."""
    tapes = list(step_tapes(run).values())[:2]
    if not tapes:
        return None
    step = tapes[-1]
    records = whole_records(step.tape, getattr(step, "governor", None))
    carried = [(left[0], i) for left, i in zip(step.left, step.entered, strict=True) if left and i is not None]
    outside = run.chain.steps.captured_specs or {}
    known = [part for part in step.left if part]
    known += [(i, dict(known)[k]) for k, i in carried]
    known += [(k, outside.get(r[1])) for k, r in enumerate(records) if r and r[0] == CAPTURE.opcode]
    labels = [f"state[{step.entered.index(i)}]" if i in step.entered else "xs" for i in range(step.tape.n_inputs)]
    slots = Slots(step.tape)
    nodes = [_node(ident, record, labels, slots) for ident, record in enumerate(records)]
    ends = tuple(Output(f"state[{k}]", left[0]) for k, left in enumerate(step.left) if left)
    return Body(graph_from(run.name, nodes, specs_of(records, known), step.tape.n_inputs, ends), tuple(carried))


def _detail(form: Form, record: Record) -> str:
    """The part of the array that a write goes to, or the static parameters that the rules read."""
    if record[0] in WRITE_OPCODES:
        region = record[1 + form.n_ids]
        steps = "".join(
            f"[{shown(params['key'])}]" if "key" in params else f".{prim.name}" for prim, params in region.steps
        )
        return steps if steps and region.key is Ellipsis else f"{steps}[{shown(region.key)}]"
    if form in (PASSED, BEGUN):
        told = zip(("tag", "step"), record[-3], strict=True)
    else:
        told = zip(form.primitive.params, record[-2] if form.has_params else (), strict=False)
    params = [(name, value) for name, value in told if value is not None and value is not False]
    return ", ".join(f"[{shown(value)}]" if name == "key" else f"{name}={shown(value)}" for name, value in params)


def shown(value: Any) -> str:
    """A static parameter in a few characters; an array by its spec."""
    if isinstance(value, slice):
        parts = ["" if part is None else str(part) for part in (value.start, value.stop, value.step)]
        text = ":".join(parts if parts[2] else parts[:2])
    elif isinstance(value, tuple):
        text = ", ".join(map(shown, value))
        text = f"({text})" if not any(isinstance(part, slice) or part is Ellipsis for part in value) else text
    elif value is Ellipsis:
        text = "..."
    elif isinstance(value, np.ndarray | Handle):
        text = str(shared_spec(value))
    else:
        text = repr(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
