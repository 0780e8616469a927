"""The check that a rule is itself differentiable: its gradient with respect to the operands and to the cotangent."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from pullback.testing.comparing.faults import Fault
from pullback.testing.gradients.hessian_check import hessian_faults
from pullback.testing.gradients.jacobian_check import level_faults, next_level, start_level
from pullback.testing.primitives.calls import SEED, PrimitiveCall
from pullback.words.specs import carries_derivative

REMEDY = (
    "write the rule with np functions of ct and the declared values, without float(), .item(), isinstance(..., "
    "np.ndarray) or writes"
)


def wrong_second_order(call: PrimitiveCall) -> Iterator[Fault]:
    """A rule that cannot be applied to traced values, or whose derivative is wrong; nothing where a value is opaque."""
    if not call.uses or call.primitive.opaque:
        return
    rng = np.random.default_rng(SEED)

    def outputs(*moved: Any) -> tuple[Any, ...]:
        operands = list(call.operands)
        for position, value in zip(call.active, moved, strict=True):
            operands[position] = value
        out = call.primitive(*operands, **call.params)
        return tuple(v for v in (out if call.primitive.outputs else (out,)) if carries_derivative(v))

    level = start_level(f"{call.primitive.name}", outputs, tuple(call.operands[p] for p in call.active), rng)
    faults = [*level_faults(level, ("fwd", "rev"), rng)]
    if not faults:
        faults = [*level_faults(next_level(level, rng), ("rev",), rng)]
    if not faults:
        faults = [*hessian_faults(level, rng)]
    for fault in faults:
        yield Fault("not differentiable again", f"{fault}; {REMEDY}")
