"""``pb.adopt``: a module, a file, a function or a class of somebody else, run as it is on tracers."""

import sys
import sysconfig
from importlib.machinery import PathFinder
from pathlib import Path
from types import FunctionType, MethodType, ModuleType
from typing import Any

from pullback.adopting.modules.importing import ROOTS, copy_of, sibling
from pullback.words.errors import AdoptionError
from pullback.words.plugins import COPIES

OURS = frozenset(("numpy", "math", "cmath", "scipy", "numba", "pullback", "builtins", "sys", COPIES))
"""Packages that adopted code finds anyway, and that are never adopted."""
INSTALLED = frozenset(("site-packages", "dist-packages"))
"""Folders in which libraries are installed."""


def adopt(target: Any) -> Any:
    """A second copy of a program, whose arrays can hold traced values: its gradient without a changed line.

    In the copy ``import numpy``, ``math``, ``cmath`` and what plugins stand for (``scipy``) find namespaces of ours;
    modules of the same package, and those beside an adopted file, are copies, too. Within a trace every array that
    NumPy makes there can hold traced values. Outside a trace the copy computes what the original does, bit for bit. The
    original is neither run nor changed; the copy has its own globals, and is ``pullback_adopted.NAME`` in
    ``sys.modules``. Two adoptions of one target agree.

    Parameters
    ----------
    target
        The name of a module (``"package.module"``), the path of a Python file, or a module, function or class. A module
        that is a file of your own, and not installed, is adopted with those beside it, by its name, too.

    Returns
    -------
    The copy of the module, or in it the function or class.

    Raises
    ------
    AdoptionError
        For what has no Python source: a compiled module, a builtin, a function defined in another one.

    Example
    -------
    >>> import pullback as pb
    >>> statistics = pb.adopt("colorsys")
    >>> float(pb.grad(lambda r: statistics.rgb_to_yiq(r, 0.5, 0.5)[0])(0.3))
    0.3
    """
    if isinstance(target, ModuleType):
        target = str(getattr(target.__spec__, "name", target.__name__)) if target.__name__ != "__main__" else _main()
    if isinstance(target, Path) or (isinstance(target, str) and (target.endswith(".py") or "/" in target)):
        return _file(Path(target))
    if isinstance(target, str):
        return _module(target)
    return _member(target)


def _main() -> Path:
    path = getattr(sys.modules["__main__"], "__file__", None)
    if path is None:
        raise AdoptionError("what was typed at a prompt has no file that could be adopted; write it into one")
    return Path(path)


def _file(path: Path) -> Any:
    path = path.absolute()
    if not path.is_file():
        raise AdoptionError(f"there is no file {path.name} to adopt in {path.parent.name or path.parent}")
    if path.suffix != ".py":
        raise AdoptionError(f"{path.name} is no Python file: it cannot be adopted")
    if path.stem in OURS:
        raise AdoptionError(f"{path.name} has the name of what adopted code finds in its place; rename the file")
    return copy_of(f"{COPIES}.{sibling(path.stem, path.parent)}")


def _module(name: str) -> Any:
    root = name.partition(".")[0]
    if root in OURS:
        raise AdoptionError(f"{name} is not adopted: adopted code finds what serves for {root} anyway")
    original = sys.modules.get(name)
    path = getattr(original, "__file__", None)
    known = PathFinder.find_spec(root) if original is None else None
    if root in sys.builtin_module_names or (
        original is not None and path is None and not hasattr(original, "__path__")
    ):
        raise AdoptionError(f"{name} is built into Python and has no source to adopt")
    if original is not None and path is not None and not path.endswith(".py"):
        raise AdoptionError(_compiled(name, path))
    if original is not None and "." not in name and path is not None and not hasattr(original, "__path__"):
        return _file(Path(path)) if PathFinder.find_spec(name) is None or _is_a_script(path) else _found(name)
    if known is not None and known.origin is not None and "." not in name:
        if not known.origin.endswith(".py"):
            raise AdoptionError(_compiled(name, known.origin))
        if known.submodule_search_locations is None and _is_a_script(known.origin):
            return _file(Path(known.origin))
    return _found(name)


def _is_a_script(path: str) -> bool:
    """Whether a file lies in a folder of the user's, where files beside it belong to the same program; libraries lie
    in one folder with others."""
    return INSTALLED.isdisjoint(Path(path).parts) and not path.startswith(sysconfig.get_path("stdlib"))


def _found(name: str) -> Any:
    root = name.partition(".")[0]
    if root not in ROOTS:
        package: Any = sys.modules.get(root)
        inside = getattr(package, "__path__", None)
        known = (
            None if inside is None or PathFinder.find_spec(root) is not None else [str(Path(p).parent) for p in inside]
        )
        ROOTS[root] = (root, tuple(known) if known else None)
    try:
        copy = copy_of(f"{COPIES}.{name}")
    except ModuleNotFoundError as error:
        if error.name != f"{COPIES}.{name}":
            raise
        raise AdoptionError(
            f"there is no module {name} to adopt; give its whole name, or the path of a file"
        ) from error
    path = getattr(copy, "__file__", None)
    if path is not None and not path.endswith(".py"):
        raise AdoptionError(_compiled(name, path))
    return copy


def _compiled(name: str, path: str) -> str:
    return (
        f"{name} is compiled ({Path(path).name}) and has no source to adopt; declare what it computes with "
        "pullback.primitive"
    )


def _member(target: Any) -> Any:
    if isinstance(target, MethodType):
        raise AdoptionError(
            f"{target.__qualname__} is bound to an instance of the original; adopt the class, and make the instance "
            "with it"
        )
    function = getattr(target, "py_func", target)
    while hasattr(function, "__wrapped__") and not isinstance(function, type):
        function = function.__wrapped__
    if not isinstance(function, FunctionType | type):
        raise AdoptionError(
            f"{type(target).__name__} {getattr(target, '__name__', '')!r} has no Python source; adopt takes the name "
            "of a module, the path of a file, a module, a function or a class"
        )
    module, name = str(function.__module__), str(function.__qualname__)
    if "<" in name:
        raise AdoptionError(
            f"{name} is defined within a function or is a lambda: it has no name in its module; adopt the module and "
            "write the same over its functions"
        )
    if module.startswith(f"{COPIES}."):
        return target
    original: Any = sys.modules.get(module)
    if module == "__main__" or original is None:
        found = _file(Path(function.__code__.co_filename) if isinstance(function, FunctionType) else _main())
    else:
        found = _module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found
