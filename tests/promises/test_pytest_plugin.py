"""The marker ``peak`` and the fixture ``profile``, in a run of pytest of their own."""

import os
import subprocess
import sys

ALONE = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # it may be installed, too
TESTS = """
import numpy as np
import pytest
import pullback as pb

def f(x):
    return np.sum(pb.fori_loop(0, 50, lambda k, u: np.sin(u), x))

@pytest.mark.peak("1 MB")
def test_within():
    pb.grad(f)(np.ones(100))

@pytest.mark.peak("10 kB")
def test_beyond():
    pb.grad(f)(np.ones(100))

@pytest.mark.peak("10 kB")
@pytest.mark.parametrize("policy", [pb.Binomial(2)])
def test_under_a_policy(policy):
    pb.grad(f, policy=policy)(np.ones(100))

@pytest.mark.peak("1 MB")
def test_that_fails_by_itself():
    raise RuntimeError("on its own")

@pytest.mark.peak
def test_without_a_number():
    pass

@pytest.mark.peak("1 MB")
def test_that_computes_no_gradient():
    pb.vjp(f, np.ones(100))

def test_with_the_fixture(profile):
    pb.grad(f)(np.ones(100))
    assert profile.n_passes == 1
    profile.assert_peak("1 MB")
"""


def test_the_marker_and_the_fixture(tmp_path):
    (tmp_path / "test_mine.py").write_text(TESTS, "utf-8")
    plugin = "pullback_pytest"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--strict-markers", "-p", plugin, "-p", "no:cacheprovider", "."],
        cwd=tmp_path, capture_output=True, text=True, check=False, env=ALONE,
    )  # fmt: skip
    assert "4 failed, 3 passed" in done.stdout
    assert "a reverse pass held" in done.stdout
    assert "more than the 10,000 that are allowed" in done.stdout
    assert "RuntimeError: on its own" in done.stdout
    assert "no reverse pass has come to its end here" in done.stdout
    assert "the marker peak of test_without_a_number takes the bytes that a pass may hold" in done.stdout


def test_a_run_without_them_imports_nothing(tmp_path):
    (tmp_path / "test_other.py").write_text(
        "import sys\n\ndef test_other():\n    assert 'numpy' not in sys.modules\n", "utf-8"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "pullback_pytest", "-p", "no:cacheprovider", "."],
        cwd=tmp_path, capture_output=True, text=True, check=False, env=ALONE,
    )  # fmt: skip
    assert "1 passed" in done.stdout
