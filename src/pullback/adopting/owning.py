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
from collections.abc import Sequence
from contextvars import ContextVar
from functools import partial
from sys import _getframe, getrefcount
from types import CodeType, FrameType
from typing import Any, Final

import numpy as np
from attrs import frozen

from pullback.adopting.structured import as_fields
from pullback.memory.in_force import innermost
from pullback.recording.handles import BORROWED, FREE, FROZEN, Handle, over, resolve
from pullback.recording.tape import DEFERRED, REPLAYABLE
from pullback.words.call_sites import intern_site, site_text
from pullback.words.errors import AdoptionError, ConversionError
from pullback.words.foreign import ORDINARY
from pullback.words.plugins import COPIES, LIVE_NAME
from pullback.words.specs import INEXACT
from pullback.words.structures import flatten

QUIET: Final = ORDINARY - {np.ndarray}
"""Types of arguments of which nothing need be asked."""


@frozen
class Visit:
    """A call of an adopted function by other code, with plain arrays among its arguments."""

    code: CodeType
    caller: FrameType
    arrays: tuple[tuple[str, Any, Any], ...]
    """The name of the argument, the array, and the handle that stands for it."""


NOTEBOOK: Final[ContextVar[Any]] = ContextVar("pullback_notebook", default=None)
"""Who is told of each array that becomes a handle, and of calls of Python's functions of numbers: nobody, but for
``pullback port``."""
VISITS: Final[dict[int, Visit]] = {}
"""Calls under way, by the id of their frame."""


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
        tape.adopted = {}
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


def standing(x: Any) -> Any:
    """The one handle that stands in the innermost trace for a plain array which others hold, too."""
    tape = innermost()
    if tape is None:
        return x
    if tape.adopted is None:
        tape.adopted = {}
    found = tape.adopted.get(id(x))
    if found is None:  # a step of a loop cannot keep what is written to it
        flag = BORROWED if tape.captures is None else FROZEN
        found = tape.adopted[id(x)] = (x, over(x, tape, flag))
    return found[1]


def of_module(x: Any) -> Any:
    """What a name of an adopted module stands for, while a trace is under way."""
    if type(x) is not np.ndarray or x.dtype.kind not in INEXACT:
        return x
    found, notebook = standing(x), NOTEBOOK.get()
    if notebook is not None and found is not x:
        notebook.note_of_module(x, found, _adopted_frame())
    return found


def behind(x: Any) -> Any:
    """The plain array for which a handle stands, if nothing was written to it since; anything else as it is."""
    if not issubclass(type(x), Handle) or x._id is not None:
        return x
    arrays = (array for array, handle in (x._tape.adopted or {}).values() if handle is x)
    return next((array for array in arrays if array is resolve(x)._value), x)


def arguments(*values: Any) -> tuple[Any, ...]:
    """The arguments of an adopted function, while a trace is under way."""
    frame = _getframe(1)
    VISITS.pop(id(frame), None)
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
        VISITS[id(frame)] = Visit(frame.f_code, caller, tuple(arrays))
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
    visit = VISITS.pop(id(frame), None)
    if visit is None or visit.code is not frame.f_code:
        return
    for name, array, handle in visit.arrays:
        now = resolve(handle)
        if now._value is array:
            continue
        if now._id is None:
            if type(now._value) is np.ndarray:
                array[...] = now._value
        elif not _by_us(visit.caller) and not _returned(now, result):
            raise ConversionError(
                f"{frame.f_code.co_name} writes traced values into its argument {name!r} (at "
                f"{site_text(intern_site(visit.caller))}), a plain array of a caller that is not adopted, and does not "
                f"return it: the caller would read what was there before. Pass an array of the trace, np.array({name}, "
                "like=x) for a tracer x, or adopt the caller, too"
            )


def _returned(handle: Any, result: Any) -> bool:
    leaves: Sequence[Any] = (result,) if issubclass(type(result), Handle) else flatten(result)[0]
    return any(leaf is handle or getattr(leaf, "_id", None) == handle._id for leaf in leaves)


def _by_us(caller: FrameType) -> bool:
    return str(caller.f_globals.get("__name__", "")).partition(".")[0] == "pullback"
