"""Steps of plain code that are executed again by generated functions: of a pattern that many steps share, once these
have given the bytes of a step that was executed from its entries.

The primitives are the library's own and depend on nothing but their operands, so what such a step gives need not be
compared with the first run.
"""

from collections import Counter
from collections.abc import Sequence
from math import inf
from typing import Any

import numpy as np
from attrs import define, field

from pullback.memory.ledger import nbytes_of, record_items
from pullback.memory.sweep import Sweep
from pullback.plain.needs import Needs, StepNeeds
from pullback.plain.pattern_statements import PatternStatements, inputs_of, statements_of
from pullback.plain.step_entries import StepEntries, decoded
from pullback.recording.copies import faithful_copy
from pullback.recording.tape import Tape
from pullback.recording.traps import TRAPPED
from pullback.rules.forms import FORMS
from pullback.staging.operations import Constant
from pullback.staging.placing import plan_of
from pullback.staging.reverse_statements import reverse_statements
from pullback.staging.stages import Workspace, numbers_held, require_equal, valued
from pullback.staging.text import Generated, generate
from pullback.words.sniffs import quiet

FEWEST = 24
"""Steps of one kind from which functions for them pay."""
MOST_BYTES = 2 * 2**20
"""Bytes of what enters such a step and of what its records hold: functions are made from copies of all values."""
MOST_LESSONS = 4

Seeded = tuple[tuple[int, ...], tuple[int, ...], bool]
"""Which values of a step have a cotangent when its turn comes, and which of those that entered it; whether it masks."""


@define(eq=False)
class PatternStage:
    """The functions for the steps of one pattern after which the same is needed."""

    inputs: tuple[int, ...]
    """What enters and is read, as it stands in the entries."""
    kinds: tuple[Constant, ...]
    """Of what enters."""
    operands: tuple[Constant, ...]
    """Of the plain operands."""
    returned: tuple[int, ...]
    """The places of what is needed after the step."""
    advance: Generated
    record: Generated
    slots: tuple[int, ...]
    """The numbers of the values that the reverse reads."""
    records: list[Any] = field(repr=False)
    """With symbols in the place of values."""
    n_inputs: int
    reverses: dict[Seeded, "PatternReverse"] = field(factory=dict)
    made: PatternStatements | None = None
    """What a reverse is made of; kept until there is one, since it holds copies of all values of a step."""
    work: Workspace = field(factory=Workspace)

    def fits(self, entering: Sequence[Any], operands: Sequence[Any]) -> bool:
        """Whether the functions are for these values."""
        return all(map(Constant.admits, self.kinds, entering)) and all(map(Constant.admits, self.operands, operands))

    def saved(self, place: int, slots: Sequence[Any]) -> list[Any]:
        """What the record at a place holds."""
        record, by_number = self.records[self.n_inputs + place], dict(zip(self.slots, slots, strict=True))
        form = FORMS[record[0]]
        return [valued(x, by_number) for x in form.saved_values(record)] if form.saved else []


@define(eq=False)
class PatternReverse:
    """The reverse of such a step, for some cotangents."""

    generated: Generated
    specs: tuple[tuple[Any, ...], ...]
    """Type, shape and dtype of these."""
    gives: tuple[int, ...]
    """What gets a cotangent of all that enters, as it stands in the entries."""

    def fits(self, seeds: Sequence[Any]) -> bool:
        """Whether the function is for these cotangents."""
        return all(
            (type(ct), ct.shape, ct.dtype) == spec and ct.flags.c_contiguous
            for ct, spec in zip(seeds, self.specs, strict=True)
        )


