"""The NumPy hooks: what happens when a ufunc, a ufunc method or a NumPy function meets a tracer."""

from collections.abc import Callable, Mapping
from functools import cache, partial
from inspect import signature
from sys import _getframe
from typing import Any

import numpy as np

from pullback.catalogue import OPERATORS, registry
from pullback.codegen import make_caller
from pullback.declare import Composite, Primitive
from pullback.entering import left_alone, standing_for
from pullback.errors import ConversionError
from pullback.handles import Handle, plain_value, tape_of
from pullback.outputs import require_traced_target, write_out
from pullback.primitives.creation import CREATED_BY_LIKE, create_like
from pullback.primitives.operands import as_array
from pullback.recorder import make_form
from pullback.rewrites import ARRAY, INDEX, INTEGER, NUMBER, SCIPY, rewrite
from pullback.structures import flatten, map_leaves
from pullback.tape import site_here, site_text
from pullback.ufuncs import found
from pullback.writes import increment, takes_over

CALLERS = registry.callers
"""Ufunc, or name of a primitive, to the fastest way to call it on a tracer. Emptied when the registry changes."""

TAKEN_BY_LIKE = (np.array, np.asarray, np.asanyarray, np.ascontiguousarray, np.asfortranarray, np.require, np.full)
"""NumPy functions that reach us by ``like=`` only and whose contents may be traced."""


OF_NUMBERS = (np.real, np.imag, np.linspace, np.logspace, np.union1d, np.trim_zeros)
"""NumPy functions in which a Python number stays one; the others make an array of their first argument, or look at its values alone."""


SUMMED_IN_OUT = ("sum", "prod", "cumsum", "cumprod", "mean", "nansum", "nanprod", "nancumsum", "nancumprod", "nanmean", "trace")
"""NumPy functions that compute in the dtype of ``out=``, where they are told none."""


LOOPS_APART = ("multiply", "power")
"""Operators that NumPy computes in place by another loop, into some arrays (see ``primitives.operators.IN_PLACE``)."""


def build_caller(key: Any, names: dict[str, Any]) -> Callable[..., Any]:
    """The caller of a primitive, generated where it is elementwise with one or two operands and one rule each."""
    entry = registry.named(key) if isinstance(key, str) else found(key)
    made: Callable[..., Any] = entry
    if isinstance(entry, Primitive) and _is_simple(entry):
        patterns = ("1",) if len(entry.operands) == 1 else ("10", "01", "11")
        forms = {pattern: _exact_form(entry, pattern) for pattern in patterns}
        made = make_caller(entry, forms, names)
    CALLERS[key] = made
    if key in OPERATORS:
        setattr(registry.operators, OPERATORS[key], made)
    return made


def _is_simple(prim: Primitive) -> bool:
    if not prim.trusted or not prim.elementwise or prim.outputs or prim.residuals or prim.params or prim.nondiff or len(prim.operands) > 2:
        return False
    known = {*prim.operands, "out"}
    if len(prim.operands) == 2 and any(len(rules) > 1 for rules in prim.rules.values()):
        return False
    return set(prim.operands) == set(prim.rules) and all(set(rule.reads) <= known for rules in prim.rules.values() for rule in rules)


def _exact_form(prim: Primitive, pattern: str) -> Any:
    active = tuple(k for k, bit in enumerate(pattern) if bit == "1")
    key = (active, len(pattern), frozenset[int](), True)
    if key not in prim.forms:
        prim.forms[key] = make_form(prim, active, len(pattern), frozenset(), exact=True, site=-1)
    return prim.forms[key]


