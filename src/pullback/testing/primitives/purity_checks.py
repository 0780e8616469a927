"""Checks that nothing is written, shared or left to chance: inputs, cotangents, aliases, determinism, memory
layouts."""

import copy
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pullback.testing.comparing.bits import describe, same_bits, twin, twins
from pullback.testing.comparing.differences import tolerance
from pullback.testing.comparing.faults import Fault
from pullback.testing.primitives.calls import Evaluation, PrimitiveCall, Use, apply, environment, evaluate
from pullback.words.specs import carries_derivative
from pullback.words.structures import flatten

LARGE = 10**12
"""The product of sizes above which overlapping bounds count as sharing: the exact question may take exponential
time."""


def mutated_inputs(call: PrimitiveCall) -> Iterator[Fault]:
    """An operand that the forward writes into; a value that a rule writes into."""
    prim = call.primitive
    for position, (before, after) in enumerate(zip(call.operands, call.first.operands, strict=True)):
        if not same_bits(before, after):
            yield Fault(
                "mutated input",
                f"the forward of {prim.name} wrote into its operand {call.name(position)}: recomputation would start "
                "from other values; work on a copy (np.array(x)) and return it",
            )
    for _, use in call.ran():
        values = environment(call, call.first, use)
        for name in _writes(call, use):
            if name != "ct":
                yield Fault(
                    "mutated input",
                    f"{use.label} wrote into {name!r} ({describe(values[name])}), which other pullbacks and the user "
                    "may hold; return a new array",
                )


def mutated_parameters(call: PrimitiveCall) -> Iterator[Fault]:
    """A parameter whose arrays the forward writes into."""
    given = copy.deepcopy(call.params)
    call.primitive.forward(*twins(call.operands, writeable=True), **given)
    for name, value in call.params.items():
        if not same_bits(*(tuple(v for v in flatten(x)[0] if isinstance(v, np.ndarray)) for x in (value, given[name]))):
            yield Fault(
                "mutated parameter",
                f"the forward of {call.primitive.name} wrote into its parameter {name!r}: the rule and a recomputation "
                "read it again; work on a copy, or make the array in the call",
            )


def mutated_cotangents(call: PrimitiveCall) -> Iterator[Fault]:
    """A rule that writes into ``ct``."""
    for _, use in call.ran():
        if "ct" in _writes(call, use):
            yield Fault(
                "mutated cotangent",
                f"{use.label} wrote into ct, which other consumers and the caller of pull hold; write ct * y instead "
                "of ct *= y, or copy first",
            )


def _writes(call: PrimitiveCall, use: Use) -> list[str]:
    """The names of what a rule writes into: ``ct`` and the values that it declares."""
    values = _flagged(environment(call, call.first, use), writeable=True)
    before = {name: twins((values[name],))[0] for name in use.rule.values}
    ct = twins((call.seeds[0],), writeable=True)[0]
    apply(use, ct, values)
    pairs = {"ct": (call.seeds[0], ct)} | {name: (value, values[name]) for name, value in before.items()}
    return [name for name, (original, value) in pairs.items() if not same_bits(original, value)]


def undeclared_aliases(call: PrimitiveCall) -> Iterator[Fault]:
    """An output or residual that shares memory with an operand though ``view`` is not declared."""
    prim = call.primitive
    outputs = dict(zip(prim.outputs or ("the output",), call.first.outputs, strict=False))
    shared = {} if prim.view else outputs
    for name, value in {**shared, **call.first.residuals}.items():
        for position, operand in enumerate(call.first.operands):
            if isinstance(value, np.ndarray) and isinstance(operand, np.ndarray) and shares(value, operand):
                remedy = "return a copy, or declare view=True if the output is a plain view"
                if name in call.first.residuals:
                    remedy = f"let the rule name {prim.name_of(position)!r} itself"
                yield Fault(
                    "undeclared alias",
                    f"{name} of {prim.name} shares memory with the operand {call.name(position)} while view=False: a "
                    f"later write to one would change the other unseen; {remedy}",
                )


