"""Functions that do the same in every call, as their bytecode shows: what they read from outside is found and
compared, and everything else that they do depends on their arguments alone.

The proof is one of reach. A function that runs only the instructions below, and gets hold only of data that is
compared, of members of modules that are looked up here, and of functions that are known or are themselves proved, can
neither change anything nor be told apart from its last call. Whatever is not listed refuses the proof.
"""

import dis
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib import import_module
from types import CellType, CodeType, FunctionType, MemberDescriptorType, ModuleType
from typing import Any

import numpy as np
from attrs import define, field, fields, has

from pullback.recording.copies import faithful_copy
from pullback.recording.handles import Handle
from pullback.travelling.made_functions import MadeFunction
from pullback.words.digests import digest
from pullback.words.sameness import same_content

MOST_BYTES = 65536
"""Most bytes of an array from outside that a staged function may read: it is compared in each call."""
MOST_HASHED = 2**22
"""Most bytes of an array from outside that the body of a loop may read: it is compared now and then."""
MOST_FUNCTIONS = 50
_PURE = frozenset(
    """BINARY_SLICE BINARY_SUBSCR BUILD_CONST_KEY_MAP BUILD_LIST BUILD_MAP BUILD_SLICE BUILD_TUPLE CACHE CALL
    CALL_FUNCTION_EX CALL_KW COMPARE_OP CONTAINS_OP COPY COPY_FREE_VARS END_FOR EXTENDED_ARG FOR_ITER GET_ITER
    JUMP_BACKWARD JUMP_FORWARD JUMP_IF_FALSE_OR_POP JUMP_IF_TRUE_OR_POP KW_NAMES LIST_APPEND LIST_EXTEND LIST_TO_TUPLE
    LOAD_CLOSURE LOAD_FAST LOAD_FAST_AND_CLEAR LOAD_FAST_BORROW LOAD_FAST_BORROW_LOAD_FAST_BORROW
    LOAD_FAST_CHECK LOAD_FAST_LOAD_FAST LOAD_SMALL_INT MAKE_CELL MAKE_FUNCTION NOP NOT_TAKEN POP_ITER
    POP_JUMP_BACKWARD_IF_FALSE POP_JUMP_BACKWARD_IF_NONE POP_JUMP_BACKWARD_IF_NOT_NONE
    POP_JUMP_BACKWARD_IF_TRUE POP_JUMP_FORWARD_IF_FALSE POP_JUMP_FORWARD_IF_NONE POP_JUMP_FORWARD_IF_NOT_NONE
    POP_JUMP_FORWARD_IF_TRUE POP_JUMP_IF_FALSE POP_JUMP_IF_NONE POP_JUMP_IF_NOT_NONE POP_JUMP_IF_TRUE POP_TOP
    PRECALL PUSH_NULL RERAISE RESUME RETURN_CONST RETURN_VALUE SET_FUNCTION_ATTRIBUTE STORE_FAST
    STORE_FAST_LOAD_FAST STORE_FAST_STORE_FAST SWAP TO_BOOL UNARY_INVERT UNARY_NEGATIVE UNARY_NOT
    UNARY_POSITIVE UNPACK_EX UNPACK_SEQUENCE""".split()
)
"""Instructions that read and change nothing but the stack and local names."""
_WRITES = frozenset(("STORE_SLICE", "STORE_SUBSCR"))
_LOCAL = re.compile("FAST|DEREF|CELL|CLOSURE")
"""Instructions that have to do with local names."""
_ATTRIBUTES = frozenset(
    """T all any astype clip conj conjugate copy cumprod cumsum diagonal dot dtype flatten imag items keys max mean
    min nbytes ndim prod ravel real repeat reshape shape size squeeze std sum swapaxes take trace transpose
    values var""".split()
)
"""Members of arrays, numbers and dicts that change nothing."""
_NUMPY = frozenset(
    """all allclose any append arange argmax argmin argsort array asarray atleast_1d atleast_2d average broadcast_to
    clip column_stack concatenate convolve cross cumprod cumsum diag diagonal diff dot dstack einsum
    expand_dims eye flip full full_like hstack identity inner interp kron linspace logspace matmul max maximum
    mean min minimum moveaxis nan_to_num ones ones_like outer pad prod ravel repeat reshape roll rollaxis
    rot90 shape sort split squeeze stack std sum swapaxes take tensordot tile trace transpose trapezoid tril
    triu vander var vdot vstack where zeros zeros_like""".split()
)
"""Functions of NumPy, besides its ufuncs, that change nothing, and give the same for the same."""
_LINALG = frozenset("cholesky det eigh eigvalsh inv norm pinv qr slogdet solve svd".split())
_BUILTINS: frozenset[Any] = frozenset((
    abs, bool, complex, divmod, enumerate, float, int, len, list, max, min, pow, range, reversed, round, sum, tuple,
    zip,
))  # fmt: skip
_TRANSFORMS = frozenset("grad hvp jvp value_and_grad".split())
_OF_STEPS = frozenset(("name",))
"""Functions of this library that change nothing in a step but what is asked of it: the stage has them."""
_NUMBERS = frozenset((int, float, complex, bool, str, type(None), type(...), np.bool))
_KINDS_OF_NUMPY = frozenset((np.ufunc, type(np.dot), type(np.array), FunctionType))
"""Types of functions of NumPy: ``ones`` and ``full`` are plain functions of Python's."""
_OPERATED = frozenset(
    name for kind in (np.ndarray, dict, float) for name in (*dir(kind), "__call__") if name.startswith("__")
) - {*dir(object), "__setstate__", "__class_getitem__"}
"""Methods of a class that run where an object of it is called, or meets an operator or a function."""
_COMPARED = ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__hash__")
_TYPES = (np.float64, np.float32, np.complex128, np.complex64, np.int64, np.int32)


