"""Steps that a body is proved to do again (``loops.bodies.proofs``): the generated function records one after the
other, and the body rests."""

from collections.abc import Callable, Sequence
from typing import Any

from attrs import define

from pullback.loops.bodies.proofs import CHECKED, Proof
from pullback.loops.stepping.held_steps import StagedStep, StepKind
from pullback.loops.stepping.staged_steps import carrying
from pullback.recording.traps import TRAPPED
from pullback.staging.generated.generated import say_line, usable, warn
from pullback.staging.generated.slabs import in_slab, n_in_slab
from pullback.staging.generated.stages import slot_items
from pullback.staging.shadow.operations import enters_as
from pullback.words.undocumented import error_state, is_quiet, under_error_state


@define(eq=False)
class Proved:
    """Steps that a body is proved to do again: what they share."""

    kind: StepKind
    values: list[Any]
    """The captured ones."""
    proof: Proof
    going: Any
    """What must hold of the steps (``straight_steps.Going``)."""

    def holds(self, one: Any, *, masks: bool) -> bool:
        """Whether the body may rest still, on the way of one seed that has come from such a step."""
        kind = one.after
        if kind is None or kind.family is not self.kind.family or one.outer is not None:
            return False
        if not kind.goes_on or kind.stage.masks != masks:
            return False
        return self.stands()

    def stands(self) -> bool:
        """Whether the body may rest still. Where nobody hears of what NumPy warns of, it may in any case."""
        if TRAPPED.get() or not self.proof.may_rest:
            return False
        if (state := error_state()) is not self.going.errors and not is_quiet(state):
            return False
        reads = self.proof.reads
        return reads is not None and self.proof.told is not None and reads.hold()

    def enters(self, leaves: Sequence[Any]) -> bool:
        """Whether a state is of the kind that enters these steps."""
        return all(map(enters_as, self.going.kinds, leaves))


def telling() -> Any:
    """The block in which generated functions run, where anybody hears of what NumPy warns of; else None."""
    return None if is_quiet(error_state()) else under_error_state(warn)


def recorded_on(
    proved: Proved, steps: Any, k: int, stop: int, state: list[Any], take: Callable[[Any], None], told: Any,
    more: Any = None,
) -> tuple[int, list[Any]]:  # fmt: skip
    """Record steps from ``k`` up to ``stop``, as the proof has just been seen to hold; ``take`` gets each. The step
    reached, and the state there; ``state`` is emptied. ``told`` is the block that hears of what NumPy warns of. Where
    ``more`` is asked before each step, each is in a block of its own, and in memory of its own."""
    kind, values, proof = proved.kind, proved.values, proved.proof
    stage, verifier, compares, lower = kind.stage, steps.verifier, steps.verifier.compares, steps.lower
    reads, first, looked_up = proof.reads, k, () if compares else proof.looked_up  # who comes again meets the same
    function, places, carried = usable(stage.record).function, kind.work.of(stage.record), carrying(stage)
    each, slab = CHECKED if more is None else 1, None
    fresh: Sequence[Any] = places[1]
    (buffers, makers), plan, left, before = places, stage.record.plan, 0, state
    booked, own = (stage.booked, bool(proof.own)) if steps.ledger.heard else ((), False)
    fixed, n, ys = None if own else proof.fixed, kind.n_leaves, tuple[Any, ...]()
    whole = steps.outputs.n
    alone = whole is None or 2 * (stop - k) > whole  # else other steps will be recorded in the place of these
    writes, rows, counts = len(stage.known.ends) > n, bool(proved.going.rows), kind.active is not None
    try:
        while k < stop and (k == first or reads.hold(looked_up)):  # type: ignore[union-attr]  # of what holds
            if more is None and not left:
                left = n_in_slab(plan, stop - k, alone=alone)
                fresh, slab = in_slab(plan, makers, left)
            end = min(k + each, stop, k + left if left else stop)
            left -= min(left, end - k)
            with told:
                for step in range(k, end):
                    if counts:
                        proof.leaves = kind.standing(state)
                    constants = proof.constants(step + lower, kept=True, own=own) if fixed is None else fixed
                    if constants is None:
                        return step, list(state)
                    entered = kind.inputs(state, steps.entered(step)[1]) if rows or counts else state
                    returned, slots = function(entered, values, constants, buffers, fresh)
                    entered = []
                    if writes:
                        returned, ys = steps.taken(step, n, returned)
                    state = returned if carried is None else carried(state, returned)
                    before.clear()  # of what nobody else has, nothing stays
                    if compares and (step < verifier.n_seen or not (step + 1) % verifier.stride):
                        verifier.after(step, list(state), list(ys))
                    elif compares:
                        verifier.n_seen = step + 1
                    take(StagedStep(kind, slots, step, slot_items(booked, slots, slab) if booked else ()))
            k = end
            if more is not None and k < stop and not more(k, list(state)):
                break
    except Exception as error:
        say_line(error, stage.record)
        raise
    return k, list(state)
