"""Symbols: what forwards and rules are run on, once, so that the NumPy calls they make are written down as statements.

A symbol answers what depends on shape, dtype and strides, which are compared in every step. It refuses to become a
number, a truth value or a plain array: what would then depend on the values would be frozen. A function that needs
that is called as a whole (:meth:`Program.whole`).
"""

import operator
from collections.abc import Callable
from functools import cache
from typing import Any, NoReturn

import numpy as np
from attrs import define, field

from pullback.backends.plans import Ref
from pullback.recording.copies import faithful_copy
from pullback.words.undocumented import quiet

UNASKED = object()


class NotTraceableError(Exception):
    """A function asks a symbol for its value."""


@define(eq=False)
class Statement:
    """``values[makes] = function(*args, **kwargs)``. A write is applied to its first argument, which then is another
    value: ``function`` changes it in place."""

    function: Callable[..., Any] = field(repr=False)
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    makes: int
    writes: bool = False
    symbol: str = ""
    """The operator, or the words around the arguments, by which it is written."""
    aliases: tuple[int, ...] = ()
    """The values with which the result shares memory."""
    site: int = 0
    """The line of the user's that it is computed for."""
    computes_into: Any = field(default=None, repr=False)
    """A function that computes the same into an array, element by element, where it is no ufunc."""
    chain: Any = field(default=None, repr=False)
    """What joins it to another such statement that makes its first argument: who makes one function, and one that
    computes into an array, of the kinds of several; and its own kind."""

    elementwise: bool = False
    """Whether a function that is no ufunc computes element by element, from operands that are broadcast."""
    reads: tuple[int, ...] = field(init=False, repr=False)
    """The numbers of the values that are read."""
    ufunc: Any = field(default=UNASKED, init=False, repr=False)
    """What ``ufuncs.ufunc_of`` has found."""

    def __attrs_post_init__(self) -> None:
        self.reads = (*numbers_in(self.args), *numbers_in(self.kwargs))


def looked_at(statement: Statement) -> tuple[int, ...]:
    """The values whose memory that of what a statement makes may be."""
    return statement.reads[:1] if statement.writes else statement.aliases


def numbers_in(tree: Any) -> list[int]:
    """The numbers of the values in a structure of arguments."""
    if type(tree) is Ref:
        return [tree.number]
    if type(tree) in (tuple, list):
        return [n for part in tree for n in numbers_in(part)]
    if type(tree) is dict:
        return [n for part in tree.values() for n in numbers_in(part)]
    if type(tree) is slice:
        return [n for part in (tree.start, tree.stop, tree.step) for n in numbers_in(part)]
    return []


def mapped(tree: Any, function: Callable[[Any], Any]) -> Any:
    """A structure of arguments with ``function`` applied to its leaves."""
    if type(tree) in (tuple, list):
        return type(tree)([mapped(x, function) if isinstance(x, _TREES) else function(x) for x in tree])
    if isinstance(tree, tuple):
        return type(tree)(*(mapped(part, function) for part in tree))  # a named tuple
    if type(tree) is dict:
        return {name: mapped(part, function) for name, part in tree.items()}
    if type(tree) is slice:
        return slice(mapped(tree.start, function), mapped(tree.stop, function), mapped(tree.step, function))
    return function(tree)


def renamed(source: dict[int, int], leaf: Any) -> Any:
    """A leaf of such a structure that refers to another value, where ``source`` names one."""
    return Ref(source.get(leaf.number, leaf.number)) if type(leaf) is Ref else leaf


_TREES = (tuple, list, dict, slice)
FELT = 1 << 16
"""Bytes of an array from which its sample need not be felt in memory."""


