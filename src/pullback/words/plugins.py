"""What installed distributions bring to pullback: their entry points, read when something needs one.

A group says what its entry points are: ``pullback.primitives`` tuples of primitives, ``pullback.backends`` ways to run
staged steps, ``pullback.loops`` compilers of loops over single numbers, ``pullback.namespaces`` modules that stand for
others, ``pullback.communicators`` what ranks speak by, ``pullback.sums`` sums over items on several workers. Nothing
here knows a plugin by its name.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, lru_cache
from importlib import import_module
from os import sep, stat
from typing import Any

from pullback.words.errors import PluginError, RegistrationError

PRIMITIVES, BACKENDS, NAMESPACES = "pullback.primitives", "pullback.backends", "pullback.namespaces"
COMMUNICATORS, SUMS, LOOPS = "pullback.communicators", "pullback.sums", "pullback.loops"
COPIES = "pullback_adopted"
"""The package of the copies of adopted modules: users' code, though its name begins as a plugin's does."""
LIVE_NAME = "__pb_live__"
"""The name by which adopted code asks whether a trace is under way; whoever has it among its globals is adopted."""
GROUPS = PRIMITIVES, BACKENDS, NAMESPACES, COMMUNICATORS, SUMS, LOOPS


def entry_points(group: str) -> Any:
    """The entry points of a group, of what is installed now: a folder of ``sys.path`` changes with an installation."""
    return _entry_points(group, tuple(map(_changed, sys.path)))


@lru_cache(maxsize=len(GROUPS))
def _entry_points(group: str, _installed: tuple[Any, ...]) -> Any:
    # A tenth of the import, for programs that need a plugin only; and every distribution's file is read.
    from importlib.metadata import entry_points as found  # noqa: PLC0415

    return found(group=group)


def _changed(folder: str) -> tuple[str, int]:
    """A folder, and when it was changed last; 0 where there is none."""
    try:
        return folder, stat(folder or ".").st_mtime_ns  # noqa: PTH116 - pathlib takes 3 x as long
    except OSError:
        return folder, 0


@contextmanager
def loading(point: Any) -> Iterator[None]:
    """Whatever goes wrong while a plugin is imported and handed over is its :class:`PluginError`; a name that is taken
    is not."""
    try:
        yield
    except RegistrationError:
        raise
    except Exception as error:
        raise PluginError(
            f"plugin {point.name!r} ({point.value}) failed to import: {type(error).__name__}: {error}; "
            "reinstall or remove it"
        ) from error


def _only(points: list[Any]) -> Any:
    """The one of these entry points, which bear one name, or None; two raise :class:`RegistrationError`."""
    if len(points) > 1:
        name, group, values = points[0].name, points[0].group, " and by ".join(p.value for p in points)
        raise RegistrationError(f"{name!r} of {group} is offered by {values}; uninstall all but one")
    return points[0] if points else None


@cache
def backend(name: str) -> Any:
    """The function that the backend of that name hands over; raises :class:`PluginError` with the line that installs
    it."""
    return _brought(BACKENDS, "backend", name, "a backend is a function of a plan")


@cache
def loop_compiler(name: str) -> Any:
    """The function by which the backend of that name compiles loops over single numbers; None where it has none."""
    point = _only([p for p in entry_points(LOOPS) if p.name == name])
    if point is None:
        return None
    with loading(point):
        return point.load()


@cache
def communicator(name: str) -> Any:
    """The function that makes communicators of that name; raises :class:`PluginError` with the line that installs
    it."""
    return _brought(COMMUNICATORS, "communicator", name, "a communicator is made by a function or a class")


@cache
def sum_over_items(name: str) -> Any:
    """What makes sums on the engine of that name; raises :class:`PluginError` with the line that installs it."""
    return _brought(SUMS, "sum over items", name, "a sum is made by a function or a class")


def _brought(group: str, kind: str, name: str, wanted: str) -> Any:
    """The function that the entry point of that name names; ``wanted`` says what it is to be."""
    points = entry_points(group)
    point = _only([p for p in points if p.name == name])
    if point is None:
        known = ", ".join(sorted(p.name for p in points)) or "none"
        raise PluginError(f"no {kind} {name!r} is installed (there is: {known}); pip install pullback-{name}")
    with loading(point):
        found = point.load()
        if not callable(found):
            raise TypeError(f"{wanted}, not {type(found).__name__}")
    return found


def stand_in(module: str) -> Any:
    """The module that stands for the one of that name, imported; None where no plugin offers one.

    An entry point holds for the submodules, too: where ``lib`` is ``other``, ``lib.inner`` is ``other.inner``; that of
    the longest name counts.
    """
    points = [p for p in entry_points(NAMESPACES) if f"{module}.".startswith(f"{p.name}.")]
    longest = max((p.name for p in points), key=len, default="")
    point = _only([p for p in points if p.name == longest])
    if point is None:
        return None
    with loading(point):
        return import_module(point.value + module.removeprefix(longest))


def is_of_plugin(filename: str) -> bool:
    """Whether a file stands in the package of a plugin. A script or a prompt does not, which is known without a look
    at what is installed: that takes longer than the import of pullback."""
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    return not filename.startswith("<") and filename != script and filename.startswith(package_roots())


@cache
def package_roots() -> tuple[str, ...]:
    """Where the packages of all plugins stand, as beginnings of file names; nothing of them is imported."""
    from importlib.util import find_spec  # noqa: PLC0415 - as entry_points

    points = [point for group in GROUPS for point in entry_points(group)]
    roots: list[str] = []
    for package in dict.fromkeys(point.module.partition(".")[0] for point in points):
        spec = find_spec(package)
        if spec is not None:
            folders = spec.submodule_search_locations
            roots += [str(spec.origin)] if folders is None else [f"{folder}{sep}" for folder in folders]
    return tuple(roots)
