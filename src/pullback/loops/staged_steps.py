"""Steps of a loop function that are staged: the body runs on a shadow, and a stage that is known computes the step."""

from typing import Any

import numpy as np
from attrs import define, field

from pullback.loops.rerun import Steps, StepTape, as_before, returned_by
from pullback.memory.in_force import Enclosed, next_level, planned
from pullback.memory.ledger import Item
from pullback.memory.sweep import Releasing
from pullback.recording.handles import Handle, resolve
from pullback.recording.tape import CAPTURED, DEFERRED, Tape
from pullback.recording.traps import TRAPPED
from pullback.rules.forms import FORMS
from pullback.staging.operations import result_of
from pullback.staging.shadow import ShadowRun
from pullback.staging.shelf import Shelf, shelf_of
from pullback.staging.stages import Recorded, Stage, Workspace
from pullback.staging.symbols import Symbol
from pullback.staging.valueless import VALUELESS
from pullback.words.specs import buffer_of, carries_derivative


@define(eq=False)
class StagedStep:
    """A step that a stage has recorded: what its reverse reads, and, when it is asked for, its tape."""

    stage: Stage
    slots: tuple[Any, ...]
    captured: list[int]
    """Ids of the captured values in the trace around."""
    steps: Steps
    work: Workspace
    n_leaves: int
    k: int
    items: list[Item] = field(factory=list)
    thawed: Tape | None = field(default=None, init=False)

    @property
    def tape(self) -> Tape:
        """As the ordinary way would have recorded the step."""
        if self.thawed is None:
            tape = self.steps.opened(self.k)
            tape.close()
            self.thawed = self.stage.thawed(tape, self.slots, self.captured)
        return self.thawed

    @property
    def entered(self) -> list[int | None]:
        """Record ids of the state leaves at the start."""
        return self.stage.places[0]

    @property
    def x_entered(self) -> list[int | None]:
        """The same of the leaves of ``xs``."""
        return self.stage.places[1]

    @property
    def left(self) -> list[tuple[int, Any] | None]:
        """Record id and spec of the leaves after the step."""
        return self.stage.left[: self.n_leaves]

    @property
    def ys(self) -> list[tuple[int, Any] | None]:
        """The same of its outputs."""
        return self.stage.left[self.n_leaves :]

    def release(self) -> None:
        """Nothing in it books anything."""

    def seeds(self, cts: list[Any]) -> list[Any] | None:
        """The cotangents that the reverse function takes, from those of leaves and outputs; None where it was made for
        others."""
        seeds, specs = [], iter(self.stage.specs)
        for ct, wanted in zip(cts, self.stage.seeded, strict=True):
            if not wanted:
                continue
            spec = next(specs)
            if not isinstance(ct, np.ndarray | np.generic) or ct.shape != spec.shape or ct.dtype != spec.dtype:
                return None
            if not ct.flags.c_contiguous:  # other strides may have other sums, and one element in many places
                return None
            seeds.append(ct)
        return seeds

    def reverse(self, seeds: list[Any]) -> tuple[list[Any], dict[int, Any]]:
        """The cotangents of the inputs, and of captured values by id."""
        stage = self.stage
        with np.errstate(all="ignore"):
            entered, gathered = stage.reverse.function(self.slots, seeds, *self.work.of(stage.reverse))
        found = iter(entered)
        cts = [next(found) if wanted else None for wanted in stage.entered]
        found = iter(gathered)
        return cts, {i: next(found) for i, wanted in zip(self.captured, stage.gathered, strict=True) if wanted}


