"""The functions of a marked step that is known: what it computes, and the records that the ordinary way would make."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from attrs import frozen

from pullback.recording.crossing import CAPTURE
from pullback.recording.recorder import INPUT
from pullback.rules.forms import FORMS
from pullback.rules.generated_code import compile_function
from pullback.staging.generated.forward_statements import NotStageableError, forward_statements
from pullback.staging.generated.generated import Generated
from pullback.staging.generated.placing import plan_of
from pullback.staging.generated.recorded_steps import RecordedStep, require_equal
from pullback.staging.generated.reverse_statements import skeleton
from pullback.staging.generated.stages import numbers_held
from pullback.staging.generated.text import Draft
from pullback.staging.generated.workspaces import Workspace
from pullback.staging.shadow.operations import CAPTURE as CAPTURED
from pullback.staging.shadow.operations import MARK, Operation, Result
from pullback.staging.shadow.quick_operators import KnownStep
from pullback.staging.statements.symbols import Program, Symbol
from pullback.words.undocumented import quiet


@frozen(eq=False)
class MarkedStage:
    """What is known of such a step."""

    known: KnownStep
    advance: Generated
    """The function that computes what lives on."""
    record: Generated
    """The function that computes what lives on, and what the records hold."""
    records: Callable[..., tuple[Any, ...]]
    """``records(start, ids, captured, slots)``: the records from number ``start`` on, of a step which values of these
    ids enter."""
    n_records: int
    places: tuple[int, ...]
    """The record of each value that lives on, counted from the first."""
    flags: tuple[int, ...]
    """Who else reads it (``handles.SAVED``, ..)."""
    kinds: tuple[Result, ...]
    """What kind of value it is."""
    stays: tuple[int, ...]
    """The places of what enters and is there still in the next step."""
    sites: tuple[int, ...]
    """The call site of each operation."""
    masks: bool
    """Whether something is masked in it."""
    marked: tuple[tuple[Operation, int, int], ...]
    """The operations that mark a value (``pullback.name``), each with the place of its record, counted from the first,
    and that of its tag among the constants."""
    plain: bool
    """Whether the records of two such steps differ in nothing but ids and what they hold."""


def marked_stage_of(
    step: RecordedStep,
    places: tuple[int, ...],
    flags: tuple[int, ...],
    kinds: tuple[Result, ...],
    stays: tuple[int, ...],
) -> MarkedStage:
    """The functions of a step that was recorded in the ordinary way, whose bytes they have given. Raises
    :class:`NotStageableError`."""
    program = Program(felt=False)
    try:
        return _made(step, (places, flags, kinds, stays), program)
    except Exception:
        if not program.unfelt:
            raise
    return _made(step, (places, flags, kinds, stays), Program())


def _made(step: RecordedStep, living: tuple[Any, Any, Any, Any], program: Program) -> MarkedStage:
    ends = set(step.operations[-1].operands)
    if any(op.several and not ends.isdisjoint(op.makes) for op in step.operations):
        raise NotStageableError("one of several results lives on")
    if step.read or step.ordered:
        raise NotStageableError("a value is asked for, or a call has an effect")
    records, ranges = step.tape.records, step.ranges
    values = [value for _, value in step.captured]
    sites = [records[start][-1] if stop > start else 0 for start, stop in ranges]  # type: ignore[index]
    forward = forward_statements(step.operations, step.inputs, values, step.constants, sites, program=program)
    held = skeleton(records, ranges, step.operations, forward)
    slots = tuple(dict.fromkeys(n for record in held for n in numbers_held(record)))
    returned = [x.number for x in forward.returned]
    arguments = [
        (name, [x.number for x in part])
        for name, part in (("inputs", forward.inputs), ("captured", forward.captured), ("constants", forward.constants))
    ]
    statements = program.statements
    holding = plan_of(program, statements, (*returned, *slots), all_of=True, slots={*slots}.difference(returned))
    record = Draft(program, "record", holding, arguments, (returned, slots)).generated()
    passing = plan_of(program, statements, returned, all_of=True)
    advance = Draft(program, "advance", passing, arguments, (returned,)).generated()
    constants = frozenset(k for k, symbol in enumerate(forward.constants) if symbol.number in slots)
    make, n_records = _records(held, slots, step.tape.n_inputs)
    stage = MarkedStage(
        KnownStep(step.operations, constants), advance, record, make, n_records, *living, tuple(sites), step.masks,
        tuple(_marked(step)),
        not any(_holds_symbol(x) for one in held for x in one[1 + FORMS[one[0]].n_ids + len(FORMS[one[0]].saved) :]),
    )  # fmt: skip
    _require_same(stage, step, values)
    program.samples.clear()
    return stage


def _marked(step: RecordedStep) -> Iterator[tuple[Operation, int, int]]:
    """See :attr:`MarkedStage.marked`."""
    place = n_constants = 0
    for op, (start, stop) in zip(step.operations, step.ranges, strict=True):
        if op.what is MARK:
            yield op, place, n_constants
        if op.what is not CAPTURED:
            place, n_constants = place + stop - start, n_constants + sum(type(o) is not int for o in op.operands)


def _holds_symbol(x: Any) -> bool:
    return type(x) is Symbol or (type(x) is tuple and any(map(_holds_symbol, x)))


def _require_same(stage: MarkedStage, step: RecordedStep, captured: list[Any]) -> None:
    """Raises :class:`NotStageableError` unless the functions give what the step has given, and its records."""
    work = Workspace()
    given = step.inputs, captured, step.constants
    with quiet():
        (returned,) = stage.advance.function(*given, *work.of(stage.advance))
        require_equal(returned, step.returned, "what lives on after the step")
        returned, slots = stage.record.function(*given, *work.of(stage.record))
        require_equal(returned, step.returned, "what lives on after the step")
    first = step.tape.n_inputs
    numbers = list(range(len(step.tape.records)))
    own = [k for k in numbers[first:] if step.tape.records[k][0] != CAPTURE.opcode]  # type: ignore[index]
    around = [k for k in numbers[first:] if k not in own]
    found = stage.records(0, numbers[:first], around, slots)
    for place, k in enumerate(own):
        wanted: Any = step.tape.records[k]
        form, made = FORMS[wanted[0]], found[place]
        if len(made) != len(wanted):
            raise NotStageableError("other records")
        for a, b in zip(form.saved_values(made), form.saved_values(wanted), strict=True):
            parts = (a, b) if isinstance(a, tuple) else ((a,), (b,))
            _require_held(*parts)


def _require_held(found: Sequence[Any], wanted: Sequence[Any]) -> None:
    for a, b in zip(found, wanted, strict=True):
        if type(a) is not type(b):
            raise NotStageableError("a record would hold a value of another type")
        if isinstance(a, np.ndarray | np.generic | float | int | complex):
            require_equal((a,), (b,), "what a record holds")


def _records(held: Sequence[Any], slots: Sequence[int], n_inputs: int) -> tuple[Callable[..., Any], int]:
    """The function that makes the records, and how many there are."""
    names: dict[str, Any] = {}
    place = {number: k for k, number in enumerate(slots)}
    idents: list[str] = []
    n_captured, lines = 0, list[str]()

    def named(x: Any) -> str:
        if type(x) is Symbol:
            return f"s{place[x.number]}"
        if type(x) is tuple and any(type(part) is Symbol for part in x):
            return "(" + "".join(f"{named(part)}, " for part in x) + ")"
        names[f"k{len(names)}"] = x
        return f"k{len(names) - 1}"

    for local, record in enumerate(held):
        if local < n_inputs:
            if record[0] != INPUT.opcode:
                raise NotStageableError("records that no operation has made")
            idents.append(f"i{local}")
            continue
        if record[0] == CAPTURE.opcode:
            idents.append(f"c{n_captured}")
            n_captured += 1
            continue
        own, first = f"start + {len(lines)}", 1 + FORMS[record[0]].n_ids
        idents.append(own)
        parts = [str(record[0]), *(idents[k] for k in record[1:first]), *map(named, record[first:])]
        if FORMS[record[0]].own:
            parts[FORMS[record[0]].own] = own
        lines.append(f"        ({', '.join(parts)}),\n")
    text = "def records(start, ids, captured, slots):\n"
    for name, n, given in (("i", n_inputs, "ids"), ("c", n_captured, "captured"), ("s", len(slots), "slots")):
        text += f"    {''.join(f'{name}{k}, ' for k in range(n))}= {given}\n" if n else ""
    text += f"    return (\n{''.join(lines)}    )\n"
    return compile_function("records", text, names), len(lines)
