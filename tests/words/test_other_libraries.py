"""The table of what serves in the place of other libraries' functions: every function has a line, every line names what
there is."""

import importlib
import re

import numpy as np
import pytest

import pullback as pb
from pullback.words import other_libraries
from pullback.words.other_libraries import named_call, remedy

scipy = pytest.importorskip("scipy", reason="the table names its functions")
PACKAGES = (
    "integrate optimize linalg interpolate special signal fft ndimage sparse sparse.linalg stats spatial.distance"
)


@pytest.mark.parametrize("package", PACKAGES.split())
def test_every_function_of_scipy_has_a_remedy_that_names_what_there_is(package):
    module = importlib.import_module(f"scipy.{package}")
    names = [name for name in module.__all__ if callable(getattr(module, name))]
    assert names
    for name in names:
        text = remedy(f"scipy.{package}.{name}")
        assert text
        assert not re.search(r"[{}]", text)
        for path in re.findall(r"\bpullback\.(\w+)", text):
            assert hasattr(pb, path), text
        if package not in ("fft", "linalg"):  # these say that NumPy has one of the same name
            for path in re.findall(r"\bnp\.([\w.]+)", text):
                found = np
                for part in path.rstrip(".").split("."):
                    found = getattr(found, part)


@pytest.mark.parametrize("name", other_libraries._SAME_LINALG)
def test_numpy_has_the_function_of_the_same_name(name):
    assert callable(getattr(np.linalg, name))


@pytest.mark.parametrize("name", other_libraries._BY_NAME)
def test_every_line_is_for_a_function_that_scipy_has_or_had(name):
    gone = {"trapz", "simps", "romberg", "quadrature", "broyden1"}
    modules = [importlib.import_module(f"scipy.{package}") for package in PACKAGES.split()]
    assert name in gone or name == "sinc" or any(hasattr(module, name) for module in modules)


@pytest.mark.parametrize(
    ("written", "calls", "name"),
    [
        ("scipy.stats.norm.pdf", [("scipy.stats._distn", "pdf")], "scipy.stats.norm.pdf"),
        ("solve", [("scipy.integrate._ivp.ivp", "solve_ivp")], "scipy.integrate.solve_ivp"),
        ("linalg.solve", [("scipy._lib._util", "wrapper"), ("scipy.linalg._basic", "solve")], "scipy.linalg.solve"),
        ("f", [("scipy.interpolate._cubic", "CubicSpline")], "scipy.interpolate.CubicSpline"),
        ("table.dot", [("pandas.core.frame", "dot")], "pandas.dot"),
        ("", [("pandas.core.frame", "__setitem__"), ("pandas.core.construction", "sanitize_array")], "pandas"),
        ("ax.plot", [("matplotlib.axes._axes", "plot")], "matplotlib.axes.plot"),
    ],
)
def test_the_function_that_was_called(written, calls, name):
    assert named_call(written, calls) == name


def test_a_library_that_nobody_knows():
    assert "np.asarray(a)" in remedy("unheard_of.Array")
