"""Exchanges of edges with the neighbouring parts, for users: into a new array, or into room that the array has; at
once, or overlapped with computing.

What travels are rows, taken from the array and put around or into it by ordinary slices, so that the derivative of an
exchange touches no more than they do.
"""

from typing import Any

from attrs import field, frozen

from pullback_mpi import primitives
from pullback_mpi.agreeing import Agreeing
from pullback_mpi.edges_of_parts import Asked, Edges, new_edges
from pullback_mpi.errors import PartError
from pullback_mpi.exchanges import least_free
from pullback_mpi.primitives import Division


@frozen(eq=False)
class Started:
    """An exchange on its way, from :meth:`Communicator.start` to :meth:`Communicator.finish`."""

    x: Any = field(repr=False)
    token: Any = field(repr=False)
    """What comes, where nothing is sent."""
    edges: Edges = field(repr=False)
    which: int = 0
    """Its number among those that were under way when it was started."""


class Exchanging(Agreeing):
    """The exchanges of a :class:`Communicator`."""

    def __init__(self, division: Division) -> None:
        super().__init__(division)
        self._edges: dict[Any, Edges] = {}
        self._open: set[int] = set()
        """Which exchanges the program has started and not finished."""

    def halo(self, x: Any, widths: int | tuple[int, int], axis: int, periodic: bool = False) -> Any:
        """``x`` with the edges of the neighbouring parts before and after it along ``axis``, in a new array.

        Corners come by a second exchange, of the result: ``comm.halo(comm.halo(x, 1, 0), 1, 1)``.

        Parameters
        ----------
        x
            The part of this rank.
        widths
            How many rows of each neighbour: one number, or two, ``(before, after)``.
        axis
            Along which; one that is not divided has its own ends as neighbours.
        periodic
            Whether the last part is the neighbour of the first. Else zeros stand where the domain ends.

        Returns
        -------
        An array that is ``before + after`` longer along ``axis``; its middle is ``x``.

        Raises
        ------
        PartError
            Where a part is shorter than a width.
        MismatchError
            Where another rank communicates something else.
        RankError
            Where another rank has failed. Both may come from every communication.
        """
        return self._exchanged(x, ("halo", widths, axis, periodic, False))

    def fill(self, x: Any, widths: int | tuple[int, int], axis: int, periodic: bool = False) -> Any:
        """``x``, into whose first and last rows along ``axis`` the edges of the neighbouring parts are written.

        For arrays that have room for them from the beginning, ``whole[comm.slices(whole.shape, widths)]``: nothing else
        of the array is copied, so this is the fastest exchange. It writes as ``x[:1] = ...`` does, and the room of a
        gradient is zero where what stood there was overwritten. Corners come by a second exchange, along another axis.

        Parameters
        ----------
        x
            The part of this rank, ``before`` rows longer where there is a rank before, and ``after`` rows where there
            is one after. Along an axis that is not divided there is room only if it is ``periodic``.
        widths, axis, periodic
            As of :meth:`halo`; where the domain ends nothing is written, so rows of a boundary condition there are the
            program's own.

        Returns
        -------
        ``x`` itself.

        Raises
        ------
        PartError
            Where a part is shorter than a width, not counting the room.
        ConversionError
            For a plain array in a trace, which cannot hold what is traced: make it of a traced one, as
            ``np.zeros_like(c)``.
        """
        return self._exchanged(x, ("fill", widths, axis, periodic, True))

    def start(
        self, x: Any, widths: int | tuple[int, int], axis: int, periodic: bool = False, *, room: bool = False
    ) -> Started:
        """The exchange of :meth:`halo`, on its way: compute what needs no edges, then :meth:`finish` it.

        So does the reverse pass: what was computed between the two is pulled back while the edges go back. With
        ``room`` it is that of :meth:`fill`: the rows that travel are those of now, the edges are written by ``finish``.
        """
        edges = self._edges_of(x, ("start", widths, axis, periodic, room))
        token, which = edges.rows_of(x), least_free(self._open)
        if edges.route is not None:
            token = primitives.start(token, via=edges.route, kind="start", which=which, division=self._division)
        elif token is not None:
            token = token.copy()  # ``x`` may be written to
        self._open.add(which)
        return Started(x, token, edges, which)

    def finish(self, started: Started) -> Any:
        """What :meth:`halo`, or :meth:`fill`, gives, of an exchange that was started in the same step. Once for each;
        of several under way in the same order on every rank, which is that of the reverse pass."""
        edges, came, which = started.edges, started.token, started.which
        if edges.route is not None:
            came = primitives.finish(came, via=edges.route, kind="start", which=which, division=self._division)
        self._open.discard(which)
        return edges.put(came, started.x)

    def _exchanged(self, x: Any, asked: tuple[Any, ...]) -> Any:
        edges = self._edges_of(x, asked)
        came = edges.rows_of(x)
        if edges.route is not None:
            came = primitives.swap(came, via=edges.route, kind="halo")
        return edges.put(came, x)

    def _edges_of(self, x: Any, asked: tuple[Any, ...]) -> Edges:
        """The edges for what is asked of such an array: the fields of :class:`Asked`."""
        self._take(x, asked[0])
        key = getattr(x, "shape", None), getattr(x, "dtype", None), asked
        found = self._edges.get(key)
        if found is None:
            try:
                found = self._edges[key] = new_edges(self._channel, self._grid, x, Asked(*asked))
            except PartError as error:
                self._channel.refuse(error)
        return found
