"""A reverse pass that never calls the body: where each step is proved to do the same again, the generated functions
carry out the actions of the schedule alone."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np
from attrs import define, field

from pullback.loops.bodies.proofs import CHECKED, FEWEST
from pullback.loops.stepping.held_steps import Booking, StagedStep, StepKind
from pullback.loops.stepping.proved_steps import Proved, recorded_on, telling
from pullback.loops.stepping.rows import rows_of
from pullback.loops.stepping.staged_steps import carrying
from pullback.loops.stepping.straight_steps import back, keep
from pullback.memory.ledger import value_items
from pullback.recording.copies import separate
from pullback.recording.handles import twin_of
from pullback.scheduling.machine.actions import MEMORY
from pullback.scheduling.machine.known_schedules import ADVANCE, AT_ONCE, BACK, DELETE, KEEP, LOAD, SAVE
from pullback.staging.generated.generated import say_line, usable
from pullback.words.undocumented import error_state, is_quiet, quiet

_INSIDE: Any = nullcontext()


@define(eq=False)
class ProvedPass:
    """What carries out the actions of a schedule on a reverse pass, from where steps of a body that is ``proved`` to do
    the same again (``loops.bodies.proofs``) have been reversed."""

    chain: Any
    proved: Proved
    one: Any
    """The pass, whose cotangents are seeds of the functions."""
    sums: Sequence[Any]
    """Sums of the cotangents of captured values."""
    snapshot: Callable[..., Any]
    """A function that makes the snapshot of a state to which nobody writes."""
    booking: Booking | None = None
    """What is booked of a step that is recorded and reversed immediately, where anybody hears of it."""
    kind: StepKind = field(init=False)
    """The kind of its steps, with the reverse for the seeds that there are."""
    rows: Any = field(init=False)
    """What they take and give beside states (``rows.Rows``); None where that is nothing."""
    as_it_is: bool = field(init=False)
    """Whether the functions are entered by the state, and nothing else."""
    left: Callable[[], Any] | None = field(default=None, init=False)
    """What is left of the last action, for which the body is needed."""
    told: Any = field(factory=telling, init=False)
    """The block in which the functions run, where anybody hears of what NumPy warns of."""
    advance: tuple[Any, Any] = field(init=False)
    """The function that computes a step, and the arrays that it works in."""
    both: tuple[Any, Any] = field(init=False)
    """The function that records and reverses a step, and the arrays that it works in."""
    carried: Any = field(init=False)
    """What makes the next step's state of what a step returns (``carrying``)."""
    leaf: tuple[Any, Any] = field(init=False)
    """The function that reverses a step without giving the state after it, and its arrays."""

    def __attrs_post_init__(self) -> None:
        kind = self.kind = self.one.after
        stage, work = kind.stage, kind.work
        rows = rows_of(self.one, kind)
        self.rows = rows if rows is not None and (rows.y_cts or rows.x_cts) else None
        self.as_it_is = kind.active is None and True not in self.chain.steps.x_active
        self.carried = carrying(stage)
        self.advance = usable(stage.advance).function, work.of(stage.advance)
        self._take_both()

    def _take_both(self) -> None:
        leaf, self.both = self.kind.stage.leaf, both_of(self.kind)
        given = (leaf.function, self.kind.work.of(leaf)) if leaf is not None else None
        self.leaf = given or (partial(_without_state, *self.both), ())

    def carry_out(self, numbers: Sequence[int], at: int) -> int:
        """The actions from place ``at`` among the numbers on, as far as they are of states and of rows of tapes in
        memory and of steps that are reversed immediately; the place reached."""
        stage = self.kind.stage
        try:
            with self.told or _INSIDE:
                at = self._carry_out(numbers, at)
        except Exception as error:
            for generated in (stage.both, stage.leaf, stage.record, stage.reverse_own, stage.advance):
                if generated is not None:
                    say_line(error, generated)
            raise
        if self.left is not None:
            self.chain.rest()
            self.chain.both = None  # whose sums are others by then
            self.left()
        return at

    def _carry_out(self, numbers: Sequence[int], at: int) -> int:
        chain, proof, lower = self.chain, self.proved.proof, self.chain.steps.lower
        verifier, n = chain.verifier, len(numbers)
        state, chain.state = chain.state, []
        reads: Any = proof.reads
        left, looked = self.told is None and verifier.stride == 1, 0
        seeds: Any = self.kind.packed(self.one.cts), self.sums
        booking, ledger = self.booking, chain.store.ledger
        heard = ledger.heard
        try:
            while at < n:
                code, step = numbers[at], numbers[at + 1]
                looked += 1
                if looked == CHECKED:
                    looked = 0
                    if not reads.hold():
                        break
                if code == AT_ONCE:
                    if not self.as_it_is:
                        proof.leaves = self.kind.standing(state)
                    constants = proof.constants(step + lower)
                    if constants is None or (heard and booking is None):
                        break
                    if booking is not None or self.kind.stage.lacks_both:
                        self._begin(step, state, constants)
                    if left and _leaves(numbers, at + 3, n):
                        seeds = self._reversed(*self.leaf, step, state, constants, seeds)[-2:]
                    else:
                        state, seeds = self._both(step, state, constants, seeds)
                    ledger.n_forward += 1
                elif code == ADVANCE:
                    before, state = state, self._advanced(step, numbers[at + 2], state)
                    if heard:
                        state = apart(before, state)
                elif code == BACK:
                    seeds = self._back(step, numbers[at + 2], seeds)
                elif code == KEEP:
                    state = list(state)  # which is emptied
                    state = self._kept(step, numbers[at + 2], state)
                elif (found := (self._of_state_heard if heard else self._of_state)(code, step, state)) is not None:
                    state = found
                else:
                    break
                at += 3
                if self.left is not None:
                    break
        finally:
            self._hand_over(state, seeds)
        return at

    def _of_state(self, code: int, step: int, state: Sequence[Any]) -> Sequence[Any] | None:
        """The live state after an action of a snapshot; None where it is another action, or the state is of a kind that
        does not enter."""
        entries = self.chain.store.entries
        if code == LOAD:
            leaves: list[Any] = entries["state", step, MEMORY].leaves
            return leaves if self.proved.enters(leaves) else None
        if code == SAVE:
            entries["state", step, MEMORY] = self.snapshot(list(state))
        elif code == DELETE:
            del entries["state", step, MEMORY]
        else:
            return None
        return state

    def _of_state_heard(self, code: int, step: int, state: Sequence[Any]) -> Sequence[Any] | None:
        """As ``_of_state``, where bookings are heard of: a snapshot shares no memory with the live state."""
        chain = self.chain
        if code == LOAD:
            leaves: list[Any] = chain.store.entries["state", step, MEMORY].leaves
            if not self.proved.enters(leaves):
                return None
            chain.runs()
            return leaves
        if code == SAVE:
            own = [twin_of(leaf) for leaf in state]
            chain.store.put("state", step, MEMORY, self.snapshot(own, items=value_items(own, "snapshot")))
        elif code == DELETE:
            chain.store.drop("state", step, MEMORY)
        else:
            return None
        return state

    def _hand_over(self, state: Sequence[Any], seeds: Any) -> None:
        """The chain and the pass go on from here."""
        self.chain.state, self.chain.owned = list(state), False
        cts, self.sums = seeds
        self.one.cts = self.kind.of_leaves(cts)
        self.one.gathered.update(zip(self.kind.ids, self.sums, strict=True))

    def _both(self, step: int, state: Sequence[Any], constants: list[Any], seeds: Any) -> tuple[Sequence[Any], Any]:
        verifier = self.chain.verifier
        verifier.starts(step, list(state))
        returned, *seeds = self._reversed(*self.both, step, state, constants, seeds)
        return self._reached(step, state, returned, compares=verifier.compares), seeds

    def _begin(self, step: int, state: Sequence[Any], constants: list[Any]) -> None:
        """A step will be recorded and reversed immediately."""
        if self.kind.stage.lacks_both:
            from pullback.loops.stepping.fewer_seeds import add_both  # noqa: PLC0415 - for steps that lack some

            add_both(self.kind, step, state, self.proved.values, constants)
            self._take_both()
        if self.booking is not None:
            self.chain.store.ledger.held_once(self.booking.items(state, self.proved.values, constants))

    def _reversed(
        self, function: Any, places: Any, step: int, state: Sequence[Any], constants: list[Any], seeds: Any
    ) -> Any:
        """What a function that records and reverses a step gives: the state after it, if it gives that, and the
        cotangents of the state with the sums."""
        cts, sums = seeds
        if self.as_it_is and self.rows is None:
            return function(state, self.proved.values, constants, cts, sums, *places)
        rows, entering = self.rows, self.kind.inputs(state, self.chain.steps.entered(step)[1])
        if rows is None:
            return function(entering, self.proved.values, constants, cts, sums, *places)
        *returned, cts, sums = function(entering, self.proved.values, constants, rows.seeds(step, cts), sums, *places)
        return *returned, rows.left(step, cts), sums

    def _reached(self, k: int, state: Sequence[Any], returned: Sequence[Any], *, compares: bool) -> Sequence[Any]:
        """The state after step ``k`` among what it has returned, which is compared with that of the first run."""
        n = self.kind.n_leaves
        after, ys = (returned, ()) if len(returned) == n else (returned[:n], returned[n:])
        after = after if self.carried is None else self.carried(state, after)
        if compares and not (n == 1 and not ys and self.chain.verifier.gave_alone(k, after[0])):
            self.chain.verifier.after(k, list(after), list(ys))
        return after

    def _back(self, k: int, first: int, seeds: Any) -> Any:
        """Take the cotangents through the tapes of steps k down to ``first``."""
        kind, entries, (cts, sums) = self.kind, self.chain.store.entries, seeds
        function, (buffers, fresh) = kind.own
        booked, ledger, rows = self.chain.store.booked, self.chain.store.ledger, self.rows
        while k >= first:
            step = entries["tape", k, MEMORY]
            if type(step) is not StagedStep or step.kind.family is not kind.family:
                self.left = partial(back, self.chain, k, first)
                break
            del entries["tape", k, MEMORY]
            if booked:
                ledger.release(booked.pop(("tape", k, MEMORY), ()))
            with quiet():
                if rows is None:
                    cts, gathered = function(step.slots, cts, buffers, fresh)
                else:
                    cts, gathered = function(step.slots, rows.seeds(k, cts), buffers, fresh)
                    cts = rows.left(k, cts)
                for total, ct in zip(sums, gathered, strict=True):
                    np.add(total, ct, total)
            k -= 1
        return cts, sums

    def _kept(self, start: int, stop: int, state: list[Any]) -> Sequence[Any]:
        """Record steps and keep their tapes; ``state`` is emptied."""
        chain, kept, k, reads = self.chain, list[Any](), start, self.proved.proof.reads
        chain.verifier.starts(start, state)
        if reads is not None and reads.hold():
            k, state = recorded_on(self.proved, chain.steps, start, stop, state, kept.append, _INSIDE)
        chain.store.put_tapes(start, kept)
        chain.store.ledger.n_forward += k - start
        if k < stop:
            self.left = partial(keep, chain, k, stop)
        return state

    def _advanced(self, start: int, stop: int, state: Sequence[Any]) -> Sequence[Any]:
        chain, verifier, (function, places) = self.chain, self.chain.verifier, self.advance
        steps, proof, kind = self.chain.steps, self.proved.proof, self.kind
        each, seldom = verifier.compares and verifier.stride > 1, verifier.compares and verifier.stride == 1
        for k in range(start, stop):
            if not self.as_it_is:
                proof.leaves = kind.standing(state)
            constants = proof.constants(k + steps.lower)
            if constants is None:
                chain.store.ledger.n_forward += k - start
                self.left = partial(chain.advance, k, stop)
                return state
            entering = state if self.as_it_is else kind.inputs(state, steps.entered(k)[1])
            (returned,) = function(entering, self.proved.values, constants, *places)
            state = self._reached(k, state, returned, compares=each or (seldom and k == stop - 1))
        chain.store.ledger.n_forward += stop - start
        return state


