"""Side-by-side timing in one process: the least CPU time of several interleaved rounds, and ratios to a baseline.

Every benchmark reads

    from harness import arguments, compare, one_thread, print_table, write_json

    def main() -> None:
        options = arguments("what is measured")
        one_thread()
        rows = compare({"hand": by_hand, "pullback": by_us}, rounds=5 if options.quick else 15).rows(operations=999)
        print_table(rows)
        write_json(options.json, rows)

Candidates run in turn, round after round, each round starting with another one, so that a slow spell of the machine
meets all of them. CPU time is that of the whole process; with one thread it does not see what other processes do.
Ratios are the figures to quote; seconds belong to the machine.
"""

import argparse
import gc
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from attrs import field, frozen

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)

Row = dict[str, Any]
SLOW = 1.0
"""Seconds from which on a call is taken for what it seems."""


def one_thread() -> None:
    """Nothing, with every thread pool limited to one thread; call it first in ``main``.

    The libraries read these variables when they are loaded, which an import at the top of the file has done already.
    So where one is not set, the interpreter is started again, once, with all of them set.
    """
    if all(os.environ.get(name) == "1" for name in THREAD_VARIABLES):
        return
    environment = os.environ | dict.fromkeys(THREAD_VARIABLES, "1")
    sys.stdout.flush()
    # Our own command line, no shell.
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)  # noqa: S606


def measure_parts(description: str, parts: Mapping[str, Callable[..., list[Row]]]) -> None:
    """A benchmark of several parts: the table of each of those chosen as soon as it is there, and all rows as JSON.

    Several parts run in a process each, unless it is to be quick: where arrays lie, and which of their pages are new,
    follows from what was freed before in a process, and of that other parts leave plenty.
    """
    options = arguments(description, list(parts))
    one_thread()
    rows: list[Row] = []
    for name in options.only:
        if options.quick or len(options.only) == 1:
            found = parts[name](quick=options.quick)
            print_table(found)
            sys.stdout.flush()
        else:
            found = _in_a_process(name)
        rows += found
    write_json(options.json, rows)


def _in_a_process(part: str) -> list[Row]:
    """The rows of one part of this benchmark, which prints its table itself."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows.json")
        subprocess.run([sys.executable, sys.argv[0], "--only", part, "--json", str(path)], check=True)  # noqa: S603
        rows: list[Row] = json.loads(path.read_text(encoding="utf-8"))["rows"]
        return rows


def arguments(description: str, parts: Sequence[str] = ()) -> argparse.Namespace:
    """The options common to all benchmarks: ``quick`` (fewer rounds, smaller sizes) and ``json`` (a path, or None);
    where a benchmark has ``parts``, also ``only``, those to run, by default all."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument(
        "--quick", action="store_true", help="fewer rounds and smaller sizes: a check that it runs, no figure to quote"
    )
    parser.add_argument(
        "--json", type=Path, metavar="PATH", help="also write the table and the facts of the machine as JSON"
    )
    if parts:
        parser.add_argument("--only", nargs="+", choices=parts, default=list(parts), help="these parts alone")
    return parser.parse_args()


@frozen
class Result:
    """One candidate's CPU seconds per call: the least of all rounds, and the median."""

    name: str
    seconds: float
    median_seconds: float
    rounds: int
    calls_per_round: int


@frozen
class Comparison:
    """The results in the order the candidates were given; ``baseline`` is the name of the one ratios refer to."""

    results: tuple[Result, ...]
    baseline: str
    labels: Mapping[str, Any] = field(factory=dict)

    def __iter__(self) -> Any:
        return iter(self.results)

    def __getitem__(self, name: str) -> Result:
        return next(result for result in self.results if result.name == name)

    def ratio(self, name: str, to: str | None = None) -> float:
        """Least seconds of ``name`` over least seconds of ``to``, by default the baseline."""
        return self[name].seconds / self[self.baseline if to is None else to].seconds

    def rows(self, *, operations: int = 1, against: Sequence[str] = ()) -> list[dict[str, Any]]:
        """One row per candidate: labels, name, microseconds per operation, ratio to the baseline and to each of
        ``against``."""
        return [
            {
                **self.labels,
                "candidate": result.name,
                "us_per_op": result.seconds / operations * 1e6,
                "median_us": result.median_seconds / operations * 1e6,
                **{f"x {other}": self.ratio(result.name, other) for other in (self.baseline, *against)},
            }
            for result in self.results
        ]


