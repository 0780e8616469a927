"""Handles without values: what a body is called on where its step is compared with one that is known."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, ClassVar, Final

import numpy as np
from attrs import define, field

from pullback.recording.copies import faithful_copy
from pullback.recording.handles import Kinds
from pullback.recording.tape import CLOSED, SMALL, Tape
from pullback.rules.declaration import Primitive
from pullback.staging.shadow.operations import REPOINTS, Number, Result, is_like, likeness
from pullback.staging.shadow.quick_operators import (
    EAGER,
    UNBOUND,
    KnownStep,
    array_ufunc,
    binary,
    bound_operation,
    getitem,
    in_place,
    increment,
    matmul,
    setitem,
    unary,
)
from pullback.staging.shadow.very_handles import again
from pullback.tracing.dispatch import function
from pullback.tracing.tracer import KINDS, Buffer, Tracer, View, Weak
from pullback.words.call_sites import site_here, site_text
from pullback.words.errors import TracerError
from pullback.words.undocumented import error_state, holders

_OF_SHAPE = (np.shape, np.ndim, np.size)


class Valueless:
    """What they answer from the spec alone; asked for more, they have the value computed (``_value``) or become
    ordinary."""

    __slots__ = ()

    @property
    def _value(self: Any) -> Any:
        return self._tape.shadow.value(self)

    @property
    def shape(self: Any) -> tuple[int, ...]:
        """Extents of the axes."""
        shape: tuple[int, ...] = self._spec.shape
        return shape

    @shape.setter
    def shape(self: Any, shape: Any) -> None:
        self._tape.shadow.surrender()
        self.shape = shape

    @property
    def dtype(self: Any) -> Any:
        """The dtype."""
        return self._spec.dtype

    @property
    def strides(self: Any) -> Any:
        """Bytes to step along each axis."""
        return self._flag.strides if self._flag.array else self._value.strides

    @property
    def flags(self: Any) -> Any:
        """How the array lies in memory."""
        return self._flag.flags if self._flag.array else self._value.flags

    def __array_function__(self: Any, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        run = self._tape.shadow
        given = None if kwargs else again(run, func, args, ValuelessTracer)
        if given is not None:
            return given
        if func in _OF_SHAPE and args and args[0] is self:
            return func(np.broadcast_to(False, self.shape), *args[1:], **kwargs)
        return run.repeated(func, args, kwargs, partial(function, self, func, args, kwargs))

    def __len__(self: Any) -> int:
        if not self._spec.shape:
            raise TypeError("len() of unsized object")
        return int(self._spec.shape[0])

    __add__, __radd__ = binary("add")
    __sub__, __rsub__ = binary("subtract")
    __mul__, __rmul__ = binary("multiply")
    __truediv__, __rtruediv__ = binary("divide")
    __pow__, __rpow__ = binary("power")
    __neg__ = unary("negative")
    __matmul__ = matmul
    __getitem__ = getitem
    __setitem__ = setitem
    __iadd__ = increment("__iadd__", subtracts=False)
    __isub__ = increment("__isub__", subtracts=True)
    __imul__ = in_place("mul")
    __itruediv__ = in_place("truediv")
    __array_ufunc__ = array_ufunc


class ValuelessTracer(Valueless, Tracer):
    """A traced array."""

    __slots__ = ()


class ValuelessView(Valueless, View):
    """A view of another."""

    __slots__ = ()
    __add__, __radd__ = binary("add", view=True)
    __sub__, __rsub__ = binary("subtract", view=True)
    __mul__, __rmul__ = binary("multiply", view=True)
    __truediv__, __rtruediv__ = binary("divide", view=True)
    __pow__, __rpow__ = binary("power", view=True)
    __neg__ = unary("negative", view=True)


class ValuelessBuffer(Valueless, Buffer):
    """An array that depends on nothing yet."""

    __slots__ = ()


class ValuelessWeak(Valueless, Weak):
    """Over a Python number."""

    __slots__ = ()


VALUELESS: Final = Kinds(ValuelessTracer, ValuelessView, ValuelessBuffer, ValuelessWeak, KINDS.joined)
CLASSES: Final[dict[str, Any]] = {
    "tracer": ValuelessTracer, "view": ValuelessView, "buffer": ValuelessBuffer, "weak": ValuelessWeak,
    "plain": ValuelessTracer,
}  # fmt: skip
KIND_OF: Final = frozenset(CLASSES.values())
for _kind in KIND_OF:
    _kind.__name__ = _kind.__qualname__ = _kind.__bases__[1].__name__  # errors of Python's and NumPy's name it
_NAMES = {Tracer: "tracer", View: "view", Buffer: "buffer", Weak: "weak"}


def kind_name(handle: Any) -> str:
    """The kind of an ordinary handle."""
    return _NAMES[type(handle)]


@define(eq=False)
class _Ended:
    """The shadow of a step that is over."""

    inlines: ClassVar[bool] = False
    marks: ClassVar[bool] = False
    nests: ClassVar[bool] = False
    what: str
    where: str

    def __getattr__(self, name: str) -> Any:
        raise TracerError(
            f"a value of a {self.what} that has ended is used (at {site_text(site_here())}): it leaked out of the "
            f"{self.where}, through a global, an attribute or a generator. Return it, or keep pullback.value(x)"
        )


ENDED: Final = {inlines: Tape(0, KINDS) for inlines in (False, True)}
"""The traces of what is over, by whether a shadow run serves the calls of a function."""
for _inlines, _words in ((False, ("step", "body")), (True, ("call", "differentiated function"))):
    ENDED[_inlines].mode = CLOSED
    ENDED[_inlines].shadow = _Ended(*_words)


def handle_of(tape: Tape, number: int, result: Result) -> Any:
    """A new handle for the value of a number."""
    handle = CLASSES[result.kind]()
    handle._tape, handle._id, handle._spec, handle._flag = tape, number, result.spec, result
    return handle


@define(eq=False)
class Pool:
    """The handles of a step that is known. They are made once, and serve every run of it, as long as none of them is
    kept by somebody when the step is over."""

    known: KnownStep
    tape: Tape
    entering: list[Any]
    """The handles of the leaves that enter."""
    made: list[Any] = field(factory=list, init=False)
    """What the operation at each place gives."""
    bound: list[tuple[Any, ...]] = field(init=False)
    """What an operator at a place compares with first (``bound_operation``), once the pool serves again."""
    starting: tuple[Any, ...] = field(default=(), init=False)
    """The handles of what enters, then."""
    ending: tuple[Any, ...] = field(default=(), init=False)
    """What the step returns, then: handles, and constants for plain values."""
    repeats: dict[int, Any] = field(factory=dict, init=False)
    """A call that gives what the operations from a place on give (``ShadowRun.repeated``), by place."""
    is_bound: bool = field(default=False, init=False)
    handles: list[Any] = field(init=False)
    holders: list[int] = field(init=False)
    """How many hold each of these while no step is under way."""
    origins: dict[int, tuple[int, Result]] = field(init=False)
    """What each handle stands for before it is written to, by its place in memory."""

    def __attrs_post_init__(self) -> None:
        self._make({handle._id: handle for handle in self.entering})
        self.handles = list(self.given(len(self.made)))
        self.origins = {id(handle): (handle._id, handle._flag) for handle in self.handles}
        self.bound = [UNBOUND[0]] * len(self.made)
        self.holders = holders(self.handles)

    def bind(self) -> None:
        """The pool serves again: it is worth the while to say which handles each operation is applied to."""
        by_number = {handle._id: handle for handle in self.entering}
        for at, (op, made) in enumerate(zip(self.known.operations, self.made, strict=True)):
            if op.what in REPOINTS:
                by_number[op.makes[0]] = by_number[op.operands[0]]
                continue
            by_number.update(zip(op.makes, made if op.several else (made,), strict=False))
            self.bound[at] = bound_operation(self.known.quick[at], by_number, made)
        self.ending = tuple(by_number[end] if type(end) is int else end for end in self.known.ends)
        self.starting, self.is_bound = tuple(self.entering), True

    def _make(self, by_number: dict[int, Any]) -> None:
        for op in self.known.operations:
            if op.what in REPOINTS:
                by_number[op.makes[0]] = by_number[op.operands[0]]
                self.made.append(None)
                continue
            given = [handle_of(self.tape, *each) for each in zip(op.makes, op.results, strict=True)]
            for handle in given:
                by_number[handle._id] = handle
                if type(handle) is ValuelessView:
                    parent = by_number[op.operands[0]]
                    handle._parent, handle._parent_id = parent, parent._id
                    handle._primitive, handle._params, handle._written_in = op.what, op.params, None
            self.made.append(tuple(given) if op.several else given[0] if given else None)

    def given(self, at: int) -> Iterator[Any]:
        """The handles that have been handed out when the operation at a place comes."""
        yield from self.entering
        for made in self.made[:at]:
            yield from made if type(made) is tuple else () if made is None else (made,)

    def is_alone(self, given: Any, start: int, stop: int) -> bool:
        """Whether a stretch of operations computes this handle, and does nothing else: no write, no read, no effect."""
        return (
            type(given) is ValuelessTracer
            and start < stop
            and given is self.made[stop - 1]
            and all(
                type(op.what) is Primitive and not op.several and not op.what.ordered
                for op in self.known.operations[start:stop]
            )
        )

    def serves_again(self, written: list[Any], held: list[int] | None = None) -> bool:
        """Whether nobody has kept a handle of the step that is over: as many hold each as while no step is under way,
        or as the numbers that are ``held`` say. Those that were ``written`` to stand for their first values again."""
        while written:
            handle = written[-1]
            origin = self.origins.get(id(handle))
            if origin is None:
                return False
            written.pop()
            handle._id, handle._flag = origin
            handle.__class__ = CLASSES[origin[1].kind]
            del handle  # it would be one more who holds it
        return holders(self.handles) == (self.holders if held is None else held)


@define(eq=False)
class Following:
    """Which list a step is compared with, how far it has come, and the handles that it hands out."""

    inlines: ClassVar[bool] = False
    tape: Tape
    following: KnownStep | None = field(default=None, init=False)
    quick: Sequence[Any] = field(default=EAGER, init=False)
    """What the operators compare with, by place (``quick_operation``)."""
    at: int = field(default=0, init=False)
    """The place of the next operation while one list is followed."""
    bound: Sequence[Any] = field(default=UNBOUND, init=False)
    """What operators compare with, by place, as the very handles of the pool."""
    made: Sequence[Any] = field(default=(), init=False)
    """The handles that its operations give, by place."""
    pool: Pool | None = field(default=None, init=False)
    """All of its handles."""
    pools: dict[KnownStep, Pool] = field(factory=dict, init=False)
    """The pools of lists that have been followed."""
    written: list[Any] = field(factory=list, init=False)
    """The handles of the pool that stand for another value by now."""
    alone: list[Any] = field(factory=list, init=False)
    """Every handle that is in no pool, or no more."""
    constants: list[Any] = field(factory=list, init=False)
    """The plain operands in the order in which they came, as they were then."""
    errors: Any = field(default=None, init=False)
    """NumPy's error state at the start of the step."""
    filters: Any = field(default=None, init=False)
    """Python's warning filters then."""

    @property
    def holds(self) -> bool:
        """Whether NumPy's error state and the warning filters are still the same."""
        return error_state() is self.errors and warnings.filters is self.filters

    def repoint(self, root: Any, number: int, result: Result) -> None:
        """The next operation makes a handle stand for another value."""
        self.at += 1
        self.written.append(root)
        root._id, root._flag = number, result
        root.__class__ = CLASSES[result.kind]

    def taken(self, array: Any) -> Any:
        """A plain array with the content of this moment. A small one that no record holds is not among those that may
        be shared, as in a recorded step: what is shared is what is booked."""
        held = self.following.held  # type: ignore[union-attr]  # one is followed
        if held is None or array.nbytes > SMALL or len(self.constants) in held:
            return self.tape.keep(array)
        return faithful_copy(array)

    def repeated(self, key: Any, args: Any, kwargs: Any, ordinary: Callable[[], Any]) -> Any:
        """What a function of NumPy's gives, which ``ordinary`` would say: immediately where the same function met the
        same values and parameters here before, and gave what the next operations of the list give."""
        pool, at, tape = self.pool, self.at, self.tape
        if pool is None:
            return ordinary()
        found = pool.repeats.get(at)
        if found is None:
            if at in pool.repeats:
                return ordinary()
            pool.repeats[at] = None  # whatever comes of it, it is looked at once
            like = likeness((args, kwargs), tape)
            n = len(self.constants)
            given = ordinary()
            alone = pool is self.pool and len(self.constants) == n and pool.is_alone(given, at, self.at)
            if alone and like is not None:
                alike, named = like
                numbers = None if named else [each.number if type(each) is Number else None for each in alike]
                pool.repeats[at] = key, like, self.at, None if numbers and None in numbers else numbers
            return given
        if found[0] is key and self.holds and is_like(found[1], (args, kwargs), tape):
            self.at = found[2]
            return pool.made[found[2] - 1]
        return ordinary()

    def _follow(self, known: KnownStep, entering: Sequence[Result | None]) -> None:
        """A list is followed from now on, which leaves of these kinds enter."""
        pool = self.pools.get(known)
        if pool is None:
            results = [result for result in entering if result is not None]
            handles = [handle_of(self.tape, k, result) for k, result in enumerate(results)]
            pool = self.pools[known] = Pool(known, self.tape, handles)
        elif not pool.is_bound:
            pool.bind()
            pool.holders = holders(pool.handles)
        self.following, self.quick, self.bound = known, known.quick, pool.bound
        self.pool, self.made = pool, pool.made

    def _lay_down(self) -> None:
        """The handles of the list are those of this step alone."""
        pool = self.pool
        if pool is not None:
            self.alone += pool.given(self.at)
            del self.pools[pool.known]
            self.pool, self.made = None, ()
            self.written.clear()

    def _put_back(self, *, whole: bool) -> None:
        """The handles of a ``whole`` step, of which nobody has kept any, serve the next; others cannot be used any
        more."""
        if self.alone or not whole or self.pool is None or not self.pool.serves_again(self.written):
            self._lay_down()
            for handle in self.alone:
                if type(handle) in KIND_OF:
                    handle._tape = ENDED[self.inlines]
            self.alone = []
        self.pool, self.made = None, ()

    def _made(self, number: int, result: Result) -> Any:
        handle = handle_of(self.tape, number, result)
        self.alone.append(handle)
        return handle
