"""Steps of plain code that are executed again by generated functions: of a pattern that many steps share, once these
have given the bytes of a step that was executed from its recipes.

The primitives are the library's own and depend on nothing but their operands, so what such a step gives need not be
compared with the first run.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from math import inf
from typing import Any

import numpy as np
from attrs import define, field

from pullback.backends.plans import Backend
from pullback.memory.in_force import STAGINGS
from pullback.memory.ledger import Item, Ledger, nbytes_of, record_items
from pullback.memory.reverse_sweep import Sweep
from pullback.programs.replay.needed_values import Needs, StepNeeds
from pullback.programs.replay.step_recipes import StepRecipes
from pullback.recording.copies import faithful
from pullback.recording.tape import Tape
from pullback.recording.traps import TRAPPED
from pullback.staging.generated.stages import slot_items
from pullback.staging.generated.workspaces import Workspace, work_of
from pullback.staging.replay.alike_steps import Alike
from pullback.staging.replay.learned_reverses import Learning
from pullback.staging.replay.pattern_routes import Route, idents_of
from pullback.staging.replay.pattern_shelf import NOTHING, KnownPattern, known_of
from pullback.staging.replay.pattern_stages import (
    PatternReverse,
    PatternStage,
    Seeded,
    checked_slots,
    given_to,
    stage_of_pattern,
)
from pullback.staging.replay.pattern_statements import PatternStatements, inputs_of, statements_of
from pullback.staging.statements.symbols import Program
from pullback.words.plugins import backend
from pullback.words.undocumented import quiet

MOST_BYTES = 64 * 2**20
"""Bytes of what enters such a step and of what its records hold: functions are made from copies of these."""
LARGE = 2 * 2**20
"""Bytes from which on functions are made when as much has been let go of as that takes."""
TIMES = 2
"""How much of these it takes: copies of what enters, what the functions give, and what they work in."""
MOST_WAITS = 24
"""Steps that are executed from their recipes until then."""
FEWEST_ALIKE = 4
"""Steps of one kind in a row that are carried out as such."""
_PLAIN = (np.ndarray, np.generic, float, int, complex)


@define(eq=False)
class StagedPatterns:
    """The functions of one chain."""

    tape: Tape
    recipes: StepRecipes
    needs: Needs
    fewest: int
    most_bytes: float
    staging: str
    backend: Backend | None
    works: dict[Any, Workspace]
    threads: int = 1
    hands_over: bool = False
    """Whether values may go to a store that knows them by their arrays: then no array serves for another one."""
    count: Counter[StepNeeds] = field(init=False)
    known: dict[StepNeeds, KnownPattern] = field(factory=dict)
    slots: dict[int, tuple[PatternStage, Sequence[Any]]] = field(factory=dict)
    """The stage and the slots of each step that is recorded by functions."""
    lesson: tuple[int, PatternStage, Sequence[Any]] | None = None
    """The step that was written down last: its records stand on the tape, too."""
    took: tuple[PatternStage | None, Any] = None, None
    """The stage that was found last, and the plain operands that it was found for."""
    starts: list[int] = field(factory=list)
    """The first step of each row of steps of one kind."""
    alikes: dict[tuple[int, PatternStage], Alike] = field(factory=dict)
    """Rows of steps of one kind, by the first step and the stage."""
    learning: Learning | None = None
    """While a step is swept that no function reverses: what is learned of that."""

    def __attrs_post_init__(self) -> None:
        self.count = Counter(self.needs.steps)

    def known_of(self, step: int) -> KnownPattern:
        """What is known of the kind of a step."""
        needs = self.needs.steps[step]
        known = self.known.get(needs)
        if known is None:
            if self.fewest == 1:
                known = self._called(needs)
            else:
                known = known_of(needs, self.staging) if self.count[needs] >= self.fewest else NOTHING
            self.known[needs] = known
        return known

    def _called(self, needs: StepNeeds) -> KnownPattern:
        """What is known of a call that does what another did."""
        kept, key = needs.pattern.kept, (self.staging, needs.after)
        known: KnownPattern = NOTHING
        if needs.pattern.n < 2:
            return known
        known = kept.get(key) or kept.setdefault(key, known_of(needs, self.staging))
        if known.large and self.most_bytes < inf:
            known = NOTHING
        return known

    def alike(self, step: int, values: dict[int, Any]) -> tuple[Alike, tuple[Any, ...]] | None:
        """The steps of one kind in a row, among which is a step that starts with these values by id, and these as the
        functions take them; None where no functions are for them."""
        first, stop = self.row_of(step)
        if stop - step < FEWEST_ALIKE:
            return None
        for stage in self.known_of(step).stages:
            alike = self.alikes.get((first, stage))
            if alike is None and stage.route is not None:
                work, known = self.work(stage), self.known_of(step)
                alike = Alike(self.recipes, self.needs, first, stop, known, stage, stage.route, work)
                self.alikes[first, stage] = alike
            state = None if alike is None or alike.closes is False else alike.state_of(values, step)
            if alike is not None and state is not None:
                return alike, state
        return None

    def row_of(self, step: int) -> tuple[int, int]:
        """The steps of one kind in a row among which a step is: the first, and the one after the last."""
        needs, cuts = self.needs.steps, self.recipes.cuts
        if not self.starts:
            self.starts = [
                k
                for k, one in enumerate(needs)
                if not k or one is not needs[k - 1] or cuts[k + 1] - cuts[k] != cuts[k] - cuts[k - 1]
            ]
        place = bisect_right(self.starts, step)
        return self.starts[place - 1], self.starts[place] if place < len(self.starts) else len(needs)

    def ident(self, coded: int, step: int) -> int:
        """The id of what stands so in the recipes of a step."""
        return self.recipes.ident(coded, self.recipes.cuts[step])

    def work(self, stage: PatternStage) -> Workspace:
        """The arrays that a stage works in."""
        return work_of(self.works, stage, self.threads, hands_over=self.hands_over)

    def rest(self) -> None:
        """A reverse pass is over, and another may come: until then nothing is held for it."""
        self.works.clear()
        self.alikes.clear()
        self.lesson = self.learning = None

    # Forward.
    def advance(self, step: int, stop: int, env: dict[int, Any]) -> int:
        """The step that is reached, ``stop`` at most, by steps that functions have carried out: ``env`` then has what
        is needed after them."""
        found = self._fitting(step, env)
        if found is None:
            return step
        stage, entering, operands = found
        recorded, slots = self.slots.get(step, (None, ()))
        both = stage.both if recorded is stage else ()
        with quiet():
            if stage.route is not None and not both:
                return self._run(step, stop, stage, stage.route, env)
            (returned,) = stage.advance.function(entering, operands, *self.work(stage).of(stage.advance))
        if both:  # its tape holds some of them: as where the step is executed from its recipes, they are there once
            at = dict(both)
            returned = [slots[at[k]] if k in at else value for k, value in enumerate(returned)]
        start = self.recipes.cuts[step]
        env.update(zip([start + place for place in stage.returned], returned, strict=True))
        return step + 1

    def _run(self, first: int, stop: int, stage: PatternStage, route: Route, env: dict[int, Any]) -> int:
        """Carry out a step that fits, and those after it that are of the same kind. What one of them gives is of the
        kind that the next takes if it was so once."""
        needs, cuts, recipes = self.needs.steps, self.recipes.cuts, self.recipes
        function, work = stage.advance.function, self.work(stage).of(stage.advance)
        state, operands = route.entering(env, recipes, cuts[first]), recipes.operands_of(first)
        for step in range(first, stop):
            (returned,) = function(route.read(state), operands, *work)
            after = step + 1
            if after == stop or needs[after] is not needs[first] or cuts[after] - cuts[step] != route.length:
                break
            following = route.pick((*returned, *state))
            if step == first and not stage.takes(route.read(following)):
                break
            if recipes.others[after] is not None or recipes.others[step] is not None:
                operands = recipes.operands_of(after)
                if not stage.takes_constants(operands):
                    break
            if step == first:
                route.taken(env, cuts[first])
            state = following
        route.left(env, recipes, cuts[step], returned, state)
        return after

    def repeats_surely(self, step: int) -> bool:
        """Whether a step consists of the library's own primitives alone, of which functions have been made: executed
        again it gives the same."""
        return bool(self.known_of(step).stages)

    def record(self, step: int, env: dict[int, Any]) -> bool:
        """Whether a step was recorded by functions. They compute no new state."""
        known = self.known_of(step)
        if known.wanting and not known.over:
            return False
        found = self._fitting(step, env)
        if found is None:
            return False
        stage, entering, operands = found
        with quiet():
            (slots,) = stage.record.function(entering, operands, *self.work(stage).of(stage.record))
        self.slots[step] = stage, slots
        return True

    def _fitting(self, step: int, env: dict[int, Any]) -> tuple[PatternStage, list[Any], Sequence[Any]] | None:
        """The functions for a step that starts with ``env``, with what enters it and its plain operands."""
        stages = self.known_of(step).stages
        if not stages or TRAPPED.get():
            return None
        operands = self.recipes.operands_of(step)
        for stage in stages:
            entering = list(map(env.get, idents_of(self.recipes, stage.inputs, step)))
            known = self.took[0] is stage and self.took[1] is operands
            if stage.takes(entering) and (known or stage.takes_constants(operands)):
                self.took = stage, operands
                return stage, entering, operands
        return None

    def items(self, step: int) -> list[Item]:
        """What a recorded step holds, as the ledger books its records."""
        stage, slots = self.slots[step]
        return slot_items(stage.booked, slots)

    def thaw(self, step: int) -> None:
        """The records of a step stand on the tape again."""
        stage, slots = self.slots.pop(step)
        start = self.recipes.cuts[step]
        for place, recipe in enumerate(self.recipes.patterns[step].recipes):
            assert recipe is not None  # or there were no functions
            record, saved = self.recipes.recorded(recipe, start), stage.saved(place, slots)
            first = 1 + len(recipe.form.active)
            self.tape.records[start + place] = (*record[:first], *saved, *record[first + len(saved) :])

    # Learning.
    def entering(self, step: int, env: dict[int, Any]) -> dict[int, Any] | None:
        """Copies of what enters a step that is about to be executed from its recipes, as it stands in these; None where
        it is not to be written down."""
        known = self.known_of(step)
        if known.over or TRAPPED.get() or (known.takes_bytes and not self._has_room(known)):
            return None
        pattern = self.recipes.patterns[step]
        found = {k: env[self.ident(k, step)] for k in inputs_of(pattern) if self.ident(k, step) in env}
        if not all(isinstance(x, _PLAIN) for x in found.values()):
            return None
        return {k: faithful(x) for k, x in found.items()}

    def learn(self, step: int, entering: dict[int, Any], env: dict[int, Any]) -> None:
        """Write down a step that was entered so and executed from its recipes; ``env`` is what there is after it."""
        needs, known = self.needs.steps[step], self.known_of(step)
        start, stop = self.recipes.cuts[step], self.recipes.cuts[step + 1]
        records = self.tape.records[start:stop]
        held = sum(n for _, n, _ in record_items(records)) + sum(map(nbytes_of, entering.values()))
        if held > self.most_bytes:
            self.known[needs], known.large = NOTHING, True
            return
        if held > LARGE and not known.takes_bytes:
            known.takes_bytes = TIMES * held
            if not self._has_room(known):
                return
        known.lessons += 1
        program = Program(felt=known.felt)
        try:
            stage, slots, made = self._made(step, entering, env, records, program)
        except Exception as error:  # noqa: BLE001 - whatever a rule does with what is no array: no stage is made of it
            known.failed(error, program)
            return
        for other in known.stages:
            if (other.kinds, other.operands, other.record.text) == (stage.kinds, stage.operands, stage.record.text):
                stage = other
                break
        else:
            known.add(stage)
        stage.made = made
        self.lesson = step, stage, slots

    def _has_room(self, known: KnownPattern) -> bool:
        """Whether so much has been let go of, in this run, as making functions of large steps takes; or it is not worth
        waiting for that any more."""
        ledger: Ledger = self.tape.ledger
        known.waited += 1
        return known.waited > MOST_WAITS or ledger.peak_bytes - ledger.total >= known.takes_bytes

    def _made(
        self, step: int, entering: dict[int, Any], env: dict[int, Any], records: list[Any], program: Program
    ) -> tuple[PatternStage, Sequence[Any], PatternStatements]:
        """The stage of a step, its slots, and what a reverse is made of."""
        needs, start, operands = self.needs.steps[step], self.recipes.cuts[step], self.recipes.operands_of(step)
        made = statements_of(self.recipes.patterns[step], needs, entering, operands, records, program)
        stage, drafts = stage_of_pattern(made, needs, len(records), entering, operands)
        slots = checked_slots(stage, made, [env[start + place] for place in stage.returned], self.work(stage))
        if self.backend is not None:
            stage.take_kernels(drafts, self.backend, given_to(made))
        return stage, slots, made

    # The reverse.
    def reverse(self, step: int, sweep: Sweep) -> bool:
        """Whether a step was reversed by a function; else ``learning`` may want to hear when its records have been
        swept."""
        self.learning = None
        found, lesson = self.slots.get(step), self.lesson
        if found is None:
            if lesson is None or lesson[0] != step:
                return False
            self.lesson, found = None, lesson[1:]
        stage, slots = found
        if sweep.outer is None and sweep.told is None and not TRAPPED.get():
            given = self.seeds_of(step, sweep, stage)
            if given is not None:
                key, seeds = given
                reverse = stage.reverses.get(key)
                if reverse is not None and reverse.fits(seeds):
                    self.slots.pop(step, None)
                    self._reversed(step, stage, reverse, slots, seeds, sweep)
                    return True
                if reverse is None and stage.made is not None:
                    copies = list(map(faithful, seeds))
                    self.learning = Learning(self, step, stage, slots, key, copies)
                elif reverse is None:
                    self.known_of(step).wanting = True
        return False

    def seeds_of(self, step: int, sweep: Sweep, stage: PatternStage) -> tuple[Seeded, list[Any]] | None:
        """Which cotangents there are when the turn of a step comes, and these; None where one is no plain array."""
        start, stop, cts = self.recipes.cuts[step], self.recipes.cuts[step + 1], sweep.cts
        mine, around = cts[start:stop], [cts[ident] for ident in idents_of(self.recipes, stage.entering, step)]
        places = tuple([k for k, ct in enumerate(mine) if ct is not None])
        before = tuple([k for k, ct in zip(stage.entering, around, strict=True) if ct is not None])
        found = [ct for ct in (*mine, *around) if ct is not None]
        if not all(isinstance(ct, np.ndarray | np.generic) for ct in found):
            return None
        return (places, before, sweep.masks or self.tape.masks), found

    def _reversed(
        self, step: int, stage: PatternStage, reverse: PatternReverse, slots: Any, seeds: list[Any], sweep: Sweep
    ) -> None:
        start, stop = self.recipes.cuts[step], self.recipes.cuts[step + 1]
        sweep.cts[start:stop] = [None] * (stop - start)
        if sweep.frees:
            self.tape.records[start:stop] = [None] * (stop - start)
        with quiet():
            (cts,) = reverse.generated.function(slots, seeds, *self.work(stage).of(reverse.generated))
        for ident, ct in zip(idents_of(self.recipes, reverse.gives, step), cts, strict=True):
            if sweep.cts[ident] is not ct:
                sweep.cts[ident] = ct
                sweep.owned.discard(ident)


def staged_patterns(
    tape: Tape,
    recipes: StepRecipes,
    needs: Needs,
    staging: str,
    fewest: int,
    works: dict[Any, Workspace],
    threads: int,
) -> StagedPatterns:
    """The functions of a chain, for steps of which there are ``fewest`` and more: of one, where the chain is a call,
    and the other steps are those of other calls."""
    by = "" if staging in STAGINGS else staging
    most_bytes = MOST_BYTES if staging == "auto" else inf
    return StagedPatterns(tape, recipes, needs, fewest, most_bytes, by, backend(by) if by else None, works, threads)
