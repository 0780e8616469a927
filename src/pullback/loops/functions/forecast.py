"""The forecast of a loop: executor and ledger run on names of buffers in place of arrays, so a plan books what a run
would book, to the byte.

Two recorded steps tell which buffers a tape holds and how the state passes through; all later steps are taken to be
like the second.
"""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from attrs import define, field

from pullback.loops.functions.loop_bytes import waiting_items
from pullback.loops.functions.loop_chain import LoopChain
from pullback.loops.functions.loop_schedule import may_lend, scheduled_by
from pullback.loops.stepping.held_steps import StepTape
from pullback.memory.executor import run_forward, run_reverse
from pullback.memory.ledger import Item
from pullback.memory.reverse_sweep import Sweep, release_records
from pullback.memory.store import Store, Storing
from pullback.recording.recorder import INPUT
from pullback.rules.forms import FORMS
from pullback.scheduling.machine.machine import Machine
from pullback.words.specs import buffer_of, new_zeros, spec_of

Key = Any


@define(eq=False)
class Template:
    """What one step does to buffers: the items its tape holds, by where each buffer comes from, and where each state
    leaf comes from."""

    items: list[tuple[tuple[str, Any], int, str]]
    passes: list[int | None]
    """The leaf before the step whose buffer each leaf after it is; None for a buffer of its own."""
    sizes: list[int]
    """Bytes of the leaves before the step."""

    @property
    def shape(self) -> list[tuple[Any, int, str]]:
        """The items without the names of their buffers, to compare one step with another."""
        return [(place if place[0] != "inner" else "inner", nbytes, reason) for place, nbytes, reason in self.items]


def _template_of(step: StepTape, before: list[Any], after: list[Any]) -> Template:
    """The template of a recorded step from its booked items and the state leaves around it."""
    places: dict[Any, tuple[str, Any]] = {}
    for j, leaf in enumerate(after):
        if isinstance(leaf, np.ndarray):
            places[id(buffer_of(leaf))] = ("out", j)
    entering = {id(buffer_of(leaf)): i for i, leaf in enumerate(before) if isinstance(leaf, np.ndarray)}
    places |= {key: ("in", i) for key, i in entering.items()}
    items = [(places.get(key, ("inner", key)), nbytes, reason) for key, nbytes, reason in step.items]
    passes = [entering.get(id(buffer_of(leaf))) if isinstance(leaf, np.ndarray) else None for leaf in after]
    return Template(items, passes, [buffer_of(leaf).nbytes if isinstance(leaf, np.ndarray) else 0 for leaf in before])


class BufferNames(NamedTuple):
    """A state, or the tape of a step, by the names of its buffers."""

    keys: list[Key]
    items: list[Item]
    kept: frozenset[Key] = frozenset()
    """Buffers that stay in memory wherever the rest is stored."""

    def split(self) -> tuple["BufferNames", list[Any]]:
        """What stays in memory."""
        return BufferNames([], [item for item in self.items if item[0] in self.kept]), []

    def twin(self) -> "BufferNames":
        """The same names for buffers of its own."""
        new = {key: key if key in self.kept else object() for key in (*self.keys, *(item[0] for item in self.items))}
        items = [(new[key], nbytes, reason) for key, nbytes, reason in self.items]
        return BufferNames([new[key] for key in self.keys], items, self.kept)


