"""What snapshots on disk cost beside snapshots in memory, for a step that is slower than its write.

    python benchmarks/bench_stores.py [--quick] [--json PATH]

Figure to hold: a gradient under ``Periodic(10, tier="disk")`` takes at most 1.1 times the wall time of that under
``Periodic(10)``. Wall time, since the writer has a thread of its own; the least of several rounds, in turn.
"""

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from harness import arguments, one_thread, print_table, write_json

import pullback as pb
from pullback.stores import AsType, Disk, InMemory, Zlib

PERIOD = 10


def program(size: int, n_steps: int) -> Callable[[Any], Any]:
    """Steps of a few passes of ``sin`` and ``exp`` over the state."""

    def f(x: Any) -> Any:
        def body(_: int, u: Any) -> Any:
            return np.sin(u) * np.exp(-(u * u)) + np.cos(u) * x

        return np.sum(pb.fori_loop(0, n_steps, body, x, staging="off"))

    return f


def main() -> None:
    options = arguments("snapshots on disk and in memory")
    one_thread()
    size, n_steps, rounds = (250_000, 60, 3) if options.quick else (1_000_000, 100, 7)
    f, x = program(size, n_steps), np.linspace(0.1, 0.9, size)
    tiers = {
        "memory": "memory", "disk": "disk", "disk, zlib": Disk(codec=Zlib()), "memory, float32": InMemory(AsType("f4")),
    }  # fmt: skip
    least: dict[str, float] = {}
    peak: dict[str, int] = {}
    for _ in range(rounds):
        for name, tier in tiers.items():
            start = time.perf_counter()
            out, pull = pb.vjp(f, x, policy=pb.Periodic(PERIOD, tier=tier))
            pull(np.ones_like(out))
            least[name] = min(least.get(name, float("inf")), time.perf_counter() - start)
            peak[name] = pull.report.peak_bytes
            pull.close()
    rows = [
        {"snapshots in": name, "ratio": least[name] / least["memory"], "peak MiB": peak[name] / 2**20} for name in tiers
    ]
    print_table(rows)
    write_json(options.json, rows)
    sys.exit(least["disk"] > 1.1 * least["memory"])


if __name__ == "__main__":
    main()
