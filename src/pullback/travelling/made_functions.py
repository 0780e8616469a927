"""Functions that a transform has made of others: ``grad(f)``, ``checkpoint(f)``. They are called as any function, and
pickled as what they are made of."""

import sys
from collections.abc import Callable
from functools import partial, update_wrapper
from importlib import import_module
from types import MethodType
from typing import Any, NoReturn

from pullback.travelling.places import object_at
from pullback.words.errors import TravelError
from pullback.words.undocumented import asking_pickler, is_by_value


class MadeFunction(partial[Any]):
    """What a transform has made of ``f``: the function within, to be called, and its origin, of which it is made again.

    A function of its own cannot be pickled, since ``pickle`` takes every function by its name. This is pickled by its
    name where it stands in its module in the place of ``f``, as under a decorator; else as the public name of the
    transform, ``f`` and the settings. To look at it is to look at the function within; copies are itself, and in a
    class it becomes a method, as functions do.
    """

    __slots__ = ("origin",)  # beside a dict, for what users and ``wraps`` set
    origin: tuple[str, Any, dict[str, Any]] | str
    """The transform, ``f`` and the settings; a text says why there is none."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        if isinstance(self.origin, str):
            raise TravelError(self.origin)
        module, name = getattr(self, "__module__", None), getattr(self, "__qualname__", None)
        pickler = asking_pickler(sys._getframe(1))
        along = pickler is not None and is_by_value(pickler, str(module))
        return name if not along and object_at(module, name) is self else (made_again, self.origin)

    def __copy__(self) -> "MadeFunction":
        return self

    def __deepcopy__(self, memo: Any) -> "MadeFunction":
        return self

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __repr__(self) -> str:
        what = "function" if isinstance(self.origin, str) else self.origin[0]
        return f"<{what} of {getattr(self, '__qualname__', '?')} at {id(self):#x}>"

    @property
    def __code__(self) -> Any:
        return self.func.__code__

    @property
    def __globals__(self) -> Any:
        return self.func.__globals__

    @property
    def __closure__(self) -> Any:
        return self.func.__closure__


def made(transform: str, f: Any, call: Callable[..., Any], **settings: Any) -> MadeFunction:
    """``call`` as what the public ``transform`` has made of ``f`` with these ``settings``."""
    return _around(call, (transform, f, settings))


def made_here(call: Callable[..., Any], why: str) -> MadeFunction:
    """``call`` as a function that holds what is in this process alone: to pickle it raises :class:`TravelError`, which
    says ``why``."""
    return _around(call, why)


def with_function(function: MadeFunction, call: Callable[..., Any]) -> MadeFunction:
    """The same made function around another function to be called."""
    other = MadeFunction(call)
    vars(other).update(vars(function))
    other.origin = function.origin
    return other


def made_again(transform: str, f: Any, settings: dict[str, Any]) -> Any:
    """What the public ``transform`` makes of ``f``: by its public name, so that pickles keep their meaning when files
    move."""
    return getattr(import_module("pullback"), transform)(f, **settings)


def refuse(self: Any, protocol: Any) -> NoReturn:
    """A ``__reduce_ex__`` for what holds what is in this process alone, and says so in ``why_it_stays``."""
    raise TravelError(self.why_it_stays)


def _around(call: Callable[..., Any], origin: Any) -> MadeFunction:
    function: Any = update_wrapper(MadeFunction(call), call)
    function.__wrapped__ = getattr(call, "__wrapped__", call)  # the user's
    function.origin = origin
    return function  # type: ignore[no-any-return]  # update_wrapper returns its first argument
