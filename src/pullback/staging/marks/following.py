"""Follows the marked steps of one loop over :func:`pullback.steps`: a shadow run carries out the first ones, and later
ones are only compared with what is known.

A step is known when it has come twice with the same values living on. Then it has functions (``marked_functions``), in
this run and in later ones. A step that does something else is recorded; the next may be followed again.
"""

from collections.abc import Sequence
from threading import get_ident
from typing import Any, Final, cast

from attrs import define, field

from pullback.memory.in_force import Tracing, planned
from pullback.memory.ledger import nbytes_of, record_items
from pullback.recording.tape import CLOSED, Tape, marks_of
from pullback.recording.traps import TRAPPED
from pullback.rules.forms import FORMS
from pullback.scheduling.machine.actions import Record
from pullback.staging.calls.call_excerpt import excerpt_of
from pullback.staging.generated.forward_statements import NotStageableError
from pullback.staging.generated.generated import computed, errors_are_ordinary
from pullback.staging.generated.workspaces import Workspace
from pullback.staging.marks.known_marks import KnownMarks
from pullback.staging.marks.marked_functions import MarkedStage, marked_stage_of
from pullback.staging.marks.marked_run import LentHandle, MarkedRun, MarkedTwins, are_watched, lend
from pullback.staging.marks.told_chains import Side
from pullback.staging.shadow.operations import Operation, same
from pullback.staging.shadow.valueless import VALUELESS
from pullback.words.undocumented import error_state

MOST_MISSES: Final = 8
"""Misses, steps that did something else, after which the steps of a loop are recorded."""
FIRST: Final = 2
"""The steps before this are recorded, whatever comes: what enters them is often of another kind."""
FEW_MISSES: Final = 3
"""Misses after which the steps of a loop are recorded where none of them was followed; and the number of such loops in
a row after which the steps of every further one are recorded."""
MOST_STAGES: Final = 8
MOST_BYTES: Final = 64 * 2**20


