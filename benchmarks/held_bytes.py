"""One gradient of one candidate, in a process that does nothing else: its forward steps, seconds and bytes.

    python benchmarks/held_bytes.py PROGRAM CANDIDATE MEGABYTES [--quick] [--equal PATH]

prints a row as JSON. ``rss_MB`` is the rise of the resident memory by one gradient, after a short one that has loaded
what is needed; ``tracemalloc_MB`` the most that was allocated by NumPy and Python in another one. Seconds are CPU time;
``x forward`` is over the same program run on plain arrays. A candidate whose package is missing says so in ``note``.
The gradient must be the one in the file, to 1e-10 of its greatest value; where there is no file yet, it is written.
"""

import argparse
import ctypes
import gc
import json
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from harness import Row, one_thread, peak_bytes
from held.candidates import PROGRAMS, Candidate
from rss_of_wave import resident

import pullback as pb

PEAK_AGAIN = Path("/proc/self/clear_refs")
MB = 1e6
BRIEF = 1.0
"""Seconds below which one run tells too little."""


def rise(call: Callable[[], Any]) -> tuple[Any, float, int | None]:
    """What a call returns, its CPU seconds, and the bytes by which the resident memory rises; None where no system
    tells."""
    gc.collect()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
    try:
        PEAK_AGAIN.write_text("5", encoding="ascii")  # the peak is counted from now on
        before = resident("VmRSS")
    except OSError:
        before = None
    began = time.process_time()
    result = call()
    seconds = time.process_time() - began
    return result, seconds, None if before is None else resident("VmHWM") - before


def least(call: Callable[[], Any], seconds: float) -> float:
    """The least CPU seconds of a call that has taken ``seconds``, of which short ones are made again."""
    return min(seconds, *(rise(call)[1] for _ in range(5))) if seconds < BRIEF else seconds


def hold_equal(gradient: Any, path: Path) -> None:
    """Nothing, or ``AssertionError`` where the gradient is not the one in the file."""
    if path.exists():
        wanted = np.load(path)
        np.testing.assert_allclose(gradient, wanted, rtol=0, atol=1e-10 * float(np.abs(wanted).max()))
    else:
        np.save(path, gradient)


def measured(candidate: Candidate, forward: Callable[[], Any], equal: Path | None) -> Row:
    """What one gradient takes."""
    candidate.warm()
    gradient, seconds, grown = rise(candidate.gradient)
    if equal is not None:
        hold_equal(gradient, equal)
    seconds, plain = (
        least(call, first) for call, first in ((candidate.gradient, seconds), (forward, rise(forward)[1]))
    )
    traced = peak_bytes(candidate.gradient, warm=False) if candidate.in_numpy else None
    seen = traced if traced is not None else grown
    return {
        "seconds": seconds, "x forward": seconds / plain, "n_forward": candidate.n_forward(),
        "predicted_MB": candidate.predicted_bytes / MB,
        "tracemalloc_MB": None if traced is None else traced / MB, "rss_MB": None if grown is None else grown / MB,
        "utilisation": None if seen is None else candidate.predicted_bytes / seen, "note": candidate.note,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description="one gradient of one candidate")
    parser.add_argument("program", choices=list(PROGRAMS))
    parser.add_argument("candidate")
    parser.add_argument("megabytes", type=float)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--equal", type=Path)
    options = parser.parse_args()
    one_thread()
    program = PROGRAMS[options.program](quick=options.quick)
    labels = {"program": program.text, "candidate": options.candidate, "budget_MB": options.megabytes}
    try:
        candidate = program.candidate(options.candidate, round(options.megabytes * MB))
    except ModuleNotFoundError as missing:
        row: Row = {"note": f"{missing.name} is not installed"}
    except pb.BudgetError as refused:
        row = {"note": f"refused, {refused.minimum_bytes:,} bytes are enough"}
    else:
        row = measured(candidate, program.forward, options.equal)
    json.dump(labels | dict(row), sys.stdout)
    print()


if __name__ == "__main__":
    main()
