"""Call sites: the file and line of the user's program at which an operation was called, as errors and reports name it;
what NumPy's warnings name, and what tracebacks show.

A record holds an integer, which stands for a code object and the offset of an instruction in it. The line is looked up
when somebody asks. Frames of pullback, of its plugins, of NumPy, of the standard library and of the libraries in
``LIBRARIES`` are passed over.
"""

import sys
from bisect import bisect_right
from collections.abc import Callable, Sequence
from contextvars import copy_context
from functools import wraps
from os import environ, sep
from threading import Lock, local
from types import CodeType, FrameType, TracebackType
from typing import Any, ParamSpec, TypeVar
from warnings import warn, warn_explicit
from weakref import finalize

import numpy as np

from pullback.words.other_libraries import LIBRARIES
from pullback.words.plugins import LIVE_NAME, is_of_plugin
from pullback.words.undocumented import error_state, is_of, is_standard, make_error_state, own_offsets, set_error_state

_SITES: list[tuple[CodeType, int]] = []
"""Code objects that made a record, each with the first of its call sites: one for every instruction offset."""
_STARTS: list[int] = []
_SITES_OF: dict[int, Sequence[int]] = {}
"""Id of a code object to its call sites by instruction offset. Those in ``_SITES`` stay alive, so that their ids stay
their own; any other is one of them once more, and goes with its id."""
_ALIKE: dict[tuple[CodeType, str], Sequence[int]] = {}
"""Call sites by the code object and its file: a function that comes to a process again and again, by a pickle, is known
once."""
_LOCK = Lock()
_HERE = __file__.rpartition(f"{sep}words{sep}")[0]
_LIBRARY = (_HERE, np.__file__.rpartition(sep)[0])
_USER = (f"{_HERE}{sep}demos{sep}",)
_KNOWN_FILES: dict[str, bool] = {}
_P = ParamSpec("_P")
_R = TypeVar("_R")
_MODULES = tuple(f"{library}." for library in LIBRARIES)


def intern_site(frame: FrameType) -> int:
    """The id of the user's call site at or above ``frame``: frames inside pullback, its plugins and NumPy are passed
    over."""
    while True:
        sites = _SITES_OF.get(id(frame.f_code))
        if sites is None:
            sites = _sites_of(frame.f_code)
        if sites:
            return sites[frame.f_lasti]
        if frame.f_back is None:
            return 0  # no user is on the stack
        frame = frame.f_back


def find_site(tape: Any, frame: FrameType) -> int:
    """As :func:`intern_site`; the tape remembers the sites of the user's code, so that its next call there finds its
    own sooner."""
    last, above = tape.code, frame
    while True:
        code = above.f_code
        if code is last:
            return int(tape.sites[above.f_lasti])
        sites = _SITES_OF.get(id(code))
        if sites is None:
            sites = _sites_of(code)
        if sites:
            tape.code, tape.sites = code, sites
            return sites[above.f_lasti]
        if above.f_back is None:
            return 0  # no user is on the stack
        above = above.f_back


def site_here() -> int:
    """The user's call site that led here: whoever asks is a library's, and passed over."""
    return intern_site(sys._getframe(1))


class _Told:
    """The call sites of :func:`called_at`, at each instruction the one that it was told."""

    def __len__(self) -> int:
        return 1

    def __getitem__(self, offset: int) -> int:
        return int(_AT.site)


_AT = local()


def called_at(site: int, function: Callable[..., Any], *arguments: Any) -> Any:
    """What a function gives that does what the user did at a call site, which is found by whoever asks."""
    before, _AT.site = getattr(_AT, "site", 0), site
    try:
        return function(*arguments)
    finally:
        _AT.site = before


_SITES_OF[id(called_at.__code__)] = _Told()  # type: ignore[assignment]  # all that is asked of them


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn, of the user's line that led here."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and not _sites_of(frame.f_code):
        frame, level = frame.f_back, level + 1
    warn(message, category, stacklevel=level)


