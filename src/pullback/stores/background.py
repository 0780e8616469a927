"""Work in the background: one job after the other, in a thread that an interrupt of the program leaves in order.

The locks of ``concurrent.futures`` are taken and given back by lines of Python. An interrupt between two of them
(Ctrl-C, a time limit) leaves one locked, and whoever asks next waits forever. Here each wait is one call.
"""

import os
from _thread import LockType, allocate_lock, start_new_thread
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import Any

from attrs import define, field


def _locked() -> LockType:
    lock = allocate_lock()
    lock.acquire()
    return lock


@define(eq=False)
class Job:
    """One call: whether it has been made, and what it gave or raised."""

    call: Callable[[], Any] | None
    done: bool = field(default=False, init=False)
    cancelled: bool = field(default=False, init=False)
    found: Any = field(default=None, init=False)
    error: BaseException | None = field(default=None, init=False)
    claim: LockType = field(factory=allocate_lock, init=False)
    """The lock held by whoever makes the call, or has cancelled it."""
    ended: LockType = field(factory=_locked, init=False)
    owner: int = field(factory=os.getpid, init=False)

    def run(self) -> None:
        """Make the call, unless it is cancelled."""
        if self.claim.acquire(blocking=False):
            self._make()
        else:
            self.cancelled = True
        self.end()

    def cancel(self) -> bool:
        """Whether the call will never be made."""
        return self.claim.acquire(blocking=False)

    def wait(self) -> None:
        """Wait until it is done. In a process that was forked off nobody else does it."""
        if self.owner != os.getpid():
            if not self.done:
                self._make()
                self.end()
            return
        while not self.done:  # whoever waits beside the first one looks again
            self.ended.acquire(timeout=1.0)

    def result(self) -> Any:
        """What the call gave; raises what it raised, once: an error keeps the frames that it goes through, and these
        would keep the job, and all that is stored."""
        self.wait()
        error, self.error = self.error, None
        if error is not None:
            try:
                raise error
            finally:
                del error
        return self.found

    def _make(self) -> None:
        try:
            self.found = self.call() if self.call is not None else None
        except BaseException as error:  # noqa: BLE001 - who asks for the result gets it
            self.error = error

    def end(self) -> None:
        """Tell those who wait."""
        self.call, self.done = None, True  # first what the call holds goes
        self.ended.release()


@define(eq=False)
class Background:
    """The thread, which begins with the first job."""

    jobs: "SimpleQueue[Job | None]" = field(factory=SimpleQueue, init=False)
    begun: bool = field(default=False, init=False)
    closed: bool = field(default=False, init=False)
    life: Job = field(factory=partial(Job, None), init=False)
    """The job of the thread. An interrupt may begin a second one, which finds it claimed."""

    def do(self, function: Callable[..., Any], *args: Any) -> Job:
        """The job of a call; raises :class:`RuntimeError` where the program ends and no thread can begin."""
        if not self.begun:
            start_new_thread(self._live, ())
            self.begun = True
        job = Job(partial(function, *args))
        self.jobs.put(job)
        return job

    def close(self) -> None:
        """End it, once the job under way is done; the others are not begun any more."""
        self.closed = True
        self.jobs.put(None)  # in any case: an interrupt may have come when the thread had begun, and this was not noted
        if self.begun:
            self.life.wait()

    def _live(self) -> None:
        if not self.life.cancel():
            return
        while (job := self.jobs.get()) is not None:
            if self.closed:
                job.cancel()
            job.run()
            del job
        self.life.end()
