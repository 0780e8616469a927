"""The steps of a loop function as a chain: the body is called again, on plain arrays to advance and on tracers to
record."""

from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from attrs import define, field

from pullback.loops.body import Body, as_before, digests, separate
from pullback.loops.cotangents import Pass, StepTape
from pullback.loops.plain_code import PlainCode
from pullback.loops.randomness import Randomness
from pullback.memory.in_force import Enclosed, next_level, recorded
from pullback.memory.ledger import Item, Ledger, record_items, value_items
from pullback.memory.store import Store
from pullback.memory.sweep import sweep
from pullback.policies.save_all import SaveAll
from pullback.recording.copies import faithful_copy
from pullback.recording.crossing import captured
from pullback.recording.handles import Handle, freeze, resolve
from pullback.recording.tape import CAPTURED, PAUSED, REPLAYABLE, Tape
from pullback.recording.traps import sentinel, trapped
from pullback.rules.forms import release_records
from pullback.tracing.running import open_input
from pullback.tracing.tracer import KINDS
from pullback.words.errors import TracerError
from pullback.words.specs import carries_derivative, shared_spec, spec_of


@define(eq=False)
class Snapshot:
    """A state at the start of a step, in memory of its own, with the random states of that moment."""

    leaves: list[Any]
    random: tuple[Any, ...]
    items: list[Item]


