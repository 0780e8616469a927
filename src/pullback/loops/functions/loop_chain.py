"""The chain of a loop: it carries out the actions of a schedule on states and tapes."""

from collections.abc import Callable, Collection, Sequence
from functools import partial
from math import inf
from typing import Any, ClassVar

from attrs import define, field

from pullback.loops.bodies.randomness import Randomness
from pullback.loops.bodies.surroundings import OnValues
from pullback.loops.stepping.held_steps import Snapshot, StagedStep, StepTape, same_tape
from pullback.loops.stepping.proved_pass import pays, proved_pass_of
from pullback.loops.stepping.record_and_reverse import lacks_both, met, record_and_reverse_of
from pullback.loops.stepping.replay_check import Verifier
from pullback.loops.stepping.rerun import LoopSteps, writable
from pullback.loops.stepping.reverse_pass import pull_back
from pullback.loops.stepping.straight_steps import back, keep, keep_while, straight
from pullback.memory.executor import carry_out_known, carry_out_one, run_forward, run_reverse
from pullback.memory.in_force import Enclosed
from pullback.memory.ledger import value_items
from pullback.memory.reverse_sweep import Sweep
from pullback.memory.store import ByReference, Storing
from pullback.recording.copies import separate
from pullback.recording.handles import twin_of
from pullback.recording.tape import PAUSED
from pullback.recording.traps import TRAPPED
from pullback.scheduling.machine.actions import MEMORY
from pullback.scheduling.machine.known_schedules import ADVANCE, AT_ONCE, BACK, DELETE, KEEP, LOAD, SAVE
from pullback.scheduling.machine.machine import Machine
from pullback.scheduling.machine.tapes_for_states import TapeSizes