@define(eq=False)
class NameChain(Storing):
    """The chain of a loop on names of buffers. ``n`` is the length at which a loop of unknown length will end."""

    first: Template
    later: Template
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
    starts: list[Key] = field(factory=list)
    serial: int = 0
    begun: bool = False

    def __attrs_post_init__(self) -> None:
        self.state = self.starts = [self._fresh(1)[0] if key is None else key for key in self.initial]

    def _fresh(self, count: int) -> list[Key]:
        self.serial += count
        return [(id(self), self.serial - k) for k in range(count)]

    def _after(self, template: Template, before: list[Key]) -> list[Key]:
        return [self._fresh(1)[0] if i is None else before[i] for i in template.passes]

    def goes_on(self, step: int) -> bool:
        """Whether the loop has steps left."""
        return step < self.n

    def go_forward(self, schedule: Any, machine: Machine) -> None:
        """Carry out the forward part, as the loop itself does."""
        self.runs_forward(schedule, machine)
        run_forward(schedule, machine, self)
        self.rests()

    def advance(self, start: int, stop: int) -> int:
        """The state becomes what the last step makes of it."""
        before, stop = self.state, min(stop, self.n)
        if start == 0 and stop == 1 and not self.begun:  # step 0 was recorded to learn of it: what it made is the state
            self.state = self._after(self.first, before)
        else:
            self.state = self._fresh(len(before))
        self.begun = True
        self.lookback = before if self.unknown else None
        self.cursor = stop
        self.store.ledger.n_forward += stop - start
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
        constants = (key for key, _, reason in items if reason == "constant")  # as StepTape.split
        self.work, self.cursor = BufferNames([], items, frozenset((*self.shared.values(), *constants))), step + 1
        self.store.ledger.hold(items)
        self.store.ledger.n_forward += 1

    def reverse(self, step: int) -> None:  # noqa: ARG002 - every step's tape is released alike
        """The step's tape is released."""
        self.store.ledger.release(self.take_tape().items)

    def snapshot(self, step: int) -> BufferNames:
        """Buffers of its own, but for the initial state where that is kept."""
        keys = list(self.starts) if step == 0 and self.kept else self._fresh(len(self.state))
        sizes = (self.first if step == 0 else self.later).sizes
        return BufferNames(keys, [(key, nbytes, "snapshot") for key, nbytes in zip(keys, sizes, strict=True) if nbytes])

    def restore(self, entry: BufferNames, step: int) -> None:
        """The snapshot's buffers are the state."""
        self.state, self.cursor, self.lookback = list(entry.keys), step, None


@define(eq=False)
class Forecast:
    """A loop of ``n`` steps that was carried forward on names of buffers."""

    chain: NameChain
    schedule: Any
    machine: Machine
    n: int
    uneven: bool
    """Whether steps hold what two recorded ones cannot tell: loops of their own, a leaf twice, a captured value as a
    leaf, or something else at each step."""

    operations: Counter[str] = field(factory=Counter, kw_only=True)
    """The primitives in a step that depend on what is differentiated, and how often each is called."""
    elapsed_seconds: float = 0.0
    """Seconds of the run that was planned from."""
    before: int = 0
    """Bytes that were booked when the loop began."""
    n_swept: int = 0
    """Forward steps until the loop ended."""

    def reverse(self) -> None:
        """Carry out the rest."""
        run_reverse(self.schedule, self.machine, self.chain)
        self.chain.rests()

    def under(self, record: Any, policy: Any, ledger: Any) -> "Forecast":
        """The forecast of the same loop, of which ``record`` knows the sizes, carried forward under another policy;
        under its own where it was given one."""
        mine, policy = self.chain, record.policy if record.own else policy
        n = None if mine.unknown else self.n
        schedule, machine = scheduled_by(record, policy, n, ledger, ledger.total - self.before), Machine(n)
        names = NameChain(
            Store(ledger, policy).planned(), mine.first, mine.later, mine.n, mine.unknown, mine.shared, mine.alive,
            mine.initial, mine.kept, state_bytes=mine.state_bytes,
        )  # fmt: skip
        names.go_forward(schedule, machine)
        found = Forecast(names, schedule, machine, self.n, self.uneven, operations=self.operations)
        may_lend(record, found, names)
        return found


