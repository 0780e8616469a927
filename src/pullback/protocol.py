"""The NumPy hooks: what happens when a ufunc, a ufunc method or a NumPy function meets a tracer."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from pullback.arrays import spec_of
from pullback.catalogue import OPERATORS, registry
from pullback.codegen import make_caller
from pullback.declare import Primitive
from pullback.errors import ConversionError, NotDifferentiableError, UnknownFunctionError
from pullback.handles import Handle, tape_of
from pullback.primitives.creation import CREATED_BY_LIKE, create_like
from pullback.recorder import make_form
from pullback.tape import site_here, site_text
from pullback.writes import increment, set_item, takes_over

CALLERS = registry.callers
"""Ufunc, or name of a primitive, to the fastest way to call it on a tracer. Emptied when the registry changes."""

TAKEN_BY_LIKE = (np.array, np.asarray, np.asanyarray, np.ascontiguousarray, np.asfortranarray, np.full)
"""NumPy functions that reach us by ``like=`` only and whose contents may be traced."""

REWRITE = {
    "out": "name a traced target, made with np.zeros_like(x), np.empty_like(x) or like=x",
    "plain": "make the buffer with np.zeros_like(x) (or np.zeros(shape, like=x)), or collect the parts and call np.stack",
}


def build_caller(key: Any, names: dict[str, Any]) -> Callable[..., Any]:
    """The caller of a primitive, generated where it is elementwise with one or two operands and one rule each."""
    entry = registry.named(key) if isinstance(key, str) else _found(key)
    made: Callable[..., Any] = entry
    if isinstance(entry, Primitive) and _is_simple(entry):
        patterns = ("1",) if len(entry.operands) == 1 else ("10", "01", "11")
        forms = {pattern: _exact_form(entry, pattern) for pattern in patterns}
        made = make_caller(entry, forms, names)
    CALLERS[key] = made
    if key in OPERATORS:
        setattr(registry.operators, OPERATORS[key], made)
    return made


def _found(function: Callable[..., Any]) -> Any:
    """The registry's entry; an unknown function is refused with the user's line."""
    try:
        return registry.find(function)
    except UnknownFunctionError as error:
        message = f"{error} (called at {site_text(site_here(2))})"
        raise UnknownFunctionError(message) from None


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


def ufunc(ufunc: Any, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A ufunc call with keywords, or one of its methods, on tracers."""
    if method == "at":
        return _ufunc_at(ufunc, inputs)
    out = kwargs.pop("out", None)
    target = out[0] if isinstance(out, tuple) and len(out) == 1 else out
    _require_traced_target(ufunc.__name__, target)
    if method != "__call__":
        entry = _found(getattr(ufunc, method))
        result = entry(*inputs, **kwargs)
    else:
        result = _plain_call(ufunc, inputs, kwargs, target)
    return result if target is None else _write_out(ufunc.__name__, target, result)


def _plain_call(ufunc: Any, inputs: tuple[Any, ...], kwargs: dict[str, Any], target: Any) -> Any:
    where = kwargs.pop("where", True)
    dtype = kwargs.pop("dtype", None)
    for keyword in ("casting", "order", "subok"):
        kwargs.pop(keyword, None)
    if dtype is not None:
        inputs = tuple(x.astype(dtype) if hasattr(x, "astype") else np.asarray(x, dtype) for x in inputs)
    entry = _found(ufunc)
    if not any(isinstance(x, Handle) for x in inputs):
        result = ufunc(*inputs, **kwargs)
    else:
        result = entry(*inputs, **kwargs)
    if where is True:
        return result
    if target is None:
        message = (
            f"numpy.{ufunc.__name__} with where= and no out= leaves the other elements uninitialised (at {site_text(site_here(3))}); "
            "use np.where(mask, f(x), other), or pass out="
        )
        raise NotDifferentiableError(message)
    return np.where(where, result, target)


def _ufunc_at(ufunc: Any, inputs: tuple[Any, ...]) -> None:
    target, key, *rest = inputs
    _require_traced_target(f"{ufunc.__name__}.at", target)
    if ufunc is np.add:
        increment(target, rest[0], key=key, repeats=True)
    elif ufunc is np.subtract:
        increment(target, rest[0], sign=-1, key=key, repeats=True)
    else:
        message = (
            f"numpy.{ufunc.__name__}.at has no derivative here (at {site_text(site_here(2))}); use np.add.at, or "
            f"an assignment x[i] = f(x[i])"
        )
        raise NotDifferentiableError(message)