@define(eq=False)
class StagedPatterns:
    """The functions of one chain."""

    tape: Tape
    entries: StepEntries
    needs: Needs
    fewest: int
    most_bytes: float
    stages: dict[StepNeeds, PatternStage] = field(factory=dict)
    lessons: Counter[StepNeeds] = field(factory=Counter)
    """How often a step was written down; many times where that failed."""
    unknown: set[StepNeeds] = field(factory=set)
    """Steps that have met cotangents for which there is no reverse."""
    count: Counter[StepNeeds] = field(factory=Counter)
    slots: dict[int, tuple[PatternStage, Sequence[Any]]] = field(factory=dict)
    """Of the steps that are recorded by functions."""
    learning: "Learning | None" = None
    """While a step is swept that no function reverses: what is learned of that."""

    def __attrs_post_init__(self) -> None:
        self.count = Counter(self.needs.steps)

    def of(self, step: int, env: dict[int, Any]) -> tuple[PatternStage, list[Any], Sequence[Any]] | None:
        """The functions for a step that starts with ``env``, with what enters it and its plain operands."""
        stage = self.stages.get(self.needs.steps[step])
        if stage is None or TRAPPED.get():
            return None
        start = self.entries.cuts[step]
        entering = [env.get(decoded(k, start)) for k in stage.inputs]
        operands = self.entries.operands_of(step)
        return (stage, entering, operands) if stage.fits(entering, operands) else None

    def advance(self, step: int, env: dict[int, Any]) -> bool:
        """Whether a step was carried out by functions: ``env`` then has what is needed after it."""
        found = self.of(step, env)
        if found is None:
            return False
        stage, entering, operands = found
        with quiet():
            (returned,) = stage.advance.function(entering, operands, *stage.work.of(stage.advance))
        start = self.entries.cuts[step]
        env.update(zip([start + place for place in stage.returned], returned, strict=True))
        return True

    def record(self, step: int, env: dict[int, Any]) -> bool:
        """Whether a step was recorded by functions. They compute no new state."""
        needs = self.needs.steps[step]
        if needs in self.unknown and self.lessons[needs] < MOST_LESSONS:
            return False
        found = self.of(step, env)
        if found is None:
            return False
        stage, entering, operands = found
        with quiet():
            (slots,) = stage.record.function(entering, operands, *stage.work.of(stage.record))
        self.slots[step] = stage, slots
        return True

    def items(self, step: int) -> list[Any]:
        """What a recorded step holds, as the ledger books its records."""
        stage, slots = self.slots[step]
        held = []
        for place in range(len(stage.records) - stage.n_inputs):
            record = stage.records[stage.n_inputs + place]
            form = FORMS[record[0]]
            first = 1 + len(form.active)
            saved = stage.saved(place, slots)
            held.append((*record[:first], *saved, *record[first + len(saved) :]))
        return record_items(held)

    def thaw(self, step: int) -> None:
        """The records of a step stand on the tape again."""
        stage, slots = self.slots.pop(step)
        start = self.entries.cuts[step]
        for place, entry in enumerate(self.entries.patterns[step].entries):
            assert entry is not None  # or there were no functions
            record, saved = self.entries.recorded(entry, start), stage.saved(place, slots)
            first = 1 + len(entry.form.active)
            self.tape.records[start + place] = (*record[:first], *saved, *record[first + len(saved) :])

    # Learning.
    def wants(self, step: int) -> bool:
        """Whether a step that is about to be executed from its entries should be written down."""
        needs = self.needs.steps[step]
        if self.count[needs] < self.fewest or self.lessons[needs] >= MOST_LESSONS or TRAPPED.get():
            return False
        return needs not in self.stages or needs in self.unknown

    def entering(self, step: int, env: dict[int, Any]) -> dict[int, Any]:
        """Copies of what enters a step, as it stands in the entries."""
        start = self.entries.cuts[step]
        found = {k: env[decoded(k, start)] for k in inputs_of(self.entries.patterns[step]) if decoded(k, start) in env}
        return {k: faithful_copy(x) if type(x) is np.ndarray else x for k, x in found.items()}

    def learn(self, step: int, entering: dict[int, Any], env: dict[int, Any]) -> None:
        """Write down a step that was entered so and executed from its entries; ``env`` is what there is after it."""
        needs, start, stop = self.needs.steps[step], self.entries.cuts[step], self.entries.cuts[step + 1]
        self.lessons[needs] += 1
        records = self.tape.records[start:stop]
        held = sum(n for _, n, _ in record_items(records)) + sum(map(nbytes_of, entering.values()))
        if held > self.most_bytes:
            self.lessons[needs] = MOST_LESSONS
            return
        pattern, operands = self.entries.patterns[step], self.entries.operands_of(step)
        try:
            made = statements_of(pattern, needs, entering, operands, records)
            returned = tuple(k for k in sorted(needs.values) if needs.last_use.get(k, -1) > stop - start)
            stage, known = _stage_of(made, returned, entering, operands), self.stages.get(needs)
            if known is not None and (known.slots, known.record.text) == (stage.slots, stage.record.text):
                stage = known
            slots = _checked(stage, made, [env[start + place] for place in returned])
        except Exception:  # noqa: BLE001 - whatever a rule does with what is no array: the steps are not staged
            self.lessons[needs] = MOST_LESSONS
            return
        stage.made = made
        self.stages[needs] = stage
        self.slots[step] = stage, slots
        self.tape.records[start:stop] = [None] * (stop - start)

    # The reverse.
    def reverse(self, step: int, sweep: Sweep) -> bool:
        """Whether a step was reversed by a function; else its records stand on the tape, and ``learning`` may want to
        hear when they have been swept."""
        self.learning = None
        found = self.slots.get(step)
        if found is None:
            return False
        stage, slots = found
        if sweep.outer is None and sweep.told is None and not TRAPPED.get():
            given = seeded(self.entries, step, sweep, inputs_of(self.entries.patterns[step]), self.tape)
            if given is not None:
                key, seeds = given
                reverse = stage.reverses.get(key)
                if reverse is not None and reverse.fits(seeds):
                    del self.slots[step]
                    self._reversed(step, stage, reverse, slots, seeds, sweep)
                    return True
                if reverse is None and stage.made is not None:
                    copies = [faithful_copy(ct) if type(ct) is np.ndarray else ct for ct in seeds]
                    self.learning = Learning(self, step, stage, slots, key, copies)
                elif reverse is None:
                    self.unknown.add(self.needs.steps[step])
        self.thaw(step)
        return False

    def _reversed(
        self, step: int, stage: PatternStage, reverse: PatternReverse, slots: Any, seeds: list[Any], sweep: Sweep
    ) -> None:
        start, stop = self.entries.cuts[step], self.entries.cuts[step + 1]
        sweep.cts[start:stop] = [None] * (stop - start)
        with quiet():
            (cts,) = reverse.generated.function(slots, seeds, *stage.work.of(reverse.generated))
        for coded, ct in zip(reverse.gives, cts, strict=True):
            ident = decoded(coded, start)
            if sweep.cts[ident] is not ct:
                sweep.cts[ident] = ct
                sweep.owned.discard(ident)


