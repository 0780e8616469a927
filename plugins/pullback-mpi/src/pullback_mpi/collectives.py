"""Communications that all ranks take part in, on plain arrays.

Each begins with the heads of all ranks, so that shapes are known, and a rank that is at another communication is told
before anything else is sent. What is small travels with the heads.
"""

from math import prod
from typing import Any

import numpy as np
import xxhash
from attrs import evolve
from numpy.typing import NDArray

from pullback_mpi.channel import Channel
from pullback_mpi.errors import MismatchError, PartError
from pullback_mpi.grid import Grid, Slices
from pullback_mpi.heads import CARRIED, LOCAL, dtype_of, new_head, of_array, shape_of

Array = NDArray[Any]
SMALL = 64
"""Bytes that travel with a head."""
MOST_AXES = 6
AS_EQUAL = 1e-10
"""What values that ought to be the same may differ by, of the largest element: ranks of unlike processors."""


def total(channel: Channel, x: Any) -> Any:
    """The sum over the ranks in rank order: the same bits on each."""
    x = required(channel, x, "total")
    head = new_head("total", of_array(x))
    if x.nbytes <= SMALL:
        every = channel.heads(head, carried=x)
        rows = _bytes(every[:, CARRIED:]).reshape(channel.size, SMALL)[:, : x.nbytes]
        rows = _bytes(rows).view(x.dtype).reshape(channel.size, x.size)
    else:
        channel.heads(head)
        rows = _own_pieces(channel, x)
    sums = rows[0].copy()
    for row in rows[1:]:
        sums += row
    if x.nbytes > SMALL:
        sums = _all_pieces(channel, sums, x.size)
    return sums.reshape(x.shape) if x.ndim else sums[0]


