"""The statements of a linear program for several seeds at once: each line of the text computes a place for each seed.

What does not depend on the seeds is computed once. Every statement is compared, as it is written, with what one seed at
a time gives, on drawn seeds: so each place has the bits that its seed alone would have given it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np
from attrs import define, evolve, field, frozen

from pullback.backends.plans import Ref
from pullback.recording.copies import faithful_copy
from pullback.staging.generated.forward_statements import NotStageableError
from pullback.staging.pulls.one_by_one import one_by_one
from pullback.staging.pulls.stacked_calls import CannotStackError, StackedCall, stacked, with_key
from pullback.staging.shadow.collective_pulls import draw
from pullback.staging.statements.symbols import Program, Statement, Symbol, mapped
from pullback.staging.statements.ufuncs import ufunc_of
from pullback.words.digests import same_bits
from pullback.words.specs import spec_of
from pullback.words.undocumented import quiet

DISTINCT = 4
"""How many different seeds are drawn; they come again and again in the places."""


PRODUCTS = frozenset((np.multiply, np.matmul))
"""Functions that read a large operand sooner where it lies in C order."""
LARGE = 2**16
"""Bytes of such an operand."""


@frozen(eq=False)
class Each:
    """What a value is for each of ``n`` seeds, of which the first are different, and then come again."""

    n: int
    parts: list[Any]

    def stacked(self) -> Any:
        """The array of all."""
        return np.array(self.parts)[np.arange(self.n) % len(self.parts)]


@define(eq=False)
class Stacking:
    """A program as it is written for several seeds of each kind, from the one for a single seed of each."""

    source: Program
    program: Program = field(factory=Program)
    symbols: dict[int, Symbol] = field(factory=dict)
    """The symbols by the numbers of the source."""
    each: dict[int, "Each"] = field(factory=dict)
    """What the values that depend on the seeds are for each seed."""
    stacked: set[int] = field(factory=set)
    """Their numbers in the program."""
    ordered: dict[int, Symbol] = field(factory=dict)
    """Copies in C order of values that are the same for all seeds, by the numbers of these in the program."""
    singles: dict[int, Any] = field(factory=dict)
    """What each value of the program is for the first seed."""

    def enter(self, number: int) -> Symbol:
        """The symbol of what enters, and is the same for all seeds."""
        return self._shared(number, self.program.value(self.source.samples[number]))

    def zeros(self, number: int) -> Symbol:
        """The symbol of an array that is always 0."""
        one = self.source.samples[number]
        return self._shared(number, self.program.call(np.zeros, (one.shape, one.dtype), {}))

    def seeds(self, number: int, n: int, random: np.random.Generator) -> Symbol:
        """The symbol of ``n`` seeds."""
        drawn = Each(n, [draw(random, spec_of(self.source.samples[number])) for _ in range(min(n, DISTINCT))])
        return self._one_each(number, drawn, self.program.value(drawn.stacked()))

    def statement(self, one: Statement) -> None:
        """Write a statement of the source."""
        self.program.site = one.site
        first = next((self.each[number] for number in one.reads if number in self.each), None)
        if first is None:
            self._as_it_is(one)
            return
        wanted = Each(first.n, [self._alone(one, place) for place in range(len(first.parts))])
        if not all(isinstance(x, np.ndarray | np.generic) for x in wanted.parts):
            raise NotStageableError("a value that is no array")
        args, kwargs = mapped((one.args, one.kwargs), lambda x: self.symbols[x.number] if type(x) is Ref else x)
        call = StackedCall(self.program, first.n, one, args, kwargs, wanted.parts[0], self.singles, self.stacked)
        for write in (self._in_order, stacked, one_by_one):
            made = self._tried(write, call, wanted)
            if made is not None:
                self._one_each(one.makes, wanted, made)
                return
        raise NotStageableError("another value than one seed gives")

    def _as_it_is(self, one: Statement) -> None:
        made = self._shared(one.makes, self.program.value(self.source.samples[one.makes]))
        one = with_key(one)
        args, kwargs = mapped(
            (one.args, one.kwargs), lambda x: Ref(self.symbols[x.number].number) if type(x) is Ref else x
        )
        aliases = tuple(self.symbols[number].number for number in one.aliases)
        told = evolve(one, args=args, kwargs=kwargs, makes=made.number, aliases=aliases)
        self.program.statements.append(told)

    def _alone(self, one: Statement, place: int) -> Any:
        """What a statement gives for one seed."""

        def value(leaf: Any) -> Any:
            if type(leaf) is not Ref:
                return leaf
            each = self.each.get(leaf.number)
            return self.source.samples[leaf.number] if each is None else each.parts[place]

        args, kwargs = mapped((one.args, one.kwargs), value)
        if not one.writes:
            return one.function(*args, **kwargs)
        target = faithful_copy(args[0])
        one.function(target, *args[1:])
        return target

    def _in_order(self, call: StackedCall) -> Any:
        """A product whose large operands that are the same for all seeds lie in C order: copies of them do."""
        if ufunc_of(call.statement) not in PRODUCTS or call.statement.writes:
            raise CannotStackError
        ordered = {
            number: self.ordered.get(number) or self.program.call(np.ascontiguousarray, (x,), {})
            for number, x in ((x.number, x) for x in call.args if type(x) is Symbol and not call.has_axis(x))
            if _is_out_of_order(self.singles[number])
        }
        if not ordered:
            raise CannotStackError
        singles = {**self.singles, **{x.number: self.program.samples[x.number] for x in ordered.values()}}
        args = tuple(ordered.get(x.number, x) if type(x) is Symbol else x for x in call.args)
        made = stacked(evolve(call, args=args, singles=singles))
        self.ordered |= ordered
        return made

    def _tried(self, write: Callable[[StackedCall], Any], call: StackedCall, wanted: Each) -> Symbol | None:
        n_statements, n_samples, ordered = len(self.program.statements), len(self.program.samples), {**self.ordered}
        try:
            made = write(call)
            if self._is(made, wanted):
                return made  # type: ignore[no-any-return]
        except (CannotStackError, TypeError, ValueError, IndexError):
            pass
        del self.program.statements[n_statements:], self.program.samples[n_samples:]
        self.ordered = ordered
        return None

    def _is(self, made: Any, wanted: Each) -> bool:
        found, one = self.program.samples[made.number], wanted.parts[0]
        alike = isinstance(found, np.ndarray) and found.dtype == one.dtype and found.shape == (wanted.n, *one.shape)
        return alike and same_bits(found, wanted.stacked())

    def _shared(self, number: int, made: Symbol) -> Symbol:
        self.symbols[number], self.singles[made.number] = made, self.source.samples[number]
        return made

    def _one_each(self, number: int, each: Each, made: Symbol) -> Symbol:
        self.symbols[number], self.each[number], self.singles[made.number] = made, each, each.parts[0]
        self.stacked.add(made.number)
        return made


def _is_out_of_order(x: Any) -> bool:
    return isinstance(x, np.ndarray) and x.nbytes >= LARGE and not x.flags.c_contiguous


def stacked_statements(
    source: Program,
    statements: Sequence[Statement],
    shared: Iterable[int],
    seeds: Mapping[int, int],
    zeros: AbstractSet[int] = frozenset(),
) -> Stacking:
    """The statements for several seeds, given those for one, which the values ``shared`` and ``seeds`` enter: of the
    latter so many as stands beside them. Some that are shared are arrays of zeros, whenever they enter. Raises
    :class:`NotStageableError` where there is no such program."""
    made, random = Stacking(source), np.random.default_rng(0)
    for number in shared:
        (made.zeros if number in zeros else made.enter)(number)
    for number, n in seeds.items():
        made.seeds(number, n, random)
    with quiet():
        for one in statements:
            made.statement(one)
    return made
