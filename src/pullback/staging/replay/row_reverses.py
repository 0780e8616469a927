"""The reverse of marked steps that a trace holds: steps in a row whose records say the same go back through a function
that is generated from these, once it has given the bytes of a sweep.

The function reads what the records hold, which are let go of as the sweep passes them. Cotangents go from step to step
past the sweep, where nothing but the step after it has sent any.
"""

from collections.abc import Sequence
from math import inf, prod
from typing import Any, Final

import numpy as np
from attrs import define, field

from pullback.memory.in_force import STAGINGS
from pullback.memory.ledger import nbytes_of
from pullback.memory.reverse_sweep import Sweep, sweep
from pullback.primitives.selecting.indexing import READ
from pullback.programs.replay.marked_steps import MarkedSteps
from pullback.programs.replay.step_recipes import FAR
from pullback.recording.copies import faithful
from pullback.recording.recorder import INPUT
from pullback.recording.results import COMPONENT
from pullback.recording.tape import Tape
from pullback.recording.writes import CREATE, WRITE_OPCODES
from pullback.rules.forms import FORMS
from pullback.staging.generated.forward_statements import Forward, NotStageableError
from pullback.staging.generated.generated import Generated
from pullback.staging.generated.recorded_steps import require_equal
from pullback.staging.generated.shelf import Recent
from pullback.staging.generated.stages import with_kernels
from pullback.staging.generated.text import Draft
from pullback.staging.generated.workspaces import Workspace
from pullback.staging.replay.pattern_routes import picking
from pullback.staging.replay.pattern_stages import PatternReverse, Seeded, reverse_of_pattern
from pullback.staging.replay.pattern_statements import PatternStatements
from pullback.staging.replay.recorded_rows import AlikeRow, HeldOfRow, row_before
from pullback.staging.statements.symbols import Program
from pullback.words.call_sites import site_code
from pullback.words.plugins import backend
from pullback.words.sameness import same_parts
from pullback.words.undocumented import quiet

FEWEST: Final = 24
"""Steps of one kind in a row from which functions for them pay."""
ENOUGH: Final = 96
"""Steps of one kind, in this run and in those before, from which a function pays: to make it takes as long as it saves
in so many."""
MOST_BYTES: Final = 64 * 2**20
"""What a step may hold, unless functions are asked for."""
SMALL: Final = 128 * 2**10
"""Bytes of a function, or of making it, beyond which as much has been let go of before, or half of the steps have."""
MORE: Final = 4
"""Results of the size of the largest, beside one for each record: cotangents, and what is compared with them."""
MOST_LESSONS: Final = 4
MOST_KINDS, MOST_ALIKE = 256, 8
MOST_MISSES: Final = 4
"""Steps of one trace that are none of a row, after which no more are compared."""


@define(eq=False)
class KnownRows:
    """What is known of the reverse of steps whose records say the same; the ``Reversible`` of these."""

    row: AlikeRow
    """One of them, of which the records are left."""
    entering: tuple[int, ...]
    slots: tuple[int, ...]
    length: int
    site: int
    reverses: dict[Seeded, PatternReverse] = field(factory=dict)
    count: int = 0
    """How many such steps there were."""
    lessons: int = 0
    felt: bool = False
    """Whether it is written down from all values that it computes."""
    why: str = ""
    """Why these steps are swept."""
    notes: list[str] = field(factory=list)

    @classmethod
    def of(cls, row: AlikeRow, site: int) -> "KnownRows":
        """Nothing but the steps themselves."""
        ids = (k for record in row.records for k in record[1 : 1 + len(FORMS[record[0]].active)])
        entering = tuple(dict.fromkeys(k for k in ids if k < 0))
        return cls(row, entering, tuple(range(len(row.places))), row.length, site)

    def is_of(self, row: AlikeRow) -> bool:
        """Whether it is known of these steps."""
        mine = self.row
        return mine.kinds == row.kinds and mine.places == row.places and same_parts(mine.records, row.records)


_SHELF = Recent(MOST_KINDS)


def known_of(row: AlikeRow, site: int, by: str) -> KnownRows:
    """What is known of steps such as these, for NumPy's functions or those of a backend."""
    key = by, site, row.length
    with _SHELF.changing:
        shelf: list[KnownRows] = _SHELF.of(key, list)
        for known in shelf:
            if known.is_of(row):
                return known
        made = KnownRows.of(row, site)
        shelf.append(made)
        del shelf[:-MOST_ALIKE]
        return made


def rows_in(code: Any) -> list[KnownRows]:
    """What is known of steps whose first operation stands in the function of that code."""
    with _SHELF.changing:
        found = [known for shelf in _SHELF.values() for known in shelf]
    return [known for known in found if site_code(known.site)[0] is code]