@define(eq=False)
class LoopChain(Storing):
    """Carries out what a schedule says about the steps of a loop. ``state`` is the live state in WORK."""

    asks: ClassVar[bool] = False  # whether a condition says when the loop ends
    steps: LoopSteps
    verifier: Verifier
    randomness: Randomness
    state: list[Any]
    start: list[Any] = field(factory=list)
    """The initial state, where it is kept for another reverse pass; it then is the snapshot of step 0 too."""
    start_random: tuple[Any, ...] = field(init=False)
    """The random states before step 0."""
    owned: bool = field(default=False, init=False)
    """Whether the arrays of ``state`` are ours alone, so that the body may write to them."""
    looks_back: bool = field(default=False, init=False)
    lookback: tuple[int, list[Any], tuple[Any, ...]] | None = field(default=None, init=False)
    """The newest step, with the state and the random states before it: it may be the last, of an unknown length."""
    probe: tuple[StepTape, list[Any]] | None = field(default=None, init=False)
    """Step 0 as it ran to tell what the loop captures and costs, until the schedule comes to it."""
    plainly: tuple[Enclosed, OnValues] | None = field(default=None, init=False)
    """The blocks in which the body runs on plain arrays."""
    passes: Any = field(default=(), init=False)
    """During a reverse pass: for each seed, what goes from one step to the one before it."""
    sizes: dict[str, int] = field(factory=dict, init=False)
    """Bytes of a state and a tape, as step 0 tells them; what all tapes share does not count."""
    shared: Callable[[], Collection[Any]] = field(default=tuple, init=False)
    """The buffers that all tapes share. Copies of plain arrays are made anew where no tape holds them any more."""
    looks: TapeSizes | None = field(default=None, init=False)
    """What watches whether tapes are small, where they are held because they are."""
    both: Any = field(default=None, init=False)
    """How steps like the last one are recorded and reversed by one function, where tapes are held as they are small."""

    def __attrs_post_init__(self) -> None:
        self.start_random = self.randomness.save()
        self.verifier.drawn_beside = partial(self.randomness.drawn_beside, self.start_random[0])

    def goes_on(self, k: int, state: list[Any] | None = None) -> bool:  # noqa: ARG002 - a while_loop asks
        """A loop of known length does."""
        return True

    # Whole passes.
    def probe_first(self) -> tuple[StepTape, list[Any]]:
        """Run step 0 on tracers: its tape, and the state after it."""
        self.probe = self.steps.recorded(0, self.state)
        return self.probe

    def drop_probe(self) -> None:
        """Step 0 will be run again where the schedule comes to it."""
        if self.probe is not None:
            self.probe[0].release()
            self.probe = None
            self.randomness.restore(self.start_random)

    def rewind(self) -> None:
        """Begin again, at the initial state and the random states of that moment."""
        self.release()
        self.state, self.owned = list(self.start), False
        self.randomness.restore(self.start_random)

    def rests(self) -> None:
        """No step is run for now."""
        super().rests()
        if self.steps.staging is not None:
            self.steps.staging.waits()

    def go_forward(self, schedule: Any, machine: Machine) -> None:
        """Carry out the forward part of a schedule."""
        self.looks_back, larger = machine.n is None, getattr(schedule, "larger", None)
        if larger is not None and schedule.policy.counts_states and not self.steps.collective:  # which others run, too
            self.looks = TapeSizes(larger, **self.sizes, shared=self.shared)
        self.runs_forward(schedule, machine)
        run_forward(schedule, machine, self)
        self.rests()
        self.looks_back, self.lookback = False, None

    def go_forward_saving(self, n: int | None, most: float = inf) -> int:
        """The forward part of save-all, in which every step is recorded and kept, without its actions. The length; of a
        loop of unknown length no more than the first ``most`` steps."""
        self.runs()
        reached = keep_while(self, most) if n is None else keep(self, 0, n)
        self.rests()
        return reached

    def go_back_saving(self, n: int, passes: Any) -> None:
        """The rest of it."""
        self.passes = passes
        back(self, n - 1, 0)

    def go_back(self, schedule: Any, machine: Machine, passes: Any) -> None:
        """Carry out the rest, with the passes of all seeds."""
        self.passes, self.both = passes, None
        run_reverse(schedule, machine, self)
        self.both = None
        self.rests()

    def run_on(self, k: int, n: int | None) -> int:
        """Run the steps from ``k`` on and hold nothing, so that the program goes on with true values; the length."""
        before = self.store.ledger.n_forward
        while k < n if n is not None else self.goes_on(k):
            k = self.advance(k, k + 1)
        self.store.ledger.n_forward = before
        return k

    def run_unrecorded(self, n: int | None, *, looks: bool) -> int:
        """As :meth:`run_on`, of all steps of a loop that nothing traced enters: calls that meet calls of others are
        refused. A body that ``looks`` at traced values of objects runs on tracers, and is refused when it reads one."""
        tape = self.steps.enclosing
        assert tape is not None  # the loop is one operation of it
        tape.unrecorded = self.steps.name
        try:
            k = self.advance(0, 1)
            while looks and (k < n if n is not None else self.goes_on(k)):
                self.on_tracers(k).release()
                k += 1
            return self.run_on(k, n)
        finally:
            tape.unrecorded = ""

    def release(self) -> None:
        """Drop everything stored and in WORK, and settle the ledger."""
        tapes = [*self.store.of("tape").values(), *(() if self.work is None else (self.work,)), *(self.probe or ())[:1]]
        self.rests()
        self.store.clear()
        if self.work is not None:
            self.store.ledger.release(self.work.items)
        for step in tapes:
            step.release()
        self.verifier.expected.clear()
        self.work, self.probe, self.lookback, self.passes, self.plainly, self.both = None, None, None, (), None, None

    def carry_out_known(self, numbers: Sequence[int]) -> None:
        """Actions that have been checked before. States in memory are put there and taken from there immediately."""
        heard = self.store.ledger.heard
        if (heard and self.store.ledger.separates) or not isinstance(self.store.tier(MEMORY), ByReference):
            carry_out_known(self, numbers)
            return
        entries, at, n = self.store.entries, 0, len(numbers)
        rests = self.steps.staging is not None and pays(numbers)
        snapshot = partial(Snapshot, random=self.random_before(-1), items=[])  # a proved body draws no numbers
        try:
            while at < n:
                code, step, stop = numbers[at : at + 3]
                proved = proved_pass_of(self, snapshot) if rests and code in (BACK, LOAD) else None
                if proved is not None and (reached := proved.carry_out(numbers, at)) > at:
                    at = reached
                    continue
                at += 3
                if code == ADVANCE:
                    if self.both is None or not self.both.advance(self, step, stop):
                        self.rest()
                        self.advance(step, stop)
                elif code == AT_ONCE:
                    if not self._both(step):
                        self._each_for_itself(step)
                    elif rests and (proved := self.both.proved(step, self, snapshot)) is not None:
                        once, at = self.both, proved.carry_out(numbers, at)
                        once.sums = proved.sums
                elif heard and code in (LOAD, SAVE, DELETE):
                    carry_out_one(self, code, step)
                elif code == LOAD:
                    self.restore(entries["state", step, MEMORY], step)
                elif code == SAVE:
                    entries["state", step, MEMORY] = self.snapshot(step)
                elif code == DELETE:
                    del entries["state", step, MEMORY]
                else:
                    self.rest()
                    if code == KEEP:
                        keep(self, step, stop)
                        if self.looks is not None:
                            self.looks.look(entries["tape", k, MEMORY] for k in range(step, stop))
                    elif code == BACK:
                        back(self, step, stop)
                    else:
                        carry_out_one(self, code, step)
        finally:
            self.rest()

    def rest(self) -> None:
        """The blocks in which steps run are left."""
        if self.both is not None:
            self.both.rest()

    # The actions.
    def advance(self, start: int, stop: int) -> int:
        """Run steps without recording, from arrays of our own; a loop of unknown length may end before ``stop``."""
        if self.looks_back and stop > start + 1:
            return self._advance_while(start, stop)
        steps, first, self.store.ledger.step = self.steps, start, stop - 1
        staging, watched = steps.staging, steps.enclosing is not None and TRAPPED.get()
        while first < stop and (watched or self.probe is not None):
            self.begins_step(first)
            self.on_tracers(first).release()
            first += 1
        while first < stop and staging is not None and staging.advances(first):
            self.begins_step(first)
            step, self.state = staging.recorded(first, separate(writable(self.state)), keeps=False)
            if step is not None:
                step.release()
                self.state = separate(self.state)
            self.owned, first = False, first + 1
            self.store.ledger.n_forward += 1
        if first < stop:
            self.plainly = self.plainly or (Enclosed(steps.enclosing, PAUSED), steps.on_values())
            with self.plainly[0], self.plainly[1]:
                while first < stop:
                    self.begins_step(first)
                    self.state = list(self.state) if self.owned else [twin_of(leaf) for leaf in self.state]
                    reached = first + 1 if self.looks_back else stop
                    steps.advance(first, reached, self.state)
                    self.owned, first = True, reached
        return stop

    def _advance_while(self, start: int, stop: int) -> int:
        """Run steps as long as the loop goes on; that it does at ``start`` is known."""
        k = self.advance(start, start + 1)
        while k < stop and self.goes_on(k):
            k = self.advance(k, k + 1)
        return k

    def begins_step(self, k: int) -> None:
        """Step ``k`` is about to run on plain arrays."""
        if self.looks_back:
            self.lookback, self.owned = (k, self.state, self.random_before(k)), False

    def random_before(self, k: int) -> tuple[Any, ...]:  # noqa: ARG002 - a while_loop has asked its condition of it
        """The random states before step ``k``, which runs next; the first has run as the probe already."""
        return self.randomness.save() if self.probe is None else self.start_random

    def on_tracers(self, k: int) -> StepTape:
        """The tape of a step from the live state: that of the probe, or one made now. The bits are those of a plain
        run."""
        if self.probe is not None:
            (step, self.state), self.probe = self.probe, None
        else:
            step, self.state = self.steps.recorded(k, self.state)
            self.store.ledger.n_forward += 1
        self.owned, self.store.ledger.step = False, k
        return step

    def record(self, step: int) -> None:
        """Run a step on tracers and keep its tape in WORK."""
        self.take_lookback(step)
        self.verifier.starts(step, self.state)
        self.work = self.on_tracers(step)
        self.store.ledger.hold(self.work.items)

    def take_lookback(self, step: int) -> None:
        """Go back to the state before the newest step, if it is this one."""
        if self.lookback is not None and self.lookback[0] == step:
            _, self.state, random = self.lookback
            self.randomness.restore(random)
        self.lookback = None

    def record_and_reverse(self, step: int) -> None:
        """Record and reverse a step, where nobody asks for the tape in between."""
        done = self._both(step)
        self.rest()
        if not done:
            self._each_for_itself(step)

    def _both(self, step: int) -> bool:
        """Do so by one function, as for the step before; False, and nothing has been done, where that cannot be."""
        once = self.both
        if once is None or self.lookback is not None:
            return False
        self.verifier.starts(step, self.state)
        after = once.step(step, self.state)
        if after is None:
            return False
        self.state, self.owned = after, False
        self.store.ledger.n_forward += 1
        if once.left is not None:
            self.rest()
            self._to_work(once.left)
            once.left = None
            self.reverse(step)
        return True

    def _each_for_itself(self, step: int) -> None:
        """Record the step, then reverse it."""
        self.rest()
        staging, self.store.ledger.step = self.steps.staging, step
        if staging is None or self.probe is not None or self.lookback is not None:
            self.record(step)
            self.reverse(step)
            return
        self.verifier.starts(step, self.state)
        before = list(self.state) if self.store.ledger.heard or lacks_both(self.passes) else None
        reached, self.state = straight(staging, step, step + 1, list(self.state), self._to_work)  # which empties it
        self.owned = False
        self.store.ledger.n_forward += reached - step
        if reached == step:
            self._to_work(self.on_tracers(step))
        booking = (
            met(self.work, self.passes, before, staging.run[0], self.steps.xs, heard=self.store.ledger.heard)
            if before is not None and reached > step and staging.run is not None and type(self.work) is StagedStep
            else None
        )
        before = None
        self.reverse(step)
        if len(self.passes) == 1 and not self.store.ledger.separates:
            masks = self.steps.enclosing is not None and bool(self.steps.enclosing.masks)
            self.both = record_and_reverse_of(staging, self.passes[0], booking, masks=masks)

    def _to_work(self, step: Any) -> None:
        self.work = step
        self.store.ledger.hold(step.items)

    def reverse(self, step: int) -> None:
        """Pull the carry's cotangents back through the step in WORK."""
        steps, work, self.store.ledger.step = self.steps, self.work, step
        assert work is not None  # the machine has seen a Record or a Load
        if type(work) is StagedStep and self._reversed(work, step):
            self.store.ledger.reversed_one(self.take_tape().items)
            return
        masks = steps.enclosing is not None and bool(steps.enclosing.masks)
        number, place = step + steps.lower, steps.place(step)
        sweeps: list[Sweep] = [each.enter(work, step, number, place=place, masks=masks) for each in self.passes]
        pull_back(work, sweeps)
        for each, ended in zip(self.passes, sweeps, strict=True):
            each.leave(work, step, ended.cts)
        self.store.ledger.reversed_one(self.take_tape().items)

    def _reversed(self, work: Any, step: int) -> bool:
        """Whether the functions of a stage have pulled the cotangents back; nothing has been done where they cannot."""
        steps = self.steps
        if steps.enclosing is None or bool(steps.enclosing.masks) != work.kind.stage.masks or TRAPPED.get():
            return False
        if work.kind.stage.collective and len(self.passes) > 1:  # others go record by record, all seeds at each
            return False
        seeds = [each.seeds(work, step) for each in self.passes]
        if any(seed is None for seed in seeds):
            return False
        for each, seed in zip(self.passes, seeds, strict=True):
            each.stepped(work, step, seed)
        return True

    def snapshot(self, step: int) -> Snapshot:
        """The live state copied, or the one before the newest step."""
        if self.lookback is not None and self.lookback[0] == step:
            _, live, random = self.lookback
        else:
            live, random = self.state, self.random_before(step)
        leaves = list(self.start) if step == 0 and self.start else [twin_of(leaf) for leaf in live]
        return Snapshot(leaves, random, value_items(leaves, "snapshot") if self.store.ledger.heard else [])

    def restore(self, entry: Any, step: int) -> None:  # noqa: ARG002 - a snapshot says it all
        """The snapshot's arrays become the live state; they are copied before the body may write to them."""
        self.state, self.owned, self.lookback = list(entry.leaves), False, None
        self.randomness.restore(entry.random)

    def save(self, kind: str, step: int, tier: str) -> None:
        """As any chain; it is looked at tapes that are held because they are small."""
        tape = self.work
        super().save(kind, step, tier)
        if kind == "tape" and self.looks is not None:
            self.looks.look((tape,))

    def delete(self, kind: str, step: int, tier: str) -> None:
        """Release an entry; with a tape that nobody has reversed, what the loops in it hold."""
        unread = self.store.look(kind, step, tier) if kind == "tape" else None
        super().delete(kind, step, tier)
        if unread is not None and not same_tape(unread, self.work) and not self.store.holds(kind, step):
            unread.release()
