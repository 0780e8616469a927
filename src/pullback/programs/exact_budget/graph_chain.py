"""A plain program under ``Budget(..., exact=True)``: what its pullbacks read is held while there is room, dropped
where its bytes are cheapest to compute again if there is none, and computed again by a plan made for the reverse.

The first run is the user's, and goes on by itself: what comes is not known, nor when the program lets go of a value.
So values are dropped by a rule as it runs. What is left to decide when it has ended is decided exactly.
"""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Final

import numpy as np
from attrs import define, field

from pullback.memory.ledger import Item, Ledger, tape_holdings, value_items
from pullback.memory.lending import gives, per_byte
from pullback.memory.reverse_sweep import Sweep, release_records
from pullback.memory.temporaries import on_the_way
from pullback.programs.exact_budget.live_buffers import LiveBuffers
from pullback.programs.exact_budget.operation_costs import cost_of
from pullback.programs.replay.kept_replayer import bits_of
from pullback.programs.replay.step_recipes import StepRecipes
from pullback.recording.handles import Handle, freeze, plain_value, resolve, root_of
from pullback.recording.recorder import form_of
from pullback.recording.results import COMPONENT
from pullback.recording.tape import Tape
from pullback.recording.writes import CREATE
from pullback.rules.rule_names import positions

RECORD_BYTES: Final = 1_200
"""Bytes of Python's own objects, for each record and what executes it again."""
PLANNING: Final = 3
"""Quarters of a byte for each pair of records: a plan has sets of values for each."""


