"""Keyword parameters, made the trace's own at the moment of the call: the rule reads what the forward read.

| a parameter is | the trace has |
|---|---|
| a number, a text, a type, a function | itself |
| an array | a copy, shared while its content is the same |
| a list, dict, set, tuple, dataclass of these | another one, of what the trace has of its parts |
| another object | a copy by ``pickle``, shared while its content is the same; what cannot be copied, itself |
| a tracer, also within one of these | refused: it would be no operand |
| a random generator, an iterator, within one too | refused: a forward that runs again would read something else |
"""

import pickle
import sys
from collections.abc import Mapping
from functools import partial
from io import BytesIO
from types import BuiltinFunctionType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any
from weakref import finalize, ref

import numpy as np

from pullback.rules.guarded_calls import ATOMS, tracer_as_parameter
from pullback.rules.rule_names import Names
from pullback.travelling.made_functions import MadeFunction
from pullback.words.call_sites import site_here, site_text
from pullback.words.errors import ConversionError
from pullback.words.structures import map_leaves

# Named to be refused. Their modules take a tenth of the import; of one that is not loaded there is none.
GENERATORS = {"numpy.random": ("Generator", "RandomState", "BitGenerator"), "random": ("Random",)}
ITSELF = (type, ModuleType, FunctionType, BuiltinFunctionType, MadeFunction, np.ufunc, np.dtype)
"""Classes whose instances stand for themselves."""
FIXED = (*ITSELF, np.generic, int, float, complex, str, bytes)
WRITABLE = frozenset((list, dict, set, frozenset, tuple, np.ndarray, bytearray, pickle.PickleBuffer))
"""Types that are always copied."""
REDUCED = frozenset((memoryview, MappingProxyType))
"""Types that are copied though ``pickle`` refuses them."""


def frozen_params(prim: Names, params: Mapping[str, Any], tape: Any) -> Mapping[str, Any]:
    """The parameters as they are now: what is changed later does not reach the rule, nor a recomputation."""
    for value in params.values():
        if type(value) not in ATOMS:
            break
    else:
        return params
    return {
        name: value if type(value) in ATOMS else map_leaves(partial(_leaf, prim, name, tape), value)
        for name, value in params.items()
    }


def _leaf(prim: Names, name: str, tape: Any, leaf: Any) -> Any:
    _require_fixed(prim, name, leaf)
    if isinstance(leaf, FIXED) or leaf is None:
        return leaf
    if type(leaf) is np.ndarray and not leaf.dtype.hasobject:
        kept = tape.keep(leaf).view()
        kept.setflags(write=False)
        return kept
    if isinstance(leaf, partial):
        put = partial(_leaf, prim, name, tape)
        return partial(put(leaf.func), *map_leaves(put, leaf.args), **map_leaves(put, leaf.keywords))
    if isinstance(leaf, MethodType):
        return MethodType(leaf.__func__, _leaf(prim, name, tape, leaf.__self__))
    return _copied(prim, name, tape, leaf)


class _Shared:
    """A copy that calls with one content share, and that steps of a loop share as long as one of them has it."""

    __slots__ = ("__weakref__", "kept", "made")

    def __init__(self, made: Any, kept: list[Any]) -> None:
        lives = type(made).__weakrefoffset__ != 0
        self.made = ref(made) if lives else partial(_itself, made)
        self.kept = kept  # whose ids are in the key
        if lives:
            finalize(made, id, self).atexit = False  # holds this as long as the copy lives: a step's tape does not


def _itself(made: Any) -> Any:
    return made


def _copied(prim: Names, name: str, tape: Any, leaf: Any) -> Any:
    """A copy of an object, shared while its content is the same; the object itself where it cannot be copied."""
    stream, kept = BytesIO(), list[Any]()
    try:
        _Writer(prim, name, stream, kept).dump(leaf)
    except ConversionError:
        raise
    except Exception:  # noqa: BLE001 - what an object's own code raises
        return leaf
    content = (stream.getvalue(), *map(id, kept))
    shared = tape.constants.get(content)
    made = None if shared is None else shared.made()
    if made is None:
        try:
            made = _Reader(stream, kept).load()
        except Exception:  # noqa: BLE001 - what an object's own code raises
            return leaf
        tape.constants[content] = _Shared(made, kept)
    return made


class _Writer(pickle.Pickler):
    """Looks at all that an object holds, on the way; what stands for itself, or cannot be copied, is ``kept``."""

    def __init__(self, prim: Names, name: str, stream: BytesIO, kept: list[Any]) -> None:
        super().__init__(stream, pickle.HIGHEST_PROTOCOL)
        self.whose, self.kept = (prim, name), kept

    def persistent_id(self, obj: Any) -> int | None:
        """The place in ``kept``; None for what is copied."""
        if type(obj) in ATOMS and type(obj) is not type:
            return None
        _require_fixed(*self.whose, obj)
        if type(obj) in WRITABLE or type(obj) in REDUCED or not (isinstance(obj, ITSELF) or _uncopyable(obj)):
            return None
        self.kept.append(obj)
        return len(self.kept) - 1

    def reducer_override(self, obj: Any) -> Any:
        """What ``pickle`` refuses though it can change: a copy of the memory, of the dict behind a proxy."""
        if type(obj) is memoryview:
            return memoryview, (np.array(obj),)
        return (MappingProxyType, (dict(obj),)) if type(obj) is MappingProxyType else NotImplemented


def _uncopyable(obj: Any) -> bool:
    try:
        obj.__reduce_ex__(pickle.HIGHEST_PROTOCOL)
    except Exception:  # noqa: BLE001 - what an object's own code raises
        return True
    return False


class _Reader(pickle.Unpickler):  # noqa: S301 - of what was written a moment ago
    """Reads what :class:`_Writer` has written."""

    def __init__(self, stream: BytesIO, kept: list[Any]) -> None:
        stream.seek(0)
        super().__init__(stream)
        self.kept = kept

    def persistent_load(self, pid: int) -> Any:
        """What stands for itself."""
        return self.kept[pid]


def _require_fixed(prim: Names, name: str, part: Any) -> None:
    """Refuse a tracer, a random generator, an iterator."""
    if hasattr(type(part), "__pullback_record__"):
        raise tracer_as_parameter(prim, name)
    drawn = any(
        isinstance(part, getattr(sys.modules[module], kind, ()))
        for module, kinds in GENERATORS.items()
        if module in sys.modules
        for kind in kinds
    )
    if drawn or (hasattr(type(part), "__next__") and not isinstance(part, type)):
        what = f"random {type(part).__name__}" if drawn else f"{type(part).__name__}, which can be read once"
        remedy = "draw outside, and pass the array as an operand" if drawn else "pass tuple(...) of it"
        raise ConversionError(
            f"the parameter {name!r} of {prim.name} holds a {what} (called at {site_text(site_here())}): the forward "
            f"may run again, and would read something else; {remedy}"
        )
