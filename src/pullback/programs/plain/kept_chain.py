"""Steps of a recorded program of which ``Keep`` holds some values: the records let go of what they hold as they are
made, and are made again, from what is kept, just before they are reversed. What enters a step and what cannot be
computed again (the results of loop functions, captured values) is always kept."""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np
from attrs import define, field

from pullback.memory.kept_rules import OPERATOR, Decisions, Value, decisions_of
from pullback.memory.ledger import Item, Ledger, value_items
from pullback.memory.reverse_sweep import Sweep, release_records
from pullback.policies.keep import KEEP, RECOMPUTE, Keep
from pullback.programs.replay.kept_replayer import Order, bits_of, pull_kept, put_whole
from pullback.programs.replay.recipes import Calls
from pullback.programs.replay.step_recipes import StepRecipes
from pullback.recording.handles import (
    BORROWED,
    FREE,
    SHARED,
    WRITTEN,
    WRITTEN_SHARED,
    Handle,
    freeze,
    plain_value,
    root_of,
    twin_of,
)
from pullback.recording.recorder import form_of
from pullback.recording.results import COMPONENT
from pullback.recording.tape import Tape
from pullback.rules.rule_names import positions
from pullback.words.specs import buffer_of

MARK: Final = "name"
OPERANDS: Final = ("x", "told")


class Far(NamedTuple):
    """What stands for a kept value that is in this tier, under this number."""

    number: int
    tier: str


