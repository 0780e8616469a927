"""Other people's tests of programs that are written for HIPS autograd, under the alias of the plugin pullback-autograd.

Each suite runs in a process of its own, ``python -m pullback_autograd -m pytest``; what fails must be among the tests
that docs/from-autograd.md explains. A suite needs its checkout, and what its project needs, without autograd being
imported first::

    AUTOGRAD=/path/to/autograd PYMANOPT=/path/to/pymanopt AUTOGRAD_GAMMA=/path/to/autograd-gamma \
        sh .ci/test -m slow tests/external/test_autograd_suites.py

(https://github.com/HIPS/autograd read at bff107b, https://github.com/pymanopt/pymanopt at a1f52e7, whose conftest.py
imports TensorFlow, https://github.com/CamDavidsonPilon/autograd-gamma at 5876e03, and
https://github.com/fancompute/ceviche at dcb8587.)
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SUITES = {
    "AUTOGRAD": ("tests",),
    "AUTOGRAD_GAMMA": ("tests",),
    "CEVICHE": ("tests",),
    "PYMANOPT": ("tests/backends/test_autograd.py", "tests/manifolds", "tests/optimizers"),
}
DIFFERENT = {
    *(f"test_eigvalh_{which}" for which in ("lower", "upper", "lower_broadcasting", "upper_broadcasting")),
    *("test_eigvalh_lower_complex", "test_eigvalh_upper_complex"),  # the symmetric gradient
    "test_pinv",  # asks for a name with an underscore
    *("test_assignment_raises_error", "test_rfftn_odd_not_implemented"),  # ours are differentiated
    *("test_const_graph", "test_const_graph_args"),  # runs at each call
    *("test_custom_where_dtypes", "test_wrapped_name_and_docs"),  # NumPy's own, our docstrings
    "test_grad_for_H",  # S += t with a plain array S
    *("test_Hz_forward", "test_spmut_entries"),  # of ceviche: primitives on sparse entries, not yet looked into
}


@pytest.mark.slow
@pytest.mark.parametrize("project", SUITES)
def test_a_suite_runs_under_the_alias(project):
    checkout = os.environ.get(project)
    if checkout is None:
        pytest.skip(f"needs {project}, the path of a checkout")
    command = [sys.executable, "-m", "pullback_autograd", "-m", "pytest", "-c", os.devnull, f"--rootdir={checkout}"]
    options = ["-q", "-rfE", "-p", "no:cacheprovider", "-W", "ignore", *SUITES[project]]
    done = subprocess.run([*command, *options], cwd=Path(checkout), capture_output=True, text=True, check=False)
    failed = set(re.findall(r"^(?:FAILED|ERROR) \S*?::(?:\w+::)*(\w+)(?:\[|\s|$)", done.stdout, re.MULTILINE))
    assert re.search(r"\d+ passed", done.stdout), done.stdout[-2000:] + done.stderr[-2000:]
    assert failed <= DIFFERENT