class NotTheSameError(Exception):
    """The function may do something else in its next call."""


@define(eq=False)
class Reads:
    """What a proved function reads from outside."""

    steps: bool = False
    """Whether it is the body of a loop (:func:`reads_of`)."""
    names: list[tuple[dict[str, Any], str, Any]] = field(factory=list)
    """Names of modules, with what they stand for."""
    missing: list[tuple[dict[str, Any], str]] = field(factory=list)
    """Names that stand for nothing there, so that those of ``builtins`` are found."""
    cells: list[tuple[CellType, Any]] = field(factory=list)
    functions: list[tuple[FunctionType, CodeType, Any]] = field(factory=list)
    """Each with its code and its defaults."""
    arrays: list[tuple[Any, Any]] = field(factory=list)
    """Each with a copy."""
    hashed: list[tuple[Any, bytes]] = field(factory=list)
    """Large ones, each with its digest."""
    members: list[tuple[Any, str, Any]] = field(factory=list)
    """Members of objects that have nothing else: the object, the name, and what it is."""
    asked: set[str] = field(factory=set)
    """The names of members that are asked for."""

    def hold(self, looked_up: Sequence[Any] = ()) -> bool:
        """Whether all is as it was; of the arrays ``looked_up``, each with its shape, strides and dtype, what they hold
        may be another."""
        try:
            for function, code, defaults in self.functions:
                if function.__code__ is not code or function.__defaults__ is not defaults or function.__kwdefaults__:
                    return False
            for names, name, value in self.names:
                if names[name] is not value:
                    return False
            for cell, value in self.cells:
                if cell.cell_contents is not value:
                    return False
            for owner, name, value in self.members:
                if getattr(owner, name) is not value:
                    return False
        except (KeyError, ValueError, AttributeError):  # a name or a cell that is empty now
            return False
        for names, name in self.missing:
            if name in names:
                return False
        for array, *kind in looked_up:
            if [array.shape, array.strides, array.dtype] != kind:
                return False
        free = [id(array) for array, *_ in looked_up]
        return all(same_content(copy, array) for array, copy in self.arrays if id(array) not in free) and all(
            digest(array) == known for array, known in self.hashed if id(array) not in free
        )


Within = Callable[[Any], Any]
"""The function behind one that the library has made, which does nothing but differentiate it; None for any other."""


def reads_of(f: Any, within: Within, *, steps: bool = False) -> Reads:
    """What ``f`` reads from outside; raises :class:`NotTheSameError` where that cannot be said.

    Of ``steps`` of a loop it is said with less: they may read handles of the trace around, of which the loop knows that
    they stay, and write to arrays. Who has run such a step has to ask afterwards whether all still holds: then the
    writes have left what is read as it was, and so will those of every other run.
    """
    reads = Reads(steps)
    _function(f, reads, within)
    _require_members(reads)
    return reads


