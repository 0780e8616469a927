"""A stretch of a recorded program as a chain of steps: the user's own run is the initial sweep, replay is every later
one."""

from collections.abc import Sequence
from typing import Any, ClassVar

from attrs import define, field

from pullback.memory.executor import carry_out, run_forward
from pullback.memory.ledger import Item, Ledger, lasting_buffers, record_items
from pullback.memory.reverse_sweep import Sweep, release_records, sweep
from pullback.memory.store import Store
from pullback.programs.plain.ends_without_schedule import hold_whole, late, next_of, planned_again, proceed, tell_length
from pullback.programs.plain.first_steps import anew, draw, keep_initial, lend, told_of, waits, will_draw
from pullback.programs.plain.functions_of_steps import functions_of, run_back
from pullback.programs.plain.gauges import look_again
from pullback.programs.plain.plain_snapshots import INITIAL, PlainSnapshot, PlainSnapshots, require_growing
from pullback.programs.plain.stored_tapes import drop_tape, get_tape, put_tape, release_tapes, transfer_tape
from pullback.programs.replay.needed_values import Needs
from pullback.programs.replay.replayer import Replayer
from pullback.programs.replay.step_recipes import StepRecipes
from pullback.recording.tape import Tape
from pullback.scheduling.machine.actions import Advance, Delete, EndForward, Record, Save, Transfer
from pullback.scheduling.machine.machine import Machine
from pullback.words.errors import PolicyError, ScheduleError, say_where