def shares(a: NDArray[Any], b: NDArray[Any]) -> bool:
    """Whether two arrays have memory in common. Exact where the bounds overlap and the problem is small: twins of one
    operand have one buffer of their own each."""
    if not np.may_share_memory(a, b):
        return False
    return a.size * b.size > LARGE or np.shares_memory(a, b)


def nondeterminism(call: PrimitiveCall) -> Iterator[Fault]:
    """A forward or a rule that gives other bits when called again on the same bits."""
    again = evaluate(call.primitive, call.operands, call.params)
    if not same_bits(call.first.outputs, again.outputs) or not same_bits(
        tuple(call.first.residuals.values()), tuple(again.residuals.values())
    ):
        yield Fault(
            "not deterministic",
            f"the forward of {call.primitive.name} gave other bits when called again with the same operands, so "
            "recomputing it changes the gradient; hand over what it draws or counts as an operand or a parameter",
        )
    for place, use in call.ran():
        if not all(same_bits(call.outcomes[place], _quiet(call, use)) for _ in range(2)):
            yield Fault(
                "not deterministic",
                f"{use.label} gave other bits when called again with the same cotangent and values; draw or count "
                "nothing in a rule",
            )


def _quiet(call: PrimitiveCall, use: Use) -> Any:
    """The results once more, an exception as a value."""
    try:
        return call.results(use, call.seeds[0])
    except Exception as error:  # noqa: BLE001 - a rule that raises only sometimes is not deterministic either
        return (np.frombuffer(repr(error).encode(), np.uint8),)


def read_only_operands(call: PrimitiveCall) -> Iterator[Fault]:
    """A forward or rule that refuses read-only arrays, which broadcast views and guarded inputs are."""
    if not all(same_bits(a, b) for a, b in zip(call.operands, call.first.operands, strict=True)):
        return  # it writes: said by mutated_inputs
    locked = twins(call.operands, writeable=False)
    try:
        evaluation = evaluate(call.primitive, locked, call.params, keep_flags=True)
    except Exception as error:  # noqa: BLE001 - a forward may refuse in its own way
        yield Fault(
            "read-only refused",
            f"the forward of {call.primitive.name} raised {type(error).__name__}: {error} on read-only operands; take "
            "them without asking for a writable buffer",
        )
        return
    for _, use in call.ran():
        if _writes(call, use):
            continue  # said by mutated_inputs and mutated_cotangents
        values = _flagged(environment(call, evaluation, use), writeable=False)
        try:
            apply(use, twins((call.seeds[0],), writeable=False)[0], values)
        except Exception as error:  # noqa: BLE001 - as above
            yield Fault(
                "read-only refused",
                f"{use.label} raised {type(error).__name__}: {error} on a read-only cotangent and read-only values; "
                "take them without asking for a writable buffer",
            )


def memory_layouts(call: PrimitiveCall) -> Iterator[Fault]:
    """A forward or a rule that gives other numbers for strided, reversed or Fortran-ordered operands and cotangents."""
    tol = 10 * tolerance(*call.operands, *call.first.outputs)
    if "order" not in call.primitive.params:  # with an order of its own, a function of the layout is what it says it is
        for layout, change in LAYOUTS.items():
            yield from _other_operands(call, layout, change, tol)
    for _, use in call.sound():
        for layout, change in (LAYOUTS | {"stride-0 read-only": _constant}).items():
            several = isinstance(call.seeds[0], tuple)
            moved = tuple(v if v is None else change(v) for v in (call.seeds[0] if several else (call.seeds[0],)))
            plain = tuple(v if v is None else np.ascontiguousarray(v).reshape(v.shape) for v in moved)
            if not _writes(call, use):
                yield from _other_cotangent(call, use, layout, (moved, plain) if several else (moved[0], plain[0]), tol)


