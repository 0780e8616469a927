"""The run of statements in blocks, divided among threads: each block is computed once, by whichever thread is free, so
the bits do not depend on how many there are."""

import sys
from collections import deque
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from pullback.backends.threads import side_by_side
from pullback.staging.conditions import warn_at
from pullback.words.sniffs import error_state, is_quiet

BLOCK = 1 << 17
"""Bytes of an array that are computed at a time."""
LEAST = 1 << 15
"""Bytes below which the calls would take longer than the work."""
LINE = 64
"""Bytes of a line of a cache, and of the widest registers."""
CACHED = 1 << 20
"""Bytes that the arrays of a block may have together."""


def run_in_blocks(
    block: Callable[..., Any], size: int, reads: Sequence[Any], stored: Sequence[Any], scratch: Sequence[Any],
    threads: int,
) -> None:  # fmt: skip
    """Call ``block`` on slices of the arrays that are read and ``stored``, and on arrays of the dtypes in ``scratch``.

    NumPy's warnings come when all is computed, once for each line, as from whole arrays."""
    arrays = [_flat(x, size) for x in (*reads, *stored)]
    step = max(LINE, min(BLOCK, max(CACHED // (len(arrays) + len(scratch)), LEAST))) // max(x.itemsize for x in arrays)
    cuts = _cuts(arrays[len(reads) :], size, step)
    todo = deque(pairwise(cuts))

    def work() -> None:
        spare = _scratch(scratch, step)
        while True:
            try:
                start, stop = todo.popleft()
            except IndexError:
                return
            parts = [x[start:stop] if len(x) > 1 else x for x in arrays]
            block(*parts, *(spare if stop - start == step else [x[: stop - start] for x in spare]))

    n_threads = min(threads, len(todo))
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


def _cuts(stored: Sequence[Any], size: int, step: int) -> list[int]:
    """Where blocks begin and end: at the full lines of a cache in most arrays, since these lie alike in them."""
    lead = 0
    for x in stored[:1]:
        lead = -x.__array_interface__["data"][0] % LINE // x.itemsize
    return [*dict.fromkeys((0, *range(lead, size, step), size))]


def _scratch(dtypes: Sequence[Any], step: int) -> list[Any]:
    """Arrays of ``step`` elements, at full lines of a cache, no two at the same place of a page."""
    sizes = [step * dtype.itemsize + LINE for dtype in dtypes]
    memory = np.empty(sum(-(-size // LINE) * LINE for size in sizes) + LINE, np.uint8)
    at = -memory.__array_interface__["data"][0] % LINE
    found = []
    for size, dtype in zip(sizes, dtypes, strict=True):
        found.append(memory[at : at + size - LINE].view(dtype))
        at += -(-size // LINE) * LINE
    return found


def _flat(x: Any, size: int) -> Any:
    """The elements in a row; one of them where all are the same."""
    return x.reshape(-1) if x.flags.c_contiguous and x.size == size else x.reshape(-1)[:1]
