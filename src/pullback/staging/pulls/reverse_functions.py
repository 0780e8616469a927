"""The reverse of a tape as a generated function, for one seed or for several at once; used where it has given the bytes
of sweeps, for drawn seeds."""

from collections.abc import Callable, Sequence
from itertools import cycle, islice
from typing import Any

import numpy as np
from attrs import define

from pullback.memory.reverse_sweep import Sweep, sweep
from pullback.primitives.selecting.indexing import READ
from pullback.recording.recorder import INPUT
from pullback.recording.results import COMPONENT
from pullback.recording.tape import Tape
from pullback.recording.writes import CREATE, WRITE_OPCODES
from pullback.rules.forms import FORMS
from pullback.staging.generated.forward_statements import Forward, NotStageableError
from pullback.staging.generated.generated import Generated
from pullback.staging.generated.placing import needed, plan_of
from pullback.staging.generated.recorded_steps import require_equal
from pullback.staging.generated.reverse_statements import reverse_statements
from pullback.staging.generated.text import Draft
from pullback.staging.generated.workspaces import Workspace
from pullback.staging.pulls.stacked_statements import DISTINCT, stacked_statements
from pullback.staging.shadow.collective_pulls import draw
from pullback.staging.statements.symbols import Program, Symbol
from pullback.words.specs import ArraySpec
from pullback.words.undocumented import quiet

MOST_BYTES = 2**24
NUMBERS = (int, float, complex, bool, str, type(None))
_ORDINARY = frozenset((READ.opcode, INPUT.opcode, CREATE.opcode, COMPONENT.opcode))


@define(eq=False)
class ReverseFunction:
    """The generated function."""

    generated: Generated
    specs: tuple[ArraySpec, ...]
    """The specs of the records that are seeded."""
    entered: tuple[bool, ...]
    """Which inputs get a cotangent."""
    n: int | None = None
    """How many seeds it is for: None for one, in which nothing is stacked."""

    def takes(self, seeds: Sequence[Any]) -> bool:
        """Whether it was tried on such."""
        return all(map(is_of, seeds, self.specs))

    def each(self, slots: Sequence[Any], several: Sequence[Sequence[Any]], work: Workspace) -> list[list[Any]] | None:
        """The cotangents of the inputs for each of several seeds, not more than it is for, None where there is none;
        the records hold ``slots``. None where several are NaN: of two NaNs that meet, the one that is handed on depends
        on the place."""
        seeds = several[0] if self.n is None else stacked_seeds(several, self.n)
        with quiet():
            (found,) = self.generated.function(slots, seeds, *work.of(self.generated))
        parts = iter(found)
        cts = [next(parts) if wanted else None for wanted in self.entered]
        if self.n is None:
            return [cts]
        if any(np.isnan(ct).any() for ct in found):
            return None
        return [[None if ct is None else ct[place] for ct in cts] for place in range(len(several))]


def stacked_seeds(several: Sequence[Sequence[Any]], n: int) -> list[Any]:
    """The parts of all seeds for each part of one; the last stands for those that there are less than ``n``."""
    filled = [*several, *(several[-1] for _ in range(len(several), n))]
    return [np.array(parts) for parts in zip(*filled, strict=True)]


def is_of(ct: Any, spec: ArraySpec) -> bool:
    """Whether a part of a seed is of the kind that a function was tried on."""
    kind = np.ndarray if spec.shape else np.generic
    alike = isinstance(ct, kind) and ct.shape == spec.shape and ct.dtype == spec.dtype
    return alike and bool(ct.flags.c_contiguous)


def made_reverse(tape: Tape, seeds: dict[int, Any], n: int | None = None) -> ReverseFunction | None:
    """The function for seeds of this kind, by record, or for ``n`` of them at once; None where there is none."""
    try:
        return _generated(tape, {i: ArraySpec(np.shape(ct), ct.dtype) for i, ct in seeds.items()}, n)
    except Exception:  # noqa: BLE001 - whatever a rule does with what is no array: the tape is swept
        return None


def _generated(tape: Tape, specs: dict[int, ArraySpec], n: int | None) -> ReverseFunction:
    program = Program()
    held: dict[int, tuple[Any, Symbol]] = {}
    records = [_with_symbols(record, program, held) for record in tape.records]
    if sum(value.nbytes for value, _ in held.values()) > MOST_BYTES:
        raise NotStageableError("the tape holds much")
    given = {i: program.value(np.ones(spec.shape, spec.dtype)[()]) for i, spec in specs.items()}
    swept = reverse_statements(Forward(program), records, tape.n_inputs, dict(given), masks=tape.masks)
    cts = swept.cts[: tape.n_inputs]
    slots, seeds = [symbol.number for _, symbol in held.values()], [symbol.number for symbol in given.values()]
    leaving, statements = [ct.number for ct in cts if ct is not None], program.statements
    if n is not None:
        many = stacked_statements(
            program, needed(statements, frozenset(leaving), all_of=False), slots, dict.fromkeys(seeds, n)
        )
        program, statements = many.program, many.program.statements
        slots, seeds, leaving = ([many.symbols[k].number for k in part] for part in (slots, seeds, leaving))
        if not many.stacked.issuperset(leaving):
            raise NotStageableError("a cotangent that depends on no seed")
    draft = Draft(
        program, "reverse", plan_of(program, statements, leaving), [("slots", slots), ("seeds", seeds)], [leaving]
    )
    made = ReverseFunction(draft.generated(), tuple(specs.values()), tuple(ct is not None for ct in cts), n)
    _require_same(made, tape, specs, [value for value, _ in held.values()])
    program.samples.clear()
    return made


def _with_symbols(record: Any, program: Program, slots: dict[int, tuple[Any, Symbol]]) -> Any:
    """A record with symbols in the place of the arrays that it holds."""

    def symbol(value: Any) -> Symbol:
        if id(value) not in slots:
            slots[id(value)] = value, program.value(value)
        return slots[id(value)][1]

    return with_held(record, symbol)


def with_held(record: Any, instead: Callable[[Any], Any]) -> Any:
    """A record with something else in the place of each array that it holds; raises :class:`NotStageableError` for a
    record that no function is generated from."""
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
        if isinstance(value, NUMBERS) and not isinstance(value, np.generic):
            return value
        if type(value) is not np.ndarray and not isinstance(value, np.generic):
            raise NotStageableError(f"{form.name} holds no array")
        return instead(value)

    return form.with_saved(record, map(held, form.saved_values(record)))


def _require_same(made: ReverseFunction, tape: Tape, specs: dict[int, ArraySpec], slots: list[Any]) -> None:
    """The function gives the bytes of a sweep, for drawn seeds."""
    random, n = np.random.default_rng(1), made.n or 1
    several = [[draw(random, spec) for spec in specs.values()] for _ in range(min(n, DISTINCT))]
    runs = [Sweep([None] * len(tape.records)) for _ in several]
    for run, seeds in zip(runs, several, strict=True):
        for ident, seed in zip(specs, seeds, strict=True):
            run.cts[ident] = seed.copy()
    sweep(tape, tape.n_inputs, len(tape.records), runs)
    each = made.each(slots, list(islice(cycle(several), n)), Workspace())
    if each is None:
        raise NotStageableError("cotangents that are NaN")
    for run, found in zip(cycle(runs), each, strict=False):
        pairs = [(x, wanted) for x, wanted in zip(found, run.cts, strict=False) if x is not None]
        require_equal([x.copy(order="K") for x, _ in pairs], [wanted for _, wanted in pairs], "the cotangents")
