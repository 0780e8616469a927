"""What is sent, as bytes: items in batches, whose size the number of the items decides."""

from collections.abc import Iterator, Sequence
from typing import Any

import cloudpickle

import pullback as pb
from pullback.scaling import explained

MOST_TASKS = 1024
"""The most tasks of a sum, unless ``batch`` says otherwise: where there are more items, a task has several of them."""


LONG_ENOUGH = 0.2
"""Seconds that a task should compute for, twenty times what Dask takes for it."""
FOR_A_THREAD = 4
"""Tasks for each thread at least, so that none is idle for long when the others end."""


def batch_size(n_items: int, batch: int | None) -> int:
    """``batch``, or for None the least power of two with which there are at most ``MOST_TASKS`` tasks. A batch is a
    subtree of the sum because it is a power of two."""
    if batch is None:
        return int(1 << (-(-n_items // MOST_TASKS) - 1).bit_length())
    if not isinstance(batch, int) or isinstance(batch, bool) or batch < 1 or batch & (batch - 1):
        raise pb.PolicyError(f"batch= takes a power of two (1, 2, 4, 8, ...), so that the bits stay, got {batch!r}")
    return batch


def together(n_batches: int, n_threads: int, seconds: float | None) -> int:
    """How many batches one task takes, a power of two: as many as make it long enough, where a batch took so many
    ``seconds`` in the last sum, and leave enough tasks for each thread. One where that is not known."""
    found = 1
    while seconds is not None and found * seconds < LONG_ENOUGH and n_batches >= 2 * found * FOR_A_THREAD * n_threads:
        found *= 2
    return found


def pickled(thing: Any, **sent: Any) -> bytes:
    """The bytes of ``thing``; :class:`pullback.WorkerError` names what of ``sent``, its parts, cannot be pickled."""
    try:
        return bytes(cloudpickle.dumps(thing))
    except Exception as error:
        raise explained(error, sent) from error


def pickled_batches(items: Sequence[Any], size: int) -> Iterator[bytes]:
    """The bytes of each batch."""
    for first in range(0, len(items), size):
        batch = list(items[first : first + size])
        yield pickled(batch, **{f"item {number}": item for number, item in enumerate(batch, first)})
