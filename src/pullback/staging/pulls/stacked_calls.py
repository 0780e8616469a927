"""How one call is written for several seeds at once: what depends on the seed has a first axis more, with a place for
each seed.

A call is written so only where each place gets what the call would give for it alone; other calls are made place by
place. Both are compared with one seed at a time before they are used.
"""

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Any

import numpy as np
from attrs import evolve, frozen

from pullback.recording.index_keys import is_basic
from pullback.recording.regions import Region
from pullback.recording.writes import empty_with_strides
from pullback.rules.nan_masking import without_nan
from pullback.staging.generated.reverse_statements import add_by_key, adds_by_key, laid_as
from pullback.staging.statements.symbols import Program, Statement, Symbol, mapped
from pullback.staging.statements.ufuncs import ufunc_of
from pullback.staging.statements.writes import ADD_TO, BASIC_WRITES, PUT, WRITES, sign_of

EXACT = frozenset((
    np.add, np.subtract, np.multiply, np.true_divide, np.negative, np.positive, np.conjugate, np.isnan, np.isfinite,
    np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal, np.logical_not, np.logical_and,
    np.logical_or, np.invert, np.bitwise_and, np.bitwise_or, np.absolute, np.maximum, np.minimum,
))  # fmt: skip
"""Ufuncs that round once, if at all: an element has the same bits wherever it lies. Of others the last elements of an
array may have other bits than the first."""
_METHODS = {np.add.reduce: "sum", np.add.accumulate: "accumulate"}
_ALL = slice(None)


class CannotStackError(Exception):
    """A call that is made for one place after the other."""


@frozen(eq=False)
class StackedCall:
    """One statement that depends on the seeds."""

    program: Program
    """The program that is written: its arguments have the axis."""
    n: int
    """How many seeds there are."""
    statement: Statement
    """The statement as it is for one seed."""
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    made: Any
    """A sample of the result, for one seed."""
    singles: Mapping[int, Any]
    """A sample of each value of the program, for one seed, by number."""
    stacked: AbstractSet[int]
    """The numbers of the values that have the axis of the seeds."""

    def single(self, arg: Any) -> Any:
        """A sample of an argument, for one seed."""
        return mapped(arg, lambda leaf: self.singles[leaf.number] if type(leaf) is Symbol else leaf)

    def has_axis(self, arg: Any) -> bool:
        """Whether an argument, or a part of it, has a place for each seed."""
        return any(symbol.number in self.stacked for symbol in symbols_in(arg))

    def aligned(self, k: int, ndim: int) -> Any:
        """An argument that is broadcast to an array of ``ndim`` axes: its own stand last."""
        arg = self.args[k]
        if not self.has_axis(arg):
            return arg
        if type(arg) is not Symbol:
            raise CannotStackError
        missing = ndim - np.ndim(self.single(arg))
        if missing < 0:
            raise CannotStackError
        return arg[(_ALL, *(None,) * missing)] if missing else arg

    def whole(self, k: int) -> Any:
        """An argument with the axis, be it the same in each place."""
        return self.args[k] if self.has_axis(self.args[k]) else self.repeated(self.args[k])

    def repeated(self, arg: Any) -> Any:
        """What is the same for all seeds, once for each."""
        for statement in self.program.statements[::-1]:
            if statement.makes == arg.number and statement.function is np.zeros:
                one = self.single(arg)
                return self.program.call(np.zeros, ((self.n, *one.shape), one.dtype), {})
        return self.program.call(in_each_place, (arg, self.n), {})

    def require_shared(self, *args: Any) -> None:
        """Raise where one of these depends on the seed."""
        if any(map(self.has_axis, args)):
            raise CannotStackError

    def key(self, key: Any) -> Any:
        """A key for each place."""
        self.require_shared(key)
        return (_ALL, *(key if type(key) is tuple else (key,)))

    def axis(self, axis: Any, ndim: int) -> Any:
        """The number, or numbers, of axes of one place."""
        if type(axis) in (tuple, list):
            return tuple(self.axis(one, ndim) for one in axis)
        return int(axis) % ndim + 1

    def named(self, *names: str) -> dict[str, Any]:
        """The arguments after the first, by name: those without a name are called ``names``."""
        found = dict(zip(names, self.args[1:], strict=False)) | self.kwargs
        if len(self.args) - 1 > len(names) or not found.keys() <= {*names}:
            raise CannotStackError
        self.require_shared(*found.values())
        return found


def symbols_in(tree: Any) -> list[Symbol]:
    """The symbols in a structure of arguments."""
    if type(tree) is Symbol:
        return [tree]
    if type(tree) is slice:
        return symbols_in((tree.start, tree.stop, tree.step))
    parts = tree.values() if type(tree) is dict else tree if isinstance(tree, tuple | list) else ()
    return [symbol for part in parts for symbol in symbols_in(part)]