def _require_members(reads: Reads) -> None:
    """Every member that is asked for has to be known, whatever it is asked of."""
    of_each: dict[type, set[str]] = {}
    for owner, name, _ in reads.members:
        of_each.setdefault(type(owner), set()).add(name)
    known = {name for names in of_each.values() for name in names if name == "data" or not hasattr(np.ndarray, name)}
    strange = reads.asked - _ATTRIBUTES - known
    for kind, names in of_each.items():  # a property computes, and a method is what its class says now
        strange |= {name for name in reads.asked - names if hasattr(kind, name)}
    if strange:
        raise NotTheSameError(f"it asks for .{min(strange)}")


def uses_argument(code: CodeType, name: str) -> bool:
    """Whether a function looks at one of its arguments, or hands it on."""
    for one in instructions_of(code):
        value = one.argval
        if (value == name or (type(value) is tuple and name in value)) and _LOCAL.search(one.opname):
            return True
    return False


@lru_cache(maxsize=256)
def instructions_of(code: CodeType) -> list[dis.Instruction]:
    """What a function does, one after the other."""
    return [one for one in dis.get_instructions(code) if one.opname not in ("CACHE", "EXTENDED_ARG")]


def _function(f: Any, reads: Reads, within: Within) -> None:
    while type(f) is MadeFunction and (inner := within(f)) is not None:
        f = inner
    if type(f) is not FunctionType or f.__kwdefaults__:
        raise NotTheSameError(f"it calls {f!r}")
    if any(known is f for known, _, _ in reads.functions):
        return
    if len(reads.functions) >= MOST_FUNCTIONS:
        raise NotTheSameError("it calls too many functions")
    reads.functions.append((f, f.__code__, f.__defaults__))
    for value in f.__defaults__ or ():
        _data(value, reads)
    cells = dict(zip(f.__code__.co_freevars, f.__closure__ or (), strict=True))
    _code(f.__code__, f, cells, reads, within)


def _code(code: CodeType, f: FunctionType, cells: dict[str, Any], reads: Reads, within: Within) -> None:
    """One body; of a name in ``cells`` None says that it is local to a function around."""
    if code.co_flags & 0x2A0:  # a generator, a coroutine
        raise NotTheSameError("it is a generator")
    instructions = instructions_of(code)
    looked_at = 0  # members up to there have been looked up
    for at, one in enumerate(instructions):
        name, value = one.opname, one.argval
        if name in ("LOAD_GLOBAL", "LOAD_DEREF"):
            if name == "LOAD_DEREF" and (value in code.co_cellvars or cells.get(value, one) is None):
                continue
            found = _global(f, value, reads) if name == "LOAD_GLOBAL" else _cell(cells[value], reads)
            looked_at = at + 1 + _reached(found, instructions[at + 1 :], reads, within)
        elif name in ("LOAD_ATTR", "LOAD_METHOD"):
            if at >= looked_at:
                _member(value, reads)
        elif name == "LOAD_CONST":
            if isinstance(value, CodeType):
                inner = {each: None if each in code.co_cellvars else cells[each] for each in value.co_freevars}
                _code(value, f, inner, reads, within)
        elif name == "STORE_DEREF":
            if value not in code.co_cellvars:
                raise NotTheSameError("it changes a name around it")
        elif name == "BINARY_OP":
            if one.argrepr.endswith("=") and not reads.steps:
                raise NotTheSameError("it may change an array in place")
        elif name == "CALL_INTRINSIC_1" and one.argrepr == "INTRINSIC_LIST_TO_TUPLE":  # f(x, *others)
            continue
        elif name not in _PURE and not (reads.steps and name in _WRITES):
            raise NotTheSameError(f"it has the instruction {name}")


def _reached(found: Any, after: list[dis.Instruction], reads: Reads, within: Within) -> int:
    """What an instruction loads from outside; how many instructions after it ask for members, which are looked up."""
    path: list[str] = []
    for one in after:
        if one.opname not in ("LOAD_ATTR", "LOAD_METHOD"):
            break
        path.append(one.argval)
    n = len(path)
    while type(found) is ModuleType:
        if not path or path[0] not in found.__dict__:
            raise NotTheSameError(f"it hands on the module {found.__name__}")
        names, name = found.__dict__, path.pop(0)
        found = names[name]
        reads.names.append((names, name, found))
    for name in path:
        _member(name, reads)
    if _is_known(found) or _is_public(found, _OF_STEPS if reads.steps else _TRANSFORMS):
        return n
    if type(found) in (FunctionType, MadeFunction):
        _function(found, reads, within)
    else:
        _data(found, reads)
    return n


