"""Graphs too large to search: cut into blocks, the best schedule of the chain of blocks, then mended value by value.

A cut before operation p keeps what the operations from p on read of the earlier ones, going forward or back. A block
is a stage of a chain (:mod:`pullback.scheduling.graphs.chain_table`); its tape is what its pullbacks read. The sizes of
the chain count a value that several cuts hold once for each, so schedules of larger chains may fit as well: of all that
the table holds, the cheapest that fits, measured by the machine, is taken. Then, where a value is dropped and computed
again and it would have fitted all the while, it stays."""

from collections import Counter
from collections.abc import Iterator
from math import isqrt

import numpy as np
from attrs import define, field

from pullback.scheduling.graphs.chain_machine import DROP as DROP_STATE
from pullback.scheduling.graphs.chain_machine import FWD, LOSS, TAPE, Chain, Stage
from pullback.scheduling.graphs.chain_table import chain_table
from pullback.scheduling.graphs.graph_machine import COMPUTE, DROP, PULL, SEED, GraphMachine, Operations, Step
from pullback.scheduling.graphs.graph_mending import mended, without_unused

SLOTS = 300
MOST_TRIED = 40
"""Schedules of a table that are measured."""
MOST_MENDED = 4
"""Schedules that are mended, of those that fit: a dearer one may then be the better one."""


def best_of_blocks(graph: Operations, max_bytes: int) -> list[Step] | None:
    """The cheapest schedule found that takes no more than ``max_bytes``; None where none does."""
    best, least = None, float("inf")
    for cuts in _partitions(graph):
        for steps in _schedules(Blocks(graph, cuts), max_bytes):
            better, cost = mended(graph, steps, max_bytes)
            if cost < least:
                best, least = better, cost
    return best