def in_each_place(x: Any, n: int) -> Any:
    """``n`` copies of an array, stacked."""
    out = empty_stacked(x, n)
    out[...] = x
    return out


def empty_stacked(one: Any, n: int) -> Any:
    """Memory for ``n`` values, whose axes lie as those of ``one``."""
    strides = getattr(one, "strides", ())
    return empty_with_strides(
        (n, *np.shape(one)), one.dtype, (2 * one.nbytes + max(map(abs, strides), default=0), *strides)
    )


def stacked(call: StackedCall) -> Any:
    """The call with the axis; raises :class:`CannotStackError` where there is no way to write it so."""
    statement = call.statement
    if statement.writes:
        return _write(call)
    if statement.function is without_nan and call.made.dtype.kind == "f":
        return _as_it_is(call)
    if statement.symbol == "[]":
        return call.args[0][call.key(call.args[1])]
    if statement.symbol == "@" or statement.function is np.matmul:
        return _product(call)
    if statement.symbol.startswith("."):
        name = statement.symbol.removeprefix(".").removesuffix("()")
    elif statement.function in _METHODS:
        name = _METHODS[statement.function]
    else:
        name = getattr(statement.function, "__name__", "")
        if _is_elementwise(call):
            return _elementwise(call)
        if getattr(np, name, None) is not statement.function and statement.function is not laid_as:
            raise CannotStackError
    try:
        rule = _RULES[name]
    except KeyError:
        raise CannotStackError from None
    return rule(call)


def _as_it_is(call: StackedCall) -> Any:
    """What a NaN need not be taken out of: it reaches a result, where it is seen, or nothing depends on it. Not so of
    complex numbers, one part of which may be NaN, and the other be read."""
    if not call.has_axis(call.args[0]):
        raise CannotStackError
    return call.args[0]


def _is_elementwise(call: StackedCall) -> bool:
    statement = call.statement
    return (
        ufunc_of(statement) in EXACT
        or statement.function is without_nan
        or statement.elementwise
        or (statement.computes_into is not None and not statement.kwargs)
        or (statement.function is np.where and len(call.args) == 3 and not call.kwargs)
    )


def _elementwise(call: StackedCall) -> Any:
    ndim, statement = np.ndim(call.made), call.statement
    call.require_shared(*call.kwargs.values())
    args = tuple(call.aligned(k, ndim) for k in range(len(call.args)))
    made = call.program.call(statement.function, args, call.kwargs, statement.symbol)
    told = call.program.statements[-1]
    told.computes_into, told.chain, told.elementwise = statement.computes_into, statement.chain, statement.elementwise
    return made


def _product(call: StackedCall) -> Any:
    a, b = call.args
    if call.kwargs:
        raise CannotStackError
    first, second = (np.ndim(call.single(x)) for x in call.args)
    if first >= 2 and second >= 2:
        ndim = np.ndim(call.made)
        return call.aligned(0, ndim) @ call.aligned(1, ndim)
    if max(first, second) > 2:
        raise CannotStackError
    if first == 1:
        a = a[:, None, :] if call.has_axis(a) else a[None, :]
    if second == 1:
        b = b[..., None]
    return (a @ b).reshape((call.n, *np.shape(call.made)))


def _write(call: StackedCall) -> Any:
    statement = call.statement
    target, *args = call.args
    function, one = statement.function, call.single(target)
    if statement.function in BASIC_WRITES:
        key, _ = args
        return call.program.write(call.whole(0), function, call.key(key), call.aligned(2, np.ndim(one[key])))
    if function is add_by_key:
        key, _, fresh = args
        value = call.aligned(2, np.ndim(one[key]))
        if adds_by_key(one, key):
            return call.program.write(call.whole(0), PUT if fresh else ADD_TO, call.key(key), value)
        return call.program.write(call.whole(0), function, call.key(key), value, fresh)
    region = getattr(function, "__self__", None)
    if type(region) is not Region:
        raise CannotStackError
    value = call.aligned(1, np.ndim(region.view(one)[region.key]))
    plain = with_key(statement)
    if plain is not statement:
        return call.program.write(call.whole(0), plain.function, call.key(plain.args[1]), value)
    steps = tuple(map(partial(_step, call), region.steps))
    each = Region(steps, call.key(region.key), region.fancy, region.repeats, region.subtracts)
    return call.program.write(call.whole(0), getattr(each, function.__name__), value)


def with_key(statement: Statement) -> Statement:
    """A write to a region that one key leads to, as a write by that key; any other statement as it is."""
    region = getattr(statement.function, "__self__", None)
    if type(region) is not Region or not region.steps or region.key is not Ellipsis:
        return statement
    (prim, params), *rest = region.steps
    if any(other.name != "getitem" or others["key"] is not Ellipsis for other, others in rest):
        return statement
    if prim.name != "getitem" or not is_basic(params["key"]):
        return statement
    target, value = statement.args
    return evolve(statement, function=WRITES[sign_of(statement.function)], args=(target, params["key"], value))


