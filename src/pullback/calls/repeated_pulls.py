"""The reverse of a tape as a generated function, for pulls that are called again and again.

It is made once so many calls have come that it pays, tried on drawn cotangents, and used where it gave the same bytes;
from then on for every tape that says the same: the rows of a Jacobian, in each call of it.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import define, field, frozen

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
from pullback.staging.recorded_steps import draw, require_equal
from pullback.staging.reverse_statements import reverse_statements
from pullback.staging.shelf import Recent
from pullback.staging.symbols import Program, Symbol
from pullback.staging.text import Draft
from pullback.staging.workspaces import Workspace
from pullback.words.sameness import same_parts
from pullback.words.sniffs import quiet
from pullback.words.specs import ArraySpec

MOST_RECORDS = 5_000
MOST_BYTES = 2**24
MOST_SEEDED = 2
"""For how many choices of what is seeded a pull looks for functions."""
MOST_LAYOUTS, MOST_ALIKE = 64, 4
"""How many layouts are remembered, of tapes of one sequence of primitives."""
_ORDINARY = frozenset((READ.opcode, INPUT.opcode, CREATE.opcode, COMPONENT.opcode))
_NUMBERS = (int, float, complex, bool, str, type(None))


@define(eq=False)
class Layout:
    """What records say beside the values that they hold, which generated functions do not depend on: two tapes of one
    layout have the same reverse."""

    records: list[Any]
    """With a :class:`Held` in the place of values."""
    kinds: list[Any]
    """Of each value: type, shape, dtype and strides."""
    rest: tuple[Any, ...]
    """Number of inputs, whether something is masked, and records and specs of the seeds."""

    def is_of(self, other: "Layout") -> bool:
        """Whether both are one."""
        same = self.rest == other.rest and self.kinds == other.kinds and len(self.records) == len(other.records)
        return same and all(map(same_parts, self.records, other.records))


@frozen
class Held:
    """In a record: the value of that number."""

    number: int


@define(eq=False)
class Known:
    """What is known of the reverse of tapes of one layout."""

    layout: Layout
    count: int = 0
    """How often they have been swept, once it was counted."""
    over: bool = False
    """Whether nothing more is to be made."""
    reverse: "Reverse | None" = None


_SHELF = Recent(MOST_LAYOUTS)


def _known_of(layout: Layout) -> Known:
    key = len(layout.records), tuple(record[0] for record in layout.records), layout.rest
    with _SHELF.changing:
        alike: list[Known] = _SHELF.of(key, list)
        for known in alike:
            if known.layout.is_of(layout):
                return known
        known = Known(layout)
        if len(alike) < MOST_ALIKE:
            alike.append(known)
        return known


def forget() -> None:
    """Empty the shelf: for tests."""
    with _SHELF.changing:
        _SHELF.clear()


@define(eq=False)
class RepeatedPulls:
    """What is known of the calls of one pull."""

    tape: Tape
    known: dict[tuple[int, ...], tuple[Known, list[Any]] | None] = field(factory=dict, init=False)
    """By the records that are seeded; with the values that the records hold."""
    work: dict[Known, Workspace] = field(factory=dict, init=False)

    def of(self, cts: list[Any], enough: int) -> list[Any] | None:
        """The cotangents of the inputs, None where there is none, from those of the records; None where the tape has to
        be swept. A function is made after ``enough`` sweeps of such tapes."""
        tape = self.tape
        if tape.outer is not None or tape.marks is not None or TRAPPED.get():
            return None
        seeded = tuple(i for i, ct in enumerate(cts) if ct is not None)
        if any(i < tape.n_inputs for i in seeded):
            return None
        if seeded not in self.known:
            self.known[seeded] = self._looked_up(cts, seeded) if len(self.known) < MOST_SEEDED else None
        found = self.known[seeded]
        if found is None:
            return None
        known, values = found
        known.count += 1
        if known.reverse is None:
            if known.over or known.count <= enough:
                return None
            known.over, known.reverse = True, _made(tape, {i: cts[i] for i in seeded})
            if known.reverse is None:
                return None
        work = self.work.get(known)
        if work is None:
            work = self.work[known] = Workspace()
        return known.reverse.pulled(values, [cts[i] for i in seeded], work)

    def _looked_up(self, cts: list[Any], seeded: tuple[int, ...]) -> Any:
        if len(self.tape.records) > MOST_RECORDS:
            return None
        values: list[Any] = []
        layout = _layout_of(self.tape, tuple((i, np.shape(cts[i]), cts[i].dtype) for i in seeded), values)
        return None if layout is None else (_known_of(layout), values)


def _layout_of(tape: Tape, seeds: tuple[Any, ...], values: list[Any]) -> Layout | None:
    """The layout of a tape, whose values are gathered; None where something is held that is no array."""
    numbers: dict[int, Held] = {}
    kinds: list[Any] = []

    def held(value: Any) -> Any:
        if type(value) is tuple:
            return tuple(map(held, value))
        if isinstance(value, _NUMBERS) and not isinstance(value, np.generic):
            return value
        found = numbers.get(id(value))
        if found is None:
            kinds.append((type(value), value.shape, value.dtype, value.strides))
            values.append(value)
            found = numbers[id(value)] = Held(len(numbers))
        return found

    records = []
    for record in tape.records:
        form = FORMS[record[0]]  # type: ignore[index]  # a tape that is pulled again has all its records
        if form.wide or (form.saved and not form.rules):
            return None
        first = 1 + len(form.active)
        last = first + len(form.saved)
        try:
            told: Any = record
            if first < last:
                told = (*told[:first], *map(held, told[first:last]), *told[last:])
        except AttributeError:
            return None
        records.append(told)
    return Layout(records, kinds, (tape.n_inputs, tape.masks, seeds))


@define(eq=False)
class Reverse:
    """The generated function."""

    generated: Generated
    specs: tuple[ArraySpec, ...]
    entered: tuple[bool, ...]

    def pulled(self, slots: Sequence[Any], seeds: Sequence[Any], work: Workspace) -> list[Any] | None:
        """The cotangents of the inputs, where the records hold ``slots``; None for seeds of another kind."""
        if not all(map(_is_of, seeds, self.specs)):
            return None
        with quiet():
            (found,) = self.generated.function(slots, seeds, *work.of(self.generated))
        parts = iter(found)
        return [next(parts) if wanted else None for wanted in self.entered]


def _is_of(ct: Any, spec: ArraySpec) -> bool:
    kind = np.ndarray if spec.shape else np.generic
    alike = isinstance(ct, kind) and ct.shape == spec.shape and ct.dtype == spec.dtype
    return alike and bool(ct.flags.c_contiguous)


def _made(tape: Tape, seeds: dict[int, Any]) -> Reverse | None:
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
    made = Reverse(draft.generated(), tuple(specs.values()), tuple(ct is not None for ct in cts))
    _require_same(made, tape, specs, [value for value, _ in slots.values()])
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


def _require_same(made: Reverse, tape: Tape, specs: dict[int, ArraySpec], slots: list[Any]) -> None:
    """The function gives the bytes of a sweep, for drawn seeds."""
    random = np.random.default_rng(0)
    seeds = [draw(random, spec) for spec in specs.values()]
    cts: list[Any] = [None] * len(tape.records)
    for ident, seed in zip(specs, seeds, strict=True):
        cts[ident] = seed.copy()
    sweep(tape, tape.n_inputs, len(tape.records), [Sweep(cts)])
    found = made.pulled(slots, seeds, Workspace())
    assert found is not None  # they are of these specs
    wanted = cts[: tape.n_inputs]
    require_equal([x for x in found if x is not None], [x for x in wanted if x is not None], "the cotangents")
