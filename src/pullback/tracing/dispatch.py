"""The NumPy hooks: what happens when a ufunc, a ufunc method or a NumPy function meets a tracer."""

from collections.abc import Callable, Mapping
from functools import cache, partial
from inspect import signature
from typing import Any

import numpy as np

from pullback.primitives.shaping.as_array import as_array
from pullback.primitives.shaping.creation import CREATED_BY_LIKE, create_like
from pullback.recording.crossing import left_alone, standing_for
from pullback.recording.generated_callers import make_caller
from pullback.recording.handles import Handle, layout_of, type_of
from pullback.recording.out_targets import require_traced_target, write_out
from pullback.recording.tape import CAPTURED, DEFERRED, PAUSED, REPLAYABLE, Tape
from pullback.rules.catalogue import OPERATORS, registry
from pullback.rules.declaration import Composite, Primitive
from pullback.rules.generated_pulls import make_form
from pullback.tracing.callers_by_type import first_calls
from pullback.tracing.ufuncs import declaration_of, found
from pullback.words.foreign_operands import plain_parts
from pullback.words.structures import flatten, map_leaves

AROUND = frozenset((PAUSED, CAPTURED))
"""The modes of a trace that does not record what its handles meet: it may be left alone."""
CALLERS = registry.callers
"""Ufunc, or name of a primitive, to the fastest way to call it on a tracer. Emptied when the registry changes."""

TAKEN_BY_LIKE = (np.array, np.asarray, np.asanyarray, np.ascontiguousarray, np.asfortranarray, np.require, np.full)
"""NumPy functions that reach us by ``like=`` only and whose contents may be traced."""


BY_LIKE = frozenset((*CREATED_BY_LIKE, *TAKEN_BY_LIKE))
LISTS = frozenset((list, tuple))
OF_NUMBERS = (np.real, np.imag, np.linspace, np.logspace, np.union1d, np.trim_zeros)
"""NumPy functions in which a Python number stays one; the others make an array of their first argument, or look at
its values alone."""


SUMMED_IN_OUT = (
    "sum", "prod", "cumsum", "cumprod", "mean", "nansum", "nanprod", "nancumsum", "nancumprod", "nanmean", "trace",
)  # fmt: skip
"""NumPy functions that compute in the dtype of ``out=``, where they are told none."""


def called(prim: Primitive, operands: tuple[Any, ...], params: Any) -> Any:
    """The result of a primitive on tracers and others, by the caller for their types."""
    fast = prim.callers.get(tuple(map(type, operands)))
    return fast(operands, params) if fast else first_calls(prim, operands, params)


def build_caller(key: Any, classes: dict[str, Any]) -> Callable[..., Any]:
    """The caller of a primitive, generated where it is elementwise with one or two operands and one rule each."""
    declared = registry.named(key) if isinstance(key, str) else declaration_of(key)
    made: Callable[..., Any] = declared
    if isinstance(declared, Primitive) and _is_simple(declared):
        patterns = ("1",) if len(declared.operands) == 1 else ("10", "01", "11")
        made = make_caller(declared, {pattern: _exact_form(declared, pattern) for pattern in patterns}, classes)
    elif type(declared) is Composite:
        made = declared.function if declared.direct is None else _straight(declared, declared.direct)
    CALLERS[key] = made
    if key in OPERATORS:
        setattr(registry.operators, OPERATORS[key], made)
    return made


def _straight(declared: Composite, direct: Primitive) -> Callable[..., Any]:
    """The caller of a composite that hands its arguments on to a primitive."""

    def call(*operands: Any) -> Any:
        fast = direct.callers.get(tuple(map(type, operands)))
        return fast(operands, declared.how) if fast else declared.function(*operands)

    return call


def _is_simple(prim: Primitive) -> bool:
    if (
        not prim.trusted
        or not prim.elementwise
        or prim.outputs
        or prim.residuals
        or prim.params
        or prim.nondiff
        or len(prim.operands) > 2
        or (len(prim.operands) == 2 and prim.has_alternatives)
    ):
        return False
    known = {*prim.operands, "out"}
    return set(prim.operands) == set(prim.rules) and all(
        set(rule.reads) <= known for rules in prim.rules.values() for rule in rules
    )


def _exact_form(prim: Primitive, pattern: str) -> Any:
    active = tuple(k for k, bit in enumerate(pattern) if bit == "1")
    key = (active, len(pattern), frozenset[int](), True)
    if key not in prim.forms:
        prim.forms.setdefault(key, make_form(prim, active, len(pattern), frozenset(), exact=True, site=-1))
    return prim.forms[key]


