"""``saved``: one row for each buffer that a program holds under save-all. The function runs once, without a reverse."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from attrs import define, evolve, field

from pullback.instruments.inspect.graph import place_text
from pullback.instruments.inspect.graph_of_tape import (
    input_labels,
    loop_runs,
    spec_held,
    step_tapes,
    traced_once,
    whole_records,
)
from pullback.instruments.inspect.saved_table import Choice, Row, Saved
from pullback.memory.in_force import policy_in_force
from pullback.memory.ledger import Held, Ledger, tape_holdings
from pullback.policies.base import PolicyOrAuto
from pullback.policies.save_all import SaveAll
from pullback.programs.marks.named_values import BEGUN, PASSED
from pullback.programs.plain.plain_snapshots import PlainSnapshots
from pullback.programs.replay.recipes import Operand
from pullback.recording.crossing import CAPTURE
from pullback.recording.handles import plain_value
from pullback.recording.recorder import INPUT
from pullback.recording.results import COMPONENT
from pullback.recording.tape import Tape
from pullback.rules.forms import FORMS, Form
from pullback.tracing.running import Traced
from pullback.transforms.derivatives.argnums import name_of
from pullback.words.call_sites import public, site_line, site_text
from pullback.words.specs import buffer_of, shared_spec

AGAIN = ("steps run again",)
"""Who reads a snapshot."""


@public
def saved(f: Callable[..., Any], *args: Any, policy: PolicyOrAuto = None) -> Saved:
    """What ``vjp(f, *args)`` holds under a policy until it is pulled back, a row for each buffer.

    Every buffer counts once, in bytes, at the first record that holds it, with the user's line and those whose pull
    will read it; the steps of a loop function are summed slot by slot. What a policy keeps on disk is not in it. ``f``
    runs once.

    Parameters
    ----------
    f
        Any function.
    *args
        Its arguments.
    policy
        Default: the policy in force.

    Returns
    -------
    A :class:`~pullback.instruments.inspect.saved_table.Saved` table: ``.top(n)``, ``.group("line")``, ``.to_dict()``.

    Raises
    ------
    PullbackError
        As :func:`vjp` of ``f``.

    Example
    -------
    >>> import numpy as np, pullback as pb
    >>> pb.saved(lambda x: np.sum(np.sin(x) ** 2), np.ones(1000)).total_bytes
    16000
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
    """Whose pulls read each buffer, and in how many slots."""

    def rows(self) -> Iterator[Row]:
        """The rows of the tape, then those of its loops, then those of what checkpoints hold of what enters."""
        tape = self.traced.tape
        leaves = [argument.leaf for argument in self.traced.inputs]
        self.arguments = {id(buffer_of(leaf)) for leaf in leaves if isinstance(leaf, np.ndarray)}
        self._note_readers(tape)
        for held in tape_holdings(tape.records):
            if self._is_new(held.buffer):
                yield self._row(held, tape, _origin(held, tape, self.labels))
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

    def _row(self, held: Held, tape: Tape, origin: str, loop: str = "", step: int | None = None) -> Row:
        file, line = site_line(held.site)
        key = id(held.buffer)
        readers = self.readers.get(key, {})
        return Row(
            held.nbytes, held.form.name, held.name, held.reason, spec_held(held), origin, file, line,
            max(1, sum(readers.values())), 1, loop, key in self.arguments, tuple(readers), step, step,
            _made_at(held, tape),
        )  # fmt: skip

    def _loop_rows(self, tape: Tape) -> Iterator[Row]:
        """One row for each slot of a loop's body, over all steps. A loop holds the buffers that the ledger books."""
        rows: dict[tuple[Any, ...], Row] = {}
        for run, site in loop_runs(tape.records):
            loop = f"{run.name} at {site_text(site)}"
            for k, step in step_tapes(run).items():
                self._note_readers(step.tape)
                for held in tape_holdings(step.tape.records):
                    if id(held.buffer) in self.ledger.held and self._is_new(held.buffer):
                        row = self._row(held, step.tape, _origin(held, step.tape, [], inside=True), loop, k)
                        key = (loop, held.ident, held.form.opcode, held.name, row.spec, row.reason, row.is_argument)
                        _add(rows, key, row)
                kept = getattr(step, "governor", None)  # some values are kept, and the others computed again
                for chain in () if kept is None else kept.chains:
                    self._kept_rows(chain, loop, k, rows)
                for constant in () if kept is None else self._constant_rows(kept):
                    row = evolve(constant, loop=loop, first_step=k, last_step=k)
                    _add(rows, (loop, "constant", row.primitive, row.file, row.line), row)
            self._state_rows(run, (loop, *site_line(site)), rows)
        yield from rows.values()

    def _kept_rows(self, kept: Any, loop: str, step: int, rows: dict[tuple[Any, ...], Row]) -> None:
        """What a policy keeps of the inside of one step."""
        for ident, name, value in kept.held_values():
            buffer = self._booked(plain_value(value))
            record = kept.recipes.record_of(ident)
            if buffer is None:
                continue
            origin, where = ("state", ("", 0)) if record is None else _made_by(record)
            reason = self.ledger.held[id(buffer)][2]
            _add(rows, (loop, "kept", name, origin, where), Row(
                buffer.nbytes, origin.split()[0], name, reason, shared_spec(buffer), origin, *where,
                loop=loop, first_step=step, last_step=step,
            ))  # fmt: skip

    def _state_rows(self, run: Any, where: tuple[str, str, int], rows: dict[tuple[Any, ...], Row]) -> None:
        """States between the steps of a loop: its snapshots, the first state, which is kept for another pull, and what
        is on its way to another tier."""
        states = [(step, AGAIN, snapshot.leaves) for step, snapshot in sorted(run.chain.store.of("state").items())]
        for step, readers, leaves in (*states, (0, ("another pull",), run.chain.start or ())):
            for k, leaf in enumerate(leaves):
                buffer = self._booked(leaf)
                if buffer is not None:
                    slot, nbytes, spec = f"state[{k}]", buffer.nbytes, shared_spec(leaf)
                    row = Row(nbytes, run.name, slot, "snapshot", spec, "state", readers=readers)
                    _add_step(rows, row, where, step)
        self._stored_rows(run.chain.store, run.name, where, rows)

    def _stored_rows(
        self, store: Any, name: str, where: tuple[str, str, int], rows: dict[tuple[Any, ...], Row]
    ) -> None:
        """What is booked for an entry of a store, and no row has shown: what is on its way to another tier."""
        for (kind, step, _), entry in store.entries.items():
            items = getattr(entry, "items", None)
            for key, nbytes, _ in items if isinstance(items, list) else ():
                if key in self.ledger.held and key not in self.seen:
                    self.seen.add(key)
                    slot = "state" if kind == "state" else "values of the step"
                    row = Row(nbytes, name, slot, self.ledger.held[key][2], None, slot, readers=AGAIN)
                    _add_step(rows, row, where, step)

    def _snapshot_rows(self) -> Iterator[Row]:
        """The snapshots of marked steps and of what checkpoints hold of what enters, the plain arrays that steps read,
        then what the ledger books and no record names."""
        records = whole_records(self.traced.tape, self.traced.governor)
        governor = self.traced.governor
        rows: dict[tuple[Any, ...], Row] = {}
        for chain in governor.chains if governor is not None else ():
            for step, ident, name, value in _held_by(chain):
                buffer = self._booked(plain_value(value))
                if buffer is None:
                    continue
                row = self._value_row(ident, name, buffer, records[ident])
                if step is None:
                    rows[len(rows),] = row
                    continue
                loop = f"steps at {chain.recipes.first_line()}"
                inside = ident >= chain.cuts[0]
                row = evolve(
                    row, primitive="steps", name="state", loop=loop, readers=AGAIN, first_step=step, last_step=step,
                    origin="state" if inside else row.origin,
                )  # fmt: skip
                _add(rows, (loop, row.file, row.line, row.spec, row.reason, row.is_argument, row.origin), row)
            if isinstance(chain.snapshots, PlainSnapshots):
                where = (f"steps at {chain.recipes.first_line()}", "", 0)
                self._stored_rows(chain.store, "steps", where, rows)
        yield from rows.values()
        yield from self._constant_rows(governor)
        for key, (_, nbytes, reason) in self.ledger.held.items():
            if key not in self.seen:
                yield Row(nbytes, "", reason, reason, None, "constant" if reason == "constant" else "not told")

    def _constant_rows(self, governor: Any) -> Iterator[Row]:
        """The plain arrays that steps read when they are executed again, with the first operation that reads each."""
        constants = {} if governor is None else governor.constants
        readers = _readers_of(governor.chains, constants) if constants else {}
        for key, value in constants.items():
            buffer = self._booked(value)
            if buffer is not None:
                recipe, loop, step = readers.get(key, (None, "", None))
                _, where = ("", ("", 0)) if recipe is None else _made_by(recipe.skeleton)
                name = "" if recipe is None else recipe.form.name
                yield Row(
                    buffer.nbytes, name, "constant", "constant", shared_spec(buffer), "constant", *where,
                    loop=loop, readers=AGAIN, first_step=step, last_step=step,
                )  # fmt: skip

    def _value_row(self, ident: int, name: str, buffer: Any, record: Any) -> Row:
        form = FORMS[record[0]]
        file, line = site_line(record[-1])
        primitive = "checkpoint" if name == "entering" else form.name
        return Row(
            buffer.nbytes, primitive, name, self.ledger.held[id(buffer)][2], shared_spec(buffer),
            _value_text(ident, form, self.labels), file, line, is_argument=id(buffer) in self.arguments,
        )  # fmt: skip


