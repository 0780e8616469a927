"""The exchange of rows along one axis with the ranks before and after, and its adjoint, with messages and requests that
are used again.

Forward, the rank before gets the first ``after`` rows of this one and sends its last ``before`` ones; and so with the
rank after. The adjoint sends as many rows back. What is sent lies in one array, rows for the rank before first, and so
does what comes; where the domain ends, nothing is in it.
"""

from collections.abc import Callable, Container
from functools import partial
from math import prod
from typing import Any

import numpy as np
from attrs import field, frozen
from numpy.typing import NDArray

from pullback_mpi.channel import Channel, differ
from pullback_mpi.errors import MismatchError, PartError
from pullback_mpi.heads import CARRIED, LOCAL, SERIAL, WHICH, Head, new_head

Array = NDArray[Any]
Counts = tuple[int, int]
"""How many rows belong to the rank before, and to the one after."""
Peers = tuple[int | None, int | None]
"""The ranks before and after; None where the domain ends."""
UPWARDS, DOWNWARDS = 1, 2
"""The tags of messages to the rank after, and to the rank before."""
ADJOINTS = {"halo": "the adjoint of halo", "start": "the adjoint of finish"}
ADJOINTS |= {back: there for there, back in ADJOINTS.items()}
"""The kinds of exchanges, with what reverses each."""


class Message:
    """Bytes that travel: a head, and rows behind it."""

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.bytes = np.zeros(8 * CARRIED + prod(shape) * dtype.itemsize, np.uint8)
        self.head: Head = self.bytes[: 8 * CARRIED].view(np.int64)
        self.rows: Array = self.bytes[8 * CARRIED :].view(dtype).reshape(shape)


@frozen(eq=False)
class Route:
    """Which rows of one shape and dtype go where. The parameter of the primitives."""

    channel: Channel
    peers: Peers
    across: tuple[int, ...]
    """The shape of one row."""
    dtype: np.dtype[Any]
    axis: int
    sent: Counts
    came: Counts
    terms: tuple[int, ...]
    free: dict[str, list["Exchange"]] = field(factory=dict, init=False)
    """Exchanges that are not under way, by kind."""

    def key(self, first: int | None, last: int | None) -> tuple[slice, ...]:
        """The key of some rows."""
        return (slice(None),) * self.axis + (slice(first, last),)

    def rows(self, n: int) -> tuple[int, ...]:
        """The shape of so many rows."""
        return (*self.across[: self.axis], n, *self.across[self.axis + 1 :])

    def begun(self, kind: str, rows: Array, which: int = 0) -> "Exchange":
        """An exchange whose messages are on their way: ``which`` of several, where it is finished later."""
        free = self.free.setdefault(kind, [])
        exchange = free.pop() if free else Exchange(self, kind)
        exchange.begin(rows, which)
        return exchange


class Exchange:
    """A set of messages to and from the neighbours, under way or free."""

    def __init__(self, route: Route, kind: str) -> None:
        self.route, self.kind = route, kind
        channel = route.channel
        out, back = (route.came, route.sent) if kind.startswith("the adjoint") else (route.sent, route.came)
        self.head = new_head(kind, route.terms, (len(route.across), *route.across))[:CARRIED]
        self.shape = route.rows(sum(back))
        self.requests: list[Any] = []
        self.out = self._messages(out, channel.data.Send_init, (DOWNWARDS, UPWARDS))
        self.back = self._messages(back, channel.data.Recv_init, (UPWARDS, DOWNWARDS))
        for _, _, message in self.out:
            message.head[:] = self.head
        channel.requests += self.requests
        self.start: Callable[[Any], None] = channel.mpi.Prequest.Startall
        self.is_done: Callable[[], bool] = partial(channel.mpi.Prequest.Testall, self.requests)
        self.sent_bytes = sum(message.bytes.nbytes for _, _, message in self.out)

    def _messages(
        self, counts: Counts, request: Callable[..., Any], tags: tuple[int, int]
    ) -> list[tuple[int, tuple[slice, ...], Message]]:
        """The rank, the key of the rows and the message of each way on which rows travel."""
        route, found = self.route, []
        keys = route.key(0, counts[0]), route.key(counts[0], None)
        for peer, n, key, tag in zip(route.peers, counts, keys, tags, strict=True):
            if peer is not None and n:
                message = Message(route.rows(n), route.dtype)
                self.requests.append(request(message.bytes, peer, tag))
                found.append((peer, key, message))
        return found

    def begin(self, rows: Array, which: int) -> None:
        """Send."""
        channel = self.route.channel
        self.head[WHICH] = which
        channel.begin(self.head)
        channel.sent_bytes += self.sent_bytes
        for _, key, message in self.out:
            message.head[SERIAL], message.head[WHICH] = channel.serial, which
            message.rows[...] = rows[key]
        if self.requests:
            self.start(self.requests)

    def arrived(self) -> Array:
        """What has come back; the exchange is free again. Raises :class:`MismatchError` where a message belongs to
        another communication."""
        channel = self.route.channel
        if self.requests:
            channel.wait_until(self.is_done)
        wanted, found = self.head.tobytes(), np.empty(self.shape, self.route.dtype)
        for peer, key, message in self.back:
            if message.head.tobytes() != wanted:
                channel.refuse(self._differs(peer, message.head))
            found[key] = message.rows
        self.route.free[self.kind].append(self)
        return found

    def _differs(self, peer: int, head: Head) -> MismatchError:
        """The error for a message that is of another communication, or of rows of another shape."""
        rank = self.route.channel.rank
        if (head[:LOCAL] != self.head[:LOCAL]).any():
            return differ(rank, self.head, peer, head)
        shapes = [tuple(int(n) for n in h[LOCAL + 1 : LOCAL + 1 + int(h[LOCAL])]) for h in (self.head, head)]
        return MismatchError(
            f"rows of rank {rank} have the shape {shapes[0]}, those of its neighbour, rank {peer}, {shapes[1]}: parts "
            "that lie side by side must have the same length along every other axis"
        )


def least_free(numbers: Container[int]) -> int:
    """The least number from 1 on that is not among these."""
    number = 1
    while number in numbers:
        number += 1
    return number


class UnderWay:
    """Exchanges that are started and not finished, by the number that stands for each: the least that is free, so that
    a step that runs again has the same numbers."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.exchanges: dict[int, Exchange] = {}

    def put(self, exchange: Exchange) -> Array:
        """The number of an exchange, as the array that is handed from ``start`` to ``finish``."""
        number = least_free(self.exchanges)
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
