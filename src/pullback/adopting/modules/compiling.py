"""Functions that numba compiles, in adopted code: compiled on plain values, as in the original; run as Python on
tracers."""

import re
import tokenize
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, update_wrapper
from inspect import unwrap
from itertools import zip_longest
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final

import numpy as np
from attrs import frozen

from pullback.adopting.modules.numpy_calls import vectorize
from pullback.memory.in_force import LIVE
from pullback.recording.handles import Handle
from pullback.words.errors import NotDifferentiableError
from pullback.words.plugins import COPIES, LIVE_NAME

DECORATORS = ("jit", "njit", "generated_jit")
"""Decorators of numba's whose functions are run as they are on tracers."""

_UNDER_WAY: Final[list[Any]] = []
"""Functions that are compiled just now, the innermost last."""


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
            function = _over_plain_numpy(self.py_func)
            with self._under_way():
                _fill(function, self.py_func)
                self._made = self._decorate(function)
            _fill(function, self.py_func)  # with itself
        return self._made

    @contextmanager
    def _under_way(self) -> Iterator[None]:
        """While what calls itself is compiled it is not asked for."""
        _UNDER_WAY.append(self)
        try:
            yield
        finally:
            _UNDER_WAY.pop()

    def on_tracers(self, *args: Any, **kwargs: Any) -> Any:
        """What stands for the compiled function where an argument is traced."""
        return self.py_func(*args, **kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if LIVE and any(isinstance(x, Handle) for x in (*args, *kwargs.values())):
            return self.on_tracers(*args, **kwargs)
        return self.compiled(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.compiled, name)


class CompiledUfunc(Compiled):
    """A function of numbers that ``numba.vectorize`` makes a ufunc of; on tracers it is called for each element."""

    def on_tracers(self, *args: Any, **kwargs: Any) -> Any:
        """The results for all elements."""
        return vectorize(self.py_func)(*args, **kwargs)


class CompiledOverRows(Compiled):
    """A function over rows that ``numba.guvectorize`` makes a ufunc of; on tracers it is called for each."""

    def __init__(self, function: Any, decorate: Callable[[Any], Any], types: Any, layout: str) -> None:
        super().__init__(function, decorate)
        self._inputs, self._outputs = (re.findall(r"\(([^)]*)\)", side) for side in layout.split("->"))
        self._scalar = [not at and not array for at, array in zip_longest(self._inputs, _arrays(types))]

    def on_tracers(self, *args: Any, out: Any = ()) -> Any:
        """The outputs, which are made where none are given."""
        args = (*args, *(out if isinstance(out, tuple) else (out,)))
        given: list[Any] = [x if isinstance(x, Handle) else np.asarray(x) for x in args[: len(self._inputs)]]
        names = [[n.strip() for n in part.split(",") if n.strip()] for part in (*self._inputs, *self._outputs)]
        sizes: dict[str, int] = {}
        around = [np.shape(x)[: np.ndim(x) - len(own)] for x, own in zip(given, names, strict=False)]
        for x, own in zip(given, names, strict=False):
            sizes.update(zip(own, np.shape(x)[np.ndim(x) - len(own) :], strict=True))
        rows: Any = np.broadcast_shapes(*around)
        like: Any = next(x for x in args if isinstance(x, Handle))
        made = list(args[len(given) :]) or [
            np.zeros((*rows, *(sizes[n] for n in own)), like.dtype, like=like) for own in names[len(given) :]
        ]
        for row in np.ndindex(rows):
            at = [tuple(k if n > 1 else 0 for k, n in zip(row[len(row) - len(a) :], a, strict=True)) for a in around]
            parts = [
                x[k] if scalar or own else x[(*k, None)]
                for x, k, own, scalar in zip(given, at, names, self._scalar, strict=False)
            ]
            outs = [x[row] if own else x[(*row, None)] for x, own in zip(made, names[len(given) :], strict=True)]
            self.py_func(*parts, *outs)
        return made[0] if len(made) == 1 else tuple(made)


class CompiledStencil(Compiled):
    """A kernel that ``numba.stencil`` applies at each element; on tracers it is applied to all of them at once, on
    slices that lie as far apart as its indices say."""

    def __init__(self, function: Any, decorate: Callable[[Any], Any], options: Any) -> None:
        super().__init__(function, decorate)
        self._options = options

    def on_tracers(self, *args: Any, out: Any = None) -> Any:
        """The results where the kernel has its neighbours, ``cval`` around them."""
        if self._options.get("standard_indexing"):
            raise NotDifferentiableError(
                f"numba.stencil with standard_indexing has no derivative here ({self.__name__}); write the sums of the "
                "kernel with slices of the arrays"
            )
        arrays = [x for x in args if np.ndim(x)]
        reaches = [
            (min(0, low), max(0, high)) for low, high in self._options.get("neighborhood") or self._reaches(args)
        ]
        shape = arrays[0].shape
        inner = tuple(slice(-low, n - high) for (low, high), n in zip(reaches, shape, strict=True))
        found = self.py_func(*(_Neighbours(x, inner) if np.ndim(x) else x for x in args))
        if out is None:
            like: Any = next(x for x in args if isinstance(x, Handle))
            out = np.full_like(like, self._options.get("cval", 0), np.result_type(found), shape=shape)
        elif "cval" in self._options:
            out[...] = self._options["cval"]
        out[inner] = found
        return out

    def _reaches(self, args: Any) -> list[tuple[int, int]]:
        """The least and the greatest index that the kernel reads along each axis."""
        read: list[tuple[int, ...]] = []
        self.py_func(*(_Probe(x, read) if np.ndim(x) else x for x in args))
        return [(min(along), max(along)) for along in zip(*read, strict=True)]


@frozen
class _Neighbours:
    """An array as a kernel sees it: an index is how far away from its own element."""

    array: Any
    inner: tuple[slice, ...]

    def __getitem__(self, key: Any) -> Any:
        offsets = key if isinstance(key, tuple) else (key,)
        return self.array[tuple(slice(s.start + k, s.stop + k) for s, k in zip(self.inner, offsets, strict=True))]


@frozen
class _Probe:
    """An array of which is noted what a kernel reads of it; it gives the first element."""

    array: Any
    read: list[tuple[int, ...]]

    def __getitem__(self, key: Any) -> Any:
        self.read.append(key if isinstance(key, tuple) else (key,))
        return self.array[(0,) * np.ndim(self.array)]


def _arrays(types: Any) -> list[bool]:
    """Which arguments are arrays, by the first of the signatures for guvectorize."""
    first = types[0] if types else ""
    if isinstance(first, str):
        return ["[" in part for part in re.findall(r"[^,\[(]+(?:\[[^\]]*\])?", first.removeprefix("void").strip("()"))]
    return [hasattr(part, "ndim") for part in getattr(first, "args", first)]


class CompiledClass:
    """A class that ``numba.experimental.jitclass`` compiles. While a trace is under way its instances are Python's, and
    may hold traced values."""

    def __init__(self, kind: type, decorate: Callable[[Any], Any]) -> None:
        self._kind, self._decorate, self._made = kind, decorate, None
        self.__name__, self.__doc__, self.__module__ = kind.__name__, kind.__doc__, kind.__module__

    @property
    def compiled(self) -> Any:
        """What numba has made of the class."""
        if self._made is None:
            parts = {name: part for name, part in vars(self._kind).items() if name not in ("__dict__", "__weakref__")}
            own = {name: part for name, part in parts.items() if isinstance(part, FunctionType)}
            plain = {name: _over_plain_numpy(part) for name, part in own.items()}
            self._made = self._decorate(type(self._kind)(self.__name__, self._kind.__bases__, parts | plain))
            for name, function in plain.items():  # compiled at their first calls
                _fill(function, own[name])
        return self._made

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return (self._kind if LIVE else self.compiled)(*args, **kwargs)

    def __instancecheck__(self, x: Any) -> bool:
        return isinstance(x, self._kind) or (self._made is not None and isinstance(x, self._made))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kind, name)


