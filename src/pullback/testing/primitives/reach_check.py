"""The check of ``reach=`` and ``elementwise=True``: no cotangent of one output element leaves what is declared."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pullback.rules.unbroadcast import project
from pullback.testing.comparing.faults import Fault
from pullback.testing.primitives.calls import PrimitiveCall
from pullback.words.specs import spec_of

ALL_ELEMENTS = 48
"""The most elements of the output that are looked at."""


def wrong_reach(call: PrimitiveCall) -> Iterator[Fault]:
    """A cotangent beyond the declared reach: sparse Jacobians would leave it out without a word."""
    prim = call.primitive
    reach = "place" if prim.elementwise and not prim.trusted else prim.reach
    out = np.asarray(call.first.outputs[0])
    if not reach or prim.outputs:
        return
    for _, use in call.sound():
        for position in (p for p in use.positions if reach in {"place", "moved"} or p == 0):
            shape = np.shape(call.operands[position])
            allowed = _reached(reach, shape, out.shape, call.settings)
            for place in range(min(out.size, ALL_ELEMENTS)):
                seed = np.reshape(np.eye(1, out.size, place, out.dtype), out.shape)
                raw = call.results(use, seed[()])[use.place(position)]
                ct = project(np.asarray(raw), spec_of(call.operands[position]))
                beyond = np.count_nonzero(ct) > 1 if allowed is None else np.any(ct[~allowed(place)])
                if beyond:
                    yield Fault(
                        "wrong reach",
                        f"{use.label} sends what belongs to element {np.unravel_index(place, out.shape)} of the output "
                        f"to elements of {call.name(position)} that {reach!r} does not reach; correct reach= or "
                        "elementwise= of the primitive, or the rule",
                    )
                    break


def _reached(reach: str, shape: tuple[int, ...], out: tuple[int, ...], params: dict[str, Any]) -> Any:
    """``flat place in the output -> mask of the operand``; None where a single element is reached, whichever it is."""
    size = int(np.prod(shape, dtype=int))
    numbers: NDArray[np.int64] = np.arange(size).reshape(shape)
    if reach == "moved":
        return None
    if reach == "place":
        sources = np.broadcast_to(numbers, out).reshape(-1)
        return lambda place: numbers == sources[place]
    axis = params["axis"]
    if reach == "reduced":
        kept = np.sum(numbers, axis=axis, keepdims=True).shape
        places = np.broadcast_to(np.arange(int(np.prod(kept, dtype=int))).reshape(kept), shape)
        return lambda place: places == place
    line, along = (numbers.reshape(-1), 0) if axis is None else (numbers, axis)
    where = np.indices(line.shape)

    def before(place: int) -> NDArray[np.bool_]:
        index = np.unravel_index(place, line.shape)
        same = [where[k] == index[k] for k in range(line.ndim) if k != along % line.ndim]
        mask = np.all([*same, where[along] <= index[along] if reach == "before" else where[along] >= 0], axis=0)
        return np.asarray(mask).reshape(shape)

    return before
