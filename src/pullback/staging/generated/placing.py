"""The plan of a generated function, made from its statements: which are needed, when each value is read last, which
writes go in place, and which results share a buffer. ``text`` writes the function from it."""

import math
from collections.abc import Container, Iterable, Sequence
from typing import Any

import numpy as np
from attrs import define, evolve, field

from pullback.staging.generated.forward_statements import read_out
from pullback.staging.statements.rewrites import rewritten
from pullback.staging.statements.symbols import Program, Statement, looked_at
from pullback.staging.statements.ufuncs import elementwise_ufunc_of, into_of
from pullback.words.ordered_calls import has_effect

LARGE = 16_384
"""Bytes from which results are computed into buffers."""
SMALL = 512
"""Bytes from which results are computed over what is read for the last time; the memory of what is smaller NumPy has
at hand."""
SLOT = 1024
"""Bytes from which what the reverse alone reads is computed into arrays that may lie together with those of other
steps."""


@define(eq=False)
class Line:
    """A statement with what was decided for it."""

    statement: Statement
    into: str = ""
    """What the result is computed into: ``buffer 3``, ``value 12``, ``fresh 4``; empty where NumPy makes it."""
    in_place: bool = False
    """Whether a write changes the array of its target."""
    detached: tuple[int, ...] = ()
    """Values that are copied before the write, since they look at what it changes."""


@define(eq=False)
class Placement:
    """The lines of a function, and the arrays that it works in."""

    lines: list[Line] = field(factory=list)
    buffers: list[tuple[tuple[int, ...], Any] | None] = field(factory=list)
    """Shape and dtype of each buffer, which is used in every call; None for one that blocks make needless."""
    fresh: list[tuple[tuple[int, ...], Any]] = field(factory=list)
    """Shape and dtype of each result that leaves: its memory is used again as soon as nobody has it."""
    warns: bool = False
    """Whether what NumPy warns of is told."""
    slots: list[bool] = field(factory=list)
    """Which of these hold nothing but what the reverse reads."""
    divided: bool = False
    """Whether the function is told how many threads it may divide its blocks among."""

    @property
    def nbytes(self) -> int:
        """Bytes of the buffers."""
        return sum(math.prod(kind[0]) * int(kind[1].itemsize) for kind in self.buffers if kind is not None)

    def with_buffers(self, used: Container[int]) -> "Placement":
        """The same plan without the buffers that are not used."""
        return evolve(self, buffers=[kind if k in used else None for k, kind in enumerate(self.buffers)])


def plan_of(
    program: Program,
    statements: list[Statement],
    leaving: Iterable[int],
    given: Iterable[int] = (),
    *,
    all_of: bool = False,
    swept: Sequence[Statement] = (),
    slots: Iterable[int] = (),
) -> Placement:
    """The plan of a function that computes the values ``leaving``; those that are ``given`` it may write to. With
    ``all_of`` it computes, too, what nobody reads, since NumPy may have to warn of it; not so of what is ``swept``
    then. The values among these that are ``slots`` leave for the reverse alone."""
    kept = frozenset(leaving)
    then = needed(swept, kept, all_of=False)
    read = kept.union(n for statement in then for n in statement.reads)
    first = needed(statements, read, all_of=all_of)
    told = frozenset(statement.makes for statement in first if all_of)
    live = rewritten(program, [*first, *then], kept, told=told, large=LARGE)
    stays: frozenset[int] = frozenset()
    while True:
        planner = _Planner(program, live, kept, set(given), set(given), frozenset(slots), stays)
        made, left = planner.plan(), planner.left_behind()
        if not left:
            break
        stays |= left  # which is known now: the memory of another operand was taken in the place of theirs
    made.warns = all_of
    return made


def needed(statements: Sequence[Statement], kept: frozenset[int], *, all_of: bool) -> list[Statement]:
    """The statements by which the values are made that are ``kept``, and those that have an effect; with ``all_of``
    those, too, that nobody reads."""
    wanted, found = set(kept), []
    for statement in reversed(statements):
        if statement.makes in wanted or (all_of and not statement.aliases) or has_effect(statement.function):
            wanted.update(statement.reads)
            found.append(statement)
    return found[::-1]