def _over_plain_numpy(own: Any) -> Any:
    """The function as its file has it, whose globals are still to be filled in."""
    function = FunctionType(_as_written(own.__code__), {}, own.__name__, own.__defaults__, own.__closure__)
    function.__kwdefaults__ = own.__kwdefaults__
    function.__module__, function.__qualname__ = own.__module__, own.__qualname__
    return function


def _fill(function: Any, own: Any) -> None:
    """Give a function the plain ones of the globals that it names."""
    todo, names = [function.__code__], set[str]()
    for code in todo:
        names.update(code.co_names)
        todo += [inner for inner in code.co_consts if isinstance(inner, CodeType)]
    known = own.__globals__
    function.__globals__.update({name: _plainly(known[name]) for name in sorted(names) if name in known})


def _as_written(code: CodeType) -> CodeType:
    """The code of a function as its file has it: a decorator that is defined elsewhere does not show that it compiles,
    so questions were written into what it is given."""
    if LIVE_NAME not in code.co_names:
        return code
    with tokenize.open(code.co_filename) as file:
        todo = [compile(file.read(), code.co_filename, "exec", dont_inherit=True)]
    for part in todo:
        if (part.co_name, part.co_firstlineno, part.co_freevars) == (
            code.co_name, code.co_firstlineno, code.co_freevars
        ):  # fmt: skip
            return part
        todo += [inner for inner in part.co_consts if isinstance(inner, CodeType)]
    return code


