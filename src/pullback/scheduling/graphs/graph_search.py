"""The true optimum of a small graph: every schedule is looked at, best first.

A value is dropped only when something else has no room, so a move is an operation and a smallest set of values to drop
before it: any schedule can be brought to this form at no cost. What nothing needs any more is dropped immediately.
"""

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from attrs import define, field

from pullback.scheduling.graphs.best_first import Found, cheapest, smallest_sets
from pullback.scheduling.graphs.fixed_order import members
from pullback.scheduling.graphs.graph_machine import COMPUTE, DROP, PULL, SEED, Operations, Step

State: TypeAlias = tuple[int, int, bool]
"""Masks of the resident values and of the operations pulled back, and whether the result is seeded."""
Move: TypeAlias = tuple[float, State, tuple[Step, ...]]


@define(eq=False)
class GraphProblem:
    """What may be done next, within ``max_bytes``."""

    graph: Operations
    max_bytes: int
    _useful: dict[tuple[int, bool], int] = field(factory=dict)
    _cotangents: dict[tuple[int, bool], int] = field(factory=dict)
    _wanted: dict[tuple[int, bool], int] = field(factory=dict)

    def moves(self, state: State) -> Iterator[Move]:
        """Computing, seeding, pulling back."""
        graph = self.graph
        resident, pulled, seeded = state
        held, useful = self.cotangents(pulled, seeded), self.useful(pulled, seeded)
        for v in members(useful & ~resident):
            if self._has(resident, graph.po[v]):
                for drops, left in self._room(resident, graph.po[v], held + graph.sz[v]):
                    yield graph.fc[v], (left | 1 << v, pulled, seeded), (*drops, Step(COMPUTE, v))
        if not seeded:
            last = graph.n - 1
            if resident >> last & 1:
                for drops, left in self._room(resident, (last,), held + graph.sz[last]):
                    yield self._moved(0.0, (*drops, Step(SEED, last)), (left, pulled, True))
            return
        for v in graph.pullable(pulled):
            if self._has(resident, graph.so[v]):
                after = pulled | 1 << v
                for drops, left in self._room(resident, graph.so[v], self.cotangents(after, True) + graph.sz[v]):
                    yield self._moved(graph.bc[v], (*drops, Step(PULL, v)), (left, after, True))

    def bound(self, state: State) -> float:
        """The pullbacks that are left, and what they read and is not resident, once each."""
        graph = self.graph
        resident, pulled, seeded = state
        missing = self.wanted(pulled, seeded) & ~resident
        back = sum(graph.bc[v] for v in range(graph.n) if not pulled >> v & 1)
        return back + sum(graph.fc[v] for v in members(missing))

    def is_goal(self, state: State) -> bool:
        """Everything is pulled back."""
        return state[1] == (1 << self.graph.n) - 1

    def wanted(self, pulled: int, seeded: bool) -> int:
        """The values that some pullback reads yet, and the result until it is seeded."""
        key = pulled, seeded
        mask = self._wanted.get(key)
        if mask is None:
            mask = 0 if seeded else 1 << self.graph.n - 1
            for v, saves in enumerate(self.graph.so):
                if not pulled >> v & 1:
                    mask |= sum(1 << u for u in saves)
            self._wanted[key] = mask
        return mask

    def useful(self, pulled: int, seeded: bool) -> int:
        """The values that are wanted, and all that they come from."""
        key = pulled, seeded
        mask = self._useful.get(key)
        if mask is None:
            mask = 0
            for v in members(self.wanted(pulled, seeded)):
                mask |= self.graph.ancestors[v]
            self._useful[key] = mask
        return mask

    def cotangents(self, pulled: int, seeded: bool) -> int:
        """Bytes of the live ones, and of the inputs."""
        key = pulled, seeded
        size = self._cotangents.get(key)
        if size is None:
            size = self.graph.cotangent_bytes(pulled, seeded=seeded) + sum(self.graph.isz)
            self._cotangents[key] = size
        return size

    @staticmethod
    def _has(resident: int, values: Sequence[int]) -> bool:
        return all(resident >> u & 1 for u in values)

    def _room(self, resident: int, kept: Sequence[int], others: int) -> Iterator[tuple[tuple[Step, ...], int]]:
        """What to drop so that the resident values and ``others`` bytes fit, and what is resident then."""
        sizes = self.graph.sz
        held = list(members(resident))
        wanted = sum(sizes[u] for u in held) + others - self.max_bytes
        if wanted <= 0:
            yield (), resident
            return
        for chosen in smallest_sets([(u, sizes[u]) for u in held if u not in kept], wanted):
            yield tuple(Step(DROP, u) for u in chosen), resident & ~sum(1 << u for u in chosen)

    def _moved(self, cost: float, steps: tuple[Step, ...], state: State) -> Move:
        resident, pulled, seeded = state
        idle = resident & ~self.useful(pulled, seeded)
        return cost, (resident & ~idle, pulled, seeded), (*steps, *(Step(DROP, u) for u in members(idle)))


def best_of_all(graph: Operations, max_bytes: int, most_states: int) -> Found:
    """The cheapest schedule within ``max_bytes``; ``done`` holds a tuple of steps for each move."""
    return cheapest(GraphProblem(graph, max_bytes), (0, 0, False), most_states)
