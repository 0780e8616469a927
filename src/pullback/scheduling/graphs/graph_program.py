"""The best schedule of a graph by a mixed-integer linear program, solved by SciPy (HiGHS).

Operations are computed for the first time in their order and pulled back in the reverse order, as in Checkmate: stage
s < n ends with operation s, stage n + p with the pullback of operation n-1-p. R[s, i] says that operation i is computed
in stage s, S[s, i] that its value is resident when the stage begins, Z[s, i, k] that it is resident while operation k
has its turn: when it is there, and something later in the stage reads it or the next stage begins with it.

Source: P. Jain et al., "Checkmate", MLSys 2020, for R and S; the cotangents take what the order of the pullbacks says.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from attrs import define, field

from pullback.scheduling.graphs.graph_machine import COMPUTE, PULL, SEED, Operations, Step
from pullback.scheduling.graphs.graph_mending import without_unused
from pullback.words.optional_libraries import optional_library


@define(eq=False)
class LinearProgram:
    """Rows of the program, as they are written down."""

    graph: Operations
    max_bytes: int
    rows: list[tuple[dict[int, float], float]] = field(factory=list)
    """Coefficients by variable and the least value of their sum."""

    @property
    def stages(self) -> int:
        """First computations, then pullbacks."""
        return 2 * self.graph.n

    def r(self, s: int, i: int) -> int:
        """The variable R[s, i]."""
        return s * self.graph.n + i

    def s(self, s: int, i: int) -> int:
        """The variable S[s, i]; s is up to the number of stages."""
        return (self.stages + s) * self.graph.n + i

    def z(self, s: int, i: int, k: int) -> int:
        """The variable Z[s, i, k]; k = n is the pullback."""
        n = self.graph.n
        return (2 * self.stages + 1) * n + (s * n + i) * (n + 1) + k

    @property
    def variables(self) -> int:
        """How many there are."""
        n = self.graph.n
        return (2 * self.stages + 1) * n + self.stages * n * (n + 1)

    def pulled(self, s: int) -> int | None:
        """The operation that stage s pulls back."""
        return None if s < self.graph.n else self.stages - 1 - s

    def write(self) -> None:
        """All rows."""
        graph, n = self.graph, self.graph.n
        for s in range(self.stages):
            reads = () if self.pulled(s) is None else graph.so[self.stages - 1 - s]
            for i in range(n):
                for u in graph.po[i]:
                    self.rows.append(({self.r(s, i): -1, self.r(s, u): 1, self.s(s, u): 1}, 0))
                self.rows.append(({self.r(s, i): -1, self.s(s, i): -1}, -1))
                self.rows.append(({self.s(s + 1, i): -1, self.s(s, i): 1, self.r(s, i): 1}, 0))
                if i in reads:
                    self.rows.append(({self.s(s, i): 1, self.r(s, i): 1}, 1))
                for k in range(n + 1):
                    self._resident(s, i, k, pull_reads=i in reads)
            for k, others in self._others(s):
                sizes = {self.z(s, i, k): -float(graph.sz[i]) for i in range(n)}
                self.rows.append((sizes, others - self.max_bytes))

    def _resident(self, s: int, i: int, k: int, *, pull_reads: bool) -> None:
        graph, n = self.graph, self.graph.n
        there = {self.s(s, i): 1.0} | ({self.r(s, i): 1.0} if i <= k else {})
        z = {self.z(s, i, k): 1.0}
        minus = dict.fromkeys(there, -1.0)
        if i == k:
            self.rows.append((z | {self.r(s, i): -1.0}, 0))
        for j in range(max(k, i + 1), n):
            if i in graph.po[j]:
                self.rows.append((z | minus | {self.r(s, j): -1.0}, -1))
        self.rows.append((z | minus | {self.s(s + 1, i): -1.0}, -1))
        if pull_reads:
            self.rows.append((z | minus, 0))

    def _others(self, s: int) -> Iterator[tuple[int, float]]:
        """(k, bytes beside the values) for every turn of a stage."""
        graph, n = self.graph, self.graph.n
        whole, inputs = (1 << n) - 1, sum(graph.isz)
        v = self.pulled(s)
        before = 0 if v is None else whole & ~((1 << v + 1) - 1)
        held = inputs + graph.cotangent_bytes(before, seeded=v is not None)
        for k in range(n):
            yield k, held + (graph.sz[k] if s == n - 1 and k == n - 1 else 0)  # the seed, in this stage, for the last
        if v is not None:
            yield n, inputs + graph.cotangent_bytes(before | 1 << v, seeded=True) + graph.sz[v]

    def bounds(self) -> tuple[Any, Any]:
        """Bounds of the variables: nothing is computed before its time, and the operation of a stage is."""
        n, low, high = self.graph.n, np.zeros(self.variables), np.ones(self.variables)
        high[[self.s(0, i) for i in range(n)]] = 0
        high[[self.s(self.stages, i) for i in range(n)]] = 0
        for s in range(n):
            low[self.r(s, s)] = 1
            high[[self.r(s, i) for i in range(s + 1, n)]] = 0
        return low, high


def best_of_program(graph: Operations, max_bytes: int, seconds: float) -> tuple[list[Step], bool] | None:
    """The cheapest schedule found in ``seconds``, and False: another order may be cheaper. None if none is found.

    Raises ``PullbackError`` where SciPy is missing.
    """
    optimize = optional_library("scipy.optimize", 'optimal_graph(..., method="milp") solves a mixed-integer program')
    sparse = optional_library("scipy.sparse", 'optimal_graph(..., method="milp") solves a mixed-integer program')
    program = LinearProgram(graph, max_bytes)
    program.write()
    places = [(row, column, value) for row, (terms, _) in enumerate(program.rows) for column, value in terms.items()]
    at, columns, values = zip(*places, strict=True)
    matrix = sparse.csr_array((values, (at, columns)), shape=(len(program.rows), program.variables))
    least = np.array([bound for _, bound in program.rows])
    costs, n = np.zeros(program.variables), graph.n
    costs[: program.stages * n] = np.tile(graph.fc, program.stages)
    whole = np.zeros(program.variables)
    whole[: (2 * program.stages + 1) * n] = 1
    solved = optimize.milp(
        costs,
        constraints=optimize.LinearConstraint(matrix, lb=least),
        integrality=whole,
        bounds=optimize.Bounds(*program.bounds()),
        options={"time_limit": seconds},
    )
    if solved.x is None:
        return None
    computed = solved.x[: program.stages * n].reshape(program.stages, n) > 0.5
    steps: list[Step] = []
    for s in range(program.stages):
        steps += [Step(COMPUTE, i) for i in range(n) if computed[s, i]]
        steps += [Step(SEED, n - 1)] if s == n - 1 else []
        v = program.pulled(s)
        steps += [] if v is None else [Step(PULL, v)]
    return without_unused(graph, steps), False
