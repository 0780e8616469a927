"""The exchange of edges along one axis, and its adjoint, with messages and requests that are used again.

Forward, the rank before gets the first ``after`` rows of this one and sends its last ``before`` ones, which come to
stand before the part; and so with the rank after. The adjoint sends what stands around the part back, where it is added
to the rows that it was a copy of: first what comes from before, then what comes from after, so that the bits do not
depend on which is there first. Where the domain ends nothing is sent, and zeros stand around the part.
"""

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any

import numpy as np
from attrs import field, frozen
from numpy.typing import NDArray

from pullback_mpi.channel import Channel, differ
from pullback_mpi.errors import MismatchError, PartError
from pullback_mpi.heads import CARRIED, LOCAL, Head, new_head

Array = NDArray[Any]
Key = tuple[slice, ...]
UPWARDS, DOWNWARDS = 1, 2
"""The tags of messages to the rank after, and to the rank before."""


class Message:
    """Bytes that travel: a head, and rows behind it."""

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.bytes = np.zeros(8 * CARRIED + prod(shape) * dtype.itemsize, np.uint8)
        self.head: Head = self.bytes[: 8 * CARRIED].view(np.int64)
        self.rows: Array = self.bytes[8 * CARRIED :].view(dtype).reshape(shape)


@frozen(eq=False)
class Edges:
    """Edges along one axis of parts of one shape and dtype: which rows go where. The parameter of the primitives."""

    channel: Channel
    peers: tuple[int | None, int | None]
    """The ranks before and after."""
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    axis: int
    widths: tuple[int, int]
    """How many rows come to stand before and after."""
    terms: tuple[int, ...]
    free: dict[str, list["Exchange"]] = field(factory=dict, init=False)
    """Exchanges that are not under way, by kind."""

    def key(self, first: int | None, last: int | None) -> Key:
        """The key of some rows."""
        return (slice(None),) * self.axis + (slice(first, last),)

    def rows(self, n: int) -> tuple[int, ...]:
        """The shape of so many rows."""
        return (*self.shape[: self.axis], n, *self.shape[self.axis + 1 :])

    @property
    def padded(self) -> tuple[int, ...]:
        """The shape of the part with what stands around it."""
        return self.rows(sum(self.widths) + self.shape[self.axis])

    @property
    def core(self) -> Key:
        """The key of the part in that."""
        return self.key(self.widths[0], self.widths[0] + self.shape[self.axis])

    @property
    def around(self) -> tuple[Key, Key]:
        """The keys of the rows before and after the part, in that."""
        return self.key(0, self.widths[0]), self.key(self.widths[0] + self.shape[self.axis], None)

    @property
    def copied(self) -> tuple[Key, Key]:
        """The keys of the rows of the part of which the ranks before and after have copies."""
        return self.key(0, self.widths[1]), self.key(self.shape[self.axis] - self.widths[0], None)

    def begun(self, kind: str, array: Array) -> "Exchange":
        """An exchange whose messages are on their way: rows of the part for ``halo`` and ``start``, what stands around
        it for their adjoints."""
        free = self.free.setdefault(kind, [])
        exchange = free.pop() if free else Exchange(self, kind)
        exchange.begin(array)
        return exchange


