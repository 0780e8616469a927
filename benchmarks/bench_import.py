"""Import time in fresh interpreters: ``import pullback`` beside ``import numpy`` and an empty program.

    python benchmarks/bench_import.py [--quick] [--json PATH]

Figure to hold: ``import pullback`` under 150 ms, NumPy's own import included. CPU time of the child processes, least of
several, interleaved.
"""

import os
import resource
import subprocess
import sys
import tempfile

from harness import arguments, one_thread, print_table, write_json

PROGRAMS = {
    "nothing": "pass",
    "numpy": "import numpy",
    "numpy, attrs, optree, xxhash": "import numpy, attrs, optree, xxhash",
    "pullback": "import pullback",
}


def child_seconds(program: str, cache: str) -> float:
    """CPU seconds of one fresh interpreter that runs ``program``, compiled modules kept in ``cache`` as where it is
    installed."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"} | {
        "PYTHONPYCACHEPREFIX": cache
    }
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    # Our own interpreter and text.
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)  # noqa: S603
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    options = arguments("CPU time of imports in fresh interpreters")
    one_thread()
    best = dict.fromkeys(PROGRAMS, float("inf"))
    with tempfile.TemporaryDirectory() as cache:
        for _ in range(3 if options.quick else 15):
            for name, program in PROGRAMS.items():
                best[name] = min(best[name], child_seconds(program, cache))
    rows = [
        {"import": name, "ms": seconds * 1e3, "ms beyond nothing": (seconds - best["nothing"]) * 1e3}
        for name, seconds in best.items()
    ]
    print_table(rows)
    write_json(options.json, rows)


if __name__ == "__main__":
    main()
