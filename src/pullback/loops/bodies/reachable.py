"""What a function can reach: through its cells, defaults and the globals it names, their attributes and items, and the
functions among them."""

import array
import dis
import random
import sys
from argparse import Namespace
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np
from attrs import define, field, fields, frozen

from pullback.loops.bodies.effects import EFFECT
from pullback.recording.handles import Handle, is_lost, plain_value
from pullback.words.plugins import COPIES
from pullback.words.specs import buffer_of
from pullback.words.undocumented import global_names

MOST = 10_000
"""How many objects are looked at, and how long a container may be that is."""
_PACKAGES = frozenset({"builtins", "numpy", "scipy", "pullback"})
"""Libraries wherever they lie."""
_ATOMS = (str, bytes, int, float, complex, type(None), type(...), np.generic, np.dtype, slice, range, Handle)
_CONTAINERS = (dict, list, deque, set)
"""Types whose objects are a library's own, such as a cache, in what its function has made for itself."""
GENERATORS = (np.random.Generator, np.random.RandomState, random.Random)  # noqa: S311 - no secret is drawn
_MISSING: Any = object()


@frozen(eq=False)
class Place:
    """Names that can be bound to something else: those of a namespace, the items of a container, a cell."""

    name: str
    """The name as the user would write it."""
    read: Callable[[], tuple[Any, ...]]
    """What is bound there now."""
    put: Callable[[Any], None]
    """Bind it to what ``read`` gave."""
    holds_items: bool = False
    """Whether it is a container: what others put in or take out may be meant for the body, a switch."""
    but: Callable[[frozenset[Any]], "Place"] | None = None
    """The same place without some keys, where what is read are pairs of key and value."""
    show: Callable[[Any], str] = str
    """A key of these, as the user would write it."""


