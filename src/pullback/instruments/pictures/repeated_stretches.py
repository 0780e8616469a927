"""Where a sequence repeats itself: the steps of a loop, marked or not, as its records show them."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

LONGEST: Final = 500
"""Operations of a step that is looked for."""
FEWEST: Final = 3
"""Repetitions that make a loop: two may be chance."""


class Stretch(NamedTuple):
    """A repetition: from ``start`` on, ``n_steps`` times the same ``period`` items; it could as well begin up to
    ``slack`` items later."""

    start: int
    period: int
    n_steps: int
    slack: int

    @property
    def stop(self) -> int:
        """The first item behind it."""
        return self.start + self.period * self.n_steps


def repeated_stretches(items: Sequence[Any]) -> list[Stretch]:
    """The stretches that cover most, none of which touch each other, in order."""
    numbers: dict[Any, int] = {}
    row = np.array([numbers.setdefault(item, len(numbers)) for item in items], np.intp)
    found = [
        stretch for period in range(1, min(LONGEST, len(row) // FEWEST) + 1) for stretch in _of_period(row, period)
    ]
    found.sort(key=lambda stretch: (stretch.start - stretch.stop, stretch.period))
    taken: list[Stretch] = []
    free = np.ones(len(row), bool)
    for stretch in found:
        whole = slice(stretch.start, stretch.stop + stretch.slack)
        if free[whole].all():
            free[whole] = False
            taken.append(stretch)
    return sorted(taken)


def _of_period(row: Any, period: int) -> list[Stretch]:
    """Where each item is the one ``period`` before, long enough."""
    same = np.concatenate([[False], row[period:] == row[:-period], [False]])
    edges = np.flatnonzero(np.diff(same.astype(np.int8)))
    found = []
    for start, stop in zip(edges[::2], edges[1::2], strict=True):
        n_steps, slack = divmod(int(stop - start) + period, period)
        if n_steps >= FEWEST:
            found.append(Stretch(int(start), period, n_steps, slack))
    return found