def forecast(chain: LoopChain, n: int | None, start: list[Any], schedule_for: Callable[[int | None], Any]) -> Forecast:
    """The forward pass from ``start`` on names of buffers, after a second recorded step that stands for all later
    ones; the steps themselves are run without holding anything."""
    began, steps, store = time.perf_counter(), chain.steps, chain.store
    before = store.ledger.total
    assert chain.probe is not None
    first, after = chain.probe
    captured = list(steps.captured_values.values())
    chain.advance(0, 1)
    random = chain.randomness.save()
    later, shared, uneven = _template_of(first, start, after), {key for key, _, _ in first.items}, False
    earlier, operations = later, _operations(first)
    if n > 1 if n is not None else chain.goes_on(1):
        second, last = steps.recorded(1, after)
        operations = _operations(second)
        release_records(second.tape.records)
        later, shared = _template_of(second, after, last), shared & {key for key, _, _ in second.items}
        uneven = not _alike_third(chain, n, last, later, first, second)
    else:
        last = after
    uneven |= any(record is not None and FORMS[record[0]].wide for record in first.tape.records)
    uneven |= not _plain_passage(last, captured) or not _whole(start) or steps.within is not None
    places = {id(buffer_of(value)) for value in captured if isinstance(value, np.ndarray)}
    chain.state = after
    chain.randomness.restore(random)
    length = chain.run_on(1, n)
    elapsed = time.perf_counter() - began
    names = NameChain(
        store.planned(),
        earlier,
        later,
        length,
        unknown=n is None,
        shared={key: key if key in places else (id(chain), "shared", key) for key in shared},
        alive=captured,
        initial=[id(buffer_of(leaf)) if isinstance(leaf, np.ndarray) else None for leaf in start],
        kept=bool(chain.start),
        state_bytes=chain.state_bytes,
    )
    schedule, machine, counted = schedule_for(n), Machine(n), -store.ledger.n_forward
    names.go_forward(schedule, machine)
    counted += store.ledger.n_forward
    return Forecast(names, schedule, machine, length, uneven, elapsed, before, counted, operations=operations)


def foreseen(record: Any, seeds: Sequence[Any], sweeps: Sequence[Sweep]) -> list[list[tuple[int, Any]]]:
    """Note what waits, in a plan: under names of its own; zeros are what the loop sends to what entered it."""
    items = waiting_items(record, seeds, sweeps)
    record.waiting = [(("waiting", id(record), k), nbytes, reason) for k, (_, nbytes, reason) in enumerate(items)]
    steps = record.chain.steps
    read = [i for i in record.known if i in steps.reads]
    specs = [*record.left_specs, *map(spec_of, steps.xs or ()), *(steps.captured_specs[i] for i in read)]
    idents = (*record.entering, *record.x_entering, *read)
    entered = [(i, spec) for i, spec in zip(idents, specs, strict=True) if i is not None and spec is not None]
    return [[(i, new_zeros(spec.shape, spec.dtype)) for i, spec in entered] for _ in sweeps]


def _operations(step: StepTape) -> Counter[str]:
    forms = (FORMS[record[0]] for record in step.tape.records if record is not None)
    return Counter(form.name for form in forms if form is not INPUT and not form.wide)


def _alike_third(
    chain: LoopChain, n: int | None, state: list[Any], later: Template, first: StepTape, second: StepTape
) -> bool:
    """Whether a third recorded step holds what the second does."""
    chain.state = state
    if not (n > 2 if n is not None else chain.goes_on(2)):
        return True
    third, after = chain.steps.recorded(2, state)
    release_records(third.tape.records)
    found = _template_of(third, state, after)
    alike = (found.shape, found.passes, found.sizes) == (later.shape, later.passes, later.sizes)
    both = _constants(third) & _constants(second)  # copies of what came again, which step 0 must have met, too
    return alike and both == _constants(second) & _constants(first) == _constants(third) & _constants(first)


def _constants(step: StepTape) -> set[Any]:
    return {key for key, _, reason in step.items if reason == "constant"}


def _whole(start: list[Any]) -> bool:
    """Whether each leaf of the initial state has a buffer of its own, and looks at all of it."""
    arrays = [leaf for leaf in start if isinstance(leaf, np.ndarray)]
    buffers = [buffer_of(array) for array in arrays]
    alone = len({id(buffer) for buffer in buffers}) == len(buffers)
    return alone and all(buffer.nbytes == array.nbytes for buffer, array in zip(buffers, arrays, strict=True))


def _plain_passage(leaves: list[Any], captured: list[Any]) -> bool:
    """Whether the leaves after a recorded step have buffers of their own, as those of a plain step have."""
    buffers = [id(buffer_of(leaf)) for leaf in leaves if isinstance(leaf, np.ndarray)]
    others = {id(buffer_of(value)) for value in captured if isinstance(value, np.ndarray)}
    views = any(isinstance(leaf, np.ndarray) and buffer_of(leaf) is not leaf for leaf in leaves)
    return not views and len(set(buffers)) == len(buffers) and not others & set(buffers)
