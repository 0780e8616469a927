"""Steps that are recorded to be reversed immediately, as the actions ``Record(k)``, ``Reverse(k)`` in a row: one
generated function does both, and what holds for all such steps is checked once.

Between two of them the schedule advances on plain arrays; ``memory.handles_or_arrays`` switches between the two ways.
"""

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from operator import is_
from typing import Any

import numpy as np
from attrs import define, field

from pullback.loops.stepping.called_bodies import gives_back, returned_on
from pullback.loops.stepping.held_steps import Booking, StepKind, booking_of
from pullback.loops.stepping.proved_pass import ProvedPass, apart, both_of
from pullback.loops.stepping.proved_steps import Proved, telling
from pullback.loops.stepping.rows import rows_of
from pullback.loops.stepping.staged_steps import StagedSteps, carrying
from pullback.loops.stepping.straight_steps import Going
from pullback.memory.handles_or_arrays import HandlesOrArrays
from pullback.recording.copies import separate
from pullback.recording.handles import twin_of
from pullback.recording.tape import NOTHING_KEPT
from pullback.recording.traps import TRAPPED
from pullback.staging.generated.generated import say_line, usable
from pullback.staging.shadow.operations import enters_as
from pullback.words.undocumented import error_state


@define(eq=False)
class RecordAndReverse:
    """Steps that are recorded to be reversed immediately, each by one function: what is asked once for all of them, in
    one reverse pass."""

    staged: StagedSteps
    kind: StepKind
    one: Any
    """The pass."""
    sums: Sequence[Any]
    """Sums of the cotangents of captured values; the function adds to them."""
    booking: Booking | None
    """What is booked of a step, where anybody hears of it."""
    pair: Any = field(init=False)
    """The run that waits open, and its block."""
    going: Going = field(init=False)
    """What must hold of the steps."""
    enters: list[tuple[Any, ...]] = field(init=False)
    """Type, shape, dtype and strides of each leaf that enters; of no number."""
    generated: Any = field(init=False)
    """What says at which line of the user's it fails."""
    function: Any = field(init=False)
    places: Any = field(init=False)
    """The arrays that the function works in."""
    advancing: tuple[Any, Any] = field(init=False)
    """The function of a step that is run without recording, and the arrays that it works in."""
    told: Any = field(init=False)
    """The block in which it runs, where anybody hears of what NumPy warns of."""
    known: Any = field(init=False)
    """The list of operations that the steps do."""
    starting: Any = field(init=False)
    """The handles that the body gets; one more who held one of them would be seen."""
    ending: Any = field(init=False)
    """The handles that the body returns."""
    block: HandlesOrArrays = field(init=False)
    rows: Any = field(init=False)
    """What the steps take and give beside states (``rows.Rows``)."""
    computes: tuple[Any, Any] = field(init=False)
    """What begins to compute a step of which values are read, where nobody keeps it and where somebody does."""
    carried: Any = field(init=False)
    """What makes the next step's state of what a step returns (``carrying``)."""
    last: int = field(init=False)
    """The place at which a step ends."""
    in_place: bool = field(default=False, init=False)
    """Whether the sums are seen to stay the same arrays."""
    left: Any = field(default=None, init=False)
    """The last step, where it did something else and has not been reversed."""

    def __attrs_post_init__(self) -> None:
        staged, kind = self.staged, self.kind
        assert staged.run is not None  # record_and_reverse_of has asked
        self.pair, self.going = staged.run, staged.going
        specs = [(result.spec, result.strides) for result in self.going.kinds]
        self.enters = [
            (None,) * 4 if spec is None or strides is None else (np.ndarray, spec.shape, spec.dtype, strides)
            for spec, strides in specs
        ]
        self.generated, (self.function, self.places) = kind.stage.both or kind.stage.record, both_of(kind)
        begins = partial(staged.begun, self.pair[0])
        self.computes = partial(begins, keeps=False), partial(begins, keeps=True)
        advance = kind.stage.advance
        self.advancing = usable(advance).function, kind.work.of(advance)
        self.told, self.carried = telling(), carrying(kind.stage)
        steps, run, self.known = staged.steps, self.pair[0], kind.stage.known
        self.last = len(self.known.operations) - 1
        self.starting, self.ending = run.pool.starting, run.pool.ending
        self.rows = rows_of(self.one, kind)
        self.block = HandlesOrArrays(run.tape.enclosing, run.tape, steps.on_values())

    def step(self, k: int, state: list[Any]) -> list[Any] | None:
        """The state after step ``k``, which has been reversed, unless it is ``left``. None where nothing has been done,
        since this cannot. The block stays turned to handles until it is left (``rest``)."""
        return self._stepped(k, state, keeps=True)

    def _stepped(self, k: int, state: list[Any], *, keeps: bool) -> list[Any] | None:
        """As ``step`` does it; where nobody ``keeps`` the step, the state alone is computed."""
        staged, steps, run, block = self.staged, self.staged.steps, self.pair[0], self.block
        if k < staged.first or staged.run is not self.pair or not self._holds(run, state):
            return None
        self._reopen(run, state, keeps=keeps)
        after: list[Any] = []
        staged.run, whole, parts = None, False, None
        try:
            block.on_handles()
            carry, y = returned_on(self.starting, steps, run, staged.proof, k, state, self.kind.active)
            plain = gives_back(steps, carry, y, self.ending)
            if (
                plain is None
                or run.at != self.last
                or run.following is not self.known
                or run.captured != self.kind.captured
            ):
                parts = staged.returned(run, *steps.leaves_of(k + steps.lower, carry, y))
            else:
                run.constants += plain
            carry = y = plain = None
            if parts is None:
                run.at += 1
                after, staged.run, whole = self._computed(k, state, keeps=keeps), self.pair, True
            else:
                block.leave()
                whole = run.following is not None
                self.left, after = staged.settled(k, state, run, parts, keeps=keeps)
                staged.run = self.pair if whole else None
        except BaseException:
            block.leave()
            whole = False
            run.failed()
            raise
        finally:
            run.stands, run.outer = {}, []  # which hold handles
            if not whole or parts is not None or run.alone or not run.pool.serves_again(run.written):
                block.leave()
                run.end(whole=whole)
        return after

    def advance(self, chain: Any, start: int, stop: int) -> bool:
        """Run steps of the chain without recording: on plain arrays, or by the stage where that is asked for. False
        where nothing has been done, since this cannot. The block stays turned to what they have run on."""
        if TRAPPED.get() or chain.looks_back:
            return False
        if self.staged.advances(start):
            return self._advance_staged(chain, start, stop)
        state = list(chain.state) if chain.owned else [twin_of(leaf) for leaf in chain.state]
        self.block.on_arrays()
        self.staged.steps.advance(start, stop, state)
        chain.state, chain.owned = state, True
        return True

    def _advance_staged(self, chain: Any, start: int, stop: int) -> bool:
        """Advance by the stage. From the first step on that does something else the chain runs what is left."""
        k, after = start, self._stepped(start, chain.state, keeps=False)
        if after is None:
            return False
        while after is not None:
            if self.left is not None:
                self.left.release()
                self.left, after = None, separate(after)
            elif self.booking is not None:
                after = apart(chain.state, after)
            chain.state, chain.owned, k = after, False, k + 1
            after = None if k == stop else self._stepped(k, chain.state, keeps=False)
        chain.store.ledger.n_forward += k - start
        if k < stop:
            self.rest()
            chain.advance(k, stop)
        return True

    def proved(self, step: int, chain: Any, snapshot: Callable[..., Any]) -> ProvedPass | None:
        """What carries out the actions of the chain without the body, where the last steps prove that it may rest."""
        proof, run = self.staged.proof, self.pair[0]
        if (
            proof is None
            or self.left is not None
            or self.staged.run is not self.pair
            or not self._holds(run, chain.state)
        ):
            return None
        if not proof.repeats(step + self.staged.steps.lower, run.values, run.constants):
            return None
        proved = self.staged.proved = Proved(self.kind, run.values, proof, self.going)
        return ProvedPass(chain, proved, self.one, self.sums, snapshot, self.booking)

    def rest(self) -> None:
        """The block is left: somebody else goes on."""
        run = self.pair[0]
        self.block.leave()
        run.computes, run.tape.shadow = None, None  # or these would keep each other alive

    def _reopen(self, run: Any, state: list[Any], *, keeps: bool) -> None:
        """A step begins in the run that waits open: it follows the same list, on the same handles."""
        run.tape.shadow, run.tape.kept = run, NOTHING_KEPT
        run.errors, run.filters, run.computes = self.going.errors, warnings.filters, self.computes[keeps]
        run.known, run.at, run.inputs = self.going.known, 0, state
        run.constants, run.captured, run.values = [], [], []

    def _holds(self, run: Any, state: list[Any]) -> bool:
        """Whether the run waits open, the pass has come from such a step, and the state is of the kind that enters."""
        if run.pool is None or self.one.after is not self.kind or error_state() is not self.going.errors:
            return False
        if TRAPPED.get():
            return False
        if state is self.staged.state:
            return True
        for leaf, (kind, shape, dtype, strides), result in zip(state, self.enters, self.going.kinds, strict=True):
            if type(leaf) is kind and leaf.shape == shape and leaf.dtype is dtype and leaf.strides == strides:
                continue
            if not enters_as(result, leaf):
                return False
        return True

    def _computed(self, k: int, state: list[Any], *, keeps: bool) -> list[Any]:
        """What the function gives for a step that is like the others: that which reverses it, too, or where nobody
        ``keeps`` it that which advances."""
        one, run, steps, rows = self.one, self.pair[0], self.staged.steps, self.rows
        given = [run.inputs, run.values, run.constants]
        function, places = (self.function, self.places) if keeps else self.advancing
        if keeps:
            given += rows.seeds(k, self.kind.packed(one.cts)), self.sums
        try:
            if self.told is None:
                returned, *cotangents = function(*given, *places)
            else:
                with self.told:
                    returned, *cotangents = function(*given, *places)
        except Exception as error:
            say_line(error, self.generated if keeps else self.kind.stage.advance)
            raise
        if keeps:
            if self.booking is not None:
                self.staged.steps.ledger.held_once(self.booking.items(state, run.values, run.constants))
            cts, sums = cotangents
            one.cts = self.kind.of_leaves(rows.left(k, cts))
            if not self.in_place:
                self.in_place, self.sums = all(map(is_, sums, self.sums)), sums
                one.gathered.update(zip(self.kind.ids, sums, strict=True))
        returned, ys = steps.taken(k, self.kind.n_leaves, returned)
        after = list(returned) if self.carried is None else self.carried(state, returned)
        if steps.verifier.compares:
            steps.verifier.after(k, after, list(ys))
        self.staged.state = after
        return after