@define(eq=False)
class _Planner:
    program: Program
    statements: list[Statement]
    kept: frozenset[int]
    ours: set[int]
    """Roots that were made here, or are given to be written to."""
    given: set[int]
    """Roots that are given to be written to, and what was computed into their memory."""
    slots: frozenset[int]
    """Values that leave, and that nobody has but the reverse."""
    stays: frozenset[int]
    """Values whose memory is known not to leave."""
    roots: dict[int, frozenset[int]] = field(factory=dict)
    """The values whose memory each value may look at."""
    lookers: dict[int, list[int]] = field(factory=dict)
    """The values that have looked at each root since a write to it last went in place."""
    fresh_of: dict[int, int] = field(factory=dict)
    """Root to the value for which its memory was made anew."""
    whole: dict[int, int] = field(factory=dict)
    """The values that are all of the memory of a root, as it is or after writes to it."""
    last: dict[int, int] = field(factory=dict)
    """The number of the statement that reads a value last; for one that leaves, their count."""
    until: dict[int, int] = field(factory=dict)
    """The same for the memory of a value."""
    becoming: dict[int, int | None] = field(factory=dict)
    """The result that leaves whose memory each value's own can become."""
    had: frozenset[int] = frozenset()
    """The values whose memory somebody else may look at."""
    buffer_of: dict[int, int] = field(factory=dict)
    """Root to the buffer it lies in."""
    idle: list[int] = field(factory=list)
    logged: set[int] = field(factory=set)
    """What calls that have an effect have given: whoever followed the step keeps it as it is."""
    made: Placement = field(factory=Placement)

    def plan(self) -> Placement:
        """Line by line."""
        for at, statement in enumerate(self.statements):
            for number in statement.reads:
                self.last[number] = at
        for number in self.kept:
            self.last[number] = len(self.statements)
        self._look_ahead()
        made = {statement.makes for statement in self.statements if has_effect(statement.function)}
        self.logged = made.intersection(s.args[0].number for s in self.statements if s.function is read_out)
        for at, statement in enumerate(self.statements):
            line = Line(statement)
            if statement.writes:
                self._write(at, line)
            elif statement.aliases:
                self._look(statement.makes, frozenset().union(*map(self._roots_of, statement.aliases)))
            else:
                self._compute(at, line)
            self.made.lines.append(line)
            self._release(at)
        return self.made

    def left_behind(self) -> frozenset[int]:
        """The values for which memory was made anew that does not leave: a buffer serves as well."""
        leaving = {self.fresh_of.get(root) for number in self.kept for root in self._roots_of(number)}
        return frozenset(self.fresh_of.values()) - leaving

    def _roots_of(self, number: int) -> frozenset[int]:
        found = self.roots.get(number)
        return frozenset((number,)) if found is None else found

    def _look(self, number: int, roots: frozenset[int]) -> None:
        self.roots[number] = roots
        for root in roots:
            self.lookers.setdefault(root, []).append(number)

    def _look_ahead(self) -> None:
        """Note until when the memory of each value is in use, whether a write goes in place or not."""
        until, had = dict(self.last), set(self.kept - self.slots)
        for statement in reversed(self.statements):
            makes, then = statement.makes, until.get(statement.makes, -1)
            for source in looked_at(statement):
                until[source] = max(until.get(source, -1), then)
                if makes in had:
                    had.add(source)
            if statement.aliases:  # which has no memory of its own
                until.pop(makes, None)
                had.discard(makes)
        self.until, self.had = until, frozenset(had)
        for statement in reversed(self.statements):
            self.becoming[statement.makes] = self._becomes(statement.makes)

    def _sample(self, number: int) -> Any:
        return self.program.samples[number]

    def _write(self, at: int, line: Line) -> None:
        statement = line.statement
        target, makes = statement.reads[0], statement.makes
        roots = self._roots_of(target)
        if len(roots) == 1 and roots <= self.ours and self._sample(target).flags.writeable:
            (root,) = roots
            others = [
                n for n in dict.fromkeys((*self.lookers.get(root, ()), root))
                if self.last.get(n, -1) > at and root in self._roots_of(n)
            ]  # fmt: skip
            whole = self._sample(target)
            if all(2 * self._sample(n).nbytes <= whole.nbytes for n in others):
                self.lookers[root] = []
                for number in others:
                    self._look(number, frozenset((number,)))
                    self.ours.add(number)
                line.in_place, line.detached = True, tuple(others)
                self._look(makes, roots)
                if target in self.whole or target in roots:
                    self.whole[makes] = self.whole.get(target, target)
                return
        self._look(makes, frozenset((makes,)))
        self.ours.add(makes)
        sample = self._sample(makes)
        if sample.flags.c_contiguous and sample.nbytes >= LARGE:
            line.into = self._buffer(makes, sample)

    def _compute(self, at: int, line: Line) -> None:
        statement, makes = line.statement, line.statement.makes
        self._look(makes, frozenset((makes,)))
        if makes not in self.logged:
            self.ours.add(makes)
        sample = self._sample(makes)
        if not isinstance(sample, np.ndarray) or not sample.flags.c_contiguous:
            return
        blank = statement.function in (np.zeros, np.empty)
        if not blank and into_of(statement) is None:
            return
        asked = (sample.nbytes >= SMALL or self.given) and elementwise_ufunc_of(statement) is not None
        over = self._dying(at, statement, sample) if asked else None
        if sample.nbytes < LARGE and (over is None or not (sample.nbytes >= SMALL or self._is_given(over))):
            if sample.nbytes >= SLOT and self.becoming[makes] in self.slots - self.had:
                line.into = self._fresh(makes, sample)
            return
        if over is not None:
            self._take(over, makes)
            line.into = f"value {over}"
            return
        line.into = self._buffer(makes, sample)

    def _is_given(self, number: int) -> bool:
        return self.whole.get(number, number) in self.given

    def _dying(self, at: int, statement: Statement, sample: Any) -> int | None:
        """An operand that is read here for the last time and whose memory the result can have."""
        leaves = self.until.get(statement.makes, -1) >= len(self.statements)
        for number in statement.reads:
            given, root = self._sample(number), self.whole.get(number, number)
            if self._roots_of(number) != frozenset((root,)) or root not in self.ours or self.until.get(root, -1) != at:
                continue
            if type(given) is not np.ndarray or given.shape != sample.shape or given.dtype != sample.dtype:
                continue
            if given.strides != sample.strides or (leaves and root in self.buffer_of):
                continue
            if any(n != number and root in self._roots_of(n) for n in statement.reads):
                continue
            return number
        return None

    def _take(self, over: int, makes: int) -> None:
        root = self.whole.get(over, over)
        if root in self.buffer_of:
            self.buffer_of[makes] = self.buffer_of.pop(root)
        if root in self.fresh_of:
            self.fresh_of[makes] = self.fresh_of.pop(root)
        if root in self.given:
            self.given.add(makes)
        self.ours.discard(root)

    def _becomes(self, number: int) -> int | None:
        """The result that leaves whose memory that of a value can become, as known for those made later; None where
        there is none, and where it is so small that nobody asks."""
        until, sample = self.until.get(number, -1), self._sample(number)
        if number in self.stays or until < 0 or not isinstance(sample, np.ndarray) or sample.nbytes < SLOT:
            return None
        if until >= len(self.statements):
            return number
        reader = self.statements[until]
        made = self._sample(reader.makes)
        if number not in reader.reads or elementwise_ufunc_of(reader) is None or not isinstance(made, np.ndarray):
            return None
        if made.shape != sample.shape or made.dtype != sample.dtype or made.strides != sample.strides:
            return None
        return self.becoming[reader.makes]

    def _fresh(self, makes: int, sample: Any) -> str:
        self.fresh_of[makes] = makes
        self.made.fresh.append((sample.shape, sample.dtype))
        self.made.slots.append(self.becoming[makes] in self.slots - self.had)
        return f"fresh {len(self.made.fresh) - 1}"

    def _buffer(self, makes: int, sample: Any) -> str:
        kind = sample.shape, sample.dtype
        if self.becoming[makes] is not None:
            return self._fresh(makes, sample)
        for place in self.idle:
            if self.made.buffers[place] == kind:
                self.idle.remove(place)
                break
        else:
            place = len(self.made.buffers)
            self.made.buffers.append(kind)
        self.buffer_of[makes] = place
        return f"buffer {place}"

    def _release(self, at: int) -> None:
        for root in [root for root in self.buffer_of if self.until.get(root, -1) <= at]:
            self.idle.append(self.buffer_of.pop(root))
