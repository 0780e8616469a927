"""The functions for the steps of a pattern: they advance a step, record it, and take cotangents back through it."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import define, field

from pullback.memory.ledger import Item
from pullback.plain.pattern_statements import PatternStatements
from pullback.rules.forms import FORMS
from pullback.staging.operations import Constant
from pullback.staging.placing import plan_of
from pullback.staging.reverse_statements import reverse_statements
from pullback.staging.stages import Workspace, numbers_held, require_equal, valued
from pullback.staging.symbols import Symbol
from pullback.staging.text import Generated, generate
from pullback.words.sniffs import quiet
from pullback.words.specs import buffer_of

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
    entering: tuple[int, ...]
    """All that enters."""
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
    booked: tuple[tuple[int, str], ...] = field(init=False)
    """Which slots hold arrays, each with the reason for which a record holds it first."""

    def __attrs_post_init__(self) -> None:
        at = {number: k for k, number in enumerate(self.slots)}
        found: dict[int, str] = {}
        for record in self.records:
            form = FORMS[record[0]]
            for (_, reason), saved in zip(form.held, form.saved_values(record) if form.saved else (), strict=True):
                for x in saved if type(saved) is tuple else (saved,):
                    if type(x) is Symbol:
                        found.setdefault(at[x.number], reason)
        self.booked = tuple(found.items())

    def items(self, slots: Sequence[Any]) -> list[Item]:
        """What a recorded step holds, as the ledger books its records."""
        items: dict[int, Item] = {}
        for k, reason in self.booked:
            value = slots[k]
            if isinstance(value, np.ndarray):
                buffer = buffer_of(value)
                items.setdefault(id(buffer), (id(buffer), buffer.nbytes, reason))
        return list(items.values())

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


def reverse_of_pattern(
    stage: PatternStage, made: PatternStatements, key: Seeded, seeds_given: list[Any]
) -> PatternReverse:
    """The reverse for cotangents of these kinds."""
    program, (places, before, masks) = made.program, key
    n_inputs, n_forward = len(made.inputs), len(program.statements)
    idents = [n_inputs + place for place in places] + [made.local(k) for k in before]
    seeds = {ident: program.value(ct) for ident, ct in zip(idents, seeds_given, strict=True)}
    swept = reverse_statements(made.forward, made.records, n_inputs, seeds, masks=masks)
    found = [(k, ct) for k, ct in zip(made.inputs, swept.cts[:n_inputs], strict=True) if ct is not None]
    leaving = [ct.number for _, ct in found]
    reverses = stage.reverses
    generated = generate(
        program,
        f"reverse_{len(reverses) + 1}" if reverses else "reverse",
        plan_of(program, program.statements[n_forward:], leaving),
        [("slots", list(stage.slots)), ("seeds", [seed.number for seed in seeds.values()])],
        [leaving],
    )
    specs = tuple((type(ct), ct.shape, ct.dtype) for ct in seeds_given)
    return PatternReverse(generated, specs, tuple(k for k, _ in found))


def stage_of_pattern(
    made: PatternStatements, returned: tuple[int, ...], entering: dict[int, Any], operands: Sequence[Any]
) -> PatternStage:
    """The stage of a step that was entered so, without a reverse."""
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
        entering=made.inputs,
        kinds=tuple(Constant.of(entering[k]) for k in inputs),
        operands=tuple(map(Constant.of, operands)),
        returned=returned,
        advance=generate(program, "advance", plan_of(program, program.statements, leaving), arguments, [leaving]),
        record=generate(program, "record", plan_of(program, program.statements, slots), arguments, [slots]),
        slots=slots,
        records=made.records,
        n_inputs=len(made.inputs),
    )


def checked_slots(stage: PatternStage, made: PatternStatements, wanted: list[Any], work: Workspace) -> Sequence[Any]:
    """The slots of a step; raises :class:`NotStageableError` where the functions do not give the bytes of the step that
    was executed."""
    program, forward = made.program, made.forward
    given = [[program.samples[x.number] for x in part] for part in (forward.inputs, forward.constants)]
    with quiet():
        (returned,) = stage.advance.function(*given, *work.of(stage.advance))
        require_equal(returned, wanted, "what is needed after the step")
        (slots,) = stage.record.function(*given, *work.of(stage.record))
    found: Sequence[Any] = slots
    return found