def lacks_both(passes: Sequence[Any]) -> bool:
    """Whether functions that record and reverse a step in one are still to be made for the kind of the last step."""
    after = passes[0].after if len(passes) == 1 else None
    return after is not None and after.stage.lacks_both


def met(
    work: Any, passes: Sequence[Any], before: Sequence[Any], run: Any, xs: Sequence[Any] | None, *, heard: bool
) -> Booking | None:
    """What is booked of steps like ``work``, which ``run`` has just followed from the state ``before``, where that is
    ``heard`` of; they get rows of ``xs``. The functions that the kind of the last step lacks are made."""
    if lacks_both(passes) and passes[0].after.family is work.kind.family:
        from pullback.loops.stepping.fewer_seeds import add_both  # noqa: PLC0415 - for steps that lack some

        add_both(passes[0].after, work.k, before, run.values, run.constants)
    return booking_of(work, before, run, xs or ()) if heard else None


def record_and_reverse_of(
    staged: StagedSteps, one: Any, booking: Booking | None, *, masks: bool
) -> RecordAndReverse | None:
    """How steps like the last one, which the pass has come back through, are recorded and reversed in one; None where
    they cannot be. ``booking`` is what is booked of such a step, where that is known."""
    kind, steps = one.after, staged.steps
    if kind is None or one.outer is not None or not kind.goes_on or staged.going is None or staged.run is None:
        return None
    stage, run = kind.stage, staged.run[0]
    if not stage.repeats or stage.masks != masks or (booking is None and steps.ledger.heard):
        return None
    if run.pool is None or not run.pool.is_bound or run.following is not stage.known:
        return None
    sums = one.sums.totals(kind.ids)
    if sums is None or rows_of(one, kind) is None:
        return None
    staged.proving()
    return RecordAndReverse(staged, kind, one, sums, booking)
