"""What users hold: the communications of a divided program, each with its adjoint, and what ranks agree on."""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from pullback_mpi import primitives
from pullback_mpi.adjoint_check import dot_products, require_equal
from pullback_mpi.channel import Channel
from pullback_mpi.errors import PartError
from pullback_mpi.exchanges import UnderWay
from pullback_mpi.exchanging import Exchanging
from pullback_mpi.grid import Grid, Slices
from pullback_mpi.primitives import Division


class Communicator(Exchanging):
    """The communications of a program that is divided over the ranks of an MPI communicator, as differentiable
    functions.

    Ranks are numbered in C order over the parts. To make one is itself a communication: every rank does.

    A value is *divided*, each rank has a part of its own, or *replicated*, each rank has the same. So are cotangents:
    a divided value has the cotangent of the part, a replicated one the whole cotangent on every rank. A loss is
    replicated (``total``), and every rank seeds it alike, as ``grad`` does.

    ============  ==========================  =============================  ====================================
    function      takes                       gives                          adjoint
    ============  ==========================  =============================  ====================================
    ``halo``      a part                      it with its neighbours' edges  edges go back and are added
    ``fill``      a part with room for edges  it, with the edges in it       edges go back and are added
    ``total``     divided                     the sum, replicated            the cotangent; nothing but a check sent
    ``shared``    replicated                  a copy for each rank, divided  the sum over the ranks
    ``scatter``   a whole                     parts                          ``gather``
    ``gather``    parts                       a whole                        ``scatter``
    ``bcast``     that of one rank            a copy for each rank, divided  the sum, on that rank
    ============  ==========================  =============================  ====================================

    So what is replicated goes through ``shared`` (or ``scatter``) before a rank computes with it on its own part.

    Every communication has a number and says what it is; a rank that gets another than it waits for raises
    :class:`MismatchError`. An error on one rank raises :class:`RankError` on all others that communicate, and an error
    that leaves the program ends all ranks.

    Parameters
    ----------
    comm
        A communicator of mpi4py; None is ``MPI.COMM_WORLD``.
    parts
        How many parts there are along each divided axis, in all one a rank; by default one axis is divided.
    axes
        The axes of arrays that are divided, by default the first ones. Negative ones count from the end, so that
        ``(-2, -1)`` fits fields with and without a leading axis.

    Raises
    ------
    PartError
        Where ``parts`` does not fit the number of ranks.
    PluginError
        Without mpi4py and MPI.

    Example
    -------
    >>> import numpy as np
    >>> import pullback as pb
    >>> from pullback_mpi import Communicator
    >>> comm = Communicator()
    >>> def loss(u):  # rows of this rank
    ...     def step(k, u):
    ...         p = comm.halo(u, 1, axis=0, periodic=True)
    ...         return u + 0.1 * (p[2:] - 2 * u + p[:-2])
    ...     u = pb.fori_loop(0, 100, step, u)
    ...     return comm.total(np.sum(u * u))
    >>> with comm.agree(pb.Binomial(10)):
    ...     g = pb.grad(loss)(np.ones(8))  # rows of this rank
    >>> g.shape
    (8,)
    """

    def __init__(
        self, comm: Any = None, *, parts: int | Sequence[int] | None = None, axes: Sequence[int] | None = None
    ) -> None:
        channel = Channel(comm)
        size = channel.size
        numbers = (size,) if parts is None else (parts,) if isinstance(parts, int) else tuple(parts)
        divided = tuple(range(len(numbers))) if axes is None else tuple(axes)
        if prod(numbers) != size or min(numbers, default=0) < 1:
            channel.refuse(
                PartError(
                    f"parts={parts!r} are {prod(numbers)} parts, and there are {size} ranks: one part a rank; start "
                    f"mpiexec -n {prod(numbers)}, or give other parts"
                )
            )
        if not 1 <= len(numbers) <= 3 or len(set(divided)) != len(numbers) or len(divided) != len(numbers):
            channel.refuse(PartError(f"parts={numbers} along axes={divided}: divide one, two or three axes, each once"))
        super().__init__(Division(channel, Grid(channel.rank, numbers, divided), UnderWay(channel)))

    # ---------------------------------------------------------------------------------------------------- who and where
    @property
    def rank(self) -> int:
        """The number of this rank."""
        return self._channel.rank

    @property
    def size(self) -> int:
        """How many ranks there are."""
        return self._channel.size

    @property
    def parts(self) -> tuple[int, ...]:
        """How many parts there are along each divided axis."""
        return self._grid.parts

    @property
    def place(self) -> tuple[int, ...]:
        """Which of them this rank has."""
        return self._grid.place

    @property
    def sent_bytes(self) -> int:
        """What this rank has sent until now, heads included."""
        return self._channel.sent_bytes

    def slices(self, shape: Sequence[int], widths: int | tuple[int, int] = 0) -> Slices:
        """The key of this rank's part of a whole, as :meth:`scatter` divides it: ``whole[key]``.

        Parameters
        ----------
        shape
            Of the whole.
        widths
            How many rows of each neighbour are in it, too, along every divided axis: what :meth:`fill` writes. None
            where the domain ends.

        Returns
        -------
        A slice for each axis, in a tuple.

        Raises
        ------
        PartError
            Where an axis is divided that the shape does not have.
        """
        try:
            return self._grid.slices(shape, widths if isinstance(widths, tuple) else (widths, widths))
        except PartError as error:
            self._channel.refuse(error)

    def close(self) -> None:
        """Give back what MPI has lent; every rank does, when none uses the communicator any more. The end of the
        program does so, too."""
        self._channel.close()

    def __repr__(self) -> str:
        return f"Communicator(rank {self.rank} of {self.size}, parts={self.parts}, axes={self._grid.axes})"

    # ----------------------------------------------------------------------------------------------------- all together
    def total(self, x: Any) -> Any:
        """The sum of ``x`` over the ranks, in rank order: the same bits on every rank.

        Parameters
        ----------
        x
            An array or a number, of one shape on all ranks.

        Returns
        -------
        The sum, replicated, of this shape.

        Raises
        ------
        MismatchError
            Where shapes or dtypes differ.
        """
        self._take(x, "total")
        return primitives.total(x, via=self._division)

    def shared(self, x: Any) -> Any:
        """``x``, which every rank holds, as a value that each uses in its own way: its cotangents are summed.

        Parameters
        ----------
        x
            An array or a number, replicated.

        Returns
        -------
        The same, divided.

        Raises
        ------
        MismatchError
            Where ranks hold different values.
        """
        self._take(x, "shared")
        return primitives.shared(x, via=self._division)

    def scatter(self, x: Any, root: int | None = None) -> Any:
        """The part of this rank of a whole, ``x[comm.slices(x.shape)]``: as even as can be, larger parts first.

        Parameters
        ----------
        x
            The whole.
        root
            None: every rank holds the whole, and its gradient is the whole one on every rank. Else ``x`` is read on
            that rank only, and the gradient is zero on all others.

        Returns
        -------
        The part.

        Raises
        ------
        PartError
            Where ``root`` is no rank, or an axis is shorter than there are parts.
        """
        self._take(x, "scatter")
        return primitives.scatter(x, via=self._division, root=self._root(root), part=None)

    def gather(self, x: Any, root: int | None = None) -> Any:
        """The whole that the parts make.

        Parameters
        ----------
        x
            The part of this rank; parts may be uneven.
        root
            None: every rank gets the whole. Else that one does.

        Returns
        -------
        The whole; an empty array where this rank is not the ``root``.

        Raises
        ------
        PartError
            Where ``root`` is no rank.
        MismatchError
            Where the parts do not fit each other.
        """
        self._take(x, "gather")
        return primitives.gather(x, via=self._division, root=self._root(root))

    def bcast(self, x: Any, root: int = 0) -> Any:
        """What the ``root`` has, as a value that each rank uses in its own way; the cotangents are summed there.

        Parameters
        ----------
        x
            An array or a number; read on the ``root`` only.
        root
            Which rank has it.

        Returns
        -------
        The value, divided.

        Raises
        ------
        PartError
            Where ``root`` is no rank.
        """
        self._take(x, "bcast")
        return primitives.spread(x, via=self._division, root=self._root(root))

    def _root(self, root: int | None) -> int | None:
        if root is not None and not 0 <= root < self.size:
            self._channel.refuse(PartError(f"root={root} is no rank: give one from 0 to {self.size - 1}"))
        return root

    # -------------------------------------------------------------------------------------------------------- agreeing
    def check_adjoint(
        self, f: Callable[..., Any], *args: Any, replicated: Sequence[int] = (), replicated_out: bool = False
    ) -> None:
        """Nothing, or CheckError on every rank: the dot-product test of ``f``, for parts in and parts out.

        With random tangents t and cotangents ct, ``<ct, J t>`` and ``<J' ct, t>`` over all ranks together are the same
        to the precision of the arrays.

        Parameters
        ----------
        f
            A function that communicates by this communicator.
        args
            Where: arrays.
        replicated
            The places of the arguments that every rank holds alike, which count once.
        replicated_out
            Whether what ``f`` returns is alike on every rank, as a ``total`` is.

        Raises
        ------
        CheckError
            Where the two products differ.
        """
        with self.agree():
            products = dot_products(self._channel, f, args, replicated, replicated_out=replicated_out)
        require_equal(*products)
