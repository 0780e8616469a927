"""A wave that is divided over two MPI ranks beside one, and what an exchange costs as a primitive.

    python benchmarks/bench_mpi.py [--quick] [--json PATH]

Figures to hold, 512 x 512 on two ranks: at least 1.8 times as fast as the divided program on one rank, so at most 0.556
of its time; an exchange as a primitive at most 25 us beyond the raw one: by ``fill`` beyond MPI alone, by ``halo`` for
a large part beyond MPI and the new array that it gives, whose memory is written once. The ranks run
``ranks_of_wave.py``. By the clock where two cores are free; else by the processor time of the slower rank. ``all, in
silence`` is what the machine gives: each rank has its rows alone, at the same time, and exchanges nothing.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from harness import arguments, one_thread, print_table, write_json

HERE = Path(__file__).resolve().parent


def main() -> None:
    options = arguments("a wave on two MPI ranks, and the price of an exchange")
    one_thread()
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
    mpiexec = shutil.which("mpiexec", path=path)
    if mpiexec is None:
        sys.exit("MPI is missing: python -m pip install mpi4py mpich")
    sizes = ("64", "20", "2") if options.quick else ("512", "100", "9")
    command = [mpiexec, "-n", "2", sys.executable, str(HERE / "ranks_of_wave.py"), *sizes]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)  # noqa: S603 - our own script
    rows = json.loads(done.stdout.strip().splitlines()[-1])
    print_table(rows)
    write_json(options.json, rows)


if __name__ == "__main__":
    main()
