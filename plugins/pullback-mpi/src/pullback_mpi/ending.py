"""What happens at the end of a program: an error that nobody has caught ends all ranks, and who waits for a rank that
is gone is told."""

import atexit
import sys
import time
from types import TracebackType
from typing import Any

GRACE = 2.0
"""Seconds in which the other ranks may say what they have to say, before all are ended."""

_OPEN: set[Any] = set()
"""The channels of this process. They are kept, since MPI wants back what it has lent."""


def tell_at_the_end(channel: Any) -> None:
    """Let the end of this program, and an error that leaves it, be told over this channel from now on."""
    if not _OPEN:
        atexit.unregister(_leave)
        atexit.register(_leave)  # after mpi4py's own, and so run before it
        if getattr(sys.excepthook, "__name__", "") != _abort.__name__:
            _abort.before = sys.excepthook  # type: ignore[attr-defined]
            sys.excepthook = _abort
    _OPEN.add(channel)


def forget(channel: Any) -> None:
    """A channel has been closed."""
    _OPEN.discard(channel)


def _leave() -> None:
    for channel in tuple(_OPEN):
        channel.leave()
    _OPEN.clear()


def _abort(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """An error that nobody has caught: it is printed, the others are told and may end by themselves; then all end."""
    _abort.before(kind, error, trace)  # type: ignore[attr-defined]
    sys.stderr.flush()
    for channel in tuple(_OPEN):
        channel.fail(error)
        gone = channel.notices.Ibarrier()
        until = time.monotonic() + GRACE
        while not gone.Test() and time.monotonic() < until:
            time.sleep(0.01)
        channel.notices.Abort(1)