def sweep_marked(tape: Tape, start: int, stop: int, one: Sweep) -> None:
    """As :func:`pullback.memory.reverse_sweep.sweep` of one seed, with marked steps by generated functions where there
    are."""
    for marked in reversed(tape.marked):
        cuts = [*marked.cuts]
        fewest = FEWEST if marked.staging == "auto" else 2
        missed = 0
        while marked.staging != "off" and len(cuts) > fewest and missed < MOST_MISSES and cuts[0] >= start:
            row = row_before(tape, cuts, fewest, marked.n_alike) if cuts[-1] <= stop else None
            if row is None:
                missed += 1
                cuts.pop()
                continue
            end = row.start + row.n * row.length
            sweep(tape, end, stop, (one,))
            RowReverse(tape, row, one, marked).run()
            stop = row.start
            del cuts[-row.n :]
    sweep(tape, start, stop, (one,))


@define(eq=False)
class RowReverse:
    """The reverse pass of one row."""

    tape: Tape
    row: AlikeRow
    one: Sweep
    marked: MarkedSteps
    known: KnownRows = field(init=False)
    work: Workspace = field(init=False)
    swept: int = 0
    """How many steps have been swept."""

    def __attrs_post_init__(self) -> None:
        row, staging = self.row, self.marked.staging
        first: Any = self.tape.records[row.start]
        self.known = known_of(row, first[-1], "" if staging in STAGINGS else staging)
        self.known.count += row.n
        row.records, row.kinds, row.places = self.known.row.records, self.known.row.kinds, self.known.row.places
        self.work = Workspace(None, self.marked.threads)

    def run(self) -> None:
        """Take the cotangents back through all its steps."""
        step = self.row.n
        while step:
            step -= 1
            given = self._given(step)
            reverse = None if given is None else self.known.reverses.get(given[0])
            if given is None or reverse is None or not reverse.fits(given[1]):
                self._sweep(step, given)
            elif not self._has_let_go(step, self._works(step, reverse)):
                given = None  # a cotangent is let go of as soon as the sweep has used it
                self._sweep(step, given)
            else:
                step = self._go(step, reverse, *given)

    def _given(self, step: int) -> tuple[Seeded, list[Any]] | None:
        """Which cotangents there are when the turn of a step comes, and these; None where one is no plain array."""
        row, cts, entering = self.row, self.one.cts, self.known.entering
        start = row.start + step * row.length
        mine, around = cts[start : start + row.length], [cts[row.ident(k, step)] for k in entering]
        places = tuple([k for k, ct in enumerate(mine) if ct is not None])
        before = tuple([k for k, ct in zip(entering, around, strict=True) if ct is not None])
        found = [ct for ct in (*mine, *around) if ct is not None]
        if not places or not all(isinstance(ct, np.ndarray | np.generic) for ct in found):
            return None
        return (places, before, self.one.masks or self.tape.masks), found

    def _go(self, step: int, reverse: PatternReverse, key: Seeded, given: list[Any]) -> int:
        """The step down to which, with itself, the function has taken the cotangents back; ``given`` has none left."""
        row, one, records = self.row, self.one, self.tape.records
        start, length = row.start + step * row.length, row.length
        one.cts[start : start + length] = [None] * length
        for k in key[1]:
            one.cts[row.ident(k, step)] = None
        way = None if reverse.way is None or not self._clear(start) else picking(reverse.way)
        generated, seeds = reverse.generated, tuple(given)
        given.clear()  # nobody else holds them while the function runs
        if way is not None and reverse.own is not None:  # it may write to them; one at a time, so that few are twice
            generated, given, seeds = reverse.own, [*reversed(seeds)], ()
            while given:
                ct = given.pop()
                seeds = (*seeds, faithful(ct))
            del ct
        function, places, nothing = generated.function, self.work.of(generated), [None] * length
        sure = False
        with quiet():
            while True:
                held = row.held(records, step)
                if one.frees:
                    records[start : start + length] = nothing
                (cts,) = function(held, seeds, *places)
                if way is None or not step:
                    break
                seeds = way(cts)
                if not sure and not reverse.fits(seeds):
                    break
                sure, step, start = True, step - 1, start - length
                del held
        for k, ct in zip(reverse.gives, cts, strict=True):
            ident = row.ident(k, step)
            if one.cts[ident] is not ct:
                one.cts[ident] = ct
                one.owned.discard(ident)
        return step

    def _clear(self, start: int) -> bool:
        """Whether no value before a step, of those that the row makes or reads, has a cotangent: those that the step
        takes have been taken."""
        row, cts = self.row, self.one.cts
        lowest = min((k for k in self.known.entering if k >= FAR), default=0)
        first = max(0, row.start + lowest)
        return all(ct is None for ct in (*cts[first:start], *map(cts.__getitem__, row.around)))

    def _sweep(self, step: int, given: tuple[Seeded, list[Any]] | None) -> None:
        """Sweep a step; where that pays, a function is made of it for those before."""
        row, tape = self.row, self.tape
        start = row.start + step * row.length
        if given is None or not step or not self._learns(step, given[1]):
            if given is not None:
                given[1].clear()  # a cotangent is let go of as soon as the sweep has used it
            sweep(tape, start, start + row.length, (self.one,))
            self.swept += 1
            return
        held, (key, seeds) = row.held(tape.records, step), given
        copies = list(map(faithful, seeds))
        seeds.clear()
        sweep(tape, start, start + row.length, (self.one,))
        self.swept += 1
        self._learn(step, held, key, copies)

    def _learns(self, step: int, seeds: Sequence[Any]) -> bool:
        """Whether a function is made of a step. The first to be swept, the last of the row, takes other cotangents than
        those before it."""
        known, auto = self.known, self.marked.staging == "auto"
        if known.lessons >= MOST_LESSONS or not self.swept or (auto and known.count < ENOUGH):
            return False
        held = self.row.held(self.tape.records, step)
        nbytes = sum(map(nbytes_of, held))
        return nbytes <= (MOST_BYTES if auto else inf) and self._has_room(step, held, seeds, nbytes)

    def _has_room(self, step: int, held: list[Any], seeds: Sequence[Any], nbytes: int) -> bool:
        """Whether the steps that were swept have let go of as much as making a function takes: copies of what a step
        holds and takes, and a result for each of its records."""
        largest = max(map(nbytes_of, (*held, *seeds)))
        return self._has_let_go(step, 2 * nbytes + (len(self.row.records) + MORE) * largest)

    def _has_let_go(self, step: int, takes: int) -> bool:
        """Whether the steps that were swept have let go of so many bytes; or it is not worth waiting for that."""
        return takes <= SMALL or self.swept >= self.row.n // 2 or self.swept * self._freed(step) >= takes

    def _freed(self, step: int) -> int:
        """Bytes that a step holds and the one before does not."""
        row, records = self.row, self.tape.records
        before = set(map(id, row.held(records, step - 1))) if step else ()
        return sum(nbytes_of(x) for x in row.held(records, step) if id(x) not in before)

    def _works(self, step: int, reverse: PatternReverse) -> int:
        """Bytes that a function works in: its buffers, and about as much as a step holds, which goes after it."""
        kinds = [kind for kind in (reverse.own or reverse.generated).plan.buffers if kind is not None]
        return int(sum(prod(shape) * np.dtype(dtype).itemsize for shape, dtype in kinds)) + self._freed(step)

    def _learn(self, step: int, held: list[Any], key: Seeded, seeds: list[Any]) -> None:
        known = self.known
        known.lessons += 1
        program = Program(felt=known.felt)
        try:
            reverse, drafts = reverse_of_pattern(known, self._written(program, held), key, seeds)
            cts = [(k, self.one.cts[self.row.ident(k, step)]) for k in known.entering]
            require_equal(reverse.gives, [k for k, ct in cts if ct is not None], "what gets a cotangent")
            wanted = [ct for _, ct in cts if ct is not None]
            by = self.marked.staging
            given = held, seeds, wanted, None if by in STAGINGS else backend(by)
            reverse.generated = self._tried(drafts[0], reverse.generated, *given)
            if reverse.own is not None:
                reverse.own = self._tried(drafts[1], reverse.own, *given)
            known.reverses[key] = reverse
        except Exception as error:  # noqa: BLE001 - whatever a rule does with what is no array: the steps are swept
            if program.unfelt:
                known.felt = True
            else:
                known.lessons, known.why = MOST_LESSONS, str(error) or type(error).__name__
        finally:
            program.samples.clear()

    def _tried(
        self, draft: Draft, generated: Generated, held: list[Any], seeds: list[Any], wanted: list[Any], arranged: Any
    ) -> Generated:
        """A function, by the kernels of a backend where there are; raises :class:`NotStageableError` where it gives
        other cotangents than those of the sweep."""
        copies = list(map(faithful, seeds))
        with quiet():
            (found,) = generated.function(held, copies, *self.work.of(generated))
        require_equal(found, wanted, "the cotangents")
        if arranged is None:
            return generated
        generated, why = with_kernels(draft, generated, arranged, (held, seeds))
        self.known.notes += [why] if why else []
        return generated

    def _written(self, program: Program, held: list[Any]) -> PatternStatements:
        """The records of a step with symbols in the place of what they hold."""
        made = PatternStatements(self.known.entering, Forward(program))
        symbols = [program.value(x) for x in held]
        made.records += [(INPUT.opcode, 0)] * len(made.inputs)
        for record in self.row.records:
            form = FORMS[record[0]]
            prim, last = form.primitive, 1 + len(form.active)
            if not form.rules:
                marks = form.passes and form.active
                if not (marks or record[0] in WRITE_OPCODES or form in (READ, CREATE, COMPONENT)):
                    raise NotStageableError(f"a step in which {form.name} is recorded")
            elif prim.opaque or prim.guarded or prim.ordered:
                raise NotStageableError(f"{form.name} has an effect, or is a primitive from outside")
            told = [symbols[x.number] if type(x) is HeldOfRow else x for x in record[last:]]
            made.records.append((record[0], *map(made.local, record[1:last]), *told, self.known.site))
        return made
