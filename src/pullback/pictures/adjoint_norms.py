"""How large the cotangent of every value of a tape is: what influences the output, and by how much."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from pullback.memory.sweep import seeded, sweep
from pullback.words.structures import flatten


def adjoint_norms(traced: Any, outputs: Iterable[Any]) -> tuple[float | None, ...]:
    """For each record the 2-norm of its cotangent, where every element of the outputs has the cotangent 1; None for a
    value that no output depends on. An output is a handle, or None where it is none of the trace.

    The sweep stops at each record, when its cotangent is complete; all records hold what they read. Raises
    ``ShapesOnlyError`` without values.
    """
    tape = traced.tape
    outs = [out for out in outputs if out is not None]
    for out in outs:
        if hasattr(out._value, "__pullback_hollow__"):
            out._value.item()  # without values there are no norms: it refuses
    ones = [np.ones(np.shape(out._value), np.asarray(out._value).dtype)[()] for out in outs]
    one = seeded(tape, outs, ones)
    norms: list[float | None] = [None] * len(tape.records)
    for k in range(len(tape.records) - 1, -1, -1):
        norms[k] = _norm(one.cts[k])
        if k >= tape.n_inputs:
            sweep(tape, k, k + 1, [one])
    return tuple(norms)


def _norm(ct: Any) -> float | None:
    """Of an array, or of all arrays of a structure."""
    if ct is None:
        return None
    leaves = [np.asarray(leaf) for leaf in flatten(ct)[0]]
    return float(np.sqrt(sum(float(np.sum(np.abs(leaf) ** 2)) for leaf in leaves if leaf.dtype.kind in "fc")))
