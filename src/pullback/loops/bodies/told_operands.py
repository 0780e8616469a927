"""Plain operands of a step as functions of its number: the bytecode of the body is carried out instruction by
instruction, noting of each value how it follows from the number of the step, or from its row of ``xs``.

Only the instructions below are followed: straight code, and loops over what does not depend on the number. It ends
where the number would decide anything else (a branch, a shape, an argument of an unknown function), or where a plain
array may be written to. NumPy functions of values that do not depend on the number are called as they are.
"""

import operator
import sys
from collections.abc import Callable, Sequence
from functools import partial
from types import FunctionType
from typing import Any, Final

import numpy as np
from attrs import define, field

from pullback.loops.bodies.deterministic_functions import NotTheSameError, instructions_of
from pullback.loops.bodies.told_parts import Parts, part, parts_of, told_ends
from pullback.recording.handles import Handle

Told = Callable[[int], Any]
"""What a value is in a step, by the number of that."""


def _itself(k: int) -> int:
    return k


ITSELF: Final[Told] = _itself
"""The number of the step."""
FOLLOWS: Final = (3, 11) <= sys.version_info[:2] <= (3, 13)
"""Whether the instructions below are those of this version of CPython."""
_CALLS_MEMBERS: Final = sys.version_info >= (3, 12)
"""Whether an odd ``LOAD_ATTR`` is of a member that is called; before there was ``LOAD_METHOD``."""
_NULL: Final = object()
"""What lies beside a function that is called: before it, from CPython 3.13 on behind it."""
MOST_INSTRUCTIONS = 20_000
"""Instructions of one call after which it is not followed any further."""
_SHAPES = frozenset(("dtype", "ndim", "shape", "size"))
"""Members that are the same for each row of an array."""
_OPERATORS: Final = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "**": operator.pow, "@": operator.matmul,
}  # fmt: skip
_IN_PLACE: Final = {
    operator.iadd: "+=", operator.isub: "-=", operator.imul: "*=", operator.itruediv: "/=", operator.ipow: "**=",
}  # fmt: skip
_BINARY: Final[dict[str, Callable[..., Any]]] = {**_OPERATORS, **{name: f for f, name in _IN_PLACE.items()}}
_UNCHANGING = (Handle, int, float, complex, np.generic, str, tuple, type, np.dtype, type(None), type(...))
"""What an operator in place, or a function that gets it, does not change."""
_NOTHING = frozenset(("COPY_FREE_VARS", "NOP", "PRECALL", "RESUME"))


@define(eq=False)
class FollowedBody:
    """A body that is carried out once. ``constants`` are the plain operands that its operations have met so far."""

    constants: Sequence[Any]
    told: list[tuple[int, Told]] = field(factory=list, init=False)
    """The places of those that depend on the number of the step, each with what it is."""
    read: set[int] | None = field(factory=set, init=False)
    """The ids of plain arrays of which more is asked than the part that the number tells; None where that cannot be
    said."""

    def call(self, f: Any, args: Sequence[Any], tags: Sequence[Any], *, ends: bool = False) -> Any:
        """What a function returns, of which nothing but its operations' operands depends on the number; with ``ends``
        what it returns may, too: operands behind the others. Raises :class:`NotTheSameError` where that cannot be
        said."""
        if not FOLLOWS:
            raise NotTheSameError("the instructions of this version of Python are not followed")
        value, tag = _Frame(self, f, args, tags).run()
        self.reads((value,))
        if tag is not None and not ends:
            raise NotTheSameError("what it returns depends on the number of the step alone")
        self.told += told_ends(value, tag, len(self.constants))
        return value

    def reads(self, values: Sequence[Any]) -> None:
        """Something is asked of these values, and of what they hold."""
        for value in values:
            if isinstance(value, np.ndarray):
                if self.read is not None:
                    self.read.add(id(value))
            elif type(value) is tuple:
                self.reads(value)
            elif not isinstance(value, (*_UNCHANGING, slice)):
                self.read = None

    def meets(self, compute: Callable[[], Any], tags: list[Told | None]) -> Any:
        """What an operation on handles gives: it takes one plain operand, the one that is told."""
        before, told = len(self.constants), [tag for tag in tags if tag is not None]
        given = compute()
        if len(told) != 1 or len(self.constants) != before + 1:
            raise NotTheSameError("an operation meets the number of the step and other plain values")
        self.told.append((before, told[0]))
        return given


