"""Copies of modules: ``pullback_adopted.NAME`` in ``sys.modules``, loaded by importlib, with an ``__import__`` of their
own. The original is neither run nor changed."""

import ast
import builtins
import cmath
import importlib
import math
import sys
from collections.abc import Sequence
from functools import cache
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import module_from_spec, resolve_name, spec_from_file_location
from pathlib import Path
from sys import _getframe
from threading import RLock
from types import CodeType, ModuleType
from typing import Any, Final

from pullback.adopting.kinds.dispatching import matching
from pullback.adopting.loops.loop_code import LOCALS, LOOP
from pullback.adopting.modules.arrays_as_handles import arguments, array_if_unwritten, fresh, leaving, of_module
from pullback.adopting.modules.namespaces import Namespace, answered, handed_on
from pullback.adopting.modules.python_builtins import (
    called,
    classes,
    formatted,
    fresh_attribute,
    reads_source,
    whole_loop,
    with_lists,
)
from pullback.adopting.modules.rewriting import (
    ARGUMENTS,
    CALLED,
    CLASSES,
    FORMATTED,
    FRESH,
    FRESH_ATTRIBUTE,
    LEAVING,
    MATCHING,
    OF_MODULE,
    PLAIN_MODULES,
    READS_SOURCE,
    WITH_LISTS,
    rewritten,
)
from pullback.memory.in_force import LIVE
from pullback.words.errors import AdoptionError
from pullback.words.plugins import COPIES, LIVE_NAME

_LOCK = RLock()
ROOTS: Final[dict[str, tuple[str, tuple[str, ...] | None]]] = {}
"""The packages and modules that are adopted, by the first name of their copies: their own name, and where they are
searched, None for the path of the interpreter."""
BESIDE: Final = "__pb_beside__"
"""The name by which a copy of a file knows the folder in which modules that it imports may stand."""
NAMES: Final = {
    LIVE_NAME: LIVE,
    ARGUMENTS: arguments,
    FRESH: fresh,
    FRESH_ATTRIBUTE: fresh_attribute,
    OF_MODULE: of_module,
    READS_SOURCE: reads_source,
    CALLED: called,
    CLASSES: classes,
    MATCHING: matching,
    WITH_LISTS: with_lists,
    FORMATTED: formatted,
    LEAVING: leaving,
    LOOP: whole_loop,
    LOCALS: locals,
    PLAIN_MODULES["math"]: math,
    PLAIN_MODULES["cmath"]: cmath,
}
"""What the copies refer to besides their own names."""


class AdoptedModule(ModuleType):
    """The copy of a module. Arrays of it are handles of the trace under way, for who asks from outside, too; what is
    put back is the array."""

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        return of_module(found) if LIVE and not name.startswith("__") else found

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, array_if_unwritten(value) if LIVE else value)


class AdoptedLoader(SourceFileLoader):
    """Loads the copy of a module from the file of the original."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """An empty copy."""
        return AdoptedModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Run the copy, with builtins of its own."""
        module.__dict__["__builtins__"] = OWN_BUILTINS
        module.__dict__.update(NAMES)
        super().exec_module(module)

    def get_code(self, fullname: str) -> CodeType:
        """The code of the file, rewritten; never from a cache."""
        path = self.get_filename(fullname)
        tree = ast.parse(self.get_data(path), path)
        code: CodeType = compile(rewritten(tree, path), path, "exec", dont_inherit=True)
        return code


def own_import(
    name: str, names: Any = None, local: Any = None, fromlist: Sequence[str] | None = (), level: int = 0
) -> Any:
    """``__import__`` of adopted code: names of ours, copies of what is adopted, and anything else as it is."""
    fromlist = fromlist or ()
    names = _getframe(1).f_globals if names is None else names  # of who writes __import__(name)
    if level:
        package = names.get("__package__") or str(names.get("__name__", "")).rpartition(".")[0]
        name = resolve_name("." * level + name, package)
    if not level and not name.startswith(f"{COPIES}."):
        root, dot, rest = name.partition(".")
        copied = _root_of(root, names.get(BESIDE))
        name = name if copied is None else f"{COPIES}.{copied}{dot}{rest}"
    if name.startswith(f"{COPIES}."):
        return _imported_copy(name, fromlist, relative=bool(level))
    found = answered(name)
    if found is None:
        return _imported_plain(name, names, local, fromlist)
    if fromlist:
        return found
    root = answered(name.partition(".")[0])
    return root if root is not None else found


ANSWERED: Final = ("numpy", "math", "cmath", "scipy", "numba")
"""Libraries that have namespaces of ours, and are never copied."""


def _root_of(name: str, beside: str | None) -> str | None:
    """The first name of the copy of a package or module; None for one that is not adopted."""
    if name in ANSWERED or name in sys.stdlib_module_names:
        return name if name in ROOTS and ROOTS[name][0] == name and name not in ANSWERED else None
    if beside is not None:
        return sibling(name, Path(beside))
    return name if name in ROOTS and ROOTS[name][1] is None else None


def sibling(name: str, folder: Path) -> str | None:
    """The first name of the copy of a module beside a file that is adopted; None where none stands there."""
    if not (folder / f"{name}.py").is_file() and not (folder / name / "__init__.py").is_file():
        return name if name in ROOTS and ROOTS[name][1] is None else None
    root = (name, (str(folder),))
    copied = name.replace(".", "_")  # a script may have any name: of a dotted one no part is a package
    while ROOTS.setdefault(copied, root) != root:
        copied = f"{copied}_"  # a module of that name, beside another file, is adopted, too
    return copied


