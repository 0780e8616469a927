"""``saved``: one row for each buffer that a program holds under save-all. The function runs once, without a reverse."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from attrs import define, evolve, field

from pullback.inspect.graph import place_text
from pullback.inspect.graph_of_tape import (
    input_labels,
    loop_runs,
    spec_held,
    step_tapes,
    traced_once,
    whole_records,
)
from pullback.inspect.saved_table import Choice, Row, Saved
from pullback.memory.in_force import policy_in_force
from pullback.memory.ledger import Held, Ledger, tape_holdings
from pullback.policies.save_all import SaveAll
from pullback.recording.handles import plain_value
from pullback.recording.recorder import INPUT
from pullback.recording.results import COMPONENT
from pullback.recording.tape import Tape
from pullback.rules.forms import FORMS, Form
from pullback.tracing.running import Traced
from pullback.transforms.adjoint_fields import BEGUN, PASSED
from pullback.transforms.argnums import name_of
from pullback.words.call_sites import public, site_line
from pullback.words.specs import buffer_of, shared_spec


@public
def saved(f: Callable[..., Any], *args: Any, policy: Any = None) -> Saved:
    """The :class:`~pullback.inspect.saved_table.Saved` table of what ``vjp(f, *args)`` holds under a policy (default:
    the one in force) until it is pulled back.

    Every buffer counts once, in bytes, at the first record that holds it, with the user's line and those whose pull
    will read it; the steps of a loop function are summed slot by slot. What a policy keeps on disk is not in it. ``f``
    runs once. Raises what ``f`` raises.
    """
    governing = policy_in_force(policy)
    under = "" if isinstance(governing, SaveAll) else str(governing)
    with traced_once(f, args, governing) as (traced, ledger):
        reader = _Reader(traced, ledger, input_labels(traced.inputs, f))
        return Saved(name_of(f), tuple(reader.rows()), tuple(_choices(traced.tape)), under)


@define(eq=False)
class _Reader:
    """Goes over everything held, buffer by buffer; each buffer counts once."""

    traced: Traced
    ledger: Ledger
    labels: list[str]
    seen: set[int] = field(factory=set)
    arguments: set[int] = field(factory=set)
    readers: dict[int, dict[str, int]] = field(factory=dict)
    """By buffer: whose pulls read it, and in how many slots."""

    def rows(self) -> Iterator[Row]:
        """The rows of the tape, then those of its loops, then those of what checkpoints hold at their entry."""
        tape = self.traced.tape
        leaves = [argument.leaf for argument in self.traced.inputs]
        self.arguments = {id(buffer_of(leaf)) for leaf in leaves if isinstance(leaf, np.ndarray)}
        self._note_readers(tape)
        for held in tape_holdings(tape.records):
            if self._is_new(held.buffer):
                yield self._row(held, _origin(held, tape, self.labels))
        yield from self._loop_rows(tape)
        yield from self._snapshot_rows()

    def _note_readers(self, tape: Tape) -> None:
        for record in tape.records:
            for held in tape_holdings((record,)):
                of_buffer = self.readers.setdefault(id(held.buffer), {})
                who = f"{held.form.name} at {place_text(*site_line(held.site))}"
                of_buffer[who] = of_buffer.get(who, 0) + 1

    def _is_new(self, buffer: Any) -> bool:
        if id(buffer) in self.seen:
            return False
        self.seen.add(id(buffer))
        return True

    def _booked(self, value: Any) -> Any:
        """The buffer of an array that the ledger books and no row shows yet; None for any other value."""
        buffer = buffer_of(value) if isinstance(value, np.ndarray) else None
        return buffer if buffer is not None and id(buffer) in self.ledger.held and self._is_new(buffer) else None

    def _row(self, held: Held, origin: str, loop: str = "", step: int | None = None) -> Row:
        file, line = site_line(held.site)
        key = id(held.buffer)
        readers = self.readers.get(key, {})
        return Row(
            held.nbytes, held.form.name, held.name, held.reason, spec_held(held), origin, file, line,
            max(1, sum(readers.values())), 1, loop, key in self.arguments, tuple(readers), step, step,
        )  # fmt: skip

    def _loop_rows(self, tape: Tape) -> Iterator[Row]:
        """One row for each slot of a loop's body, over all steps. A loop holds the buffers that the ledger books."""
        rows: dict[tuple[Any, ...], Row] = {}
        for run, where in loop_runs(tape.records):
            loop = f"{run.name} at {where}"
            for k, step in step_tapes(run).items():
                self._note_readers(step.tape)
                for held in tape_holdings(step.tape.records):
                    if id(held.buffer) in self.ledger.held and self._is_new(held.buffer):
                        row = self._row(held, _origin(held, step.tape, [], inside=True), loop, k)
                        key = (loop, held.ident, held.form.opcode, held.name, row.spec, row.reason, row.is_argument)
                        _add(rows, key, row)
            for step, snapshot in run.chain.store.of("state").items():
                for k, leaf in enumerate(snapshot.leaves):
                    buffer = self._booked(leaf)
                    if buffer is not None:
                        slot, spec, again = f"state[{k}]", shared_spec(leaf), ("steps run again",)
                        _add(rows, (loop, k), Row(
                            buffer.nbytes, run.name, slot, "snapshot", spec, "state",
                            loop=loop, readers=again, first_step=step, last_step=step,
                        ))  # fmt: skip
        yield from rows.values()

    def _snapshot_rows(self) -> Iterator[Row]:
        """What checkpoints hold at their entry, then what the ledger books and no record names."""
        records = whole_records(self.traced)
        for chain in self.traced.governor.chains if self.traced.governor is not None else ():
            for ident, name, value in chain.snapshots.held_values():
                buffer = self._booked(plain_value(value))
                if buffer is not None:
                    yield self._value_row(ident, name, buffer, records[ident])
        for key, (_, nbytes, reason) in self.ledger.held.items():
            if key not in self.seen:
                yield Row(nbytes, "", reason, reason, None, "constant" if reason == "constant" else "not told")

    def _value_row(self, ident: int, name: str, buffer: Any, record: Any) -> Row:
        form = FORMS[record[0]]
        file, line = site_line(record[-1])
        primitive = "checkpoint" if name == "entry" else form.name
        return Row(
            buffer.nbytes, primitive, name, self.ledger.held[id(buffer)][2], shared_spec(buffer),
            _value_text(ident, form, self.labels), file, line, is_argument=id(buffer) in self.arguments,
        )  # fmt: skip


def _add(rows: dict[tuple[Any, ...], Row], key: tuple[Any, ...], row: Row) -> None:
    """Add one more step to the row under a key, or begin it."""
    before = rows.get(key)
    if before is not None:
        nbytes, steps = before.nbytes + row.nbytes, before.steps + 1
        row = evolve(before, nbytes=nbytes, steps=steps, last_step=row.last_step)
    rows[key] = row


def _origin(held: Held, tape: Tape, labels: list[str], *, inside: bool = False) -> str:
    """The origin of a value: the name of an input, the number and name of a node, or ``constant``."""
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
    if record is not None and made_by in (PASSED, BEGUN):
        return repr(record[-2][0])  # the label that the value bears
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
                where = place_text(*site_line(site))
                yield Choice(form.name, rule.operands[0], _names(rule.values), others, where, count)


def _names(values: tuple[str, ...]) -> str:
    return " and ".join(values) or "nothing"