def staged_patterns(tape: Tape, entries: StepEntries, needs: Needs, staging: str) -> StagedPatterns | None:
    """The functions of a chain; None where all steps are executed from their entries."""
    if staging == "off":
        return None
    fewest, most = (FEWEST, MOST_BYTES) if staging == "auto" else (2, inf)
    return StagedPatterns(tape, entries, needs, fewest, most)


@define(eq=False)
class Learning:
    """A step that is swept, of whose reverse a function is to be made."""

    patterns: StagedPatterns
    step: int
    stage: PatternStage
    slots: Sequence[Any]
    key: Seeded
    seeds: list[Any]

    def swept(self, sweep: Sweep) -> None:
        """The step was swept: the function is kept if it gives the same."""
        stage, patterns = self.stage, self.patterns
        needs, start = patterns.needs.steps[self.step], patterns.entries.cuts[self.step]
        made, stage.made = stage.made, None
        assert made is not None  # or nothing were learned
        try:
            reverse = self._made(made)
            with quiet():
                (cts,) = reverse.generated.function(self.slots, self.seeds, *stage.work.of(reverse.generated))
            swept = [(k, sweep.cts[decoded(k, start)]) for k in made.inputs]
            require_equal(cts, [ct for _, ct in swept if ct is not None], "the cotangents")
            require_equal(reverse.gives, [k for k, ct in swept if ct is not None], "what gets a cotangent")
        except Exception:  # noqa: BLE001 - as in learning the forward
            patterns.lessons[needs] = MOST_LESSONS
            return
        stage.reverses[self.key] = reverse
        patterns.unknown.discard(needs)

    def _made(self, made: PatternStatements) -> PatternReverse:
        program, (places, before, masks) = made.program, self.key
        n_inputs, n_forward = len(made.inputs), len(program.statements)
        idents = [n_inputs + place for place in places] + [made.local(k) for k in before]
        seeds = {ident: program.value(ct) for ident, ct in zip(idents, self.seeds, strict=True)}
        swept = reverse_statements(made.forward, made.records, n_inputs, seeds, masks=masks)
        found = [(k, ct) for k, ct in zip(made.inputs, swept.cts[:n_inputs], strict=True) if ct is not None]
        leaving = [ct.number for _, ct in found]
        reverses = self.stage.reverses
        generated = generate(
            program,
            f"reverse_{len(reverses) + 1}" if reverses else "reverse",
            plan_of(program, program.statements[n_forward:], leaving),
            [("slots", list(self.stage.slots)), ("seeds", [seed.number for seed in seeds.values()])],
            [leaving],
        )
        specs = tuple((type(ct), ct.shape, ct.dtype) for ct in self.seeds)
        return PatternReverse(generated, specs, tuple(k for k, _ in found))