@define(eq=False)
class KeptChain:
    """Steps ``k`` of a program are the records ``cuts[k] .. cuts[k+1]-1``."""

    tape: Tape
    decisions: Decisions
    repeatable: bool
    """Whether another reverse pass may come: then nothing is let go of in one."""
    verifies: bool = True
    """Whether what is computed again is compared, by digest, with what the pullbacks would have read."""
    recipes: StepRecipes = field(factory=StepRecipes)
    kept: dict[Any, Any] = field(factory=dict)
    """The values that are kept, or where they are, by id. What is no value of the tape, a residual or one of several
    outputs that a record holds, by (id, name)."""
    items: dict[Any, list[Item]] = field(factory=dict)
    """What of these is booked."""
    values: dict[int, Value] = field(factory=dict)
    """What is known of the values of the step under way that are no views, by id."""
    base: dict[int, int] = field(factory=dict)
    """The id of what each view of the step under way looks at, by the id of the view."""
    digests: dict[int, int] = field(factory=dict)
    """The digests of what the pullbacks would have read, by id."""
    sizes: dict[int, int] = field(factory=dict)
    """The buffers that save-all would hold of the step under way, each with its bytes."""
    fresh: list[Any] = field(factory=list)
    """What has been kept in the step under way."""
    last: int | None = None
    """The newest record that can be made again: it still holds its values."""
    counts: bool = True
    """Whether these are steps to be counted: not where nobody has marked any."""
    ended: bool = False
    stores: bool = True
    """Whether what is to be elsewhere goes there immediately: not where it may not outlive the step."""
    hows: dict[Any, str] = field(factory=dict)
    """The tier to which a value is to go, where it does not go there immediately."""
    replays: ClassVar[bool] = False
    collects: ClassVar[bool] = True
    gauge: ClassVar[None] = None
    reads_from: ClassVar[int] = 1 << 62
    """Values below this are told to :meth:`read`: all."""

    @classmethod
    def under(
        cls, keep: Keep, tape: Tape, ledger: Ledger, repeatable: bool, calls: Calls | None, *, verifies: bool
    ) -> "KeptChain":
        """The chain of steps of which ``keep`` decides."""
        return cls(tape, decisions_of(keep, ledger), repeatable, verifies=verifies, recipes=StepRecipes(calls=calls))

    @property
    def cuts(self) -> Sequence[int]:
        """The first record of each step; behind the last, where the chain ends."""
        return self.recipes.cuts

    @property
    def snapshots(self) -> "KeptChain":
        """Who is told of what is read."""
        return self

    @property
    def ledger(self) -> Ledger:
        """Where it is booked what is kept."""
        return self.decisions.store.ledger

    def held_values(self) -> Iterator[tuple[int, str, Any]]:
        """(id, name, value) of each value that is kept as it is."""
        for key, value in self.kept.items():
            ident, name = key if type(key) is tuple else (key, "kept")
            if type(value) is not Far:
                yield ident, name, value

    # The user's run.
    def begin(self) -> None:
        """Step 0 starts at the next record."""
        self.recipes.begin(len(self.tape.records))

    def cut(self) -> None:
        """The step under way has ended and another begins."""
        self._strip()
        step = len(self.recipes.patterns)
        self.recipes.cut(len(self.tape.records))
        self.ledger.n_forward += self.counts
        self.settle(step)

    def finish(self) -> None:
        """The program, or its steps, have ended."""
        if not self.ended:
            self.ended = True
            self.cut()

    def read(self, ident: int, value: Any, operand: Any) -> None:
        """A record reads a value, or it is about to be written: where it is to be kept, this is the time."""
        if ident in self.kept or value is None:
            return
        if not self._runs_again(ident):
            self._hold(ident, value, operand, "snapshot" if ident < self.recipes.start else "saved")
            return
        known = self._known(ident, value)
        how = known.how or self.decisions.decide(known)
        if how != RECOMPUTE:
            self._keep(ident, value, operand, how)

    def _runs_again(self, ident: int) -> bool:
        """Whether a value is of this step, and what made it can be executed again: no rule decides of others."""
        recipe = self._recipe(ident)
        return recipe is not None and not (recipe.skeleton[0] == COMPONENT.opcode and self._has_no_recipe(recipe))

    def _recipe(self, ident: int) -> Any:
        """What executes a record of the step under way again; None of one that holds what it needs."""
        place, opened = ident - self.recipes.start, self.recipes.open
        recipe = opened[place] if 0 <= place < len(opened) else None
        return None if recipe is None or recipe.whole else recipe

    def _has_no_recipe(self, recipe: Any) -> bool:
        """Whether what this is a component of cannot be executed again."""
        [parent] = recipe.ids()
        return self._recipe(self.recipes.ident(parent, self.recipes.start)) is None

    def _known(self, ident: int, value: Any) -> Value:
        """What is known of a value of this step, which is one with its views."""
        root = self._root(ident)
        found = self.values.get(root)
        if found is None:
            recipe = self.recipes.open[root - self.recipes.start]
            while recipe is not None and recipe.skeleton[0] == COMPONENT.opcode and not self._has_no_recipe(recipe):
                recipe = self.recipes.open[recipe.ids()[0]]
            name = "" if recipe is None else recipe.form.primitive.name.removeprefix(OPERATOR)
            plain = plain_value(value)
            buffer = buffer_of(plain) if isinstance(plain, np.ndarray) else plain
            nbytes = getattr(buffer, "nbytes", 0)
            shape, dtype, site = np.shape(plain), getattr(plain, "dtype", None), recipe.skeleton[-1] if recipe else -1
            found = self.values[root] = Value(name, shape=shape, dtype=dtype, nbytes=nbytes, site=site)
        return found

    def _root(self, ident: int) -> int:
        """What of this step a value of it looks at, or the value itself."""
        root = self.base.get(ident, ident)
        return ident if root < self.recipes.start else root

    def met(self, ident: int, record: tuple[Any, ...], operands: Any, values: Any) -> None:
        """A record is about to be appended, whose recipe is there: the one before it lets go of what it holds."""
        self._strip()
        form, recipe = form_of(record), self.recipes.open[-1]
        assert recipe is not None  # it has just been made
        if recipe.whole:
            return
        self.last = ident
        ids = self._ids(recipe)
        if form.primitive.view and ids[0] is not None:
            self.base[ident] = self.base.get(ids[0], ids[0])
        if form.primitive.name == MARK and form.primitive.operands == OPERANDS:
            marked = ident if ids[0] is None or ids[0] < self.recipes.start else ids[0]
            self._label(marked, values[0], operands[0], record[-3][0])
        for name, saved in zip(form.saved, form.saved_values(record), strict=True):
            told, places = f"{form.name}.{name}", positions(form.primitive, name, len(ids))
            for k in places:
                known = ids[k]
                if known is not None:
                    self._saved(known, saved if name in form.primitive.operands else saved[k - places.start], told)
            if not places and name == "out" and not form.primitive.outputs:
                self._saved(ident, saved, told)
            elif not places:
                self._residual(ident, name, saved, told)

    def _ids(self, recipe: Any) -> list[int | None]:
        start = self.recipes.start
        return [self.recipes.ident(a, start) if type(a) is int else None for a in recipe.arguments]

    def _label(self, ident: int, value: Any, operand: Any, label: str) -> None:
        self.decisions.labels.add(label)
        known = self._known(ident, value)
        known.labels += (label,)
        self._again(known, ident, value, operand)

    def returned(self, name: str, handle: Any) -> None:
        """A function of several primitives has returned a value."""
        root = root_of(handle)  # to derive a stale view again would be a record that save-all has elsewhere
        shown = handle if self.base.get(handle._id, handle._id) == root._id else root
        if shown._id >= self.recipes.start:
            known = self._known(shown._id, shown._value)
            known.functions += (name,)
            if known.saved_as:
                self.decisions.makers.add(name)
            self._again(known, shown._id, shown._value, shown)

    def _saved(self, ident: int, value: Any, told: str) -> None:
        """A record holds a value."""
        self.decisions.saved.add(told)
        plain = plain_value(value)
        if isinstance(plain, np.ndarray):
            self.sizes[self.base.get(ident, ident)] = buffer_of(plain).nbytes
        if ident < self.recipes.start:
            return
        known = self._known(ident, value)
        self.decisions.makers |= {known.made_by, *known.functions} - {""}
        if told not in known.saved_as:
            known.saved_as += (told,)
            self._again(known, ident, value, None)
        if self.verifies and ident not in self.kept and ident not in self.digests:
            self.digests[ident] = bits_of(plain)

    def _residual(self, ident: int, name: str, value: Any, told: str) -> None:
        """A record holds what is no value of the tape."""
        self.decisions.saved.add(told)
        form_name = told.rpartition(".")[0]
        spec: Any = np.shape(value), getattr(value, "dtype", None), getattr(value, "nbytes", 0)
        known = Value(form_name, (), (), (told,), *spec)
        self.decisions.makers.add(form_name)
        how = self.decisions.decide(known)
        self.sizes[-1 - ident] = known.nbytes
        if how != RECOMPUTE:
            self.kept[ident, name] = value
            self._book((ident, name), value, "residual")
        if known.rule >= 0:
            self.decisions.used.add(known.rule)

    def _again(self, known: Value, ident: int, value: Any, operand: Any) -> None:
        """More is known of a value: what becomes of it is decided anew."""
        before, how = known.how, self.decisions.decide(known)
        if before not in (None, RECOMPUTE) and how != before:
            root = self._root(ident)
            for key in [k for k in self.fresh if type(k) is int and k in self.kept and self._root(k) == root]:
                if self._runs_again(key):
                    self.let_go(key)
        if how != RECOMPUTE and ident not in self.kept:
            self._keep(ident, value, operand, how)

    def _keep(self, ident: int, value: Any, operand: Any, how: str) -> None:
        if how == KEEP or not isinstance(value, np.ndarray) or not self.stores:
            self._hold(ident, value, operand, "saved")
            if how != KEEP and isinstance(value, np.ndarray):
                self.hows[ident] = how
            return
        if type(self.kept.get(self._root(ident))) is Far:
            return  # it is a view of what is there already
        value = _lasting(value, operand)  # it may be read in the background
        self.kept[ident] = Far(self.decisions.put(how, value), how)
        self.fresh.append(ident)

    def _hold(self, ident: int, value: Any, operand: Any, reason: str) -> None:
        """Keep a value by reference: who writes to it copies first."""
        self.kept[ident] = value = _lasting(value, operand)
        self._book(ident, value, reason)

    def _book(self, key: Any, value: Any, reason: str) -> None:
        self.fresh.append(key)
        items = self.items[key] = value_items((plain_value(value),), reason)
        self.ledger.hold(items)

    def let_go(self, key: Any) -> None:
        """A kept value is needed no more."""
        value = self.kept.pop(key)
        self.ledger.release(self.items.pop(key, ()))
        self.hows.pop(key, None)
        if type(value) is Far:
            self.decisions.drop(*value)

    def let_all_go(self) -> None:
        """Nothing is needed any more."""
        for key in list(self.kept):
            self.let_go(key)

    def taken(self) -> tuple[dict[Any, Any], dict[int, int], dict[Any, str]]:
        """What is kept, the digests, and what is to go elsewhere: somebody else holds and books it from now on."""
        found = self.kept, self.digests, self.hows
        for items in self.items.values():
            self.ledger.release(items)
        self.kept, self.digests, self.hows, self.items = {}, {}, {}, {}
        return found

    def takes(self, kept: dict[Any, Any], digests: dict[int, int], start: int) -> None:
        """What is kept of the step from record ``start`` on is held here, and booked."""
        self.kept, self.digests = kept, digests
        for key, value in kept.items():
            reason = "residual" if type(key) is tuple else "saved" if key >= start else "snapshot"
            self.items[key] = value_items((plain_value(value),), reason)
            self.ledger.hold(self.items[key])

    def _strip(self) -> None:
        """The newest record lets go of what it holds."""
        if self.last is not None and self.last < len(self.tape.records):
            self.tape.records[self.last] = None
        self.last = None

    def settle(self, step: int) -> None:
        """A step is over: what is kept of it and not needed goes, and it is told what the rules have done."""
        self._strip()
        told, order = self.decisions, Order(self.recipes, step, self.kept)
        held: dict[int, int] = {}
        for key in self.fresh:
            if key in self.kept and key not in order.read:
                self.let_go(key)
        for key in order.read:
            value = plain_value(self.kept[key])
            if isinstance(value, np.ndarray):
                held[id(buffer_of(value))] = buffer_of(value).nbytes
        told.n_steps, told.held_bytes = told.n_steps + 1, told.held_bytes + sum(held.values())
        told.all_bytes += sum(self.sizes.values())
        for root, known in self.values.items():
            if (
                known.rule >= 0
                and (known.saved_as or known.how != RECOMPUTE)
                and (known.how == RECOMPUTE or root in order.groups)
            ):
                told.used.add(known.rule)
        self.values, self.base, self.sizes, self.fresh = {}, {}, {}, []

    # The reverse pass.
    def pull(self, sweeps: Sequence[Sweep]) -> None:
        """Reverse all steps for each seed."""
        self.finish()
        for step in range(len(self.cuts) - 2, -1, -1):
            pull_kept(self, step, sweeps)
            if not self.repeatable:
                for key in [key for key in self.kept if self.first_of(key) >= self.cuts[step]]:
                    self.let_go(key)

    def first_of(self, key: Any) -> int:
        """The record of what is kept."""
        return int(key if type(key) is int else key[0])

    def value_of(self, key: Any) -> Any:
        """A kept value, wherever it is."""
        value = self.kept[key]
        return self.decisions.get(*value) if type(value) is Far else value

    def largest_bytes(self) -> int:
        """Bytes of what is kept: about what the cotangents of one seed take."""
        return sum(nbytes for items in self.items.values() for _, nbytes, _ in items)

    def hold_all(self) -> None:
        """Put every record back with the values it holds: the stretch becomes save-all."""
        self.finish()
        for step in range(len(self.cuts) - 1):
            put_whole(self, step)
        self.close()

    def close(self) -> None:
        """Release what is kept; records keep what they hold."""
        self.decisions.left_by(self)
        if self.cuts:
            release_records(self.tape.records[self.cuts[0] : self.cuts[-1]])


def _lasting(value: Any, operand: Any) -> Any:
    """A value to be kept: who writes to it from now on copies first."""
    if isinstance(operand, Handle):
        root = root_of(operand)
        if root._flag in (FREE, WRITTEN):
            root._flag = SHARED if root._flag == FREE else WRITTEN_SHARED
        elif root._flag == BORROWED:
            return twin_of(value)
    return freeze(value) if isinstance(value, Handle) else value
