"""The cheapest way from a state to a goal, best first: A* with a bound that never exceeds what is left."""

import heapq
from collections.abc import Hashable, Iterable
from itertools import count
from typing import Any, Final, Protocol, TypeVar

from attrs import frozen

S = TypeVar("S", bound=Hashable)
INFINITE: Final = float("inf")


class Problem(Protocol[S]):
    """States, what leads from one to the next, and a consistent lower bound of the cost that is left."""

    def moves(self, state: S) -> Iterable[tuple[float, S, Any]]:
        """(cost, next state, what was done) for everything that may be done."""

    def bound(self, state: S) -> float:
        """No more than the least cost from here; infinite where there is no way."""

    def is_goal(self, state: S) -> bool:
        """Whether nothing is left to do."""


@frozen
class Found:
    """What was done, first to last, and its cost; ``None`` where there is no way. ``complete``: all was looked at."""

    cost: float
    done: tuple[Any, ...] | None
    complete: bool


def cheapest(
    problem: Problem[S], start: S, most_states: int, *, below: float = INFINITE, most_met: float = INFINITE
) -> Found:
    """The cheapest way, or none within ``most_states`` states looked at and ``most_met`` met; none either where it does
    not cost less than ``below``."""
    numbers = count()
    least: dict[S, float] = {start: 0.0}
    came: dict[S, tuple[S, Any]] = {}
    heap = [(problem.bound(start), next(numbers), start)]
    closed: set[S] = set()
    while heap and len(closed) < most_states and len(least) < most_met:
        _, _, state = heapq.heappop(heap)
        if state in closed:
            continue
        if problem.is_goal(state):
            return Found(least[state], _way(came, state), complete=True)
        closed.add(state)
        for cost, after, done in problem.moves(state):
            if len(least) >= most_met:
                return Found(INFINITE, None, complete=False)
            total = least[state] + cost
            if after not in closed and total < least.get(after, float("inf")):
                bound = problem.bound(after)
                if total + bound < below:
                    least[after], came[after] = total, (state, done)
                    # of equals the newest first: it is the nearest to the goal
                    heapq.heappush(heap, (total + bound, -next(numbers), after))
    return Found(float("inf"), None, complete=not heap)


def _way(came: dict[S, tuple[S, Any]], state: S) -> tuple[Any, ...]:
    done = []
    while state in came:
        state, what = came[state]
        done.append(what)
    return tuple(reversed(done))


def smallest_sets(sizes: list[tuple[int, int]], wanted: int) -> Iterable[tuple[int, ...]]:
    """The sets of (name, size) that free ``wanted`` bytes, none of which would do with one name less.

    Sizes of nothing are in no set.
    """
    ordered = sorted((pair for pair in sizes if pair[1] > 0), key=lambda pair: -pair[1])
    todo: list[tuple[int, int, tuple[int, ...]]] = [(0, wanted, ())]
    rests = [0]
    for _, size in reversed(ordered):
        rests.append(rests[-1] + size)
    rests.reverse()
    while todo:
        first, left, chosen = todo.pop()
        if left <= 0:
            yield chosen  # the last taken is the smallest: without it, or without a larger one, it would not do
            continue
        for k in range(first, len(ordered)):
            if rests[k] < left:
                break
            todo.append((k + 1, left - ordered[k][1], (*chosen, ordered[k][0])))
