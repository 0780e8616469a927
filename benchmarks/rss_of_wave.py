"""The resident memory of one gradient of a long wave under Binomial(20), in a process that does nothing else.

    python benchmarks/rss_of_wave.py FORM STEPS SIZE

prints the bytes by which the resident memory rises above that after the imports; FORM is ``fori_loop`` or ``pb.steps``,
the field is SIZE x SIZE. The kernel tells them in a file; systems without that file have no such figure.
"""

import sys
from pathlib import Path

import bench_wave

import pullback as pb
from pullback.demos import wave_model

STATUS = Path("/proc/self/status")


def resident(field: str) -> int:
    """Bytes of ``VmRSS``, the resident memory now, or ``VmHWM``, the most there was, of this process."""
    line = next(line for line in STATUS.read_text(encoding="utf-8").splitlines() if line.startswith(field))
    return 1024 * int(line.split()[1])


def long_wave(form: str, n_steps: int, n: int) -> int:
    """The rise of the resident memory by one gradient."""
    before = resident("VmRSS")
    c, problem = bench_wave.problem_of(n, n_steps)
    policy = pb.Binomial(20)
    if form == "pb.steps":
        pb.grad(lambda c: wave_model.misfit(c, problem, pb.steps(n_steps)), policy=policy)(c)
    else:
        pb.grad(bench_wave.misfit_of(problem, policy))(c)
    return resident("VmHWM") - before


if __name__ == "__main__":
    print(long_wave(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
