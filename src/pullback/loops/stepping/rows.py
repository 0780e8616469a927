"""Rows of stacked outputs and of ``xs``, of which each step of a loop takes and gives one on its way back."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import define

from pullback.loops.stepping.held_steps import StepKind


@define(eq=False)
class Rows:
    """What steps of a kind take from arrays of rows, and give to such, on their way back."""

    y_cts: list[Any]
    """Cotangents of the stacked outputs, of which each step takes its row."""
    x_cts: list[Any]
    """Cotangents of ``xs``, of which each step fills its row."""
    n: int
    """How many cotangents of the state it gives, which come first."""

    def seeds(self, k: int, cts: Sequence[Any]) -> Sequence[Any]:
        """What the reverse of step ``k`` takes, beside these cotangents of the state."""
        return [*cts, *(row_of(ct, k) for ct in self.y_cts)]

    def left(self, k: int, cts: Sequence[Any]) -> Sequence[Any]:
        """The cotangents of the state among all that it has given."""
        for rows, ct in zip(self.x_cts, cts[self.n :], strict=True):
            rows[k] = ct
        return cts[: self.n]


def row_of(cts: Any, k: int) -> Any:
    """The cotangent of the output of step ``k`` among those of all steps: in C order, as a step has it that is recorded
    or staged. Else one that is broadcast, as of a sum, would have other sums in one of them than in the other."""
    row = cts[k]
    return row.copy() if type(row) is np.ndarray and not row.flags.c_contiguous else row


def rows_of(one: Any, kind: StepKind) -> Rows | None:
    """What steps of the kind of the last one, which the pass ``one`` has reversed, take and give beside the cotangents
    of the state; None where other outputs have a cotangent, or one of another kind, than the reverse takes."""
    if one.rows is None or one.rows[0] is not kind:
        one.rows = kind, _rows_of(one, kind)
    found: Rows | None = one.rows[1]
    return found


def _rows_of(one: Any, kind: StepKind) -> Rows | None:
    stage, n = kind.stage, kind.n_leaves
    outputs = one.y_cts or [None] * (len(stage.seeded) - n)
    reach = [None if at is None else ct for at, ct in zip(stage.left[n:], outputs, strict=True)]
    if [ct is not None for ct in reach] != list(stage.seeded[n:]):
        return None
    y_cts = [ct for ct in reach if ct is not None]
    for ct, spec in zip(y_cts, stage.specs[len(stage.specs) - len(y_cts) :], strict=True):
        if type(ct) is not np.ndarray or ct.shape[1:] != spec.shape or ct.dtype != spec.dtype:
            return None
    x_cts = [one.x_cts[place] for place in kind.x_places]
    return None if any(ct is None for ct in x_cts) else Rows(y_cts, x_cts, kind.n_cts)
