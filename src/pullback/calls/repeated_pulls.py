"""The reverse of one tape as a generated function, for a pull that is called again and again.

It is made once so many calls have come that it pays, tried on drawn cotangents, and used where it gave the same bytes.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import define, field

from pullback.memory.sweep import Sweep, sweep
from pullback.primitives.selecting.indexing import READ
from pullback.recording.recorder import INPUT
from pullback.recording.results import COMPONENT
from pullback.recording.tape import Tape
from pullback.recording.traps import TRAPPED
from pullback.recording.writes import CREATE, WRITE_OPCODES
from pullback.rules.forms import FORMS
from pullback.staging.forward_statements import Forward, NotStageableError
from pullback.staging.generated import Generated
from pullback.staging.placing import plan_of
from pullback.staging.reverse_statements import reverse_statements
from pullback.staging.stages import draw, require_equal
from pullback.staging.symbols import Program, Symbol
from pullback.staging.text import Draft
from pullback.staging.workspaces import Workspace
from pullback.words.sniffs import quiet
from pullback.words.specs import ArraySpec

MOST_RECORDS = 5_000
MOST_BYTES = 2**21
_ORDINARY = frozenset((READ.opcode, INPUT.opcode, CREATE.opcode, COMPONENT.opcode))
_NUMBERS = (int, float, complex, bool, str, type(None))


@define(eq=False)
class RepeatedPulls:
    """What is known of the calls of one pull."""

    tape: Tape
    made: dict[tuple[int, ...], "Reverse | None"] = field(factory=dict, init=False)
    """By the records that are seeded."""

    def of(self, cts: list[Any]) -> list[Any] | None:
        """The cotangents of the inputs, None where there is none, from those of the records; None where the tape has to
        be swept."""
        tape = self.tape
        if tape.outer is not None or tape.marks is not None or TRAPPED.get():
            return None
        seeded = tuple(i for i, ct in enumerate(cts) if ct is not None)
        if any(i < tape.n_inputs for i in seeded):
            return None
        if seeded not in self.made:
            self.made[seeded] = _made(tape, {i: cts[i] for i in seeded}) if len(self.made) < 2 else None
        reverse = self.made[seeded]
        return None if reverse is None else reverse.pulled([cts[i] for i in seeded])


@define(eq=False)
class Reverse:
    """The generated function with what the records hold."""

    generated: Generated
    slots: tuple[Any, ...]
    specs: tuple[ArraySpec, ...]
    entered: tuple[bool, ...]
    work: Workspace = field(factory=Workspace)

    def pulled(self, seeds: Sequence[Any]) -> list[Any] | None:
        """The cotangents of the inputs; None for seeds of another kind."""
        if not all(map(_is_of, seeds, self.specs)):
            return None
        with quiet():
            (found,) = self.generated.function(self.slots, seeds, *self.work.of(self.generated))
        parts = iter(found)
        return [next(parts) if wanted else None for wanted in self.entered]


def _is_of(ct: Any, spec: ArraySpec) -> bool:
    kind = np.ndarray if spec.shape else np.generic
    alike = isinstance(ct, kind) and ct.shape == spec.shape and ct.dtype == spec.dtype
    return alike and bool(ct.flags.c_contiguous)


def _made(tape: Tape, seeds: dict[int, Any]) -> Reverse | None:
    if len(tape.records) > MOST_RECORDS:
        return None
    try:
        return _generated(tape, {i: ArraySpec(np.shape(ct), ct.dtype) for i, ct in seeds.items()})
    except Exception:  # noqa: BLE001 - whatever a rule does with what is no array: the tape is swept
        return None


def _generated(tape: Tape, specs: dict[int, ArraySpec]) -> Reverse:
    program = Program()
    slots: dict[int, tuple[Any, Symbol]] = {}
    records = [_with_symbols(record, program, slots) for record in tape.records]
    if sum(value.nbytes for value, _ in slots.values()) > MOST_BYTES:
        raise NotStageableError("the tape holds much")
    given = {i: program.value(np.ones(spec.shape, spec.dtype)[()]) for i, spec in specs.items()}
    swept = reverse_statements(Forward(program), records, tape.n_inputs, dict(given), masks=tape.masks)
    cts = swept.cts[: tape.n_inputs]
    leaving = [ct.number for ct in cts if ct is not None]
    arguments = [
        ("slots", [symbol.number for _, symbol in slots.values()]), ("seeds", [x.number for x in given.values()]),
    ]  # fmt: skip
    draft = Draft(program, "reverse", plan_of(program, program.statements, leaving), arguments, [leaving])
    made = Reverse(
        draft.generated(),
        tuple(value for value, _ in slots.values()),
        tuple(specs.values()),
        tuple(ct is not None for ct in cts),
    )
    _require_same(made, tape, specs)
    program.samples.clear()
    return made


def _with_symbols(record: Any, program: Program, slots: dict[int, tuple[Any, Symbol]]) -> Any:
    """A record with symbols in the place of the arrays that it holds."""
    form = FORMS[record[0]]
    if not form.rules:
        if record[0] in WRITE_OPCODES or record[0] in _ORDINARY:
            return record
        raise NotStageableError(f"a program in which {form.name} is recorded")
    if form.primitive.opaque or form.primitive.guarded:
        raise NotStageableError(f"{form.name} is a primitive from outside, whose values are guarded")

    def held(value: Any) -> Any:
        if type(value) is tuple:
            return tuple(map(held, value))
        if isinstance(value, _NUMBERS) and not isinstance(value, np.generic):
            return value
        if type(value) is not np.ndarray and not isinstance(value, np.generic):
            raise NotStageableError(f"{form.name} holds no array")
        if id(value) not in slots:
            slots[id(value)] = value, program.value(value)
        return slots[id(value)][1]

    first = 1 + len(form.active)
    last = first + len(form.saved)
    return (*record[:first], *map(held, record[first:last]), *record[last:])


def _require_same(made: Reverse, tape: Tape, specs: dict[int, ArraySpec]) -> None:
    """The function gives the bytes of a sweep, for drawn seeds."""
    random = np.random.default_rng(0)
    seeds = [draw(random, spec) for spec in specs.values()]
    cts: list[Any] = [None] * len(tape.records)
    for ident, seed in zip(specs, seeds, strict=True):
        cts[ident] = seed.copy()
    sweep(tape, tape.n_inputs, len(tape.records), [Sweep(cts)])
    found = made.pulled(seeds)
    assert found is not None  # they are of these specs
    wanted = cts[: tape.n_inputs]
    require_equal([x for x in found if x is not None], [x for x in wanted if x is not None], "the cotangents")
