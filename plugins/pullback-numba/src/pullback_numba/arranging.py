"""The order in which a function does its work: which calls go into nests, and where these stand."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
from attrs import define, field

from pullback.backends import Kernel, Plan, Value
from pullback_numba.compiling import flags, kernel_of
from pullback_numba.nests import Nest, loaded, nests_of, touch
from pullback_numba.operations import Operation, operations_of

MOST = 48
"""Operations of one nest: a longer one takes long to compile, and no processor has registers for it."""


@define(eq=False)
class _Group:
    """Calls that follow one another and fit into nests."""

    calls: list[tuple[Operation, ...]] = field(factory=list)

    @property
    def operations(self) -> list[Operation]:
        return [op for ops in self.calls for op in ops]

    def admits(self, ops: tuple[Operation, ...], plan: Plan, *, first: bool = False) -> bool:
        """Whether a call fits behind the others, or before them."""
        calls = [ops, *self.calls] if first else [*self.calls, ops]
        found = [op for each in calls for op in each]
        return len(found) <= MOST and not (plan.warns and loaded(found)) and nests_of(found) is not None


def arrange(plan: Plan) -> Sequence[int | Kernel]:
    """The backend: sums, products, quotients and in-place sums of large arrays on slices with steps of one, in loop
    nests that numba compiles.

    Parameters
    ----------
    plan
        What a generated function calls, see :class:`pullback.backends.Plan`.

    Returns
    -------
    The order of the calls, with kernels in the places of those that they compute.

    Raises
    ------
    Nothing: what no nest can compute stays a NumPy call.

    Example
    -------
    >>> import numpy as np
    >>> import pullback as pb
    >>> f = lambda x: np.sum(pb.fori_loop(0, 50, lambda k, u: u + 0.1 * u * u, x, staging="numba"))
    >>> pb.grad(f)(np.zeros(2))
    array([1., 1.])
    """
    if plan.warns and not flags():  # nobody could say when NumPy would warn
        return range(len(plan.calls))
    items = _grouped(plan)
    for before, after in pairwise(items):
        if isinstance(before, _Group) and isinstance(after, _Group):
            _sink(before, after, plan)
    order: list[int | Nest] = []
    for item in items:
        if isinstance(item, int):
            order.append(item)
            continue
        for nest in nests_of(item.operations) or ():
            order += [nest] if len(nest.operations) > 1 else nest.calls
    return _Written(plan).all(order)


def _grouped(plan: Plan) -> list[int | _Group]:
    items: list[int | _Group] = []
    last: _Group | None = None
    read = {n for call in plan.calls for n in call.reads} | set(plan.leaves)
    for place, call in enumerate(plan.calls):
        if call.kind == "view":
            continue
        if call.ordered:
            last = None
            items.append(place)
            continue
        ops = operations_of(plan, place) if call.makes in read else ()
        if ops and last is not None and last.admits(ops, plan):
            last.calls.append(ops)
        elif ops and _Group().admits(ops, plan):
            last = _Group([ops])
            items.append(last)
        elif last is not None and _free(plan, place, last.operations):
            items.insert(-1, place)
        else:
            last = None
            items.append(place)
    return items


def _free(plan: Plan, place: int, operations: list[Operation]) -> bool:
    """Whether a call that stays NumPy's can be made before these operations."""
    call = plan.calls[place]
    values = [plan.values[n] for n in (*call.reads, call.makes)]
    if call.detaches or any(value.memory is None and _may_share(value) for value in values):
        return False
    reads, writes = {value.memory for value in values[:-1]} - {None}, {values[-1].memory} - {None}
    read = {x.memory for op in operations for x in op.reads}
    written = {op.target.memory for op in operations}
    return not (reads & written or writes & (read | written))


def _may_share(value: Value) -> bool:
    """Whether a value whose memory is not known may look at that of others."""
    return not issubclass(value.type, np.generic | float | int | complex | str | bytes)


def _sink(before: _Group, after: _Group, plan: Plan) -> None:
    """The last calls of one group go into the next where they share arrays with it, and so need not be stored."""
    shared = {op.target.memory for op in after.operations}
    shared |= {x.memory for op in after.operations for x in op.reads}
    for ops in reversed(before.calls[:]):
        behind = [op for each in before.calls[before.calls.index(ops) + 1 :] for op in each]
        touched = {op.target.memory for op in ops} | {x.memory for op in ops for x in op.reads}
        if any(touch(a, b) for a in ops for b in behind) or not touched & shared:
            continue
        if after.admits(ops, plan, first=True):
            before.calls.remove(ops)
            after.calls.insert(0, ops)
            shared |= touched


@define(eq=False)
class _Written:
    """Calls and nests as items of the answer; views stand where they are read first."""

    plan: Plan
    done: set[int] = field(factory=set)
    makers: dict[int, int] = field(factory=dict)

    def all(self, order: list[int | Nest]) -> list[int | Kernel]:
        plan = self.plan
        items: list[int | Kernel] = []
        self.makers = {call.makes: place for place, call in enumerate(plan.calls)}
        for item in order:
            if isinstance(item, Nest):
                items.append(self.kernel(item))
            else:
                call = plan.calls[item]
                items += [*self.views((*call.reads, *call.detaches)), item]
        return [*items, *self.views(plan.leaves)]

    def views(self, numbers: Iterable[int], *, final: bool = True) -> list[int]:
        """The views among some values that are not there yet, with those that they are views of."""
        found: list[int] = []
        todo = list(numbers)
        while todo:
            place = self.makers.get(todo.pop())
            if place is None or place in self.done or place in found or self.plan.calls[place].kind != "view":
                continue
            found.append(place)
            todo += self.plan.calls[place].reads
        if final:
            self.done.update(found)
        return sorted(found)

    def kernel(self, nest: Nest) -> Kernel:
        plan, calls = self.plan, nest.calls
        made = {plan.calls[place].makes for place in calls}
        views = self.views({n for place in calls for n in plan.calls[place].reads}, final=False)
        stored = _stored(plan, nest, made)
        untouched = {n for n in made if plan.values[n].memory not in stored}
        places = tuple(sorted((*calls, *views)))
        return kernel_of(plan, nest, places, stored, frozenset(untouched))


def _stored(plan: Plan, nest: Nest, made: set[int]) -> set[str]:
    """The arrays of a nest that have to be in memory: what is read outside, what was there before, and, where NumPy may
    have to warn, what is not read at every point at which it is computed."""
    looks = set(made)
    for call in plan.calls:
        if call.kind == "view" and looks & set(call.reads):
            looks.add(call.makes)
    inside = {plan.calls[place].makes for place in nest.calls}
    outside = set(plan.leaves)
    for call in plan.calls:
        if call.kind != "view" and call.makes not in inside:
            outside.update((*call.reads, *call.detaches))
    stored = {str(plan.values[n].memory) for n in looks & outside} | nest.loaded
    if plan.warns:
        stored |= {op.target.memory for k, op in enumerate(nest.operations) if not _is_read_at_once(nest, k)}
    return stored


def _is_read_at_once(nest: Nest, k: int) -> bool:
    """Whether the first operation that reads what one writes does so wherever that is computed."""
    memory = nest.operations[k].target.memory
    for j in range(k + 1, len(nest.operations)):
        if any(x.memory == memory for x in nest.operations[j].reads):
            return nest.box(j) == nest.box(k)
        if nest.operations[j].target.memory == memory:
            return False
    return False
