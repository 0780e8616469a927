"""A replayable program: beside each record, what re-executes it. The same primitive on the same values in the same
strides gives the same bits.

An entry is ``(skeleton, arguments, params)``: the record with its saved values left out, the operands as ids or held
constants, and the static parameters. Replay never calls the user's Python.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from attrs import define, field

from pullback.recording.crossing import raised
from pullback.recording.handles import (
    Handle,
    freeze,
    twin_of,
)
from pullback.recording.recorder import evaluate
from pullback.recording.results import COMPONENT, looks_at
from pullback.recording.writes import CREATE, WRITE_OPCODES, created
from pullback.rules.forms import FORMS, Form
from pullback.rules.rule_names import positions, read
from pullback.words.call_sites import site_text
from pullback.words.errors import say_where


@define(eq=False)
class Entry:
    """What re-executes one record, and what it needs to become a record again."""

    skeleton: tuple[Any, ...]
    arguments: tuple[Any, ...]
    params: Mapping[str, Any]
    rerun: Any = None
    """For a loop: the function that runs it again on the values of what entered."""

    @property
    def form(self) -> Form:
        """The form of the record."""
        form: Form = FORMS[self.skeleton[0]]
        return form

    def ids(self) -> list[int]:
        """The ids this entry reads."""
        return [a for a in self.arguments if type(a) is int]

    def saved_ids(self, ident: int) -> set[int]:
        """The ids whose values the record holds, its own id for its output or a residual."""
        form, arity = self.form, len(self.arguments)
        found: set[int] = set()
        for name in form.saved:
            if name in form.primitive.operand_names:
                given = map(self.arguments.__getitem__, positions(form.primitive, name, arity))
                found |= {a for a in given if type(a) is int}
            else:
                found.add(ident)
        return found


@define(eq=False)
class Needs:
    """Which values a replay must compute, and until when: ancestors of what the pullbacks read, no more."""

    values: set[int] = field(factory=set)
    last_use: dict[int, int] = field(factory=dict)
    """Id to the last entry that computes or saves with it."""

    @classmethod
    def of(cls, entries: Mapping[int, Entry], start: int, stop: int) -> "Needs":
        """The needs of the entries ``start .. stop-1``."""
        needs = cls()
        values, last_use = needs.values, needs.last_use
        for ident in range(stop - 1, start - 1, -1):
            entry = entries.get(ident)
            if entry is None:
                continue
            saved = entry.saved_ids(ident)
            if entry.rerun is not None:
                saved = {ident}
            values |= saved
            used: Iterable[int] = saved
            if ident in values:
                used = (*saved, *entry.ids())
                values.update(entry.ids())
            for value in used:
                last_use.setdefault(value, ident)
        return needs


@define(eq=False)
class Replayer:
    """Re-executes entries on an environment of values by id. It writes in place where the first run did, and nowhere
    else."""

    entries: Mapping[int, Entry]
    needs: Needs
    env: dict[int, Any] = field(factory=dict)
    own: set[int] = field(factory=set)
    """Ids whose buffers this replay made."""
    written: set[int] = field(factory=set)
    """Ids of arrays that have been written: views of them are copied when saved."""
    pinned: set[int] = field(factory=set)
    """Ids of arrays a record made in this replay holds."""
    base: dict[int, int] = field(factory=dict)
    """View id to the id of the array it looks at."""
    residuals: dict[int, Mapping[str, Any]] = field(factory=dict)

    def run(self, start: int, stop: int, records: list[Any] | None) -> None:
        """Execute ``start .. stop-1``; with ``records``, put each record back in its place with the values it holds.

        Silently: the first run has warned where the user's own ``np.errstate`` let it.
        """
        with np.errstate(all="ignore"):
            self._run(start, stop, records)

    def _run(self, start: int, stop: int, records: list[Any] | None) -> None:
        for ident in range(start, stop):
            entry = self.entries.get(ident)
            if entry is None:
                continue
            if ident in self.needs.values:
                try:
                    self._execute(ident, entry)
                except Exception as error:
                    say_where(
                        error, f"as {entry.form.name}, called at {site_text(entry.skeleton[-1])}, was executed again"
                    )
                    raise
            if records is not None:
                records[ident] = self._record(ident, entry)
            self._drop(ident, entry)

    def _execute(self, ident: int, entry: Entry) -> None:
        form = entry.form
        opcode = entry.skeleton[0]
        if opcode in WRITE_OPCODES:
            self._write(ident, entry)
            return
        if opcode == CREATE.opcode:
            self.env[ident] = created(entry.arguments, **entry.params)
            self.own.add(ident)
            return
        values = [self.env[a] if type(a) is int else a.value for a in entry.arguments]
        if entry.rerun is not None:
            self.pinned.update(self.base.get(a, a) for a in entry.ids())  # the run holds what entered the loop
            self.env[ident], run = entry.rerun([
                freeze(value) if isinstance(value, Handle) else value for value in values
            ])
            self.residuals[ident] = {"run": run}
            return
        if opcode == COMPONENT.opcode:
            self.env[ident] = values[0][entry.params["place"]]
            return
        is_mark = not (
            form.primitive.rules or form.primitive.nondiff
        )  # nothing to differentiate: it hands on what it is given
        out = (
            form.primitive.forward(*values, **entry.params)
            if is_mark
            else evaluate(form.primitive, tuple(values), entry.params)
        )
        if form.primitive.residuals:
            out, self.residuals[ident] = out
        if form.primitive.opaque:  # what an opaque object keeps of an operand is not written
            self.pinned.update(self.base.get(a, a) for a in entry.ids())
        source = entry.arguments[0]
        if form.primitive.view and type(source) is int and looks_at(out, values[0]):
            self.base[ident] = self.base.get(source, source)
        else:
            if isinstance(out, Handle):
                out = freeze(out) if any(out is v for v in values) else out
            elif type(out) is np.ndarray and any(
                out is v or (out.base is not None and isinstance(v, np.ndarray) and np.may_share_memory(out, v))
                for v in values
            ):
                out = out.copy(order="K")
            self.own.add(ident)
        self.env[ident] = out

    def _write(self, ident: int, entry: Entry) -> None:
        root, value = entry.arguments
        source = self.env[value] if type(value) is int else value.value
        array = self.env[root] if type(root) is int else root.value
        free = type(root) is int and root in self.own and root not in self.pinned and not self._read_later(root, ident)
        if not free:
            array = twin_of(array)
        if isinstance(source, Handle):
            array = raised(array, source._tape)
        region = entry.params["region"]
        if region.fancy and isinstance(source, np.ndarray) and np.may_share_memory(source, array):
            source = np.array(source)
        run = entry.form.execute
        assert run is not None  # every write form says how it is executed
        run(array, source, region)
        self.env[ident] = array
        self.own.add(ident)
        self.written.add(ident)

    def _read_later(self, root: int, ident: int) -> bool:
        """Whether the value before a write, or a view of it, is read after the write."""
        last = self.needs.last_use
        if last.get(root, -1) > ident:
            return True
        return any(last.get(view, -1) > ident for view, base in self.base.items() if base == root and view in self.env)

    def _record(self, ident: int, entry: Entry) -> tuple[Any, ...]:
        form = entry.form
        if entry.rerun is not None:
            return (*entry.skeleton[:2], self.residuals.pop(ident)["run"], *entry.skeleton[3:])
        if not form.saved:
            return entry.skeleton
        start = 1 + len(form.active)
        saved = tuple(self._saved(name, ident, entry) for name in form.saved)
        return (*entry.skeleton[:start], *saved, *entry.skeleton[start + len(saved) :])

    def _saved(self, name: str, ident: int, entry: Entry) -> Any:
        prim, arguments = entry.form.primitive, entry.arguments
        if name == "out" or name in prim.outputs:
            self.pinned.add(ident)
        residuals = self.residuals.get(ident, {})
        return read(prim, name, lambda k: self._held(arguments[k]), len(arguments), self.env.get(ident), residuals)

    def _held(self, argument: Any) -> Any:
        if type(argument) is not int:
            return argument.value
        value = self.env[argument]
        if isinstance(value, Handle):
            return freeze(value)
        root = self.base.get(argument, argument)
        if root != argument and root in self.written:
            return twin_of(value) if isinstance(value, np.ndarray) else value
        self.pinned.add(root)
        return value

    def _drop(self, ident: int, entry: Entry) -> None:
        """Let go of the values that nothing after this entry reads."""
        last = self.needs.last_use
        for value in (*entry.ids(), ident):
            if last.get(value, -1) <= ident:
                self.env.pop(value, None)
                self.base.pop(value, None)
        unused = self.residuals.pop(ident, None)
        if unused is not None and entry.rerun is not None:
            unused["run"].release()


class Const:
    """An operand of a replayable record that is no value of the tape."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value
