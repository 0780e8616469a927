"""Which edges a part has: whether they fit it, and who the neighbours are."""

from typing import Any

import numpy as np

from pullback_mpi.channel import Channel
from pullback_mpi.collectives import MOST_AXES, travels
from pullback_mpi.errors import PartError
from pullback_mpi.exchanges import Edges
from pullback_mpi.grid import Grid


def new_edges(
    channel: Channel, grid: Grid, x: Any, widths: int | tuple[int, int], axis: int, periodic: bool, what: str
) -> Edges:
    """The edges of a part, for the function ``what``, or :class:`PartError`."""
    before, after = widths if isinstance(widths, tuple) else (widths, widths)
    dtype = np.dtype(getattr(x, "dtype", object))
    if not travels(dtype) or not 0 < len(x.shape) <= MOST_AXES:
        raise PartError(
            f"{what} got {type(x).__name__} of dtype {dtype}: give it an array of numbers on one to "
            f"{MOST_AXES} axes, in the byte order of this machine"
        )
    shape = tuple(x.shape)
    direction = grid.direction(axis, len(shape))
    peers: tuple[int | None, int | None] = (grid.rank, grid.rank) if periodic else (None, None)
    if direction is not None:
        peers = grid.neighbours(direction, periodic=periodic)
    axis %= len(shape)
    if not 0 <= max(before, after) <= shape[axis] or min(before, after) < 0:
        raise PartError(
            f"{what}(widths={widths}, axis={axis}) needs {max(before, after)} rows of a neighbour, and the part of "
            f"rank {grid.rank} has {shape[axis]} (shape {shape}): take fewer ranks along this axis, or a narrower "
            "halo"
        )
    terms = (axis, before, after, int(periodic), dtype.num, len(shape))
    return Edges(channel, peers, shape, dtype, axis, (before, after), terms)