@define(eq=False)
class StagedSteps:
    """The staging of one execution of a loop."""

    steps: Steps
    shelf: Shelf
    works: dict[int, Workspace] = field(factory=dict, init=False)

    def takes(self, k: int) -> bool:
        """Whether step ``k`` is recorded here: not step 0, which tells what is captured, before it is known."""
        return k > 0 and not self.shelf.over

    def recorded(self, k: int, state: list[Any]) -> tuple[Any, list[Any]]:
        """Step ``k``: what was recorded, and the state after it."""
        steps = self.steps
        row = steps.row(k)
        active = [carries_derivative(leaf) for leaf in state]
        x_active = steps.x_active if row else []
        entry = (
            tuple(result_of(leaf, "") if is_active else type(leaf) for leaf, is_active in zip(state, active, strict=True)),
            tuple(result_of(leaf, "") for leaf, is_active in zip(row or (), x_active, strict=True) if is_active),
        )
        stages = self.shelf.known(entry)
        tape = Tape(next_level(), VALUELESS)
        tape.mode, tape.captures, tape.enclosing = DEFERRED, {}, steps.enclosing
        tape.constants = steps.constants  # type: ignore[assignment]  # a mapping is all that is asked of it
        run = ShadowRun(tape, [stage.operations for stage in stages], lambda: steps.opened(k))
        try:
            return self._run(k, state, row, (active, x_active, entry), stages, run)
        finally:
            run.end()

    def _run(self, k: int, state: list[Any], row: Any, told: Any, stages: list[Stage], run: ShadowRun) -> Any:
        steps, (active, x_active, entry) = self.steps, told
        handles = [run.enter(leaf) if is_active else leaf for leaf, is_active in zip(state, active, strict=True)]
        xs = row and [run.enter(leaf) if is_active else leaf for leaf, is_active in zip(row, x_active, strict=True)]
        inputs = [value for _, value in run.inputs]
        try:
            with Enclosed(steps.enclosing, CAPTURED, run.tape):
                parts = steps.call_body(k + steps.lower, handles, xs)
                tape = run.twin_tape if run.surrendered else run.tape
                assert tape is not None  # who has surrendered has one
                new, ys = ([returned_by(leaf, tape) for leaf in part] for part in parts)
                if not run.surrendered:
                    run.finish(new, ys)
            if run.following is not None:
                stage = next(stage for stage in stages if stage.operations is run.following)
                return self._computed(k, state, inputs, stage, run, len(new))
            tape = run.twin_tape
            assert tape is not None  # an eager run has one
            with Releasing(tape):
                return self._ordinary(k, state, (active, x_active, entry), run, inputs, new, ys)
        except BaseException:
            if run.twin_tape is not None:
                with Releasing(run.twin_tape):
                    raise
            raise

    def _computed(self, k: int, state: list[Any], inputs: list[Any], stage: Stage, run: ShadowRun, n: int) -> Any:
        steps, work = self.steps, self.works.setdefault(id(stage), Workspace())
        steps.require_captures([ident for ident, _ in run.captured], k)
        captured = [value for _, value in run.captured]
        returned, slots = stage.record.function(inputs, captured, run.constants, *work.of(stage.record))
        step = StagedStep(stage, slots, [ident for ident, _ in run.captured], steps, work, n, k)
        values, ys = list(returned[:n]), list(returned[n:])
        steps.outputs.write(k, ys)
        if k == 0 or steps.ledger.heard:
            step.items = _items(stage, slots)
        values = as_before(state, values)
        steps.verifier.after(k, values, ys)
        if k == 0:
            steps.verifier.recorded(k, step.tape.records)
        return step, values

    def _ordinary(
        self, k: int, state: list[Any], told: Any, run: ShadowRun, inputs: list[Any], new: list[Any], ys: list[Any]
    ) -> tuple[StepTape, list[Any]]:
        """The step as an ordinary one, from which a stage may be made."""
        active, x_active, entry = told
        tape, ends = run.twin_tape, run.twins
        assert tape is not None  # an eager run has one
        if not run.surrendered:
            new, ys = ([_twin(leaf, ends) for leaf in part] for part in (new, ys))
        places = iter(range(tape.n_inputs))
        entered = [next(places) if is_active else None for is_active in active]
        x_entered = [next(places) if is_active else None for is_active in x_active]
        masks = tape.masks = tape.masks or run.tape.masks
        step, values = self.steps.finished(k, tape, (entered, x_entered), (new, ys), state)
        if run.why:
            self.shelf.failed(run.why)
        elif not self.shelf.over:
            around = self.steps.enclosing
            returned = [leaf._value if isinstance(leaf, Handle) else leaf for leaf in (*new, *ys)]
            masks = masks or (around is not None and around.masks)
            recorded = Recorded(
                tape, run.operations, run.ranges, inputs, run.captured, run.constants,
                [i for i in (*entered, *x_entered) if i is not None], [*step.left, *step.ys], returned, masks,
            )  # fmt: skip
            stage = self.shelf.learn(entry, recorded)
            if stage is not None:
                stage.places, stage.left = (step.entered, step.x_entered), [*step.left, *step.ys]
        return step, values


def _twin(leaf: Any, twins: dict[int, Any]) -> Any:
    return resolve(twins[id(leaf)]) if id(leaf) in twins and isinstance(leaf, Handle) else leaf


def _items(stage: Stage, slots: tuple[Any, ...]) -> list[Item]:
    """What holding the slots costs, as the ledger books the records."""
    by_number, items = dict(zip(stage.slots, slots, strict=True)), {}
    for record in stage.records:
        form = FORMS[record[0]]
        for (_, reason), saved in zip(form.held, form.saved_values(record), strict=True):
            for x in saved if type(saved) is tuple else (saved,):
                value = by_number[x.number] if type(x) is Symbol else x
                if isinstance(value, np.ndarray):
                    buffer = buffer_of(value)
                    items.setdefault(id(buffer), (id(buffer), buffer.nbytes, reason))
    return list(items.values())


def staged_steps(steps: Steps, body: Any, n: int | None, staging: str) -> StagedSteps | None:
    """The staging of a loop over ``body``; None where every step is recorded."""
    around = steps.enclosing
    if staging == "off" or around is None or around.outer is not None or around.trap is not None or TRAPPED.get():
        return None
    shelf = shelf_of(body)
    if shelf.over or planned() is not None:
        return None
    if staging == "auto" and not shelf.stages and n is not None and n < FEWEST:
        return None
    return StagedSteps(steps, shelf)


FEWEST = 24
"""Steps from which a stage of a body that is new pays."""
