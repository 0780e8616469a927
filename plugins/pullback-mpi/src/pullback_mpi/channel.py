"""How one rank speaks with the others: communications are numbered, waiting is never blind, and a failure is told.

Whoever waits also looks for *notices*, on a communicator of their own. There are two: a rank has failed, which ends
the waiting with :class:`RankError`; and what a neighbour on the ring of ranks is waiting for. The latter is how ranks
that wait for each other in different communications find out. Of such ranks, let k be the least number that one waits
in. Not all ranks have the same k-th communication, or it would be complete; so somewhere on the ring there are two
neighbours whose k-th communications differ, and as soon as one tells the other, that one raises.
"""

import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, NoReturn

import numpy as np

import pullback as pb
from pullback_mpi.ending import forget, tell_at_the_end
from pullback_mpi.errors import MismatchError, RankError
from pullback_mpi.heads import CARRIED, LOCAL, SERIAL, WORDS, Head, new_head, said

SPINS = 200
"""How many times a request is tested before anything else is looked at."""
SHORT = 1e-3
"""Seconds of waiting after which the processor is left to others: where there are more ranks than cores, to the rank
that is waited for."""
PATIENCE = 0.5
"""Seconds after which whoever waits tells its neighbours on the ring what for."""
REMEMBERED = 1024
"""Communications of which is known what they were."""
REMEDY = (
    "The ranks must make the same communications in the same order: give each the same policy, within "
    "comm.agree(policy), and let no branch around a communication depend on the rank"
)


def mpi_of(comm: Any) -> Any:
    """The module mpi4py.MPI; raises PluginError with the line that installs it where it is missing."""
    try:
        mpi = import_module("mpi4py.MPI")
    except (ImportError, RuntimeError) as error:  # RuntimeError: mpi4py is there, and no MPI library
        raise pb.PluginError(
            "pullback_mpi needs mpi4py and an MPI library: python -m pip install mpi4py mpich, or build mpi4py for the "
            "MPI of this machine"
        ) from error
    if comm is not None and not isinstance(comm, mpi.Intracomm):
        raise TypeError(f"Communicator got {type(comm).__name__}; give it a communicator of mpi4py: MPI.COMM_WORLD")
    return mpi