def _require_traced_target(name: str, target: Any) -> None:
    """A plain array cannot hold a traced value: refuse, naming the rewrite."""
    if target is None or isinstance(target, Handle):
        return
    where = site_text(site_here(3))
    if isinstance(target, tuple):
        message = f"{name} with several out= arrays (at {where}) is not supported; assign the results"
        raise NotDifferentiableError(message)
    message = (
        f"numpy.{name} would write a traced value into a plain array of shape {getattr(target, 'shape', ())} (at {where}), "
        f"which would drop the derivative; {REWRITE['plain']}"
    )
    raise ConversionError(message)


def _write_out(name: str, target: Any, result: Any) -> Any:
    """``out=`` on a tracer: the result is written to it, with NumPy's casting rule."""
    if not np.can_cast(result.dtype, target.dtype, "same_kind"):
        message = f"Cannot cast ufunc {name!r} output from {result.dtype!r} to {target.dtype!r} with casting rule 'same_kind'"
        raise np.exceptions.UFuncTypeError(message) if hasattr(np.exceptions, "UFuncTypeError") else TypeError(message)
    if np.broadcast_shapes(result.shape, target.shape) != target.shape:
        message = f"non-broadcastable output operand with shape {target.shape} doesn't match the broadcast shape {result.shape}"
        raise ValueError(message)
    set_item(target, Ellipsis, result)
    return target


def function(handle: Any, func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """A NumPy function on tracers, by the registry; ``out=`` is taken off and written afterwards. ``handle`` is
    the tracer that NumPy found."""
    if func in CREATED_BY_LIKE or func in TAKEN_BY_LIKE:
        return create_like(handle, func, args, dict(kwargs))
    entry = _found(func)
    out = kwargs.get("out")
    if out is None:
        kwargs = {k: v for k, v in kwargs.items() if k != "out"}
        return entry(*args, **kwargs)
    _require_traced_target(func.__name__, out)
    return _write_out(func.__name__, out, entry(*args, **{k: v for k, v in kwargs.items() if k != "out"}))


def method(name: str, handle: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """A handle method by the registry entry of the same name: ``x.sum(axis=0)`` is ``np.sum(x, axis=0)``."""
    entry = registry.named(name)
    out = kwargs.get("out")
    kwargs = {k: v for k, v in kwargs.items() if k != "out"}
    result = entry(handle, *args, **kwargs)
    if out is None:
        return result
    _require_traced_target(name, out)
    return _write_out(name, out, result)


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
    if not handle._tape.mode and type(value) is np.ndarray and name in ("add", "subtract") and _plainly_increments(handle, value, other):
        increment(handle, other, sign=1 if name == "add" else -1)
        return handle
    tape = tape_of((handle, other), f"numpy.{name}")
    compute = CALLERS.get(f"operator_{name}") or registry.named(f"operator_{name}")
    rebinds = not spec_of(value).shape and not hasattr(value, "_parent") if isinstance(value, Handle) else type(value) is not np.ndarray
    if rebinds:
        return compute(handle, other)
    if handle._tape is not tape or (
        not isinstance(other, Handle) and not isinstance(other, np.ndarray | int | float | complex | np.generic | list)
    ):
        return compute(handle, other)
    if name in ("add", "subtract") and _increments(handle, other):
        increment(handle, other, sign=1 if name == "add" else -1)
        return handle
    result = compute(handle, other)
    if takes_over(handle, result):
        return handle
    return _write_out(name, handle, result)


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


def refuse_conversion(handle: Any, wanted: str) -> ConversionError:
    """The error for a road that would drop the derivative."""
    return ConversionError(
        f"{wanted} of a tracer of shape {handle.shape} and dtype {handle.dtype} would drop the derivative (at {site_text(site_here(2))}); "
        f"{REWRITE['plain']}, or take pullback.value(x) to leave the derivative behind on purpose"
    )
