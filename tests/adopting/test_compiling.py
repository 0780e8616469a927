"""Functions that numba compiles: compiled on plain arrays, Python on tracers."""

import numpy as np
import pytest

import pullback as pb

numba = pytest.importorskip("numba", reason="numba is not installed")

TEXT = """
import numba
import numpy as np
from numba import njit

SCALE = 3.0

@njit
def inner(x):
    return SCALE * x * x

@numba.jit(nopython=True, cache=False)
def outer(u, n):
    v = np.zeros(n)
    for i in range(n):
        v[i] = inner(u[i])
    return v

def run(u):
    return outer(u, len(u)).sum()
"""


def test_a_compiled_function_runs_as_python_on_tracers(tmp_path):
    (tmp_path / "compiled_steps.py").write_text(TEXT)
    steps = pb.adopt(tmp_path / "compiled_steps.py")
    u = np.linspace(0, 1, 5)
    assert steps.run(u) == np.sum(3.0 * u * u)
    assert steps.outer.compiled.signatures  # numba has compiled it
    assert steps.inner(2.0) == 12.0
    np.testing.assert_array_equal(pb.grad(steps.run)(u), 6.0 * u)
    assert (pb.grad(steps.run, policy=pb.Binomial(2))(u) == pb.grad(steps.run)(u)).all()
