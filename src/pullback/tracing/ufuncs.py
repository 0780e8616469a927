"""Ufuncs on tracers, called with keywords (``out=``, ``where=``, ``dtype=``) or by a method: ``reduce``,
``accumulate``, ``reduceat``, ``outer``, ``at``.

Each is split into calls that have rules: casts to the dtypes of the loop, the call, a select for ``where=``, a write
for ``out=``.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from sys import modules
from types import FrameType
from typing import Any

import numpy as np

from pullback.primitives.shaping.as_array import as_array
from pullback.primitives.shaping.reshaping import laid_as
from pullback.recording.handles import Handle, is_array, plain_value
from pullback.recording.index_keys import kept_key
from pullback.recording.out_targets import require_traced_target, write_out
from pullback.recording.tape import PAUSED
from pullback.recording.writes import concrete_key, increment, set_item
from pullback.rules.catalogue import registry
from pullback.rules.declaration import Composite
from pullback.tracing.conversions import depends
from pullback.words.call_sites import site_here, site_text
from pullback.words.errors import ConversionError, NotDifferentiableError, UnknownFunctionError
from pullback.words.foreign_operands import plain_parts
from pullback.words.other_libraries import remedy
from pullback.words.specs import INEXACT
from pullback.words.undocumented import by_operator

PYTHON_NUMBERS = (int, float, complex)
SCALARS = frozenset({np.float16, np.float32, np.float64, np.longdouble, np.complex64, np.complex128, np.clongdouble})
OPERATORS_APART = {np.multiply: "operator_multiply", np.divide: "operator_divide", np.power: "operator_power"}
"""Ufuncs whose operator NumPy computes otherwise for scalars; of real ones the power alone."""


def found(function: Callable[..., Any]) -> Any:
    """The registry's declaration; an unknown function is refused with the user's line."""
    try:
        return registry.find(function)
    except UnknownFunctionError as error:
        name, where = str(getattr(function, "__name__", "")), f"(called at {site_text(site_here())})"
        if getattr(modules.get("scipy.special"), name, None) is function:
            known = f"scipy.special.{name}"
            raise UnknownFunctionError(f"no primitive for {known}; {remedy(known)} {where}") from None
        raise UnknownFunctionError(f"{error.args[0]} {where}") from None


def declaration_of(ufunc: Any) -> Any:
    """The registry's declaration; for a ufunc that has none what computes with arrays that depend on nothing."""
    try:
        return found(ufunc)
    except UnknownFunctionError:
        return partial(_without_rule, ufunc)


def _without_rule(ufunc: Any, *operands: Any) -> Any:
    return found(ufunc)(*operands) if _depend(operands) else ufunc(*map(plain_value, operands))


def _depend(operands: tuple[Any, ...]) -> bool:
    """Whether any of them depends on an input: in adopted code, arrays may be handles that do not."""
    return any(isinstance(x, Handle) and depends(x) for x in operands)


def meant(ufunc: Any, x: Any, y: Any, frame: FrameType) -> Any:
    """What is to be called where the NumPy scalar ``x`` meets the handle ``y`` in a ufunc: the operator, where the user
    wrote that in the ``frame``.

    NumPy computes the operators between two scalars without the ufunc, with other last bits for complex ones and for
    powers; those with a handle it hands to the ufunc. A step of a loop that runs plainly would then differ from the
    same step recorded.
    """
    name = OPERATORS_APART.get(ufunc)
    if name is None or (ufunc is not np.power and x.dtype.kind != "c") or is_array(y):
        return ufunc
    return name if by_operator(frame) else ufunc


