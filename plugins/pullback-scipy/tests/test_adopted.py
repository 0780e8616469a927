"""A program written for SciPy, adopted: its imports find the namespaces, and no line is changed."""

import numpy as np
import pytest

import pullback as pb

PROGRAM = """
import numpy as np
import scipy.linalg
import scipy.optimize as opt
import scipy.sparse as sp
from scipy import fftpack, integrate, interpolate, ndimage, special, stats
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

def fit(c):
    x = np.linspace(0.0, 1.0, 9)
    return opt.curve_fit(lambda x, a, b: a * np.exp(-b * x), x, c[0] * np.exp(-c[1] * x), p0=[1.0, 1.0])[0] @ c[:2]

def fit_by_signature(c):
    x = np.linspace(0.0, 1.0, 9)
    return opt.curve_fit(lambda x, a, b: a + b * x, x, c[0] + c[1] * x)[0] @ c[:2]

def steer(c):
    x = sp.csr_matrix((c[:4] * 2.0, (np.arange(4), np.arange(4))), shape=(4, 4))
    assert type(x) is sp.csr_matrix
    times = np.arange(0.0, 1.0, 0.25)            # made in the trace, and depends on nothing
    moved = integrate.solve_ivp(lambda t, y: -c[0] * y, (times[0], times[-1]), [1.0, 2.0], t_eval=times).y
    line = interpolate.interp1d(times, moved[0], fill_value=(times[0], times[1]), bounds_error=False)
    on_grid = interpolate.RegularGridInterpolator((times, times), np.outer(c[:4], c[1:5]))(np.array([[0.3, 0.4]]))
    still = ndimage.shift(np.ones((3, 3)), (0, 0.5), mode="nearest")     # an option without a rule, of plain numbers
    gain = scipy.linalg.solve_continuous_are(np.eye(2) * c[0], np.eye(2), np.eye(2), np.eye(2))
    return np.sum(x @ c[:4]) + line(0.3) + on_grid[0] + np.sum(gain) * still[0, 0] + fftpack.dct(c)[2]

"""


@pytest.mark.parametrize("name", ["heat", "smooth", "root", "steer", "fit", "fit_by_signature"])
def test_an_adopted_program_has_its_gradient(name, tmp_path):
    path = tmp_path / f"written_for_scipy_{name}.py"
    path.write_text(PROGRAM, "utf-8")
    f = getattr(pb.adopt(str(path)), name)
    pb.testing.taylor_test(f, np.linspace(1.0, 2.0, 7))


@pytest.mark.filterwarnings("ignore:.*is deprecated")  # SciPy's, of its old names
def test_old_names_of_submodules_mean_the_new_ones(tmp_path):
    path = tmp_path / "written_for_old_scipy.py"
    path.write_text(
        "import numpy as np\n"
        "import scipy.sparse as sp\n"
        "import scipy.linalg.basic as basic\n"
        "from scipy.sparse.linalg import dsolve\n"
        "from scipy.ndimage.filters import gaussian_filter\n"
        "def f(c):\n"
        "    a = sp.diags([-c[1:-1], c[:-1] + c[1:], -c[1:-1]], [-1, 0, 1], format='csc')\n"
        "    u = dsolve.spsolve(a, np.ones(len(c) - 1)) + basic.solve(a.toarray(), c[1:])\n"
        "    return np.sum(gaussian_filter(u, 1.0) ** 2)\n",
        "utf-8",
    )
    pb.testing.taylor_test(pb.adopt(path).f, np.linspace(1.0, 2.0, 7))
