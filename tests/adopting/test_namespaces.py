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
        copy.READ[-1][0] = t
        with pytest.raises(pb.ConversionError):
            np.asarray(copy.READ[-1])
        return out

    assert pb.grad(f)(0.5) == 16.0
