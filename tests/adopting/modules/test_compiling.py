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


FURTHER = """
import numpy as np
from numba import float64, guvectorize, njit, vectorize, void
from numba.experimental import jitclass
from numba.extending import register_jitable

def quick(*args, **options):
    return njit(*args, **{"nogil": True, **options})

@quick
def squares(u):
    total = 0.0
    for i in range(u.size):
        total += u[i] * u[i]
    return total

@quick(fastmath=False)
def sums(u):
    v = np.zeros(u.size)
    for i in range(1, u.size):
        v[i] = v[i - 1] + squares(u) * u[i]
    return v

@njit("f8(f8)")
def twice(x):
    return 2.0 * x

@njit("f8(f8)")
def four_times(x):
    return twice(twice(x))

@njit
def power(x, n):
    return x * power(x, n - 1) if n else 1.0

@register_jitable
def shifted(x):
    return x + 0.5

@vectorize
def clipped(x, y):
    if x > 0.3:
        return x * y
    return y * y

@guvectorize([void(float64[:], float64, float64[:])], "(n),()->(n)")
def scaled(x, c, out):
    for i in range(x.shape[0]):
        out[i] = twice(c) * x[i]

@guvectorize(["void(f8[:,:], f8[:], f8[:])"], "(m,n),(n)->(m)")
def products(a, x, out):
    for i in range(a.shape[0]):
        out[i] = 0.0
        for j in range(a.shape[1]):
            out[i] += a[i, j] * x[j]

@guvectorize([void(float64[:], float64[:], float64[:])], "(n),()->()")
def moments(x, c, out):
    out[0] = c[0] * (x**2).sum()

@jitclass([("rate", float64), ("held", float64[:])])
class Tank:
    def __init__(self, rate):
        self.rate = rate
        self.held = np.zeros(3)

    def fill(self, u):
        for i in range(3):
            self.held[i] = self.rate * shifted(u[i])
        return self.held.sum()

@njit
def filled(tank, u):
    return tank.fill(u) + tank.rate

DEFAULT = Tank(2.0)

def by_other_decorators(u):
    return sums(u).sum() + four_times(u[0]) + power(u[1], 3)

def as_ufuncs(u):
    out = np.zeros((2, u.size))
    both = np.stack([u, 2.0 * u])
    scaled(both, u[:2], out=out)
    return clipped(u, 2.0).sum() + out.sum() + (products(np.outer(u, u), both) ** 2).sum() + moments(both, u[1]).sum()

def as_a_class(u):
    return filled(Tank(u[0]), u) * isinstance(Tank(2.0), Tank)
"""


@pytest.mark.parametrize("name", ["by_other_decorators", "as_ufuncs", "as_a_class"])
def test_whatever_numba_compiles_is_compiled_on_plain_arrays_and_python_on_tracers(tmp_path, monkeypatch, name):
    (tmp_path / "compiled_further.py").write_text(FURTHER)
    monkeypatch.syspath_prepend(tmp_path)
    plain = getattr(__import__("compiled_further"), name)
    copy, u, h = getattr(pb.adopt(tmp_path / "compiled_further.py"), name), np.linspace(0.2, 1.0, 3), 1e-6
    assert np.asarray(copy(u)).tobytes() == np.asarray(plain(u)).tobytes()
    value, gradient = pb.value_and_grad(copy)(u)
    np.testing.assert_allclose(value, plain(u), rtol=1e-14)
    differences = [(plain(u + h * e) - plain(u - h * e)) / (2 * h) for e in np.eye(3)]
    np.testing.assert_allclose(gradient, differences, rtol=1e-7)
    for policy in (pb.Recompute(), pb.Binomial(2), pb.Keep()):
        assert (pb.grad(copy, policy=policy)(u) == gradient).all()


def test_a_compiled_function_calls_compiled_functions_of_another_module(tmp_path, monkeypatch):
    package = tmp_path / "compiled_package"
    (package / "parts").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "parts" / "__init__.py").write_text("from . import slopes\nFACTOR = 2.0\n")
    (package / "parts" / "slopes.py").write_text(
        "import numpy as np\nfrom numba import njit\nWEIGHTS = np.array([1.0, 3.0])\n"
        "@njit\ndef slope(x):\n    return x * np.sqrt(x) * WEIGHTS[1]\n"
    )
    (package / "model.py").write_text(
        "from numba import njit\nfrom . import parts\nfrom .parts import slopes\n"
        "@njit\ndef energy(x):\n    return parts.FACTOR * slopes.slope(x) + parts.slopes.slope(2.0 * x)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    plain, copy = __import__("compiled_package.model").model.energy, pb.adopt("compiled_package.model").energy
    assert copy(1.3) == plain(1.3)
    assert copy.compiled.signatures
    np.testing.assert_allclose(pb.grad(copy)(1.3), (plain(1.3 + 1e-6) - plain(1.3 - 1e-6)) / 2e-6, rtol=1e-8)
    assert pb.grad(lambda x: x * copy(1.3))(2.0) == plain(1.3)  # compiled within a trace


STENCILS = """
import numpy as np
from numba import njit, stencil

@stencil
def spread(a, c):
    return c * (a[0, 1] + a[0, -1] + a[1, 0] + a[-1, 0] - 4 * a[0, 0])

@stencil(neighborhood=((-2, 1),), cval=0.5)
def mean(a):
    total = 0.0
    for k in range(-2, 2):
        total += a[k]
    return total / 4

@stencil
def product(a, b):
    return a[0] * b[1]

@njit
def twice(u, c):
    return spread(spread(u, c), c)

def run(x):
    u = np.outer(x, np.arange(6.0)) ** 2
    out = np.zeros(6)
    mean(x, out=out)
    return (twice(u, x[0]) ** 2).sum() + (mean(x) * x).sum() + (out**2).sum() + product(x, np.arange(6.0) ** 2).sum()
"""


def test_stencils_are_applied_to_all_elements_at_once_on_tracers(tmp_path, monkeypatch):
    (tmp_path / "with_stencils.py").write_text(STENCILS)
    monkeypatch.syspath_prepend(tmp_path)
    plain, copy, x = __import__("with_stencils").run, pb.adopt("with_stencils").run, np.linspace(0.3, 1.1, 6)
    assert copy(x) == plain(x)
    value, gradient = pb.value_and_grad(copy)(x)
    np.testing.assert_allclose(value, plain(x), rtol=1e-14)
    along = np.array([0.3, -1.0, 0.7, 0.2, -0.6, 1.1])  # plain stencils are compiled in each call, so at two points
    difference = (plain(x + 1e-6 * along) - plain(x - 1e-6 * along)) / 2e-6
    np.testing.assert_allclose(gradient @ along, difference, rtol=1e-6)
    traced = lambda x: pb.value_and_grad(copy)(x)[0]  # noqa: E731
    differences = [(traced(x + 1e-6 * e) - traced(x - 1e-6 * e)) / 2e-6 for e in np.eye(6)]
    np.testing.assert_allclose(gradient, differences, rtol=1e-6, atol=1e-7)
    assert (pb.grad(copy, policy=pb.Recompute())(x) == gradient).all()
    file = tmp_path / "with_absolute_indices.py"
    file.write_text(
        "import numpy as np\nfrom numba import stencil\n@stencil(standard_indexing=('b',))\ndef f(a, b):\n"
        "    return a[1] * b[0]\ndef run(x):\n    return f(x, np.ones(2)).sum()\n"
    )
    with pytest.raises(pb.NotDifferentiableError, match=r"standard_indexing has no derivative here \(f\); write"):
        pb.grad(pb.adopt(file).run)(x)