@define(eq=False)
class Program:
    """The statements so far, with a sample of every value: statements are carried out as they come.

    A statement depends on the kinds of values and on which share memory, hardly ever on what they are. So while
    ``felt`` is not set, a large array that a statement makes leaves in its place one of the same kind that nobody has
    written to, which takes no memory; who makes something of such a program tries again with ``felt`` where that fails.
    """

    statements: list[Statement] = field(factory=list)
    samples: list[Any] = field(factory=list)
    site: int = 0
    felt: bool = True
    unfelt: int = 0
    """How many values have been left out so."""
    computed_by: dict[Statement, Any] = field(factory=dict, init=False, repr=False)
    """What each statement computes, as far as that has been asked (``repeats``)."""

    def value(self, sample: Any) -> "Symbol":
        """A symbol for a value that enters."""
        self.samples.append(sample)
        return Symbol(self, len(self.samples) - 1)

    def call(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Any, symbol: str = "") -> Any:
        """One statement; symbols for what it gives."""
        samples = self.samples
        plain_args, plain_kwargs = mapped((args, dict(kwargs)), lambda x: samples[x.number] if type(x) is Symbol else x)
        with quiet():
            result = function(*plain_args, **plain_kwargs)
        given, options = mapped((args, dict(kwargs)), _as_ref)
        return self._told(Statement(function, given, options, 0, symbol=symbol, site=self.site), result)

    def whole(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Any) -> Any:
        """``function`` on symbols: its NumPy calls as statements; as one where it cannot be followed."""
        n_statements, n_samples = len(self.statements), len(self.samples)
        try:
            result = function(*args, **kwargs)
            _require_symbols(result)
        except Exception:  # noqa: BLE001 - whatever a function does with what is no array
            del self.statements[n_statements:], self.samples[n_samples:]
            return self.call(function, args, kwargs)
        return result

    def write(self, target: "Symbol", function: Callable[..., Any], *args: Any) -> "Symbol":
        """The value that ``target`` is after ``function(target, *args)`` has changed it."""
        given = mapped(args, _as_ref)
        if any(step == 0 and n > 1 for n, step in zip(target.shape, target.strides, strict=True)):
            target = self.call(in_full, (target,), {})
        sample = faithful_copy(self.samples[target.number])
        with np.errstate(all="ignore"):
            function(sample, *mapped(given, lambda leaf: self.samples[leaf.number] if type(leaf) is Ref else leaf))
        made = self.value(self._lasting(sample))
        self.statements.append(
            Statement(function, (Ref(target.number), *given), {}, made.number, writes=True, site=self.site)
        )
        return made

    def _told(self, statement: Statement, result: Any) -> Any:
        """The statement is appended; symbols in the structure of its result."""
        statement.aliases = self._shared(statement.reads, result)
        made = self.value(result if statement.aliases else self._lasting(result))
        statement.makes = made.number
        self.statements.append(statement)
        if isinstance(result, tuple | list):
            parts = [self._part(made, k, part) for k, part in enumerate(result)]
            return type(result)._make(parts) if hasattr(result, "_make") else type(result)(parts)
        if type(result) is dict:
            return {name: self._part(made, name, part) for name, part in result.items()}
        return made

    def _lasting(self, result: Any) -> Any:
        """The sample that stays of an array of its own."""
        if self.felt or type(result) is not np.ndarray or result.base is not None or result.nbytes < FELT:
            return result
        if result.dtype.kind not in "fc":  # it may say which elements others have
            return result
        left = np.empty_like(result)
        if left.strides != result.strides:
            return result
        self.unfelt += 1
        return left

    def _part(self, whole: "Symbol", key: Any, part: Any) -> Any:
        if part is None:
            return None
        made = Statement(operator.getitem, (Ref(whole.number), key), {}, 0, site=self.site)
        return self._told(made, part)

    def _shared(self, reads: tuple[int, ...], result: Any) -> tuple[int, ...]:
        """Which of the values read ``result``, or a part of it, shares memory with; what is no array is taken to share
        nothing."""
        parts = _arrays(result)
        return tuple(
            number
            for number in dict.fromkeys(reads if parts else ())
            if any(np.may_share_memory(part, sample) for sample in _arrays(self.samples[number]) for part in parts)
        )


def _arrays(sample: Any) -> list[Any]:
    if isinstance(sample, np.ndarray):
        return [sample]
    if isinstance(sample, tuple | list):
        return [array for part in sample for array in _arrays(part)]
    if type(sample) is dict:
        return [array for part in sample.values() for array in _arrays(part)]
    return []


def in_full(x: Any) -> Any:
    """A copy in which no element stands for many."""
    return x.copy(order="K")


def _as_ref(leaf: Any) -> Any:
    return Ref(leaf.number) if type(leaf) is Symbol else leaf


def _require_symbols(result: Any) -> None:
    """What a function has made of symbols has to be symbols: an array of its own would be a frozen one."""
    parts = result if isinstance(result, tuple | list) else result.values() if type(result) is dict else (result,)
    for part in parts:
        if part is not result:
            _require_symbols(part)
        elif type(part) is not Symbol and part is not None:
            raise NotTraceableError(f"a result of type {type(part).__name__}")


def _refuse(*_: Any, **__: Any) -> NoReturn:
    raise NotTraceableError("the value of a symbol")


_STATIC = frozenset(("shape", "dtype", "ndim", "size", "itemsize", "nbytes", "strides", "flags"))
_PARTS = frozenset(("T", "real", "imag", "mT"))
_METHODS = frozenset((
    "astype", "clip", "conj", "conjugate", "copy", "cumprod", "cumsum", "diagonal", "dot", "max", "mean", "min", "prod",
    "ravel", "repeat", "reshape", "round", "squeeze", "std", "sum", "swapaxes", "take", "trace", "transpose", "var",
    "all", "any", "argmax", "argmin", "argsort", "choose", "compress", "nonzero", "searchsorted", "flatten",
))  # fmt: skip


