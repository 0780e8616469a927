"""Checks of the declaration: a rule reads all that it declares, and nothing else.

The second is found by overwriting: run the forward, copy what the rule declares, fill everything else with NaN, and
compare bits.
"""

import inspect
from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pullback.testing.comparing.bits import overwritten, poisoned, same_bits, spoiled, twins
from pullback.testing.comparing.differences import random_like
from pullback.testing.comparing.faults import Fault
from pullback.testing.primitives.calls import SEED, PrimitiveCall, Use, apply, environment, evaluate, nearby, stable
from pullback.words.undocumented import global_names

LARGE = 1e4
"""Larger than what rules compare with, and still a float16."""
DRAWS = 24
DEPTH = 4
"""How deep containers and helper functions are searched for captured arrays."""
REMEDY = "name it as a parameter of the rule: an operand, out, a residual of the forward, or a keyword parameter"


def undeclared_reads(call: PrimitiveCall) -> Iterator[Fault]:
    """A rule whose result depends on a value that it did not declare."""
    for place, _ in call.sound():
        if not stable(call, place):
            continue  # said by nondeterminism
        use = call.uses[place]
        captured = list(_captured_reads(call, use))
        for path in captured:
            yield Fault(
                "undeclared read",
                f"{use.label} reads an array through {path}: overwriting it with NaN changes the cotangent, and "
                f"nothing counts, guards or recomputes it; {REMEDY}",
            )
        if captured:
            continue
        if _changes_after_another_forward(call, use):
            yield Fault(
                "undeclared read",
                f"{use.label} gives other bits once the forward has run on other operands: it reads what the forward "
                f"left in a closure, a global or an attribute; {REMEDY}",
            )
        elif _changes_when_overwritten(call, use):
            yield Fault(
                "undeclared read",
                f"{use.label} declares ({', '.join(use.rule.reads)}) and reads more: overwriting the call's other "
                f"operands, output and residuals with NaN changes the cotangent; {REMEDY}",
            )


def _results(call: PrimitiveCall, use: Use, values: dict[str, Any]) -> Any:
    """Raw results as copies; an exception counts as a result that differs from every array."""
    try:
        return twins(apply(use, twins((call.seeds[0],), writeable=True)[0], values))
    except Exception:  # noqa: BLE001 - overwritten values may make a rule fail in any way
        return None


def _evaluated(call: PrimitiveCall, use: Use) -> tuple[Any, Any]:
    """What the forward gives, and what the rule then does."""
    evaluation = evaluate(call.primitive, call.operands, call.params)
    return evaluation, _results(call, use, environment(call, evaluation, use))


def _changes_after_another_forward(call: PrimitiveCall, use: Use) -> bool:
    evaluation, before = _evaluated(call, use)
    try:
        evaluate(call.primitive, tuple(nearby(v) for v in call.operands), call.params)
        changed = not same_bits(before, _results(call, use, environment(call, evaluation, use)))
    except Exception:  # noqa: BLE001 - a forward need not take the nearby operands
        changed = False
    return changed


def _changes_when_overwritten(call: PrimitiveCall, use: Use) -> bool:
    evaluation, before = _evaluated(call, use)
    values = environment(call, evaluation, use)
    others = (*evaluation.operands, *evaluation.outputs, *evaluation.residuals.values())
    with poisoned(v for v in others if isinstance(v, np.ndarray) and _can_be_written(v)):
        return not same_bits(before, _results(call, use, values))


def _can_be_written(array: NDArray[Any]) -> bool:
    """Whether an array of ours holds numbers and can be made writable, as none can that looks at a text of bytes."""
    base: Any = array
    while isinstance(base.base, np.ndarray):
        base = base.base
    return array.dtype.kind in "fciub" and (base.base is None or bool(base.flags.writeable))


def _captured_reads(call: PrimitiveCall, use: Use) -> Iterator[str]:
    """Where the arrays are that the rule reaches through a closure, a global or a default, and really reads."""
    evaluation, before = _evaluated(call, use)  # what the forward leaves behind, it leaves now
    for path, array in captured_arrays(use.rule.fn):
        with overwritten(array) as done:
            after = _results(call, use, environment(call, evaluation, use)) if done else before
        if not same_bits(before, after):
            yield path


def captured_arrays(fn: Callable[..., Any]) -> Iterator[tuple[str, NDArray[Any]]]:
    """(where, array) of every array within reach: in closures, globals, defaults, containers, attributes, helpers of
    the same module."""
    home = getattr(fn, "__module__", None)
    todo: list[tuple[str, Any, int]] = [("", fn, 0)]
    ids: set[int] = set()
    while todo:
        path, value, depth = todo.pop()
        if id(value) in ids or depth > DEPTH:
            continue
        ids.add(id(value))
        if isinstance(value, np.ndarray):
            yield path, value
        else:
            todo += [(where, inner, depth + 1) for where, inner in _inside(path, value, home)]


