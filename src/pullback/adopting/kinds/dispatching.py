"""Classes that patterns and dispatchers ask for: a traced number is a float to them, a traced array an ndarray.

Python looks at the class of a value in C, where a handle is a handle. ``match`` would pass over ``case float():``, and
``singledispatch`` would call another function than for the value, both without a word.
"""

import functools
from functools import cache, wraps
from typing import Any, Final

from pullback.recording.handles import Handle, type_of


def is_instance(x: Any, given: Any) -> bool:
    """``isinstance(x, given)`` of what a handle stands for, which may have no elements to iterate over where every
    handle has the method; a class of handles is asked of the handle."""
    kinds = given if isinstance(given, tuple) else (given,)
    if any(isinstance(kind, type) and issubclass(kind, Handle) for kind in kinds):
        return isinstance(x, given)
    return issubclass(type_of(x), given)


@cache
def matching(cls: Any) -> Any:
    """A class for patterns, of which a handle is an instance where what it stands for is one of ``cls``; anything but a
    class as it is."""
    if not isinstance(cls, type) or cls is bool:
        return cls

    def matches(_: Any, x: Any) -> bool:
        return is_instance(x, cls) if issubclass(type(x), Handle) else isinstance(x, cls)

    kind: Any = type(cls.__name__, (type(cls),), {"__instancecheck__": matches})
    return kind(cls.__name__, (cls,), {"__module__": cls.__module__})


def singledispatch(func: Any) -> Any:
    """``functools.singledispatch``."""
    plain = functools.singledispatch(func)

    @wraps(plain)
    def dispatched(*args: Any, **kwargs: Any) -> Any:
        traced = args and issubclass(type(args[0]), Handle)
        return (plain.dispatch(type_of(args[0])) if traced else plain)(*args, **kwargs)

    return dispatched


_METHOD: Final[Any] = functools.singledispatchmethod


class singledispatchmethod(_METHOD):  # type: ignore[misc]  # noqa: N801 - the name in functools
    """``functools.singledispatchmethod``."""

    def __get__(self, obj: Any, cls: Any = None) -> Any:
        """The method of an instance, which asks for the class of its first argument."""
        plain = super().__get__(obj, cls)

        def dispatched(*args: Any, **kwargs: Any) -> Any:
            if not args or not issubclass(type(args[0]), Handle):
                return plain(*args, **kwargs)
            return self.dispatcher.dispatch(type_of(args[0])).__get__(obj, cls)(*args, **kwargs)

        dispatched.register = self.register  # type: ignore[attr-defined] # as functools sets it
        dispatched.__isabstractmethod__ = self.__isabstractmethod__  # type: ignore[attr-defined] # the same
        return functools.update_wrapper(dispatched, self.func)
