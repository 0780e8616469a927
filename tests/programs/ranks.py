"""Ranks of one process, a thread each, that send each other arrays. A message that nobody sends ends the test: whoever
waits for it gives up."""

import threading
from collections.abc import Callable
from queue import Empty, Queue
from typing import Any

import numpy as np

import pullback as pb

SECONDS = 30
HERE = threading.local()


class LostError(Exception):
    """A message has not come, or another one than was expected."""


class FailedElsewhereError(Exception):
    """Another rank has failed, and says so."""


class World:
    """``n`` ranks, and what is under way between them. They ``agree`` on what has failed, or else who waits is told
    when another rank has ended in an error."""

    def __init__(self, n: int, *, agrees: bool = False) -> None:
        self.n, self.agrees = n, agrees
        self.under_way = {(a, b): Queue() for a in range(n) for b in range(n)}
        self.sent: list[list[str]] = [[] for _ in range(n)]
        """What each rank has sent, in order."""
        self.failed = threading.Event()

    def exchange(self, what: str, x: Any, to: int, of: int) -> Any:
        """Send ``x`` to a rank and get what another sends here by the same call."""
        self.sent[HERE.rank].append(what)
        self.under_way[HERE.rank, to].put((what, np.array(x)))
        return self.expect(what, of)

    def expect(self, what: str, of: int) -> Any:
        for _ in range(SECONDS * 10):
            try:
                given, value = self.under_way[of, HERE.rank].get(timeout=0.1)
            except Empty:
                if self.failed.is_set() and not self.agrees:
                    raise LostError(f"rank {HERE.rank}: {what} from {of}: another rank has failed") from None
                continue
            if given == "failed":
                raise FailedElsewhereError(f"rank {of} has failed: {value}")
            if given != what:
                raise LostError(f"rank {HERE.rank} expects {what} from {of} and gets {given}")
            return value
        raise LostError(f"rank {HERE.rank}: {what} from {of} has not come")


class Agreed:
    """What the ranks of a world agree by: each sends to all others, and those that wait hear of an error."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def _others(self) -> list[int]:
        return [rank for rank in range(HERE.world.n) if rank != HERE.rank]

    def _send(self, what: str, value: Any) -> None:
        for rank in self._others():
            HERE.world.under_way[HERE.rank, rank].put((what, value))

    def largest(self, values: tuple[int, ...]) -> tuple[int, ...]:
        self.asked.append(values)
        self._send("largest", values)
        every = [values, *(HERE.world.expect("largest", rank) for rank in self._others())]
        return tuple(map(max, zip(*every, strict=True)))

    def settled(self, error: BaseException | None) -> None:
        self.asked.append(error)
        self._send("settled" if error is None else "failed", None if error is None else repr(error))
        if error is None:
            for rank in self._others():
                HERE.world.expect("settled", rank)


@pb.primitive(collective=True, guarded=False, linear=("x",))
def shifted(x, *, tag="forth", by=1):
    """What the rank before has, around the ring; ``by=-1``: the one after."""
    world, n = HERE.world, HERE.world.n
    return world.exchange(f"{tag} {by}", x, (HERE.rank + by) % n, (HERE.rank - by) % n).reshape(np.shape(x))


@shifted.vjp("x")
def _shifted_back(ct, tag, by):
    return shifted(ct, tag="back" if tag == "forth" else "forth", by=-by)


@pb.primitive(collective=True, guarded=False, linear=("x",))
def total(x, *, tag="forth"):
    """The sum over all ranks, in their order, on each of them."""
    world = HERE.world
    for rank in range(world.n):
        world.sent[HERE.rank].append(f"total {tag}")
        world.under_way[HERE.rank, rank].put((f"total {tag}", np.array(x)))
    found = world.expect("total " + tag, 0)
    for rank in range(1, world.n):
        found = found + world.expect("total " + tag, rank)
    return found.reshape(np.shape(x))


@total.vjp("x")
def _total_back(ct, tag):
    return total(ct, tag="back" if tag == "forth" else "forth")


@pb.primitive(collective=True, outputs=("left", "right"))
def both_edges(low, high, *, tag="forth"):
    """What the ranks before and after send: the ``high`` of the one before, the ``low`` of the one after."""
    world, n, rank = HERE.world, HERE.world.n, HERE.rank
    left = world.exchange(f"high {tag}", high, (rank + 1) % n, (rank - 1) % n)
    right = world.exchange(f"low {tag}", low, (rank - 1) % n, (rank + 1) % n)
    return left.reshape(np.shape(high)), right.reshape(np.shape(low))


@both_edges.vjp("low", "high")
def _both_edges_back(cts, needed, tag):
    assert needed == {"low", "high"}
    left, right = cts
    high, low = both_edges(left, right, tag="back" if tag == "forth" else "forth")[::-1]
    return low, high


def outcomes(
    n: int, f: Callable[[int], Any], *, agrees: bool = False
) -> tuple[list[Any], list[BaseException | None], World]:
    """What ``f(rank)`` gives on each rank, the errors that it raises, None where there is none, and the world."""
    world = World(n, agrees=agrees)
    found: list[Any] = [None] * n
    errors: list[BaseException | None] = [None] * n

    def run(rank: int) -> None:
        HERE.world, HERE.rank = world, rank
        try:
            found[rank] = f(rank)
        except BaseException as error:  # noqa: BLE001 - whatever a rank raises is told
            errors[rank] = error
            world.failed.set()

    threads = [threading.Thread(target=run, args=(rank,), daemon=True) for rank in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(4 * SECONDS)
        assert not thread.is_alive(), "a rank hangs"
    return found, errors, world


def on_ranks(n: int, f: Callable[[int], Any], *, agrees: bool = False) -> tuple[list[Any], World]:
    """What ``f(rank)`` gives on each, and the world in which; raises the error of the first rank that has one. Every
    message has been taken."""
    found, errors, world = outcomes(n, f, agrees=agrees)
    raised = [error for error in errors if error is not None]
    if raised:
        raise next((error for error in raised if not isinstance(error, LostError)), raised[0])
    for (a, b), queue in world.under_way.items():
        assert queue.empty(), f"{queue.qsize()} messages from rank {a} to {b} were not taken"
    return found, world
