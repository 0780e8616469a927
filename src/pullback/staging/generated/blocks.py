"""Which statements of a generated function run in blocks: neighbouring elementwise ones on arrays larger than a cache,
so that what one hands to the next stays in it. And which other statements threads may compute side by side.

Each element is computed by the same operations as before. :func:`bits_stay` tries for each ufunc that its bits do not
depend on where in an array an element stands. Sums are always taken of whole arrays.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from attrs import define, field

from pullback.backends.plans import Kernel
from pullback.rules.nan_masking import without_nan
from pullback.staging.generated import block_runs
from pullback.staging.generated.block_runs import bits_stay, block_form_of
from pullback.staging.generated.forward_statements import read_out
from pullback.staging.generated.placing import Line, Placement
from pullback.staging.statements.symbols import Program, Statement
from pullback.staging.statements.ufuncs import elementwise_ufunc_of, into_of, ufunc_of
from pullback.words.ordered_calls import has_effect

LARGE = 3 << 18
"""Bytes of arrays from which blocks are worth their calls."""
MASKED = 8
"""Bytes of an element that has a mask's element of one byte."""
GAIN = 2
"""How many times, at least, statements of a block touch an array that another one has touched."""
_UFUNCS = frozenset((
    np.add, np.subtract, np.multiply, np.true_divide, np.negative, np.positive, np.absolute, np.square, np.sqrt,
    np.cbrt, np.reciprocal, np.maximum, np.minimum, np.sign, np.copysign, np.exp, np.exp2, np.expm1,
    np.log, np.log2, np.log10, np.log1p, np.sin, np.cos, np.tan, np.sinh, np.cosh, np.tanh, np.arcsin, np.arccos,
    np.arctan, np.arcsinh, np.arccosh, np.arctanh, np.hypot, np.arctan2, np.power, np.logaddexp, np.less,
    np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal,
))  # fmt: skip
_LOGICAL = frozenset((
    np.logical_and, np.logical_or, np.logical_xor, np.logical_not, np.bitwise_and, np.bitwise_or, np.bitwise_xor,
    np.invert,
))  # fmt: skip
_ASKED = (np.multiply, np.divide, np.power, np.square, np.sqrt, np.reciprocal)
"""What forms that are no ufuncs compute with."""
_FLOATS = "fd"
AHEAD = 16
"""How far a statement may come forward."""
_ALONE = frozenset((
    np.where, np.roll, np.take, np.sort, np.argsort, np.cumsum, np.concatenate, np.stack, ".sum()", ".mean()",
    ".cumsum()", ".astype()", ".copy()", ".take()", "**",
))  # fmt: skip
"""What calls no library that has threads of its own: how these divide a product may depend on who else has some."""


@define(eq=False)
class Block:
    """Statements that run block by block. Names are those of the text."""

    places: list[int] = field(factory=list)
    reads: dict[str, None] = field(factory=dict)
    """Arrays from before, which are read."""
    stored: dict[str, tuple[int, int, str]] = field(factory=dict)
    """Arrays that somebody reads afterwards, or that were there before, with the first value that lies in each, the
    last, and what they are computed into."""
    scratch: dict[str, Any] = field(factory=dict)
    """Arrays that nobody else reads, with their dtypes: of these there is only a block at a time."""
    intos: dict[int, str] = field(factory=dict)
    """What each value is computed into, by its number, as :class:`~pullback.staging.generated.placing.Line` says it;
    ``own`` where a block does so, and the line alone would not; ``in place`` of a cotangent that is made free of
    NaN."""
    shape: int | tuple[int, ...] = 0
    """How many elements in a row; the shape of the arrays where rows of them meet an array that is the same in all."""


@define(eq=False)
class Beside:
    """The places of statements of which none touches what another makes: threads may compute them at once."""

    places: list[int]


Item = int | Kernel | Block | Beside
"""What a function does in turn: a line of its plan, or several."""


