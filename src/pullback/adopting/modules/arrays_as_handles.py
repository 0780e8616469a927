"""Plain arrays that adopted code meets while a trace is under way become handles of the trace: traced values can be
written into them.

| the array | what it becomes |
|---|---|
| made just now, nobody else holds it | a buffer, as ``np.zeros_like`` of a tracer gives one |
| an argument, from code that is not adopted | a handle that copies at the first write; ``leaving`` sees to it |
| of a name of an adopted module | the same, one for each trace |
| anything else (an attribute made outside the trace) | itself: a traced value written there raises as ever |
"""

import sys
from collections import deque
from collections.abc import Sequence
from contextvars import ContextVar
from functools import partial
from gc import get_referents
from sys import _getframe, getrefcount
from types import CellType, FrameType, FunctionType, MethodType
from typing import Any, Final

import numpy as np
from attrs import frozen

from pullback.adopting.kinds.matrices import named_matrix
from pullback.adopting.modules.structured import as_fields
from pullback.memory.in_force import innermost
from pullback.recording.copies import overlaps_itself
from pullback.recording.crossing import written_around
from pullback.recording.handles import BORROWED, FREE, FROZEN, Handle, over, resolve
from pullback.recording.tape import DEFERRED, REPLAYABLE
from pullback.words.call_sites import intern_site, site_here, site_text
from pullback.words.errors import AdoptionError, ConversionError, WriteError
from pullback.words.foreign_operands import ORDINARY
from pullback.words.ordered_calls import UNDER_WAY
from pullback.words.plugins import COPIES, LIVE_NAME
from pullback.words.specs import INEXACT
from pullback.words.structures import flatten

QUIET: Final = ORDINARY - {np.ndarray}
"""Types of arguments of which nothing need be asked."""
CONTAINERS: Final = frozenset((
    list, tuple, dict, set, frozenset, deque, CellType, MethodType, partial, property, staticmethod, classmethod,
))  # fmt: skip
"""Types in which arrays are looked for."""
MOST: Final = 10_000
"""Among how many objects arrays are looked for."""


@frozen
class Visit:
    """A call of an adopted function by other code, with plain arrays among its arguments."""

    frame: FrameType
    caller: FrameType
    arrays: tuple[tuple[str, Any, Any], ...]
    """The name of the argument, the array, and the handle that stands for it."""


NOTEBOOK: Final[ContextVar[Any]] = ContextVar("pullback_notebook", default=None)
"""Who is told of each array that becomes a handle, and of calls of Python's functions of numbers: nobody, but for
``pullback port``."""


def _held_by_a_local(x: Any) -> int:
    return getrefcount(x)


def _held_by_an_argument(*values: Any) -> int:
    return next(getrefcount(x) for x in values)


def _measured_local() -> int:
    made = object()
    return _held_by_a_local(made)


def _measured_argument(made: Any) -> int:
    return _held_by_an_argument(made)


HELD_BY_A_LOCAL: Final = _measured_local()
"""What ``getrefcount`` shows in a function that is handed a local which nobody else holds."""
HELD_BY_AN_ARGUMENT: Final = _measured_argument(object())
"""What ``getrefcount`` shows where the argument of a function is handed on among others."""


def fresh(x: Any) -> Any:
    """What a name of adopted code is bound to from now on: a buffer, where ``x`` is an array that nobody else holds."""
    if type(x) is not np.ndarray:
        if issubclass(type(x), Handle) and NOTEBOOK.get() is not None:
            NOTEBOOK.get().note_bound(x, _adopted_frame())
        return x
    if getrefcount(x) > HELD_BY_A_LOCAL:
        return x
    if x.dtype.kind not in INEXACT and x.dtype.names is None:
        return x
    return owned(x) if alone(x) else x


def alone(x: Any) -> bool:
    """Whether nothing but ``x``, which one holder has, looks at its memory, which may be written."""
    base = x.base
    # The attribute of x, the name here, and the argument of getrefcount.
    return bool(x.flags.writeable) and (
        base is None or (type(base) is np.ndarray and base.base is None and getrefcount(base) <= 3)
    )


def owned(x: Any, flag: int = FREE, *, blank: bool = False, field: bool = False) -> Any:
    """The array as a handle of the innermost trace; as it is where none records, or for a dtype without derivative.
    ``field`` says that it is part of a structured array."""
    if type(x) is not np.ndarray or (x.dtype.kind not in INEXACT and x.dtype.names is None):
        return x
    tape = innermost(follows=x.dtype.names is None)
    if tape is None:
        return x
    if x.dtype.names is not None:
        return as_fields(x, partial(owned, field=True))
    if blank and tape.mode in (REPLAYABLE, DEFERRED):
        x[...] = 0  # what ``empty`` leaves is nobody's: zeros need not be held for a replay, leftovers would be
    if tape.mode == DEFERRED:
        return tape.shadow.lifted(x)
    if tape.adopted is None:
        tape.adopted = Standing()
    made = over(x, tape, flag)
    notebook = NOTEBOOK.get()
    if notebook is not None:
        notebook.note_made(made, _adopted_frame(), field=field)
    return made


