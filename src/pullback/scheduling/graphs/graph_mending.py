"""A schedule of a graph made cheaper where there is room: what is dropped and computed again stays, if it fits."""

from collections.abc import Iterator

import numpy as np

from pullback.scheduling.graphs.graph_machine import COMPUTE, DROP, PULL, GraphMachine, Operations, Step


def mended(graph: Operations, steps: list[Step], max_bytes: int) -> tuple[list[Step], float]:
    """The steps and their cost when nothing more can stay: the dearest recomputation for its bytes first."""
    while True:
        held, stays = _held(graph, steps), set[int]()
        again = sorted(
            _recomputed(steps),
            key=lambda one: graph.fc[one[0]] / (graph.sz[one[0]] * (one[2] - one[1]) + 1),
            reverse=True,
        )
        for v, first, last in again:
            if held[first:last].max(initial=0) + graph.sz[v] <= max_bytes:
                held[first:last] += graph.sz[v]
                stays |= {first, last}
        if not stays:
            return steps, GraphMachine(graph, max_bytes).carry_out(steps).cost
        steps = without_unused(graph, [step for t, step in enumerate(steps) if t not in stays])


def _held(graph: Operations, steps: list[Step]) -> np.ndarray:
    """The bytes that each step takes."""
    machine, held = GraphMachine(graph), []
    for step in steps:
        machine.peak_bytes = 0
        machine.apply(step)
        held.append(machine.peak_bytes)
    return np.array(held)


def _recomputed(steps: list[Step]) -> Iterator[tuple[int, int, int]]:
    """(operation, where its value is dropped, where it is computed again)."""
    dropped: dict[int, int] = {}
    for t, step in enumerate(steps):
        if step.name == DROP:
            dropped[step.op] = t
        elif step.name == COMPUTE and step.op in dropped:
            yield step.op, dropped.pop(step.op), t


def without_unused(graph: Operations, steps: list[Step]) -> list[Step]:
    """Without what is computed and read by nothing before it is dropped; dropped at the last use."""
    kept: list[Step] = []
    wanted: set[int] = set()
    for step in reversed(steps):
        v = step.op
        if step.name == DROP:
            continue
        if step.name == COMPUTE:
            if v not in wanted:
                continue
            wanted.remove(v)
            reads: tuple[int, ...] = graph.po[v]
        else:
            reads = graph.so[v] if step.name == PULL else (v,)
        kept += [Step(DROP, u) for u in reads if u not in wanted]
        wanted.update(reads)
        kept.append(step)
    return list(reversed(kept))
