"""Checks that a result is the caller's own: no later call writes into it, and nobody else holds its memory."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from pullback.testing.comparing.bits import same_bits, twin, twins
from pullback.testing.comparing.faults import Fault
from pullback.testing.primitives.calls import Evaluation, PrimitiveCall, apply, environment, evaluate, nearby
from pullback.testing.primitives.purity_checks import shares
from pullback.testing.primitives.read_checks import captured_arrays


def kept_results(call: PrimitiveCall) -> Iterator[Fault]:
    """A forward or a rule that returns an array that it keeps, such as a work array: the next call would change it."""
    first = evaluate(call.primitive, call.operands, call.params)
    own = _named(call, first)
    before = {name: twin(value) for name, value in own.items()}
    try:
        again = evaluate(call.primitive, tuple(map(nearby, call.operands)), call.params)
    except Exception:  # noqa: BLE001 - a forward need not take the nearby operands
        again = evaluate(call.primitive, call.operands, call.params)
    others: dict[str, Any] = {f"the closure, {path}": array for path, array in captured_arrays(call.primitive.forward)}
    others |= {"the next call": tuple(_named(call, again).values())}
    for name, value in own.items():
        whose = _holder(value, others)
        if whose or not same_bits(before[name], value):
            yield Fault(
                "kept result",
                f"{name} that the forward of {call.primitive.name} returned shares memory with "
                f"{whose or 'what the next call writes'}, so a later call changes what an earlier one has given; "
                "return out.copy(), or make the array in the call",
            )
    for place, use in call.ran():
        yield from _kept_cotangents(call, place, use)


def _kept_cotangents(call: PrimitiveCall, place: int, use: Any) -> Iterator[Fault]:
    given = [_raw(call, use, factor) for factor in (1, 2)]
    results = [[v for v in raw if isinstance(v, np.ndarray)] for raw in given]
    if any(shares(a, b) for a in results[0] for b in results[1]) or not (
        same_bits(tuple(given[0]), call.outcomes[place]) or same_bits(_raw(call, use, 1), given[0])
    ):
        yield Fault(
            "kept result",
            f"{use.label} returned an array that its next call returns again or writes into; return a new array, or "
            "out.copy()",
        )


def _raw(call: PrimitiveCall, use: Any, factor: int) -> Any:
    """The rule's results, from twins of everything, for the seed times ``factor``."""
    seed = call.seeds[0]
    scaled = tuple(v if v is None else v * factor for v in seed) if isinstance(seed, tuple) else seed * factor
    try:
        return apply(use, twins((scaled,), writeable=True)[0], environment(call, call.first, use))
    except Exception:  # noqa: BLE001 - said by failing_rules
        return ()


def _named(call: PrimitiveCall, evaluation: Evaluation) -> dict[str, Any]:
    """The arrays that a forward gave, by name."""
    outputs = dict(zip(call.primitive.outputs or ("the output",), evaluation.outputs, strict=False))
    return {k: v for k, v in (outputs | evaluation.residuals).items() if isinstance(v, np.ndarray)}


def _holder(value: Any, others: dict[str, Any]) -> str:
    """Who else has the memory of an array; empty for nobody."""
    for name, arrays in others.items():
        if any(shares(value, array) for array in (arrays if isinstance(arrays, tuple) else (arrays,))):
            return name
    return ""
