"""Functions that numba compiles, in adopted code: compiled on plain values, as in the original; run as Python on
tracers."""

from collections.abc import Callable
from functools import update_wrapper
from inspect import unwrap
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from pullback.memory.in_force import LIVE
from pullback.recording.handles import Handle

DECORATORS = ("jit", "njit", "generated_jit")
"""Decorators of numba's whose functions have a ``py_func``."""


class Compiled:
    """A function that numba compiles. On tracers ``py_func`` runs, in the adopted module; on plain values the compiled
    one, of the same code over plain NumPy."""

    def __init__(self, function: Any, decorate: Callable[[Any], Any]) -> None:
        update_wrapper(self, function)
        self.py_func = function
        self._decorate, self._made = decorate, None

    @property
    def compiled(self) -> Any:
        """What numba has made of the function."""
        if self._made is None:
            own: Any = self.py_func
            function = FunctionType(own.__code__, {}, own.__name__, own.__defaults__, own.__closure__)
            function.__kwdefaults__ = own.__kwdefaults__
            function.__module__, function.__qualname__ = own.__module__, own.__qualname__
            self._made = self._decorate(function)
            function.__globals__.update({name: _plainly(given) for name, given in own.__globals__.items()})
        return self._made

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if LIVE and any(isinstance(x, Handle) for x in (*args, *kwargs.values())):
            return self.py_func(*args, **kwargs)
        return self.compiled(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.compiled, name)


def _plainly(given: Any) -> Any:
    """What a name of an adopted module means to numba."""
    if isinstance(given, Compiled):
        return given.compiled
    original = getattr(given, "_pullback_original", None)
    if isinstance(given, ModuleType) and original is not None:
        return original
    plain = unwrap(given) if callable(given) else given
    named = getattr(given, "__name__", "")
    if plain is not given and getattr(np, named, None) is plain:
        return plain
    return given


def numba_names(original: Any) -> dict[str, Any]:
    """The decorators of numba, for adopted code."""
    return {name: _decorator(getattr(original, name)) for name in DECORATORS if hasattr(original, name)} | {
        "prange": getattr(original, "prange", range)
    }


def _decorator(original: Callable[..., Any]) -> Callable[..., Any]:
    def decorate(*args: Any, **options: Any) -> Any:
        if len(args) == 1 and isinstance(args[0], FunctionType) and not options:
            return Compiled(args[0], original)
        if args and isinstance(args[0], FunctionType):
            return Compiled(args[0], lambda function: original(function, *args[1:], **options))
        return lambda function: Compiled(function, original(*args, **options))

    return decorate
