"""``record`` and ``saved``: a program looked at. One run of the function under save-all, on the values given;
nothing is differentiated."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from attrs import define, evolve, field

from pullback.inspect.deriving import graph_of, input_labels, loop_runs, name_of, step_tapes, traced_once, whole_records
from pullback.inspect.graph import Graph
from pullback.inspect.holdings import Choice, Row, Saved
from pullback.memory.ledger import Held, Ledger, tape_holdings
from pullback.recording.recorder import COMPONENT, INPUT
from pullback.recording.tape import Tape
from pullback.rules.forms import FORMS, Form
from pullback.tracing.running import Traced
from pullback.words.call_sites import site_line
from pullback.words.specs import buffer_of, shared_spec


def record(f: Callable[..., Any], *args: Any) -> Graph:
    """The :class:`~pullback.inspect.graph.Graph` of ``f(*args)``: every operation that a float or complex leaf of the
    arguments reaches, in order.

    It holds names, shapes and dtypes, sizes in bytes and the user's lines, and no array. ``f`` runs once, under
    save-all. A loop function is one node with its number of steps. Raises what ``f`` raises.
    """
    traced, _ = traced_once(f, args)
    return graph_of(traced, f)


def saved(f: Callable[..., Any], *args: Any) -> Saved:
    """The :class:`~pullback.inspect.holdings.Saved` table of what ``vjp(f, *args)`` holds under save-all until it is
    pulled back.

    Every buffer counts once, in bytes, at the first record that holds it, with the user's line; the steps of a loop
    function are summed slot by slot. ``f`` runs once. Raises what ``f`` raises.
    """
    traced, ledger = traced_once(f, args)
    reader = _Reader(traced, ledger, input_labels(traced, f))
    rows = tuple(reader.rows())
    return Saved(name_of(f), rows, tuple(_choices(traced.tape)))


@define(eq=False)
class _Reader:
    """Goes over everything held, buffer by buffer; what has been seen counts no more."""

    traced: Traced
    ledger: Ledger
    labels: list[str]
    seen: set[int] = field(factory=set)
    arguments: set[int] = field(factory=set)
    holders: Counter[int] = field(factory=Counter)

    def rows(self) -> Iterator[Row]:
        """The rows of the tape, then of its loops, then of what checkpoints hold at their entry."""
        tape = self.traced.tape
        self.arguments = {
            id(buffer_of(given.leaf)) for given in self.traced.inputs if isinstance(given.leaf, np.ndarray)
        }
        _count_holders(tape.records, self.holders)
        for held in tape_holdings(tape.records):
            if self._is_new(held.buffer):
                yield self._row(held, _origin(held, tape, self.labels))
        yield from self._loop_rows(tape)
        yield from self._snapshot_rows()

    def _is_new(self, buffer: Any) -> bool:
        if id(buffer) in self.seen:
            return False
        self.seen.add(id(buffer))
        return True

    def _row(self, held: Held, origin: str, loop: str = "") -> Row:
        file, line = site_line(held.site)
        key = id(held.buffer)
        spec = shared_spec(held.buffer) if isinstance(held.buffer, np.ndarray) else None
        return Row(
            held.nbytes, held.form.name, held.name, held.reason, spec, origin, file, line,
            max(1, self.holders[key]), 1, loop, key in self.arguments,
        )  # fmt: skip

    def _loop_rows(self, tape: Tape) -> Iterator[Row]:
        """One row for each slot of a loop's body, over all steps; the ledger decides which buffers a loop holds."""
        found: dict[tuple[Any, ...], Row] = {}
        for run, where in loop_runs(tape.records):
            loop = f"{run.name} at {where}"
            for step in step_tapes(run).values():
                for held in tape_holdings(step.tape.records):
                    if id(held.buffer) in self.ledger.held and self._is_new(held.buffer):
                        row = self._row(held, _origin(held, step.tape, [], inside=True), loop)
                        _add(
                            found,
                            (loop, held.ident, held.form.opcode, held.name, row.spec, row.reason, row.is_argument),
                            row,
                        )
            for snapshot in run.chain.store.of("state").values():
                for k, leaf in enumerate(snapshot.leaves):
                    if (
                        isinstance(leaf, np.ndarray)
                        and id(buffer_of(leaf)) in self.ledger.held
                        and self._is_new(buffer_of(leaf))
                    ):
                        name = run.name
                        row = Row(
                            buffer_of(leaf).nbytes,
                            name,
                            f"state[{k}]",
                            "snapshot",
                            shared_spec(leaf),
                            "state",
                            loop=loop,
                        )
                        _add(found, (loop, k), row)
        yield from found.values()

    def _snapshot_rows(self) -> Iterator[Row]:
        """What checkpoints hold at their entry; and what only the ledger knows."""
        records = whole_records(self.traced)
        for chain in self.traced.governor.chains if self.traced.governor is not None else ():
            for snapshot in (*chain.store.of("state").values(), *chain.snapshots.filling.values()):
                for ident, value in snapshot.values.items():
                    if (
                        isinstance(value, np.ndarray)
                        and id(buffer_of(value)) in self.ledger.held
                        and self._is_new(buffer_of(value))
                    ):
                        yield self._snapshot_row(ident, buffer_of(value), records[ident])
        for key, (_, nbytes, reason) in self.ledger.held.items():
            if key not in self.seen:
                yield Row(nbytes, "checkpoint", reason, reason, None, "constant" if reason == "constant" else "?")

    def _snapshot_row(self, ident: int, buffer: Any, record: Any) -> Row:
        file, line = site_line(record[-1])
        origin = _value_text(ident, FORMS[record[0]], self.labels)
        return Row(
            buffer.nbytes, "checkpoint", "entry", "snapshot", shared_spec(buffer), origin, file, line,
            is_argument=id(buffer) in self.arguments,
        )  # fmt: skip


