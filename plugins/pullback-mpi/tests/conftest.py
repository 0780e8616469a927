"""Programs on several ranks as tests. Where MPI is missing they are skipped with that reason, never passed."""

import os
import shutil
import signal
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parent / "programs"
LIMIT = 240
"""Seconds after which a run is ended, with all its processes: far more than any takes on a machine that is busy."""
MISSING = "MPI is missing, so the tests of pullback-mpi are not run: python -m pip install mpi4py mpich"
# Without these Open MPI starts no more ranks than there are cores, and none for root, whom containers run as.
OPEN_MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}  # fmt: skip


@cache
def mpiexec() -> str | None:
    """The program that starts ranks, beside this interpreter or on the path; None where it or mpi4py does not work."""
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
    found = shutil.which("mpiexec", path=path)
    return found if found and start(found, 1, ["-c", "from mpi4py import MPI"])[0] == 0 else None


def start(program: str, n: int, arguments: list[str]) -> tuple[int | None, str]:
    """The exit code and the output of a program on n ranks; None where it had to be ended."""
    command = [program, "-n", str(n), sys.executable, *arguments]
    running = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", **OPEN_MPI},
    )  # fmt: skip
    try:
        output, _ = running.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        os.killpg(running.pid, signal.SIGKILL)
        return None, running.communicate()[0]
    return running.returncode, output


@pytest.fixture
def starter():
    """The program that starts ranks."""
    found = mpiexec()
    if found is None:
        pytest.skip(MISSING)
    return found


@pytest.fixture
def on_executor(starter):
    """A function ``(n, program) -> (exit code, output)``: one rank runs it, the others are workers of its executors."""
    return lambda n, name: start(starter, n, ["-m", "mpi4py.futures", str(PROGRAMS / name)])


@pytest.fixture
def ranks(starter, tmp_path_factory):
    """A function ``(n, program, *arguments) -> (exit code, output)``; the output of the ranks one after the other."""

    def run(n, name, *arguments):
        folder = tmp_path_factory.mktemp("output")
        code, above = start(
            starter, n, [str(PROGRAMS / "rank_output.py"), str(folder), str(PROGRAMS / name), *map(str, arguments)]
        )
        told = [path.read_text("utf-8", errors="replace") for path in sorted(folder.glob("*.txt"))]
        return code, "".join((*told, above))

    return run