def array_function(handle: Any, func: Callable[..., Any], types: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
    """What NumPy calls where a function of its own meets a tracer, a method of that: :func:`function`, sooner where a
    caller for these types is made."""
    if not kwargs and not handle._tape.mode:
        declared: Any = registry.functions.get(func)
        direct, weak = type(declared) is Composite and declared.direct, handle._tape.kinds.weak
        if direct and (fast := direct.callers.get(tuple(map(type, args)))) and type(args[0]) is not weak:
            return fast(args, declared.how)
    defers = not handle._tape.kinds.ordinary.issuperset(types) and any(hasattr(t, "behaves_as_matrix") for t in types)
    return NotImplemented if defers else function(handle, func, args, kwargs)  # then the matrix is asked


def function(handle: Any, func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """A NumPy function on tracers, by the registry; ``out=`` is taken off and written afterwards. ``handle`` is
    the tracer that NumPy found."""
    tape = handle._tape
    if tape.mode in AROUND and left_alone(handle) and all(map(left_alone, _handles_in((args, kwargs)))):
        plain_args, plain_kwargs = map_leaves(standing_for, (args, kwargs))
        return func(*plain_args, **plain_kwargs)  # a loop's body runs plainly, on values it has captured
    if func in BY_LIKE:
        return create_like(handle, func, args, dict(kwargs))
    kinds = tape.kinds
    ordinary = kinds.ordinary
    if not ordinary.issuperset(map(type, args)):
        args = tuple([a if type(a) in LISTS and ordinary.issuperset(map(type, a)) else plain_parts(a) for a in args])
    if kwargs and not ordinary.issuperset(map(type, kwargs.values())):
        kwargs = {name: plain_parts(value) for name, value in kwargs.items()}
    if args and type(args[0]) is kinds.weak and func not in OF_NUMBERS:
        args = (as_array(args[0]), *args[1:])
    declared = registry.functions.get(func) or found(func)
    if not kwargs and type(declared) is Composite:
        fast = declared.direct and declared.direct.callers.get(tuple(map(type, args)))
        if fast and (tape.mode != REPLAYABLE or not declared.how):
            return fast(args, declared.how)
        if len(args) == 1:
            result = declared.function(*args)
            return result if tape.mode != REPLAYABLE else _told(tape, declared, result)
    result = _with_out(func.__name__, declared, args, kwargs)
    return result if tape.mode != REPLAYABLE else _told(tape, declared, result)


def _told(tape: Tape, declared: Primitive | Composite, result: Any) -> Any:
    """The result of a NumPy function, of which the governor is told."""
    if type(declared) is Composite and isinstance(result, Handle) and result._tape is tape and result._id is not None:
        tape.governor.returned(declared.name, result)
    return result


def _handles_in(tree: Any) -> list[Any]:
    return [leaf for leaf in flatten(tree)[0] if isinstance(leaf, Handle)]


def method(name: str, handle: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """A handle method by the registry declaration of the same name: ``x.sum(axis=0)`` is ``np.sum(x, axis=0)``; of a
    scalar, it gives scalars."""
    if handle._tape.mode == DEFERRED:
        ordinary = partial(_method, name, handle, args, kwargs)
        return handle._tape.shadow.repeated(name, (handle, *args), kwargs, ordinary)
    return _method(name, handle, args, kwargs)


def _method(name: str, handle: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    declared = registry.named(name)
    result: Any = _with_out(name, declared, (handle, *args), kwargs)
    if handle._tape.mode == REPLAYABLE:
        _told(handle._tape, declared, result)
    given = handle._value if handle._tape.mode != DEFERRED else handle
    if type(given) is np.ndarray or not issubclass(type_of(given), np.generic):
        return result
    return result[()] if issubclass(type_of(result), np.ndarray) and not layout_of(result).shape else result


def _with_out(name: str, declared: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """The declaration's result, written to ``out=`` where that is given, by keyword or by position."""
    if "out" not in kwargs and (len(args) < 2 or len(args) <= (_place_of_out(declared) or len(args))):
        return declared.function(*args, **kwargs) if type(declared) is Composite else declared(*args, **kwargs)
    if isinstance(declared, Composite) and declared.plain and not isinstance(kwargs.get("out"), Handle):
        return declared(*args, **kwargs)
    out = kwargs.get("out")
    kwargs = {k: v for k, v in kwargs.items() if k != "out"}
    place = _place_of_out(declared)
    if place is not None and len(args) > place:
        out, args = args[place], (*args[:place], None, *args[place + 1 :])
    if out is None:
        return declared(*args, **kwargs)
    require_traced_target(name, out)
    if name in SUMMED_IN_OUT and hasattr(out, "dtype"):
        if place is not None and len(args) > place:  # the dtype comes just before
            args = (*args[: place - 1], out.dtype if args[place - 1] is None else args[place - 1], *args[place:])
        elif kwargs.get("dtype") is None:
            kwargs["dtype"] = out.dtype
    return write_out(name, out, declared(*args, **kwargs))


@cache
def _place_of_out(declared: Any) -> int | None:
    """Which positional argument of a NumPy function is ``out``; None where it has none."""
    if (
        not isinstance(declared, Composite) or declared.plain or isinstance(declared.function, np.ufunc)
    ):  # a ufunc takes its out= itself
        return None
    names = [
        p.name
        for p in signature(declared.function).parameters.values()
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    return names.index("out") if "out" in names else None


class ByName:
    """An array method that is the registry's declaration of the same name: ``x.sum(axis=0)``."""

    name = ""

    def __set_name__(self, owner: type[Any], name: str) -> None:
        self.name = name

    def __get__(self, handle: Any, owner: type[Any] | None = None) -> Any:
        if handle is None:
            return self
        return partial(_by_name, self.name, handle)


def _by_name(name: str, handle: Any, *args: Any, **kwargs: Any) -> Any:
    return method(name, handle, args, kwargs)