@define(eq=False)
class PlainChain:
    """Steps ``k`` of a program are the records ``cuts[k] .. cuts[k+1]-1``. ``n`` is None where the length is not
    known beforehand."""

    tape: Tape
    store: Store
    n: int | None
    repeatable: bool
    """Whether another reverse pass may come: then the initial state is kept."""
    snapshots: PlainSnapshots
    recipes: StepRecipes = field(factory=StepRecipes)
    governing: Any = None  # the policy that knows of what is held beside snapshots and tapes
    sizes: dict[str, int] = field(factory=dict)
    schedule: Any = None  # until the first steps have told the sizes
    machine: Machine = field(factory=lambda: Machine(None))
    pending: Any = None  # the Advance or Record that the user's run is carrying out now
    work: int | None = None  # the step whose records hold their values in WORK
    needs: Needs = field(factory=Needs)
    replayer: Replayer | None = None
    work_items: dict[int, list[Item]] = field(factory=dict)
    sweeps: list[Sweep] = field(factory=list)  # during a reverse pass: for each seed its sweep
    verifies: bool = True
    """Whether the values that a step executed again gives to the next are compared with those the next began with."""
    staging: str = "off"  # how steps that repeat are executed again, as in ``using``
    works: dict[Any, Any] = field(factory=dict)  # what functions work in, by stage: of all chains of a trace
    threads: int = 1
    staged: Any = None
    entered: dict[int, dict[int, int]] = field(factory=dict)  # by step: digests of the values, by id, as it began again
    seen: set[int] = field(factory=set)  # the ``id`` of the patterns whose sizes are known
    known: set[Any] = field(factory=set)  # the buffers from before the steps that all of them read
    drawn_at: int = -1  # the newest step when the schedule was drawn
    working: int | None = None  # what is held while the steps run and by them alone, under a policy that counts bytes
    variables: Any = None  # what variables of the program have from before the steps
    freed: int = 0  # bytes that loops before it have given up since
    books: tuple[int, int] = (0, 64)  # what the schedule has been told of them, and the step after which it hears more
    ended: bool = False
    fresh: bool = True
    gauge: Any = None
    marked: bool = True  # whether the program marks the steps; else they are cut by themselves
    agreed: bool = False  # whether the sizes are those that ranks have agreed on, which run the steps together
    replays: ClassVar[bool] = True  # whether whole steps are executed again, loop functions in them too
    collects: ClassVar[bool] = False
    """Whether it is told of each record, of which it keeps some values."""

    @property
    def ledger(self) -> Ledger:
        """Where it is booked what the steps hold."""
        return self.store.ledger

    @property
    def policy(self) -> Any:
        """Whose schedule the steps go by."""
        return self.store.policy

    @property
    def cuts(self) -> Sequence[int]:
        """The first record of each step; behind the last, where the chain ends."""
        return self.recipes.cuts

    # The user's run.
    def begin(self) -> None:
        """Step 0 starts at the next record."""
        self.recipes.begin(len(self.tape.records))
        self.machine = Machine(self.n)
        will_draw(self)
        keep_initial(self)
        self.proceed(0)

    def cut(self) -> None:
        """The step under way has ended and another begins."""
        k, records, recipes, ledger = len(self.recipes.cuts), self.tape.records, self.recipes, self.store.ledger
        alike = recipes.cut(len(records))
        ledger.n_forward += 1
        pending = self.pending
        if (
            alike
            and type(pending) is Advance
            and k < pending.stop
            and self.n is not None
            and not (ledger.books or self.snapshots.due or self.schedule.larger)
        ):  # nothing is to be done at this cut, and nobody asks what the step holds
            start, stop = recipes.cuts[k - 1], recipes.cuts[k]
            records[start:stop] = [None] * (stop - start)
        else:
            proceed(self, k)
        recipes.follow()

    def proceed(self, k: int) -> None:
        """Carry out what the schedule wants at the cut before step ``k``, and first at those before, where it has only
        now been drawn."""
        if self.schedule is None:
            self.snapshots.begin(k, self.cuts[k])
            if k != self.n and waits(self, k):
                return
            self.catch_up(k)
        elif not self._go_by_schedule(k):
            return
        self.snapshots.forget_unsaved(k if self.n is None else INITIAL)

    def catch_up(self, k: int) -> None:
        """Draw the schedule while step ``k`` is under way."""
        draw(self)
        for step in range(k + 1):
            self._go_by_schedule(step)

    def _go_by_schedule(self, k: int) -> bool:
        """Whether snapshots may have come or gone."""
        if k:
            self._step_done(k)
        if self.n is None or k == 0:
            self.snapshots.begin(k, self.cuts[k])
        if self.pending is not None and self.n is not None:
            return False
        while self.pending is None:
            action = next_of(self.schedule)
            if type(action) in (Advance, Record):
                self.pending = action
            else:
                self._at_cut(action, k)
        return True

    def _step_done(self, k: int) -> None:
        """The records of step ``k - 1`` stay in WORK where the schedule recorded it, else they let go of their
        values."""
        pending = self.pending
        if self.schedule.larger is not None:
            look_again(self, k - 1)
        self.book(k - 1)
        self.snapshots.move()
        if type(pending) is Record:
            self.work = k - 1
        else:
            self.drop(k - 1)
            if pending.stop != k:
                return
        self.machine.apply(pending)
        self.pending = None

    def _at_cut(self, action: Any, k: int) -> None:
        if type(action) not in (Save, Delete) and (type(action), getattr(action, "kind", "")) != (Transfer, "tape"):
            raise PolicyError(
                f"{self.policy!r} wants {action!r} during the first run of a program, which goes on by itself; use a "
                f"loop function (fori_loop, scan)"
            )
        if type(action) is Save and action.kind == "state" and action.step not in self.snapshots.filling:
            self.snapshots.begin(k, self.cuts[k])
        carry_out(action, self.machine, self)

    def finish(self) -> None:
        """The user's loop has ended: the schedule hears the length if it did not know it, and the sweep is brought
        to its end."""
        if self.ended:
            return
        n = len(self.cuts)
        if self.schedule is None:
            if not self.marked and len(self.tape.records) > self.cuts[-1]:
                self.n, self.machine = n, Machine(n)  # known of code by now
            self.catch_up(n - 1)
        self.ended = True
        if len(self.tape.records) == self.cuts[-1] and n != self.n and (n == 1 or self.n is not None):
            # the loop ended at a cut, and nothing says that a step is under way; where the length was unknown the
            # schedule has let go of the step before, and one without records ends the chain
            n -= 1
        else:
            self.recipes.cut(len(self.tape.records))
            self.ledger.n_forward += 1
            self.book(n - 1)
        self.needs = Needs.of(self.recipes)
        self.staged = functions_of(self)
        last = n - 1 if n in range(1, len(self.cuts)) and (n - 1) in self.work_items else None
        try:
            tell_length(self, n)
        except PolicyError:
            if planned_again(self, n):
                return
            raise
        for action in self.schedule:
            late(self, action, last)
            if type(action) is EndForward:
                break
        if last is not None and self.machine.tape == last:
            self.work = last
        elif last is not None and not self.store.holds("tape", last):
            self.drop(last)
        self.snapshots.finish()
        self.n = n
        self.ledger.books_of[id(self)] = self.recipes.nbytes
        lend(self)

    # The actions, on recorded steps.
    def goes_on(self, _: int) -> bool:
        """The length of a recorded program is known."""
        return True

    def advance(self, start: int, stop: int) -> int:
        """Execute the records of steps ``start .. stop-1`` again, values only."""
        self._replay(stop).reach(stop)
        self.ledger.ran(self, start, stop)
        return stop

    def record(self, step: int) -> None:
        """Execute a step again, and let its records hold what the pullbacks read."""
        replayer, staged = self._replay(step), self.staged
        replayer.reach(step)
        # What a step begins with is compared when the one before is executed once more: not where its tape is held.
        before = step - 1 in self.work_items or (staged is not None and step and staged.repeats_surely(step - 1))
        if self.verifies and not before:
            self.entered[step] = replayer.digests(step)
        if staged is not None and staged.record(step, replayer.env):
            self.entered.pop(step + 1, None)
        else:
            copies = None if staged is None else staged.entering(step, replayer.env)
            replayer.run(step, self.tape.records)
            replayer.require_repeated(step + 1, self.entered.pop(step + 1, {}))
            if staged is not None and copies is not None:
                staged.learn(step, copies, replayer.env)
        self.ledger.ran(self, step, step + 1)
        self.work = step
        self.book(step)

    def reverse(self, step: int) -> None:
        """Pull back through the step whose values are in WORK."""
        staged, alone = self.staged, self.sweeps[0] if len(self.sweeps) == 1 else None
        if staged is None or alone is None or not staged.reverse(step, alone):
            self.put_back(step)
            start, stop = self.cuts[step], self.cuts[step + 1]
            held = lasting_buffers(self.tape.records[start:stop]) if self.work_items[step] else []
            sweep(self.tape, start, stop, self.sweeps)
            held.clear()
            for one in self.sweeps:
                one.owned.difference_update(range(start, stop))  # else it names every value of the program at last
            if staged is not None and alone is not None and staged.learning is not None:
                staged.learning.swept(alone)
        self.ledger.reversed_one(self.work_items.pop(step))
        if self.replayer is not None and self.replayer.at > step:  # what it has is read by steps that are reversed
            self.replayer.env.clear()
        self.work = None

    def put_back(self, step: int) -> None:
        """The records of a step stand on the tape, whoever has recorded it."""
        if self.staged is not None and step in self.staged.slots:
            self.staged.thaw(step)

    def save(self, kind: str, step: int, tier: str) -> None:
        """Keep the tape in WORK, or the values that later steps read."""
        if kind == "tape":
            put_tape(self, step, tier)
            self.work = None
            return
        if not self.ended:
            require_growing(self.store, step, tier)
            self.snapshots.save(step, tier)
            return
        self.store.prepare(tier)
        snapshot = self._snapshot_of_replay(step)
        snapshot.book()
        self.store.put(kind, step, tier, snapshot)

    def load(self, kind: str, step: int, tier: str) -> None:
        """Values of a snapshot become the environment of a replay; nothing in it is written in place."""
        if kind == "tape":
            get_tape(self, step, tier)
            self.work = self.ledger.step = step
        else:
            entry = self.store.get(kind, step, tier)
            self.snapshots.stands(step, entry.values, tier)
            self.replayer = self.replaying(dict(entry.values), step)

    def transfer(self, kind: Any, step: int, source: str, target: str) -> None:
        """Copy an entry from one tier to another."""
        if kind == "tape":
            return transfer_tape(self, step, source, target)
        return self.store.transfer(kind, step, source, target)

    def delete(self, kind: str, step: int, tier: str) -> None:
        """Release an entry."""
        return self.snapshots.drop(step, tier) if kind == "state" else drop_tape(self, step, tier)

    def replaying(self, values: dict[int, Any], step: int) -> Replayer:
        """What executes the steps from ``step`` on again."""
        return Replayer(self.recipes, self.needs, values, step, self.staged)

    def needed_by(self, needed: Any, lifetimes: Any) -> Any:  # noqa: ARG002 - for those who keep some values
        """What the steps need while they run, as their handles have told."""
        return needed

    def _replay(self, step: int) -> Replayer:
        self.snapshots.runs(step, self)
        assert self.replayer is not None  # the machine has seen a Load
        return self.replayer

    def _snapshot_of_replay(self, step: int) -> PlainSnapshot:
        replayer, start = self._replay(step), self.cuts[step]
        replayer.reach(step)
        snapshot = PlainSnapshot(start, replayer.reaching(step))
        for ident in snapshot.values:
            replayer.own.discard(replayer.base.get(ident, ident))
        return snapshot

    def book(self, step: int) -> None:
        if not self.ledger.books:
            self.work_items[step] = []
            return
        if self.staged is not None and step in self.staged.slots:
            items = self.staged.items(step)
        else:
            items = record_items(self.tape.records[self.cuts[step] : self.cuts[step + 1]])
        self.work_items[step], self.ledger.step = items, step
        self.ledger.hold(items)

    def drop(self, step: int) -> None:
        """The records of a step let go of their values."""
        if self.staged is not None:
            self.staged.slots.pop(step, None)
        release_records(self.tape.records[self.cuts[step] : self.cuts[step + 1]])
        self.let_go(step)

    def let_go(self, step: int) -> None:
        """The records of a step stand on the tape no more."""
        start, stop = self.cuts[step], self.cuts[step + 1]
        self.tape.records[start:stop] = [None] * (stop - start)
        items = self.work_items.pop(step, None)
        if items is not None:
            self.ledger.release(items)

    # The reverse pass.
    def pull(self, sweeps: Sequence[Sweep]) -> None:
        """Reverse all steps for each seed; a second time from the initial state."""
        if not self.cuts or self.cuts[0] == self.cuts[-1]:
            return
        self.sweeps = [
            Sweep(each.cts, owned=each.owned, outer=each.outer, frees=True, masks=each.masks, told=each.told)
            for each in sweeps
        ]
        if not self.fresh:
            self._restart()
        self.fresh, self.ledger.most_books = False, self.ledger.book_bytes
        self.ledger.returns_to(self, self.tape.agreement if self.agreed else None, lambda: told_of(self))
        try:
            run_back(self)
        except ScheduleError as error:
            say_where(error, f"in the reverse pass of steps that begin at {self.recipes.first_line()}, {self.policy!r}")
            raise
        finally:
            self.snapshots.rests()
            self.ledger.rests()
        self.sweeps, self.replayer = [], None

    def _restart(self) -> None:
        initial = self.snapshots.initial
        assert initial is not None and self.n is not None  # a repeatable chain keeps its initial state
        self.machine = Machine(self.n)
        anew(self, again=True)
        self.replayer = self.replaying(dict(initial.values), 0)
        run_forward(self.schedule, self.machine, self)

    def hold_all(self) -> None:
        """Put every record back with the values it holds: the stretch becomes save-all."""
        hold_whole(self)

    def close(self, *, held: bool = False) -> None:
        """Release every snapshot and what is booked; records that are ``held`` keep what they hold."""
        if not held:
            release_tapes(self)
        self.ledger.lends_no_more(self)
        self.ledger.books_of.pop(id(self), None)
        self.snapshots.close()
        for step, items in self.work_items.items():
            self.ledger.release(items)
            release_records([] if held else self.tape.records[self.cuts[step] : self.cuts[step + 1]])
        self.work_items, self.staged = {}, None