def _imported_plain(name: str, names: Any, local: Any, fromlist: Sequence[str]) -> Any:
    if "*" in fromlist:
        try:
            return _handing_on(builtins.__import__(name, names, local, fromlist, 0), fromlist)
        except ModuleNotFoundError as error:
            raise AdoptionError(
                f"from {name} import *: there is no module {name}, so nobody knows its names"
            ) from error
    found = builtins.__import__(name, names, local, fromlist, 0)
    if name.partition(".")[0] == "importlib" and (not fromlist or name in ("importlib", "importlib.metadata")):
        return _metadata("metadata") if "." in name and fromlist else _importlib()
    root = answered(name.partition(".")[0])
    if root is None and (fromlist or name == "pylab"):
        return _handing_on(found, fromlist or ("*",))
    return found if root is None or fromlist else root


def _handing_on(module: ModuleType, names: Sequence[str]) -> ModuleType:
    """A module that is not adopted, for ``from module import names``: what it hands on of NumPy and of ``math`` is
    ours, as it is where these are imported themselves."""
    known = tuple(vars(module)) if "*" in names else names
    ours = {name: handed_on(getattr(module, name, None)) for name in known}
    ours = {name: found for name, found in ours.items() if found is not None}
    return Namespace(module, ours) if ours else module


@cache
def _importlib() -> Namespace:
    made = Namespace(importlib, {"import_module": own_import_module}, _metadata)
    made.__dict__.pop("metadata", None)  # found anew when it is asked for
    return made


@cache
def _metadata(part: str) -> Any:
    """``importlib.metadata`` of adopted code: a copy that asks for its version asks by the name of the original."""
    if part != "metadata":
        return None
    from importlib import metadata  # noqa: PLC0415 - few programs ask

    def by_own_name(function: Any) -> Any:
        return staticmethod(lambda name, *args: function(name.removeprefix(f"{COPIES}."), *args))

    asking = ("version", "metadata", "distribution", "files", "requires")
    return Namespace(metadata, {name: by_own_name(getattr(metadata, name)) for name in asking})


def _imported_copy(name: str, fromlist: Sequence[str], *, relative: bool) -> Any:
    module = copy_of(name)
    if "*" not in fromlist:
        for part in fromlist:
            if not hasattr(module, part) and hasattr(module, "__path__"):
                _imported_part(module, f"{name}.{part}", part)
    if fromlist or relative:
        return module
    return sys.modules[".".join(name.split(".")[:2])]


def _imported_part(module: ModuleType, name: str, part: str) -> None:
    try:
        copy_of(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise


def own_import_module(name: str, package: str | None = None) -> Any:
    """``importlib.import_module`` of adopted code."""
    if name.startswith("."):
        name = resolve_name(name, package)
    return own_import(name, _getframe(1).f_globals, fromlist=("__name__",))


def copy_of(name: str) -> ModuleType:
    """The copy ``pullback_adopted.NAME``, loaded with the packages around it."""
    with _LOCK:
        _packages_of_copies()
        found: Any = sys.modules.get(name)
        if found is not None:
            return found  # type: ignore[no-any-return]
        above, _, last = name.rpartition(".")
        own, path = ROOTS[last] if above == COPIES else (last, getattr(copy_of(above), "__path__", None))
        if above != COPIES and path is None:
            raise ModuleNotFoundError(f"No module named {name!r}; {above!r} is not a package", name=name)
        found = sys.modules.get(name)  # the package may have imported it
        if found is None:
            file = spec_from_file_location(own, Path(path[0], f"{own}.py")) if "." in own and path else None
            found = _loaded(name, file or PathFinder.find_spec(own, path), _beside(above, path))
        if above != COPIES:
            setattr(sys.modules[above], last, found)
        return found  # type: ignore[no-any-return]


def _beside(above: str, path: Any) -> str | None:
    """The folder in which a module beside an adopted file finds others."""
    if above == COPIES:
        return path[0] if path else None
    found = getattr(sys.modules[above], BESIDE, None)
    return None if found is None else str(found)


def _packages_of_copies() -> None:
    if COPIES not in sys.modules:
        package = ModuleType(COPIES, "The copies of adopted modules (pullback.adopt).")
        package.__path__ = []
        sys.modules[COPIES] = package


def _loaded(name: str, original: ModuleSpec | None, beside: str | None) -> Any:
    if original is None:
        raise ModuleNotFoundError(f"No module named {name.removeprefix(f'{COPIES}.')!r}", name=name)
    where = original.submodule_search_locations
    if original.origin is None or original.loader is None:  # a folder without __init__.py
        spec = ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = list(where or ())
        module = module_from_spec(spec)
        sys.modules[name] = module
        return module
    if not original.origin.endswith(".py"):  # compiled: a part of the package that computes on plain arrays
        module = importlib.import_module(name.removeprefix(f"{COPIES}."))
        sys.modules[name] = module
        return module
    return load_file(name, original.origin, None if where is None else list(where), beside)


def load_file(name: str, path: str, where: list[str] | None = None, beside: str | None = None) -> ModuleType:
    """Load the copy of a file under a name; nothing of it stays in ``sys.modules`` after an error."""
    _packages_of_copies()
    loader = AdoptedLoader(name, path)
    spec = ModuleSpec(name, loader, origin=path, is_package=where is not None)
    spec.has_location = True
    if where is not None:
        spec.submodule_search_locations = where
    module = module_from_spec(spec)
    module.__file__ = path
    if beside is not None:
        module.__dict__[BESIDE] = beside
    sys.modules[name] = module
    try:
        loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return sys.modules[name]


OWN_BUILTINS: Final = {**vars(builtins), "__import__": own_import}
"""The builtins of adopted code."""