def _other_operands(call: PrimitiveCall, layout: str, change: Any, tol: float) -> Iterator[Fault]:
    moved = tuple(change(v) if isinstance(v, np.ndarray) else v for v in call.operands)
    try:
        evaluation = evaluate(call.primitive, moved, call.params)
        close = _all_close(evaluation.outputs, call.first.outputs, tol)
    except Exception as error:  # noqa: BLE001 - a forward may refuse in its own way
        yield Fault(
            "memory layout",
            f"the forward of {call.primitive.name} raised {type(error).__name__}: {error} on {layout} operands",
        )
        return
    if not close:
        yield Fault(
            "memory layout",
            f"the forward of {call.primitive.name} gives other numbers for {layout} operands of equal values; read "
            "them through NumPy, or call np.ascontiguousarray first",
        )
        return
    for place, _ in call.sound():
        yield from _other_values(call, place, evaluation, layout, tol)


def _other_values(call: PrimitiveCall, place: int, evaluation: Evaluation, layout: str, tol: float) -> Iterator[Fault]:
    use = call.uses[place]
    yield from _layout_fault(
        use,
        f"{layout} operands",
        lambda: _all_close(call.results(use, call.seeds[0], evaluation), call.outcomes[place], tol),
    )


def _other_cotangent(call: PrimitiveCall, use: Use, layout: str, cts: tuple[Any, Any], tol: float) -> Iterator[Fault]:
    def close() -> bool:
        moved, plain = (apply(use, ct, environment(call, call.first, use)) for ct in cts)
        return _all_close(moved, plain, tol)

    yield from _layout_fault(use, f"a {layout} cotangent", close)


def _layout_fault(use: Use, what: str, close: Callable[[], bool]) -> Iterator[Fault]:
    """A fault where the results are not ``close``, or the rule raises."""
    try:
        words = "" if close() else "gives other numbers"
    except Exception as error:  # noqa: BLE001 - whatever a rule raises is what is reported
        words = f"raised {type(error).__name__}: {error}"
    if words:
        yield Fault(
            "memory layout",
            f"{use.label} {words} for {what} of equal values; compute with NumPy functions, not with buffers",
        )


def _all_close(values: tuple[Any, ...], expected: tuple[Any, ...], tol: float) -> bool:
    for a, b in zip(values, expected, strict=True):
        if b is None or not (carries_derivative(b) or np.asarray(b).dtype.kind in "iub"):
            continue
        x, y = np.asarray(a), np.asarray(b)
        scale = np.max(np.abs(y[np.isfinite(y)]), initial=0.0) if y.size else 0.0
        if x.shape != y.shape or not np.allclose(x, y, rtol=tol, atol=tol * scale, equal_nan=True):
            return False
    return True


def _every_second(array: NDArray[Any]) -> Any:
    wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1]) if array.ndim else (), array.dtype)
    if not array.ndim:
        return twin(array)
    wide[..., ::2] = array
    return wide[..., ::2]


def _reversed(array: NDArray[Any]) -> Any:
    back = (slice(None, None, -1),) * array.ndim
    return np.ascontiguousarray(array[back]).reshape(array.shape)[back]


def _constant(array: NDArray[Any]) -> Any:
    """All elements equal, in one place in memory, and read-only, as what np.broadcast_to gives."""
    return np.broadcast_to(array.flat[0] if array.size else array.dtype.type(0), array.shape)


# np.array, because np.asfortranarray would make a 0-d array 1-d.
LAYOUTS: dict[str, Callable[[NDArray[Any]], Any]] = {
    "every-second-element": _every_second,
    "reversed": _reversed,
    "Fortran-ordered": partial(np.array, order="F"),
}


def _flagged(values: dict[str, Any], *, writeable: bool) -> dict[str, Any]:
    """The same twins with their flags set; they are ours, so nothing of the user's changes."""
    for value in values.values():
        for array in value if isinstance(value, tuple) else (value,):
            if isinstance(array, np.ndarray):
                array.flags.writeable = writeable
    return values