def calls_here(innermost: FrameType | None = None) -> list[tuple[str, str]]:
    """Module and name of the functions of other libraries under way below the user's line, the outermost first: what
    the user has called, where one of ``LIBRARIES`` asks. The frame given is the innermost, else the caller's is."""
    frame: FrameType | None = innermost or sys._getframe(1)
    calls: list[tuple[str, str]] = []
    while frame is not None and not _sites_of(frame.f_code):
        module, name = str(frame.f_globals.get("__name__", "")), frame.f_code.co_name
        if f"{module}.".startswith(_MODULES):
            owner = frame.f_locals.get("self") if name in ("__init__", "__call__") else None
            calls.append((module, name if owner is None else type(owner).__name__))
        frame = frame.f_back
    return calls[::-1]


def in_adopted_code(innermost: FrameType | None = None) -> bool:
    """Whether adopted code is among those who call. The frame given is the innermost, else the caller's is."""
    frame: FrameType | None = innermost or sys._getframe(1)
    while frame is not None and LIVE_NAME not in frame.f_globals:
        frame = frame.f_back
    return frame is not None


def _sites_of(code: CodeType) -> Sequence[int]:
    """The call sites of a code object by instruction offset; none for a library's."""
    sites = _SITES_OF.get(id(code))
    if sites is None:
        with _LOCK:
            key = code, code.co_filename
            if id(code) not in _SITES_OF:
                if key in _ALIKE:
                    finalize(code, _SITES_OF.pop, id(code), None).atexit = False
                else:
                    start = _STARTS[-1] + len(_SITES[-1][0].co_code) if _SITES else 0
                    _SITES.append((code, start))
                    _STARTS.append(start)
                    own = () if _is_library(code.co_filename) else own_offsets(code)
                    _ALIKE[key] = [start + offset for offset in own]
                _SITES_OF[id(code)] = _ALIKE[key]
            sites = _SITES_OF[id(code)]
    return sites


def _is_library(filename: str) -> bool:
    known = _KNOWN_FILES.get(filename)
    if known is None:
        inside = (
            any(part in filename for part in _LIBRARY)
            or filename.startswith("<pullback")
            or is_standard(filename)
            or any(is_of(library, filename) for library in LIBRARIES)
        )
        known = _KNOWN_FILES[filename] = (
            not any(part in filename for part in _USER) if inside else is_of_plugin(filename)
        )
    return known


def site_code(site: int) -> tuple[CodeType, int]:
    """The code object of a call site, and the offset of its instruction."""
    code, first = _SITES[bisect_right(_STARTS, site) - 1]
    return code, site - first


def site_line(site: int) -> tuple[str, int]:
    """File and line of a call site."""
    code, offset = site_code(site)
    for start, stop, line in code.co_lines():
        if start <= offset < stop and line is not None:
            return code.co_filename, line
    return code.co_filename, code.co_firstlineno


def site_text(site: int) -> str:
    """``file:line`` of a call site, as error messages print it."""
    return "{}:{}".format(*site_line(site))


# ---------------------------------------------------------------------------------------------------- NumPy's warnings
# By itself NumPy names the line of the innermost frame, which is ours. So what runs for the user runs in an error state
# in which NumPy tells us what it would warn of, as it would write it to the file of a log: in its own words.


_NAMESPACES: dict[str, dict[str, Any]] = {}
"""The names of the module of each file."""


class Log:
    """What NumPy takes for a file."""

    def write(self, text: str) -> None:
        """Warn as NumPy would, were there no frames of libraries between the user's line and what NumPy computes."""
        message = text.removeprefix("Warning: ").rstrip()
        frame: Any = sys._getframe(1)
        while frame.f_back is not None and not _sites_of(frame.f_code):
            frame = frame.f_back
        _warn_in(frame.f_globals, frame.f_code.co_filename, frame.f_lineno, message)


class _Telling(dict[Any, Any]):
    """The states, by error state, in which NumPy tells us of what it would warn of; where it warns of nothing, tells
    somebody else, or its state cannot be made so, the state itself."""

    def __missing__(self, state: Any) -> Any:
        hows = np.geterr()
        if len(self) > 200:
            self.clear()
            _MEANT.clear()
        found = state
        if make_error_state and "warn" in hows.values() and not {"call", "log"}.intersection(hows.values()):
            asked = {name: "log" if how == "warn" else how for name, how in hows.items()}
            found = make_error_state(call=Log(), **asked)
            self[found], _MEANT[found] = found, state
        self[state] = found
        return found


