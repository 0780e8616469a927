"""Steps that a stage may compute: the body runs on a shadow (``staging.shadow.shadow_run``), and where its operations
are known the generated functions compute the step."""

from collections.abc import Callable, Sequence
from functools import partial
from math import inf
from threading import get_ident
from typing import Any

from attrs import define, field

from pullback.loops.bodies.proofs import Proof
from pullback.loops.stepping.held_steps import StagedStep, StepKind, StepTape
from pullback.loops.stepping.rerun import LoopSteps, as_before, returned_by
from pullback.memory.in_force import STAGINGS, Enclosed, next_level, planned
from pullback.memory.reverse_sweep import Releasing
from pullback.memory.working_bytes import Needed
from pullback.recording.copies import separate
from pullback.recording.crossing import present
from pullback.recording.handles import Handle
from pullback.recording.tape import CAPTURED, DEFERRED, Tape
from pullback.recording.traps import TRAPPED
from pullback.staging.generated.generated import UnderWay, begun, computed, errors_are_ordinary
from pullback.staging.generated.recorded_steps import RecordedStep
from pullback.staging.generated.shelf import Shelf, shelf_of
from pullback.staging.generated.stages import Stage, slot_items
from pullback.staging.generated.workspaces import Arrays, Workspace
from pullback.staging.shadow.operations import entering, enters_as, standing
from pullback.staging.shadow.quick_operators import KnownStep
from pullback.staging.shadow.shadow_run import ShadowRun
from pullback.staging.shadow.twins import Twins
from pullback.staging.shadow.valueless import VALUELESS
from pullback.words.specs import carries_derivative


