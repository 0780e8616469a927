"""The best schedule of a chain that keeps what it has kept until it is used ("persistent"), by dynamic programming.

C(m, i, j) is the least cost from a resident x_i to the cotangent of x_i, with the stages i+1 .. j+1, the cotangent
after them and m bytes for all but x_i. The last stage stands for the loss; it takes nothing. Either the first stage is
taped and its tape kept, or x_k is kept, with nothing else, and the stages before it are run again:

    C(m, i, i) = uf + ub of the stage     where m >= a[i+1] + abar[i+1] + max(of, ob)
    C(m, i, j) = min( uf + ub + C(m - abar[i+1], i+1, j),    where the tape fits going forward and back
                      min over i < k <= j of uf[i+1 .. k] + C(m - a[k], k, j) + C(m, i, k-1) )

Source: O. Beaumont et al., "Optimal checkpointing for heterogeneous chains", ACM TOMS 50 (2024), with the tests of
memory at the cotangent that is live: the published code asks for more going forward.
"""

from math import gcd
from typing import Any

import numpy as np
from attrs import define

from pullback.scheduling.graphs.chain_machine import BWD, DROP, FWD, LOSS, TAPE, Chain, Stage


@define(eq=False)
class ChainTable:
    """C for every m of 0 .. ``units``, in ``unit`` bytes; ``exact`` where every size is a whole number of units."""

    chain: Chain
    units: int
    unit: int
    exact: bool
    a: list[int]
    abar: list[int]
    of: list[int]
    ob: list[int]
    fw: Any
    both: Any
    table: list[list[Any]]

    def cost(self) -> Any:
        """C of the whole chain by units beside x_0."""
        return self.table[0][self.chain.n]

    def steps(self, units: int) -> list[Stage]:
        """A schedule of that cost."""
        n, steps = self.chain.n, list[Stage]()
        todo: list[Any] = [(units, 0, n)]
        while todo:
            task = todo.pop()
            if isinstance(task, Stage):
                steps.append(task)
                continue
            m, i, j = task
            if i == n:
                steps.append(Stage(LOSS, n))
            elif i == j:
                steps += [Stage(TAPE, i + 1), Stage(BWD, i + 1)]
            elif (k := self._choice(m, i, j)) == i:
                steps.append(Stage(TAPE, i + 1))
                todo += [Stage(BWD, i + 1), (m - self.abar[i + 1], i + 1, j)]
            else:
                for stage in range(i + 1, k + 1):
                    steps.append(Stage(FWD, stage))
                    if stage > i + 1:
                        steps.append(Stage(DROP, stage - 1))
                todo += [(m, i, k - 1), (m - self.a[k], k, j)]
        return steps

    def _choice(self, m: int, i: int, j: int) -> int:
        """The k of the second line, or i for the first."""
        least = self.table[i][j][m]
        if self.taped(i, j)[m] == least:
            return i
        return next(k for k in range(i + 1, j + 1) if self.kept(i, j, k)[m] == least)

    def taped(self, i: int, j: int) -> Any:
        """The first line, for each m."""
        going = self.a[j + 1] + self.abar[i + 1] + self.of[i]
        back = self.a[i + 1] + self.abar[i + 1] + self.ob[i]
        costs = self.both[i] + _shifted(self.table[i + 1][j], self.abar[i + 1])
        costs[: max(going, back)] = np.inf
        return costs

    def kept(self, i: int, j: int, k: int) -> Any:
        """The cost of the second line of the recurrence for each m, with x_k kept."""
        return self.fw[k] - self.fw[i] + _shifted(self.table[k][j], self.a[k]) + self.table[i][k - 1]

    def need(self, i: int, j: int) -> int:
        """The bytes that it takes to run stages i+1 .. j forward, one after the other."""
        after, a, of = self.a[j + 1], self.a, self.of
        return max(after + a[i + 1] + of[i], *(after + a[k] + a[k + 1] + of[k] for k in range(i + 1, j)), 0)


def _shifted(costs: Any, by: int) -> Any:
    """``costs`` with ``by`` units less."""
    moved = np.full(costs.shape, np.inf)
    if by < costs.size:
        moved[by:] = costs[: costs.size - by]
    return moved


def chain_table(chain: Chain, max_bytes: int, slots: int) -> ChainTable:
    """The table for ``max_bytes``, in units of which ``slots`` are that many bytes, or of which every size is a whole
    number; sizes are rounded up."""
    beside = max(max_bytes - chain.a[0], 0)
    whole = gcd(*chain.a, *chain.abar, *chain.of, *chain.ob) or 1
    unit = whole if beside // whole <= slots else max(1, -(-beside // slots))

    def rounded(sizes: Any) -> list[int]:
        return [-(-size // unit) for size in sizes]

    n = chain.n
    costs = [*chain.uf, 0.0]
    found = ChainTable(
        chain,
        beside // unit,
        unit,
        unit == whole,
        [*rounded(chain.a), 0],
        [0, *rounded(chain.abar), 0],
        [*rounded(chain.of), 0],
        [*rounded(chain.ob), 0],
        np.concatenate([[0.0], np.cumsum(costs)]),
        np.array([f + b for f, b in zip(costs, [*chain.ub, 0.0], strict=True)]),
        [[None] * (n + 1) for _ in range(n + 1)],
    )
    table, columns = found.table, found.units + 1
    for i in range(n + 1):
        table[i][i] = np.full(columns, found.both[i])
        if i < n:
            table[i][i][: found.a[i + 1] + found.abar[i + 1] + max(found.of[i], found.ob[i])] = np.inf
    for length in range(1, n + 1):
        for i in range(n + 1 - length):
            table[i][i + length] = _least(found, i, i + length)
    return found


def _least(found: ChainTable, i: int, j: int) -> Any:
    best = found.taped(i, j)
    for k in range(i + 1, j + 1):
        np.minimum(best, found.kept(i, j, k), out=best)
    best[: found.need(i, j)] = np.inf
    return best
