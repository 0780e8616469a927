"""The true optimum of a short chain: every schedule is looked at, best first, also those that drop what they kept."""

from collections.abc import Iterator
from typing import TypeAlias

from attrs import define

from pullback.scheduling.graphs.best_first import Found, cheapest, smallest_sets
from pullback.scheduling.graphs.chain_machine import BWD, DROP, DROP_TAPE, FWD, LOSS, TAPE, Chain, Stage

State: TypeAlias = tuple[int, int, int]
"""Masks of the resident x and tapes, and the i of the live cotangent, L + 1 before the loss."""
Move: TypeAlias = tuple[float, State, tuple[Stage, ...]]


@define(eq=False)
class ChainProblem:
    """What may be done next, within ``max_bytes``."""

    chain: Chain
    max_bytes: int

    def moves(self, state: State) -> Iterator[Move]:
        """Running a stage with or without its tape, the loss, a stage back."""
        chain, (plain, tapes, at) = self.chain, state
        last = chain.n
        for i in range(1, min(at, last) + 1):
            source = i - 1
            if not (plain | tapes) >> source & 1:
                continue
            if not plain >> i & 1 and i < at:
                yield from self._run(state, Stage(FWD, i), chain.a[i] + chain.of[i - 1], (1 << i, 0))
            if not tapes >> i & 1:
                yield from self._run(state, Stage(TAPE, i), chain.abar[i - 1] + chain.of[i - 1], (0, 1 << i))
        if at > last:
            if (plain | tapes) >> last & 1:
                yield from self._loss(state)
        elif tapes >> at & 1 and (plain | tapes) >> at - 1 & 1:
            yield from self._back(state)

    def bound(self, state: State) -> float:
        """The stages that are left to go back, and the tapes of these that are missing."""
        chain, (_, tapes, at) = self.chain, state
        left = range(1, min(at, chain.n) + 1)
        return sum(chain.ub[i - 1] + (0 if tapes >> i & 1 else chain.uf[i - 1]) for i in left)

    def is_goal(self, state: State) -> bool:
        """The cotangent of x_0 is there."""
        return state[2] == 0

    def _held(self, state: State) -> int:
        chain, (plain, tapes, at) = self.chain, state
        held = sum(size for i, size in enumerate(chain.a) if plain >> i & 1)
        held += sum(size for i, size in enumerate(chain.abar, 1) if tapes >> i & 1)
        return held + (chain.a[at] if at <= chain.n else 0)

    def _room(self, state: State, more: int, source: int, keeps: int = 0) -> Iterator[tuple[tuple[Stage, ...], State]]:
        """What to drop so that ``more`` bytes fit: x_source stays in one of its places, the tape ``keeps`` as well."""
        chain, (plain, tapes, at) = self.chain, state
        wanted = self._held(state) + more - self.max_bytes
        if wanted <= 0:
            yield (), state
            return
        sizes = [(2 * i, chain.a[i]) for i in range(1, chain.n + 1) if plain >> i & 1]
        sizes += [(2 * i + 1, chain.abar[i - 1]) for i in range(1, chain.n + 1) if tapes >> i & 1 and i != keeps]
        for chosen in smallest_sets(sizes, wanted):
            left = (
                plain & ~sum(1 << name // 2 for name in chosen if name % 2 == 0),
                tapes & ~sum(1 << name // 2 for name in chosen if name % 2),
                at,
            )
            if (left[0] | left[1]) >> source & 1:
                yield tuple(Stage(DROP_TAPE if name % 2 else DROP, name // 2) for name in chosen), left

    def _run(self, state: State, step: Stage, more: int, made: tuple[int, int]) -> Iterator[Move]:
        for drops, (plain, tapes, at) in self._room(state, more, step.stage - 1):
            yield self.chain.uf[step.stage - 1], (plain | made[0], tapes | made[1], at), (*drops, step)

    def _loss(self, state: State) -> Iterator[Move]:
        last = self.chain.n
        step = Stage(LOSS, last)
        if state[0] >> last & 1:  # its place is taken by the cotangent
            yield self._moved(0.0, (step,), (state[0] & ~(1 << last), state[1], last))
            return
        for drops, (plain, tapes, _) in self._room(state, self.chain.a[last], last):
            yield self._moved(0.0, (*drops, step), (plain, tapes, last))

    def _back(self, state: State) -> Iterator[Move]:
        chain, at = self.chain, state[2]
        freed = chain.a[at] + chain.abar[at - 1] + (chain.a[at - 1] if state[0] >> at - 1 & 1 else 0)
        more = max(chain.ob[at - 1], chain.a[at - 1] - freed)
        for drops, (plain, tapes, _) in self._room(state, more, at - 1, at):
            after = plain & ~(1 << at - 1), tapes & ~(1 << at), at - 1
            yield self._moved(chain.ub[at - 1], (*drops, Stage(BWD, at)), after)

    def _moved(self, cost: float, steps: tuple[Stage, ...], state: State) -> Move:
        """What the cotangent has left behind is dropped."""
        plain, tapes, at = state
        idle = [Stage(DROP, i) for i in range(max(at, 1), self.chain.n + 1) if plain >> i & 1]
        idle += [Stage(DROP_TAPE, i) for i in range(at + 1, self.chain.n + 1) if tapes >> i & 1]
        low = (1 << at) - 1
        return cost, (plain & (low | 1), tapes & (low << 1 | 1), at), (*steps, *idle)


def best_chain_of_all(chain: Chain, max_bytes: int, most_states: int) -> Found:
    """The cheapest schedule within ``max_bytes``; ``done`` holds a tuple of steps for each move."""
    if chain.a[0] > max_bytes:
        return Found(float("inf"), None, complete=True)
    return cheapest(ChainProblem(chain, max_bytes), (1, 0, chain.n + 1), most_states)