@define(eq=False)
class StagedSteps:
    """The staging of one execution of a loop."""

    steps: LoopSteps
    shelf: Shelf
    first: int = 1
    """The step from which on stages are looked for."""
    most_bytes: float = inf
    """Bytes of state and tape up to which steps are staged."""
    threads: int = 1
    proof: Proof | None = None
    """Whether the body may rest."""
    works: dict[KnownStep, tuple[Stage, Workspace]] = field(factory=dict, init=False)
    """The stage of each list of operations, with the arrays that it works in here."""
    arrays: Arrays = field(factory=Arrays, init=False)
    checked: list[int] = field(factory=list, init=False)
    """The ids of the captured values that were last seen to be those of step 0."""
    run: tuple[ShadowRun, Enclosed] | None = field(default=None, init=False)
    """The shadow run of the last step, where the next can use it again, and the block that it takes place in."""
    state: list[Any] | None = field(default=None, init=False)
    """What the last staged step has returned, of the kind that entered it."""
    last: KnownStep | None = field(default=None, init=False)
    """What it has done."""
    entered: Any = field(default=None, init=False)
    """What kind of values entered it, with the stages that are known for these."""
    kinds: list[Any] = field(factory=list, init=False)
    """The types of the leaves of the state then."""

    going: Any = field(default=None, init=False)
    """What is known of steps that go straight on (``straight_steps.Going``)."""
    proved: Any = field(default=None, init=False)
    """What the body is proved to do again (``proved_steps.Proved``)."""
    lends: bool = field(default=False, init=False)
    """Whether loops that follow may take the tapes of this one, from the first on."""
    early: bool = field(default=False, init=False)
    """Whether steps are recorded as they are advanced, until there is a stage."""
    spares: bool = field(default=False, init=False)
    """Whether nothing of the last step stays while none comes, since arrays are large or bytes are counted."""
    at_work: float = field(default=inf, init=False)
    """Bytes that functions of a step may work in. Where that is said, they are made of the first steps or never."""
    step_kinds: dict[KnownStep, StepKind] = field(factory=dict, init=False)
    """What the staged steps that do a list of operations share, by the list."""

    @property
    def short(self) -> bool:
        """Whether the loop has so few steps that only stages of small ones pay."""
        return self.most_bytes == SHORT_BYTES

    def takes(self, k: int) -> bool:
        """Whether step ``k`` is recorded here: not step 0, which tells what is captured."""
        if k < self.first or TRAPPED.get() or not errors_are_ordinary():
            return False
        if self.at_work < inf and not self._has_room(k):
            return False
        return self.entered is None or not self.entered[0].over

    def _has_room(self, k: int) -> bool:
        stages = () if self.entered is None else self.entered[0].stages
        return all(each.buffer_bytes <= self.at_work for each in stages) if stages else k < self.first - 1 + EARLY

    def made_of_first_steps(self, needed: Needed, state_bytes: int, each: int, room: int, free: int) -> bool:
        """Whether there is ``room`` to make functions of the first steps, before much is held. They are made then or
        never, and work in what is ``free`` for it and for the cotangents of the state. Where the length is unknown, a
        few steps come first if there is room for ``each`` of them."""
        room -= EARLY * state_bytes + needed.making_bytes
        if room < 0:
            return False
        self.early, self.first = True, self.first if (self.first - 1) * each <= room else 1
        self.spares, self.at_work, self.arrays.stay = True, free - state_bytes, False
        return True

    def waits(self) -> None:
        """No step comes for now."""
        if not self.spares:
            return
        self.run = self.state = self.going = self.proved = None
        self.arrays.free()
        fewer = (each.work for kind in self.step_kinds.values() for each in kind.fewer.values())
        for work in (*(work for _, work in self.works.values()), *fewer):
            work.arrays.clear()

    def begins(self, state: list[Any]) -> bool:
        """Whether step 0 is recorded here: where stages of such steps are known from calls before, no re-run is
        compared with its records, and nobody watches the lifetimes of its values. Bodies that begin with another step
        are soon not asked any more."""
        steps = self.steps
        if self.shelf.new or steps.verifier.compares_tapes or steps.lifetimes is not None or steps.nest is not None:
            return False
        entered = self._entered(state, None if steps.xs is None else steps.row(0))
        if TRAPPED.get() or not errors_are_ordinary() or entered[0].n_begun_otherwise >= MOST_TRIES:
            return False
        if entered[0].stages:
            self.entered = entered
        return bool(entered[0].stages)

    def advances(self, k: int) -> bool:
        """Whether a stage advances step ``k``: never by itself, since the body on plain arrays is as fast; where stages
        were asked for, those that work in buffers. Or whether one is to be learned from it ``early``."""
        if self.early and k >= self.first:
            self.early = k < self.first - 1 + EARLY and self.takes(k) and not (self.entered and self.entered[0].stages)
        if self.early or self.most_bytes < inf:
            return self.early and k >= self.first
        if self.entered is None:  # what enters is not known yet: with kernels it is worth a look
            return self.shelf.backend is not None and not self.shelf.new and self.takes(k)
        return any(stage.advance.works_in_place for stage in self.entered[0].stages) and self.takes(k)

    def recorded(self, k: int, state: list[Any], *, keeps: bool = True) -> tuple[Any, list[Any]]:
        """Step ``k``: what was recorded, and the state after it. Unless the caller ``keeps`` it, None may stand for
        what was recorded."""
        row = None if self.steps.xs is None else self.steps.row(k)
        if state is not self.state and k and not self.enters_again(state, row):
            self.entered = self._entered(state, row)
        variants, results, x_results = self.entered
        if self.run is None or self.run[0].tape.thread != get_ident():
            self.run = self._new_run(k)
        (run, within), self.run = self.run, None
        whole = False
        known = [stage.known for stage in variants.stages]
        if len(known) > 1:  # what was done last is tried first
            known.sort(key=lambda one: one is not self.last)
        run.eager.n_own = sum(result is not None for result in results)
        run.begin(known, (*results, *x_results), partial(self.begun, run, keeps=keeps))
        try:
            with within:
                handles, xs = run.entered(state, results), row and run.entered(row, x_results)
                parts = self.returned(run, *self.steps.call_body(k + self.steps.lower, handles, xs))
                del handles, xs
            whole = run.following is not None
            done = self.settled(k, state, run, parts, keeps=keeps)
            if whole:
                self.run = run, within
        except BaseException:
            whole = False
            run.failed()
            raise
        finally:
            run.end(whole=whole)
        return done

    def _entered(self, state: list[Any], row: Any) -> Any:
        results = [entering(leaf) if carries_derivative(leaf) else None for leaf in state]
        active = self.steps.x_active if row else ()
        x_results = [entering(leaf) if wanted else None for leaf, wanted in zip(row or (), active, strict=True)]
        self.kinds = [type(leaf) for leaf in state]
        types = [kind for kind, result in zip(self.kinds, results, strict=True) if result is None]
        return self.shelf.of((results, x_results, types)), results, x_results

    def enters_again(self, state: list[Any], row: Any) -> bool:
        """Whether the leaves are of the kinds that entered last."""
        if self.entered is None:
            return False
        _, results, x_results = self.entered
        kinds = self.kinds
        if not all(result is None or enters_as(result, x) for result, x in zip(x_results, row or (), strict=True)):
            return False
        return len(state) == len(kinds) and all(
            enters_as(result, leaf) and type(leaf) is kind
            for result, leaf, kind in zip(results, state, kinds, strict=True)
        )

    def _new_run(self, k: int) -> tuple[ShadowRun, Enclosed]:
        tape = Tape(next_level(), VALUELESS)
        tape.mode, tape.captures, tape.enclosing = DEFERRED, {}, self.steps.enclosing
        tape.constants = self.steps.constants  # type: ignore[assignment]  # a mapping is all that is asked of it
        run = ShadowRun(tape, Twins(partial(self.steps.opened, k), tape.level))
        return run, Enclosed(self.steps.enclosing, CAPTURED, tape)

    def returned(self, run: ShadowRun, new: list[Any], ys: list[Any]) -> tuple[list[Any], list[Any]]:
        """The leaves and the outputs that the body has returned, as the run has them."""
        if run.surrendered:
            tape = run.eager.tape
            assert tape is not None  # who has surrendered has one
            return [returned_by(leaf, tape) for leaf in new], [returned_by(leaf, tape) for leaf in ys]
        if not run.ends(new, ys):
            new, ys = [present(leaf, run.tape) for leaf in new], [present(leaf, run.tape) for leaf in ys]
            run.finish(new, ys)
        return new, ys

    def settled(
        self, k: int, state: list[Any], run: ShadowRun, parts: tuple[list[Any], list[Any]], *, keeps: bool
    ) -> tuple[Any, list[Any]]:
        """The step of which the body has returned ``parts``: computed by its stage, or else recorded."""
        if run.following is not None:
            n = len(parts[0])
            for part in parts:
                part.clear()  # the handles serve the next step if nobody has them
            return self._computed(k, state, run, n, keeps=keeps)
        tape = run.eager.tape
        assert tape is not None  # an eager run has one
        with Releasing(tape):
            return self._ordinary(k, state, run, *parts)

    def _computed(self, k: int, state: list[Any], run: ShadowRun, n: int, *, keeps: bool) -> tuple[Any, list[Any]]:
        steps, captured = self.steps, run.captured
        stage, work = self.work_of(run.following)
        if stage.collective and steps.enclosing is not None:
            steps.collective = steps.enclosing.collective = True
        if steps.captured_specs is None:
            steps.begins_with(dict(zip(captured, run.values, strict=True)), masks=stage.masks_itself)
        self.require_captures(captured, k)
        generated = stage.record if keeps else stage.advance
        if generated.reads:
            returned, *slots = run.next_part()
        else:
            returned, *slots = computed(generated, run.inputs, run.values, run.constants, *work.of(generated))
        step = StagedStep(self.kind_of(stage, work, captured, n), slots[0], k) if keeps else None
        after, ys = map(list, steps.taken(k, n, returned))
        if step is not None and (k == 0 or steps.ledger.heard):  # the policy is told the size of step 0
            step.items = slot_items(stage.booked, step.slots)
        if (carried := carrying(stage)) is not None:
            after = carried(state, after)
        if steps.verifier.compares:
            steps.verifier.after(k, after, ys)
        if not keeps:
            after = separate(after)
        self.state, self.last = after if stage.repeats else None, stage.known
        return step, after

    def require_captures(self, captured: list[int], k: int) -> None:
        """The captured values have to be those of step 0."""
        if captured != self.checked:
            self.steps.require_captures(captured, k)
            self.checked = captured

    def begun(self, run: ShadowRun, known: KnownStep, *, keeps: bool) -> UnderWay:
        """A step that is known, and of which values are read: computed up to these."""
        stage, work = self.work_of(known)
        generated = stage.record if keeps else stage.advance
        return begun(generated, run.inputs, run.values, run.constants, *work.of(generated))

    def kind_of(self, stage: Stage, work: Workspace, captured: list[int], n: int) -> StepKind:
        kind = self.step_kinds.get(stage.known)
        if kind is None or kind.captured != captured:
            kind = self.step_kinds[stage.known] = StepKind(stage, captured, work, n)
        return kind

    def proving(self, before: Any = None) -> Proof | None:
        """What may prove that the body rests, from the step on that has met what is ``before``. Steps of another kind
        may have been run since, but where a proof stands."""
        if self.proof is not None and (self.proved is None or not self.proved.stands()):
            self.proof.begins()
            self.proof.counts = None in self.entered[1]
            if before is not None:
                self.proof.repeats(0, *before)  # which step it was is not asked of the first
        return self.proof

    def work_of(self, known: Any) -> tuple[Stage, Workspace]:
        found = self.works.get(known)
        if found is None:
            [stage] = [stage for stage in self.entered[0].stages if stage.known is known]
            found = self.works[known] = stage, Workspace(self.steps, self.threads, self.arrays)
        return found

    def _ordinary(
        self, k: int, state: list[Any], run: ShadowRun, new: list[Any], ys: list[Any]
    ) -> tuple[StepTape, list[Any]]:
        """The step as an ordinary one, from which a stage may be made."""
        variants, results, x_results = self.entered
        tape = run.eager.tape
        assert tape is not None  # an eager run has one
        if not run.surrendered:
            new, ys = ([run.twin(leaf) for leaf in part] for part in (new, ys))
        places = iter(range(tape.n_inputs))
        entered = [None if result is None else next(places) for result in results]
        x_entered = [None if result is None else next(places) for result in x_results]
        masks = tape.masks = tape.masks or run.tape.masks
        step, values = self.steps.finished(k, tape, (entered, x_entered), (new, ys), state)
        if k == 0:
            variants.n_begun_otherwise += 1
        elif run.why:
            variants.failed(run.why)
        elif not variants.over and (k < self.first - 1 + EARLY or self.at_work == inf):
            around = self.steps.enclosing
            returned = [leaf._value if isinstance(leaf, Handle) else leaf for leaf in (*new, *ys)]
            captured = list(zip(run.captured, run.values, strict=True))
            kinds = [result or standing(leaf) for result, leaf in zip(results, state, strict=True)]
            recorded = RecordedStep(
                tape, run.operations, run.ranges, run.inputs, captured, run.constants, kinds,
                (entered, x_entered if any(self.steps.x_active) else []),
                [*step.left, *step.ys], returned, values, masks or (around is not None and around.masks),
                run.read, run.logged, masks_itself=masks, advances=not self.shelf.held,
            )  # fmt: skip
            if variants.backend is not None:
                self.steps.ledger.waits("compiling")
            variants.learn(recorded)
            if variants.backend is not None:
                self.steps.ledger.waits("")
        return step, values