@define(eq=False)
class LoopChain:
    """Executes steps of a loop. ``state`` is the live state in WORK; ``enclosing`` the trace the loop is an
    operation of."""

    body: Body
    enclosing: Tape | None
    store: Store
    ledger: Ledger
    randomness: Randomness
    state: list[Any]
    lower: int = 0
    x_at: Callable[[int], Any] = lambda _: None
    x_active: list[bool] = field(factory=list)
    """Which leaves of ``xs`` depend on the inputs of the enclosing trace."""
    x_bytes: list[int] = field(factory=list)
    condition: Callable[[list[Any]], bool] | None = None
    on_y: Callable[[int, list[Any]], None] | None = None
    known: set[int] | None = None
    """Ids of the captured values that step 0 found; None before."""
    owned: bool = False
    """Whether the arrays of ``state`` are ours alone, so that the body may write to them."""
    lookback: list[Any] | None = None
    keeps_lookback: bool = False
    lookback_random: tuple[Any, ...] = ()
    start: list[Any] = field(factory=list)
    """Where another reverse pass may come: the initial state, kept for it, which then is the snapshot of step 0 too."""
    start_random: tuple[Any, ...] = ()
    """The random states before step 0, which runs as the probe before it is saved."""
    work: StepTape | None = None
    expected: dict[int, tuple[bytes, ...]] = field(factory=dict)
    """Digests of states that a re-run must reach again."""
    n_reached: int = 0
    """Steps whose per-step outputs have been given out."""
    reruns: bool = False
    """Whether a step may be run again: then the digests of per-step outputs are kept, which a re-run must give
    again."""
    y_digests: list[tuple[bytes, ...]] = field(factory=list)
    probe: tuple[StepTape, list[Any], list[Any]] | None = None
    passes: list[Pass] = field(factory=list)
    """During a reverse pass: for each seed, what goes from one step to the one before it."""
    constants: WeakValueDictionary[Any, Any] = field(factory=WeakValueDictionary)
    """Copies of plain arrays that steps read, shared between the tapes that hold them and gone with them."""
    left_specs: list[Any] = field(factory=list)
    """Specs of the carry after the loop."""
    carried: list[Any] = field(factory=list)
    """Specs of the leaves of the carry that have cotangents."""
    known_specs: dict[int, Any] = field(factory=dict)
    captured_values: dict[int, Any] = field(factory=dict)
    """Id in the enclosing trace to the value that step 0 captured."""
    ct_items: list[Item] = field(factory=list)

    # Running the body.
    def run_plain(self, k: int) -> list[Any]:
        """The state after step ``k``, computed on plain arrays without recording."""
        new, ys = self.body.run(k + self.lower, self.state, self.x_at(k))
        new = [_settled(leaf) for leaf in new]
        self.body.require_same_specs(self.state, new, k)
        self.give_ys(k, [_settled(leaf) for leaf in ys])
        return separate(as_before(self.state, new))

    def run_recorded(self, k: int) -> tuple[StepTape, list[Any], list[Any]]:
        """Step ``k`` on tracers: its tape, the state after it and its per-step outputs."""
        enclosing = self.enclosing
        tape = Tape(max(next_level(), enclosing.level + 1 if enclosing is not None else 1), KINDS)
        tape.captures, tape.enclosing = {}, enclosing
        tape.constants = self.constants  # type: ignore[assignment]  # a mapping is all that is asked of it
        tape.ledger = self.ledger
        tape.outer = enclosing.outer if enclosing is not None else None
        self._watch(tape, k)
        handles = [open_input(tape, leaf) if carries_derivative(leaf) else leaf for leaf in self.state]
        xs = self.x_at(k)
        x_leaves = (
            [open_input(tape, leaf) if active else leaf for leaf, active in zip(xs, self.x_active, strict=True)]
            if xs is not None
            else None
        )
        tape.n_inputs = len(tape.records)
        entered, x_entered = (
            [_ident(h, tape) for h in handles],
            [_ident(h, tape) for h in x_leaves or ()],
        )  # before the body writes to them
        with Enclosed(enclosing, CAPTURED, tape):
            new, ys = self.body.run(k + self.lower, handles, x_leaves)
            new, ys = (
                [resolve(captured(leaf, tape)) if isinstance(leaf, Handle) else leaf for leaf in part]
                for part in (new, ys)
            )
        self._require_known(tape, k)
        step = StepTape(tape, entered, x_entered, _exits(new, tape), _exits(ys, tape))
        tape.close()
        values = [leaf._value if isinstance(leaf, Handle) and leaf._tape is tape else leaf for leaf in new]
        y_values = [leaf._value if isinstance(leaf, Handle) and leaf._tape is tape else leaf for leaf in ys]
        self.body.require_same_specs(self.state, values, k)
        step.items = (
            record_items(step.tape.records) if k == 0 or self.ledger.heard else []
        )  # the policy is told the size of step 0
        return step, as_before(self.state, values), y_values

    def _watch(self, tape: Tape, k: int) -> None:
        """While a trap is in force the step's values are looked at: nothing on its tape takes the fast way."""
        tape.trap = sentinel(self._place(k), self.enclosing.trap if self.enclosing is not None else None)
        if tape.trap is not None:
            tape.mode = REPLAYABLE
            tape.governor = PlainCode(SaveAll(), self.ledger, repeatable=False, marked=True)

    def _place(self, k: int) -> str:
        return f"step {k} of {self.body.name}"

    def _require_known(self, tape: Tape, k: int) -> None:
        """Step 0 tells what the loop captures, and which traces around it will reverse it too; a later step may add
        nothing to that."""
        found, enclosing = set(tape.captures or ()), self.enclosing
        if self.known is None:
            self.known = found
            self.captured_values = {i: value for i, (_, value) in (tape.captures or {}).items()}
            self.known_specs = {
                i: spec_of(value) for i, value in self.captured_values.items() if hasattr(value, "dtype")
            }
            if enclosing is not None:
                enclosing.masks |= (
                    tape.masks
                )  # of step 0 alone: what is known when the loop returns, under every policy
        elif not found <= self.known or (
            enclosing is not None and recorded(tape.outer) and not recorded(enclosing.outer)
        ):
            message = (
                f"{self.body.name}: step {k} uses a traced value that step 0 did not use, so no cotangent was kept for "
                "it; use the value in every step, or make it part of the loop's state"
            )
            raise TracerError(message)
        if enclosing is not None and tape.outer is not None:
            enclosing.meet(tape.outer)

    def give_ys(self, k: int, ys: list[Any]) -> None:
        """Per-step outputs leave the loop the first time a step runs; re-runs give them to nobody, and must give the
        same."""
        if k == self.n_reached:
            self.n_reached += 1
            if self.on_y is not None:
                self.on_y(k, ys)
            if self.reruns and ys:
                self.y_digests.append(digests(ys))
        elif k < len(self.y_digests):
            happened = f"re-running the loop, step {k} gave other bytes than in the first run"
            self.body.require_same_bytes(self.y_digests[k], ys, happened, "its output")

    def goes_on(self, _: int) -> bool:
        """For a loop of unknown length: whether its condition holds for the live state."""
        if self.condition is None:
            return True
        with Enclosed(self.enclosing, PAUSED):
            return self.condition(self.state)

    # The actions.
    def advance(self, start: int, stop: int) -> int:
        """Run steps without recording, from arrays of our own; a digest that is expected at the end must be met."""
        first = start
        if start == 0 and self.probe is not None:
            self._advance_probe(self.probe)
            first = 1
        if self.enclosing is not None and trapped():
            for k in range(first, stop):
                self._look_back()
                self._advance_watched(k)
        elif first < stop:
            with Enclosed(self.enclosing, PAUSED), self.body.on_values():
                for k in range(first, stop):
                    self._look_back()
                    if not self.owned:
                        self.state = [own(leaf) for leaf in self.state]
                    self.state = self.run_plain(k)
                    self.owned = True
                    self.ledger.n_forward += 1
        self.verify(stop, self.state)
        return stop

    def _look_back(self) -> None:
        """Keep the state before a step, where the length is unknown and the step may be the last."""
        if self.keeps_lookback:
            self.lookback, self.owned = self.state, False
            self.lookback_random = self.randomness.save()

    def _advance_probe(self, probe: tuple[StepTape, list[Any], list[Any]]) -> None:
        """Step 0 has been run on tracers already: its tape is let go."""
        if self.keeps_lookback:
            self.lookback, self.lookback_random = self.state, self.start_random
        unused, self.state, ys = probe
        release_records(unused.tape.records)
        self.probe, self.owned = None, False
        self.give_ys(0, ys)

    def _advance_watched(self, k: int) -> None:
        """A step under a trap: on tracers, so that the primitive can be named, and its tape let go. The bits are
        those of the plain run."""
        made, self.state, ys = self.run_recorded(k)
        release_records(made.tape.records)
        self.owned = False
        self.give_ys(k, ys)
        self.ledger.n_forward += 1

    def record(self, step: int) -> None:
        """Run a step on tracers and keep its tape in WORK."""
        if self.lookback is not None:
            self.state, self.lookback = self.lookback, None
            self.randomness.restore(self.lookback_random)
        if step > 0 and not self.store.holds("tape", step - 1):
            self.expected.setdefault(step, digests(self.state))
        if self.probe is not None and step == 0:
            made, self.probe = self.probe, None
        else:
            made = self.run_recorded(step)
            self.ledger.n_forward += 1
        self.work, self.state, ys = made
        self.owned = False
        self.ledger.hold(self.work.items)
        self.give_ys(step, ys)
        self.verify(step + 1, self.state)

    def reverse(self, step: int) -> None:
        """Pull the carry's cotangents back through the step in WORK."""
        work, self.work = self._tape_in_work(), None
        masks = self.enclosing is not None and self.enclosing.masks
        runs = [each.enter(work, step, step + self.lower, place=self._place(step), masks=masks) for each in self.passes]
        sweep(work.tape, work.tape.n_inputs, len(work.tape.records), runs)
        for each, run in zip(self.passes, runs, strict=True):
            each.leave(work, step, run.cts)
        self.ledger.release(work.items)

    def _tape_in_work(self) -> StepTape:
        assert self.work is not None  # the machine has seen it there
        return self.work

    def save(self, kind: str, step: int, tier: str) -> None:
        """A snapshot copies the live state; a tape moves out of WORK."""
        if kind == "tape":
            work, self.work = self._tape_in_work(), None
            self.store.put(kind, step, tier, work)
            self.ledger.release(work.items)
            return
        source, random = self.state, self.start_random if self.probe is not None else self.randomness.save()
        if self.lookback is not None and self.keeps_lookback:
            source, random = self.lookback, self.lookback_random
        leaves = list(self.start) if step == 0 and self.start else [own(leaf) for leaf in source]
        self.store.put(kind, step, tier, Snapshot(leaves, random, value_items(leaves, "snapshot")))

    def load(self, kind: str, step: int, tier: str) -> None:
        """The snapshot's arrays become the live state; they are copied before the body may write to them."""
        entry = self.store.get(kind, step, tier)
        if kind == "tape":
            self.work = entry
            self.ledger.hold(entry.items)
            return
        self.state, self.owned, self.lookback = list(entry.leaves), False, None
        self.randomness.restore(entry.random)

    def transfer(self, kind: str, step: int, source: str, target: str) -> None:
        """Copy an entry from one tier to another."""
        self.store.transfer(kind, step, source, target)

    def delete(self, kind: str, step: int, tier: str) -> None:
        """Release an entry; with a tape that nobody has reversed, what the loops in it hold."""
        unread = self.store.get(kind, step, tier) if kind == "tape" else None
        self.store.drop(kind, step, tier)
        if unread is not None and unread is not self.work and not self.store.holds(kind, step):
            release_records(unread.tape.records)

    # Bookkeeping and verification.
    def swept(self) -> None:
        """The forward sweep has ended and its results are handed out: the last state is needed no more."""
        self.captured_values = {}
        self.left_specs = [shared_spec(leaf) for leaf in self.state]
        self.carried = [
            spec_of(leaf) for leaf in self.state if carries_derivative(leaf) and not isinstance(leaf, Handle)
        ]
        self.state = []

    def cotangent_bytes(self) -> list[int]:
        """What the cotangents of one seed that live from one action to the next take, at their primals' sizes: the
        carry's, those of the captured values, and those of ``xs``."""
        rows = [nbytes for nbytes, active in zip(self.x_bytes, self.x_active, strict=True) if active]
        return [*(spec.nbytes for spec in (*self.carried, *self.known_specs.values())), *rows]

    def hold_cotangents(self, n_seeds: int = 1) -> None:
        """Book them, for each seed."""
        sizes = list(enumerate(self.cotangent_bytes()))
        self.ct_items = [
            (("cotangent", id(self), seed, k), nbytes, "cotangent") for seed in range(n_seeds) for k, nbytes in sizes
        ]
        self.ledger.hold(self.ct_items)

    def verify(self, step: int, leaves: list[Any]) -> None:
        """Raise :class:`ReplayError` where a re-run has not reached the bytes that the first run reached."""
        wanted = self.expected.pop(step, None)
        if wanted is not None:
            happened = f"re-running the loop reached step {step} with other bytes than the first run"
            self.body.require_same_bytes(wanted, leaves, happened, "the carry")

    def release(self) -> None:
        """Drop everything still held, and settle the ledger."""
        tapes = [*self.store.of("tape").values(), *((self.work,) if self.work is not None else ())]
        self.store.clear()
        if self.work is not None:
            self.ledger.release(self.work.items)
            self.work = None
        for step in tapes:
            release_records(step.tape.records)
        if self.probe is not None:
            release_records(self.probe[0].tape.records)
        self.ledger.release(self.ct_items)
        self.passes, self.expected, self.lookback, self.probe, self.ct_items = [], {}, None, None, []


def own(leaf: Any) -> Any:
    """A leaf in memory of its own; a handle of an outer trace is frozen."""
    if isinstance(leaf, np.ndarray):
        return faithful_copy(leaf)
    return freeze(leaf) if isinstance(leaf, Handle) else leaf


def _settled(leaf: Any) -> Any:
    """A leaf a plain step returned; a captured value that is passed through is taken by value."""
    if isinstance(leaf, Handle) and leaf._tape.mode == PAUSED:
        return own(resolve(leaf)._value)
    return leaf


def _ident(handle: Any, tape: Tape) -> int | None:
    return handle._id if isinstance(handle, Handle) and handle._tape is tape else None


def _exits(leaves: list[Any], tape: Tape) -> list[tuple[int, Any] | None]:
    """Where leaves leave a step's tape, with the spec a cotangent must have there."""
    from_tape = [
        leaf if isinstance(leaf, Handle) and leaf._tape is tape and leaf._id is not None else None for leaf in leaves
    ]
    return [None if leaf is None else (leaf._id, spec_of(leaf._value)) for leaf in from_tape]