def _held_by(chain: Any) -> Iterator[tuple[int | None, int, str, Any]]:
    """(step, id, name, value) of what a chain of plain code holds of values; None for the step where it is one."""
    steps, snapshots = len(chain.cuts) - 1, chain.snapshots
    if steps < 2 or not isinstance(snapshots, PlainSnapshots):
        yield from ((None, *held) for held in snapshots.held_values())
        return
    for step, snapshot in sorted({**snapshots.store.of("state"), **snapshots.filling}.items()):
        for ident, value in snapshot.values.items():
            yield max(step, 0), ident, "entering", value


def _readers_of(chains: Any, constants: Any) -> dict[int, tuple[Any, str, int]]:
    """The first recipe that reads a constant, the marked steps that this is of, and which, by the ``id`` of the
    constant."""
    found: dict[int, tuple[Any, str, int]] = {}
    for chain in chains:
        recipes = chain.recipes
        loop = f"steps at {recipes.first_line()}" if len(recipes.patterns) > 1 else ""
        seen = set[int]()
        for step, pattern in enumerate(recipes.patterns):
            is_new = recipes.others[step] is not None or id(pattern) not in seen
            seen.add(id(pattern))
            operands = recipes.operands_of(step) if is_new else ()
            for recipe in pattern.recipes if operands else ():
                for a in recipe.arguments if recipe is not None else ():
                    if isinstance(a, Operand) and id(operands[a.place]) in constants:
                        found.setdefault(id(operands[a.place]), (recipe, loop, step))
    return found