def carrying(stage: Stage) -> Callable[[Sequence[Any], Sequence[Any]], list[Any]] | None:
    """What makes the next step's state of the one before and of what a stage returns; None where that is it."""
    if stage.closed:
        return None
    return stage.with_numbers if stage.numbers else as_before


def staged_steps(steps: LoopSteps, loop: Any, proof: Proof | None, *, held: bool) -> StagedSteps | None:
    """The staging of a loop, all whose steps may be ``held``; None where every step is recorded."""
    around, staging, n = steps.enclosing, loop.staging, loop.n
    if staging == "off" or around is None or around.outer is not None or around.trap is not None or TRAPPED.get():
        return None
    if planned() is not None:
        return None
    shelf = shelf_of(loop.body, "" if staging in STAGINGS else staging, held=held)
    new = staging == "auto" and shelf.new
    most_bytes = MOST_BYTES if staging == "auto" else inf
    if new and n is not None and n < FEWEST:
        shelf.n_recorded += n
        if shelf.n_recorded < FEWEST:
            return None
        most_bytes = SHORT_BYTES
    return StagedSteps(steps, shelf, FEWEST if new and n is None else 1, most_bytes, loop.threads, proof)


MOST_TRIES = 2
"""How often step 0 may turn out to do something else than the steps that are known."""
FEWEST = 24
"""Steps from which a stage of a body that is new pays: of one loop, or of short ones that are run again and again."""
SHORT_BYTES = 2**16
"""The most bytes of a step of a short loop: what its stage works in is much of what so few steps hold."""
MOST_BYTES = 2 * 2**20
"""A stage is made from several copies of all values of a step; of large ones that would be felt beside what a policy
holds, if that is less."""
EARLY = 4
"""Steps of large arrays that are recorded in the sweep, before much is held, so that a stage is made then."""
