"""The threads that a run divides its work among: one pool for each number of them, made when it is first needed."""

import os
from collections.abc import Callable
from contextvars import copy_context
from threading import Lock, local
from typing import Any

_POOLS: dict[int, Any] = {}
_CHANGING = Lock()
_HERE = local()
_FORKS: list[bool] = []
"""Whether forked processes are told that they have no pools."""


def side_by_side(work: Callable[[], None], n: int) -> None:
    """Call ``work`` in ``n`` threads at once, this one among them, and return when all have returned.

    What ``work`` does must not depend on how many there are. A thread of a pool calls it alone: it waits for no other.

    Parameters
    ----------
    work
        A function without arguments.
    n
        How many threads; below 2, this one alone.

    Returns
    -------
    None.

    Raises
    ------
    Exception
        What one of them raised.

    Example
    -------
    >>> from pullback.backends import side_by_side
    >>> left, done = [1, 2, 3], []
    >>> def work():
    ...     while left:
    ...         done.append(left.pop())
    >>> side_by_side(work, 1)
    >>> done
    [3, 2, 1]
    """
    if n <= 1 or getattr(_HERE, "works", False):
        work()
        return
    try:
        waiting = [_pool(n - 1).submit(copy_context().run, _marked, work) for _ in range(n - 1)]
    except RuntimeError:  # the interpreter ends: no thread can be had
        work()
        return
    try:
        work()
    finally:
        failed = [future.exception() for future in waiting]  # and so all have returned
    for error in failed:
        if error is not None:
            raise error


def _marked(work: Callable[[], None]) -> None:
    _HERE.works = True
    work()


def _pool(n: int) -> Any:
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - for who asks for threads

    with _CHANGING:
        found = _POOLS.get(n)
        if found is None:
            if not _FORKS and hasattr(os, "register_at_fork"):
                os.register_at_fork(after_in_child=_forget)
                _FORKS.append(True)
            found = _POOLS[n] = ThreadPoolExecutor(n, "pullback")
        return found


def end() -> None:
    """End the threads of all pools: for tests."""
    with _CHANGING:
        pools = [*_POOLS.values()]
        _POOLS.clear()
    for pool in pools:
        pool.shutdown()


def _forget() -> None:
    """Forget the pools: a forked process has no threads but the one that forked."""
    global _CHANGING  # noqa: PLW0603
    _CHANGING = Lock()
    _POOLS.clear()