def proved_pass_of(chain: Any, snapshot: Callable[..., Any]) -> ProvedPass | None:
    """What carries out actions of a chain on its reverse pass without the body, where steps that the loop has recorded
    before prove that it may rest."""
    steps, passes = chain.steps, chain.passes
    proved = None if steps.staging is None else steps.staging.proved
    if proved is None or len(passes) != 1 or chain.probe is not None or chain.lookback is not None:
        return None
    masks = steps.enclosing is not None and bool(steps.enclosing.masks)
    if not proved.holds(passes[0], masks=masks) or rows_of(passes[0], passes[0].after) is None:
        return None
    sums = passes[0].sums.totals(passes[0].after.ids)
    if sums is None:
        return None
    chain.rest()
    chain.both = None  # whose sums are others by then
    return ProvedPass(chain, proved, passes[0], sums, snapshot)


def pays(numbers: Sequence[int]) -> bool:
    """Whether there are so many steps among the actions that a proof pays."""
    if len(numbers) >= 3 * FEWEST:
        return True
    rows = zip(numbers[::3], numbers[1::3], numbers[2::3], strict=True)
    return sum(abs(last - first) if code in (KEEP, BACK) else 1 for code, first, last in rows) >= FEWEST


def _leaves(numbers: Sequence[int], at: int, n: int) -> bool:
    """Whether the state that has been reached is left: another one is loaded or there is no action any more."""
    while at < n and numbers[at] in (DELETE, BACK):
        at += 3
    return at >= n or numbers[at] == LOAD