def _step(call: StackedCall, step: tuple[Any, dict[str, Any]]) -> tuple[Any, dict[str, Any]]:
    """A step to the part that is written, for each place."""
    prim, params = step
    if prim.name != "getitem":
        raise CannotStackError
    return prim, {"key": call.key(params["key"])}


def _reshaped(call: StackedCall) -> Any:
    """Whatever keeps the elements in C order."""
    if not {*call.args[1:], *call.kwargs.values()}.isdisjoint(("F", "A", "K")):
        raise CannotStackError
    call.require_shared(*call.args[1:])
    return call.args[0].reshape((call.n, *np.shape(call.made)))


def _copied(call: StackedCall) -> Any:
    x, *rest = call.args
    call.require_shared(*rest, *call.kwargs.values())
    statement = call.statement
    return call.program.call(statement.function, (x, *rest), call.kwargs, statement.symbol)


def _laid(call: StackedCall) -> Any:
    x, strides = call.args
    if call.made.flags.c_contiguous:
        return x.copy()
    return call.program.call(laid_as, (x, (2 * call.made.nbytes, *strides)), {})


def _transposed(call: StackedCall) -> Any:
    x, ndim = call.args[0], np.ndim(call.single(call.args[0]))
    axes = call.args[1:] if len(call.args) != 2 or isinstance(call.args[1], int) else call.args[1]
    axes = call.kwargs.get("axes", axes) or range(ndim)[::-1]
    return x.transpose((0, *call.axis(tuple(axes), ndim)))


def _swapped(call: StackedCall) -> Any:
    ndim = np.ndim(call.single(call.args[0]))
    return np.swapaxes(call.args[0], *(call.axis(axis, ndim) for axis in call.args[1:]))


def _moved(call: StackedCall) -> Any:
    ndim, axes = np.ndim(call.single(call.args[0])), call.named("source", "destination")
    return np.moveaxis(call.args[0], call.axis(axes["source"], ndim), call.axis(axes["destination"], ndim))


def _broadcast(call: StackedCall) -> Any:
    call.require_shared(*call.args[1:])
    shape = np.shape(call.made)
    return np.broadcast_to(call.aligned(0, len(shape)), (call.n, *shape))


def _summed(call: StackedCall) -> Any:
    """The sum in the order in which NumPy adds up one place: the axis that is new lies outside of the others."""
    ndim, named = np.ndim(call.single(call.args[0])), call.named("axis", "dtype", "out", "keepdims")
    axis = named.get("axis", 0 if call.statement.function == np.add.reduce else None)
    named["axis"] = call.axis(tuple(range(ndim)) if axis is None else axis, ndim)
    return call.args[0].sum(**named)


def _added_up(call: StackedCall) -> Any:
    """One after the other, in each place."""
    ndim, named = np.ndim(call.single(call.args[0])), call.named("axis", "dtype", "out")
    axis = call.axis(named.pop("axis", 0), ndim)
    return call.program.call(np.add.accumulate, (call.args[0],), {"axis": axis, **named})


def _rolled(call: StackedCall) -> Any:
    named = call.named("shift", "axis")
    ndim = np.ndim(call.single(call.args[0]))
    axis = named.get("axis", 0 if ndim == 1 else None)
    if axis is None:
        raise CannotStackError
    return np.roll(call.args[0], named["shift"], call.axis(axis, ndim))


def _joined(call: StackedCall) -> Any:
    parts, named = call.args[0], call.named("axis")
    whole = [part if call.has_axis(part) else call.repeated(part) for part in parts]
    axis, ndim = named.get("axis", 0), np.ndim(call.made)
    return call.statement.function(whole, axis=call.axis(axis, ndim))


def _part(call: StackedCall) -> Any:
    statement = call.statement
    return call.program.call(statement.function, call.args, {}, statement.symbol)


_RULES: dict[str, Callable[[StackedCall], Any]] = {
    **dict.fromkeys(("reshape", "ravel", "squeeze", "expand_dims", "flatten", "atleast_1d", "atleast_2d"), _reshaped),
    **dict.fromkeys(("copy", "astype", "array"), _copied),
    **dict.fromkeys(("real", "imag", "conj", "conjugate"), _part),
    **dict.fromkeys(("concatenate", "stack"), _joined),
    **dict.fromkeys(("T", "transpose"), _transposed),
    "accumulate": _added_up,
    "swapaxes": _swapped, "moveaxis": _moved, "broadcast_to": _broadcast, "sum": _summed, "roll": _rolled,
    laid_as.__name__: _laid,
}  # fmt: skip