class Exchange:
    """A set of messages to and from the neighbours, under way or free."""

    def __init__(self, edges: Edges, kind: str) -> None:
        self.edges, self.kind = edges, kind
        channel, (n_before, n_after) = edges.channel, edges.widths
        is_forward = not kind.startswith("the adjoint")
        across = edges.rows(1)
        self.head = new_head(kind, edges.terms, (len(across), *across))[:CARRIED]
        out, back = ((n_after, n_before), (n_before, n_after))[:: 1 if is_forward else -1]
        self.keys = edges.copied if is_forward else edges.around
        self.out: list[tuple[Key, Message]] = []
        self.back: list[tuple[int, int, Message]] = []
        """The place (0 before, 1 after), the rank and the message of each that comes back."""
        self.requests: list[Any] = []
        to_itself: dict[int, Message] = {}
        for place, peer in enumerate(edges.peers):
            if peer is None or not out[place]:
                continue
            message = Message(edges.rows(out[place]), edges.dtype)
            message.head[:] = self.head
            self.out.append((self.keys[place], message))
            if peer == channel.rank:
                to_itself[1 - place] = message
            else:
                self.requests.append(channel.data.Send_init(message.bytes, peer, (DOWNWARDS, UPWARDS)[place]))
        for place, peer in enumerate(edges.peers):
            if peer is None or not back[place]:
                continue
            message = to_itself.get(place) or Message(edges.rows(back[place]), edges.dtype)
            self.back.append((place, peer, message))
            if peer != channel.rank:
                self.requests.append(channel.data.Recv_init(message.bytes, peer, (UPWARDS, DOWNWARDS)[place]))
        channel.requests += self.requests
        self.start: Callable[[Any], None] = channel.mpi.Prequest.Startall
        self.is_done: Callable[[], bool] = partial(channel.mpi.Prequest.Testall, self.requests)
        self.sent_bytes = sum(message.bytes.nbytes for _, message in self.out) if self.requests else 0

    def begin(self, array: Array) -> None:
        """Send."""
        channel = self.edges.channel
        channel.begin(self.head)
        channel.sent_bytes += self.sent_bytes
        for key, message in self.out:
            message.head[0] = channel.serial
            message.rows[...] = array[key]
        if self.requests:
            self.start(self.requests)

    def arrived(self) -> list[tuple[int, Array]]:
        """What has come back, with its place: 0 from before, 1 from after. Raises :class:`MismatchError` where a
        message belongs to another communication."""
        channel = self.edges.channel
        if self.requests:
            channel.wait_until(self.is_done)
        wanted = self.head.tobytes()
        for _, peer, message in self.back:
            if message.head.tobytes() != wanted:
                channel.refuse(self._differs(peer, message.head))
        return [(place, message.rows) for place, _, message in self.back]

    def _differs(self, peer: int, head: Head) -> MismatchError:
        """The error for a message that is of another communication, or of rows of another shape."""
        rank = self.edges.channel.rank
        if (head[:LOCAL] != self.head[:LOCAL]).any():
            return differ(rank, self.head, peer, head)
        shapes = [tuple(int(n) for n in h[LOCAL + 1 : LOCAL + 1 + int(h[LOCAL])]) for h in (self.head, head)]
        return MismatchError(
            f"rows of rank {rank} have the shape {shapes[0]}, those of its neighbour, rank {peer}, {shapes[1]}: parts "
            "that lie side by side must have the same length along every other axis"
        )

    def around(self, part: Array | None) -> Array:
        """The part (None: zeros) with the rows that have come around it; the exchange is free again."""
        edges = self.edges
        whole = np.empty(edges.padded, edges.dtype)
        whole[edges.core] = 0 if part is None else part
        came = dict(self.arrived())
        for place, key in enumerate(edges.around):
            whole[key] = came.get(place, 0)
        self.release()
        return whole

    def added(self, part: Array) -> Array:
        """The part, to which the rows that have come are added in place; the exchange is free again."""
        keys = self.edges.copied
        for place, rows in self.arrived():
            part[keys[place]] += rows
        self.release()
        return part

    def release(self) -> None:
        """What has come has been read."""
        self.edges.free[self.kind].append(self)


class UnderWay:
    """Exchanges that are started and not finished, by the number that stands for each: the least that is free, so that
    a step that runs again has the same numbers."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.exchanges: dict[int, Exchange] = {}

    def put(self, exchange: Exchange) -> Array:
        """The number of an exchange, as the array that is handed from ``start`` to ``finish``."""
        number = next(k for k in range(1, len(self.exchanges) + 2) if k not in self.exchanges)
        self.exchanges[number] = exchange
        return np.array([float(number)])

    def take(self, token: Array) -> Exchange:
        """The exchange that a number stands for."""
        exchange = self.exchanges.pop(int(token[0]), None)
        if exchange is None:
            self.channel.refuse(
                PartError(
                    "finish got an exchange that is not under way: finish each once, in the step in which it was "
                    "started, and give finish what start gave"
                )
            )
        return exchange

    def require_none(self) -> None:
        """Raise :class:`PartError` where an exchange was started and not finished."""
        if self.exchanges:
            self.channel.refuse(
                PartError(f"{len(self.exchanges)} exchanges were started and not finished: call finish for each start")
            )
