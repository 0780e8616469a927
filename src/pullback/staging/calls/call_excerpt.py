"""The records of one call, taken from the tape as if they were a step's: what the stage of a function is made from."""

from typing import Any

from pullback.recording.crossing import CAPTURE
from pullback.recording.handles import Handle
from pullback.recording.recorder import INPUT
from pullback.recording.tape import Tape
from pullback.rules.forms import FORMS
from pullback.staging.calls.inlined_run import InlinedRun
from pullback.staging.generated.forward_statements import NotStageableError
from pullback.staging.generated.recorded_steps import RecordedStep
from pullback.staging.shadow.operations import CAPTURE as CAPTURED_VALUE
from pullback.staging.shadow.operations import RESULT
from pullback.words.specs import spec_of


def excerpt_of(
    tape: Tape, run: InlinedRun, ids: list[int], start: int, found: list[Any], *, masks: bool
) -> RecordedStep:
    """The records of the call as those of a step: numbered from its arguments on. Raises :class:`NotStageableError`."""
    number = {ident: k for k, ident in enumerate(ids)}
    records: list[Any] = [(INPUT.opcode, 0) for _ in ids]
    ranges: list[tuple[int, int]] = []
    captured = iter(run.captured)
    at = start
    for op, (first, last) in zip(run.operations, run.ranges, strict=True):
        if first != at:
            raise NotStageableError("records that no operation has made")
        begins = len(records)
        if op.what is CAPTURED_VALUE:
            ident = next(captured)
            number[ident] = begins
            records.append((CAPTURE.opcode, ident, 0))
        for k in range(first, last):
            number[k] = len(records)
            records.append(_renumbered(tape.records[k], number))
        ranges.append((begins, len(records)))
        at = last
    if at != len(tape.records):
        raise NotStageableError("records that no operation has made")
    excerpt = Tape(tape.level, tape.kinds)
    excerpt.records, excerpt.n_inputs = records, len(ids)
    excerpt.close()
    around, seen = {id(handle) for handle in run.outside}, set()
    left: list[Any] = []
    for leaf in found:
        at_once = isinstance(leaf, Handle) and leaf._id is not None and id(leaf) not in around and id(leaf) not in seen
        left.append((number[leaf._id], spec_of(leaf._value)) if at_once else None)
        seen.add(id(leaf))
    values = [leaf._value if isinstance(leaf, Handle) else leaf for leaf in found]
    assert run.operations[-1].what is RESULT
    return RecordedStep(
        excerpt, run.operations, ranges, run.inputs, list(zip(run.captured, run.values, strict=True)), run.constants,
        [None] * len(ids), (list(range(len(ids))), []), left, values, values, masks, run.read, run.logged,
        of_loop=False, advances=False,
    )  # fmt: skip


def _renumbered(record: Any, number: dict[int, int]) -> Any:
    form = FORMS[record[0]]
    if form.wide:
        raise NotStageableError(f"a function in which {form.name} is recorded")
    try:
        return (record[0], *(number[i] for i in record[1 : 1 + form.n_ids]), *record[1 + form.n_ids :])
    except KeyError:
        raise NotStageableError(f"{form.name} reads a value that no operation has made") from None
