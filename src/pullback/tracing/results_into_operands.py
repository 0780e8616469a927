"""A result computed into the memory of an operand that dies with its operator: ``a * b + c`` of large arrays needs one
array, as NumPy itself does in such an expression.

The operand dies if the stack of the user's frame alone holds it, as the instruction there has made it that its record
names. Its array is written if that is known to the handle alone: no record has saved it, nothing looks at it, nobody
has been given it. What is computed so are real numbers of one dtype in C order, element by element: their bits do not
depend on where they go. The handle has no value from then on. Should somebody have it still, that is an error and no
wrong number.

How it is known that an operand dies nobody promises, as is said of the rest in ``words.undocumented``. What the stack
of a frame holds cannot be asked. A count of references says that one thing alone has the operand, and the code object
says that this is the stack: by the instruction that has made it. CPython 3.14 lends a local to an operator without
counting that, so the count alone says nothing there. An array of objects lends its elements to an operator as the stack
does, and may do so again and again: what comes in a row of records of one call site may be of one, and how many there
are is counted where NumPy counts them (2.5 does not, with CPython 3.12 and newer; there an array of a single such
element, broadcast in one expression, ends in an error). What is not known of an instruction makes all unknown that lies
on the stack, so of another Python no operand is found to die, and each result is in a new array.
Tests: test_operands_are_found_on_the_stack, test_counts_tell_an_operand_that_dies, test_arrays_of_objects_are_counted.
"""

import dis
import operator
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from sys import getrefcount
from types import CodeType, FrameType, ModuleType
from typing import Any, Final
from weakref import getweakrefcount

import numpy as np

from pullback.primitives.shaping.reshaping import lay_out
from pullback.recording.generated_callers import SYMBOLS as OF_UFUNCS
from pullback.recording.handles import FREE, Handle, spec_of_handle
from pullback.recording.recorder import call
from pullback.recording.tape import DEFERRED, Tape
from pullback.words.call_sites import find_site
from pullback.words.specs import LARGE, shared_spec
from pullback.words.undocumented import limit

UNKNOWN: Final = -1
"""What stands in the place of an instruction for an operand that a name, a constant, or something else has given."""
SYMBOLS: Final[dict[Any, str]] = OF_UFUNCS | {f"operator_{ufunc.__name__}": of for ufunc, of in OF_UFUNCS.items()}
"""The operators that NumPy computes into an operand that dies, by ufunc and by name."""
_UFUNCS: Final[dict[str, Any]] = {of: ufunc for ufunc, of in OF_UFUNCS.items()}
_PLAINLY: Final[dict[str, Any]] = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}
COMMUTE: Final = frozenset("+*")
"""The operators that NumPy computes into the right operand, too."""
_REAL: Final = frozenset("fd")
_NUMBERS: Final = frozenset((float, int))
_MADE: dict[int, tuple[str, int, int]] = {}
"""What stands at a call site of an operator, or of a call, and the call sites at which its operands were made, or
``UNKNOWN``."""
_NO_OPERATOR: Final = ("", UNKNOWN, UNKNOWN)


def taken_over(
    symbol: str, places: str, x: Any, xv: Any, y: Any, yv: Any, tape: Tape, frame: FrameType, *, wide: bool
) -> Any:
    """What an operator gives for two values, in the array of an operand that dies, else in a new one. ``x`` and ``y``
    are the operands, of which those at ``places`` are handles whose values the record does not need; ``frame`` called
    the operator. The caller is called by another one if it is ``wide``, for views."""
    found, of_x, of_y = _asked(tape, frame)
    if found == symbol:
        limits = WIDE if wide else NARROW
        if "x" in places and _was_made_at(of_x, x, tape) and _dies(x, xv, limits[0]) and _goes_into(yv, xv):
            del x._value
            return _UFUNCS[symbol](xv, yv, out=xv)
        if "y" in places and _was_made_at(of_y, y, tape) and _dies(y, yv, limits[1]) and _goes_into(xv, yv):
            spec_of_handle(y)  # is asked after this
            del y._value
            return _UFUNCS[symbol](xv, yv, out=yv)
    return _PLAINLY[symbol](xv, yv)


def lies_plainly(symbol: str, x: Any, y: Any, out: Any, tape: Tape, frame: FrameType, limits: Any) -> Any:
    """The strides that the result of an operator of two large arrays has where they are plain, if not those of ``out``:
    NumPy computes into an operand that dies, the left one first, and so in its order of memory. ``x`` and ``y`` are the
    operands, handles or arrays; ``limits`` are those of who calls. A record may need the operands."""
    found, of_x, of_y = _at(tape, frame)
    if found != symbol or not numpy_takes_over():
        return None
    if of_x != UNKNOWN and _is_temporary(x, y, out, limits[0][0]):
        return _strides_unlike(x, out)
    if of_y != UNKNOWN and symbol in COMMUTE and _is_temporary(y, x, out, limits[1][0]):
        return _strides_unlike(y, out)
    return None