@cache
def _called(name: str) -> Callable[..., Any]:
    """The function that calls the method of a name."""

    def call(x: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(x, name)(*args, **kwargs)

    return call


def _binary(symbol: str, function: Callable[..., Any]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    def forward(self: "Symbol", other: Any) -> Any:
        return self._program.call(function, (self, other), {}, symbol)

    def backward(self: "Symbol", other: Any) -> Any:
        return self._program.call(function, (other, self), {}, symbol)

    return forward, backward


class Symbol:
    """A value of a program that is being written down."""

    __slots__ = ("_number", "_program")
    __array_priority__ = 2000.0

    def __init__(self, program: Program, number: int) -> None:
        self._program = program
        self._number = number

    @property
    def number(self) -> int:
        """Its place among the values."""
        return self._number

    @property
    def program(self) -> Program:
        """Where its statements are written."""
        return self._program

    def __getattr__(self, name: str) -> Any:
        sample = self._program.samples[self._number]
        if name in _STATIC:
            return getattr(sample, name)
        if name in _PARTS:
            return self._program.call(operator.attrgetter(name), (self,), {}, f".{name}")
        if name in _METHODS:
            getattr(sample, name)  # an object of another kind has none

            def method(*args: Any, **kwargs: Any) -> Any:
                return self._program.call(_called(name), (self, *args), kwargs, f".{name}()")

            return method
        raise NotTraceableError(f"attribute {name!r} of a symbol")

    @staticmethod
    def __pullback_whole__(
        function: Callable[..., Any], into: Callable[..., Any], *args: Any, chain: Any = None
    ) -> Any:
        """``function(*args)`` as one statement: it looks at values. ``into`` computes it, element by element, into an
        array that comes last, and in which no operand lies; ``chain`` as :attr:`Statement.chain`."""
        program = next(arg.program for arg in args if type(arg) is Symbol)
        made = program.call(function, args, {})
        program.statements[-1].computes_into, program.statements[-1].chain = into, chain
        return made

    def __array_ufunc__(self, function: Any, how: str, *inputs: Any, **kwargs: Any) -> Any:
        if kwargs.get("out") is not None:
            raise NotTraceableError("out=")
        return self._program.call(function if how == "__call__" else getattr(function, how), inputs, kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if "out" in kwargs:
            raise NotTraceableError("out=")
        return self._program.call(function, args, kwargs)

    __add__, __radd__ = _binary("+", operator.add)
    __sub__, __rsub__ = _binary("-", operator.sub)
    __mul__, __rmul__ = _binary("*", operator.mul)
    __truediv__, __rtruediv__ = _binary("/", operator.truediv)
    __pow__, __rpow__ = _binary("**", operator.pow)
    __mod__, __rmod__ = _binary("%", operator.mod)
    __floordiv__, __rfloordiv__ = _binary("//", operator.floordiv)
    __matmul__, __rmatmul__ = _binary("@", operator.matmul)
    __and__, __rand__ = _binary("&", operator.and_)
    __or__, __ror__ = _binary("|", operator.or_)
    __lt__, _ = _binary("<", operator.lt)
    __le__, _ = _binary("<=", operator.le)
    __gt__, _ = _binary(">", operator.gt)
    __ge__, _ = _binary(">=", operator.ge)

    def __eq__(self, other: object) -> Any:
        return self._program.call(operator.eq, (self, other), {}, "==")

    def __ne__(self, other: object) -> Any:
        return self._program.call(operator.ne, (self, other), {}, "!=")

    def __neg__(self) -> Any:
        return self._program.call(operator.neg, (self,), {}, "-")

    def __pos__(self) -> Any:
        return self._program.call(operator.pos, (self,), {}, "+")

    def __abs__(self) -> Any:
        return self._program.call(abs, (self,), {})

    def __invert__(self) -> Any:
        return self._program.call(operator.invert, (self,), {}, "~")

    def __getitem__(self, key: Any) -> Any:
        return self._program.call(operator.getitem, (self, key), {}, "[]")

    def __len__(self) -> int:
        return len(self._program.samples[self._number])

    def __iter__(self) -> Any:
        return (self[k] for k in range(len(self)))

    # By value, or in place: a rule that needs it is called as a whole.
    __bool__ = __float__ = __int__ = __index__ = __complex__ = __array__ = __setitem__ = __contains__ = _refuse
    __iadd__ = __isub__ = __imul__ = __itruediv__ = _refuse

    def __hash__(self) -> int:
        raise NotTraceableError("the hash of a symbol")