@define(eq=False)
class FollowedMarks:
    """The steps of one loop under way in the trace ``tape``; ``chain`` governs them where a policy does."""

    tape: Tape
    known: KnownMarks
    chain: Any = None
    fewest: int = 0
    """Steps of fewer records are recorded."""
    mode: int = field(init=False)
    run: MarkedRun = field(init=False)
    block: Tracing = field(init=False)
    entered: bool = field(default=False, init=False)
    """Whether the run is the innermost trace."""
    under_way: bool = field(default=False, init=False)
    over: bool = field(default=False, init=False)
    start: int = field(default=0, init=False)
    """The first record of the step under way."""
    lent: list[LentHandle] = field(factory=list, init=False)
    stage: MarkedStage | None = field(default=None, init=False)
    """What the step under way is compared with."""
    sides: dict[MarkedStage, Side | None] = field(factory=dict, init=False)
    """What the chain is told of stages that a step of it has done."""
    lesson: tuple[MarkedStage, Any] | None = field(default=None, init=False)
    """The stage of the last step, and what it has done."""
    works: dict[MarkedStage, Workspace] = field(factory=dict, init=False)
    misses: int = field(default=0, init=False)
    n_followed: int = field(default=0, init=False)
    goes_on: bool = field(default=False, init=False)
    """Whether what lives on after the ``stage`` is what enters it."""

    def __attrs_post_init__(self) -> None:
        self.mode = self.tape.mode
        self._new_run()

    def _new_run(self) -> None:
        shadow = Tape(1, VALUELESS)
        shadow.captures = {}
        self.run = MarkedRun(shadow, MarkedTwins(_no_tape, 0), self._kept)
        self.block = Tracing(shadow)
        self.lent = []

    def _kept(self, array: Any, site: int) -> Any:
        if self.chain is None:
            return self.tape.keep(array)
        governor: Any = self.tape.governor
        return governor.constant(array, site)

    # Between the marks.
    def begins(self, number: int) -> None:
        """A step begins."""
        if number < FIRST:
            self.start = len(self.tape.records)
        if self.over or number < FIRST or (number == FIRST and self._is_unfit()):
            return
        if not self._may_follow():
            if self.lent or self.entered:
                self._rest()
            return
        stage = self._expected()
        self.start = len(self.tape.records)
        if stage is not None and stage is self.stage and self.run.following is stage.known and self.entered:
            run = self.run
            run.lent, run.errors = self.lent, error_state()
            run.starts_again()
        else:
            self._leave_run()
            self.stage, self.run.sites = stage, () if stage is None else stage.sites
            self.run.starts(self.tape, () if stage is None else (stage.known,), self.lent)
            if stage is None:
                self.run.begins_eager()
            self.block.__enter__()
            self.entered = True
        self.under_way = True

    def _is_unfit(self) -> bool:
        """Whether the step before has recorded so few operations that a mark costs more than they do, or a loop: as one
        record, which its operations would not be."""
        records = self.tape.records[self.start :]
        loops = any(record is not None and FORMS[record[0]].wide for record in records)
        if self.chain is not None:  # which may have let go of the records
            last = [recipe for pattern in self.chain.recipes.patterns[-1:] for recipe in pattern.recipes]
            loops |= any(recipe is not None and recipe.rerun is not None for recipe in last)
        self.over = loops or len(records) < self.fewest
        return self.over

    def _may_follow(self) -> bool:
        """Whether nothing asks for the steps to be recorded one operation after the other."""
        tape = self.tape
        if tape.mode != self.mode or TRAPPED.get() or tape.trap is not None or tape.outer is not None:
            return False
        if tape.collective or tape.thread != get_ident() or planned() is not None:
            return False
        if tape.ledger.heard or not errors_are_ordinary():
            return False
        chain, governor = self.chain, cast("Any", tape.governor)
        if chain is None:
            return type(tape.records) is list and not tape.ledger.books  # else somebody looks at each that is appended
        return (
            governor.active is chain
            and governor.lifetimes is None
            and _affords(chain, governor)
            and chain.schedule is not None
            and chain.gauge is None
            and not chain.agreed
            and not chain.ended
        )

    def _expected(self) -> MarkedStage | None:
        """The stage of the step that is expected next; None where it is to be carried out immediately."""
        stage = self.stage
        if stage is not None and self.goes_on:
            return stage if self.chain is None or self._is_told(stage) else None
        kinds = tuple(each.kind for each in self.lent)
        lesson, self.lesson = self.lesson, None
        if lesson is not None:
            stage = lesson[0]
            if self.chain is not None:
                self.sides[stage] = Side.of(self.chain.recipes, *lesson)
        elif stage is None:
            return None
        if not any(known is stage and theirs == kinds for theirs, known in self.known.stages):
            return None
        self.goes_on = (*stage.kinds, *(kinds[k] for k in stage.stays)) == kinds
        return stage if self.chain is None or self._is_told(stage) else None

    def _is_told(self, stage: MarkedStage) -> bool:
        """Whether the chain expects the same."""
        side = self.sides.get(stage)
        return side is not None and side.is_expected(self.chain.recipes)

    def ends(self) -> None:
        """A mark: the step under way is over, and its records stand on the tape."""
        if not self.under_way:
            return
        self.under_way = False
        run = self.run
        try:
            if run.surrendered:
                self._missed(run.why)
                self._rest()
            elif self._is_followed():
                self._compute()
            else:
                self._record()
        except BaseException:
            self._rest()
            raise

    def finish(self) -> None:
        """The loop is over: every handle is one of the trace."""
        if self.tape.mode != CLOSED:  # else nobody can use a handle any more
            try:
                self.ends()
            finally:
                self._rest()
        if not self.over or self.misses:
            self.known.n_failed = 0 if self.n_followed else self.known.n_failed + 1
        self.over, self.under_way = True, False
        self.run.keeps = _no_tape  # type: ignore[assignment]  # or the two would keep each other alive

    # What has become of a step.
    def _is_followed(self) -> bool:
        run, known = self.run, self.run.following
        run.stands, run.frozen = {}, []  # which have what stands for values from around
        return (
            known is not None
            and run.at == len(known.operations) - 1
            and not run.alone
            and run.holds
            and run.marked[known].is_left_alone(run.written)
            and (self.chain is None or self._says())
        )

    def _says(self) -> bool:
        side: Any = self.sides[self.stage]  # type: ignore[index]  # one is followed
        return bool(side.says(self.chain.recipes, [x.ident for x in self.lent], self.run.captured))

    def _compute(self) -> None:
        """The step has done what is known."""
        run, stage, tape, chain = self.run, self.stage, self.tape, self.chain
        self.n_followed += 1
        assert stage is not None
        tape.mode = self.mode
        ids = [each.ident for each in self.lent]
        work = self.works.get(stage)
        if work is None:  # a value of a trace stands in its array for good: stores know it by that, as it is dropped
            work = self.works[stage] = Workspace(threads=None if chain is None else chain.threads, hands_over=True)
        given = run.inputs, run.values, run.constants
        if chain is None or type(chain.pending) is Record:
            returned, slots = computed(stage.record, *given, *work.of(stage.record))
            records: Sequence[Any] = stage.records(self.start, ids, run.captured, slots)
        else:
            (returned,) = computed(stage.advance, *given, *work.of(stage.advance))
            records = (None,) * stage.n_records
        if chain is not None:
            side = self.sides[stage]
            assert side is not None
            side.tell(chain, ids, run, stage.n_records)
        tape.records.extend(records)
        self._mark(stage)
        if chain is None and stage.plain:
            way = stage, [ident - self.start for ident in ids], run.captured
            tape.marked[-1].wrote(self.start, len(tape.records), way)
        tape.masks = tape.masks or stage.masks
        handles = run.marked[stage.known].handed_over(run.tape, run.written)
        stay = set(stage.stays)
        for k, each in enumerate(self.lent):
            if k not in stay:
                each.leave(tape)
        made = [
            LentHandle(handle, value, self.start + place, flag, kind)
            for handle, value, place, flag, kind in zip(
                handles, returned, stage.places, stage.flags, stage.kinds, strict=True
            )
        ]
        self.lent = [*made, *[self.lent[k] for k in stage.stays]]

    def _mark(self, stage: MarkedStage) -> None:
        """The trace knows what the step has marked; what was lent stands for the marked value from then on."""
        for op, place, k in stage.marked:
            assert op.results[0].spec is not None  # of a value
            ident = self.start + place
            marks_of(self.tape).note(self.run.constants[k][0], op.results[0].spec, ident)
            for each in self.lent:
                if each.handle._id == op.makes[0]:
                    each.ident = ident

    def _record(self) -> None:
        """The step has done what is not known: it has been recorded."""
        run, tape = self.run, self.tape
        missed = run.following is not None or self.stage is not None
        run.carry_out()
        made, stay = run.survivors()
        read = {o for op in run.operations for o in op.operands if type(o) is int}
        run.finish(made, [])
        found = [run.twin(handle) for handle in made]
        tape.mode = self.mode
        own = tape.masks or run.tape.masks
        stays = tuple(k for k in stay if k in read)
        ids = [each.ident for each in self.lent]
        why = run.why or _cannot_live_on(found, tape)
        if not why and are_watched(made):
            why = "a weak reference is made to what lives on after the step"
        if not why and _is_large(self.lent, tape.records[self.start :]):
            why = "it holds more than 64 MiB, and making functions takes several copies of that"
        if not why:
            try:
                step = excerpt_of(tape, run, ids, self.start, found, masks=own)
                self._learn(step, found, stays)
            except NotStageableError as error:
                why = str(error)
            except Exception as error:  # noqa: BLE001 - whatever a rule does with what is no array: it is recorded
                why = f"{type(error).__name__}: {error}"
        lent = [self.lent[k].handle for k in stays]
        run.hand_back()
        if why or missed:
            self._missed(why)
        self._leave_run()
        self.lent = [] if why else [*map(lend, made), *map(lend, lent)]
        self.goes_on = False
        if why:
            self._rest()

    def _learn(self, step: Any, found: list[Any], stays: tuple[int, ...]) -> None:
        known, run = self.known, self.run
        kinds, living = tuple(each.kind for each in self.lent), [lend(twin) for twin in found]
        if (*(one.kind for one in living), *(kinds[k] for k in stays)) != kinds:
            return  # the next one is entered by other values
        places = tuple(twin._id - self.start for twin in found)
        ends = places, stays
        for theirs, stage in known.stages:
            same = theirs == kinds and (stage.places, stage.stays) == ends
            if same and _are(stage.known.operations, step.operations):
                self.lesson = stage, _done(step, run, self.start)
                return
        for theirs, operations, lived in known.seen:
            if theirs == kinds and lived == ends and _are(operations, step.operations):
                flags = tuple(one.flag for one in living)
                stage = marked_stage_of(step, places, flags, tuple(one.kind for one in living), stays)
                known.stages = [*known.stages[1 - MOST_STAGES :], (kinds, stage)]
                self.lesson = stage, _done(step, run, self.start)
                return
        known.seen = [*known.seen[-MOST_STAGES:], (kinds, step.operations, ends)]

    def _missed(self, why: str) -> None:
        self.misses += 1
        if why and why not in self.known.why:
            self.known.why = [*self.known.why[1 - MOST_STAGES :], why]
        if self.misses >= (MOST_MISSES if self.n_followed else FEW_MISSES):
            self.over = True

    # Leaving.
    def _leave_run(self) -> None:
        if self.entered:
            self.entered = False
            self.block.__exit__(None, None, None)
        if self.run.eager.tape is not None:
            self.run.over()

    def _rest(self) -> None:
        """The steps that come are recorded; what was lent is the trace's again."""
        for each in self.lent:
            if each.handle._tape is self.run.tape:
                each.leave(self.tape)
        self.lent, self.stage, self.lesson, self.goes_on = [], None, None, False
        self._leave_run()
        self._new_run()