def _adopted_frame() -> FrameType:
    """The innermost frame of adopted code."""
    frame = _getframe(1)
    while LIVE_NAME not in frame.f_globals and frame.f_back is not None:
        frame = frame.f_back
    return frame


def note_call(name: str) -> None:
    """A function of Python's meets a traced number."""
    notebook = NOTEBOOK.get()
    if notebook is not None:
        notebook.note_call(name, _adopted_frame())


def note_joined(parts: Any) -> None:
    """An array is made of a list with traced numbers."""
    notebook = NOTEBOOK.get()
    if notebook is not None:
        notebook.note_joined(_adopted_frame(), flat=not any(isinstance(part, list | tuple) for part in parts))


def standing(x: Any, *, named: bool = False) -> Any:
    """The one handle that stands in the innermost trace for a plain array which others hold, too; where a trace around
    has written to its own, that one. ``named`` says that a module has a name for the array."""
    tape = innermost()
    known = None if tape is None or tape.adopted is None else tape.adopted.get(id(x))
    if known is not None:
        return known[1]
    written = written_around(x, tape)
    if written is not None:
        return written
    if tape is None:
        return x
    if tape.adopted is None:
        tape.adopted = Standing()
    tape.adopted.require_unwritten(x)
    flag = BORROWED if tape.captures is None else FROZEN  # a step of a loop cannot keep what is written to it
    made = over(x, tape, flag)
    tape.adopted[id(x)] = x, made, named
    return made


class Standing(dict[int, tuple[Any, Any, bool]]):
    """What stands in a trace for arrays of others, by the id of the array: the array, the handle, and whether a module
    has a name for it.

    Each handle has a copy of its own from its first write on. So of arrays that share memory none may be written: NumPy
    would show the write in the others.
    """

    __slots__ = ("_contained", "visits")
    visits: dict[int, Visit]
    """Calls under way, by the id of their frame."""
    _contained: list[Any] | None
    """The plain arrays that adopted modules reach otherwise than by a name; None before anybody has asked."""

    def __init__(self) -> None:
        super().__init__()
        self.visits, self._contained = {}, None

    def close(self) -> None:
        """The trace has ended: nothing stands for anything any more, and calls that have failed are over."""
        self.clear()
        self.visits, self._contained = {}, None

    def require_alone(self, handle: Any) -> None:
        """Raise :class:`WriteError` where the array for which ``handle`` stands, which is about to be written, shares
        memory with another one that the program can reach."""
        for array, stands, named in list(self.values()):
            if stands is handle:
                both = handle._tape.overlapping.get(("array", id(array)))
                if both is not None or overlaps_itself(array):
                    raise _overlap(both or f"elements of {_name(array)}")
                for other, _, _ in self.values():
                    if other is not array and _share(other, array):
                        raise _overlap(f"{_name(array)} and {_name(other)}")
                if named:
                    self._require_not_contained(array)

    def _require_not_contained(self, array: Any) -> None:
        if self._contained is None:
            self._contained = _contained()
        for other in self._contained:
            if _share(other, array):
                raise _overlap(f"{_name(array)} and {_spec_text(other)} in a list, an object or a class of the module")

    def require_unwritten(self, x: Any) -> None:
        """Raise :class:`WriteError` where an array that shares memory with ``x``, which is about to be read, has been
        written."""
        for array, stands, _ in self.values():
            if array is not x and resolve(stands)._value is not array and _share(array, x):
                raise _overlap(f"{_name(array)} and {_name(x)}")


def _overlap(both: str) -> WriteError:
    return WriteError(
        f"an array that overlaps another one in memory is written in adopted code (at {site_text(site_here())}): "
        f"{both} share it, and NumPy would change both; take the part in the function that uses it, u[1:-1], or write "
        "to a copy"
    )


def _share(a: Any, b: Any) -> bool:
    return bool(np.may_share_memory(a, b) and np.shares_memory(a, b))


def _name(array: Any) -> str:
    for module, names in _copies():
        for name, held in names.items():
            if held is array:
                return f"{module}.{name}"
    for tape in UNDER_WAY.get():
        for visit in tape.adopted.visits.values() if tape.adopted is not None else ():
            for name, given, _ in visit.arrays:
                if given is array:
                    return f"argument {name!r} of {visit.frame.f_code.co_name}"
    return _spec_text(array)


def _spec_text(array: Any) -> str:
    return f"an array of shape {array.shape}"


def _copies() -> list[tuple[str, dict[str, Any]]]:
    """The names of adopted modules, and what they stand for."""
    inside = f"{COPIES}."
    copies = [(name, one) for name, one in list(sys.modules.items()) if name.startswith(inside)]
    return [(name.removeprefix(inside), vars(one)) for name, one in copies]


