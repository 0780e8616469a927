"""What one rank of ``bench_mpi.py`` measures; rank 0 prints the rows as JSON.

    mpiexec -n 2 python benchmarks/ranks_of_wave.py SIZE STEPS ROUNDS

All ranks begin together, the slowest counts, and the least of several rounds, in which the candidates take turns. What
one rank does alone the others wait for, asleep. Wall time needs a free core for each rank; the processor time of a rank
does not, but has in it what it spends in looking for messages, a millisecond at most for each.
"""

import json
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from bench_wave import problem_of
from harness import Row
from mpi4py import MPI

import pullback as pb
from pullback.demos.wave_model import misfit_by_loop
from pullback.demos.wave_ranks import misfit_of_part, part_of
from pullback_mpi import Communicator

WORLD = MPI.COMM_WORLD
MANY = 200
"""Exchanges in one timing."""


def least_seconds(
    comm: Communicator, candidates: Mapping[str, Callable[[], Any]], rounds: int
) -> dict[str, tuple[float, float]]:
    """The least seconds of each candidate by its slowest rank, of the clock and of the processor; each is called once
    before."""
    found: dict[str, tuple[float, float]] = {}
    for number in range(rounds + 1):
        for name, run in candidates.items():
            comm.settled(None)
            wall, cpu = time.perf_counter(), time.process_time()
            run()
            mine = time.perf_counter() - wall, time.process_time() - cpu
            slowest = [ns / 1e9 for ns in comm.largest((int(1e9 * mine[0]), int(1e9 * mine[1])))]
            if number:
                before = found.get(name, slowest)
                found[name] = min(before[0], slowest[0]), min(before[1], slowest[1])
    return found


def wave_rows(n: int, n_steps: int, rounds: int, policies: list[pb.MemoryPolicy]) -> list[Row]:
    """The gradient of the wave undivided, by the divided program on one rank, and on all; and what the machine gives:
    each rank has its rows alone, without a word to the others."""
    c, problem = problem_of(n, n_steps)
    comm, alone = Communicator(WORLD, axes=(-2,)), Communicator(MPI.COMM_SELF, axes=(-2,))
    held, own = comm.slices(c.shape, 1), comm.slices(c.shape)
    whole, part = part_of(problem, slice(0, n), slice(0, n)), part_of(problem, own[0], held[0])
    rows = part_of(problem, own[0], own[0])
    found: list[Row] = []
    for policy in policies:
        undivided = pb.value_and_grad(lambda c: misfit_by_loop(c, problem, pb.fori_loop), policy=policy)
        on_one = pb.value_and_grad(lambda c: misfit_of_part(c, whole, alone))
        on_all = pb.value_and_grad(lambda c: misfit_of_part(c, part, comm))
        in_silence = pb.value_and_grad(lambda c: misfit_of_part(c, rows, alone))

        def agreed(of: Communicator, gradient: Callable[[Any], Any], c: Any, policy: Any = policy) -> Any:
            with of.agree(policy):
                return gradient(c)

        seconds = least_seconds(
            comm,
            {
                "undivided": lambda f=undivided: f(c) if WORLD.rank == 0 else None,  # type: ignore[misc]
                "one rank": lambda f=on_one: agreed(alone, f, c) if WORLD.rank == 0 else None,  # type: ignore[misc]
                "all ranks": lambda f=on_all: agreed(comm, f, c[held]),  # type: ignore[misc]
                "all, in silence": lambda f=in_silence: agreed(alone, f, c[own]),  # type: ignore[misc]
            },
            rounds,
        )
        found += [
            {
                "what": f"wave {n} x {n}, {n_steps} steps", "policy": repr(policy), "candidate": name,
                "ranks": WORLD.size if name.startswith("all") else 1, "ms": 1e3 * wall, "cpu ms": 1e3 * cpu,
                "x one rank": wall / seconds["one rank"][0], "cpu x one rank": cpu / seconds["one rank"][1],
                "cpu x undivided": cpu / seconds["undivided"][1],
            }
            for name, (wall, cpu) in seconds.items()
        ]  # fmt: skip
    return found


def exchange_rows(shape: tuple[int, int], rounds: int) -> list[Row]:
    """Edges of one row sent to both neighbours: by MPI alone into rows that are there, by ``fill``, which writes them
    into rows that are there, into a new array with edges as ``halo`` makes it, and by ``halo``."""
    comm = Communicator(WORLD)
    x = np.random.default_rng(WORLD.rank).standard_normal(shape)
    before = WORLD.rank - 1 if WORLD.rank else MPI.PROC_NULL
    after = WORLD.rank + 1 if WORLD.rank < WORLD.size - 1 else MPI.PROC_NULL
    above, below = np.zeros(shape[1]), np.zeros(shape[1])

    def raw() -> None:
        WORLD.Sendrecv(x[0], before, 1, below, after, 1)
        WORLD.Sendrecv(x[-1], after, 2, above, before, 2)

    def new_array() -> Any:
        raw()
        whole = np.empty((shape[0] + 2, shape[1]))
        whole[0], whole[1:-1], whole[-1] = above, x, below
        return whole

    candidates = {
        "raw": raw, "fill": lambda: comm.fill(x, 1, 0),
        "raw, and a new array": new_array, "halo": lambda: comm.halo(x, 1, 0),
    }  # fmt: skip
    seconds = least_seconds(comm, {name: many(f) for name, f in candidates.items()}, rounds)
    us = {name: 1e6 * wall / MANY for name, (wall, _) in seconds.items()}
    return [
        {
            "what": f"exchange, part of {shape[0]} x {shape[1]}", "candidate": name, "us": value,
            "us beyond raw": value - us["raw"], "us beyond a new array": value - us["raw, and a new array"],
        }
        for name, value in us.items()
    ]  # fmt: skip


def many(run: Callable[[], Any]) -> Callable[[], None]:
    """One after the other, as the steps of a loop do."""

    def all_of_them() -> None:
        for _ in range(MANY):
            run()

    return all_of_them


def main() -> None:
    n, n_steps, rounds = map(int, sys.argv[1:])
    rows = wave_rows(n, n_steps, rounds, [pb.SaveAll(), pb.Binomial(10)])
    for shape in ((64, 64), (n // 2, n)):
        rows += exchange_rows(shape, 3 * rounds)
    if WORLD.rank == 0:
        print(json.dumps(rows))


if __name__ == "__main__":
    main()
