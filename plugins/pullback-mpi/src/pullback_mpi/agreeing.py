"""What ranks agree on: the policy in force, what schedules follow from, and that all of them go on."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
import xxhash

import pullback as pb
from pullback_mpi import collectives
from pullback_mpi.errors import MismatchError, PartError
from pullback_mpi.heads import new_head
from pullback_mpi.primitives import Division


class Agreeing:
    """Blocks in which ranks agree, see :class:`pullback.Agreement`."""

    def __init__(self, division: Division) -> None:
        self._channel, self._grid, self._division = division.channel, division.grid, division
        self._agreed = 0
        """How many blocks of :meth:`agree` are open."""

    @contextmanager
    def agree(self, policy: Any = None) -> Iterator[Self]:
        """A block in which this policy is in force on every rank, and in which ranks do not lose each other.
        Derivatives of what communicates are taken in such a block.

        What runs again has to do so on all ranks at once. So the policies of all ranks are compared, here and for each
        loop, and those that read bytes decide by the largest sizes of all ranks, so that uneven parts have the same
        schedule. An error on one rank, wherever in the block, raises on all others at their next communication, or at
        the end of the block.

        Parameters
        ----------
        policy
            The policy; None is the one that is in force.

        Returns
        -------
        A context manager, which gives the communicator.

        Raises
        ------
        MismatchError
            On every rank, where policies differ.
        """
        said, rank = repr(policy), self._channel.rank
        digest = tuple(int(n) for n in np.frombuffer(xxhash.xxh3_64_digest(said.encode()), np.uint32))
        both = (*digest, *(-n for n in digest))
        if self.largest(both) != both:
            self._channel.refuse(
                MismatchError(f"rank {rank} has the policy {said}, and another rank another: give each the same"),
                alone=False,
            )
        self._agreed += 1
        try:
            with pb.using(policy, agreement=self):
                yield self
        except BaseException as error:
            self.settled(error)
            raise
        finally:
            self._agreed -= 1
        self.settled(None)

    def _take(self, x: Any, what: str) -> None:
        """Nothing, or :class:`PartError` for a traced value outside a block of :meth:`agree`: a step that one rank runs
        again would meet another step elsewhere, and nothing in a message could tell."""
        if not self._agreed and isinstance(x, pb.Tracer):
            self._channel.refuse(
                PartError(
                    f"{what} got a traced value and the ranks have not agreed on a policy: take derivatives of what "
                    "communicates within a block, with comm.agree(policy):"
                )
            )

    def largest(self, values: tuple[int, ...]) -> tuple[int, ...]:
        """The greatest of each number over the ranks; what pullback asks within :meth:`agree`."""
        return collectives.largest(self._channel, values)

    def settled(self, error: BaseException | None) -> None:
        """An agreed point: returns where all ranks have come to it without an error. With an ``error``, of this rank,
        the others are told, and it returns at once."""
        if error is not None:
            self._channel.fail(error)
            return
        self._division.under_way.require_none()
        self._channel.heads(new_head("an agreed point"))