def _add_step(rows: dict[tuple[Any, ...], Row], row: Row, where: tuple[str, str, int], step: int) -> None:
    """Add what one step of a loop holds: ``where`` is the loop, and its file and line."""
    loop, file, line = where
    row = evolve(row, loop=loop, file=file, line=line, first_step=step, last_step=step)
    _add(rows, (loop, row.name, row.spec, row.reason, row.readers), row)


def _made_by(record: Any) -> tuple[str, tuple[str, int]]:
    """``add of the step``, and the user's file and line."""
    return f"{FORMS[record[0]].name} of the step", site_line(record[-1])


def _add(rows: dict[tuple[Any, ...], Row], key: tuple[Any, ...], row: Row) -> None:
    """Add one more step to the row under a key, or begin it."""
    before = rows.get(key)
    if before is not None:
        nbytes, steps = before.nbytes + row.nbytes, before.steps + 1
        row = evolve(before, nbytes=nbytes, steps=steps, last_step=row.last_step)
    rows[key] = row


def _ident(held: Held, tape: Tape) -> int:
    """The number of the value that a record holds."""
    form = held.form
    if held.name not in form.primitive.operands:
        return held.ident
    ids = form.ids(tape.records[held.ident])  # type: ignore[arg-type]  # a record that holds something is there
    return ids[form.active.index(form.primitive.operands.index(held.name))]


def _origin(held: Held, tape: Tape, labels: list[str], *, inside: bool = False) -> str:
    """The origin of a value: the name of an input, the number and name of a node, or ``constant``."""
    if held.reason == "constant":
        return "constant"
    ident, form = _ident(held, tape), held.form
    if held.name == form.primitive.family:
        return "one of the operands"
    record = tape.records[ident]
    made_by = FORMS[record[0]] if record is not None else form
    if record is not None and made_by in (PASSED, BEGUN):
        return repr(record[-3][0])  # the label that the value bears
    if inside:  # numbers inside a loop's body are on no graph that the user can print
        return "state" if made_by is INPUT else f"{made_by.name} of the step"
    if made_by is COMPONENT and record is not None:
        return f"%{ident}, part {record[2]} of %{record[1]}"
    return _value_text(ident, made_by, labels)


def _made_at(held: Held, tape: Tape) -> str:
    """The user's line that made a value."""
    record = None if held.reason == "constant" else tape.records[_ident(held, tape)]
    return "" if record is None or FORMS[record[0]] in (INPUT, CAPTURE, BEGUN) else place_text(*site_line(record[-1]))


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
