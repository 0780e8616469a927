"""Which operations become one loop nest.

A nest runs over points p of a box. Each operation has a shift t and works on its element ``p + t`` at point p. The rule
that makes a nest right:

    Of every array that a nest writes, each element is touched at one point only, by all operations of the nest.

Then the operations of one point see what they would see in the order of the calls, and points do not depend on one
another: they may come in any order. As ``p + t + starts`` is the element that an operation touches, the rule says that
``t + starts`` is the same for all accesses to such an array. These equations have at most one solution up to a shift of
the whole; an operation whose equation contradicts them is left to another nest.
"""

from collections.abc import Iterable

from attrs import define, field

from pullback_numba.operations import Access, Operation, Spread

Shift = tuple[int, ...]

MOSTLY = 0.5
"""The part of a nest's points at which all operations have to work: the others are slow."""


def plus(a: Shift, b: Shift) -> Shift:
    """A shift by both."""
    return tuple(x + y for x, y in zip(a, b, strict=True))


def _minus(a: Shift, b: Shift) -> Shift:
    return tuple(x - y for x, y in zip(a, b, strict=True))


@define(eq=False)
class Nest:
    """Operations in their order, with the shift of each."""

    operations: list[Operation] = field(factory=list)
    shifts: list[Shift] = field(factory=list)

    @property
    def calls(self) -> list[int]:
        """Places of the calls."""
        return list(dict.fromkeys(op.call for op in self.operations))

    @property
    def written(self) -> set[str]:
        """The arrays that it writes."""
        return {op.target.memory for op in self.operations}

    @property
    def read(self) -> set[str]:
        """The arrays that it reads."""
        return {x.memory for op in self.operations for x in op.reads}

    @property
    def loaded(self) -> set[str]:
        """The arrays that it writes, and of which it needs what was there before."""
        return loaded(self.operations)

    def extents(self, memory: str) -> tuple[tuple[int, int], ...]:
        """The points at which there are elements of an array that is written."""
        whole = next(op.whole for op in self.operations if op.target.memory == memory)
        return tuple((-at, extent - at) for at, extent in zip(self.place(memory), whole, strict=True))

    def box(self, k: int) -> tuple[tuple[int, int], ...]:
        """The points at which an operation works, along each axis."""
        op, shift = self.operations[k], self.shifts[k]
        return tuple((-t, extent - t) for t, extent in zip(shift, op.shape, strict=True))

    @property
    def union(self) -> tuple[tuple[int, int], ...]:
        """The points of the nest."""
        boxes = [self.box(k) for k in range(len(self.operations))]
        return tuple((min(a for a, _ in axis), max(b for _, b in axis)) for axis in zip(*boxes, strict=True))

    @property
    def interior(self) -> tuple[tuple[int, int], ...]:
        """The points at which all operations work."""
        boxes = [self.box(k) for k in range(len(self.operations))]
        return tuple((max(a for a, _ in axis), min(b for _, b in axis)) for axis in zip(*boxes, strict=True))

    def place(self, memory: str) -> Shift:
        """Which element of an array that is written is touched at the point 0."""
        for op, shift in zip(self.operations, self.shifts, strict=True):
            for access in (op.target, *op.reads):
                if access.memory == memory:
                    assert isinstance(access, Access)
                    return plus(shift, access.starts)
        raise KeyError(memory)


def loaded(operations: Iterable[Operation]) -> set[str]:
    """Those of the arrays that operations write of which they need what was there before."""
    ops = list(operations)
    known: set[str] = set()
    found: set[str] = set()
    for op in ops:
        found |= {x.memory for x in op.reads} - known
        if op.full:
            known.add(op.target.memory)
        elif op.target.memory not in known:
            found.add(op.target.memory)
    return found & {op.target.memory for op in ops}


def nests_of(operations: Iterable[Operation]) -> list[Nest] | None:
    """Nests of all the operations, one for each group that is tied by an array which is written; None where they do not
    fit into such nests."""
    ops = list(operations)
    if len({len(op.shape) for op in ops}) > 1:
        return None
    written = {op.target.memory for op in ops}
    ties: dict[int, list[tuple[int, Shift]]] = {k: [] for k in range(len(ops))}
    first: dict[str, tuple[int, Shift]] = {}
    for k, op in enumerate(ops):
        for access in (op.target, *op.reads):
            if access.memory not in written:
                continue
            if isinstance(access, Spread):
                return None
            j, starts = first.setdefault(access.memory, (k, access.starts))
            # t_k + starts_k = t_j + starts_j
            ties[j].append((k, _minus(starts, access.starts)))
            ties[k].append((j, _minus(access.starts, starts)))
    shifts: dict[int, Shift] = {}
    found = []
    for start in range(len(ops)):
        if start in shifts:
            continue
        shifts[start] = (0,) * len(ops[start].shape)
        group, todo = [start], [start]
        while todo:
            k = todo.pop()
            for j, difference in ties[k]:
                wanted = plus(shifts[k], difference)
                if j not in shifts:
                    shifts[j] = wanted
                    group.append(j)
                    todo.append(j)
                elif shifts[j] != wanted:
                    return None
        group.sort()
        nest = Nest([ops[k] for k in group], [shifts[k] for k in group])
        if not _mostly_inner(nest):
            return None
        found.append(_at_zero(nest))
    return found


def _mostly_inner(nest: Nest) -> bool:
    """Whether all operations work at most of the points."""
    inner = outer = 1
    for (a, b), (c, d) in zip(nest.interior, nest.union, strict=True):
        inner *= max(b - a, 0)
        outer *= d - c
    return inner > 0 and inner >= MOSTLY * outer


def _at_zero(nest: Nest) -> Nest:
    """The same with its first point at 0."""
    first = tuple(a for a, _ in nest.union)
    return Nest(nest.operations, [plus(shift, first) for shift in nest.shifts])


def touch(a: Operation, b: Operation) -> bool:
    """Whether the order of two operations has to be kept: one writes what the other touches."""
    reads_a, reads_b = ({x.memory for x in op.reads} for op in (a, b))
    return a.target.memory in reads_b | {b.target.memory} or b.target.memory in reads_a