def in_blocks(
    program: Program, plan: Placement, leaving: Iterable[int], order: Sequence[int | Kernel] | None
) -> list[Item]:
    """The places of the lines of a plan in their order, or in that of a backend, with those in blocks that gain by it,
    and those side by side that take long."""
    given = range(len(plan.lines)) if order is None else order
    if not any(_is_large(program.samples[line.statement.makes]) for line in plan.lines):
        return list(given)
    return _Finder(program, plan, frozenset(leaving)).found(given)


def _is_large(sample: Any) -> bool:
    """Whether an array is large; a mask where what it masks would be."""
    return isinstance(sample, np.ndarray) and sample.nbytes >= (LARGE // MASKED if sample.dtype == bool else LARGE)


@define(eq=False)
class _Finder:
    program: Program
    plan: Placement
    leaving: frozenset[int]
    memory: dict[int, str] = field(factory=dict)
    """The array that is a value, by number."""
    readers: Counter[int] = field(factory=Counter)
    """How many statements read a value."""
    looks: dict[int, frozenset[str]] = field(factory=dict)
    """The arrays that each view may look at."""
    order: list[Item] = field(factory=list)
    group: list[int] = field(factory=list)
    made: set[int] = field(factory=set)
    """Values of the group."""
    written: set[str] = field(factory=set)
    viewed: set[str] = field(factory=set)
    """Arrays of which the group reads elements that stand elsewhere."""
    size: tuple[int, ...] = ()

    def found(self, order: Iterable[int | Kernel]) -> list[Item]:
        """The order, with blocks, and with what is computed side by side."""
        for line in self.plan.lines:
            self.readers.update(line.statement.reads)
        for line in self.plan.lines:
            self._remember(line)
        for place in order:
            if isinstance(place, Kernel):
                self._close()
                self.order.append(place)
                continue
            line = self.plan.lines[place]
            if self._fits(line):
                if self.group and not self._joins(line):
                    self._close()
                if self._joins(line):
                    self._join(place, line)
                    continue
            elif self.group and self._may_come_before(line):
                self.order.append(place)  # the group is appended when it is closed
                continue
            self._close()
            self.order.append(place)
        self._close()
        return self._side_by_side()

    def _side_by_side(self) -> list[Item]:
        """The order, with long statements beside the first of those of which they are independent; what comes in
        between must be so, too."""
        found: list[Item] = []
        moved: set[int] = set()
        for k, item in enumerate(self.order):
            if k in moved:
                continue
            together = [item] if isinstance(item, int) and self._is_long(item) else []
            reads, writes = self._touched_by(item) if together else (set(), set())
            for j in range(k + 1, min(k + AHEAD, len(self.order)) if together else 0):
                other = self.order[j]
                if j in moved:
                    continue
                if isinstance(other, Kernel) or self._stands(other):
                    break
                new_reads, new_writes = self._touched_by(other)
                free = not (new_reads & writes or new_writes & (reads | writes))
                if free and isinstance(other, int) and self._is_long(other):
                    together.append(other)
                    moved.add(j)
                reads, writes = reads | new_reads, writes | new_writes
            found.append(Beside(together) if len(together) > 1 else item)
        return found

    def _lines_of(self, item: Any) -> list[Line]:
        return [self.plan.lines[place] for place in ([item] if isinstance(item, int) else item.places)]

    def _touched_by(self, item: Item) -> tuple[set[str], set[str]]:
        """The arrays that are read, and those that are written or made."""
        lines = self._lines_of(item)
        reads = {name for line in lines for n in line.statement.reads for name in self._seen(n)}
        makes = [line.statement.makes for line in lines]
        return reads, {name for n in makes for name in (self._of(n), f"v{n}")}

    def _stands(self, item: Item) -> bool:
        """Whether nothing may go past it: who reads values, has effects, or copies what looks at an array."""
        return any(
            line.detached or line.statement.function is read_out or has_effect(line.statement.function)
            for line in self._lines_of(item)
        )

    def _is_long(self, place: int) -> bool:
        """Whether a statement takes long, and gives the same in any thread beside any other."""
        line, samples = self.plan.lines[place], self.program.samples
        statement = line.statement
        if statement.writes or statement.aliases or not any(
            _is_large(samples[n]) for n in (statement.makes, *statement.reads)
        ):  # fmt: skip
            return False
        function = statement.function
        if ufunc_of(statement) is not elementwise_ufunc_of(statement):
            return False
        return bool(
            into_of(statement)
            or statement.symbol in _ALONE
            or function in _ALONE
            or isinstance(getattr(function, "__self__", function), np.ufunc)
            or str(getattr(function, "__module__", "")).startswith("numpy.fft")
        )

    def _remember(self, line: Line) -> None:
        """Where a value lies."""
        statement = line.statement
        if line.into:
            self.memory[statement.makes] = self._named(line.into)
        elif statement.writes and line.in_place:
            self.memory[statement.makes] = self._of(statement.reads[0])
            self.looks[statement.makes] = self._seen(statement.reads[0])
        elif self._is_cleaned(statement):
            self.memory[statement.makes] = self._of(statement.reads[0])
        elif statement.aliases:
            seen = frozenset().union(*map(self._seen, statement.aliases))
            self.looks[statement.makes] = seen | {f"v{statement.makes}"}

    def _is_cleaned(self, statement: Statement) -> bool:
        """Whether a statement makes a cotangent free of NaN which nobody else reads."""
        if statement.function is not without_nan:
            return False
        given = statement.reads[0]
        return self.readers[given] == 1 and given not in self.looks and given not in self.leaving

    def _named(self, into: str) -> str:
        kind, number = into.split()
        return self._of(int(number)) if kind == "value" else f"{kind[0]}{number}"

    def _of(self, number: int) -> str:
        return self.memory.get(number, f"v{number}")

    def _seen(self, number: int) -> frozenset[str]:
        """The arrays that a value may look at."""
        return self.looks.get(number) or frozenset((self._of(number),))

    def _fits(self, line: Line) -> bool:
        """Whether a line can be computed block by block at all."""
        statement, samples = line.statement, self.program.samples
        made = samples[statement.makes]
        if statement.writes or not _is_large(made) or not made.flags.c_contiguous:
            return False
        if statement.function is without_nan:
            return statement.reads[0] in self.made and self._is_cleaned(statement)
        if statement.aliases or not (line.into or block_form_of(statement, samples)):
            return False
        given = [samples[n] for n in statement.reads]
        arrays = [x for x in given if isinstance(x, np.ndarray)]
        kinds = {x.dtype.char for x in arrays} - {"?"}
        kind = kinds.pop() if kinds else "?"
        if kinds or kind not in _FLOATS + "?" or made.dtype.char not in (kind, "?"):
            return False
        for x in given:
            if isinstance(x, np.generic) and x.dtype.char != kind:
                return False
            if not isinstance(x, np.ndarray | np.generic) and type(x) not in (float, int):
                return False
        if not all(_is_alike(x, made) or (_is_in_rows(x, made) and _has_short_rows(made)) for x in arrays):
            return False
        if any(type(x) is not np.ndarray or x.ndim > made.ndim for x in arrays):
            return False
        function = ufunc_of(statement)
        if kind == "?":
            return function in _LOGICAL
        if function is None or statement.computes_into:
            return all(bits_stay(ufunc, kind) for ufunc in _ASKED)
        return function in _UFUNCS and bits_stay(function, kind)

    def _joins(self, line: Line) -> bool:
        """Whether a line that fits fits into the group."""
        statement = line.statement
        made = self.program.samples[statement.makes]
        if self.group and made.shape != self.size:
            return False
        own = self._of(statement.makes)
        viewed = self._viewed(line)
        # What stands elsewhere in an array than the element that is computed is read before anything is written there.
        return own not in viewed | self.viewed and not viewed & self.written

    def _viewed(self, line: Line) -> set[str]:
        """The arrays of which a line reads what is not the element at the same place."""
        found: set[str] = set()
        for number in line.statement.reads:
            if isinstance(self.program.samples[number], np.ndarray) and number in self.looks:
                found |= self.looks[number]
        return found

    def _join(self, place: int, line: Line) -> None:
        statement = line.statement
        self.group.append(place)
        self.made.add(statement.makes)
        self.size = self.program.samples[statement.makes].shape
        self.written.add(self._of(statement.makes))
        self.viewed |= self._viewed(line)

    def _may_come_before(self, line: Line) -> bool:
        """Whether a line that is not in the group can be done before it: a view of what the group does not compute."""
        statement = line.statement
        if not statement.aliases or statement.writes or line.into or statement.function is read_out:
            return False
        return not any(self._seen(n) & self.written or n in self.made for n in statement.reads)

    def _close(self) -> None:
        """The group is over."""
        group, made = self.group, self.made
        touched = [name for place in group for name in self._touched(self.plan.lines[place])]
        if group and len(touched) >= len(set(touched)) + GAIN:
            self.order.append(self._block(group, made))
        else:
            self.order += group
        self.group, self.made, self.written, self.viewed = [], set(), set(), set()

    def _touched(self, line: Line) -> set[str]:
        """The arrays that a line reads or writes."""
        samples, made = self.program.samples, line.statement.makes
        return {self._of(n) for n in (made, *line.statement.reads) if getattr(samples[n], "nbytes", 0) >= LARGE}

    def _block(self, group: list[int], made: set[int]) -> Block:
        lines, samples = self.plan.lines, self.program.samples
        whole = [samples[n] for place in group for n in (lines[place].statement.makes, *lines[place].statement.reads)]
        arrays = [x for x in whole if isinstance(x, np.ndarray)]
        alike = all(_is_alike(x, samples[lines[group[0]].statement.makes]) for x in arrays)
        block = Block(group, shape=int(np.prod(self.size)) if alike else self.size)
        last: dict[str, tuple[int, int]] = {}
        outside = {n for k, line in enumerate(lines) if k not in group for n in (*line.statement.reads, *line.detached)}
        outside |= self.leaving
        kept: set[str] = set()
        for place in group:
            line = lines[place]
            for n in line.statement.reads:
                if isinstance(samples[n], np.ndarray) and n not in made:
                    block.reads[f"v{n}"] = None
            memory = self._of(line.statement.makes)
            if line.into.startswith("value ") and memory not in last:
                kept.add(memory)
            makes = line.statement.makes
            block.intos[makes] = line.into or ("in place" if line.statement.function is without_nan else "own")
            last[memory] = last.get(memory, (makes, makes))[0], makes
            if line.statement.makes in outside:
                kept.add(memory)
        for memory, (first, number) in last.items():
            if memory in kept:
                into = block.intos[first]
                if into == "own":
                    into = f"fresh {len(self.plan.fresh)}"
                    self.plan.fresh.append((samples[first].shape, samples[first].dtype))
                    self.plan.slots.append(False)
                block.stored[memory] = first, number, into
            else:
                block.scratch[memory] = samples[number].dtype
        return block


def _is_alike(x: Any, made: Any) -> bool:
    """Whether the elements of an operand lie in a row as those of the result, or are all the same."""
    return (x.flags.c_contiguous and x.shape == made.shape) or not any(x.strides)


def _is_in_rows(x: Any, made: Any) -> bool:
    """Whether an operand is the same in some directions, and dense in the others."""
    dense = x[tuple(slice(None) if stride else 0 for stride in x.strides)]
    return bool(np.asarray(dense).flags.c_contiguous) and x.ndim <= made.ndim


def _has_short_rows(made: Any) -> bool:
    """Whether a block has more than one of the rows of a result."""
    return bool(made.ndim > 1 and 2 * made.nbytes <= block_runs.BLOCK * len(made))