def function(handle: Any, func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """A NumPy function on tracers, by the registry; ``out=`` is taken off and written afterwards. ``handle`` is
    the tracer that NumPy found."""
    if left_alone(handle) and all(map(left_alone, _handles_in((args, kwargs)))):
        plain_args, plain_kwargs = map_leaves(standing_for, (args, kwargs))
        return func(*plain_args, **plain_kwargs)  # a loop's body runs plainly, on values it has captured
    if func in CREATED_BY_LIKE or func in TAKEN_BY_LIKE:
        return create_like(handle, func, args, dict(kwargs))
    if args and isinstance(args[0], Handle) and type(args[0]) is args[0]._tape.kinds.weak and func not in OF_NUMBERS:
        args = (as_array(args[0]), *args[1:])
    return _with_out(func.__name__, found(func), args, kwargs)


def _handles_in(tree: Any) -> list[Any]:
    return [leaf for leaf in flatten(tree)[0] if isinstance(leaf, Handle)]


def method(name: str, handle: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """A handle method by the registry entry of the same name: ``x.sum(axis=0)`` is ``np.sum(x, axis=0)``; of a scalar, it gives scalars."""
    result: Any = _with_out(name, registry.named(name), (handle, *args), kwargs)
    if type(handle._value) is np.ndarray or not isinstance(plain_value(handle), np.generic):
        return result
    plain = plain_value(result)
    return result[()] if isinstance(plain, np.ndarray) and not plain.shape else result


def _with_out(name: str, entry: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """The entry's result, written to ``out=`` where that is given, by keyword or by position."""
    if isinstance(entry, Composite) and entry.plain and not isinstance(kwargs.get("out"), Handle):
        return entry(*args, **kwargs)
    out = kwargs.get("out")
    kwargs = {k: v for k, v in kwargs.items() if k != "out"}
    place = _place_of_out(entry)
    if place is not None and len(args) > place:
        out, args = args[place], (*args[:place], None, *args[place + 1 :])
    if out is None:
        return entry(*args, **kwargs)
    require_traced_target(name, out)
    if name in SUMMED_IN_OUT and hasattr(out, "dtype"):
        if place is not None and len(args) > place:  # the dtype comes just before
            args = (*args[: place - 1], out.dtype if args[place - 1] is None else args[place - 1], *args[place:])
        elif kwargs.get("dtype") is None:
            kwargs["dtype"] = out.dtype
    return write_out(name, out, entry(*args, **kwargs))


@cache
def _place_of_out(entry: Any) -> int | None:
    """Which positional argument of a NumPy function is ``out``; None where it has none."""
    if not isinstance(entry, Composite) or entry.plain or isinstance(entry.function, np.ufunc):  # a ufunc takes its out= itself
        return None
    names = [p.name for p in signature(entry.function).parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return names.index("out") if "out" in names else None


class ByName:
    """An array method that is the registry's entry of the same name: ``x.sum(axis=0)``."""

    name = ""

    def __set_name__(self, owner: type[Any], name: str) -> None:
        self.name = name

    def __get__(self, handle: Any, owner: type[Any] | None = None) -> Any:
        if handle is None:
            return self
        return partial(_by_name, self.name, handle)


def _by_name(name: str, handle: Any, *args: Any, **kwargs: Any) -> Any:
    return method(name, handle, args, kwargs)


class Unsupported:
    """An attribute of an array that a tracer lacks: told apart from a misspelt one."""

    name = ""

    def __set_name__(self, owner: type[Any], name: str) -> None:
        self.name = name

    def __get__(self, handle: Any, owner: type[Any] | None = None) -> Any:
        if handle is None:
            return self
        message = (
            f"a tracer has no attribute {self.name!r}; use the NumPy function on it, or "
            f"pullback.value(x).{self.name} to leave the derivative behind"
        )
        raise AttributeError(message)


def in_place(name: str, handle: Any, other: Any) -> Any:
    """``handle op= other``: NumPy scalars and Python floats are immutable and rebind; arrays are written through all their views."""
    value: Any = handle._value
    other = standing_for(other)
    if not handle._tape.mode and type(value) is np.ndarray and name in ("add", "subtract") and _plainly_increments(handle, value, other):
        increment(handle, other, sign=1 if name == "add" else -1)
        return handle
    tape_of((handle, other), f"numpy.{name}")
    compute = CALLERS.get(f"operator_{name}") or registry.named(f"operator_{name}" if f"operator_{name}" in registry.names else name)
    if type(value) is not np.ndarray and not isinstance(plain_value(handle), np.ndarray):
        return compute(handle, other)
    if not isinstance(other, Handle | np.ndarray | int | float | complex | np.generic | list):
        return compute(handle, other)
    if name in ("add", "subtract") and _increments(handle, other):
        increment(handle, other, sign=1 if name == "add" else -1)
        return handle
    if name in LOOPS_APART and _by_a_loop_apart(value):
        compute = registry.named(f"in_place_{name}")
    result = compute(handle, other)
    if takes_over(handle, result):
        return handle
    return write_out(name, handle, result)


def _by_a_loop_apart(value: Any) -> bool:
    """Whether this array is one of those: of one element, with gaps, or backwards."""
    plain: Any = plain_value(value)
    return plain.size == 1 or not plain.flags.forc


def _plainly_increments(handle: Any, value: Any, other: Any) -> bool:
    """The common case of :func:`_increments`, where nothing is cast or broadcast: one shape, one dtype, one trace; a number into floats."""
    if isinstance(other, Handle):
        other = other._value if other._tape is handle._tape and type(other) is not other._tape.kinds.view else None
    if type(other) is np.ndarray:
        return bool(other.dtype is value.dtype and other.shape == value.shape)
    return type(other) in (float, int) and value.dtype.kind in "fc"


def _increments(handle: Any, other: Any) -> bool:
    """True where NumPy's casting and broadcasting allow ``other`` to be added in place."""
    dtype = getattr(other, "dtype", None)
    if dtype is handle.dtype and other.shape == handle.shape:
        return True
    if dtype is None:
        return not isinstance(other, complex | list) or handle.dtype.kind == "c"
    if not np.can_cast(np.result_type(handle.dtype, dtype), handle.dtype, "same_kind"):
        return False
    return bool(np.broadcast_shapes(handle.shape, other.shape) == handle.shape)


NO_ARRAY = np.empty((), object)
"""What NumPy makes of an object that it knows nothing of."""


def made_plain(handle: Any) -> Any:
    """Raises what :func:`refusal` says. A product by a SciPy sparse array alone is told that this is no array: SciPy then leaves
    it to the other operand, ``x.__rmatmul__(A)``. While a loop's body runs plainly, a value that it has captured is converted."""
    if left_alone(handle):
        return np.asarray(standing_for(handle))
    frame: Any = _getframe(2)
    asked = frame.f_code
    while frame.f_code.co_name in ("_matmul_dispatch", "_rmatmul_dispatch"):
        frame = frame.f_back
    by_product = frame.f_code is not asked and frame.f_code.co_name in ("__matmul__", "__rmatmul__")
    if by_product and "-packages/scipy/sparse/" in asked.co_filename:
        return NO_ARRAY
    raise refusal(handle, "a plain array", scipy="-packages/scipy/" in asked.co_filename)


def as_number(handle: Any, kind: Callable[[Any], Any], wanted: str) -> Any:
    """``kind`` of the value, while a loop's body runs plainly; raises what :func:`refusal` says otherwise."""
    if left_alone(handle):
        return kind(standing_for(handle))
    raise refusal(handle, wanted, depth=3)


def refusal(handle: Any, wanted: str, *, scipy: bool = False, depth: int = 2) -> ConversionError:
    """The error for a road that would drop the derivative; ``scipy`` where SciPy asked."""
    site = site_here(depth)
    instead = SCIPY if scipy else rewrite(site, OTHERWISE.get(wanted, NUMBER))
    return ConversionError(
        f"{wanted} of a tracer of shape {handle.shape} and dtype {handle.dtype} would drop the derivative (at {site_text(site)}); "
        f"{instead}; or take pullback.value(x) to leave the derivative behind on purpose"
    )


OTHERWISE = {"a plain array": ARRAY, "an index made": INDEX, "int()": INTEGER}
"""What to do by the road taken, where the expression does not tell."""
