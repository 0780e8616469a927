"""All benchmarks one after the other, and ``RESULTS.md`` written from what they measured: no figure in it is typed by
hand.

    python benchmarks/run_all.py [--quick] [--json DIRECTORY] [--results PATH]

Each benchmark runs in a process of its own and leaves its JSON in the directory (a temporary one unless named).
``--quick`` checks that everything runs and writes no results unless ``--results`` says where.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from attrs import field, frozen
from harness import Row, table
from staged.limits import LIMITS

HERE = Path(__file__).resolve().parent


@frozen
class Figure:
    """A figure to hold: what it is about, the value in the rows, and the limit it is to stay under; None for one that
    is stated beside another."""

    text: str
    value: Callable[[Sequence[Row]], float | None] = field(repr=False)
    limit: float | None
    unit: str = ""

    def line(self, rows: Sequence[Row]) -> str:
        """A row of the table of figures."""
        got = self.value(rows)
        shown = "" if got is None else f"{got:.3g}{self.unit}"
        if got is None or self.limit is None:
            return f"| {self.text} | {shown} | | {'not measured' if got is None else 'stated'} |"
        verdict = "held" if got <= self.limit else "**not reached**"
        return f"| {self.text} | {shown} | {self.limit:g}{self.unit} | {verdict} |"


def pick(column: str, *, greatest: bool = True, **wanted: Any) -> Callable[[Sequence[Row]], float | None]:
    """The greatest (or least) value of a column among the rows that have all the wanted values."""

    def value(rows: Sequence[Row]) -> float | None:
        found = [
            row[column]
            for row in rows
            if row.get(column) is not None and all(row.get(k) == v for k, v in wanted.items())
        ]
        return None if not found else float(max(found) if greatest else min(found))

    return value


def inverse(value: Callable[[Sequence[Row]], float | None]) -> Callable[[Sequence[Row]], float | None]:
    """One over it: of how many times faster something is, the share of the time it takes."""

    def share(rows: Sequence[Row]) -> float | None:
        found = value(rows)
        return None if found is None else 1 / found

    return share


def outside(rows: Sequence[Row]) -> float:
    """How many rows hold other bytes, by tracemalloc, than are declared."""
    return float(sum(row.get("within") == "False" for row in rows))


def unequal(rows: Sequence[Row]) -> float:
    """How many rows predict other bytes than were held."""
    return float(sum(row.get("equal") == "False" for row in rows))


def peaks_beyond_hand(rows: Sequence[Row]) -> float:
    """The most arrays by which a peak exceeds the handwritten version's, to a tenth."""
    hand = {(r["n"], r["operands"]): r["peak_arrays"] for r in rows if r["candidate"] == "hand"}
    return round(
        max(float(r["peak_arrays"] - hand[r["n"], r["operands"]]) for r in rows if r["candidate"] == "pullback"), 1
    )


def unevenness(rows: Sequence[Row]) -> float:
    """The greatest ratio of the cost of a row at the larger size to that at the smaller."""
    return max(float(value) for row in rows for key, value in row.items() if key.startswith("x ") and value is not None)


def unexplained(rows: Sequence[Row]) -> float:
    """How many pulls take more than 3 times their forward and have no reason beside them."""
    return float(sum(row["ratio"] > 3.0 and not row["why"] for row in rows))


def planner_kib(rows: Sequence[Row]) -> float:
    """The memory of the planner of Binomial(1000): what is promised is the order of the snapshots."""
    return max(float(row["peak_planner_bytes"]) for row in rows if row["policy"] == "Binomial(1000)") / 1024


