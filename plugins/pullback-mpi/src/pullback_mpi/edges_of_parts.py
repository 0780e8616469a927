"""Where the edges of a part lie: which of its rows the neighbours need, where theirs come to stand, and whether that
fits."""

from typing import Any

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from pullback_mpi.channel import Channel
from pullback_mpi.collectives import MOST_AXES, travels
from pullback_mpi.errors import PartError
from pullback_mpi.exchanges import Peers, Route
from pullback_mpi.grid import Grid

Key = tuple[slice, ...]
Span = tuple[int, int]
"""The first row, and how many."""


@frozen
class Asked:
    """What a user asks for."""

    what: str
    """The function that was called."""
    widths: int | tuple[int, int]
    axis: int
    periodic: bool
    has_room: bool
    """Whether the array has room for the rows of its neighbours, where there are any."""


@frozen(eq=False)
class Edges:
    """The edges of arrays of one shape and dtype along one axis. Rows that come are in one array, those of the rank
    before first."""

    axis: int
    route: Route | None
    """None where nothing is sent: what is needed is then what comes."""
    needed: tuple[Key, ...]
    """The rows of the array that the neighbours need; where there is a route, at least none of them."""
    around: tuple[Key | NDArray[Any], ...]
    """What stands before and after the array: the key of rows that come, or zeros. Nothing where it has room."""
    filled: tuple[tuple[Key, Key], ...]
    """The keys at which rows come to stand in an array that has room, each with their key in what comes."""

    def rows_of(self, x: Any) -> Any:
        """The needed rows of an array, in one; None where nothing is needed."""
        rows = [x[key] for key in self.needed]
        if len(rows) > 1:
            return np.concatenate(rows, self.axis)
        return rows[0] if rows else None

    def put(self, came: Any, x: Any) -> Any:
        """``x`` with its edges: in place where it has room for them, else in a new array."""
        if self.around:
            before, after = (of if isinstance(of, np.ndarray) else came[of] for of in self.around)
            return np.concatenate((before, x, after), self.axis)
        for key, rows in self.filled:
            x[key] = came if len(self.filled) == 1 else came[rows]
        return x


def new_edges(channel: Channel, grid: Grid, x: Any, asked: Asked) -> Edges:
    """The edges of an array; :class:`PartError` where they do not fit it."""
    dtype = np.dtype(getattr(x, "dtype", object))
    if not travels(dtype) or not 0 < len(x.shape) <= MOST_AXES:
        raise PartError(
            f"{asked.what} got {type(x).__name__} of dtype {dtype}: give it an array of numbers on one to "
            f"{MOST_AXES} axes, in the byte order of this machine"
        )
    shape, widths = tuple(x.shape), asked.widths
    before, after = widths if isinstance(widths, tuple) else (widths, widths)
    direction, axis = grid.direction(asked.axis, len(shape)), asked.axis % len(shape)
    peers: Peers = (grid.rank, grid.rank) if asked.periodic else (None, None)
    if direction is not None:
        peers = grid.neighbours(direction, periodic=asked.periodic)
    came = _of_peers(peers, before, after)
    own = max(shape[axis] - sum(came) * asked.has_room, 0)
    if not 0 <= max(before, after) <= own or min(before, after) < 0:
        raise PartError(
            f"{asked.what}(widths={widths}, axis={asked.axis}) needs {max(before, after)} rows of a neighbour, and the "
            f"part of rank {grid.rank} has {own} (shape {shape}{', edges included' * asked.has_room}): take fewer "
            "ranks along this axis, or a narrower halo"
        )
    sent, route = _of_peers(peers, after, before), None
    if set(peers) - {grid.rank, None}:
        across = (*shape[:axis], 1, *shape[axis + 1 :])
        terms = (axis, before, after, int(asked.periodic), dtype.num, len(shape))
        route = Route(channel, peers, across, dtype, axis, sent, came, terms)
    first, last = came if asked.has_room else (0, 0)
    spans = [(first, sent[0]), (first + own - sent[1], sent[1])]
    if route is None:
        spans.reverse()  # the last rows come to stand before the part
    needed = _keys(axis, spans) or (route is not None) * (_key(axis, 0, 0),)
    coming = [(0, came[0]), came]
    if asked.has_room:
        places = _keys(axis, [(0, first), (first + own, last)])
        return Edges(axis, route, needed, (), tuple(zip(places, _keys(axis, coming), strict=True)))
    zeros = [np.zeros((*shape[:axis], n, *shape[axis + 1 :]), dtype) for n in (before - came[0], after - came[1])]
    around = [_key(axis, *span) if span[1] else none for span, none in zip(coming, zeros, strict=True)]
    return Edges(axis, route, needed, tuple(around), ())


def _of_peers(peers: Peers, before: int, after: int) -> tuple[int, int]:
    """How many rows travel to or from each of them."""
    return before * (peers[0] is not None), after * (peers[1] is not None)


def _keys(axis: int, spans: list[Span]) -> tuple[Key, ...]:
    """The keys of some rows, in order; one alone for two single rows."""
    found = [span for span in spans if span[1]]
    if [n for _, n in found] == [1, 1] and found[0][0] < found[1][0]:
        one, other = found[0][0], found[1][0]
        return ((slice(None),) * axis + (slice(one, other + 1, other - one),),)
    return tuple(_key(axis, *span) for span in found)


def _key(axis: int, first: int, n: int) -> Key:
    return (slice(None),) * axis + (slice(first, first + n),)
