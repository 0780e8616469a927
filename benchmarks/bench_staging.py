"""What a gradient costs over the work by hand: every figure of staged steps, as ratios taken in one process.

    python benchmarks/bench_staging.py [--quick] [--only PART ...] [--json PATH]

The limits stand in ``run_all.py``. A row gives microseconds a step (loops), an operation (the chain) or a call, and
``x``, the ratio to the candidate named under ``over``; the note says how well a result agrees with that candidate's, or
what is missing here. torch, autograd, jax, equinox and numba take part where they are installed. Where loops can be
staged, each has a second row with ``staging="off"``.

The machine's memory is what swings: rows whose arrays leave the caches (the waves, 1e6 and 1e7 elements) differ most
from run to run.
"""

from harness import measure_parts
from staged import derivatives, loops, making, processes, programs

PARTS = {
    "wave": loops.wave_rows,
    "peers": loops.peer_rows,
    "small": loops.small_rows,
    "differing": loops.differing_rows,
    "lstm": loops.lstm_rows,
    "chain": programs.chain_rows,
    "elementwise": programs.elementwise_rows,
    "mixture": programs.mixture_rows,
    "network": programs.network_rows,
    "making": making.making_rows,
    "hot": derivatives.hot_rows,
    "hand": derivatives.hand_rows,
    "potential": derivatives.potential_rows,
    "kinds": derivatives.kind_rows,
    "memory": processes.memory_rows,
    "demo": processes.demo_rows,
}


if __name__ == "__main__":
    measure_parts("gradients over the work by hand: loops, programs, nested derivatives", PARTS)
