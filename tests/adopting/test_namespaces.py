"""What adopted code finds where it imports libraries."""

import sys
from importlib.metadata import EntryPoint
from types import ModuleType

import numpy as np
import pytest

import pullback as pb
from pullback.adopting import namespaces
from pullback.words import plugins


@pytest.fixture
def brought(monkeypatch):
    """A plugin that brings scipy.linalg.solve and nothing else of SciPy."""
    package, linalg = ModuleType("brought_scipy"), ModuleType("brought_scipy.linalg")
    linalg.solve = lambda a, b: ("ours", np.sum(a) + np.sum(b))
    package.linalg = linalg
    package.__path__ = []
    monkeypatch.setitem(sys.modules, "brought_scipy", package)
    monkeypatch.setitem(sys.modules, "brought_scipy.linalg", linalg)
    points = {"pullback.namespaces": [EntryPoint("scipy", "brought_scipy", "pullback.namespaces")]}
    original = plugins.entry_points
    monkeypatch.setattr(plugins, "entry_points", lambda group: points.get(group) or original(group))
    caches = (namespaces.libraries, namespaces.library_namespace)
    for cache in caches:
        cache.cache_clear()
    yield
    for cache in caches:
        cache.cache_clear()


TEXT = """
import scipy
import scipy.linalg
import scipy.special as special
from scipy.linalg import solve, det
from scipy import linalg as again, integrate
import scipy.linalg as linalg_alone

def f():
    assert scipy.linalg.inv is not None and linalg_alone.inv is scipy.linalg.inv
    return solve(1, 2), scipy.linalg.solve is solve, again.solve is solve, det, special.gamma(5.0), integrate.quad
"""


def test_a_plugin_stands_for_what_it_brings_and_the_rest_is_plain(tmp_path, brought):
    linalg = pytest.importorskip("scipy.linalg")
    (tmp_path / "with_brought_scipy.py").write_text(TEXT)
    ours, one, other, det, gamma, quad = pb.adopt(tmp_path / "with_brought_scipy.py").f()
    assert ours == ("ours", 3)
    assert one
    assert other
    assert det is linalg.det
    assert gamma == 24.0
    assert quad is sys.modules["scipy.integrate"].quad


NUMBERS = """
import cmath, math
import numpy as np
from math import *
from numpy import *
from numpy.random import default_rng, rand
from numpy.linalg import norm

def f(t):
    u = zeros(4)
    u[0], u[1] = math.hypot(t, 1.0), math.log(t, 2)
    u[2:] = t * default_rng(1).random(2)
    v = list(map(math.exp, [t, 1.0]))
    w = np.full(3, t) + np.array([t, 2.0, 3.0], dtype=np.float64)
    z = cmath.exp(1j * t)
    return u.sum() + v[0] * v[1] + math.fsum([t, 1.0]) + w.sum() + z.imag + np.float64(t) + degrees(t) + math.floor(t)
"""


def test_math_and_numpy_mean_numpy_on_tracers(tmp_path):
    (tmp_path / "with_numbers.py").write_text(NUMBERS)
    copy, h = pb.adopt(tmp_path / "with_numbers.py"), 1e-6
    gradient = pb.grad(copy.f)(0.7)
    np.testing.assert_allclose(gradient, (copy.f(0.7 + h) - copy.f(0.7 - h)) / (2 * h), rtol=1e-8)
    assert pb.grad(copy.f, policy=pb.Binomial(2))(0.7) == gradient
    assert copy.np.sin is np.sin
    assert isinstance(0.5, copy.np.float64) is False
    assert np.zeros(2, dtype=copy.np.float32).dtype == np.float32


def test_an_array_that_depends_on_nothing_is_read_by_anybody(tmp_path):
    (tmp_path / "with_reading.py").write_text(
        "import numpy as np\nREAD = []\n\ndef f(t):\n    u = np.linspace(0, 1, 4)\n    READ.append(u)\n"
        "    k = [7, 8, 9][int(u[3])]\n    return np.sum(u * t) * k, np.interp(0.5, u.tolist(), [0.0, 1.0, 2.0, 3.0])\n"
    )
    copy = pb.adopt(tmp_path / "with_reading.py")

    def f(t):
        out, middle = copy.f(t)
        given = np.asarray(copy.READ[-1])
        assert type(given) is np.ndarray
        with pytest.raises(ValueError, match="read-only"):
            given[0] = 1.0
        assert middle == 1.5
        assert np.array(copy.READ[-1]).flags.writeable
        with pytest.raises(pb.WriteError, match="has a plain view"):
            copy.READ[-1][0] = t
        del given
        copy.READ[-1][0] = t
        with pytest.raises(pb.ConversionError):
            np.asarray(copy.READ[-1])
        return out

    assert pb.grad(f)(0.5) == 16.0


LENT = """
import numpy as np

class Grid(np.ndarray):
    def inner(self):
        return self[1:-1]

def bits(c, u):
    return u.view(np.int64)

def kept(c, u):
    return np.ma.array(u, copy=False)

def part(c, u):
    return np.ma.array(u[1:3], copy=False)

def let_go(c, u):
    np.ma.array(u, copy=False).sum()

def copied(c, u):
    return np.ma.array(u, copy=True)

def assigned(c, u):
    u[2] = c

def added(c, u):
    u += c

def filled(c, u):
    u.fill(c)

def written(c, u):
    np.multiply(u, c, out=u)

def plain(c, u):
    u[2] = 5.0
    u += 1.0

def run(c, read, write):
    u = np.zeros(4)
    seen = read(c, u)
    write(c, u)
    return np.sum(u) * c, seen

def subclassed(c):
    u = np.zeros(4).view(Grid)
    u[1:-1] = c
    return np.sum(u.inner())
"""