def _inside(path: str, value: Any, home: str | None) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        yield from ((f"{path}[{key!r}]", inner) for key, inner in value.items())
    elif isinstance(value, list | tuple | set | frozenset):
        yield from ((f"{path}[{k}]", inner) for k, inner in enumerate(value))
    elif isinstance(value, FunctionType):
        if not path or value.__module__ == home:
            yield from _of_function(path, inspect.unwrap(value))
    elif callable(getattr(value, "func", None)) and hasattr(value, "keywords"):  # functools.partial
        yield from (
            (f"{path}the function of a partial", value.func),
            (f"{path}arguments of a partial", (*value.args, *value.keywords.values())),
        )
    elif not isinstance(value, ModuleType | type) and type(value).__module__.partition(".")[0] not in {
        "builtins",
        "numpy",
        "pullback",
    }:
        yield from ((f"{path}.{name}", inner) for name, inner in getattr(value, "__dict__", {}).items())


def _of_function(path: str, function: Any) -> Iterator[tuple[str, Any]]:
    code = getattr(function, "__code__", None)
    if code is None:
        return
    within = f" of {function.__name__}" if path else ""
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=False):
        try:
            yield f"the closure variable {name}{within}", cell.cell_contents
        except ValueError:  # an empty cell: a name bound later
            continue
    for name in sorted(global_names(code) & function.__globals__.keys()):
        yield f"the global {name}{within}", function.__globals__[name]
    for inner in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
        yield f"a default{within}", inner


def unneeded_values(call: PrimitiveCall) -> Iterator[Fault]:
    """A declared value that changes nothing, whatever it is overwritten with: it would be held for nothing."""
    for place, use in call.sound():
        if not stable(call, place) or all(np.size(v) == 0 for v in call.outcomes[place]):
            continue
        values = environment(call, call.first, use)
        for name in use.rule.values:
            if not _nothing_there(values[name]) and not _matters(call, use, values, name):
                spec = (
                    ""
                    if name in call.primitive.residuals
                    else f"; if only its shape or dtype is used, name {name}_spec, which holds no bytes"
                )
                yield Fault(
                    "never needed",
                    f"{use.label} declares {name!r} and never needs it: whatever it holds, the cotangent has the same "
                    f"bits; take it out of the rule's parameters{spec}",
                )


def _matters(call: PrimitiveCall, use: Use, values: dict[str, Any], name: str) -> bool:
    """True if some replacement changes the result: beside the call's own values, else beside small integers, which
    tie and vanish often."""
    before = _results(call, use, values)
    if not all(same_bits(before, _results(call, use, values | {name: other})) for other in _replacements(values[name])):
        return True
    rng = np.random.default_rng(SEED)
    for _ in range(DRAWS):
        drawn = values | {n: _small_integers(rng, values[n]) for n in use.rule.values}
        other = drawn | {name: _small_integers(rng, values[name])}
        if not same_bits(_results(call, use, drawn), _results(call, use, other)):
            return True
    return False


def _nothing_there(value: Any) -> bool:
    """Whether there is nothing that could be replaced: no element, or one integer, of which no other is sure to do."""
    if isinstance(value, tuple):
        return all(map(_nothing_there, value))
    array = np.asarray(value)
    return array.size == 0 or (array.dtype.kind in "iub" and bool(np.all(array == array.flat[0])))


class Untouchable:
    """Raises at whatever is asked of it: a rule that runs with it as with what it stands for needs neither."""

    def __getattribute__(self, name: str) -> Any:
        raise LookupError(name)

    __bool__ = __eq__ = __ne__ = __hash__ = __repr__ = __str__ = __format__ = __call__ = lambda self, *_: (
        object.__getattribute__(self, "__class__")().nothing
    )


def _replacements(value: Any) -> Iterator[Any]:
    """NaN, large numbers of both signs, the negative, noise: comparisons may not see NaN, squares not the sign.

    Integers and booleans only by those that are there (see :func:`spoiled`). What is no number: None, and an object
    that cannot be looked at.
    """
    yield spoiled(value)
    yield _each(value, np.asarray, np.asarray, lambda _: Untouchable())
    rng = np.random.default_rng(SEED)
    makers: tuple[tuple[Callable[[NDArray[Any]], Any], Callable[[NDArray[Any]], Any]], ...] = (
        (np.negative, np.flip),
        (lambda v: np.full_like(v, LARGE), lambda v: np.full_like(v, v.max(initial=v.flat[0]))),
        (lambda v: np.full_like(v, -LARGE), lambda v: np.full_like(v, v.min(initial=v.flat[0]))),
        (lambda v: random_like(rng, v), np.asarray),
    )
    for inexact, integer in makers:
        yield _each(value, inexact, integer)


def _small_integers(rng: np.random.Generator, value: Any) -> Any:
    return _each(value, lambda v: np.asarray(np.round(2 * random_like(rng, v)), v.dtype), lambda v: v)


def _each(
    value: Any,
    inexact: Callable[[NDArray[Any]], Any],
    integer: Callable[[NDArray[Any]], Any],
    other: Callable[[Any], Any] = lambda value: value,
) -> Any:
    """One function for floating and complex values, one for integers and booleans that are there, one for what is no
    number."""
    if isinstance(value, tuple):
        return tuple(_each(v, inexact, integer, other) for v in value)
    array = np.asarray(value)
    if array.dtype.kind in "fc":
        return np.asarray(inexact(array))
    if array.dtype.kind in "iub":
        return integer(array) if array.size else array
    return other(value)