US: dict[str, Any] = {"candidate": "pullback"}
IMPORT: dict[str, Any] = {"import": "pullback"}
BENCHMARKS: dict[str, tuple[str, tuple[Figure, ...]]] = {
    "overhead": ("Overhead: 999 operations on 4 elements", (
        *(
            Figure(f"{kind} operands, over handwritten", pick("x hand", operands=kind, **US), 3.0, " x")
            for kind in ("const", "traced", "scalar")
        ),
        Figure("greatest ratio to torch eager", pick("x torch", **US), 0.4, " x"),
        Figure("greatest ratio to autograd", pick("x autograd", **US), 0.22, " x"),
    )),
    "elementwise": ("Elementwise, 1e5 and 1e6 elements", (
        *(
            Figure(f"n = {n}, {kind} operands, over handwritten", pick("x hand", n=n, operands=kind, **US), 1.35, " x")
            for n in (100_000, 1_000_000) for kind in ("scalar", "traced")
        ),
        Figure("peak arrays beyond the handwritten version's", peaks_beyond_hand, 0.0),
    )),
    "wave": ("Wave, 256 x 256, `fori_loop`", (
        Figure("save-all over a handwritten adjoint", pick("x hand", what="save-all", **US), 1.35, " x"),
        Figure("binomial(20) over a handwritten adjoint on its schedule", pick("x hand", what="binomial(20)", **US),
            1.25, " x"),
        Figure("rows where the plan is not the ledger's peak", unequal, 0.0),
        Figure("4000 steps, Binomial(20), ledger", pick("ledger_MiB", steps=4000), 26.0, " MiB"),
        Figure("4000 steps, Binomial(20), tracemalloc", pick("tracemalloc_MiB", steps=4000), 26.0, " MiB"),
    )),
    "lorenz": ("Lorenz-96, 1000 steps of 40 variables", (
        Figure("Python loop, everything saved, over a handwritten adjoint", pick("x hand", candidate="pullback, Python "
                                                                                                     "loop"), 2.5,
                                                                                                     " x"),
        Figure("`fori_loop`, everything saved, over a handwritten adjoint",
            pick("x hand", candidate="pullback, fori_loop"), 2.5, " x"),
        Figure(
            "`fori_loop`, Binomial(20), over a handwritten adjoint on its schedule",
            pick("x hand, on the schedule of Binomial(20)", candidate="pullback, fori_loop, Binomial(20)"), 2.5, " x",
        ),
    )),
    "staging": ("Gradients over the work by hand", tuple(
        Figure(limit.text, pick("x", work=limit.work, candidate=limit.candidate, over=limit.over), limit.at_most,
            limit.unit)
        for limit in LIMITS
    )),
    "pullback_cost": ("Forward and pullback of every differentiable NumPy function, 1e5 elements", (
        Figure("calls whose pull takes more than 3 times the forward, without a reason", unexplained, 0.0),
    )),
    "rows": ("Rows in a loop", (Figure("cost of a row at 40 000 rows over that at 1000", unevenness, 1.25, " x"),)),
    "tape": ("The tape at 1e6 records", (
        Figure("bytes per record", pick("bytes_per_record"), 160.0, " B"),
        Figure("traversal per record, pulls included", pick("us_per_record", what="sweep with pulls"), 0.15, " us"),
    )),
    "schedules": ("Schedules", (
        Figure("slowest action", pick("us_per_action", what="plan"), 3.0, " us"),
        Figure("slowest first action", pick("first_action_ms"), 10.0, " ms"),
        Figure("planner memory of Binomial(1000), 1e9 steps", planner_kib, 512.0, " KiB"),
    )),
    "forecasts": ("Bytes that are predicted, booked, and seen", (
        Figure("rows that predict other bytes than the ledger counts", unequal, 0.0),
        Figure("rows above 10 MiB where tracemalloc sees more than 2 % beyond what is declared", outside, 0.0),
    )),
    "policies": ("Long loops within a number of bytes, beside other libraries", (
        Figure("wave, forward steps of ours over the least of others, at equal bytes", pick("steps / others"), 1.0,
            " x"),
        Figure("wave, peak of ours over the least of others, within that",
            pick("RSS / others", candidate="Budget, leanest"), 1.0, " x"),
        Figure("heat inversion in 100 MB, forward steps", pick("n_forward", candidate="Budget", budget_MB=100.0,
            program="heat 200 x 200, 1000 steps"), 1720.0),
        Figure("an action, n = 1e9, 50 snapshots", pick("x np.add", what="n = 1e9, 50 snapshots, streamed"), 15.0,
            " np.add"),
        Figure("an action, length unknown, 20 snapshots", pick("x np.add", what="length unknown, 20 snapshots"), 150.0,
            " np.add"),
        Figure("an action carried out", pick("x np.add", what="executor, machine and schedule, Binomial(20)"), 80.0,
            " np.add"),
        Figure("byte program, 1e5 steps", pick("seconds", what="byte program, 100000 steps, 1000 units"), 2.0, " s"),
    )),
    "derivatives": ("Derivatives built from both modes", (
        *(
            Figure(f"hvp over a gradient, {f}, n = {n}, {heap} heap",
                pick("x gradient", f=f, n=n, heap=heap, candidate="hvp"), limit, " x")
            for n,
            limit in ((4, 10.0), (100_000, 4.0)) for heap in ("small", "large") for f in ("rosenbrock", "damped_sine")
        ),
        Figure("dense Jacobian, 50 to 50, over autograd", pick("x autograd", f="50 to 50", **US), 0.5, " x"),
        Figure("eight seeds of a loop together, over one by one", pick("x one by one", candidate="together"), 0.3,
            " x"),
    )),
    "adbench": ("ADBench: Gaussian mixture (d = 10, K = 25, n = 1000) and bundle adjustment", (
        *(
            Figure(f"gradient of the mixture, {form} formula, over {other}", pick(f"x {other}", formula=form, **US),
                limit, " x")
            for form in ("one product", "published") for other, limit in (("torch", 1.2), ("autograd", 0.4))
        ),
        Figure("sparse Jacobian: cost of a nonzero over that at the smallest size",
            pick("x smallest", what="sparse Jacobian"), 1.25, " x"),
    )),
    "checks": ("Checks of re-runs, and the hash", (
        *(
            Figure(f'verify="{verify}" over "off", {program}', pick("x off", program=program, candidate=verify), limit,
                " x")
            for program in ("wave 256 x 256", "4 elements") for verify, limit in (("state", 1.03), ("all", 1.1))
        ),
        Figure("the hash over a copy, 512 KiB", pick("x copy", bytes=1 << 19, candidate="hash"), 1.0, " x"),
    )),
    "watching": ("What the instruments cost, operations on 1e5 elements", (
        Figure("nobody watches: of the bytecodes of a gradient", pick("asked %", candidate="off"), 1.0, " %"),
        *(
            Figure(f"within a profile, {program}", pick("x off", program=program, candidate="profile"), 1.05, " x")
            for program in (
                "99 operations", "33 marked steps, save-all", "33 marked steps, Binomial(3)", "fori_loop, save-all",
                "fori_loop, Binomial(3)",
            )
        ),
    )),
    "mpi": ("A wave on two MPI ranks", (
        *(
            Figure(f"512 x 512, {clock} of two ranks over one, {policy}",
                pick(column, policy=policy, candidate="all ranks"), 1 / 1.8, " x")
            for policy in ("SaveAll()", "Binomial(10)")
            for clock, column in (("wall time", "x one rank"), ("processor time", "cpu x one rank"))
        ),
        *(
            Figure(f"512 x 512, wall time of two ranks that have their rows alone, without a word, over one, {policy}",
                pick("x one rank", policy=policy, candidate="all, in silence"), None, " x")
            for policy in ("SaveAll()", "Binomial(10)")
        ),
        Figure("an exchange into rows that are there, part of 256 x 512, beyond the raw one",
            pick("us beyond raw", what="exchange, part of 256 x 512", candidate="fill"), 25.0, " us"),
        Figure("an exchange, part of 64 x 64, beyond the raw one",
            pick("us beyond raw", what="exchange, part of 64 x 64", candidate="halo"), 25.0, " us"),
        Figure("an exchange, part of 256 x 512, beyond the raw one and a new array",
            pick("us beyond a new array", what="exchange, part of 256 x 512", candidate="halo"), 25.0, " us"),
    )),
    "dask": ("A sum over 16 shots on Dask", (
        *(
            Figure(f"wall time of two workers over {other}, staging {staging}",
                inverse(pick(column, staging=staging, candidate="2 workers")), 1 / faster, " x")
            for staging in ("off", "auto")
            for other, column, faster in (("one", "faster than 1 worker", 1.8), ("the loop", "faster than loop", 1.5))
        ),
        Figure("wall time of two workers over two plain processes, the same work without Dask, staging off",
            inverse(pick("of 2 processes", staging="off", candidate="2 workers")), None, " x"),
        Figure("10,000 small items, in batches", pick("seconds", items=10_000), 60.0, " s"),
        Figure("64 gradients of 8 MB, held at once with their copies", pick("with copies", gradients=64), 12.0),
        Figure("one of two workers killed, over none", pick("ratio"), 2.0, " x"),
    )),
    "import": ("Import",
        (Figure("import pullback, NumPy included", pick("ms", **IMPORT), 150.0, " ms"),)),
}  # fmt: skip