TELLING = _Telling()
_MEANT: dict[Any, Any] = {}
"""The state that a state in which NumPy tells us stands for, by the latter."""


def states_meant() -> frozenset[Any]:
    """The error state in force, and that of the user's in whose place it stands."""
    state = error_state()
    return frozenset((state, _MEANT.get(state, state)))


def errors_in_force() -> dict[str, Any]:
    """``np.geterr()`` as the user has it: what is told us are warnings."""
    hows, ours = np.geterr(), isinstance(np.geterrcall(), Log)
    return {name: "warn" if how == "log" and ours else how for name, how in hows.items()}


def warn_at_site(site: int, message: str) -> None:
    """Warn as NumPy would of the line of a call site."""
    file, line = site_line(site)
    names = _NAMESPACES.get(file)
    if names is None:
        modules = [vars(one) for one in list(sys.modules.values()) if getattr(one, "__file__", None) == file]
        names = _NAMESPACES[file] = modules[0] if modules else {"__name__": file.removesuffix(".py")}
    _warn_in(names, file, line, message)


def _warn_in(names: dict[str, Any], file: str, line: int, message: str) -> None:
    seen = names.setdefault("__warningregistry__", {})
    try:  # of a warning of no module Python says nothing at all
        warn_explicit(message, RuntimeWarning, file, line, names.get("__name__") or "<string>", seen)
    except Warning:
        RAISED[0] += 1
        raise


RAISED = [0]
"""How many of NumPy's warnings filters have made errors of so far."""


# ----------------------------------------------------------------------------------------------------------- tracebacks
MISSED: Any = object()  # what a way that serves some calls alone gives for any other


def public(
    f: Callable[_P, _R], like: Callable[..., Any] | None = None, first: Sequence[Callable[[Any], Any]] = ()
) -> Callable[_P, _R]:
    """``f``, as users call it, under the name of ``like``: an error that comes out of it shows the frames of the user's
    program and of the libraries that it calls, and of pullback this one.

    It runs in a copy of the context, which is gone when it ends: no policy and no trace stays in force, wherever an
    interrupt comes. What NumPy warns of there names the user's line. ``first`` may have a function that is asked
    before, with the arguments in a tuple; unless it gives ``MISSED`` this is the result. It raises nothing and sets
    nothing in the context.
    """
    named: Callable[..., Any] = f if like is None else like

    @wraps(named)
    def called(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        found = first[0](args) if first and not kwargs else MISSED
        if found is not MISSED:
            return found  # type: ignore[no-any-return]
        try:
            context = copy_context()
            context.run(set_error_state, TELLING[error_state()])
            return context.run(f, *args, **kwargs)  # PULLBACK_TRACEBACK=full in the environment shows what was called
        except BaseException as error:
            _shorten_all(error)
            raise

    return called


def _shorten_all(error: BaseException) -> None:
    """Leave the first frame of pullback in the traceback of an error, and in those of the errors that led to it."""
    if environ.get("PULLBACK_TRACEBACK") == "full":
        return
    todo: list[BaseException | None] = [error]
    seen: set[int] = set()
    while todo:
        one = todo.pop()
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            _shorten(one.__traceback__)
            todo += [one.__cause__, one.__context__]


def _shorten(trace: TracebackType | None) -> None:
    """Relink a traceback past the frames of ours but the first, and past what these called in NumPy and Python."""
    last: TracebackType | None = None
    any_ours = below = False
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        ours = _is_ours(file)
        below = ours or (below and _is_library(file))
        following = trace.tb_next
        if not below or (ours and not any_ours):
            if last is not None and last.tb_next is not trace:
                last.tb_next = trace
            last = trace
        any_ours, trace = any_ours or ours, following
    if last is not None:
        last.tb_next = None


def users_part(trace: TracebackType | None) -> TracebackType | None:
    """A traceback from the first frame of the user's program on; None where it has none."""
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not _is_ours(file) and not _is_library(file):
            break
        trace = trace.tb_next
    return trace


def _is_ours(filename: str) -> bool:
    inside = _HERE in filename or filename.startswith("<pullback") or is_of_plugin(filename)
    return inside and not any(part in filename for part in _USER)
