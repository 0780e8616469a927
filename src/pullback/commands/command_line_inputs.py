"""From text on the command line to values: a function in a file, an array in a file, a policy.

The text is parsed, never evaluated. Every fault is an :class:`InputFileError`: one line on what is wrong and what to
write instead.
"""

import ast
import importlib.util
import inspect
import pickle
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any, Final
from zipfile import BadZipFile

import numpy as np
from attrs import frozen

from pullback.memory.in_force import policy_in_force
from pullback.policies.base import MemoryPolicy
from pullback.shapes_only.hollow_arrays import spec
from pullback.words.errors import InputFileError, PolicyError
from pullback.words.undocumented import of_pickles


@frozen(eq=False)
class FileFunction:
    """A function of a Python file. Pickled as where it is, and loaded again from there in another process."""

    path: str
    name: str
    function: Callable[..., Any]

    @property
    def __name__(self) -> str:
        """The function's own name."""
        return self.name

    @property
    def __wrapped__(self) -> Callable[..., Any]:
        """What tells the names of the parameters."""
        return self.function

    def __call__(self, *args: Any) -> Any:
        """What the function returns."""
        return self.function(*args)

    def __reduce__(self) -> tuple[Any, ...]:
        return load_function, (f"{self.path}:{self.name}",)


def load_function(text: str) -> FileFunction:
    """The function that ``FILE.py:FUNCTION`` names; the file is run once, with its folder first on the module path."""
    path_text, colon, name = text.rpartition(":")
    if not colon or not path_text or not name.isidentifier():
        raise InputFileError(f"{text!r} names no function; write FILE.py:FUNCTION, for example model.py:misfit")
    path = Path(path_text).absolute()
    function = getattr(load_module(path_text), name, None)
    if function is None:
        raise InputFileError(f"{path_text} defines no {name}; name a function that stands at its top level")
    if not callable(function):
        raise InputFileError(f"{name} in {path_text} is no function but a {type(function).__name__}; name a function")
    return FileFunction(str(path), name, function)


def load_module(shown: str) -> ModuleType:
    """The module of a Python file, which is run once, with its folder first on the module path."""
    path = Path(shown).absolute()
    if not path.is_file():
        raise InputFileError(
            f"there is no file {shown}; write the path to a Python file, then a colon and the function"
        )
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise InputFileError(f"{shown} is not a Python file; its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise InputFileError(f"{shown} cannot be run: {what}; mend it, or run it with python to see where") from error
    finally:
        sys.path.remove(str(path.parent))
    return module


def bind(function: FileFunction, values: Mapping[str, Any]) -> tuple[Any, ...]:
    """The positional arguments of a call, from values by parameter name; defaults stand in for what is not given."""
    try:
        parameters = inspect.signature(function.function).parameters.values()
    except (TypeError, ValueError) as error:
        raise InputFileError(
            f"{function.name} does not tell its parameters ({error}); wrap it in a def that names them"
        ) from error
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    _require_known(function, values, [p.name for p in positional])
    missing = [p.name for p in positional if p.name not in values and p.default is p.empty]
    if missing:
        raise InputFileError(
            f"{function.name} needs a value for {', '.join(missing)}; pass --arg {missing[0]}=FILE.npy"
        )
    return tuple(values.get(p.name, p.default) for p in positional)


def _require_known(function: FileFunction, names: Iterable[str], known: Sequence[str]) -> None:
    """Raise :class:`InputFileError` for a name that is none of the parameters."""
    unknown = [name for name in names if name not in known]
    if unknown:
        raise InputFileError(f"{function.name} has no parameter {unknown[0]!r}; it takes {', '.join(known) or 'none'}")


def places(function: FileFunction, args: tuple[Any, ...], names: Sequence[str]) -> tuple[int, ...]:
    """Where the named parameters stand; without names, the first argument that is floating or complex."""
    known = list(inspect.signature(function.function).parameters)[: len(args)]
    _require_known(function, names, known)
    if names:
        return tuple(known.index(name) for name in names)
    inexact = [k for k, value in enumerate(args) if any(leaf.dtype.kind in "fc" for leaf in arrays_of(value))]
    if not inexact:
        raise InputFileError(
            f"no argument of {function.name} is floating or complex, so it has no gradient; save one with "
            ".astype(float)"
        )
    return (inexact[0],)


def load_arrays(text: str) -> Any:
    """The array of a ``.npy`` file, or those of a ``.npz`` file as a dict: booleans, integers, floating or complex
    numbers. Nothing pickled is ever loaded."""
    path = Path(text)
    if not path.is_file():
        raise InputFileError(f"there is no file {text}; write the path to an array saved with numpy.save")
    try:
        found = np.load(path, allow_pickle=False)
        if not isinstance(found, np.ndarray):
            with found:
                found = dict(found)
    except (ValueError, EOFError, OSError, BadZipFile, pickle.UnpicklingError) as error:
        if of_pickles(error):
            raise InputFileError(
                f"{text} holds pickled Python objects, which are not loaded because loading them may run code; "
                "save a numeric array with numpy.save"
            ) from error
        raise InputFileError(f"{text} is no .npy file ({error}); save the array with numpy.save") from error
    for array in arrays_of(found):
        if array.dtype.kind not in "biufc":
            raise InputFileError(f"{text} holds dtype {array.dtype}, which is not numeric; save an array of numbers")
    return found


def arrays_of(value: Any) -> list[np.ndarray[Any, Any]]:
    """An argument as arrays: those of a dict, or itself as one."""
    return [np.asarray(leaf) for leaf in (value.values() if isinstance(value, dict) else (value,))]


SHAPE: Final = re.compile(r"([a-z]+\d*)\[\s*((?:\d+\s*,?\s*)*)\]")
"""``float64[4096,4096]``: how a shape and a dtype are written, as the tables write them."""


def load_value(text: str) -> Any:
    """A number written out (``100``, ``0.5``, ``True``); what stands in ``plan`` for an array of a shape and a dtype
    (``float64[4096,4096]``); otherwise what the file of that name holds."""
    shape = SHAPE.fullmatch(text)
    if shape is not None:
        try:
            return spec(tuple(map(int, re.findall(r"\d+", shape[2]))), shape[1])
        except TypeError as error:
            raise InputFileError(f"{text} names no dtype of NumPy; write for example float64[100,100]") from error
    with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
        value = ast.literal_eval(text)
        if isinstance(value, bool | int | float | complex):
            return value
    return load_arrays(text)


def parse_policy(text: str, known: Mapping[str, type[MemoryPolicy]]) -> MemoryPolicy:
    """The policy that ``Binomial(10)``, ``SaveAll`` or ``auto`` writes, of the ``known`` names, with literal arguments
    only."""
    if text.strip() == "auto":
        return policy_in_force("auto")
    example = f"write one of {', '.join(sorted(known))}, with its arguments, for example 'Binomial(20)'"
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        called, positional, keywords = (
            (tree.func, tree.args, tree.keywords) if isinstance(tree, ast.Call) else (tree, [], [])
        )
        args = [ast.literal_eval(arg) for arg in positional]
        kwargs = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in keywords}
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise InputFileError(f"{text!r} is no policy; {example}") from error
    if not isinstance(called, ast.Name) or called.id not in known:
        raise InputFileError(f"{text!r} is no policy that is known here; {example}")
    try:
        return known[called.id](*args, **kwargs)
    except PolicyError as error:
        raise InputFileError(f"{text!r}: {error.args[0]}") from error
    except TypeError as error:
        raise InputFileError(f"{text!r} has the wrong arguments ({error}); {example}") from error