def _plainly(given: Any) -> Any:
    """What a name of an adopted module means to numba."""
    if isinstance(given, Compiled | CompiledClass):
        return given if given in _UNDER_WAY else given.compiled
    original = getattr(given, "_pullback_original", None)
    if isinstance(given, ModuleType) and original is not None:
        return original
    if isinstance(given, ModuleType) and given.__name__.partition(".")[0] == COPIES:
        return _plain_module(given)
    plain = unwrap(given) if callable(given) else given
    named = getattr(given, "__name__", "")
    if plain is not given and getattr(np, named, None) is plain:
        return plain
    return given


class PlainModule(ModuleType):
    """What an adopted module means to numba, which asks it for names: the compiled ones."""

    def __init__(self, module: ModuleType) -> None:
        super().__init__(module.__name__)
        self.__dict__["_pullback_copy"] = module

    def __getattr__(self, name: str) -> Any:
        known = vars(self.__dict__["_pullback_copy"])
        if name not in known:
            raise AttributeError(name)
        return _plainly(known[name])


_plain_module = cache(PlainModule)


def numba_names(original: Any) -> dict[str, Any]:
    """The decorators of numba, for adopted code."""
    kinds = dict.fromkeys(DECORATORS, Compiled) | {"vectorize": CompiledUfunc}
    known = {name: _decorator(getattr(original, name), kind) for name, kind in kinds.items() if hasattr(original, name)}
    return known | {
        "prange": getattr(original, "prange", range),
        "guvectorize": _over_rows(original),
        "stencil": _stencils(original),
    }


def _stencils(original: Any) -> Callable[..., Any]:
    def stencil(*args: Any, **options: Any) -> Any:
        if args and isinstance(args[0], FunctionType):
            return CompiledStencil(args[0], lambda function: original.stencil(function, *args[1:], **options), options)
        return lambda function: CompiledStencil(function, original.stencil(*args, **options), options)

    return stencil


def _over_rows(original: Any) -> Callable[..., Any]:
    def guvectorize(*args: Any, **options: Any) -> Any:
        types, layout = (None, *args) if isinstance(args[0], str) and "->" in args[0] else args[:2]
        return lambda function: CompiledOverRows(function, original.guvectorize(*args, **options), types, layout)

    return guvectorize


def numba_class_names(original: Any) -> dict[str, Any]:
    """The decorators of ``numba.experimental``, for adopted code."""
    return {"jitclass": _decorator(original.jitclass, CompiledClass)}


def _decorator(original: Callable[..., Any], kind: Callable[..., Any]) -> Callable[..., Any]:
    def decorate(*args: Any, **options: Any) -> Any:
        if len(args) == 1 and isinstance(args[0], FunctionType | type) and not options:
            return kind(args[0], original)
        if args and isinstance(args[0], FunctionType | type):
            return kind(args[0], lambda function: original(function, *args[1:], **options))
        return lambda function: kind(function, original(*args, **options))

    return decorate
