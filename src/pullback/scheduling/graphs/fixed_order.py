"""The cheapest way through a fixed order of events, computing values again on the way, within a number of bytes.

An event reads values (``needs``) and may make one (``makes``). Between events any value may be computed from what it
reads, and any may be dropped. Pullbacks of a recorded program are such events: cotangents are added in one order, or
the bits would change. Sets of values are masks.
"""

from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

from attrs import define, field, frozen

from pullback.scheduling.graphs.best_first import INFINITE, Found, cheapest, smallest_sets

State: TypeAlias = tuple[int, int]
"""The resident values, and how many events are over."""
COMPUTE: Final = 0
DROP: Final = 1
EVENT: Final = 2
MOST_STATES: Final = 100_000
KINDS: Final = 3
"""A step of a way is one number, since ways are long: ``KINDS`` times the value or the event, and what is done."""


@frozen
class Event:
    """What has to be done next."""

    needs: int = 0
    makes: int = 0
    lives: int = 0
    """Values that somebody else holds until it is over: dropping them frees nothing."""
    before: int = 0
    """Bytes of all that is no value, until it comes."""
    during: int = 0
    """Bytes of all that is no value, while it comes."""


@define(eq=False)
class FixedOrder:
    """The values, ``sizes`` and ``costs`` of each, what each ``reads`` (a mask), what it takes besides while it is
    computed (``extras``), and the events."""

    sizes: list[int]
    costs: list[float]
    reads: list[int]
    extras: list[int]
    events: list[Event]
    max_bytes: int
    again_from: int = 0
    """Values are computed again from this event on."""
    wanted: list[int] = field(init=False)
    """What it or a later one reads, by event."""
    useful: list[int] = field(init=False)
    """The values that are wanted, and all that they come from, by event."""
    made: list[int] = field(init=False)
    """The values that neither it nor a later one makes, by event."""
    ancestors: list[int] = field(init=False)
    _sums: dict[int, int] = field(factory=dict)
    _bounds: dict[int, float] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self.ancestors = []
        for v, mask in enumerate(self.reads):
            self.ancestors.append(1 << v)
            for u in members(mask):
                self.ancestors[v] |= self.ancestors[u]
        n, all_values = len(self.events), (1 << len(self.sizes)) - 1
        self.wanted, self.useful, self.made = [0] * (n + 1), [0] * (n + 1), [all_values] * (n + 1)
        for k in range(n - 1, -1, -1):
            event = self.events[k]
            self.wanted[k] = self.wanted[k + 1] & ~event.makes | event.needs
            self.useful[k] = self.useful[k + 1] & ~event.makes
            for v in members(event.needs):
                self.useful[k] |= self.ancestors[v]
            self.made[k] = self.made[k + 1] & ~event.makes
            self.useful[k] &= self.made[k]

    def moves(self, state: State) -> Iterator[tuple[float, State, tuple[int, ...]]]:
        """The next event, and what may be computed before it."""
        resident, k = state
        event = self.events[k]
        there = resident | event.lives
        if event.needs & ~there == 0:
            for drops, left in self._room(resident, event.needs, event.lives | event.makes, event.during):
                after, useful = left | event.makes, self.useful[k + 1]
                done = *drops, KINDS * k + EVENT, *drops_of(after & ~useful)
                yield 0.0, (after & useful, k + 1), done
        if k < self.again_from:
            return
        for v in members(self.useful[k] & ~there):
            if self.reads[v] & ~there == 0:
                for drops, left in self._room(
                    resident, self.reads[v], event.lives | 1 << v, event.before + self.extras[v]
                ):
                    yield self.costs[v], (left | 1 << v, k), (*drops, KINDS * v + COMPUTE)

    def _room(self, resident: int, kept: int, besides: int, others: int) -> Iterator[tuple[tuple[int, ...], int]]:
        """What to drop so that the resident values, those ``besides`` and ``others`` bytes fit, and what stays."""
        wanted = self.bytes_of(resident | besides) + others - self.max_bytes
        if wanted <= 0:
            yield (), resident
            return
        for chosen in smallest_sets([(v, self.sizes[v]) for v in members(resident & ~kept & ~besides)], wanted):
            yield tuple(KINDS * v + DROP for v in chosen), resident & ~sum(1 << v for v in chosen)

    def bound(self, state: State) -> float:
        """What is read later and is not there, once each."""
        resident, k = state
        missing = self.wanted[k] & self.made[k] & ~resident
        if k < len(self.events):
            missing &= ~self.events[k].lives
        found = self._bounds.get(missing)
        if found is None:
            found = self._bounds[missing] = sum(self.costs[v] for v in members(missing))
        return found

    def is_goal(self, state: State) -> bool:
        """All events are over."""
        return state[1] == len(self.events)

    def bytes_of(self, mask: int) -> int:
        """Bytes of the values of a mask."""
        found = self._sums.get(mask)
        if found is None:
            found = self._sums[mask] = sum(self.sizes[v] for v in members(mask))
        return found

    def cost_of(self, way: Iterable[int]) -> float:
        """The cost of what is computed again."""
        return sum(self.costs[step // KINDS] for step in way if step % KINDS == COMPUTE)


def members(mask: int) -> Iterator[int]:
    """The values of a mask."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def drops_of(mask: int) -> Iterator[int]:
    """Steps that drop these values."""
    return (KINDS * v + DROP for v in members(mask))


def best_of_order(problem: FixedOrder, resident: int, most_met: float, below: float = INFINITE) -> Found:
    """The cheapest way from these resident values that costs less than ``below``, where no more than ``most_met``
    states have to be met to find it."""
    return cheapest(problem, (resident & problem.useful[0], 0), MOST_STATES, below=below, most_met=most_met)