def compare(
    candidates: Mapping[str, Callable[[], Any]],
    *,
    rounds: int = 9,
    baseline: str | None = None,
    least_seconds: float = 0.02,
    labels: Mapping[str, Any] | None = None,
    clock: Callable[[], float] = time.process_time,
) -> Comparison:
    """The candidates timed against each other; ``baseline`` is the first one unless named.

    Each is called once to warm up, then as often per round as takes ``least_seconds`` by the ``clock``, which reads CPU
    time unless another is given. The collector runs before each timing and stays switched on during it, because its
    cost is part of what a user pays.
    """
    if not candidates or rounds < 1:
        raise ValueError(
            f"nothing to compare: {len(candidates)} candidates, {rounds} rounds; give at least one of each"
        )
    names = list(candidates)
    if baseline is not None and baseline not in candidates:
        raise ValueError(f"the baseline {baseline!r} is none of the candidates {names}")
    calls = {name: _calls(candidates[name], least_seconds, clock) for name in names}
    samples: dict[str, list[float]] = {name: [] for name in names}
    for number in range(rounds):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            samples[name].append(_seconds(candidates[name], calls[name], clock) / calls[name])
    results = tuple(
        Result(name, min(samples[name]), statistics.median(samples[name]), rounds, calls[name]) for name in names
    )
    return Comparison(results, names[0] if baseline is None else baseline, dict(labels or {}))


def _calls(function: Callable[[], Any], least_seconds: float, clock: Callable[[], float]) -> int:
    function()
    calls = 1
    while (seconds := _seconds(function, calls, clock)) < SLOW:
        # One of the first calls may prepare what all others use: once more, before that passes for the time of each.
        if seconds >= least_seconds and (seconds := _seconds(function, calls, clock)) >= least_seconds:
            break
        calls = max(2 * calls, min(10 * calls, int(1.2 * calls * least_seconds / max(seconds, 1e-9))))
    return calls


def _seconds(function: Callable[[], Any], calls: int, clock: Callable[[], float]) -> float:
    gc.collect()
    start = clock()
    for _ in range(calls):
        function()
    return clock() - start


def peak_bytes(function: Callable[[], Any], *, warm: bool = True) -> int:
    """The most bytes that one call of ``function`` held at a time beyond what existed before, by tracemalloc; its
    result counts. ``warm`` calls it once before."""
    if warm:
        function()
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        function()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return peak - before


def machine() -> dict[str, Any]:
    """What a reader needs to judge the figures: processor kind, its count, Python and library versions. No names of
    machines."""
    facts: dict[str, Any] = {
        "processor": _processor(),
        "cpu_count": os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
        "threads": os.environ.get("OMP_NUM_THREADS", "not limited"),
    }
    for package in ("numpy", "scipy", "numba", "torch", "autograd", "jax", "equinox"):
        try:
            facts[package] = version(package)
        except PackageNotFoundError:
            continue
    return facts


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def print_table(rows: Sequence[Row]) -> None:
    """The facts of the machine and the rows, as aligned plain text on standard output."""
    print("  ".join(f"{name}={value}" for name, value in machine().items()))
    print(table(rows))


def table(rows: Sequence[Row]) -> str:
    """The rows as aligned plain text: a column per key in order of first sight, numbers to the right, texts to the
    left."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    cells = [columns, *([_text(row.get(column)) for column in columns] for row in rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(columns))]
    numeric = [all(not isinstance(row.get(column), str) for row in rows) for column in columns]
    lines = [
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(line, widths, numeric, strict=True)
        )
        for line in cells
    ]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(line.rstrip() for line in lines)


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"
    return str(value)


def write_json(path: Path | str | None, rows: Sequence[Row]) -> None:
    """A file with the facts of the machine and the rows; nothing where ``path`` is None, as without ``--json``."""
    if path is not None:
        Path(path).write_text(
            json.dumps({"machine": machine(), "rows": [dict(row) for row in rows]}, indent=2) + "\n", encoding="utf-8"
        )
