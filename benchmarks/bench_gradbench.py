"""GradBench's evaluations (github gradbench/gradbench), run and judged by its own programs: ``pullback`` beside
``pytorch``, in turns.

    python benchmarks/bench_gradbench.py CHECKOUT [--only EVALUATION ...] [--tools TOOL ...] [--quick] [--json PATH]

``CHECKOUT`` has the C++ tool ``manual`` built, which knows the right values (``make -C tools/manual`` there, with
``json.hpp`` of nlohmann/json in ``cpp``). For each input: whether the evaluation calls the answers valid, and the least
time of the derivative over the least time of the program itself, by the clock of the tool.
"""

import argparse
import sys
from pathlib import Path

from gradbench.sessions import QUICK, TOOLS, measured
from harness import Row, one_thread, print_table, write_json

SIZES: dict[str, list[str]] = {
    "hello": [],
    "lse": ["-n", "2500", "160000", "1280000"],
    "llsq": ["-n", "16", "1024", "16392"],
    "ode": ["-n", "1000", "100000", "-s", "1", "10", "100"],
    "kmeans": ["-k", "10", "1000", "-n", "1000", "10000", "-d", "8", "16"],
    "det": ["-l", "5", "8", "10"],
    "gmm": ["-d", "2", "10", "64", "-k", "5", "25", "100"],
    "lstm": ["-l", "2", "6", "-c", "1024", "4096"],
    "ba": ["--max", "14"],
    "ht": ["--max", "8"],
    "saddle": [],
    "particle": [],
}
SLOW: dict[str, list[str]] = {"ba": ["--max", "1"], "ht": ["--max", "2"], "lstm": ["-l", "2", "6", "-c", "1024"]}
"""Where the other tools take minutes for one input."""
RUNS = ["--min-runs", "3", "--min-seconds", "3"]
"""Enough that the first run, in which things are made that later ones use, is one of many."""


def main() -> None:
    parser = argparse.ArgumentParser(description="GradBench's evaluations")
    parser.add_argument("checkout", type=Path, help="a checkout of GradBench")
    parser.add_argument("--only", nargs="+", choices=SIZES, default=list(SIZES), help="these evaluations alone")
    parser.add_argument("--tools", nargs="+", choices=TOOLS, default=["pullback", "pytorch"])
    parser.add_argument("--words", nargs=argparse.REMAINDER, help="options of the evaluation, in the place of ours")
    parser.add_argument("--quick", action="store_true", help="small inputs: a check that it runs, no figure to quote")
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write the table as JSON")
    options = parser.parse_args()
    one_thread()
    rows: list[Row] = []
    for evaluation in options.only:
        for tool in options.tools:
            sizes = QUICK if options.quick else SIZES if tool == "pullback" else SIZES | SLOW
            words = options.words or sizes[evaluation]
            if sizes[evaluation] and words is not SLOW.get(evaluation):
                words = [*words, *RUNS]
            found = measured(evaluation, tool, options.checkout.resolve(), words)
            print_table(found)
            sys.stdout.flush()
            rows += found
    write_json(options.json, rows)


if __name__ == "__main__":
    main()
