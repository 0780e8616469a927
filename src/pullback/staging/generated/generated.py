"""A generated function together with its text. Errors and warnings in it are told at the user's lines; and it is used
only under the state of NumPy's errors that it was made for."""

import sys
from collections.abc import Callable, Iterator
from typing import Any
from weakref import WeakValueDictionary

from attrs import define, field

from pullback.backends.plans import Kernel
from pullback.recording.copies import faithful
from pullback.staging.generated.placing import Placement
from pullback.words.call_sites import errors_in_force, site_text, warn_at_site
from pullback.words.errors import say_where
from pullback.words.undocumented import error_state, is_quiet, quiet, under_error_state

_ALLOWED: dict[Any, bool] = {}
_DEFAULTS: dict[Any, bool] = {}
_DEFAULT = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}


@define(eq=False)
class Generated:
    """A function with its text. ``sites`` are the user's call sites by the line of the text, each with NumPy's name for
    what is computed there."""

    name: str
    text: str
    function: Callable[..., Any] = field(repr=False)
    plan: Placement = field(repr=False)
    sites: dict[int, tuple[int, str]] = field(repr=False)
    kernels: tuple[Kernel, ...] = field(default=(), repr=False)
    plain: "Generated | None" = field(default=None, repr=False)
    """The function by NumPy alone, in the same buffers; None where there are no kernels."""
    reads: bool = False
    """Whether values are read while it runs: then it is a generator, which yields each, and at last what it gives."""

    def whole(self, *arguments: Any) -> tuple[list[Any], Any]:
        """What is read on the way, copied, and what it gives."""
        if not self.reads:
            return [], self.function(*arguments)
        *read, found = [faithful(x) for x in self.function(*arguments)]
        return read, found

    @property
    def works_in_place(self) -> bool:
        """Whether it computes into arrays that it has."""
        return bool(self.plan.buffers or self.plan.fresh)


_FILES: WeakValueDictionary[str, Generated] = WeakValueDictionary()


def in_file(generated: Generated) -> Generated:
    """The function, which :func:`of_file` now finds."""
    _FILES[generated.function.__code__.co_filename] = generated
    return generated


def of_file(filename: str) -> Generated | None:
    """The function whose text is in a file of that name."""
    return _FILES.get(filename)


def errors_are_ordinary() -> bool:
    """Whether NumPy's error state warns or ignores: what raises, or calls somebody, has to do so at its own place."""
    state = error_state()
    found = _ALLOWED.get(state)
    if found is None:
        if len(_ALLOWED) > 100:
            _ALLOWED.clear()
        found = _ALLOWED[state] = set(errors_in_force().values()) <= {"warn", "ignore"}
    return found


def kernels_may_run() -> bool:
    """Whether NumPy's error state is its default, or that of a step which is run again and has warned before: kernels
    tell of what NumPy warns of by default, and of nothing else."""
    state = error_state()
    found = _DEFAULTS.get(state)
    if found is None:
        if len(_DEFAULTS) > 100:
            _DEFAULTS.clear()
        found = _DEFAULTS[state] = is_quiet(state) or errors_in_force() == _DEFAULT
    return found


def computed(generated: Generated, *arguments: Any) -> Any:
    """What a generated forward gives. Its warnings, and the notes of its errors, name the user's lines. Kernels are for
    NumPy's default error state."""
    generated = usable(generated)
    return _telling(generated, generated.function, arguments)


@define(eq=False)
class UnderWay:
    """A generated forward that values are read of: it stops at each."""

    generated: Generated
    computing: Iterator[Any]

    def next(self, *, again: bool = False) -> Any:
        """The next value that is read; at last what the function gives. ``again``: its warnings have come before."""
        if again:
            with quiet():
                return next(self.computing)
        return _telling(self.generated, next, (self.computing,))


def begun(generated: Generated, *arguments: Any) -> UnderWay:
    """A generated forward whose values are read; what comes after one may be appended to the ``arguments`` until
    then."""
    generated = usable(generated)
    return UnderWay(generated, generated.function(*arguments))


def _telling(generated: Generated, function: Any, arguments: tuple[Any, ...]) -> Any:
    try:
        with under_error_state(warn):
            return function(*arguments)
    except Exception as error:
        say_line(error, generated)
        raise


def usable(generated: Generated) -> Generated:
    """The function itself, or the one without kernels where these may not run."""
    return generated if generated.plain is None or kernels_may_run() else generated.plain


def say_line(error: Exception, generated: Generated) -> None:
    """Note the user's line in an error that a generated function has raised."""
    trace, line, filename = error.__traceback__, 0, generated.function.__code__.co_filename
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == filename:  # its own, or that of a part of it
            line = trace.tb_lineno
        trace = trace.tb_next
    if line:
        late = _LATE if isinstance(error, Warning) else ""
        say_where(error, f"at {site_text(generated.sites.get(line, (0, ''))[0])}{late}")


_LATE = '; the step or staged function is over by then and could not catch it, as it can with staging="off"'


def warn(kind: str, flag: int) -> None:
    """Warn as NumPy would have warned of the user's own line."""
    frame: Any = sys._getframe(1)
    while frame is not None and of_file(frame.f_code.co_filename) is None:
        frame = frame.f_back
    if frame is None:
        _warn_of(kind, None, 0)
    else:
        warn_at(kind, frame.f_code.co_filename, frame.f_lineno)


def warn_at(kind: str, filename: str, line: int) -> None:
    """Warn of what a line of a generated function has computed."""
    _warn_of(kind, of_file(filename), line)


def _warn_of(kind: str, generated: Generated | None, line: int) -> None:
    site, name = (0, "a function") if generated is None else generated.sites.get(line, (0, "a function"))
    if not name:  # computed for a sweep, which tells nothing
        return
    warn_at_site(site, f"{kind} encountered in {name}")
