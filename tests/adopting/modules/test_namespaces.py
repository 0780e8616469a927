"""What adopted code finds where it imports libraries."""

import sys
from importlib.metadata import EntryPoint
from types import ModuleType

import numpy as np
import pytest

import pullback as pb
from pullback.adopting.modules import namespaces
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
    linalg = pytest.importorskip("scipy.linalg", reason="its functions are what is called")
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

    with pytest.warns(pb.RefusalWarning):  # of the error that is asked for in f
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
    with pytest.raises(AttributeError, match=r"self\.data = d"):
        pb.grad(lambda c: np.sum((np.ones(3) * c).view(lending.Grid)))(0.5)
    with pytest.raises(pb.WriteError, match=r"lending\.py:\d+\).*write a class that has the array as an attribute"):
        pb.grad(lending.subclassed)(0.5)


def test_a_subclass_of_ndarray_that_is_read_alone_runs(tmp_path):
    (tmp_path / "with_basis.py").write_text(
        "import numpy as np\n\nclass Basis(np.ndarray):\n    def __new__(cls, values):\n"
        "        return np.asarray(values).view(cls)\n\n"
        "def f(t):\n    basis = Basis(np.linspace(0.0, 1.0, 5))\n"
        "    return np.sum(np.asarray(basis) * t) + basis[4] * t\n"
    )
    assert pb.grad(pb.adopt(tmp_path / "with_basis.py").f)(2.0) == 3.5


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


TYPES = """
import numpy as np
from numpy import float64, int64

Real = np.float64
Whole = int64

class Named(np.float64):
    pass

def limit(x: float | np.complex128 = 1.0):
    return x

def f(t):
    u = np.zeros(3, Real)
    u[:] = np.float64(t) * Real(t) + float64([t, 2.0])[1]
    k = int64(t) + Whole(t) + np.int32(10 * t) + np.uint8(t) + np.intp(u[0]) + np.bool_(t)
    z = np.complex128(t) * (1 + 2j)
    return u.sum() * k + np.abs(z) + np.float32(t) * np.float32(2.0), type(k) is np.int64

def asked(x):
    kinds = type(x) is np.float64, type(x) in (float, np.float32), type(x) == Real
    return *kinds, isinstance(x, np.floating), Named(2.0)
"""


def test_types_of_numbers_are_numpys_own_and_convert_tracers(tmp_path):
    (tmp_path / "with_types.py").write_text(TYPES)
    copy, h = pb.adopt(tmp_path / "with_types.py"), 1e-3
    (value, whole), gradient = pb.value_and_grad(copy.f, has_aux=True)(2.35)
    plain, plainly_whole = copy.f(2.35)
    assert (float(value), whole) == (float(plain), plainly_whole)
    difference = (copy.f(2.35 + h)[0] - copy.f(2.35 - h)[0]) / (2 * h)
    np.testing.assert_allclose(gradient, difference, rtol=1e-3)
    assert copy.np.float64 is np.float64
    assert copy.asked(np.float64(1.0)) == (True, False, True, True, 2.0)
    assert copy.asked(np.float32(1.0))[:4] == (False, True, False, True)
    assert copy.limit() == 1.0


DRAWN = """
import numpy as np
import matplotlib.pyplot as plt

def f(c, draw):
    u = np.linspace(0.0, 1.0, 5) * c
    figure, axes = plt.subplots()
    axes.plot(u, np.sin(u), label="%.2f" % c)
    axes.set_ylim(0.0, u.max())
    axes.axhline(c)
    plt.scatter(u, u)
    plt.imshow(np.outer(u, u))
    if draw:
        plt.hist(u)
    plt.close(figure)
    return np.sum(u**2)
"""