def _contained() -> list[Any]:
    """The plain arrays in lists, objects, classes and closures that adopted modules reach, among the first ``MOST``
    objects: to them no handle stands for an array of a name."""
    found, seen, ahead = [], set(), []
    for _, names in _copies():
        seen.add(id(names))
        ahead += [held for held in names.values() if type(held) is not np.ndarray]
    while ahead and len(seen) < MOST:
        x = ahead.pop()
        if type(x) is np.ndarray:
            found.append(x)
        elif id(x) not in seen and _is_walked(x):
            seen.add(id(x))
            ahead += get_referents(x)
    return found


def _is_walked(x: Any) -> bool:
    kind: Any = type(x)
    if kind in CONTAINERS:
        return True
    return str((x if kind is FunctionType or issubclass(kind, type) else kind).__module__).partition(".")[0] == COPIES


def of_module(x: Any) -> Any:
    """What a name of an adopted module stands for, while a trace is under way."""
    if type(x) is not np.ndarray or x.dtype.kind not in INEXACT:
        return named_matrix(x, of_module) if type(x) is np.matrix else x
    found, notebook = standing(x, named=True), NOTEBOOK.get()
    if notebook is not None and found is not x:
        notebook.note_of_module(x, found, _adopted_frame())
    return found


def array_if_unwritten(x: Any) -> Any:
    """The plain array for which a handle stands, if nothing was written to it since; anything else as it is."""
    if not issubclass(type(x), Handle) or x._id is not None:
        return x
    arrays = (array for array, handle, _ in (x._tape.adopted or {}).values() if handle is x)
    return next((array for array in arrays if array is resolve(x)._value), x)


def arguments(*values: Any) -> tuple[Any, ...]:
    """The arguments of an adopted function, while a trace is under way."""
    frame = _getframe(1)
    if QUIET.issuperset(map(type, values)):
        return values
    caller = frame.f_back
    adopted = caller is not None and LIVE_NAME in caller.f_globals
    taken, arrays = list(values), []
    for k, x in enumerate(values):
        if type(x) is not np.ndarray:
            if issubclass(type(x), Handle):  # isinstance would ask x for its __class__: that may be code of the user's
                if NOTEBOOK.get() is not None:
                    NOTEBOOK.get().note_given(frame.f_code.co_varnames[k], x, frame)
            elif type(x) not in QUIET:
                require_adopted(x, frame)
        elif x.dtype.kind in INEXACT:
            if getrefcount(x) <= HELD_BY_AN_ARGUMENT + 1 and alone(x):  # it is in the list, too
                taken[k] = owned(x)
            elif not adopted and x.flags.writeable:
                taken[k], name = standing(x), frame.f_code.co_varnames[k]
                if taken[k] is x:  # no trace records: a loop's body runs plainly
                    continue
                if NOTEBOOK.get() is not None:
                    NOTEBOOK.get().note_argument(name, taken[k], frame)
                arrays.append((name, x, taken[k]))
    if arrays and caller is not None:
        arrays[0][2]._tape.adopted.visits[id(frame)] = Visit(frame, caller, tuple(arrays))
    return tuple(taken)


def require_adopted(x: Any, frame: FrameType) -> None:
    """Raise :class:`AdoptionError` for an instance of a class of which the adopted copy is another one."""
    cls = type(x)
    module = cls.__module__
    if f"{COPIES}.{module}" in sys.modules and module not in ("numpy", "math"):
        raise AdoptionError(
            f"{frame.f_code.co_name} of adopted code is given an instance of {module}.{cls.__qualname__}, a class of "
            f"the original (at {site_text(intern_site(frame))}), whose methods are not adopted; make it with the class "
            f"of the copy: pullback.adopt({module!r}).{cls.__qualname__}(...)"
        )


def leaving(result: Any) -> None:
    """An adopted function ends. What it wrote into arrays of a caller that is not adopted is written there, too, where
    it depends on nothing; traced values cannot be, and have to be returned."""
    frame = _getframe(1)
    for tape in UNDER_WAY.get():
        if tape.adopted is not None and (visit := tape.adopted.visits.pop(id(frame), None)) is not None:
            _leave(visit, result)


def _leave(visit: Visit, result: Any) -> None:
    for name, array, handle in visit.arrays:
        now = resolve(handle)
        if now._value is array:
            continue
        if now._id is None:
            if type(now._value) is np.ndarray:
                array[...] = now._value
        elif not _by_us(visit.caller) and not _returned(now, result):
            raise ConversionError(
                f"{visit.frame.f_code.co_name} writes traced values into its argument {name!r} (at "
                f"{site_text(intern_site(visit.caller))}), a plain array of a caller that is not adopted, and does not "
                f"return it: the caller would read what was there before. Pass an array of the trace, np.array({name}, "
                "like=x) for a tracer x, or adopt the caller, too"
            )


def _returned(handle: Any, result: Any) -> bool:
    leaves: Sequence[Any] = (result,) if issubclass(type(result), Handle) else flatten(result)[0]
    return any(leaf is handle or getattr(leaf, "_id", None) == handle._id for leaf in leaves)


def _by_us(caller: FrameType) -> bool:
    return str(caller.f_globals.get("__name__", "")).partition(".")[0] == "pullback"