class _Frame:
    """One call of a function under way: its stack and its local names, each value with its tag."""

    def __init__(self, whole: FollowedBody, f: FunctionType, args: Sequence[Any], tags: Sequence[Told | None]) -> None:
        code = f.__code__
        if len(args) != code.co_argcount or code.co_flags & 0xC or code.co_kwonlyargcount:
            raise NotTheSameError("a function is called with other arguments than it names")
        self.whole, self.f, self.names = whole, f, ()
        self.local = dict(zip(code.co_varnames, zip(args, tags, strict=True), strict=False))
        self.stack: list[tuple[Any, Told | None]] = []
        self.at = 0

    def run(self) -> tuple[Any, Told | None]:
        """What is returned."""
        code = instructions_of(self.f.__code__)
        for _ in range(MOST_INSTRUCTIONS):
            one = code[self.at]
            self.at += 1
            if one.opname == "RETURN_VALUE":
                return self.stack.pop()
            if one.opname == "RETURN_CONST":
                return one.argval, None
            step = _STEPS.get(one.opname)
            if step is not None:
                step(self, one)
            elif one.opname not in _NOTHING:
                raise NotTheSameError(f"it has the instruction {one.opname}")
        raise NotTheSameError("it is long")

    def go_to(self, one: Any) -> None:
        """The next instruction is that at a place of the code."""
        code = instructions_of(self.f.__code__)
        self.at = next(k for k, other in enumerate(code) if other.offset >= one.argval)

    def iterate(self, _: Any) -> None:
        (value,), (tag,) = self.pop(1)
        if tag is not None or isinstance(value, Handle):
            raise NotTheSameError("it goes through what depends on the number of the step, or through a traced array")
        self.push(iter(value))

    def next_item(self, one: Any) -> None:
        """The next of what is gone through; at its end the iterator goes, and so does what would take it away."""
        item = next(self.stack[-1][0], _NULL)
        if item is not _NULL:
            self.push(item)
            return
        self.stack.pop()
        self.go_to(one)
        code = instructions_of(self.f.__code__)
        if code[self.at].opname == "END_FOR":
            self.at += 1 if sys.version_info < (3, 13) else 2

    def extend(self, one: Any) -> None:
        """``[*container, *value]``, the list of which lies further down, or with an item in the place of more."""
        (value,), (tag,) = self.pop(1)
        container = self.stack[-one.arg][0]
        if tag is not None:
            raise NotTheSameError("what depends on the number of the step is put in a list")
        if one.opname == "LIST_APPEND":
            container.append(value)
        else:
            container.extend(value)

    def as_tuple(self, one: Any) -> None:
        if one.opname == "CALL_INTRINSIC_1" and one.argrepr != "INTRINSIC_LIST_TO_TUPLE":
            raise NotTheSameError(f"it has the instruction {one.argrepr}")
        self.apply(tuple, 1)

    def push(self, value: Any, tag: Told | None = None) -> None:
        self.stack.append((value, tag))

    def pop(self, n: int, *, reads: bool = True) -> tuple[list[Any], list[Told | None]]:
        """The topmost values, the last pushed last, and their tags. ``reads`` says that something is asked of them."""
        found = self.stack[len(self.stack) - n :]
        del self.stack[len(self.stack) - n :]
        values, tags = [value for value, _ in found], [tag for _, tag in found]
        if reads:
            self.whole.reads(values)
            if any(isinstance(tag, Parts) for tag in tags):
                raise NotTheSameError("a tuple with what depends on the number of the step is an operand")
        return values, tags

    def apply(self, function: Callable[..., Any], n: int, *, reads: bool = True) -> None:
        """The topmost values are put in the place of what a function gives for them."""
        values, tags = self.pop(n, reads=reads)
        if function in _IN_PLACE:
            _refuse_writing(values[0])
        if not any(tags):
            self.push(function(*values))
        elif any(isinstance(value, Handle) for value in values):
            self.push(self.whole.meets(lambda: function(*values), tags))
        else:
            self.push(function(*values), _of(function, values, tags))

    def subscript(self, _: Any) -> None:
        (container, parts), (key, told) = self.stack[-2:]
        if isinstance(parts, Parts) and told is None:
            self.stack[-2:] = [(container[key], part(parts, key))]
            return
        if isinstance(told, Parts) or (told is not None and type(container) is not np.ndarray):
            raise NotTheSameError("the number of the step chooses from what is no plain array")
        self.apply(operator.getitem, 2, reads=told is None)

    def store(self, _: Any) -> None:
        (value, container, key), tags = self.pop(3)
        if tags[1] is not None or tags[2] is not None:
            raise NotTheSameError("it writes where the number of the step says")
        _refuse_writing(container)
        if tags[0] is None:
            operator.setitem(container, key, value)
        else:
            self.whole.meets(partial(operator.setitem, container, key, value), tags)

    def subscript_part(self, one: Any) -> None:
        """``container[start:stop]``."""
        self.pack_slice(one)
        self.subscript(one)

    def store_part(self, one: Any) -> None:
        """``container[start:stop] = value``."""
        self.pack_slice(one)
        self.store(one)

    def member(self, one: Any) -> None:
        value, tag = self.stack.pop()
        if one.opname == "LOAD_METHOD" or (_CALLS_MEMBERS and one.arg & 1):
            self.push(_NULL)
        if tag is not None and one.argval not in _SHAPES:
            raise NotTheSameError(f"it asks what depends on the number of the step for .{one.argval}")
        if isinstance(value, np.ndarray) and one.argval not in _SHAPES:
            self.whole.reads((value,))
        self.push(getattr(value, one.argval))

    def call(self, one: Any) -> None:
        values, tags = self.pop(one.arg, reads=False)
        names, self.names = self.names, ()
        called, of_called = self.pop(2, reads=False)
        function = called[called[0] is _NULL]
        if any(of_called) or not (called[0] is _NULL or called[1] is _NULL):
            raise NotTheSameError("the number of the step decides what is called")
        n = len(values) - len(names)
        keywords = dict(zip(names, values[n:], strict=True))
        if type(function) is FunctionType and not (function.__module__ or "").startswith("numpy"):
            if names or hasattr(function, "__wrapped__"):
                raise NotTheSameError("a function within it is called by names, or stands for another one")
            self.push(*_Frame(self.whole, function, values, tags).run())
            return
        self.whole.reads(values)
        if not any(tags):
            for place in (keywords.get("out"), *values[_n_read(function) : n]):
                _refuse_writing(place)
            self.push(function(*values[:n], **keywords))
        elif names:
            raise NotTheSameError("the number of the step is handed on by name")
        elif isinstance(function, np.ufunc):
            self.stack += zip(values, tags, strict=True)
            self.apply(function, len(values))
        else:
            raise NotTheSameError(f"the number of the step is handed to {function!r}")

    def call_by_name(self, one: Any) -> None:
        self.names = self.stack.pop()[0]
        self.call(one)

    def pack(self, one: Any) -> None:
        self._pack(tuple, one.arg)

    def pack_list(self, one: Any) -> None:
        self._pack(list, one.arg)

    def pack_slice(self, one: Any) -> None:
        self._pack(lambda ends: slice(*ends), 2 if one.arg is None else one.arg)

    def _pack(self, made: Callable[[list[Any]], Any], n: int) -> None:
        values, tags = self.pop(n, reads=False)
        self.whole.reads(values)
        if any(tags) and made is not tuple:
            raise NotTheSameError("what depends on the number of the step is put in a list or a slice")
        self.push(made(values), parts_of(tags))  # type: ignore[arg-type]  # of a tuple

    def unpack(self, one: Any) -> None:
        value, tag = self.stack.pop()
        if tag is not None and not isinstance(tag, Parts):
            raise NotTheSameError("what depends on the number of the step is unpacked")
        self.whole.reads(() if type(value) is tuple else (value,))
        parts = tuple(value)
        if len(parts) != one.arg:
            raise NotTheSameError("another number of values is unpacked")
        tags = (None,) * len(parts) if tag is None else tag.each
        self.stack += reversed(list(zip(parts, tags, strict=True)))

    def load_global(self, one: Any) -> None:
        if one.arg & 1:
            self.push(_NULL)
        names = self.f.__globals__
        around = names if one.argval in names else getattr(self.f, "__builtins__")  # noqa: B009
        self.push(around[one.argval])

    def load_cell(self, one: Any) -> None:
        cells = dict(zip(self.f.__code__.co_freevars, self.f.__closure__ or (), strict=True))
        if one.argval not in cells:
            raise NotTheSameError("a function within it reads its names")
        self.push(cells[one.argval].cell_contents)

    def load(self, one: Any) -> None:
        self.stack.append(self.local[one.argval])

    def load_both(self, one: Any) -> None:
        self.stack += [self.local[name] for name in one.argval]

    def keep(self, one: Any) -> None:
        self.local[one.argval] = self.stack.pop()

    def keep_both(self, one: Any) -> None:
        for name in one.argval:
            self.local[name] = self.stack.pop()

    def keep_and_load(self, one: Any) -> None:
        kept, loaded = one.argval
        self.local[kept] = self.stack.pop()
        self.stack.append(self.local[loaded])

    def swap(self, one: Any) -> None:
        stack = self.stack
        stack[-1], stack[-one.arg] = stack[-one.arg], stack[-1]

    def name_arguments(self, one: Any) -> None:
        self.names = self.f.__code__.co_consts[one.arg]  # of which dis in 3.11 does not tell