def _partitions(graph: Operations) -> Iterator[list[int]]:
    """Every operation for itself where there are few; then blocks that end where little is live."""
    n = graph.n
    lengths = {1} if n <= 2 * isqrt(SLOTS) else set()
    lengths |= {2, 4, max(1, isqrt(n))} if n > 4 else set()
    live = [sum(graph.sz[u] for u in crossing(graph, p)) for p in range(n + 1)]
    for length in sorted(lengths):
        cuts, p = [0], 0
        while n - p > length:
            ahead = range(p + max(1, length // 2), min(n, p + length + length // 2 + 1))
            p = min(ahead, key=lambda q: (live[q], -q)) if length > 1 else p + 1
            cuts.append(p)
        yield [*cuts, n]


def crossing(graph: Operations, p: int) -> frozenset[int]:
    """What operations from p on read of the earlier ones, and the result behind the last."""
    if p == graph.n:
        return frozenset((p - 1,))
    return frozenset(u for v in range(p, graph.n) for u in (*graph.po[v], *graph.so[v]) if u < p)


@define(eq=False)
class Blocks:
    """A graph cut before the operations ``cuts``."""

    graph: Operations
    cuts: list[int]
    states: list[frozenset[int]] = field(init=False)
    tapes: list[frozenset[int]] = field(init=False)
    """The tapes of block i = 1 .., at i; the one at 0 is empty."""

    def __attrs_post_init__(self) -> None:
        graph, cuts = self.graph, self.cuts
        self.states = [crossing(graph, p) for p in cuts]
        self.tapes = [frozenset()]
        for i in range(1, len(cuts)):
            saved = {u for v in range(cuts[i - 1], cuts[i]) for u in graph.so[v]}
            self.tapes.append(frozenset(saved) - self.states[i - 1] | self.states[i])

    def chain(self) -> Chain:
        """Its sizes and costs; transients are at most what the block makes."""
        graph, cuts = self.graph, self.cuts
        blocks = [range(cuts[i - 1], cuts[i]) for i in range(1, len(cuts))]
        a = [self.bytes_of(state) for state in self.states]
        most = [max((graph.sz[v] for v in block), default=0) for block in blocks]
        return Chain(
            a=a,
            abar=[self.bytes_of(tape) for tape in self.tapes[1:]],
            uf=[sum(graph.fc[v] for v in block) for block in blocks],
            ub=[sum(graph.bc[v] for v in block) for block in blocks],
            of=[0 if len(block) == 1 else size for block, size in zip(blocks, most, strict=True)],
            ob=a[:-1],
        )

    def bytes_of(self, values: frozenset[int]) -> int:
        """Together."""
        return sum(self.graph.sz[u] for u in values)

    def steps(self, stages: list[Stage]) -> list[Step]:
        """What the schedule of the chain does with the operations."""
        run = _Run(self)
        for stage in stages:
            run.do(stage)
        return run.steps


@define(eq=False)
class _Run:
    """The steps so far, and which items hold each value."""

    blocks: Blocks
    steps: list[Step] = field(factory=list)
    holders: Counter[int] = field(factory=Counter)
    resident: set[int] = field(factory=set)
    plain: set[int] = field(factory=set)
    """The states that are kept for themselves, not within a tape."""

    def do(self, stage: Stage) -> None:
        """One stage of the chain."""
        i, blocks = stage.stage, self.blocks
        if stage.name in (FWD, TAPE):
            wanted = blocks.states[i] if stage.name == FWD else blocks.tapes[i]
            self._compute(wanted)
            self.holders.update(wanted)
            self.plain |= {i} if stage.name == FWD else set()
            self._let_go()
        elif stage.name == DROP_STATE:
            self._release(i)
        elif stage.name == LOSS:
            self.steps.append(Step(SEED, blocks.graph.n - 1))
            self._release(i)
        else:
            self._pull(i)

    def _pull(self, i: int) -> None:
        graph, cuts = self.blocks.graph, self.blocks.cuts
        left = Counter(u for v in range(cuts[i - 1], cuts[i]) for u in graph.so[v])
        self.holders.subtract(self.blocks.tapes[i])
        for v in reversed(range(cuts[i - 1], cuts[i])):
            self._compute(frozenset(graph.so[v]))
            self.steps.append(Step(PULL, v))
            left.subtract(graph.so[v])
            self._let_go(keep={u for u, count in left.items() if count > 0})
        self._release(i - 1)

    def _compute(self, wanted: frozenset[int]) -> None:
        """What is missing of ``wanted``, and what it comes from, each once; what nothing reads then goes."""
        graph, missing, todo = self.blocks.graph, set[int](), list(wanted)
        while todo:
            u = todo.pop()
            if u not in self.resident and u not in missing:
                missing.add(u)
                todo += graph.po[u]
        reads = Counter(u for v in missing for u in graph.po[v])
        for v in sorted(missing):
            self.steps.append(Step(COMPUTE, v))
            self.resident.add(v)
            reads.subtract(graph.po[v])
            self._let_go(keep=wanted | {u for u, count in reads.items() if count > 0})

    def _release(self, i: int) -> None:
        """The state i is needed no more for itself."""
        if i in self.plain:
            self.plain.remove(i)
            self.holders.subtract(self.blocks.states[i])
        self._let_go()

    def _let_go(self, keep: frozenset[int] | set[int] = frozenset()) -> None:
        for u in sorted(self.resident):
            if self.holders[u] <= 0 and u not in keep:
                self.resident.remove(u)
                self.steps.append(Step(DROP, u))


def _schedules(blocks: Blocks, max_bytes: int) -> Iterator[list[Step]]:
    """Some that fit, the cheapest of the table first, or else the one of fewest bytes."""
    graph, chain = blocks.graph, blocks.chain()
    table = chain_table(chain, min(_most(chain), 2 * max_bytes + _most(chain) // 8), SLOTS)
    costs = table.cost()
    levels = [m for m in range(costs.size) if np.isfinite(costs[m]) and (m == 0 or costs[m] < costs[m - 1])]
    fitting = 0
    for m in levels[: -MOST_TRIED - 1 : -1]:
        steps = without_unused(graph, blocks.steps(table.steps(m)))
        if GraphMachine(graph).carry_out(steps).peak_bytes <= max_bytes:
            yield steps
            fitting += 1
            if fitting == MOST_MENDED:
                return
    if not fitting:
        steps, peak = _frugal(blocks, chain)
        if peak <= max_bytes:
            yield steps


def _most(chain: Chain) -> int:
    """More than any schedule of the chain takes."""
    return chain.a[0] + sum(chain.abar) + 2 * max(chain.a) + max(chain.of) + max(chain.ob)


def _frugal(blocks: Blocks, chain: Chain) -> tuple[list[Step], int]:
    """The schedule of the table that takes the fewest bytes by the sizes of the chain, and what it takes."""
    table = chain_table(chain, _most(chain), SLOTS)
    lowest = int(np.isfinite(table.cost()).argmax())
    steps = without_unused(blocks.graph, blocks.steps(table.steps(lowest)))
    return steps, GraphMachine(blocks.graph).carry_out(steps).peak_bytes


def least_peak_of_blocks(graph: Operations) -> int:
    """The fewest bytes for which :func:`best_of_blocks` surely has a schedule."""
    every = [Blocks(graph, cuts) for cuts in _partitions(graph)]
    return min(_frugal(blocks, blocks.chain())[1] for blocks in every)
