"""The functions for the steps of a pattern: they advance a step, record it, and take cotangents back through it."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from attrs import define, field

from pullback.backends.plans import Backend
from pullback.programs.replay.needed_values import StepNeeds
from pullback.rules.forms import FORMS
from pullback.staging.generated.generated import Generated
from pullback.staging.generated.placing import plan_of
from pullback.staging.generated.recorded_steps import require_equal
from pullback.staging.generated.reverse_statements import reverse_statements, valued
from pullback.staging.generated.stages import booked_slots, numbers_held, with_kernels
from pullback.staging.generated.text import Draft
from pullback.staging.generated.workspaces import Workspace
from pullback.staging.replay.pattern_routes import Route, route_of, way_back
from pullback.staging.replay.pattern_statements import PatternStatements
from pullback.staging.shadow.operations import Constant
from pullback.staging.statements.symbols import Program
from pullback.words.undocumented import quiet

Seeded = tuple[tuple[int, ...], tuple[int, ...], bool]
"""Which values of a step have a cotangent when its turn comes, and which of those that entered it; whether it masks."""


class Reversible(Protocol):
    """Steps of one kind, as their reverse is made."""

    @property
    def entering(self) -> tuple[int, ...]:
        """All that enters, as it stands in the recipes."""

    @property
    def slots(self) -> tuple[int, ...]:
        """The numbers of the values that the reverse reads."""

    @property
    def length(self) -> int | None:
        """The records of a step, where another of the kind may follow it immediately."""

    @property
    def reverses(self) -> dict[Seeded, "PatternReverse"]:
        """The reverse functions that have been made."""


@define(eq=False)
class PatternStage:
    """The functions for the steps of one pattern after which the same is needed."""

    inputs: tuple[int, ...]
    """What enters and is read, as it stands in the recipes."""
    kinds: tuple[Constant, ...]
    """The kinds of what enters."""
    operands: tuple[Constant, ...]
    """The kinds of the plain operands."""
    entering: tuple[int, ...]
    """All that enters."""
    returned: tuple[int, ...]
    """The places of what is needed after the step."""
    route: Route | None
    """The way to the next step, where it is of the same kind."""
    advance: Generated
    record: Generated
    slots: tuple[int, ...]
    """The numbers of the values that the reverse reads."""
    records: list[Any] = field(repr=False)
    """The records with symbols in the place of values."""
    n_inputs: int
    reverses: dict[Seeded, "PatternReverse"] = field(factory=dict)
    notes: list[str] = field(factory=list)
    """Why functions are not those of the backend that was asked for."""
    made: PatternStatements | None = None
    """What a reverse is made of; kept until there is one, since it holds copies of all values of a step."""
    both: tuple[tuple[int, int], ...] = ()
    """Places in what is returned and among the slots, of values that are both."""
    booked: tuple[tuple[int, str], ...] = field(init=False)
    """The places of the slots that records hold, with the reasons."""

    def __attrs_post_init__(self) -> None:
        self.booked = booked_slots(self.records, self.slots)

    @property
    def length(self) -> int | None:
        """The records of a step, where one of the same kind may follow."""
        return None if self.route is None else self.route.length

    def take_kernels(self, drafts: Sequence[Draft], backend: Backend, given: tuple[Any, ...]) -> None:
        """The functions become those of a backend where these give the same bytes."""
        advance, record = drafts
        self.advance, why = with_kernels(advance, self.advance, backend, given)
        self.record, also = with_kernels(record, self.record, backend, given)
        self.notes += [text for text in (why, also) if text]

    def takes(self, entering: Sequence[Any]) -> bool:
        """Whether the functions are for what enters."""
        return all(map(Constant.admits, self.kinds, entering))

    def takes_constants(self, operands: Sequence[Any]) -> bool:
        """Whether they are for these plain operands."""
        return all(map(Constant.admits, self.operands, operands))

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
    """What gets a cotangent of all that enters, as it stands in the recipes."""
    way: tuple[int, ...] | None = None
    """The places, in what the function gives, of what it takes in the step before; None where it takes others there."""
    own: Generated | None = None
    """The function that may write to its cotangents: it has given them itself, and nobody else has them."""

    def fits(self, seeds: Sequence[Any]) -> bool:
        """Whether the function is for these cotangents."""
        return all(
            (type(ct), ct.shape, ct.dtype) == spec and ct.flags.c_contiguous
            for ct, spec in zip(seeds, self.specs, strict=True)
        )


def reverse_of_pattern(
    stage: Reversible, made: PatternStatements, key: Seeded, seeds_given: list[Any]
) -> tuple[PatternReverse, list[Draft]]:
    """The reverse for cotangents of these kinds, and what its functions are generated from."""
    program, (places, before, masks) = made.program, key
    n_inputs, n_forward = len(made.inputs), len(program.statements)
    idents = [n_inputs + place for place in places] + [made.local(k) for k in before]
    seeds = {ident: program.value(ct) for ident, ct in zip(idents, seeds_given, strict=True)}
    swept = reverse_statements(made.forward, made.records, n_inputs, seeds, masks=masks)
    found = [(k, ct) for k, ct in zip(made.inputs, swept.cts[:n_inputs], strict=True) if ct is not None]
    leaving, gives = [ct.number for _, ct in found], tuple(k for k, _ in found)
    given = [seed.number for seed in seeds.values()]
    way = None if stage.length is None else way_back(key, stage.entering, gives, stage.length)
    own = [] if way is None else _own(program, [leaving[k] for k in way], given, stage.slots)
    name = f"reverse_{len(stage.reverses) + 1}" if stage.reverses else "reverse"
    arguments = [("slots", list(stage.slots)), ("seeds", given)]
    drafts = [
        Draft(program, each, plan_of(program, program.statements[n_forward:], leaving, mine), arguments, [leaving])
        for each, mine in ((name, []), (f"{name}_own", own))
        if mine or each is name
    ]
    specs = tuple((type(ct), ct.shape, ct.dtype) for ct in seeds_given)
    reverse, *others = (draft.generated() for draft in drafts)
    return PatternReverse(reverse, specs, gives, way, *others), drafts


def _own(program: Program, handed: list[int], given: list[int], slots: Sequence[int]) -> list[int]:
    """Those of the cotangents that are given in whose place the function gives, for the step before, an array that
    shares memory with nothing else: that one it may write to there."""
    found = []
    for k, number in enumerate(handed):
        sample, others = program.samples[number], {*handed, *given, *slots} - {number}
        if (
            isinstance(sample, np.ndarray)
            and sample.base is None
            and handed.count(number) == 1
            and number not in (*given, *slots)
            and not any(
                isinstance(other, np.ndarray) and np.may_share_memory(sample, other)
                for other in map(program.samples.__getitem__, others)
            )
        ):
            found.append(given[k])
    return found


def stage_of_pattern(
    made: PatternStatements, needs: StepNeeds, length: int, entering: dict[int, Any], operands: Sequence[Any]
) -> tuple[PatternStage, list[Draft]]:
    """The stage of a step of ``length`` records that was entered so, without a reverse, and what its functions are
    generated from."""
    returned = tuple(k for k in sorted(needs.values) if needs.last_use.get(k, -1) > length)
    program, forward = made.program, made.forward
    slots = tuple(dict.fromkeys(n for record in made.records[len(made.inputs) :] for n in numbers_held(record)))
    leaving = tuple(made.known[place].number for place in returned)
    arguments = [
        ("inputs", [x.number for x in forward.inputs]),
        ("constants", [x.number for x in forward.constants]),
    ]
    inputs = tuple(k for k in made.inputs if k in entering)
    drafts = []
    for name, values in (("advance", leaving), ("record", slots)):
        plan = plan_of(program, program.statements, values)
        plan.warns = True  # so kernels look for NaNs, and leave these to NumPy
        drafts.append(Draft(program, name, plan, arguments, [values]))
    stage = PatternStage(
        inputs=inputs,
        entering=made.inputs,
        kinds=tuple(Constant.of(entering[k]) for k in inputs),
        operands=tuple(map(Constant.of, operands)),
        returned=returned,
        route=route_of(needs, inputs, returned, length),
        advance=drafts[0].generated(),
        record=drafts[1].generated(),
        slots=slots,
        records=made.records,
        n_inputs=len(made.inputs),
        both=tuple((k, slots.index(number)) for k, number in enumerate(leaving) if number in slots),
    )
    return stage, drafts


def given_to(made: PatternStatements) -> tuple[list[Any], list[Any]]:
    """What the functions were written down from: what entered, and the plain operands."""
    entered, constants = (
        [made.program.samples[x.number] for x in part] for part in (made.forward.inputs, made.forward.constants)
    )
    return entered, constants


def checked_slots(stage: PatternStage, made: PatternStatements, wanted: list[Any], work: Workspace) -> Sequence[Any]:
    """The slots of a step; raises :class:`NotStageableError` where the functions do not give the bytes of the step that
    was executed."""
    given = given_to(made)
    with quiet():
        (returned,) = stage.advance.function(*given, *work.of(stage.advance))
        require_equal(returned, wanted, "what is needed after the step")
        (slots,) = stage.record.function(*given, *work.of(stage.record))
    found: Sequence[Any] = slots
    return found