def run(name: str, folder: Path, *, quick: bool) -> dict[str, Any]:
    """The JSON of one benchmark, run in a process of its own."""
    path = folder / f"{name}.json"
    command = [sys.executable, str(HERE / f"bench_{name}.py"), *(["--quick"] if quick else []), "--json", str(path)]
    print(f"== {name}", flush=True)
    subprocess.run(command, check=True, env=os.environ)  # noqa: S603  our own scripts
    loaded: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return loaded


def section(name: str, measured: dict[str, Any]) -> str:
    """The part of the results for one benchmark: the figures, then the whole table."""
    title, figures = BENCHMARKS[name]
    rows = measured["rows"]
    shapes = {tuple(row): None for row in rows}
    tables = [table([row for row in rows if tuple(row) == columns]) for columns in shapes]
    lines = [
        f"## {title}", "", f"`python benchmarks/bench_{name}.py`", "",
        "| figure | measured | at most | |", "|---|---|---|---|", *(figure.line(rows) for figure in figures), "",
        *(f"```text\n{text}\n```\n" for text in tables),
    ]  # fmt: skip
    return "\n".join(lines)


def results(measured: dict[str, dict[str, Any]]) -> str:
    """The whole text of ``RESULTS.md``."""
    machine = next(iter(measured.values()))["machine"]
    facts = ", ".join(f"{name} {value}" for name, value in machine.items())
    remarks = (HERE / "REMARKS.md").read_text(encoding="utf-8") if (HERE / "REMARKS.md").exists() else ""
    head = [
        "# Results", "",
        "Written by `python benchmarks/run_all.py`; every number is as measured there. Times are the least CPU time of",
        "several interleaved rounds in one process, one thread; ratios are what to quote.", "",
        f"Machine: {facts}.", "",
    ]  # fmt: skip
    return "\n".join([*head, *(section(name, found) for name, found in measured.items()), remarks]).rstrip() + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description="all benchmarks, and RESULTS.md from what they measured")
    parser.add_argument(
        "--quick", action="store_true", help="fewer rounds and smaller sizes: a check that everything runs"
    )
    parser.add_argument("--json", type=Path, metavar="DIRECTORY", help="keep the JSON of each benchmark here")
    parser.add_argument(
        "--results", type=Path, metavar="PATH", help="where to write the results (benchmarks/RESULTS.md)"
    )
    parser.add_argument(
        "--only",
        nargs="+",
        choices=list(BENCHMARKS),
        default=list(BENCHMARKS),
        help="these benchmarks alone; the others' JSON is taken from --json",
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.json or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        fresh = {name: run(name, folder, quick=options.quick) for name in options.only}
        kept = {
            n: json.loads((folder / f"{n}.json").read_text(encoding="utf-8"))
            for n in BENCHMARKS
            if n not in fresh and (folder / f"{n}.json").exists()
        }
    target = options.results or (None if options.quick else HERE / "RESULTS.md")
    if target is not None:
        found = fresh | kept
        target.write_text(results({name: found[name] for name in BENCHMARKS if name in found}), encoding="utf-8")
        print(f"written: {target}")


if __name__ == "__main__":
    main()