def _add(found: dict[tuple[Any, ...], Row], key: tuple[Any, ...], row: Row) -> None:
    """One step more of a row, or the first."""
    before = found.get(key)
    found[key] = row if before is None else evolve(before, nbytes=before.nbytes + row.nbytes, steps=before.steps + 1)


def _count_holders(records: list[Any], holders: Counter[int]) -> None:
    for record in records:
        holders.update(id(held.buffer) for held in tape_holdings((record,)))


def _origin(held: Held, tape: Tape, labels: list[str], *, inside: bool = False) -> str:
    """What a held value is: an input by its name, a node by its number and name, or a constant."""
    if held.reason == "constant":
        return "constant"
    ident, form = held.ident, held.form
    if held.name in form.primitive.operands:
        ids = form.ids(tape.records[held.ident])  # type: ignore[arg-type]  # a record that holds something is there
        ident = ids[form.active.index(form.primitive.operands.index(held.name))]
    elif held.name == form.primitive.family:
        return "one of the operands"
    record = tape.records[ident]
    made_by = FORMS[record[0]] if record is not None else form
    if inside:  # numbers inside a loop's body are on no graph that the user can print
        return "state" if made_by is INPUT else f"{made_by.name} of the step"
    if made_by is COMPONENT and record is not None:
        return f"%{ident}, part {record[2]} of %{record[1]}"
    return _value_text(ident, made_by, labels)


def _value_text(ident: int, made_by: Form, labels: list[str]) -> str:
    return f"input {labels[ident]}" if made_by is INPUT and ident < len(labels) else f"%{ident} {made_by.name}"


def _choices(tape: Tape) -> Iterator[Choice]:
    """Each rule that was chosen among alternatives, by the user's line."""
    times: Counter[tuple[int, int]] = Counter()
    for records in (
        tape.records,
        *(step.tape.records for run, _ in loop_runs(tape.records) for step in step_tapes(run).values()),
    ):
        times.update((record[0], record[-1]) for record in records if record is not None)
    for (opcode, site), count in times.items():
        form = FORMS[opcode]
        for rule, _ in form.rules:
            alternatives = form.primitive.rules.get(rule.operands[0], ())
            if len(alternatives) > 1:
                others = tuple(_names(other.values) for other in alternatives if other is not rule)
                file, line = site_line(site)
                where = Row(0, "", "", "", None, "", file, line).where
                yield Choice(form.name, rule.operands[0], _names(rule.values), others, where, count)


def _names(values: tuple[str, ...]) -> str:
    return " and ".join(values) or "nothing"
