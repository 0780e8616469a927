"""The record of one loop on a tape: its first run, its reverse, and what it holds in between."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import numpy as np
from attrs import define, field

from pullback.choosing.agreement import AgreedPoint
from pullback.loops.bodies.first_errors import FirstErrors
from pullback.loops.bodies.surroundings import Surroundings
from pullback.loops.functions import loop_schedule
from pullback.loops.functions.forecast import Forecast, forecast, foreseen
from pullback.loops.functions.loop_bytes import (
    bytes_besides,
    least_again,
    least_beside,
    needed_by,
    own_items,
    shared_buffers,
    waiting_items,
)
from pullback.loops.functions.loop_chain import LoopChain
from pullback.loops.stepping.replay_check import say_unrepeated, trial
from pullback.loops.stepping.reverse_pass import Pass
from pullback.loops.stepping.staged_steps import SHORT_BYTES
from pullback.memory.in_force import MEASURED, agreement_in_force, planned, recorded, resumed, using
from pullback.memory.ledger import Item, value_items
from pullback.memory.reverse_sweep import Sweep, innermost_of
from pullback.memory.working_bytes import Lifetimes, Needed, Variables
from pullback.policies.save_all import SaveAll
from pullback.recording.handles import Handle
from pullback.recording.tape import REPLAYABLE
from pullback.rules.cotangent_sums import send
from pullback.rules.forms import special_form
from pullback.scheduling.machine.machine import Machine
from pullback.words.errors import ReplayError, TracerError
from pullback.words.specs import buffer_of, carries_derivative, shared_spec, spec_of


@define(eq=False)
class LoopRecord:
    """What the record of a loop holds: the chain of its steps, and the ids by which cotangents enter and leave it."""

    chain: LoopChain
    policy: Any
    n: int | None
    ambient: Any
    """The policy in force around the loop: what loops in its body go by, in re-runs too."""
    entering: list[int | None]
    x_entering: list[int | None]
    known: list[int] = field(factory=list, init=False)  # the ids of the captured values
    schedule: Any = field(default=None, init=False)
    machine: Machine = field(factory=lambda: Machine(None), init=False)
    closure: list[Any] = field(factory=list, init=False)
    """Inside steps: the frozen handles of the body, emptied when the loop is over so that they keep no value of the
    step alive."""
    fresh: bool = field(default=True, init=False)
    little: bool = field(default=False, init=False)  # whether its tapes take so little of the bytes that it is save-all
    share: Any = field(default=None, init=False)  # what a pool has given for the loop; closed when it is over
    reached: frozenset[int] = field(default=frozenset(), init=False)
    """The plain arrays that the body can reach, by ``id``, and ``kept`` those behind traced values."""
    kept: frozenset[int] = field(default=frozenset(), init=False)
    looks: bool = field(default=False, init=False)  # whether the body can read traced values that objects have
    own: bool = field(default=False, init=False)  # whether the loop was given a policy of its own
    bound: bool = field(default=False, init=False)  # whether a number of bytes binds the program around such a loop
    surroundings: Surroundings | None = None  # what the body reads besides, where that is watched
    agreement: Any = field(factory=agreement_in_force, init=False)
    """The agreement of ranks; None for a program of one process."""
    agreed: dict[str, int] | None = field(default=None, init=False)
    """The sizes that they have agreed on, where they run the steps together."""
    sizes: dict[str, int] = field(factory=dict, init=False)
    inner: int = field(default=0, init=False)  # what loops in step 0 have booked for its tape
    needed: Needed | None = field(default=None, init=False)
    """What a step needs while it runs, where the policy counts bytes."""
    left_specs: list[Any] = field(factory=list, init=False)  # specs of the carry after the loop
    ct_bytes: list[int] = field(factory=list, init=False)
    """What the cotangents of one seed that live from one action to the next take, at their primals' sizes: the
    carry's, those of the captured values, of ``xs`` and of the stacked outputs."""
    waiting: list[Item] | None = field(default=None, init=False)
    """The cotangents that wait for values from before the loop, as a plan knows them; None for a loop in a step."""
    variables: Variables | None = field(default=None, init=False)  # what the program's had when the loop began
    booked: list[Item] = field(factory=list, init=False)  # what another reverse pass would begin from
    others: int = field(default=0, init=False)  # bytes that the program's variables had when step 0 began
    besides: int | None = field(default=None, init=False)  # bytes held beside snapshots and tapes, at the schedule
    working: int = field(default=0, init=False)
    """Those of the bytes ``besides`` that are held while the loop runs and by it alone."""
    stacked: int = field(default=0, init=False)  # bytes of the outputs of all steps
    share_bytes: int | None = field(default=None, init=False)
    """What the loop in whose step it is gives it of a number of bytes."""
    forecast: Forecast | None = field(default=None, init=False)  # while planning
    errors: FirstErrors = field(factory=FirstErrors, init=False)
    journal: Any = field(default=None, init=False)  # what a run that was killed is taken up from, within ``resume``

    @property
    def name(self) -> str:
        """That of the loop function."""
        return self.chain.steps.name

    @property
    def collective(self) -> bool:
        """Whether a step has made a call that meets calls of others, as far as the loop has come: then it is reversed
        in any case, and none of its steps runs but where the schedule says so."""
        return self.chain.steps.collective

    @property
    def unreached(self) -> list[Any] | None:
        """The cotangents that the results get where nothing sends any, if it is reversed all the same."""
        return [None] * len(self.entering) if self.collective else None

    @property
    def kept_bytes(self) -> int:
        """What is kept of its steps."""
        entries, sizes = self.chain.store.entries, self.sizes
        states = sum(kind == "state" for kind, _, _ in entries)
        tapes = len(entries) - states + (self.chain.work is not None)
        return states * sizes.get("state_bytes", 0) + tapes * sizes.get("tape_bytes", 0)

    @property
    def ids(self) -> list[int]:
        """The ids of what enters, in the order in which cotangents are sent there."""
        return [i for i in (*self.entering, *self.x_entering, *self.known) if i is not None]

    @property
    def least_beside(self) -> int:
        """The bytes that its snapshots and tapes can do with in another reverse pass."""
        return least_beside(self)

    def least_again(self, held: int) -> int:
        """The bytes that another reverse pass can do with, where so many are held by all that such passes begin
        with."""
        return least_again(self, held)

    def forward(self) -> None:
        """The first pass; after an error, who asked for it releases. Step 0 runs on tracers and tells what is captured
        and what a step's tape costs, then the schedule begins."""
        chain, enclosing = self.chain, self.chain.steps.enclosing
        if self.n is None and not chain.goes_on(0):
            self.n = 0
            return
        loops = planned()
        start = chain.state if loops is not None else []  # else the executor alone says how long that lives
        self.journal = None if loops is not None or (session := resumed()) is None else session.begun(self)
        before = chain.store.ledger.total + chain.store.ledger.lent_bytes
        self._run_first()
        ledger = chain.store.ledger
        if not self.ids and not self.collective:  # nothing traced enters: nothing is held
            chain.start = []
            ledger.n_forward += 1
            self.n = chain.run_unrecorded(self.n, looks=self.looks)
            return
        if enclosing is not None and recorded(enclosing.outer):
            self.policy = chain.store.policy = SaveAll()
        if chain.start:  # for another reverse pass: where it begins, and what the body's closure has captured
            captured = chain.steps.captured_values.values()
            self.booked = [*value_items(chain.start, "snapshot"), *value_items(captured, "snapshot")]
            ledger.hold(self.booked)
        if self.collective and self.agreement is not None:
            loop_schedule.agree(self)
        self._decide()
        if loops is not None:
            bytes_besides(self)  # now, for other policies too
            self.forecast = forecast(chain, self.n, start, self.scheduled)
            self.n = self.forecast.n
            loop_schedule.may_lend(self, self.forecast, self.forecast.chain)
            loops.append(self)
            return
        ledger.n_forward += 1
        self._go_forward()
        # The governor of a trace tells; that of one that has ended has told, and is gone (``released_governor``).
        if chain.steps.within is not None and enclosing is not None and getattr(enclosing, "governor", self) is None:
            for decisions in ledger.decided.values():
                decisions.tell()
            ledger.decided.clear()
        loop_schedule.ended(self, before)
        self._require_room()
        if self.collective and self.agreement is not None and (self.agreed is None or self.chain.asks):
            loop_schedule.agree_at_end(self)
        if self.surroundings is not None and not self.surroundings.known:
            replayed = enclosing is not None and enclosing.mode == REPLAYABLE and enclosing.governor.replays
            held = isinstance(self.policy, SaveAll) and not replayed
            self.surroundings.after_first_run(() if held else self._trials())

    def _run_first(self) -> None:
        """Step 0 runs on tracers."""
        chain, ledger = self.chain, self.chain.store.ledger
        arrays = (leaf for leaf in chain.state if isinstance(leaf, np.ndarray))
        entering: dict[Any, int] = {id(buffer_of(leaf)): leaf.nbytes for leaf in arrays}
        self.bound = self.own and getattr(getattr(chain.steps.enclosing, "governor", None), "binds", False)
        counts = self.policy.counts_bytes or self.bound or planned() is not None or MEASURED.get()
        if counts:
            chain.steps.lifetimes = Lifetimes()
            chain.steps.outputs.comes = chain.steps.lifetimes.comes
        inner = -ledger.total - ledger.lent_bytes
        step, after = loop_schedule.first_step(self)
        self.inner = inner = inner + ledger.total + ledger.lent_bytes
        if counts:
            self.needed = needed_by(chain.steps, step, self.reached)
        self.known = sorted(chain.steps.captured_specs or ())
        # Held once, unless it is what the state begins with as well: a later step holds its own state in that place.
        captured = {key for key, _, _ in value_items(chain.steps.captured_values.values(), "snapshot")} - {*entering}
        chain.shared = partial(shared_buffers, chain.steps, self.reached, captured)
        shared = chain.shared()
        self.sizes = {
            "state_bytes": sum(leaf.nbytes for leaf in after if isinstance(leaf, np.ndarray)),
            # Of a view that the loop begins with the whole array is held, but by step 0 alone.
            "tape_bytes": sum(min(n, entering.get(key, n)) for key, n, _ in step.items if key not in shared) + inner,
        }
        chain.sizes = self.sizes
        chain.state_bytes = self.sizes["state_bytes"]
        if self.needed is not None:
            ledger.works(self.needed.beside(chain.state_bytes) - chain.state_bytes)
        rows = {id(buffer_of(x)) for x in chain.steps.xs or () if isinstance(x, np.ndarray)}
        beside = sum(n for key, n, _ in step.items if key in rows)  # a row holds all of them, which are there anyway
        del step, after
        nbytes = sum(self.sizes.values()) - beside
        if chain.steps.staging is not None and nbytes > SHORT_BYTES:
            from pullback.choosing.large_steps import early_or_never  # noqa: PLC0415 - for those who have large arrays

            chain.steps.staging = early_or_never(chain.steps.staging, self.policy, self.n, self.sizes, nbytes)

    def _decide(self) -> None:
        self.little = loop_schedule.takes_little(self)
        if self.policy.looks or self.little:
            self.policy = self.chain.store.policy = loop_schedule.decided(self)
            self.little = type(self.policy) is SaveAll
        tape: Any = self.chain.steps.enclosing
        if not self.little and hasattr(tape, "records") and hasattr(tape.records, "tell"):  # nobody governs it so far
            tape.records.tell()
            tape.governor.mark()
        self._require_room()

    def _require_room(self) -> None:
        if self.bound:
            from pullback.loops.functions.own_policies import require_room  # noqa: PLC0415 - for loops with a policy

            require_room(self)

    def _go_forward(self) -> None:
        if self.journal is not None:
            self.journal.go_forward()
            return
        if type(self.policy) is SaveAll:
            loop_schedule.begins(self, None)
            self.n = self.chain.go_forward_saving(self.n)
            return
        self.schedule, self.machine = self.scheduled(self.n), Machine(self.n)
        loop_schedule.begins(self, self.schedule)
        self.n = loop_schedule.go_forward(self)

    def scheduled(self, n: int | None) -> Any:
        """The schedule, for what is held beside it: by what came before, and by the cotangents of one seed."""
        return loop_schedule.scheduled_by(self, self.policy, n)

    def _go_back(self, passes: list[Pass]) -> None:
        if self.journal is not None:
            self.journal.go_back(passes)
        elif type(self.policy) is SaveAll or self.machine.whole:
            self.chain.go_back_saving(self.n or 0, passes)
        else:
            self.chain.go_back(self.schedule, self.machine, passes)

    def _trials(self) -> list[Callable[[], Any]]:
        """The first and the last step, to be run once more from the live state, or from that of the beginning."""
        self.chain.state = self.chain.state or list(self.chain.start)
        return [] if self.collective else [partial(trial, self.chain, k) for k in {0, (self.n or 1) - 1}]

    def results(self) -> list[Any]:
        """The leaves of the last state and the stacked outputs, which are handed out: the chain needs them no more."""
        chain, steps = self.chain, self.chain.steps
        state, chain.state, steps.captured_values = chain.state, [], {}
        self.left_specs = [shared_spec(leaf) for leaf in state]
        carried = [spec_of(leaf) for leaf in state if carries_derivative(leaf) and not isinstance(leaf, Handle)]
        specs = (*carried, *(steps.captured_specs or {}).values())
        rows = [getattr(x, "nbytes", 0) for x, active in zip(steps.xs or (), steps.x_active, strict=True) if active]
        outputs = steps.outputs.taken()
        stacked = [y.nbytes for y in outputs if isinstance(y, np.ndarray) and carries_derivative(y)]
        self.ct_bytes = [*(spec.nbytes for spec in specs if spec is not None), *rows, *stacked]
        return [*state, *outputs]

    def reverse(self, seeds: Sequence[Any], sweeps: Sequence[Sweep]) -> list[list[tuple[int, Any]]]:
        """The cotangents of what entered, for each sweep, from those of the results, or None.

        The steps that the policy runs again are run once for all. A loop that was reversed before goes forward again
        first.
        """
        chain, ledger = self.chain, self.chain.store.ledger
        ledger.returns_to(self, None if self.agreed is None else self.agreement, partial(loop_schedule.told_of, self))
        before = ledger.n_forward
        holds_all = self.fresh and isinstance(self.policy, SaveAll)
        watched = None if holds_all else self.surroundings
        again = not self.fresh or self.journal is not None or not self.left_specs
        # Without a live state what has run is loops within, which ask for what they read themselves.
        asks = (lambda: ledger.n_forward > before and (again or bool(chain.state)), self._trials)
        put = nullcontext() if watched is None else watched.put_back(*asks)
        errors = nullcontext() if holds_all else self.errors.of_steps(chain.steps)
        try:
            with self.agrees(), chain.randomness.put_back(), using(self.ambient, agreement=self.agreement), put, errors:
                try:
                    if not self.fresh:
                        chain.rewind()
                        if self.surroundings is not None:
                            self.surroundings.try_out(self._trials())
                        self.journal = self.journal and self.journal.again()
                        with ledger.holding(waiting_items(self, seeds, sweeps)):
                            loop_schedule.goes_again(self)
                            self._go_forward()
                        chain.state = []
                    self.fresh = False
                    held = [*waiting_items(self, seeds, sweeps), *own_items(self, len(sweeps))]
                    passes = [self._pass(cts, each) for cts, each in zip(seeds, sweeps, strict=True)]
                    with ledger.holding(held):
                        self._go_back(passes)
                    return [self._sent(each) for each in passes]
                except ReplayError as error:
                    say_unrepeated(error, chain)
                    raise
        finally:
            chain.release()
            chain.state = []
            if sweeps[-1].frees:
                self.release()

    def agrees(self) -> AbstractContextManager[None]:
        """The block of a pass through a loop that stands in no other: ranks learn at its end whether all went well."""
        tape = self.chain.steps.enclosing
        agreement = self.agreement if tape is None or tape.captures is None else None
        return nullcontext() if agreement is None else AgreedPoint(agreement, lambda: self.collective)

    def _pass(self, cts: Any, sweep: Sweep) -> Pass:
        """Where the way back of one seed begins."""
        enclosing, n_leaves = self.chain.steps.enclosing, len(self.entering)
        cts = [None] * n_leaves if cts is None else cts
        outer = innermost_of(enclosing.outer if enclosing is not None else None, cts)
        told = sweep.told if getattr(sweep.told, "on_adjoint", True) else None  # of steps nothing is stored
        told = self.surroundings.outside(told) if self.surroundings is not None else told
        carry, rows = cts[:n_leaves], cts[n_leaves:]
        cts.clear()  # of the sweep that came here: what the steps are done with goes
        return Pass(sweep, outer, self.n or 0, carry, rows, [None] * len(self.x_entering), told)

    def _sent(self, ended: Pass) -> list[tuple[int, Any]]:
        """The cotangents that a pass has brought to what entered the loop."""
        entered = zip((*self.entering, *self.x_entering), (*ended.cts, *ended.x_cts), strict=True)
        sent = [(i, ct) for i, ct in entered if i is not None and ct is not None]
        return sent + [(i, ended.gathered[i]) for i in self.known if i in ended.gathered]

    def release(self) -> None:
        """No reverse pass will come any more."""
        chain = self.chain
        chain.release()
        chain.store.ledger.lends_no_more(self)
        chain.store.ledger.release(self.booked)
        if self.share is not None:
            self.share.close()
        self.booked, chain.start, chain.state = [], [], []
        # Handles of the tape that holds this record may be bound in the surroundings and in the closure.
        self.surroundings, chain.verifier.suspects = None, str
        chain.steps.enclosing, chain.steps.call, chain.steps.cells, chain.steps.staging = None, _over, [], None
        for handle in self.closure:
            handle._value = None


def _over(*_: Any) -> Any:
    raise TracerError("this loop was released; call vjp again")


def _pull_loop(record: tuple[Any, ...], ct: Any, cts: list[Any], sweep: Sweep) -> None:
    _pull_loops(record, (ct,), (sweep,))


def _pull_loops(record: tuple[Any, ...], seeds: Sequence[Any], sweeps: Sequence[Sweep]) -> None:
    """Reverse the loop once for all seeds, and send what comes out to what entered."""
    loop, ledger = record[2], record[2].chain.store.ledger
    try:
        found = (loop.reverse if loop.forecast is None else partial(foreseen, loop))(seeds, sweeps)
    finally:
        ledger.rests()
    for sweep, sent in zip(sweeps, found, strict=True):
        for ident, g in sent:
            if sweep.cts[ident] is None:
                sweep.cts[ident] = g
            else:
                send(sweep.cts, ident, g, sweep)


LOOP = special_form("loop", _pull_loop, n_ids=0, wide=True, together=_pull_loops, unreached=lambda r: r[2].unreached)