def test_what_adopted_code_draws_are_values(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib", reason="it draws")
    monkeypatch.setenv("MPLBACKEND", "Agg")
    (tmp_path / "with_pictures.py").write_text(DRAWN)
    copy = pb.adopt(tmp_path / "with_pictures.py")
    assert pb.grad(lambda c: copy.f(c, False))(2.0) == 7.5
    with pytest.raises(pb.ConversionError, match=r"with_pictures.py:14.*matplotlib.* computes on plain arrays"):
        pb.grad(lambda c: copy.f(c, True))(2.0)


def test_what_is_drawn_elsewhere_is_refused():
    pyplot = pytest.importorskip("matplotlib.pyplot", reason="it draws")
    with pytest.raises(pb.ConversionError, match=r"matplotlib.*plot computes on plain arrays: draw pullback\.value"):
        pb.grad(lambda x: np.sum(x) * len(pyplot.plot(x)))(np.ones(3))


STRIDED = """
import numpy as np
from numpy.lib.stride_tricks import as_strided

def f(x):
    u = np.zeros(9)
    u[1:8] = x
    step = u.strides[0]
    frames = as_strided(u, shape=(4, 3), strides=(2 * step, step))[::2]
    square = np.lib.stride_tricks.as_strided(x[::-1][:6].copy().reshape(2, 3).T, (2, 2, 2), (24, 8, 8))
    total = np.sum(frames * np.arange(3.0)) + np.sum(square**2)
    u[3] = 2.0 * x[0]                        # the view shows it
    return total + np.sum(frames**3)
"""


def test_strided_views_of_tracers(tmp_path):
    (tmp_path / "with_strides.py").write_text(STRIDED)
    copy, x = pb.adopt(tmp_path / "with_strides.py"), np.linspace(0.5, 1.7, 7)
    value, gradient = pb.value_and_grad(copy.f)(x)
    assert value == copy.f(x)
    for policy in (pb.Recompute(), pb.Binomial(2)):
        np.testing.assert_array_equal(pb.grad(copy.f, policy=policy)(x), gradient)
    pb.testing.check_grads(copy.f, (x,), order=2)


@pytest.mark.parametrize(("shape", "strides"), [((5, 4), (8, 8)), ((3,), (4,)), ((2,), (-8,)), ((0,), (8,))])
def test_a_strided_view_of_what_is_not_there_is_refused(tmp_path, shape, strides):
    (tmp_path / "beyond.py").write_text(
        "import numpy as np\n\ndef f(x, *way):\n    return np.sum(np.lib.stride_tricks.as_strided(x, *way)) + x[0]\n"
    )
    copy = pb.adopt(tmp_path / "beyond.py")
    with pytest.raises(pb.NotDifferentiableError, match=r"as_strided with shape .* beyond the elements of the array"):
        pb.grad(lambda x: copy.f(x, shape, strides))(np.ones(7))


def test_a_strided_view_is_not_written_through(tmp_path):
    (tmp_path / "written_strides.py").write_text(
        "import numpy as np\n\ndef f(x):\n    v = np.lib.stride_tricks.as_strided(x * 1.0, (2,), (8,))\n"
        "    v[0] = 3.0\n    return np.sum(v)\n"
    )
    with pytest.raises(pb.PullbackError, match="read-only"):
        pb.grad(pb.adopt(tmp_path / "written_strides.py").f)(np.ones(7))


PYTHON = """
import math
import random
import numpy as np
from numpy.random import default_rng, RandomState

def f(t):
    random.seed(0)
    u = np.linspace(1.0, 2.0, 4).reshape(2, 2) * t
    assert u.__class__ is np.ndarray and u[0, 0].__class__ is np.float64 and math.isclose(t, t, rel_tol=1e-9)
    rows = u.tolist()
    z = complex(t, 2.0) * complex(1.0, t)
    total = (rows[0][0] + rows[0][1]) * rows[1][1] + abs(z) + math.erf(t) - math.erfc(2 * t) + math.prod([t, t, 3])
    for (i, j), x in np.ndenumerate(u):
        total += (i + 2 * j) * x
    return total + random.gauss(t, 1.0)

def drawn(t):
    np.random.seed(1)
    rng, old = default_rng(2), RandomState(3)
    parts = [np.random.normal(t, 2.0 * t, 5), np.random.uniform(-t, t, (2, 3)), np.random.exponential(t, 4)]
    parts += [rng.normal(loc=np.ones(3) * t), rng.laplace(t, 0.5, size=2), rng.uniform(0.0, t)]
    parts += [rng.gumbel(scale=t, size=3)]
    parts += [old.logistic(t, 1.0, 3), old.rayleigh(t), old.standard_normal(2) * t, rng.normal(1.0, 2.0, 3) * t]
    return sum([np.sum(part**2) for part in parts])
"""


STARRED = """
from numpy import *
from numpy.linalg import *

def starred(t):
    u = zeros(2)
    u[:] = t
    return sum((t, 2 * t, t**2)) + norm([t, 1.0]) + mean([t, 3.0]) + u.sum()
"""


@pytest.mark.parametrize("name", ["f", "drawn", "starred"])
def test_what_python_and_generators_are_asked_in_adopted_code(tmp_path, name):
    (tmp_path / "with_python.py").write_text(STARRED if name == "starred" else PYTHON)
    f, h = getattr(pb.adopt(tmp_path / "with_python.py"), name), 1e-6
    value, gradient = pb.value_and_grad(f)(0.7)
    assert float(value).hex() == float(f(0.7)).hex()
    np.testing.assert_allclose(gradient, (f(0.7 + h) - f(0.7 - h)) / (2 * h), rtol=1e-7)
    assert pb.grad(f, policy=pb.Recompute())(0.7) == gradient


def test_a_draw_that_cannot_be_moved_is_refused_by_name(tmp_path):
    (tmp_path / "with_shape.py").write_text("import numpy as np\n\ndef f(t):\n    return np.random.gamma(t, 1.0)\n")
    with pytest.raises(pb.ConversionError, match=r"with_shape.py:4.*draw with plain parameters"):
        pb.grad(pb.adopt(tmp_path / "with_shape.py").f)(2.0)


OF_CLASSES = """
import math
import numpy as np

class Literal:
    __getitem__ = np.array

class Rule:
    root, length, zeros = math.sqrt, math.hypot, np.zeros

A = Literal()
TABLE = A[1.0, 2.0, 3.0]

class Layer:
    @np.vectorize
    def density(self, height):
        return 1.2 - 0.1 * height

    density_of_none = np.vectorize(lambda model, height: 2.0)

    def total(self, height):
        rule = Rule()
        made = rule.zeros(2)
        made[0] = rule.root(height) + rule.length(height, 3.0)
        return made[0] + Layer.density(self, height) + A[height, 1.0][0] + Layer.density_of_none(self, 3.0)
"""


def test_functions_written_in_c_are_no_methods_of_classes(tmp_path):
    (tmp_path / "of_classes.py").write_text(OF_CLASSES)
    copy = pb.adopt(tmp_path / "of_classes.py")
    np.testing.assert_array_equal(copy.TABLE, [1.0, 2.0, 3.0])
    assert copy.Layer().total(4.0) == 2.0 + 5.0 + 0.8 + 4.0 + 2.0
    np.testing.assert_allclose(pb.grad(copy.Layer().total)(4.0), 0.25 + 0.8 - 0.1 + 1.0)
    np.testing.assert_allclose(pb.hvp(copy.Layer().total, (4.0,), (1.0,)), -1 / 32 + 9 / 125)


ROOTS = """
import cmath

def by_branches(x):
    found = [cmath.sqrt(x - 2.0).imag, cmath.log(x - 2.0).imag, cmath.log(x - 3.0, 2.0).real, cmath.atanh(x + 1.0).real]
    found += [cmath.asin(x + 1.0).imag, cmath.acos(x + 1.0).imag, cmath.acosh(x - 0.3).imag, cmath.exp(x).real]
    found += [abs(cmath.sqrt(-x) - cmath.sinh(x)), cmath.phase(x - 2.0) * x, cmath.cos(x).real]
    found += [(cmath.sqrt(-x) ** 3).imag]
    return sum(k * part for k, part in enumerate(found, 1))
"""


def test_cmath_takes_a_real_number_for_a_complex_one(tmp_path):
    """Real functions gave nan where these have another branch: the square root of a number below zero."""
    (tmp_path / "roots_of_cmath.py").write_text(ROOTS)
    f, x = pb.adopt(tmp_path / "roots_of_cmath.py").by_branches, 0.7
    value, gradient = pb.value_and_grad(f)(x)
    np.testing.assert_allclose(value, f(x), rtol=1e-14)
    np.testing.assert_allclose(gradient, (f(x + 1e-6) - f(x - 1e-6)) / 2e-6, rtol=1e-8)
    np.testing.assert_allclose(pb.jvp(f, (x,), (1.0,))[1], gradient, rtol=1e-13)


ASKED_NUMBERS = """
import cmath
import math
import numpy as np

def of_numbers(x):
    mantissa, exponent = math.frexp(x)
    rest, whole = math.modf(x + 3.0)
    found = [math.ldexp(x, 2), mantissa * exponent, rest * whole, math.remainder(2.0 * x, 0.3), math.remainder(0.3, x)]
    found += [math.dist([x, 0.0, 1.0], (1.0, x * x, 0.5)), math.gamma(x + 1), math.lgamma(x), math.gamma(-x - 0.2)]
    radius, angle = cmath.polar(complex(x, 2.0))
    found += [radius * angle, abs(cmath.rect(x, angle) - 1.0), ((x - 2.0) ** 0.5).imag, abs((-x) ** 1.5 + 1.0)]
    return sum(k * part for k, part in enumerate(found, 1))

def by_its_kind(x):
    u = np.zeros(3)
    u[0] = x
    s = np.sum(u)
    asked = [hasattr(a, name) for a in (x, s, u) for name in ("__len__", "shape", "is_integer", "real", "nothing")]
    asked += [(2.0 * x).is_integer(), np.iterable(x), np.iterable(u), hasattr([x], "append"), hasattr(x, "__iter__")]
    return x * sum(k * part for k, part in enumerate(asked, 1))
"""


@pytest.mark.parametrize("name", ["of_numbers", "by_its_kind"])
def test_what_programs_do_with_numbers(tmp_path, name):
    (tmp_path / "numbers_of_python.py").write_text(ASKED_NUMBERS)
    f, x, h = getattr(pb.adopt(tmp_path / "numbers_of_python.py"), name), 0.7, 1e-5
    value, gradient = pb.value_and_grad(f)(x)
    np.testing.assert_allclose(value, f(x), rtol=1e-14)
    np.testing.assert_allclose(gradient, (f(x + h) - f(x - h)) / (2 * h), rtol=1e-7)
    np.testing.assert_allclose(pb.jvp(f, (x,), (1.0,))[1], gradient, rtol=1e-13)
    np.testing.assert_allclose(
        pb.hvp(f, (x,), (1.0,)), (pb.grad(f)(x + h) - pb.grad(f)(x - h)) / (2 * h), rtol=1e-6, atol=1e-9
    )
    assert pb.grad(f, policy=pb.Keep())(x) == pb.grad(f, policy=pb.Recompute())(x) == gradient


def test_what_a_module_that_is_not_adopted_hands_on_of_numpy_and_math_is_ours(tmp_path, monkeypatch):
    """As pylab does, or a library's own module of functions of numbers."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "handing_on.py").write_text(
        "import numpy as np\nfrom math import *\nfrom numpy import zeros\n"
    )
    (tmp_path / "handed_on.py").write_text(
        "from handing_on import *\n"
        "from handing_on import sqrt as root, np, zeros as blank\n"
        "def f(t):\n"
        "    u, v = blank(3), np.ones(2)\n"
        "    u[1], v[0] = root(t), exp(-t)\n"
        "    return u.sum() * v.sum() + zeros(2).sum() + log(t, 2)\n"
    )
    monkeypatch.syspath_prepend(tmp_path / "elsewhere")
    f, h = pb.adopt(tmp_path / "handed_on.py").f, 1e-6
    np.testing.assert_allclose(pb.grad(f)(0.7), (f(0.7 + h) - f(0.7 - h)) / (2 * h), rtol=1e-8)