def seeded(
    entries: StepEntries, step: int, sweep: Sweep, inputs: tuple[int, ...], tape: Tape
) -> tuple[Seeded, list[Any]] | None:
    """Which cotangents there are when the turn of a step comes, and these; None where one is no plain array."""
    start, stop, cts = entries.cuts[step], entries.cuts[step + 1], sweep.cts
    places = tuple(k for k, ct in enumerate(cts[start:stop]) if ct is not None)
    before = tuple(k for k in inputs if cts[decoded(k, start)] is not None)
    found = [cts[start + k] for k in places] + [cts[decoded(k, start)] for k in before]
    if not all(isinstance(ct, np.ndarray | np.generic) for ct in found):
        return None
    return (places, before, sweep.masks or tape.masks), found


def _stage_of(
    made: PatternStatements, returned: tuple[int, ...], entering: dict[int, Any], operands: Sequence[Any]
) -> PatternStage:
    program, forward = made.program, made.forward
    slots = tuple(dict.fromkeys(n for record in made.records[len(made.inputs) :] for n in numbers_held(record)))
    leaving = tuple(made.known[place].number for place in returned)
    arguments = [
        ("inputs", [x.number for x in forward.inputs]),
        ("constants", [x.number for x in forward.constants]),
    ]
    inputs = tuple(k for k in made.inputs if k in entering)
    return PatternStage(
        inputs=inputs,
        kinds=tuple(Constant.of(entering[k]) for k in inputs),
        operands=tuple(map(Constant.of, operands)),
        returned=returned,
        advance=generate(program, "advance", plan_of(program, program.statements, leaving), arguments, [leaving]),
        record=generate(program, "record", plan_of(program, program.statements, slots), arguments, [slots]),
        slots=slots,
        records=made.records,
        n_inputs=len(made.inputs),
    )


def _checked(stage: PatternStage, made: PatternStatements, wanted: list[Any]) -> Sequence[Any]:
    """The slots of a step; raises :class:`NotStageableError` where the functions do not give the bytes of the step that
    was executed."""
    program, forward = made.program, made.forward
    given = [[program.samples[x.number] for x in part] for part in (forward.inputs, forward.constants)]
    with quiet():
        (returned,) = stage.advance.function(*given, *stage.work.of(stage.advance))
        require_equal(returned, wanted, "what is needed after the step")
        (slots,) = stage.record.function(*given, *stage.work.of(stage.record))
    found: Sequence[Any] = slots
    return found
