"""Which statements of a function run in blocks: elementwise ones on arrays that no cache holds, one after the other, so
that what they hand to one another stays in the cache.

Each element is computed by the same operations as before, so the bits are the same: :func:`bits_stay` tries for a ufunc
that they do not depend on where in an array an element stands. Sums are taken of whole arrays.
"""

from collections.abc import Collection, Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np
from attrs import define, field

from pullback.backends.plans import Kernel
from pullback.staging.forward_statements import read_out
from pullback.staging.placing import Line, Plan, into_of, ufunc_of
from pullback.staging.symbols import Program

LARGE = 3 << 18
"""Bytes of arrays from which blocks are worth their calls."""
GAIN = 2
"""How many times, at least, statements of a block touch an array that another one has touched."""
_UFUNCS = frozenset((
    np.add, np.subtract, np.multiply, np.true_divide, np.negative, np.positive, np.absolute, np.square, np.sqrt,
    np.cbrt, np.reciprocal, np.maximum, np.minimum, np.sign, np.copysign, np.exp, np.exp2, np.expm1,
    np.log, np.log2, np.log10, np.log1p, np.sin, np.cos, np.tan, np.sinh, np.cosh, np.tanh, np.arcsin, np.arccos,
    np.arctan, np.arcsinh, np.arccosh, np.arctanh, np.hypot, np.arctan2, np.power, np.logaddexp, np.less,
    np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal,
))  # fmt: skip
_FLOATS = "fd"


@define(eq=False)
class Block:
    """Statements that run block by block. Names are those of the text."""

    places: list[int] = field(factory=list)
    reads: dict[str, None] = field(factory=dict)
    """Arrays from before, which are read."""
    stored: dict[str, tuple[int, int]] = field(factory=dict)
    """Arrays that somebody reads afterwards, or that were there before, with the first value that lies in each, and the
    last."""
    scratch: dict[str, Any] = field(factory=dict)
    """Arrays that nobody else reads, with their dtypes: of these there is only a block at a time."""
    size: int = 0


def in_blocks(
    program: Program, plan: Plan, leaving: Iterable[int], order: Sequence[int | Kernel] | None = None
) -> list[int | Kernel | Block]:
    """The places of the lines of a plan in their order, or in that of a backend, with those in blocks that gain by
    it."""
    given = range(len(plan.lines)) if order is None else order
    if not any(_is_large(program.samples[line.statement.makes]) for line in plan.lines):
        return list(given)
    return _Finder(program, plan, frozenset(leaving)).found(given)


def _is_large(sample: Any) -> bool:
    return isinstance(sample, np.ndarray) and sample.nbytes >= LARGE


@define(eq=False)
class _Finder:
    program: Program
    plan: Plan
    leaving: frozenset[int]
    memory: dict[int, str] = field(factory=dict)
    """The array that is a value, by number."""
    looks: dict[int, frozenset[str]] = field(factory=dict)
    """For a view the arrays that it may look at."""
    order: list[int | Kernel | Block] = field(factory=list)
    group: list[int] = field(factory=list)
    made: set[int] = field(factory=set)
    """Values of the group."""
    written: set[str] = field(factory=set)
    viewed: set[str] = field(factory=set)
    """Arrays of which the group reads elements that stand elsewhere."""
    size: tuple[int, ...] = ()

    def found(self, order: Iterable[int | Kernel]) -> list[int | Kernel | Block]:
        """The order, with blocks."""
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
        return self.order

    def _remember(self, line: Line) -> None:
        """Where a value lies."""
        statement = line.statement
        if line.into:
            self.memory[statement.makes] = self._named(line.into)
        elif statement.writes and line.in_place:
            self.memory[statement.makes] = self._of(statement.reads[0])
            self.looks[statement.makes] = self._seen(statement.reads[0])
        elif statement.aliases:
            seen = frozenset().union(*map(self._seen, statement.aliases))
            self.looks[statement.makes] = seen | {f"v{statement.makes}"}

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
        if not line.into or statement.writes or not _is_large(made) or not made.flags.c_contiguous:
            return False
        function = into_of(statement)
        given = [samples[n] for n in statement.reads]
        arrays = [x for x in given if isinstance(x, np.ndarray)]
        kinds = {x.dtype.char for x in arrays}
        kind = kinds.pop() if kinds else ""
        if kinds or kind not in _FLOATS or made.dtype.char not in (kind, "?") or not kind:
            return False
        for x in given:
            if isinstance(x, np.generic) and x.dtype.char != kind:
                return False
            if not isinstance(x, np.ndarray | np.generic) and type(x) not in (float, int):
                return False
        if not all((x.flags.c_contiguous and x.shape == made.shape) or not any(x.strides) for x in arrays):
            return False
        if any(type(x) is not np.ndarray or x.ndim > made.ndim for x in arrays):
            return False
        if statement.computes_into:
            return all(bits_stay(ufunc, kind) for ufunc in (np.multiply, np.divide))
        return function in _UFUNCS and function is ufunc_of(statement) and bits_stay(function, kind)

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
        block = Block(group, size=int(np.prod(self.size)))
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
            last[memory] = last.get(memory, (makes, makes))[0], makes
            if line.statement.makes in outside:
                kept.add(memory)
        for memory, (first, number) in last.items():
            if memory in kept:
                block.stored[memory] = first, number
            else:
                block.scratch[memory] = samples[number].dtype
        return block


@cache
def bits_stay(ufunc: Any, kind: str) -> bool:
    """Whether a ufunc gives an element the same bits wherever it stands in an array, as it does unless it computes the
    last elements of an array, or those at odd addresses, by other instructions than the others."""
    random = np.random.default_rng(5)
    given = [_drawn(random, kind) for _ in range(ufunc.nin)]
    with np.errstate(all="ignore"):
        for numbers in ((), (0,), (1,)) if ufunc.nin == 2 else ((),):
            args = [x[0] if k in numbers else x for k, x in enumerate(given)]
            whole = ufunc(*args)
            for start, stop in _cuts(random, len(given[0])):
                part = [x if np.ndim(x) == 0 else x[start:stop] for x in args]
                if ufunc(*part).tobytes() != whole[start:stop].tobytes():
                    return False
    return True


def _drawn(random: np.random.Generator, kind: str) -> Any:
    x = random.standard_normal(1031) * random.choice([1e-3, 1.0, 30.0, 1e4], 1031)
    special = random.random(1031) < 0.4  # of fmax(0, -0) the sign depends on the place
    x[special] = random.choice([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, 1e-310, 700.0], 1031)[special]
    return x.astype(kind)


def _cuts(random: np.random.Generator, n: int) -> Collection[tuple[int, int]]:
    found = [(k, k + m) for k in range(9) for m in (1, 2, 3, 5, 8, 17, 64, 101)]
    starts = random.integers(0, n - 1, 40)
    return [*found, *((int(k), int(random.integers(k + 1, n + 1))) for k in starts)]