@define(eq=False)
class GraphChain:
    """The records ``cuts[0] .. cuts[1]-1`` of a program. A *node* is a value that can be computed again and looks at no
    other; views of it are derived from it."""

    tape: Tape
    ledger: Ledger
    policy: Any
    repeatable: bool
    verifies: bool = True
    recipes: StepRecipes = field(factory=StepRecipes)
    live: LiveBuffers = field(factory=LiveBuffers)
    kept: dict[int, Any] = field(factory=dict)
    """The values that are held, and may be dropped, by id."""
    pinned: dict[int, Any] = field(factory=dict)
    """What comes from before, and what nothing computes again, by id."""
    items: dict[int, list[Item]] = field(factory=dict)
    """What of these is booked."""
    base: dict[int, int] = field(factory=dict)
    """View id to the id of what it looks at."""
    costs: dict[int, float] = field(factory=dict)
    read_by: dict[int, tuple[int, ...]] = field(factory=dict)
    twins: set[tuple[int, int]] = field(factory=set)
    """(record, id): of a view the record holds a copy."""
    digests: dict[int, int] = field(factory=dict)
    """What was dropped, by id."""
    saved: set[int] = field(factory=set)
    """The values that pullbacks read, as far as the program has come."""
    largest: int = 0
    """What the operation took that took most so far: another may come."""
    buffers: bool = False
    """Whether the program writes to buffers that it has made."""
    beside: int = 0
    """What the newest operation made on the way beside its result."""
    floor: int = 0
    """What the first run took at least, whatever is dropped."""
    before: int = 0
    """Bytes of what records hold when this begins."""
    booked: dict[int, int] = field(factory=dict)
    """The bytes that are booked in addition since a value is held, by id."""
    own: int = 0
    """The sum of these."""
    last: int | None = None
    ended: bool = False
    again: int = 0
    """How many operations were computed again."""
    optimal: bool = False
    """Whether no way back from what was held at the end of the first run computes less again."""
    counts: bool = False
    replays: ClassVar[bool] = False
    collects: ClassVar[bool] = True
    gauge: ClassVar[None] = None
    reads_from: ClassVar[int] = 1 << 62

    @property
    def cuts(self) -> Sequence[int]:
        """The first record, and behind the last."""
        return self.recipes.cuts

    @property
    def snapshots(self) -> "GraphChain":
        """Who is told of what is read."""
        return self

    @property
    def start(self) -> int:
        """The first record."""
        return self.cuts[0]

    def held_values(self) -> Iterator[tuple[int, str, Any]]:
        """(id, name, value) of each value that is held."""
        for ident, value in (*self.pinned.items(), *self.kept.items()):
            yield ident, "kept", value

    # The user's run.
    def begin(self) -> None:
        """The program starts at the next record."""
        self.before = sum(self.ledger.plain_bytes(self.tape.records).values())
        self.recipes.begin(len(self.tape.records))
        self.tape.governor.lifetimes = self

    def watch(self, handle: Any) -> None:
        """A handle was made, or stands for another value now: the record that made it is there."""
        self.live.watch(handle)
        self._strip()

    def finish(self) -> None:
        """The program has ended."""
        if not self.ended:
            self._strip()
            self._make_room()
            self.ended = True
            self.recipes.cut(len(self.tape.records))
            self.tape.governor.lifetimes = None

    def root(self, ident: int) -> int:
        """What a value looks at, or itself."""
        while ident in self.live.views and ident in self.base:
            ident = self.base[ident]
        return ident

    def is_node(self, ident: int) -> bool:
        """Whether a value can be computed again."""
        recipe = self.recipes.get(ident) if ident >= self.start else None
        if recipe is None or recipe.skeleton[0] == COMPONENT.opcode:
            return False
        prim = recipe.form.primitive
        return not (prim.outputs or prim.residuals or prim.opaque)

    def read(self, ident: int, value: Any, operand: Any) -> None:
        """A record reads a value, or it is about to be written: what nothing computes again is held."""
        root = self.root(ident)
        if value is None or root in self.pinned or self.is_node(root):
            return
        value = _lasting(value, operand, whole=root != ident)  # what a view from before looks at has no recipe here
        self.pinned[root] = value
        if root >= self.tape.n_inputs:
            self._book(root, value, "snapshot")

    def met(self, ident: int, record: tuple[Any, ...], operands: Any, values: Any) -> None:
        """A record is about to be appended, whose recipe is there."""
        form, recipe = form_of(record), self.recipes.open[-1]
        assert recipe is not None  # it has just been made
        ids = [self.recipes.ident(a, self.start) if type(a) is int else None for a in recipe.arguments]
        self.buffers |= record[0] == CREATE.opcode
        self.costs[ident] = cost_of(form.name, [plain_value(value) for value in values])
        if form.primitive.view and ids[0] is not None:
            self.base[ident] = ids[0]
        if not self.is_node(ident):
            for held in tape_holdings((record,)):  # it stays, with its residuals
                if id(held.buffer) not in self.ledger.held:
                    self.live.hold(held.buffer)
            return
        for name, saved in zip(form.saved, form.saved_values(record), strict=True):
            places = positions(form.primitive, name, len(ids))
            for k in places:
                known = ids[k]
                if known is not None:
                    each = saved if name in form.primitive.operands else saved[k - places.start]
                    self._saved(known, each, operands[k], ident)
            if not places:
                self._saved(ident, saved, None, ident)
        self.last = ident

    def returned(self, name: str, handle: Any) -> None:
        """What made a value does not matter."""

    def _saved(self, ident: int, value: Any, operand: Any, record: int) -> None:
        """A record holds a value."""
        root = self.root(ident)
        if root in self.pinned or not self.is_node(root):
            return
        self.saved.add(root)
        whole = root_of(resolve(operand)) if isinstance(operand, Handle) else None
        if root != ident and whole is not None and not _same_memory(value, whole._value):
            self.twins.add((record, ident))
        if root not in self.kept:
            self.kept[root] = value = _lasting(value, operand, whole=True)
            self._book(root, value, "saved")

    def _book(self, ident: int, value: Any, reason: str) -> None:
        self.live.hold(value)
        items = self.items[ident] = value_items((plain_value(value),), reason)
        total = self.ledger.total
        self.ledger.hold(items)
        self.booked[ident] = self.ledger.total - total
        self.own += self.booked[ident]

    def drop(self, ident: int) -> None:
        """A value is held no longer."""
        value = self.kept.pop(ident)
        if self.verifies and ident not in self.digests:
            self.digests[ident] = bits_of(value)
        self.live.release(value)
        self.ledger.release(self.items.pop(ident))
        self.own -= self.booked.pop(ident)

    def _strip(self) -> None:
        """The newest record lets go of what it holds, and the next one finds room."""
        last, records = self.last, self.tape.records
        if last is not None and last < len(records):
            sizes = self.live.sizes
            ids = [i for i in form_of(records[last]).ids(records[last]) if i is not None]  # type: ignore[arg-type]
            most = max(sizes.get(i, 0) for i in (last, *ids))
            took = int(most * max(1.0, on_the_way(records[last])[0]))
            self.largest, self.beside = max(self.largest, took), max(0, took - sizes.get(last, 0))
            records[last] = self.last = None
        self._make_room()

    @property
    def others(self) -> int:
        """Bytes of what is neither a handle's nor held by this: what loops and marked steps hold, copies of plain
        arrays, Python's own objects."""
        n = (self.cuts[1] if self.ended else len(self.tape.records)) - self.start
        around = self.ledger.total - self.own
        return self.before + around + n * (RECORD_BYTES + PLANNING * n // 4)

    def _make_room(self) -> None:
        """Drop values until there is room for an operation like the largest so far, and for a buffer as large that the
        program has made: nobody hears of that before the first write to it."""
        live, besides = self.live, 2 * self.largest
        if live.total + self.others + besides <= self.policy.max_bytes:
            return
        while live.total + self.others + besides > self.policy.max_bytes and self._give_way():
            pass
        if live.total + self.others + besides > self.policy.max_bytes:
            buffer = self.largest if self.buffers else 0
            self.floor = max(self.floor, live.total + self.others + self.beside + buffer)

    def _give_way(self) -> bool:
        """Hold less: the value that is cheapest to compute again, or what a loop before can give up, where that is
        cheaper; False where there is nothing."""
        droppable = [ident for ident, value in self.kept.items() if not self.live.alive(value)]
        cheapest = min(droppable, key=self._per_byte, default=None)
        lender = min(filter(gives, self.ledger.lenders), key=per_byte, default=None)
        if cheapest is not None and (lender is None or self._per_byte(cheapest) <= per_byte(lender)):
            self.drop(cheapest)
        elif lender is not None:
            lender.give(lender.level + 1)
        return cheapest is not None or lender is not None

    def _per_byte(self, ident: int) -> float:
        """What it costs to compute a value again, a byte."""
        found, todo, cost = {ident}, [ident], 0.0
        while todo:
            node = todo.pop()
            cost += self.costs[node]
            for other in self.reads(node):
                if other not in self.kept and other not in found:
                    found.add(other)
                    todo.append(other)
        return cost / max(1, self.live.sizes.get(ident, 0))

    def reads(self, ident: int) -> Sequence[int]:
        """The nodes that an operation reads: what is none was pinned when it was read."""
        found = self.read_by.get(ident)
        if found is None:
            recipe = self.recipes.get(ident)
            assert recipe is not None  # it is a node
            roots = {self.root(self.recipes.ident(a, self.start)) for a in recipe.arguments if type(a) is int}
            found = self.read_by[ident] = tuple(root for root in sorted(roots) if root not in self.pinned)
        return found

    # The reverse pass.
    def pull(self, sweeps: Sequence[Sweep]) -> None:
        """Reverse the program for each seed."""
        from pullback.programs.exact_budget.planned_reverse import PlannedReverse  # noqa: PLC0415 - after the first run

        self.finish()
        PlannedReverse(self, sweeps).carry_out()

    def largest_bytes(self) -> int:
        """Bytes of what is kept: about what the cotangents of one seed take."""
        return sum(nbytes for items in self.items.values() for _, nbytes, _ in items)

    def hold_all(self) -> None:
        """Put every record back with the values it holds: the stretch becomes save-all."""
        from pullback.programs.exact_budget.graph_replayer import GraphReplayer  # noqa: PLC0415 - seldom

        self.finish()
        GraphReplayer.of(self).put_back_all()
        self._release()

    def _release(self) -> None:
        for ident in list(self.kept):
            self.live.release(self.kept.pop(ident))
        self.pinned.clear()
        for items in self.items.values():
            self.ledger.release(items)
        self.items.clear()
        self.booked, self.own = {}, 0
        self.live.close()

    def close(self) -> None:
        """Release what is kept."""
        self._release()
        if self.cuts:
            release_records(self.tape.records[self.cuts[0] : self.cuts[-1]])


def _lasting(value: Any, operand: Any, *, whole: bool) -> Any:
    """A value, or the ``whole`` of what an operand looks at: who writes to it from now on copies first."""
    if isinstance(operand, Handle):
        value = freeze(root_of(resolve(operand)) if whole else operand)._value
    return freeze(value) if isinstance(value, Handle) else value


def _same_memory(value: Any, whole: Any) -> bool:
    """Whether a view looks at the memory of the whole."""
    a, b = plain_value(value), plain_value(whole)
    return not isinstance(a, np.ndarray) or bool(np.may_share_memory(a, b))
