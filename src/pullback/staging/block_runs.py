"""The run of statements in blocks, divided among threads: each block is computed once, by whichever thread is free, so
the bits do not depend on how many there are."""

import sys
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.staging.conditions import warn_at
from pullback.words.sniffs import error_state, is_quiet
from pullback.words.threads import side_by_side

BLOCK = 1 << 17
"""Bytes of an array that are computed at a time."""
LEAST = 1 << 15
"""Bytes below which the calls would take longer than the work."""
CACHED = 1 << 20
"""Bytes that the arrays of a block may have together."""


def run_in_blocks(
    block: Callable[..., Any], size: int, reads: Sequence[Any], stored: Sequence[Any], scratch: Sequence[Any],
    threads: int,
) -> None:  # fmt: skip
    """Call ``block`` on slices of the arrays that are read and ``stored``, and on arrays of the dtypes in ``scratch``.

    NumPy's warnings come when all is computed, once for each line, as from whole arrays."""
    arrays = [_flat(x, size) for x in (*reads, *stored)]
    widest = max(x.itemsize for x in arrays)
    step = min(BLOCK, max(CACHED // (len(arrays) + len(scratch)), LEAST)) // widest
    starts = deque(range(0, size, step))

    def work() -> None:
        spare = [np.empty(step, dtype) for dtype in scratch]
        while True:
            try:
                start = starts.popleft()
            except IndexError:
                return
            stop = min(start + step, size)
            parts = [x[start:stop] if len(x) > 1 else x for x in arrays]
            block(*parts, *(spare if stop - start == step else [x[: stop - start] for x in spare]))

    n_threads = min(threads, len(starts))
    if is_quiet(error_state()):
        side_by_side(work, n_threads)
        return
    told: set[tuple[int, str]] = set()

    def tell(kind: str, _: int) -> None:
        told.add((sys._getframe(1).f_lineno, kind))

    with np.errstate(call=tell):
        side_by_side(work, n_threads)
    for line, kind in sorted(told, key=lambda each: (each[0], _KINDS.index(each[1]))):
        warn_at(kind, block.__code__.co_filename, line)


_KINDS = ("divide by zero", "overflow", "underflow", "invalid value")
"""In the order in which NumPy tells of them."""


def _flat(x: Any, size: int) -> Any:
    """The elements in a row; one of them where all are the same."""
    return x.reshape(-1) if x.flags.c_contiguous and x.size == size else x.reshape(-1)[:1]