def laid_out(x: Any, strides: tuple[int, ...]) -> Any:
    """A handle with these strides: recorded, so that whoever runs the records again has it so."""
    return call(lay_out, (x,), {"strides": strides})


def negated(x: Any, xv: Any, tape: Tape, frame: FrameType) -> Any:
    """What ``-x`` gives, as :func:`taken_over`."""
    found, of_x, _ = _asked(tape, frame)
    if found == "negative" and _was_made_at(of_x, x, tape) and _dies(x, xv, NARROW[0]):
        del x._value
        return np.negative(xv, out=xv)
    return -xv


def computed(ufunc: Any, x: Any, xv: Any, tape: Tape, frame: FrameType) -> Any:
    """What a ufunc of one operand gives, as :func:`taken_over`, where the frame calls it by a global name."""
    found, of_x, _ = _asked(tape, frame)
    if _was_made_at(of_x, x, tape) and _dies(x, xv, CALLED) and _named(found, frame.f_globals) is ufunc:
        del x._value
        return ufunc(xv, out=xv)
    return ufunc(xv)


def _named(path: str, names: dict[str, Any]) -> Any:
    """What a dotted name is, whose first part is a global one and the others are of modules."""
    first, *more = path.split(".")
    thing = names.get(first)
    for name in more:
        thing = vars(thing).get(name) if type(thing) is ModuleType else None
    return thing


def given(value: Any, out: Any) -> Any:
    """What is told of a value that may have been taken over by the result ``out``: its spec is the same."""
    return shared_spec(out) if value is out else value


def _asked(tape: Tape, frame: FrameType) -> tuple[str, int, int]:
    """As :func:`_at`; nothing where a value may be looked at again, or where an array of objects may hold the
    operands."""
    if tape.mode or tape.governor is not None or tape.outer is not None or tape.objects < objects_held():
        return _NO_OPERATOR
    return _at(tape, frame)


def _at(tape: Tape, frame: FrameType) -> tuple[str, int, int]:
    """The operator that a frame is at, and where its operands were made; nothing where it is not the user's."""
    site = tape.sites[frame.f_lasti] if frame.f_code is tape.code else find_site(tape, frame)
    if frame.f_code is not tape.code:
        return _NO_OPERATOR
    return _MADE.get(site) or _made(site, frame.f_code, tape.sites)


def _made(site: int, code: CodeType, sites: Sequence[int]) -> tuple[str, int, int]:
    """Learn the operators of a code object; what stands at one of its call sites."""
    for offset, what, operands in operators_of(code):
        of_x, of_y = (UNKNOWN if at == UNKNOWN else sites[at] for at in (*operands, UNKNOWN)[:2])
        _MADE[sites[offset]] = (what, of_x, of_y)
    return _MADE.setdefault(site, _NO_OPERATOR)


def _was_made_at(site: int, x: Any, tape: Tape) -> bool:
    """Whether a handle was made at a call site, which made neither the one before it nor the one after it: what an
    operator of an array of objects gives for its elements is recorded in a row."""
    records, ident = tape.records, x._id
    beside = (*records[max(ident - 1, 0) : ident], *records[ident + 1 : ident + 2])
    return site != UNKNOWN and records[ident][-1] == site and all(one is None or one[-1] != site for one in beside)


def _dies(x: Any, xv: Any, limits: tuple[int, int]) -> bool:
    """Whether the stack alone holds a handle, and the handle alone an array that can be written: there are then at most
    so many references to each."""
    return (
        getrefcount(x) <= limits[0] and x._flag == FREE and type(xv) is np.ndarray and getrefcount(xv) <= limits[1]
        and xv.dtype.char in _REAL and xv.flags.carray and xv.flags.owndata and not getweakrefcount(xv)
    )  # fmt: skip