def ufunc(ufunc: Any, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A ufunc call with keywords, or one of its methods, on tracers."""
    if all(x._tape.mode == PAUSED for x in (*inputs, *kwargs.values()) if isinstance(x, Handle)):
        inputs, kwargs = tuple(map(plain_value, inputs)), {name: plain_value(value) for name, value in kwargs.items()}
        if not any(isinstance(x, Handle) for x in (*inputs, *(kwargs.get("out") or ()))):
            return getattr(ufunc, method)(*inputs, **kwargs)  # a loop's body runs plainly, on values it has captured
    inputs, kwargs = plain_parts(inputs), {name: plain_parts(value) for name, value in kwargs.items()}
    out = kwargs.get("out")
    targets = out if isinstance(out, tuple) else (out,)
    if method != "at" and _is_plain(ufunc, inputs) and not any(isinstance(target, Handle) for target in targets):
        return getattr(ufunc, method)(
            *map(plain_value, inputs), **{name: plain_value(value) for name, value in kwargs.items()}
        )
    kwargs.pop("out", None)
    for target in targets:
        require_traced_target(ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}", target)
    if method == "at":
        require_traced_target(f"{ufunc.__name__}.at", inputs[0])
        return _at(ufunc, *inputs)
    if ufunc in (np.add, np.multiply) and method in ("reduce", "accumulate", "reduceat") and targets[0] is not None:
        kwargs["dtype"] = kwargs.get("dtype") or targets[0].dtype.newbyteorder("=")  # NumPy computes in it
    casting = kwargs.get("casting", "same_kind") if method in ("__call__", "outer") else "unsafe"
    result = _call(ufunc, inputs, kwargs, targets) if method == "__call__" else _method(ufunc, method, inputs, kwargs)
    if all(target is None for target in targets):
        return result
    if ufunc.nout == 1:
        return write_out(ufunc.__name__, targets[0], result, casting)
    results = zip(targets, result, strict=True)
    return tuple(r if target is None else write_out(ufunc.__name__, target, r, casting) for target, r in results)


# ------------------------------------------------------------------------------------------------------------- the call
def _call(ufunc: Any, inputs: tuple[Any, ...], kwargs: dict[str, Any], targets: tuple[Any, ...]) -> Any:
    where, order = kwargs.pop("where", True), kwargs.pop("order", "K")
    kwargs.pop("subok", None)
    if where is not True and all(target is None for target in targets):
        raise NotDifferentiableError(
            f"numpy.{ufunc.__name__} with where= and no out= leaves the other elements uninitialised (at "
            f"{site_text(site_here())}); use np.where(mask, f(x), other), or pass out="
        )
    if ufunc.signature is not None:
        result = _generalised(ufunc, inputs, kwargs)
    else:
        quiet: Any = {} if where is True else {"all": "ignore"}
        with np.errstate(**quiet), looked_at_only(where, inputs):  # what is masked may be outside the domain
            result = _elementwise(ufunc, inputs, kwargs)
    if where is not True:
        where = plain_value(where) != 0 if isinstance(where, Handle) else where
        if ufunc.nout > 1:
            return tuple(None if t is None else np.where(where, r, t) for r, t in zip(result, targets, strict=True))
        return np.where(where, result, targets[0])
    return result if order == "K" or ufunc.nout > 1 or not np.ndim(result) else np.copy(result, order=order)


@contextmanager
def looked_at_only(mask: Any, operands: tuple[Any, ...]) -> Iterator[None]:
    """While a ufunc runs on all elements though ``where=`` asks for those of ``mask``, a trap looks at those alone."""
    sentinels = {id(o._tape.trap): o._tape.trap for o in operands if isinstance(o, Handle) and o._tape.trap is not None}
    for found in sentinels.values():
        found.only = None if mask is True else mask
    try:
        yield
    finally:
        for found in sentinels.values():
            found.only = None


def _generalised(ufunc: Any, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The call of matmul and its kin: the plugin knows the options; a dtype is asked of the operands."""
    dtype = kwargs.pop("dtype", None)
    kwargs.pop("casting", None)
    if dtype is not None:
        inputs = tuple(x.astype(dtype) if hasattr(x, "astype") else np.asarray(x, dtype) for x in inputs)
    return found(ufunc)(*inputs, **kwargs)


def _elementwise(ufunc: Any, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    declared = found(ufunc)
    if _is_plain(ufunc, inputs):
        return ufunc(*map(plain_value, inputs), **kwargs)
    inputs = tuple(x if hasattr(x, "dtype") or type(x) in PYTHON_NUMBERS else np.asarray(x) for x in inputs)
    if kwargs:
        dtypes = _loop(ufunc, inputs, **kwargs)
        if any(d.hasobject for d in dtypes):
            raise ConversionError(
                f"numpy.{ufunc.__name__} with objects would drop the derivative (at {site_text(site_here())}); "
                "use a floating dtype"
            )
        if any(d.kind not in INEXACT for d in dtypes[ufunc.nin :]):
            return ufunc(*map(plain_value, inputs), **kwargs)
        inputs = tuple(_cast(x, dtype) for x, dtype in zip(inputs, dtypes, strict=False))
    if any(isinstance(x, Handle) for x in inputs):
        return declared(*inputs)
    return ufunc(*inputs)  # tracers only in out= or where=


def _loop(
    ufunc: Any,
    inputs: tuple[Any, ...],
    dtype: Any = None,
    signature: Any = None,
    sig: Any = None,
    casting: str = "same_kind",
) -> tuple[Any, ...]:
    """The dtypes of the loop that NumPy takes: operands, then outputs. Raises as NumPy does where there is none."""
    if dtype is not None:
        signature = (*(None,) * ufunc.nin, *(np.dtype(dtype),) * ufunc.nout)
    elif isinstance(signature if signature is not None else sig, str):
        given, _, gives = (signature or sig).partition("->")
        signature = tuple(map(np.dtype, given + gives)) if gives else (*(None,) * ufunc.nin, np.dtype(given))
    elif signature is None and sig is not None:
        signature = tuple(None if d is None else np.dtype(d) for d in sig)
    asked = (*(type(x) if type(x) in PYTHON_NUMBERS else x.dtype for x in inputs), *(None,) * ufunc.nout)
    options = {} if signature is None else {"signature": signature}
    return tuple(ufunc.resolve_dtypes(asked, casting=casting, **options))


def _cast(x: Any, dtype: Any) -> Any:
    if type(x) in PYTHON_NUMBERS:
        return dtype.type(x)
    return x if x.dtype == dtype else x.astype(dtype)


def _is_plain(ufunc: Any, inputs: tuple[Any, ...]) -> bool:
    """Whether the ufunc's derivative is zero wherever it exists, or nobody knows it and none is needed."""
    try:
        return isinstance(declared := found(ufunc), Composite) and declared.plain
    except UnknownFunctionError:
        if _depend(inputs):
            raise
        return True


# ---------------------------------------------------------------------------------------------------------- the methods
def _method(ufunc: Any, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A method by the registry's declaration for it; else ``outer`` and ``reduceat`` by what they are made of."""
    named = {
        name for name in ("array", "indices") if any(kwargs.get(name) is x for x in inputs)
    }  # NumPy hands these on both ways
    kwargs = {name: value for name, value in kwargs.items() if name not in named}
    declared = registry.functions.get(getattr(ufunc, method))
    if declared is not None:
        return declared(*inputs, **kwargs)
    if _is_plain(ufunc, inputs):
        return getattr(ufunc, method)(
            *map(plain_value, inputs), **{name: plain_value(value) for name, value in kwargs.items()}
        )
    if method == "outer":
        x, y = map(as_array, inputs)
        return ufunc(np.reshape(x, (*np.shape(x), *(1,) * np.ndim(y))), y, **kwargs)
    if method == "reduceat" and ufunc is not np.add:
        return _reduceat(ufunc, *inputs, **kwargs)
    return found(getattr(ufunc, method))(*inputs, **kwargs)


def _reduceat(ufunc: Any, array: Any, indices: Any, axis: int = 0, dtype: Any = None) -> Any:
    """Slice by slice: ``reduce`` over ``indices[k]`` to ``indices[k + 1]``; one element, as it is, where there are no
    two."""
    array = array if dtype is None else _cast(array, np.dtype(dtype))
    line = np.moveaxis(array, axis, 0)
    starts = np.asarray(indices)
    stops = np.append(starts[1:], len(line))
    parts = [
        ufunc.reduce(line[i:j], dtype=dtype) if i + 1 < j else line[i]
        for i, j in zip(starts.tolist(), stops.tolist(), strict=True)
    ]
    plain = ufunc.reduceat(plain_value(array), indices, axis, dtype)  # tells how NumPy lays the result out
    return laid_as(np.moveaxis(np.stack(parts), 0, axis), plain)


def _at(ufunc: Any, target: Any, key: Any, *values: Any) -> None:
    """``ufunc.at``: in place, one after the other where the key names an element more than once."""
    key, values = kept_key(concrete_key(key), target._tape), tuple(map(as_array, values))
    if ufunc in (np.add, np.subtract) and values:
        increment(target, values[0], sign=1 if ufunc is np.add else -1, key=key, repeats=True)
        return
    places = np.arange(target.size).reshape(target.shape)[key]
    if not target.shape:
        target, places = np.reshape(target, (1,)), np.ravel(places)
    values = tuple(np.broadcast_to(v, places.shape).reshape(-1) for v in values)
    for chosen in _rounds(places.ravel()):
        at = np.unravel_index(places.ravel()[chosen], target.shape)
        new = ufunc(target[at], *(v[chosen] for v in values))
        if not np.can_cast(new.dtype, target.dtype, "same_kind"):
            raise TypeError(
                f"Cannot cast ufunc {ufunc.__name__!r} output from {new.dtype!r} to {target.dtype!r} with "
                "casting rule 'same_kind'"
            )
        set_item(target, at, new)


def _rounds(places: Any) -> list[Any]:
    """Positions in ``places``, in groups that name no element twice: the first time each is named, the second time,
    and so on."""
    order = np.argsort(places, kind="stable")
    line = places[order]
    starts = np.flatnonzero(np.r_[True, line[1:] != line[:-1]]) if line.size else line
    counts = np.diff(np.append(starts, line.size))
    occurrence = np.empty_like(order)
    occurrence[order] = np.arange(line.size) - np.repeat(starts, counts)
    return [np.flatnonzero(occurrence == k) for k in range(int(counts.max(initial=0)))]