class Channel:
    """The communications of one rank over copies of an MPI communicator: one for data, one for notices."""

    def __init__(self, comm: Any = None) -> None:
        self.mpi = mpi_of(comm)
        comm = self.mpi.COMM_WORLD if comm is None else comm
        self.rank, self.size = int(comm.rank), int(comm.size)
        self.serial = 0
        """The number of the last communication."""
        self.sent_bytes = 0
        self.broken = ""
        """Why nothing can be sent any more; empty where all is well."""
        self._past: list[bytes] = [b""] * REMEMBERED
        self._heard: dict[int, Head] = {}
        self._sent: list[Any] = []
        """Notices that may still be on their way."""
        self.requests: list[Any] = []
        """Persistent ones, which are to be freed."""
        if self.size > 1:
            self.data, self.notices = comm.Dup(), comm.Dup()
            tell_at_the_end(self)

    # ----------------------------------------------------------------------------------------------- communications
    def begin(self, head: Head) -> None:
        """The next communication: its number is written into the head."""
        if self.broken:
            raise RankError(f"this communicator has ended: {self.broken}; make another one", self.rank)
        self.serial += 1
        head[SERIAL] = self.serial
        self._past[self.serial % REMEMBERED] = head[:LOCAL].tobytes()

    def heads(self, head: Head, carried: Any = None) -> Any:
        """The heads of all ranks, in rank order, of a communication that all take part in; up to 64 bytes of an array
        are ``carried`` along. Raises :class:`MismatchError` on every rank where their kinds or common terms differ."""
        self.begin(head)
        if carried is not None:
            head[CARRIED:].view(np.uint8)[: carried.nbytes] = np.frombuffer(carried, np.uint8)
        every = head[None].copy()
        if self.size > 1:
            every = np.empty((self.size, WORDS), np.int64)
            self.sent_bytes += head.nbytes
            self.wait(self.data.Iallgather(head, every))
        other = np.flatnonzero(np.any(every[:, :LOCAL] != every[0, :LOCAL], axis=1))
        if other.size:
            self.refuse(differ(0, every[0], int(other[0]), every[other[0]]), alone=False)
        return every

    def wait(self, *requests: Any) -> None:
        """Return when the requests are complete; raises what :meth:`look` does."""
        if len(requests) == 1:
            self.wait_until(requests[0].Test)
        else:
            self.wait_until(partial(self.mpi.Request.Testall, requests))

    def wait_until(self, is_done: Callable[[], bool]) -> None:
        """Return when something ``is_done``, which is asked again and again; raises what :meth:`look` does."""
        try:
            for _ in range(SPINS):
                if is_done():
                    return
            begun, told = time.monotonic(), False
            while not is_done():
                self.look()
                waited = time.monotonic() - begun
                if waited > PATIENCE and not told:
                    self.tell_neighbours(np.frombuffer(self._past[self.serial % REMEMBERED], np.int64))
                    told = True
                time.sleep(0 if waited < SHORT else 1e-4)
        except self.mpi.Exception as error:
            if error.Get_error_class() not in {self.mpi.ERR_TRUNCATE, self.mpi.ERR_IN_STATUS}:
                raise
            self.refuse(
                MismatchError(
                    f"rank {self.rank} got a message of another size than it waits for, at communication "
                    f"{self.serial}. {REMEDY}"
                )
            )

    # ------------------------------------------------------------------------------------------------------ notices
    def look(self) -> None:
        """Nothing, or :class:`RankError` where another rank has failed, or :class:`MismatchError` where a neighbour on
        the ring is at another communication."""
        while self.size > 1 and self.notices.Iprobe():
            rank, failure, head = self.notices.recv()
            if failure:
                self.broken = f"rank {rank} has failed"
                raise RankError(f"rank {rank} has failed, so rank {self.rank} cannot go on: {failure}", rank)
            self._heard[rank] = head
        for rank, head in self._heard.items():
            own = self._past[int(head[SERIAL]) % REMEMBERED]
            mine = np.frombuffer(own, np.int64)
            if own and mine[SERIAL] == head[SERIAL] and own != head[:LOCAL].tobytes():
                self.refuse(differ(self.rank, mine, rank, head))

    def tell_neighbours(self, head: Head) -> None:
        """Tell both neighbours on the ring of ranks what this one waits for."""
        self._sent = [request for request in self._sent if not request.Test()]
        for other in {(self.rank - 1) % self.size, (self.rank + 1) % self.size} - {self.rank}:
            self._sent.append(self.notices.isend((self.rank, "", head[:LOCAL]), other))

    def fail(self, error: BaseException) -> None:
        """Tell every other rank of an error here, once; nothing is sent after it."""
        if not self.broken:
            self.broken = f"rank {self.rank} has failed"
            text = error.args[0] if isinstance(error, pb.PullbackError) and error.args else error
            told = (self.rank, f"{type(error).__name__}: {text}", None)
            self._sent += [self.notices.isend(told, k) for k in range(self.size) if k != self.rank]

    def refuse(self, error: Exception, *, alone: bool = True) -> NoReturn:
        """Raise an error here, and :class:`RankError` with its text on every other rank; not where each rank finds the
        same by itself, and none is ``alone`` with it."""
        if alone:
            self.fail(error)
        self.broken = self.broken or "the ranks have failed"
        raise error

    def leave(self) -> None:
        """The program of this rank ends: who still waits for it is told, and requests are given back."""
        if not self.broken:
            self.begin(head := new_head("the end of the program"))
            self.tell_neighbours(head)
        for request in self.requests:
            request.Free()
        self.requests.clear()

    def close(self) -> None:
        """Nobody communicates any more: requests and communicators are given back. Every rank does so, unless there was
        an error."""
        if self.size > 1 and not self.broken:
            self.heads(new_head("the end of the program"))
            self.broken = "it was closed"
            self.leave()
            forget(self)
            self.data.Free()
            self.notices.Free()


def differ(rank: int, head: Head, other: int, others: Head) -> MismatchError:
    """The error for two ranks whose communications of one number differ."""
    return MismatchError(f"rank {rank} is at {said(head)}, rank {other} at {said(others)}. {REMEDY}")