def apart(before: Sequence[Any], state: Sequence[Any]) -> list[Any]:
    """The leaves of a state, none of which lies in memory of the one before or of another: as if the body had run on
    plain arrays."""
    entered = set(map(id, before))
    return separate([twin_of(leaf) if id(leaf) in entered else leaf for leaf in state])


def both_of(kind: StepKind) -> tuple[Any, Any]:
    """What records and reverses a step in one, and the arrays that it works in: one function, or where kernels compute
    the parts of it and somebody hears of what NumPy warns of, these one after the other."""
    both = kind.stage.both
    if both is None or (both.kernels and not is_quiet(error_state())):
        return partial(_in_parts, kind), ()
    return both.function, kind.work.of(both)


def _in_parts(kind: StepKind, state: Any, values: Any, constants: Any, seeds: Any, sums: Any) -> tuple[Any, Any, Any]:
    record, own, work = kind.stage.record, kind.stage.reverse_own, kind.work
    returned, slots = usable(record).function(state, values, constants, *work.of(record))
    with quiet():
        cts, gathered = usable(own).function(slots, seeds, *work.of(own))
    for total, ct in zip(sums, gathered, strict=True):
        np.add(total, ct, total)
    return returned, cts, sums


def _without_state(both: Any, places: Sequence[Any], *given: Any) -> tuple[Any, Any]:
    _, cts, sums = both(*given, *places)
    return cts, sums
