"""A program written for SciPy, adopted: its imports find the namespaces, and no line is changed."""

import numpy as np
import pytest

import pullback as pb

PROGRAM = """
import numpy as np
import scipy.linalg
import scipy.optimize as opt
import scipy.sparse as sp
from scipy import ndimage, special, stats
from scipy.sparse.linalg import spsolve

def heat(c):
    a = sp.diags([-c[1:-1], c[:-1] + c[1:], -c[1:-1]], [-1, 0, 1], format="csc")
    return np.sum(spsolve(a, np.ones(len(c) - 1)))

def smooth(c):
    u = np.zeros((8, 8))
    u[2:4] = c[0]
    return np.sum(ndimage.gaussian_filter(u, 1.0) ** 2) + scipy.linalg.expm(u * 0.1)[0, 3] + stats.norm.logpdf(c[1])

def root(c):
    return opt.brentq(lambda x: x**3 - c[0], 0.0, 3.0) + special.logsumexp(c)
"""


@pytest.mark.parametrize("name", ["heat", "smooth", "root"])
def test_an_adopted_program_has_its_gradient(name, tmp_path):
    path = tmp_path / f"written_for_scipy_{name}.py"
    path.write_text(PROGRAM, "utf-8")
    f = getattr(pb.adopt(str(path)), name)
    pb.testing.taylor_test(f, np.linspace(1.0, 2.0, 7))
