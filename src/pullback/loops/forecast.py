"""A loop without its arrays: the executor and the ledger run on names of buffers, so a plan is what a run would book,
to the byte.

Two recorded steps say which buffers a step's tape holds and how the state passes through. Every later step is taken to
be like the second.
"""

from typing import Any, NamedTuple

import numpy as np
from attrs import define, field

from pullback.memory.ledger import Item, Ledger
from pullback.memory.store import ByReference, Store
from pullback.words.specs import buffer_of

Key = Any


@define(eq=False)
class Template:
    """What one step does to buffers: the items its tape holds, by where each buffer comes from, and where each state
    leaf comes from."""

    items: list[tuple[tuple[str, Any], int, str]]
    passes: list[int | None]
    """For each leaf after the step, the leaf before it whose buffer it is; None for a buffer of its own."""
    sizes: list[int]
    """Bytes of the leaves before the step."""

    @property
    def shape(self) -> list[tuple[Any, int, str]]:
        """The items without the names of their buffers, to compare one step with another."""
        return [(place if place[0] != "inner" else "inner", nbytes, reason) for place, nbytes, reason in self.items]


def template_of(step: Any, before: list[Any], after: list[Any]) -> Template:
    """The template of a recorded step from its booked items and the state leaves around it."""
    places: dict[int, tuple[str, Any]] = {}
    for j, leaf in enumerate(after):
        if isinstance(leaf, np.ndarray):
            places[id(buffer_of(leaf))] = ("out", j)
    entering = {id(buffer_of(leaf)): i for i, leaf in enumerate(before) if isinstance(leaf, np.ndarray)}
    places |= {key: ("in", i) for key, i in entering.items()}
    items = [(places.get(key, ("inner", key)), nbytes, reason) for key, nbytes, reason in step.items]
    passes = [entering.get(id(buffer_of(leaf))) if isinstance(leaf, np.ndarray) else None for leaf in after]
    return Template(items, passes, [buffer_of(leaf).nbytes if isinstance(leaf, np.ndarray) else 0 for leaf in before])


class Names(NamedTuple):
    """A state, or the tape of a step, by the names of its buffers."""

    keys: list[Key]
    items: list[Item]


def store_of_names(store: Store) -> Store:
    """A store with the tiers of ``store``, where only names are to be stored."""
    return Store(
        store.ledger, store.policy, {name: ByReference(in_memory=tier.in_memory) for name, tier in store.tiers.items()}
    )


@define(eq=False)
class ShadowChain:
    """The chain of a loop on names of buffers. ``n`` is the length at which a loop of unknown length will end."""

    first: Template
    later: Template
    store: Store
    ledger: Ledger
    n: int
    unknown: bool
    shared: dict[Key, Key]
    """Buffers that both recorded steps hold, by what they are booked as: captured values and loop-invariant
    constants."""
    alive: list[Any]
    """The captured values, so that no other buffer takes their place in memory while they are booked by it."""
    initial: list[Key | None]
    """The buffers of the initial state, by which the ledger knows them."""
    kept: bool
    """Whether the initial state is kept for another reverse pass: it is the snapshot of step 0 then."""
    cursor: int = 0
    state: list[Key] = field(factory=list)
    lookback: list[Key] | None = None
    work: Names | None = None
    starts: list[Key] = field(factory=list)
    serial: int = 0
    begun: bool = False

    def __attrs_post_init__(self) -> None:
        self.state = self.starts = [self._fresh(1)[0] if key is None else key for key in self.initial]

    def _fresh(self, count: int) -> list[Key]:
        self.serial += count
        return [(id(self), self.serial - k) for k in range(count)]

    def _sizes(self, step: int) -> list[int]:
        return self.first.sizes if step == 0 else self.later.sizes

    def _after(self, template: Template, before: list[Key]) -> list[Key]:
        return [self._fresh(1)[0] if i is None else before[i] for i in template.passes]

    def goes_on(self, step: int) -> bool:
        """Whether the loop has steps left."""
        return step < self.n

    def advance(self, start: int, stop: int) -> int:
        """The state becomes what the last step makes of it."""
        before = self.state
        if start == 0 and stop == 1 and not self.begun:  # step 0 was recorded to learn of it: what it made is the state
            self.state = self._after(self.first, before)
        else:
            self.state = self._fresh(len(before))
        self.begun = True
        self.lookback = before if self.unknown else None
        self.cursor = stop
        self.ledger.n_forward += stop - start
        return stop

    def record(self, step: int) -> None:
        """The step's tape is held."""
        if self.lookback is not None and step == self.cursor - 1:
            self.state = self.lookback
        self.lookback, self.begun = None, True
        template = self.first if step == 0 else self.later
        before, self.state = self.state, self._after(template, self.state)
        names: dict[tuple[str, Any], Key] = {}
        items = []
        for place, nbytes, reason in template.items:
            kind, number = place
            if kind == "in":
                key = before[number]
            elif kind == "out":
                key = self.state[number]
            else:
                key = self.shared.get(number) or names.setdefault(place, self._fresh(1)[0])
            items.append((key, nbytes, reason))
        self.work, self.cursor = Names([], items), step + 1
        self.ledger.hold(items)
        self.ledger.n_forward += 1

    def reverse(self, step: int) -> None:  # noqa: ARG002 - every step's tape is released alike
        """The step's tape is released."""
        self.ledger.release(self._tape_in_work().items)
        self.work = None

    def _tape_in_work(self) -> Names:
        assert self.work is not None  # the machine has seen it there
        return self.work

    def save(self, kind: str, step: int, tier: str) -> None:
        """A snapshot is a copy; a tape moves."""
        if kind == "tape":
            work, self.work = self._tape_in_work(), None
            self.store.put(kind, step, tier, work)
            self.ledger.release(work.items)
            return
        keys = list(self.starts) if step == 0 and self.kept else self._fresh(len(self.state))
        items = [(key, nbytes, "snapshot") for key, nbytes in zip(keys, self._sizes(step), strict=True) if nbytes]
        self.store.put(kind, step, tier, Names(keys, items))

    def load(self, kind: str, step: int, tier: str) -> None:
        """The snapshot's buffers are the state, or the tape is in WORK."""
        entry = self.store.get(kind, step, tier)
        if kind == "tape":
            self.work = entry
            self.ledger.hold(entry.items)
        else:
            self.state, self.cursor, self.lookback = list(entry.keys), step, None

    def transfer(self, kind: str, step: int, source: str, target: str) -> None:
        """Copy an entry from one tier to another."""
        self.store.transfer(kind, step, source, target)

    def delete(self, kind: str, step: int, tier: str) -> None:
        """An entry is released; a loaded tape stays in WORK."""
        self.store.drop(kind, step, tier)
