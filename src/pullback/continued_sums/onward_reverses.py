"""Makes the reverse function of a stage that starts from cotangents which have come already, of its inputs and of what
it captures."""

from collections.abc import Sequence
from typing import Any

from pullback.recording.crossing import CAPTURE
from pullback.staging.generated.forward_statements import Forward, NotStageableError
from pullback.staging.generated.generated import Generated
from pullback.staging.generated.placing import plan_of
from pullback.staging.generated.reverse_statements import reverse_statements, with_symbols
from pullback.staging.generated.stages import Stage
from pullback.staging.generated.text import Draft
from pullback.staging.statements.symbols import Program


def onward_reverse(
    stage: Stage, slots: Sequence[Any], seeds: Sequence[Any], came: Sequence[Any]
) -> tuple[Generated, list[int]]:
    """The function of slots, seeds and the cotangents that have come, made from one call; and which cotangents of the
    inputs, then of the captured values, it gives: the others stay. None says that none has come. Raises
    :class:`NotStageableError`, and whatever a rule raises that is run on symbols."""
    if stage.collective:
        raise NotStageableError("others take part in it")
    program = Program()
    by_number = {n: program.value(x) for n, x in zip(stage.slots, slots, strict=True)}
    records = [with_symbols(record, by_number) for record in stage.records]
    given = [None if x is None else program.value(x) for x in seeds]
    n, standing = len(stage.entered), captured(stage)
    places = [*range(n), *standing.values()]
    sums = {k: program.value(ct) for k, ct in zip(places, came, strict=True) if ct is not None}
    left = [at[0] for at in stage.left if at is not None]
    begun = sums | {ident: seed for ident, seed in zip(left, given, strict=True) if seed is not None}
    swept = reverse_statements(Forward(program), records, stage.n_inputs, begun, masks=stage.masks)
    ends = [*swept.cts[:n], *map(swept.gathered.get, standing)]
    goes = [k for k, ct in enumerate(ends) if ct is not None and ct is not sums.get(places[k])]
    leaving = [ends[k].number for k in goes]
    arguments = [
        ("slots", [x.number for x in by_number.values()]),
        ("seeds", [x.number for x in given if x is not None]),
        ("sums", [x.number for x in sums.values()]),
    ]
    plan = plan_of(program, program.statements, leaving)
    generated = Draft(program, "reverse_onward", plan, arguments, [leaving]).generated()
    program.samples.clear()
    return generated, goes


def captured(stage: Stage) -> dict[int, int]:
    """Id in the trace around, of the captured values, to the record that stands for it; in the order in which they
    came."""
    found = {record[1]: k for k, record in enumerate(stage.records) if record[0] == CAPTURE.opcode}
    return {ident: found[ident] for ident in stage.captured}
