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


BY_NAME = """
import numba
import numpy as np

def scaled(x, out):
    for i in range(x.shape[0]):
        out[i] = 2.0 * np.sqrt(x[i])

scaled_by_rows = numba.guvectorize(["(f8[:], f8[:])"], "(n)->(n)")(scaled)

def root(x):
    return np.sqrt(x) * x

fast = numba.njit(root)

def run(u):
    return fast(u).sum() + scaled_by_rows(np.ones(3)).sum()
"""


def test_a_function_that_is_compiled_by_its_name_is_compiled_as_it_stands(tmp_path):
    (tmp_path / "compiled_by_name.py").write_text(BY_NAME)
    steps = pb.adopt(tmp_path / "compiled_by_name.py")
    u = np.linspace(1, 2, 5)
    assert steps.run(u) == (np.sqrt(u) * u).sum() + 6.0
    assert steps.fast.compiled.signatures
    np.testing.assert_allclose(pb.grad(steps.run)(u), 1.5 * np.sqrt(u))