@cache
def numpy_takes_over() -> bool:
    """Whether NumPy computes into operands that die, which it does not on every system."""
    columns_first = np.zeros((LARGE // 1024, 128)).T
    return bool((columns_first * 1.0 + np.zeros(columns_first.shape)).flags.fnc)


def _is_temporary(x: Any, y: Any, out: Any, most: int) -> bool:
    """Whether NumPy would compute an operator of two plain arrays in the array of ``x``, which dies: there are then at
    most so many references to it, or to its handle."""
    if getrefcount(x) > most:
        return False
    (xv, owns), (yv, _) = _layout(x, out), _layout(y, out)
    return bool(owns and yv.shape == xv.shape and yv.ndim and np.can_cast(yv.dtype, xv.dtype, "safe"))


def _strides_unlike(x: Any, out: Any) -> Any:
    """The strides of an operand, if they are not those of the result."""
    strides = _layout(x, out)[0].strides
    return None if strides == _layout(out, out)[0].strides else strides


def _layout(x: Any, out: Any) -> tuple[Any, bool]:
    """What lies in memory as the value of an operand, which is the result where that has taken it over, and whether
    that owns its memory."""
    if not isinstance(x, Handle):
        return x, isinstance(x, np.ndarray) and x.flags.owndata
    if x._tape.mode == DEFERRED:
        return x, type(x) is x._tape.kinds.tracer
    value = getattr(x, "_value", out)
    return value, isinstance(value, np.ndarray) and value.flags.owndata


def _goes_into(y: Any, xv: Any) -> bool:
    """Whether an operator of an array ``xv`` and ``y`` gives an array of the same shape, dtype and strides."""
    kind = type(y)
    if kind is np.ndarray:
        return y.dtype is xv.dtype and (y.shape == xv.shape or (y.ndim < xv.ndim and y.shape == xv.shape[-y.ndim :]))
    return kind in _NUMBERS or (kind is np.float64 and xv.dtype.char == "d")


# ------------------------------------------------------------------------------------------------ what the stack holds
_NOTHING: Final = frozenset(("RESUME", "NOP", "CACHE", "EXTENDED_ARG", "KW_NAMES", "NOT_TAKEN"))
"""Instructions that leave the stack alone."""
_LOADS: Final = frozenset((
    "LOAD_CONST", "LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_BORROW", "LOAD_FAST_LOAD_FAST", "LOAD_GLOBAL",
    "LOAD_FAST_BORROW_LOAD_FAST_BORROW", "LOAD_SMALL_INT", "LOAD_DEREF", "LOAD_NAME", "PUSH_NULL",
))  # fmt: skip
_PART: Final = frozenset(("LOAD_ATTR", "LOAD_METHOD"))
_OF_ONE: Final = _PART | {"UNARY_NEGATIVE"}
_OF_TWO: Final = frozenset(("BINARY_OP", "BINARY_SUBSCR", "COMPARE_OP"))
_TAKE: Final = frozenset(("PRECALL", "STORE_FAST", "STORE_DEREF", "STORE_GLOBAL", "STORE_NAME", "POP_TOP"))
_GIVE_ONE: Final = frozenset((
    "CALL", "CALL_KW", "CALL_FUNCTION_EX", "BUILD_TUPLE", "BUILD_LIST", "BUILD_SLICE", "BUILD_MAP",
))  # fmt: skip
"""Instructions that take any number of values and give one."""
_MAKE: Final = frozenset(("BINARY_OP", "CALL", "CALL_KW", "CALL_FUNCTION_EX", "UNARY_NEGATIVE"))
"""Instructions that give what they have made or been given, and keep no reference to it."""


def operators_of(code: CodeType) -> Iterator[tuple[int, str, tuple[int, ...]]]:
    """The binary operators of a code object that give something new, its negatives, and its calls of functions of one
    argument that have a global name, or are of a module that has one: the offset of the instruction, the symbol,
    ``"negative"`` or the name, and the offset of the instruction that has made each operand, left one first;
    ``UNKNOWN`` for what the stack does not own alone."""
    stack: list[int | str] = []
    arguments: list[int | str] = []
    for step in dis.get_instructions(code):
        if step.is_jump_target:
            stack.clear()
        takes, gives = _effect(step)
        if takes < 0:
            stack.clear()
            continue
        taken = [stack.pop() if stack else UNKNOWN for _ in range(takes)][::-1]
        if step.opname == "PRECALL":  # CPython 3.11 takes the arguments by an instruction of its own
            arguments = taken
        elif step.opname == "CALL":
            taken, arguments = taken + arguments, []
        what = _what(step, taken)
        if what:
            operands = taken[2:] if step.opname == "CALL" else taken
            yield step.offset, what, tuple(at if isinstance(at, int) else UNKNOWN for at in operands)
        stack += [_given(step, taken)] * gives


def _what(step: dis.Instruction, taken: list[int | str]) -> str:
    """The symbol of an operator, or the name of a function that is called; nothing for any other instruction."""
    if step.opname == "BINARY_OP":
        return "" if step.argrepr.endswith("=") else step.argrepr
    if step.opname == "CALL" and len(taken) == 3:  # the function and what CPython has beside it, then the argument
        return next((name for name in taken[1::-1] if isinstance(name, str)), "")
    return "negative" if step.opname == "UNARY_NEGATIVE" else ""


def _given(step: dis.Instruction, taken: list[int | str]) -> int | str:
    """What is known of a value: the instruction that has made it, or its name."""
    if step.opname in _MAKE:
        return step.offset
    if step.opname == "LOAD_GLOBAL":
        return str(step.argval)
    return f"{taken[0]}.{step.argval}" if step.opname in _PART and isinstance(taken[0], str) else UNKNOWN


def _effect(step: dis.Instruction) -> tuple[int, int]:
    """How many values an instruction takes off the stack, and how many it puts there; -1 where that is not known."""
    name = step.opname
    if name in _NOTHING:
        return 0, 0
    change = dis.stack_effect(step.opcode, step.arg, jump=False)
    for names, takes in ((_LOADS, 0), (_OF_ONE, 1), (_OF_TWO, 2)):
        if name in names:
            return takes, takes + change
    if name in _TAKE:
        return -change, 0
    return (1 - change, 1) if name in _GIVE_ONE else (-1, 0)


class _Operand:
    """As a tracer is asked by an operator: by a method that calls a function, which calls another one."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __add__(self, of_array: bool) -> int:
        return _operated(self, of_array)

    def __sub__(self, of_array: bool) -> int:
        return _left(self, of_array)

    def __rsub__(self, of_array: bool) -> int:
        return _right(of_array, self)

    def __array_ufunc__(self, func: Any, how: str, x: Any, y: Any = None, *more: Any, **kwargs: Any) -> int:
        if y is None:
            return _operated(x, False)
        return _turning(x, y) if func is np.add else _by_variant(x, y)


def _left(x: _Operand, y: bool) -> int:
    xv = x.value
    return _operated(x, y) if xv is not y else 0


def _by_variant(x: Any, y: Any) -> int:
    return _turning(x, y)


def _turning(x: Any, y: Any) -> int:
    return _turned(x, y)


def _turned(x: Any, y: Any) -> int:
    return _counts(x, None)[0] if type(x) is np.ndarray and x.size > 1 else _counts(y, None)[0]


def _right(x: bool, y: _Operand) -> int:
    return _operated(y, x)


def _operated(x: _Operand, y: bool) -> int:
    xv = x.value
    return _taken(x, xv, y)


def _taken(x: _Operand, xv: Any, of_array: bool) -> int:
    return _counts(x, xv)[of_array]


def _counts(x: Any, xv: Any) -> tuple[int, int]:
    return getrefcount(x), getrefcount(xv)


_Seen = Callable[[list[Any]], int]


def _limits(of_handle: _Seen, most: int, of_array: _Seen, within: int) -> tuple[int, int]:
    """How many references there are to an operand that the stack of a frame alone has, and to the array that it alone
    has, where that is asked."""
    return limit(of_handle, most, lambda: _Operand(None)), limit(of_array, within)


NARROW: Final = (_limits(lambda held: held.pop() + False, 6, lambda held: _Operand(held.pop()) + True, 5),) * 2
"""The limits for the left and the right operand of an operator that calls a generated caller."""
WIDE: Final = (
    _limits(lambda held: held.pop() - False, 7, lambda held: _Operand(held.pop()) - True, 6),
    _limits(lambda held: False - held.pop(), 7, lambda held: True - _Operand(held.pop()), 5),
)
"""The limits for an operator whose caller calls another one, as it does for views."""
CALLED: Final = (limit(lambda held: np.negative(held.pop()), 10, lambda: _Operand(None)), NARROW[0][1])
"""The limits for the argument of a ufunc."""


BY_UFUNC: Final = (
    (limit(lambda held: held.pop() + _Operand(None), 8, lambda: np.empty(2)), 0),
    (limit(lambda held: np.empty(1) + held.pop(), 10, lambda: _Operand(None)), 0),
)
WIDE_BY_UFUNC: Final = (
    (limit(lambda held: held.pop() - _Operand(None), 9, lambda: np.empty(2)), 0),
    (limit(lambda held: np.empty(1) - held.pop(), 11, lambda: _Operand(None)), 0),
)
"""The limits for an operator whose left operand is an array, which calls the ufunc."""


def counting(seen: Callable[[], int]) -> Callable[[], int]:
    """What gives a greater number than before while there is an array of objects that was not there before: ``seen``,
    if it does; else what gives 0."""
    before, one = seen(), np.empty(1, object)
    return seen if seen() >= before + one.size else int


objects_held: Final = counting(partial(getrefcount, np.dtype(object)))
"""A count that is asked when a trace begins, in which this file may not be entered again."""


TAKING_OVER: Final[dict[str, Any]] = {
    "taken_over": taken_over, "negated": negated, "computed": computed, "given": given,
    "lies_plainly": lies_plainly, "laid_out": laid_out,
    "NARROW": NARROW, "WIDE": WIDE, "BY_UFUNC": BY_UFUNC, "WIDE_BY_UFUNC": WIDE_BY_UFUNC,
}  # fmt: skip
"""What the text of a generated caller refers to."""
