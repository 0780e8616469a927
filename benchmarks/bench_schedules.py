"""Planning alone: microseconds per action, milliseconds to the first action, and the planner's own memory. No array is
touched.

    python benchmarks/bench_schedules.py [--quick] [--json PATH]

Figures to hold: under 3 us an action, first action of a billion steps under 10 ms, memory of the order of the
snapshots.
"""

from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from harness import arguments, compare, one_thread, peak_bytes, print_table, write_json

from pullback.policies.base import MemoryPolicy
from pullback.policies.binomial import Binomial
from pullback.policies.mixed import Mixed
from pullback.policies.periodic import Periodic
from pullback.policies.recompute import Recompute
from pullback.policies.save_all import SaveAll
from pullback.schedules import Action, simulate

# (policy, number of steps or None where the policy is not told)
PLANNED: tuple[tuple[MemoryPolicy, int | None], ...] = (
    (Binomial(2), 10**9),
    (Binomial(5), 10**9),
    (Binomial(10), 10**9),
    (Binomial(50), 10**9),
    (Binomial(1000), 10**9),
    (Binomial(20), 4000),
    (Binomial(20), 100_000),
    (Recompute(), 10**9),
    (SaveAll(), 10**9),
    (Binomial(5), None),
    (Binomial(20), None),
    (Binomial(50), None),
    (Binomial(20, online="wmi"), None),
    (Recompute(), None),
    (Mixed(20), 1000),
    (Mixed(20), 10**9),
    (Periodic(1000), 10**9),
    (Periodic(1000, snapshots=10), None),
)
SIMULATED: tuple[tuple[MemoryPolicy, int], ...] = ((Binomial(20), 100_000), (SaveAll(), 100_000))


def head(policy: MemoryPolicy, n: int | None, actions: int) -> Iterator[Action]:
    """The first ``actions`` actions of a fresh schedule."""
    return islice(policy.schedule(n), actions)


def consume(policy: MemoryPolicy, n: int | None, actions: int) -> Callable[[], object]:
    """What is timed: pulling the actions, keeping none."""
    return lambda: deque(head(policy, n, actions), maxlen=0)


def planning_row(policy: MemoryPolicy, n: int | None, actions: int, rounds: int) -> dict[str, Any]:
    """One row: time per action, time of the first action, peak bytes of planning."""
    count = sum(1 for _ in head(policy, n, actions))
    timed = compare({"first": consume(policy, n, 1), "all": consume(policy, n, actions)}, rounds=rounds)
    return {
        "policy": repr(policy),
        "n": "unknown" if n is None else n,
        "what": "plan",
        "actions": count,
        "us_per_action": timed["all"].seconds / count * 1e6,
        "first_action_ms": timed["first"].seconds * 1e3,
        "peak_planner_bytes": peak_bytes(consume(policy, n, actions)),
    }


def simulation_row(policy: MemoryPolicy, n: int, rounds: int) -> dict[str, Any]:
    """One row: planning, checking and counting every action of the whole schedule."""
    timed = compare({"simulate": lambda: simulate(policy.schedule(n), n)}, rounds=rounds)
    count = simulate(policy.schedule(n), n).n_actions
    return {
        "policy": repr(policy),
        "n": n,
        "what": "simulate",
        "actions": count,
        "us_per_action": timed["simulate"].seconds / count * 1e6,
    }


def main() -> None:
    options = arguments("microseconds per action of a schedule, time to its first action, memory of its planner")
    one_thread()
    actions, rounds = (10_000, 2) if options.quick else (200_000, 5)
    rows = [planning_row(policy, n, actions, rounds) for policy, n in PLANNED]
    rows += [simulation_row(policy, n // 10 if options.quick else n, rounds) for policy, n in SIMULATED]
    print_table(rows)
    write_json(options.json, rows)


if __name__ == "__main__":
    main()
