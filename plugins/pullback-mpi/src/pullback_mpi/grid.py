"""How a domain is divided: which axes, into how many parts, which of them a rank has, and who its neighbours are.

Ranks are numbered in C order over the grid of parts, as those of MPI's own Cartesian communicators are.
"""

from collections.abc import Sequence
from math import prod

from attrs import field, frozen

from pullback_mpi.errors import PartError

Slices = tuple[slice, ...]


@frozen
class Grid:
    """The parts along each divided axis, and the place of one rank among them."""

    rank: int
    parts: tuple[int, ...]
    axes: tuple[int, ...]
    """The axes of arrays that are divided; negative ones are counted from the end."""
    place: tuple[int, ...] = field(init=False)
    """The place of the rank along each."""

    @place.default
    def _place(self) -> tuple[int, ...]:
        return self.places()[self.rank]

    def places(self) -> list[tuple[int, ...]]:
        """The place of every rank."""
        found: list[tuple[int, ...]] = [()]
        for n in self.parts:
            found = [(*place, k) for place in found for k in range(n)]
        return found

    def direction(self, axis: int, ndim: int) -> int | None:
        """Which of the divided axes an axis of an array is; None where it is not divided."""
        if not -ndim <= axis < ndim:
            raise PartError(f"axis={axis} is no axis of an array of {ndim}; give one from 0 to {ndim - 1}")
        found = [k for k, own in enumerate(self.axes) if _counted(own, ndim) == axis % ndim]
        return found[0] if found else None

    def neighbours(self, direction: int, *, periodic: bool) -> tuple[int | None, int | None]:
        """The ranks before and after along a divided axis; None where the domain ends."""
        stride = prod(self.parts[direction + 1 :])
        n, k = self.parts[direction], self.place[direction]
        before: int | None = self.rank - stride
        after: int | None = self.rank + stride
        if k == 0:
            before = self.rank + (n - 1) * stride if periodic else None
        if k == n - 1:
            after = self.rank - (n - 1) * stride if periodic else None
        return before, after

    def slices(self, shape: Sequence[int], widths: tuple[int, int] = (0, 0)) -> Slices:
        """The part of the rank of a whole of this shape: as even as can be, larger parts first; with so many rows of
        the part before and of the one after along each divided axis."""
        cuts = [slice(0, n) for n in shape]
        for axis, n, k in zip(self.axes, self.parts, self.place, strict=True):
            length = shape[_counted(axis, len(shape))]
            if length < n:
                raise PartError(
                    f"an axis of {length} cannot be divided into {n} parts (axis {axis} of shape {tuple(shape)}): "
                    "take fewer parts along it"
                )
            each, more = divmod(length, n)
            first = k * each + min(k, more)
            last = first + each + (k < more)
            cuts[_counted(axis, len(shape))] = slice(max(first - widths[0], 0), min(last + widths[1], length))
        return tuple(cuts)

    def tiled(self, shapes: Sequence[tuple[int, ...]]) -> tuple[tuple[int, ...], list[Slices]]:
        """The shape of the whole that parts of these shapes make, one for each rank, and where each of them lies."""
        whole, places = list(shapes[0]), self.places()
        cuts: list[list[slice]] = [[slice(0, n) for n in whole] for _ in shapes]
        for direction, axis in enumerate(self.axes):
            at = _counted(axis, len(whole))
            lengths: list[int] = [0] * self.parts[direction]
            for place, shape in zip(places, shapes, strict=True):
                lengths[place[direction]] = shape[at]
            ends = [sum(lengths[: k + 1]) for k in range(len(lengths))]
            whole[at] = ends[-1]
            for place, cut in zip(places, cuts, strict=True):
                k = place[direction]
                cut[at] = slice(ends[k] - lengths[k], ends[k])
        for rank, (shape, cut) in enumerate(zip(shapes, cuts, strict=True)):
            if shape != tuple(s.stop - s.start for s in cut):
                raise PartError(
                    f"parts of shapes {sorted(set(shapes))} make no whole on a grid of {self.parts}: that of rank "
                    f"{rank} is {shape}; parts that lie side by side must have the same length along every other axis"
                )
        return tuple(whole), [tuple(cut) for cut in cuts]


def _counted(axis: int, ndim: int) -> int:
    """An axis counted from the beginning."""
    if not -ndim <= axis < ndim:
        raise PartError(
            f"an array of {ndim} axes has no axis {axis}, which is divided; give axes=(-2, -1) to count "
            "the divided axes from the end"
        )
    return axis % ndim