def _member(name: str, reads: Reads) -> None:
    if not reads.steps and name not in _ATTRIBUTES:
        raise NotTheSameError(f"it asks for .{name}")
    reads.asked.add(name)


def _is_known(found: Any) -> bool:
    return _is_of_numpy(found) or any(found is one for one in (*_BUILTINS, *_TYPES))


def _is_public(found: Any, names: frozenset[str]) -> bool:
    """Whether it is a public function of this library that has one of these names. The function that one which makes a
    derivative is given is proved where the body names it."""
    if type(found) is not FunctionType or found.__name__ not in names:
        return False
    return getattr(import_module("pullback"), found.__name__) is found


def _is_of_numpy(found: Any) -> bool:
    if type(found) not in _KINDS_OF_NUMPY:
        return False
    name = found.__name__
    if type(found) is np.ufunc:
        return getattr(np, name, None) is found
    return (name in _NUMPY and getattr(np, name, None) is found) or (
        name in _LINALG and getattr(np.linalg, name, None) is found
    )


def _global(f: FunctionType, name: str, reads: Reads) -> Any:
    names = f.__globals__
    if name not in names:
        reads.missing.append((names, name))
        names = getattr(f, "__builtins__")  # noqa: B009  mypy does not know it, and does not always say so
    if name not in names:
        raise NotTheSameError(f"there is no {name}")
    reads.names.append((names, name, names[name]))
    return names[name]


def _cell(cell: CellType, reads: Reads) -> Any:
    try:
        value = cell.cell_contents
    except ValueError:
        raise NotTheSameError("a name around it has no value") from None
    reads.cells.append((cell, value))
    return value


def _data(value: Any, reads: Reads) -> None:
    """A value from outside: one that nobody can change, or an array that is compared."""
    if type(value) is slice:
        value = (value.start, value.stop, value.step)
    if type(value) is tuple:
        for part in value:
            _data(part, reads)
    elif reads.steps and isinstance(value, Handle):
        return
    elif reads.steps and has(type(value)):
        _members(value, reads)
    elif type(value) is np.ndarray:
        if value.dtype.kind not in "fciub" or value.nbytes > (MOST_HASHED if reads.steps else MOST_BYTES):
            raise NotTheSameError("it reads a large array, or one of objects")
        if value.nbytes <= MOST_BYTES:
            reads.arrays.append((value, faithful_copy(value)))
        else:
            reads.hashed.append((value, digest(value)))
    elif not (type(value) in _NUMBERS or (isinstance(value, np.number) and type(value).__module__ == "numpy")):
        raise NotTheSameError(f"it reads a {type(value).__name__}")


def _members(owner: Any, reads: Reads) -> None:
    """An object of an attrs class: its members, where each is what it was set to."""
    kind: Any = type(owner)
    if kind.__getattribute__ is not object.__getattribute__ or hasattr(kind, "__getattr__"):
        raise NotTheSameError(f"it reads a {kind.__name__}, which answers for its members")
    if not _only_has_members(kind):
        raise NotTheSameError(f"it reads a {kind.__name__}, which computes")
    if any(known is owner for known, _, _ in reads.members):
        return
    for one in fields(kind):
        if type(getattr(kind, one.name, None)) is not MemberDescriptorType:
            raise NotTheSameError(f"it reads a {kind.__name__}, of which {one.name} is no slot")
        value = getattr(owner, one.name)
        reads.members.append((owner, one.name, value))
        _data(value, reads)


def _only_has_members(kind: Any) -> bool:
    """Whether no code of the user's runs where an object of an attrs class is used as an operand."""
    if any(not _OPERATED.isdisjoint(vars(each)) for each in kind.__mro__[:-1]):
        return False
    methods = (getattr(kind, name) for name in _COMPARED)
    return all(_is_of_attrs(one) for one in methods if type(one) is FunctionType)


def _is_of_attrs(method: FunctionType) -> bool:
    return method.__code__.co_filename.startswith(("<attrs generated", fields.__code__.co_filename))
