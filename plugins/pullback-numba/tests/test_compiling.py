"""Equal nests are one, whatever the size of the arrays, and may be kept on disk."""

import os
import subprocess
import sys

import numpy as np

import pullback as pb
from pullback_numba import compiling

PROGRAM = """
import numpy as np, pullback as pb, time
def body(k, u):
    return u * 0.5 + u / 3.0
print(pb.grad(lambda x: np.sum(pb.fori_loop(0, 6, body, x, staging="numba")))(np.ones(2000))[:2])
from pullback_numba import compiling
for kernel in compiling._KERNELS.values():
    print(sum(kernel.stats.cache_hits.values()), sum(kernel.stats.cache_misses.values()))
"""


def test_equal_nests_of_other_sizes_are_compiled_once(monkeypatch):
    monkeypatch.setattr(compiling, "_KERNELS", {})

    def gradient(n):
        def body(k, u):
            v = u * 0.5
            v[1:-1] += u[2:] - u[:-2]
            return v

        return pb.grad(lambda x: np.sum(pb.fori_loop(0, 6, body, x, staging="numba")))(np.ones(n))

    gradient(4000)
    known = set(compiling._KERNELS)
    gradient(5000)
    assert set(compiling._KERNELS) == known
    assert all(len(kernel.signatures) == 1 for kernel in compiling._KERNELS.values())


def test_nests_are_kept_in_a_folder(tmp_path):
    def ran():
        path = os.pathsep.join(filter(None, sys.path))
        environment = os.environ | {compiling.CACHE: str(tmp_path / "nests"), "PYTHONPATH": path}
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    first, second = ran(), ran()
    assert first[0] == second[0]
    assert all(line == "0 1" for line in first[1:])
    assert all(line == "1 0" for line in second[1:])
    assert second[1:]
    assert list((tmp_path / "nests").glob("nest_*.py"))