@define(eq=False)
class Reachable:
    """The places and arrays that functions can reach, and the random generators among them."""

    places: list[Place] = field(factory=list)
    arrays: dict[int, tuple[str, Any]] = field(factory=dict)
    """The name and an array, or something that NumPy reads as one where it lies, by identity."""
    generators: dict[int, Any] = field(factory=dict)
    values: set[int] = field(factory=set)
    """The arrays behind traced values, by identity."""
    traced: set[int] = field(factory=set)
    """The traced values that have been met, by identity."""
    catches: bool = False
    """Whether one of the functions may catch an error."""
    told: Callable[[str, Any], None] | None = None
    """Who hears of every object, numbers too, with its name."""
    parts: Callable[[Any], Iterable[Any]] | None = None
    """What tells an object of a library apart, where somebody wants to know."""
    _seen: dict[int, Any] = field(factory=dict)
    """Objects by identity; kept, so that no other object takes a number."""

    def walk(self, roots: Iterable[tuple[str, Any]], lasting: Iterable[CellType] = ()) -> "Reachable":
        """Look at everything from the roots on. ``lasting`` are cells that nobody binds anew."""
        self._seen.update((id(cell), cell) for cell in lasting)
        roots = list(roots)
        waiting = deque([*roots, *(found for _, f in roots for found in _closed_over(f))])
        while waiting and len(self._seen) < MOST:
            name, x = waiting.popleft()
            if self.told is not None:
                self.told(name, x)
            if isinstance(x, Handle) and not is_lost(x):
                self.traced.add(id(x))
                self._of_value(plain_value(x._value))
            if isinstance(x, _ATOMS) or id(x) in self._seen:
                continue
            self._seen[id(x)] = x
            waiting.extend(self._within(name, x))
        return self

    def _of_value(self, value: Any) -> None:
        if isinstance(value, np.ndarray):
            self.values.add(id(buffer_of(value)))

    def _within(self, name: str, x: Any) -> Iterator[tuple[str, Any]]:
        """What can be reached from an object, which is noted for what it is."""
        if isinstance(x, FunctionType):
            yield from self._of_function(name, x)
        elif isinstance(x, MethodType | BuiltinFunctionType):
            yield from ((name, part) for part in (x.__self__, getattr(x, "__func__", None)))
        elif isinstance(x, partial):
            yield from ((name, part) for part in (x.func, x.args, x.keywords))
        elif isinstance(x, GENERATORS) or x is random:
            self.generators[id(x)] = x
        elif isinstance(x, np.ndarray | array.array | bytearray | memoryview):
            self.arrays[id(x)] = name, x
        elif isinstance(x, _CONTAINERS):
            yield from self._of_container(name, x)
        elif isinstance(x, tuple | frozenset):
            yield from ((f"{name}[{k}]", item) for k, item in enumerate(x))
        elif isinstance(x, type):
            yield from self._of_class(name, x)
        elif not isinstance(x, ModuleType):
            yield from self._of_object(name, x)

    def _of_function(self, name: str, f: FunctionType) -> Iterator[tuple[str, Any]]:
        if EFFECT in f.__dict__:
            return
        if _is_library(f.__module__):
            yield name, getattr(f, "__wrapped__", None)
            yield from ((variable, x) for variable, x in _closed_over(f) if not isinstance(x, _CONTAINERS))
            return
        self.catches = self.catches or catches(f.__code__)
        named = {name: f.__globals__.get(name) for name in global_names(f.__code__)}
        for variable, cell in zip(f.__code__.co_freevars, f.__closure__ or (), strict=True):
            if id(cell) not in self._seen:
                self._seen[id(cell)] = cell
                self.places.append(_cell(variable, cell))
            for content in _content(cell):
                named[variable] = content
                yield variable, content
        yield from ((f"a default of {f.__name__}", value) for value in f.__defaults__ or ())
        yield from ((variable, value) for variable, value in (f.__kwdefaults__ or {}).items())
        yield from self._names("", f.__globals__, global_names(f.__code__))
        for variable, module in named.items():
            if isinstance(module, ModuleType) and not _is_library(module.__name__):
                yield from self._names(f"{variable}.", vars(module), set(f.__code__.co_names) & vars(module).keys())
        yield name, f.__dict__ or None

    def _of_class(self, name: str, kind: type) -> Iterator[tuple[str, Any]]:
        """The functions and values of a user's class and its bases."""
        for base in kind.__mro__:
            if _is_library(base.__module__):
                continue
            own = {key: x for key, x in vars(base).items() if not _is_special(key) or isinstance(x, FunctionType)}
            for key, value in own.items():
                inner = getattr(value, "__func__", None) or getattr(value, "fget", None) or value
                yield f"{name}.{key}", inner
            data = (key for key, x in own.items() if isinstance(x, FunctionType) or not hasattr(x, "__get__"))
            self.places.extend(_attribute(name, base, key) for key in data)
        yield f"type({name})", type(kind)

    def _of_object(self, name: str, x: Any) -> Iterator[tuple[str, Any]]:
        if hasattr(x, "__array__") and not hasattr(x, "_tape"):
            self.arrays[id(x)] = name, x
        attributes = getattr(x, "__dict__", None)
        slots = [slot for base in type(x).__mro__ for slot in _slots(base) if hasattr(x, slot)]
        if _is_library(type(x).__module__) and not isinstance(x, SimpleNamespace | Namespace):
            held = list(attributes.values()) if isinstance(attributes, dict) else []
            held += [getattr(x, slot) for slot in slots]
            yield from ((name, value) for value in held if isinstance(value, np.ndarray | FunctionType))
            yield name, getattr(x, "__wrapped__", None)
            yield from ((name, part) for part in (() if self.parts is None else self.parts(x)))
            return
        if isinstance(attributes, dict):
            self.places.append(_keyed(f"{name}.__dict__", attributes, None, f"{name}.{{}}".format))
            yield from ((f"{name}.{key}", value) for key, value in attributes.items())
        for slot in slots:
            self.places.append(_attribute(name, x, slot))
            yield f"{name}.{slot}", getattr(x, slot)
        yield f"type({name})", type(x)

    def _names(self, prefix: str, namespace: dict[str, Any], names: Iterable[str]) -> Iterator[tuple[str, Any]]:
        """Names of a namespace, bound or not, as one place."""
        names = tuple(name for name in names if not _is_special(name))  # no ``__name__``, and none of adopted code
        shown = [name for name in names if name in namespace]
        self.places.append(_keyed(prefix + ", ".join(shown), namespace, names, f"{prefix}{{}}".format))
        yield from ((f"{prefix}{key}", namespace[key]) for key in shown)

    def _of_container(self, name: str, x: Any) -> Iterator[tuple[str, Any]]:
        if len(x) > MOST:
            return
        if isinstance(x, dict):
            self.places.append(_keyed(name, x, None, f"{name}[{{!r}}]".format, holds_items=True))
        else:
            self.places.append(Place(name, partial(tuple, x), partial(_refill, x), holds_items=True))
        yield from ((f"{name}[{key!r}]", item) for key, item in (x.items() if isinstance(x, dict) else enumerate(x)))


