"""The tape at a million records: bytes of bookkeeping and microseconds of traversal per record, the pullbacks' own work
taken out.

    python benchmarks/bench_tape.py [--quick] [--json PATH]

Figures to hold: at most 160 bytes and 0.15 us of traversal per record at 1e6 records. The chain is ``x = x + 1.0`` on a
NumPy scalar: its records save nothing and its rule hands the cotangent on, so what remains is the tape. Bytes are
tracemalloc's over what the tape holds after the trace.
"""

import gc
import tracemalloc
from typing import Any

import numpy as np
from harness import arguments, compare, one_thread, print_table, write_json

import pullback as pb
from pullback.memory.in_force import Tracing
from pullback.memory.reverse_sweep import Sweep, sweep
from pullback.recording.recorder import INPUT
from pullback.recording.tape import Tape
from pullback.tracing.running import open_input
from pullback.tracing.tracer import KINDS


def chain(x: Any, n: int) -> Any:
    """``n`` records on one tracer."""
    for _ in range(n):
        x = x + 1.0
    return x


def taped(n: int) -> Tape:
    """The tape of the chain."""
    tape = Tape(1, KINDS)
    with Tracing(tape):
        x = open_input(tape, np.float64(0.5))
        tape.n_inputs = 1
        chain(x, n)
    tape.close()
    return tape


def bytes_per_record(n: int) -> float:
    """What the tape holds when the trace has ended, with the list it stands in."""
    taped(10)
    gc.collect()
    tracemalloc.start()
    tape = taped(n)
    gc.collect()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(tape.records) == n + 1
    return held / n


def traversal(tape: Tape, *, pulls: bool) -> None:
    """One sweep that frees nothing; without ``pulls`` no cotangent arrives, so that only the loop over the records
    is left."""
    cts: list[Any] = [None] * len(tape.records)
    if pulls:
        cts[-1] = np.float64(1.0)
    sweep(tape, tape.n_inputs, len(tape.records), [Sweep(cts)])


def main() -> None:
    options = arguments("bytes and traversal time of the tape, per record")
    one_thread()
    n = 100_000 if options.quick else 1_000_000
    held = bytes_per_record(n)
    tape = taped(n)
    assert tape.records[0] is not None
    assert tape.records[0][0] == INPUT.opcode
    rounds = 2 if options.quick else 7
    timed = compare(
        {
            "loop over records": lambda: traversal(tape, pulls=False),
            "sweep with pulls": lambda: traversal(tape, pulls=True),
            "grad, forward and backward": lambda: pb.grad(chain)(np.float64(0.5), n),
        },
        rounds=rounds,
    )
    rows = [{"records": n, "what": "tape", "bytes_per_record": held}]
    rows += [{"records": n, "what": result.name, "us_per_record": result.seconds / n * 1e6} for result in timed]
    print_table(rows)
    write_json(options.json, rows)


if __name__ == "__main__":
    main()