def _refuse_writing(place: Any) -> None:
    """Nothing plain is written while the body is followed: it would be written again by the body itself where that has
    to be run after all, and what is told of later steps reads arrays as they are then."""
    if not isinstance(place, _UNCHANGING):
        raise NotTheSameError("it may write to a plain array")


def _n_read(function: Any) -> int:
    """How many of its arguments by place a function of NumPy or Python reads: those after them may be written to."""
    if isinstance(function, np.ufunc):
        return function.nin
    if function is np.where:
        return 3
    if function is zip:
        return sys.maxsize
    return 1 if isinstance(getattr(function, "__self__", None), np.ndarray | Handle) else 2


def _of(function: Callable[..., Any], values: list[Any], tags: list[Told | None]) -> Told:
    """What a function gives for values of which some depend on the number."""
    if function is operator.getitem and tags[0] is None and tags[1] is ITSELF:
        return values[0].__getitem__  # type: ignore[no-any-return]
    parts = list(zip(values, tags, strict=True))
    return lambda k: function(*(value if tag is None else tag(k) for value, tag in parts))


_STEPS: Final[dict[str, Callable[[_Frame, Any], Any]]] = {
    "BINARY_OP": lambda frame, one: frame.apply(_BINARY[one.argrepr], 2),
    "BINARY_SLICE": _Frame.subscript_part,
    "BINARY_SUBSCR": _Frame.subscript,
    "BUILD_LIST": _Frame.pack_list,
    "BUILD_SLICE": _Frame.pack_slice,
    "BUILD_TUPLE": _Frame.pack,
    "CALL": _Frame.call,
    "CALL_INTRINSIC_1": _Frame.as_tuple,
    "CALL_KW": _Frame.call_by_name,
    "COPY": lambda frame, one: frame.stack.append(frame.stack[-one.arg]),
    "FOR_ITER": _Frame.next_item,
    "GET_ITER": _Frame.iterate,
    "JUMP_BACKWARD": _Frame.go_to,
    "KW_NAMES": _Frame.name_arguments,
    "LIST_APPEND": _Frame.extend,
    "LIST_EXTEND": _Frame.extend,
    "LIST_TO_TUPLE": _Frame.as_tuple,
    "LOAD_ATTR": _Frame.member,
    "LOAD_CONST": lambda frame, one: frame.push(one.argval),
    "LOAD_DEREF": _Frame.load_cell,
    "LOAD_FAST": _Frame.load,
    "LOAD_FAST_CHECK": _Frame.load,
    "LOAD_FAST_LOAD_FAST": _Frame.load_both,
    "LOAD_GLOBAL": _Frame.load_global,
    "LOAD_METHOD": _Frame.member,
    "POP_TOP": lambda frame, _: frame.pop(1, reads=False),
    "PUSH_NULL": lambda frame, _: frame.push(_NULL),
    "STORE_FAST": _Frame.keep,
    "STORE_FAST_LOAD_FAST": _Frame.keep_and_load,
    "STORE_FAST_STORE_FAST": _Frame.keep_both,
    "STORE_SLICE": _Frame.store_part,
    "STORE_SUBSCR": _Frame.store,
    "SWAP": _Frame.swap,
    "UNARY_NEGATIVE": lambda frame, _: frame.apply(operator.neg, 1),
    "UNPACK_SEQUENCE": _Frame.unpack,
}
"""How each instruction is carried out, by its name, as CPython 3.11 to 3.13 have them."""
