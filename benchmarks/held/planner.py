"""What deciding costs, as multiples of ``np.add`` of 4 elements in the same process, taken in turn."""

import time
from collections import deque
from collections.abc import Callable
from itertools import islice
from typing import Any

import numpy as np
from attrs import define
from harness import Row, compare

import pullback as pb
from pullback.memory.executor import run_forward, run_reverse
from pullback.scheduling.machine.machine import Machine

ADDS = 1000


@define
class Idle:
    """A chain whose steps cost nothing: what is left is the executor, its machine and the schedule."""

    n_actions: int = 0

    def advance(self, start: int, stop: int) -> int:  # noqa: ARG002 - as the executor calls it
        """At once."""
        return stop

    def record(self, step: int) -> None:
        """Nothing."""

    def reverse(self, step: int) -> None:
        """Nothing."""

    def save(self, kind: str, step: int, tier: str) -> None:
        """Nothing."""

    def load(self, kind: str, step: int, tier: str) -> None:
        """Nothing."""

    def transfer(self, kind: str, step: int, source: str, target: str) -> None:
        """Nothing."""

    def delete(self, kind: str, step: int, tier: str) -> None:
        """Nothing."""


def carried_out(policy: pb.MemoryPolicy, n: int) -> None:
    """A schedule, forward and reverse, on a chain that does nothing."""
    schedule, machine = policy.schedule(n), Machine(n)
    run_forward(schedule, machine, Idle())
    run_reverse(schedule, machine, Idle())


def planner_rows(*, quick: bool) -> list[Row]:
    """A row for each figure; ``x np.add`` is an action's time over that of an addition."""
    actions, n, rounds = (2000, 500, 2) if quick else (100_000, 20_000, 7)
    offline, online, executed = pb.Binomial(50), pb.Binomial(20), pb.Binomial(20)
    four = np.ones(4)
    calls: dict[str, tuple[Callable[[], Any], int]] = {
        "n = 1e9, 50 snapshots, streamed": (lambda: _drain(offline.schedule(10**9), actions), actions),
        "length unknown, 20 snapshots": (lambda: _drain(online.schedule(None), actions), actions),
        "executor, machine and schedule, Binomial(20)": (
            lambda: carried_out(executed, n), sum(1 for _ in executed.schedule(n))
        ),
    }  # fmt: skip
    timed = compare(
        {"np.add": lambda: [np.add(four, four) for _ in range(ADDS)]}
        | {name: call for name, (call, _) in calls.items()},
        rounds=rounds,
    )
    add = timed["np.add"].seconds / ADDS
    rows: list[Row] = [
        {"what": name, "us an action": timed[name].seconds / count * 1e6, "x np.add": timed[name].seconds / count / add}
        for name, (_, count) in calls.items()
    ]
    rows.append({"what": "np.add of 4 elements", "us an action": add * 1e6, "x np.add": 1.0})
    return [*rows, _byte_program(quick=quick)]


def _byte_program(*, quick: bool) -> Row:
    """``Budget`` for 1e5 steps within 1e3 units of memory, states of 3 units, tapes of 2: until the first action."""
    n = 1000 if quick else 100_000
    began = time.process_time()
    next(iter(pb.Budget(1000).schedule(n, state_bytes=3, tape_bytes=2)))
    return {"what": f"byte program, {n} steps, 1000 units", "seconds": time.process_time() - began}


def _drain(schedule: Any, actions: int) -> None:
    deque(islice(schedule, actions), maxlen=0)
