"""Values computed again when they are needed, and dropped by a score where there is no room: for programs too large to
search.

What comes is known here, so a score may ask when a value is read next. Several are tried, and the cheapest way taken.
"""

from array import array
from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from attrs import define, field

from pullback.scheduling.graphs.fixed_order import COMPUTE, EVENT, KINDS, FixedOrder, drops_of, members

Score: TypeAlias = Callable[["Way", int], float]
"""The score of a value: the least is dropped first."""


class NoRoomError(Exception):
    """A way ends: nothing more can be dropped."""


class DearerError(Exception):
    """A way ends: another costs no more."""


@define(eq=False)
class Way:
    """A way through the events, as far as it has come."""

    problem: FixedOrder
    resident: int
    score: Score
    below: float = float("inf")
    """What it may cost, at most."""
    way: "array[int]" = field(factory=lambda: array("q"))
    k: int = 0
    cost: float = 0.0
    next_read: list[list[int]] = field(init=False)
    """The events that read each value, the last first."""

    def __attrs_post_init__(self) -> None:
        self.next_read = [[] for _ in self.problem.sizes]
        for k in range(len(self.problem.events) - 1, -1, -1):
            for v in members(self.problem.events[k].needs):
                self.next_read[v].append(k)

    def finished(self) -> "Way":
        """The run, through all events; raises :class:`NoRoomError`, and :class:`DearerError` where it costs ``below``
        or more."""
        for k, event in enumerate(self.problem.events):
            self.k = k
            self._compute(event.needs)
            self._fit(event.needs, event.lives | event.makes, event.during)
            self.way.append(KINDS * k + EVENT)
            self.resident |= event.makes
            for v in members(event.needs):
                while self.next_read[v] and self.next_read[v][-1] <= k:
                    self.next_read[v].pop()
            self._drop(self.resident & ~self.problem.useful[k + 1])
        return self

    def _compute(self, needs: int) -> None:
        """What is missing of ``needs``, and what it comes from, in order; what is read on the way stays that long."""
        problem, event = self.problem, self.problem.events[self.k]
        there = self.resident | event.lives
        missing = self.missing(needs, there)
        order = list(members(missing))
        held = [needs & (there | missing)]
        for v in reversed(order):
            held.append((held[-1] | problem.reads[v]) & ~(1 << v))
        for v in order:
            held.pop()
            self._fit(held[-1] | problem.reads[v], event.lives | 1 << v, event.before + problem.extras[v])
            self.resident |= 1 << v
            self.way.append(KINDS * v + COMPUTE)
            self.cost += problem.costs[v]
        if self.cost >= self.below:
            raise DearerError

    def missing(self, needs: int, there: int) -> int:
        """What has to be computed for ``needs`` where these values are there."""
        found, todo = 0, needs & ~there
        while todo:
            found |= todo
            reads = 0
            for v in members(todo):
                reads |= self.problem.reads[v]
            todo = reads & ~there & ~found
        return found

    def _fit(self, kept: int, besides: int, others: int) -> None:
        problem = self.problem
        sizes = problem.sizes
        over = sum(sizes[v] for v in members(self.resident | besides)) + others - problem.max_bytes
        if over <= 0:
            return
        for v in sorted(members(self.resident & ~kept & ~besides), key=lambda v: self.score(self, v)):
            if over <= 0:
                break
            if sizes[v]:
                self._drop(1 << v)
                over -= sizes[v]
        if over > 0:
            raise NoRoomError

    def _drop(self, mask: int) -> None:
        self.resident &= ~mask
        self.way.extend(drops_of(mask))


def again_cost(run: Way, v: int) -> float:
    """What it costs to compute a value again, once it is gone."""
    costs = run.problem.costs
    return sum(costs[u] for u in members(run.missing(1 << v, run.resident & ~(1 << v))))


def per_byte(run: Way, v: int) -> float:
    """The cost of a byte."""
    return again_cost(run, v) / run.problem.sizes[v] if run.problem.sizes[v] else float("inf")


def until_read(run: Way, v: int) -> float:
    """How far the next event is that reads it."""
    reads = run.next_read[v]
    return float(reads[-1] - run.k + 1) if reads else float(len(run.problem.events) + 1)


def by_both(power: float) -> Score:
    """The cost of a byte, less where the value is read late."""
    return lambda run, v: per_byte(run, v) / until_read(run, v) ** power


SCORES: Final[tuple[Score, ...]] = (*map(by_both, (0.5, 1.0, 0.7, 1.5)), per_byte, lambda run, v: -until_read(run, v))
"""The first is in general the best, or near it; the others then end soon, as dearer ways do."""


def on_demand(problem: FixedOrder, resident: int) -> Iterator[tuple[float, "array[int]"]]:
    """Ways that fit, each with its cost, less than that of those before it: from the values that are resident, or else
    with none of them."""
    found, least = False, float("inf")
    for start in (resident, 0):
        for score in () if found else SCORES:
            used = start & problem.useful[0]
            run = Way(problem, used, score, least, array("q", drops_of(resident & ~used)))
            try:
                run.finished()
            except (NoRoomError, DearerError):
                continue
            found, least = True, run.cost
            yield run.cost, run.way