def _affords(chain: Any, governor: Any) -> bool:
    """Whether functions are made of steps: where a number of bytes binds the program, the schedule has left room for
    what they work in, and for making them."""
    if governor.binds:
        return chain.working is not None and chain.staging != "off"
    return not chain.ledger.books and governor.seen is None


def _done(step: Any, run: MarkedRun, start: int) -> Any:
    """What the chain has to be told of a step."""
    ids = [each.ident for each in run.lent]
    return list(run.operations), list(run.ranges), list(step.constants), list(run.captured), ids, start


def _is_large(lent: Sequence[LentHandle], records: Sequence[Any]) -> bool:
    """Whether what enters a step and what it holds is too much to be copied."""
    held = sum(nbytes for _, nbytes, _ in record_items(records))
    return held + sum(nbytes_of(each.value) for each in lent) > MOST_BYTES


def _are(operations: Sequence[Operation], others: Sequence[Operation]) -> bool:
    return len(operations) == len(others) and all(map(same, operations, others))


def _cannot_live_on(found: Sequence[Any], tape: Tape) -> str:
    """Why what lives on after a step keeps it from being followed; empty where it does not."""
    kinds = tape.kinds
    seen: set[int] = set()
    for twin in found:
        if type(twin) not in (kinds.tracer, kinds.weak) or twin._id is None or twin._tape is not tape:
            return "a view, or what depends on no input, lives on after the step"
        if id(twin) in seen:
            return "two names for one value live on after the step"
        seen.add(id(twin))
    return ""


def _no_tape() -> Tape:
    raise AssertionError("the twins of marked steps are in their trace")