@pytest.fixture(scope="module")
def lending(tmp_path_factory):
    path = tmp_path_factory.mktemp("lent") / "lending.py"
    path.write_text(LENT)
    return pb.adopt(path)


@pytest.mark.parametrize("policy", [pb.SaveAll(), pb.Binomial(2)], ids=repr)
@pytest.mark.parametrize("write", ["assigned", "added", "filled", "written"])
@pytest.mark.parametrize("read", ["bits", "kept", "part"])
def test_nothing_traced_is_written_where_others_look(read, write, policy, lending):
    def f(c):
        return lending.run(c, getattr(lending, read), getattr(lending, write))[0]

    with pytest.raises(pb.WriteError, match=r"has a plain view.*np\.array\(x\)"):
        pb.grad(f, policy=policy)(0.5)
    with pytest.raises(pb.WriteError, match="has a plain view"):
        pb.jvp(f, (0.5,), (1.0,))


@pytest.mark.parametrize("write", ["assigned", "added", "filled", "written"])
def test_views_that_are_gone_do_no_harm(write, lending):
    found = pb.grad(lambda c: lending.run(c, lending.let_go, getattr(lending, write))[0])(0.5)
    expected = {"assigned": 1.0, "added": 4.0, "filled": 4.0, "written": 0.0}
    assert found == expected[write]


def test_plain_writes_that_others_would_not_see_are_refused(lending):
    with pytest.raises(pb.WriteError, match="has a plain view"):
        pb.grad(lambda c: lending.run(c, lending.kept, lending.plain)[0])(0.5)
    assert pb.grad(lambda c: lending.run(c, lending.copied, lending.plain)[0])(0.5) == 9.0


def test_a_subclass_of_ndarray_is_named_with_what_to_write_instead(lending):
    for f in (lending.subclassed, lambda c: np.ones(3) * c, lambda c: (np.ones(3) * c).view(lending.Grid)):
        error = None
        try:
            pb.grad(lambda c, f=f: np.sum(f(c)))(0.5)
        except (pb.NotDifferentiableError, AttributeError) as caught:
            error = str(caught)
        assert error is None or "self.data = d" in error
    with pytest.raises(pb.NotDifferentiableError, match="Grid is a subclass of ndarray"):
        pb.grad(lending.subclassed)(0.5)


OF_MATH = """
import math
import numpy as np

def types(c, x):
    return [x * math.sqrt(c), x * math.sqrt(x[0]), x * math.atan2(x[1], c), x * math.hypot(c, x[2]), x * math.log(c, 2),
            x * math.fsum([c, x[0]]), x * math.pow(c, 2), x * math.hypot(c, x[0], x[1]), x * round(c, 2)]

def indices(c, x):
    n = math.floor(c * 3)
    u = np.zeros(n + 3)
    u[n] = c
    for i in range(math.ceil(c * 2)):
        u[i] = u[i] + c * x[math.trunc(c) + i]
    return np.sum(u) + c * [1.0, 2.0, 3.0][round(c * 2)] + c * (n // 2)

def loop(c, x):
    s = 0.5
    for i in range(3):
        s = math.sin(s * c + i)
    return np.sum(x * s)
"""


@pytest.fixture
def numbers(tmp_path):
    (tmp_path / "numbers_of_math.py").write_text(OF_MATH)
    return pb.adopt(tmp_path / "numbers_of_math.py")


def test_math_gives_numbers_of_pythons(numbers):
    """They leave arrays in single precision as they are, and are computed in double precision."""
    x, c = np.array([0.3, 0.7, 1.1], np.float32), 0.8
    for wanted, found in zip(numbers.types(c, x), pb.vjp(numbers.types, c, x)[0], strict=True):
        assert found.dtype == wanted.dtype == np.float32
        assert found.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("staging", ["auto", "off"])
def test_a_loop_as_a_whole_gives_numbers_of_pythons(numbers, staging):
    x, c = np.array([0.3, 0.7, 1.1], np.float32), 0.8
    with pb.using(staging=staging):
        value, gradient = pb.value_and_grad(numbers.loop)(c, x)
    assert value.dtype == np.float32
    assert value == numbers.loop(c, x)
    h = 1e-6
    double = x.astype(float)
    np.testing.assert_allclose(
        gradient, (numbers.loop(c + h, double) - numbers.loop(c - h, double)) / (2 * h), rtol=1e-6
    )


def test_what_math_and_round_give_as_integers_may_be_indices(numbers):
    x, c = np.array([0.3, 0.7, 1.1]), 0.8
    value, gradient = pb.value_and_grad(numbers.indices)(c, x)
    assert value == numbers.indices(c, x)
    h = 1e-6
    np.testing.assert_allclose(gradient, (numbers.indices(c + h, x) - numbers.indices(c - h, x)) / (2 * h), rtol=1e-8)