def _pieces(size: int, n: int) -> list[int]:
    """The lengths of n pieces of an array."""
    return [size // n + (k < size % n) for k in range(n)]


def _own_pieces(channel: Channel, x: Array) -> Array:
    """The piece that this rank adds up, from every rank, in rank order."""
    lengths = _pieces(x.size, channel.size)
    own = lengths[channel.rank]
    rows = np.empty((channel.size, own), x.dtype)
    if channel.size == 1:
        rows[0] = x.ravel()
        return rows
    item = x.dtype.itemsize
    counts = [length * item for length in lengths]
    channel.sent_bytes += x.nbytes
    channel.wait(channel.data.Ialltoallv((_bytes(x), counts), (_bytes(rows), [own * item] * channel.size)))
    return rows


def _all_pieces(channel: Channel, piece: Array, size: int) -> Array:
    """All pieces, of every rank."""
    if channel.size == 1:
        return piece
    whole = np.empty(size, piece.dtype)
    counts = [length * piece.dtype.itemsize for length in _pieces(size, channel.size)]
    channel.sent_bytes += piece.nbytes
    channel.wait(channel.data.Iallgatherv(_bytes(piece), (_bytes(whole), counts)))
    return whole


def shared(channel: Channel, x: Any) -> Any:
    """A copy of what every rank holds; :class:`MismatchError` where they do not hold the same."""
    x = required(channel, x, "shared")
    heads = channel.heads(new_head("shared", (), _described(x)))
    held = _as_one(channel, x, heads, "shared, or the adjoint of total,")
    return held.copy() if x.ndim else held[()]


def gather(channel: Channel, grid: Grid, part: Any, root: int | None) -> Any:
    """The whole that the parts make: on the ``root`` alone, elsewhere an empty array; None: on every rank."""
    part = required(channel, part, "gather")
    heads = channel.heads(new_head("gather", (_number(root), part.dtype.num, part.ndim), of_array(part)))
    shapes = [shape_of(head) for head in heads]
    shape, cuts = _tiled(channel, grid, shapes)
    if root not in (None, channel.rank):
        channel.sent_bytes += part.nbytes
        channel.wait(channel.data.Igatherv(_bytes(part), None, root))
        return np.zeros((0,) * part.ndim, part.dtype)
    counts = [prod(s) * part.dtype.itemsize for s in shapes]
    pieces = np.empty(sum(counts), np.uint8)
    if channel.size == 1:
        pieces[:] = _bytes(part)
    elif root is None:
        channel.sent_bytes += part.nbytes
        channel.wait(channel.data.Iallgatherv(_bytes(part), (pieces, counts)))
    else:
        channel.wait(channel.data.Igatherv(_bytes(part), (pieces, counts), root))
    whole, first = np.empty(shape, part.dtype), 0
    for cut, count, of_rank in zip(cuts, counts, shapes, strict=True):
        whole[cut] = pieces[first : first + count].view(part.dtype).reshape(of_rank)
        first += count
    return whole


def scatter(channel: Channel, grid: Grid, whole: Any, root: int | None, part: tuple[int, ...] | None = None) -> Any:
    """The part of this rank of a whole that the ``root`` has, or of one that every rank has (None).

    ``part`` is its shape where the division is one of its own; None: as even as can be.
    """
    whole = required(channel, whole, "scatter")
    local = _described(whole) if root is None else of_array(whole)
    heads = channel.heads(new_head("scatter", (_number(root), part is not None), local))
    if root is None:
        whole = _as_one(channel, whole, heads, "scatter, or the adjoint of gather,")
    source = heads[0 if root is None else root]
    shape, dtype = shape_of(source), dtype_of(int(source[LOCAL]))
    shapes, cuts = _divided(channel, grid, shape, part)
    if root is None:
        return whole[cuts[channel.rank]].copy()
    own = np.empty(shapes[channel.rank], dtype)
    if channel.size == 1:
        own[...] = whole
        return own
    sent: Any = None
    if channel.rank == root:
        pieces = np.concatenate([whole[cut].ravel() for cut in cuts])
        channel.sent_bytes += pieces.nbytes
        sent = _bytes(pieces), [prod(s) * dtype.itemsize for s in shapes]
    channel.wait(channel.data.Iscatterv(sent, _bytes(own), root))
    return own


def _divided(
    channel: Channel, grid: Grid, shape: tuple[int, ...], part: tuple[int, ...] | None
) -> tuple[list[tuple[int, ...]], list[Slices]]:
    """The shapes of all parts of a whole, and where each of them lies."""
    if part is None:
        try:
            cuts = [evolve(grid, rank=k).slices(shape) for k in range(channel.size)]
        except PartError as error:
            channel.refuse(error, alone=False)
        return [tuple(len(range(n)[s]) for n, s in zip(shape, cut, strict=True)) for cut in cuts], cuts
    heads = channel.heads(new_head("scatter", (), (0, len(part), *part)))
    shapes = [shape_of(head) for head in heads]
    made, cuts = _tiled(channel, grid, shapes)
    if made != shape:
        channel.refuse(PartError(f"parts of shapes {sorted(set(shapes))} make {made}, and the whole is {shape}"))
    return shapes, cuts


def bcast(channel: Channel, x: Any, root: int) -> Any:
    """What the ``root`` has; what the others give is not read."""
    x = required(channel, x, "bcast")
    source = channel.heads(new_head("bcast", (root,), of_array(x)))[root]
    shape = shape_of(source)
    own = x.copy() if channel.rank == root else np.empty(shape, dtype_of(int(source[LOCAL])))
    if channel.size > 1:
        channel.sent_bytes += own.nbytes if channel.rank == root else 0
        channel.wait(channel.data.Ibcast(_bytes(own), root))
    return own if shape else own[()]


def largest(channel: Channel, values: tuple[int, ...]) -> tuple[int, ...]:
    """The greatest of each whole number over all ranks."""
    found: list[int] = []
    n = SMALL // 8
    for first in range(0, len(values), n):
        few = np.array(values[first : first + n], np.int64)
        every = channel.heads(new_head("agreeing on numbers", (len(values), first)), carried=few)
        found += [int(v) for v in every[:, CARRIED : CARRIED + len(few)].max(axis=0)]
    return tuple(found)


# --------------------------------------------------------------------------------------------------------------- parts
def required(channel: Channel, x: Any, name: str) -> Array:
    """An operand as an array in C order; :class:`PartError` where it is not of numbers, or a head has no room for its
    shape."""
    array = np.ascontiguousarray(x) if np.ndim(x) else np.asarray(x)
    if array.ndim > MOST_AXES or not travels(array.dtype):
        channel.refuse(
            PartError(
                f"{name} got an array of {array.ndim} axes of {array.dtype}: give numbers in the byte order of this "
                f"machine on up to {MOST_AXES}"
            )
        )
    return array


def travels(dtype: np.dtype[Any]) -> bool:
    """Whether its number tells all of a dtype, as heads do."""
    return dtype.kind in "biufc" and dtype.isnative


def _described(x: Array) -> tuple[int, ...]:
    """The own terms of a head that tell an array by its bits: dtype, axes, shape, and at the end two of a digest."""
    digest = np.frombuffer(xxhash.xxh3_128_digest(x.tobytes()), np.int64)
    room = CARRIED - LOCAL - 2 - digest.size
    return (*of_array(x), *(0,) * (room - x.ndim), *map(int, digest))


def _as_one(channel: Channel, x: Array, heads: Any, what: str) -> Array:
    """The array that every rank holds. Where bits differ, which processors of unlike kinds may do, that of rank 0; and
    :class:`MismatchError` where they differ by more."""
    told = heads[:, LOCAL:CARRIED]
    if (told == told[0]).all():
        return x
    for rank, head in enumerate(heads):
        if shape_of(head) != shape_of(heads[0]) or head[LOCAL] != heads[0][LOCAL]:
            kinds = [f"{dtype_of(int(h[LOCAL]))}{list(shape_of(h))}" for h in (heads[0], head)]
            channel.refuse(
                MismatchError(
                    f"{what} got {kinds[0]} on rank 0 and {kinds[1]} on rank {rank}: give every rank the same array; "
                    "bcast hands out that of one rank"
                ),
                alone=False,
            )
    reference = bcast(channel, x, 0)
    apart = float(np.max(np.abs(x - reference), initial=0.0))
    most = AS_EQUAL * float(np.max(np.abs(reference), initial=0.0))
    n_apart = total(channel, np.float64(0.0 if apart <= most or same_content(x, reference) else 1.0))
    if n_apart:
        channel.refuse(
            MismatchError(
                f"{what} got other values on {n_apart:.0f} of {channel.size} ranks than on rank 0 (here the largest "
                f"difference is {apart:.3g}). What total and gather give is the same on every rank and must be used "
                "alike by each, up to the loss; hand it through shared where ranks use it in ways of their own"
            ),
            alone=False,
        )
    return np.asarray(reference)


def same_content(x: Array, other: Array) -> bool:
    """Whether elements are equal, NaN to NaN."""
    return bool(np.array_equal(x, other, equal_nan=x.dtype.kind in "fc"))


def _tiled(channel: Channel, grid: Grid, shapes: list[tuple[int, ...]]) -> tuple[tuple[int, ...], list[Slices]]:
    try:
        return grid.tiled(shapes)
    except PartError as error:
        channel.refuse(error, alone=False)


def _number(root: int | None) -> int:
    return -1 if root is None else root


def _bytes(array: Array) -> Array:
    """The bytes of an array in C order."""
    return array.reshape(-1).view(np.uint8)
