"""Gradients of long loops within a number of bytes: ours beside nested ``checkpoint`` of torch and of jax, equinox's
checkpointed loop and pycograd; and what planning costs.

    python benchmarks/bench_policies.py [--quick] [--only PART ...] [--json PATH]

Every gradient runs in a process of its own (``held_bytes.py``) and must be the first one's, which is ours, to 1e-10.
``predicted_MB`` is what ``pb.plan`` says, for others what states and tapes of the program's sizes make (pycograd: its
own plan); ``utilisation`` is that over what was seen, by tracemalloc where the arrays are NumPy's, else by the resident
memory. jax compiles the whole loop, so its seconds are those of fused kernels.

Others cannot use every number of bytes: within 400 MB a nest of two levels takes 100. So ``Budget`` runs twice: within
what all are allowed, and (``Budget, leanest``) within what the leanest of the others was seen to take there.

Figures to hold: on the wave, ours runs the fewest forward steps within equal bytes, and within the bytes of the leanest
it runs fewer steps and has the least peak; the heat inversion within 100 MB takes at most 1720 forward steps; the
planner's, see ``run_all.py``.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from harness import Row, measure_parts
from held.planner import planner_rows

CHILD = Path(__file__).resolve().parent / "held_bytes.py"
PEERS = ("torch", "jax", "equinox")
ALLOWED = (24, 100, 400)
WAVE = [
    ("SaveAll", 4000), *((name, size) for size in ALLOWED for name in ("Budget", "Binomial", "Mixed", *PEERS)),
    ("auto", 4000),
]  # fmt: skip
LEANEST = "Budget, leanest"
HEAT = [(name, 100.0) for name in ("Budget", "Mixed", "Binomial", "Recompute")]
CHAIN = [(name, float(size)) for size in (40, 20, 10, 5) for name in ("Budget", "pycograd")]


def row_of(program: str, name: str, megabytes: float, folder: str, *, quick: bool) -> Row:
    """What a candidate takes, in a process of its own; its gradient is compared with that in the folder."""
    given = ["--equal", str(Path(folder) / "gradient.npy"), *(["--quick"] if quick else [])]
    command = [sys.executable, str(CHILD), program, name, str(megabytes), *given]
    # Our own interpreter and arguments.
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=os.environ)  # noqa: S603
    print(done.stdout.splitlines()[-1], file=sys.stderr, flush=True)
    row: Row = json.loads(done.stdout.splitlines()[-1])
    return row


def rows_of(program: str, wanted: list[tuple[str, float]], *, quick: bool, scale: float) -> list[Row]:
    """A row for each candidate and number of megabytes, which are scaled for the small problem of ``--quick``; and one
    within what the leanest of the others takes."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, megabytes in wanted:
            allowed = megabytes * scale if quick else megabytes
            if name != LEANEST:
                rows.append(row_of(program, name, allowed, folder, quick=quick))
                continue
            taken = [row["rss_MB"] for row in of_others(rows, allowed) if row.get("rss_MB")]
            if taken:
                row = row_of(program, "Budget", float(int(min(taken))), folder, quick=quick)
                rows.append({**row, "candidate": LEANEST, "beside_MB": allowed})
    return rows


def of_others(rows: list[Row], allowed: float) -> list[Row]:
    """The rows of other libraries within so many megabytes."""
    return [row for row in rows if row["budget_MB"] == allowed and row["candidate"] in (*PEERS, "pycograd")]


def wave_rows(*, quick: bool) -> list[Row]:
    """The wave, 256 x 256, 4000 steps, in 24, 100 and 400 MB."""
    leanest = [(LEANEST, float(size)) for size in ALLOWED]
    return compared(rows_of("wave", [*WAVE, *leanest], quick=quick, scale=0.03))


def heat_rows(*, quick: bool) -> list[Row]:
    """The heat inversion, 200 x 200, 1000 steps, in 100 MB."""
    return rows_of("heat", HEAT, quick=quick, scale=0.005)


def chain_rows(*, quick: bool) -> list[Row]:
    """A chain that pycograd runs, in 40 to 5 MB."""
    return compared(rows_of("chain", CHAIN, quick=quick, scale=0.1))


def compared(rows: list[Row]) -> list[Row]:
    """The rows, those of ``Budget`` with its forward steps and its peak over the least of what others do in the same
    bytes."""
    found: list[Row] = []
    for row in rows:
        others = of_others(rows, row.get("beside_MB") or row["budget_MB"])
        ratios = {}
        if row["candidate"] in ("Budget", LEANEST):
            for column, name in (("n_forward", "steps / others"), ("rss_MB", "RSS / others")):
                values = [r[column] for r in others if r.get(column)]
                ratios[name] = row[column] / min(values) if values and row.get(column) else None
        found.append({**row, **ratios})
    return found


PARTS = {"wave": wave_rows, "heat": heat_rows, "chain": chain_rows, "planner": planner_rows}


if __name__ == "__main__":
    measure_parts("long loops within a number of bytes, beside other libraries", PARTS)
