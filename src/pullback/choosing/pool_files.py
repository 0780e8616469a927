"""What the processes of one machine hold that share a pool.

They take turns by a lock file. Beside it lies a file for each process, in which it says what it holds, and which it
keeps locked: the system lets go of that lock when the process ends, however it ends. What a file says whose lock is
free counts no more. So a process may be killed at any moment, also while it writes.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path
from uuid import uuid4
from weakref import finalize

from attrs import define, field, frozen

from pullback.words.errors import PolicyError

try:
    from fcntl import LOCK_EX, LOCK_NB, flock, lockf
except ImportError:  # Windows: there is no such pool
    flock = lockf = None  # type: ignore[assignment]


@frozen
class Holding:
    """What one process holds of a pool."""

    max_bytes: int
    """The bytes of the pool, as it was made there."""
    held: int
    n_active: int
    """How many of its threads hold a share and do not wait for more."""


@define(eq=False)
class Book:
    """The lock file ``path``, and what lies beside it."""

    path: Path
    file: Path | None = field(default=None, init=False)
    """The file of the process ``owner``. It is open as ``lock`` and never opened again: a process that closes a file
    anywhere lets go of its locks on it. Processes that are forked off do not have these."""
    lock: int = field(default=-1, init=False)
    owner: int = field(default=0, init=False)
    others: list[Holding] | None = field(default=None, init=False)
    """During a turn what other processes hold."""

    def __attrs_post_init__(self) -> None:
        if flock is None:
            raise PolicyError(
                f"BudgetPool(path={str(self.path)!r}) locks files by fcntl, which this system has not; leave path out, "
                "and give each process a pool of its own"
            )

    @contextmanager
    def turn(self, own: Callable[[], Holding]) -> Iterator[list[Holding]]:
        """What others hold, which stays so within the block; after it, ``own()`` is what this process holds. Called by
        one thread at a time; again within the block by the same one, where a share is collected there."""
        if self.others is not None:
            yield self.others
            return
        try:
            lock = os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600)
        except OSError as error:
            raise PolicyError(
                f"BudgetPool(path={str(self.path)!r}): {error}. Name a file in a directory of this machine that can be "
                "written to"
            ) from error
        try:
            flock(lock, LOCK_EX)
            self.others = list(self._living())
            try:
                yield self.others
            finally:
                self.others = None
                self._say(own())
        finally:
            os.close(lock)

    def _say(self, own: Holding) -> None:
        if self.owner != os.getpid():  # forked off: what it took over is its own as well
            self.owner = os.getpid()
            self.file = self.path.with_name(f"{self.path.name}.{self.owner}-{uuid4().hex[:8]}")
            self.lock = os.open(self.file, os.O_CREAT | os.O_RDWR, 0o600)
            lockf(self.lock, LOCK_EX)
            finalize(self, _leave, self.owner, self.lock, self.file)
        text = f"{own.max_bytes} {own.held} {own.n_active}"
        os.pwrite(self.lock, f"{text:<99}".encode("ascii"), 0)

    def _living(self) -> Iterator[Holding]:
        """What the other processes say that live; what the others have left is removed."""
        for path in self.path.parent.glob(f"{escape(self.path.name)}.*-*"):
            if path == self.file and self.owner == os.getpid():
                continue
            with suppress(FileNotFoundError, ValueError):
                lock = os.open(path, os.O_RDWR)
                try:
                    lockf(lock, LOCK_EX | LOCK_NB)
                    path.unlink()  # nobody holds it any more
                except BlockingIOError:
                    yield Holding(*map(int, os.read(lock, 100).split()))
                finally:
                    os.close(lock)


def _leave(owner: int, lock: int, file: Path) -> None:
    if owner == os.getpid():
        with suppress(OSError):
            file.unlink()
    os.close(lock)