_HANDLERS = [dis.opmap[name] for name in ("CHECK_EXC_MATCH", "WITH_EXCEPT_START") if name in dis.opmap]


@lru_cache(1024)
def catches(code: CodeType) -> bool:
    """Whether a function may catch an error of what is computed, by ``except`` or ``with``. Where the instructions have
    other names, any may; none may of those of attrs and those that it writes, which catch AttributeErrors."""
    if code.co_filename.startswith(("<attrs generated", fields.__code__.co_filename.removesuffix("_make.py"))):
        return False
    inner = any(catches(part) for part in code.co_consts if isinstance(part, CodeType))
    return inner or len(_HANDLERS) < 2 or any(op in code.co_code[::2] for op in _HANDLERS)


def _closed_over(f: Any) -> Iterator[tuple[str, Any]]:
    """What the cells of a function hold: of one that a library has made this alone is looked at."""
    if isinstance(f, FunctionType):
        for variable, cell in zip(f.__code__.co_freevars, f.__closure__ or (), strict=True):
            yield from ((variable, content) for content in _content(cell))


def _bind(namespace: dict[str, Any], key: str, value: Any) -> None:
    if value is _MISSING:
        namespace.pop(key, None)
    elif namespace.get(key, _MISSING) is not value:
        namespace[key] = value


def _keyed(
    name: str,
    namespace: dict[Any, Any],
    names: tuple[str, ...] | None,
    show: Callable[[Any], str],
    without: frozenset[Any] = frozenset(),
    *,
    holds_items: bool = False,
) -> Place:
    """Keys of a namespace or dict, bound or not, as one place: the given ones or all, but for those ``without``."""

    def read() -> tuple[Any, ...]:
        if names is None and not without:
            return tuple(namespace.items())
        keys = namespace if names is None else names
        return tuple((key, namespace[key]) for key in keys if key in namespace and key not in without)

    def put(content: tuple[tuple[Any, Any], ...]) -> None:
        old = dict(content)
        for key in {**dict(read()), **old}:
            _bind(namespace, key, old.get(key, _MISSING))
        if holds_items and not without and list(old) != list(namespace):  # what was taken out stands where it stood
            _refill(namespace, content)

    but = partial(_keyed, name, namespace, names, show, holds_items=holds_items)
    return Place(name, read, put, holds_items, but, show)


def _refill(container: Any, content: tuple[Any, ...]) -> None:
    container.clear()
    (container.update if isinstance(container, dict | set) else container.extend)(content)


def _cell(name: str, cell: CellType) -> Place:
    def put(old: tuple[Any, ...]) -> None:
        if old:
            cell.cell_contents = old[0]

    return Place(name, lambda: _content(cell), put)


def _content(cell: CellType) -> tuple[Any, ...]:
    try:
        return (cell.cell_contents,)
    except ValueError:  # not bound yet
        return ()


def _attribute(owner_name: str, owner: Any, name: str) -> Place:
    def put(old: tuple[Any, ...]) -> None:
        if getattr(owner, name, _MISSING) is not old[0] and old[0] is not _MISSING:
            setattr(owner, name, old[0])

    return Place(f"{owner_name}.{name}", lambda: (getattr(owner, name, _MISSING),), put)


def _slots(kind: type) -> tuple[str, ...]:
    slots = vars(kind).get("__slots__", ())
    slots = (slots,) if isinstance(slots, str) else slots
    own = (slot for slot in slots if not _is_special(slot))
    return tuple(f"_{kind.__name__.lstrip('_')}{slot}" if slot.startswith("__") else slot for slot in own)


def _is_special(name: str) -> bool:
    """Whether a name is one of Python's own, ``__dict__``."""
    return name.startswith("__") and name.endswith("__")


@lru_cache(1024)
def _is_library(module: Any) -> bool:
    """Whether a module is Python's own or of an installed package: what changes in there is not what a user's body
    reads, but for arrays. What is typed in at the prompt has no file."""
    file = getattr(sys.modules.get(module), "__file__", None) or ""
    package = str(module).partition(".")[0]
    ours = package.startswith("pullback_") and package != COPIES  # a plugin, no copy of a user's module
    known = ours or package in _PACKAGES or package in sys.stdlib_module_names
    return (known and package != "__main__") or "-packages" in file
