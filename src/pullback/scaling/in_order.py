"""Futures of any engine, handed on in the order in which they were asked for."""

from collections import deque
from collections.abc import Callable, Generator, Iterator
from typing import Any


def in_order(
    futures: Iterator[Any], window: Callable[[], int], any_done: Callable[[set[Any]], set[Any]]
) -> Generator[Any, None, None]:
    """The futures in their order, each when it is done; at most ``window()`` of them have been asked for and not been
    handed on.

    Taking a future from the iterator begins its work. ``any_done(under_way)`` waits until at least one is done and
    returns those; what it raises of one of them ends all. When the generator is closed, what is left is cancelled.
    """
    waiting: deque[Any] = deque()
    under_way: set[Any] = set()
    try:
        while True:
            while len(waiting) < window() and (future := next(futures, None)) is not None:
                waiting.append(future)
                under_way.add(future)
                del future  # who holds it holds its result
            if not waiting:
                return
            while waiting[0] in under_way:
                under_way -= any_done(under_way)
            yield waiting.popleft()
    finally:
        for left in waiting:
            left.cancel()
