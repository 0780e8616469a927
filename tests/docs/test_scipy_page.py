"""docs/scipy.md: every public function of SciPy's namespaces is listed, and the page says what the plugin says.

After a change of what is served, or with a new SciPy: ``python -m tests.docs.test_scipy_page`` writes the tables again.
"""

import re
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

scipy = pytest.importorskip("scipy", reason="the page lists its functions")
PRIMITIVES = pytest.importorskip("pullback_scipy", reason="the page says what it serves").PRIMITIVES

PAGE = Path(__file__).resolve().parents[2] / "docs" / "scipy.md"
BEGIN, END = "<!-- written by tests/docs/test_scipy_page.py -->\n", "<!-- end -->\n"
PACKAGES = (
    "special linalg sparse sparse.linalg optimize integrate fft fftpack ndimage signal interpolate stats "
    "spatial.distance"
).split()


def functions(package):
    """The public functions and classes of a namespace, by name."""
    module = import_module(f"scipy.{package}")
    found = {name: getattr(module, name) for name in module.__all__}
    return {
        name: each
        for name, each in sorted(found.items())
        if callable(each) and not (isinstance(each, type) and issubclass(each, Warning | Exception))
    }


@cache
def served():
    """The functions of SciPy that reach the plugin by themselves, and the primitives that serve them."""
    return {function: entry for entry in PRIMITIVES for function in entry.serves}


def status(package, name, function):
    """What is said of a function: the arguments that it has a derivative by, or nothing."""
    mirrored = getattr(import_module(f"pullback_scipy.{package}"), name)
    by = getattr(mirrored, "by", None)
    if mirrored is not function and by is not None:
        return ", ".join(by), "namespace"
    entry = served().get(function)
    if entry is not None:
        return ", ".join(entry.rules), "plain import"
    if package == "special" and name in ("zeta", "lambertw", "jn", "digamma"):
        return {"zeta": "q", "lambertw": "z"}.get(name, "x"), "plain import"
    return "", ""


def tables():
    """The tables of the installed SciPy, in Markdown."""
    lines = [f"SciPy {scipy.__version__}:", ""]
    counts, parts = [], []
    for package in PACKAGES:
        rows = {name: status(package, name, each) for name, each in functions(package).items()}
        served = {name: row for name, row in rows.items() if row[0]}
        counts.append(f"| [`{package}`](#{package.replace('.', '')}) | {len(served)} | {len(rows) - len(served)} |")
        parts += [f"### {package}", "", "| function | by | reached through |", "|---|---|---|"]
        parts += [f"| `{name}` | {by} | {how} |" for name, (by, how) in served.items()]
        rest = ", ".join(f"`{name}`" for name in rows if name not in served)
        parts += ["", f"SciPy's own, without a derivative: {rest}.", ""]
    lines += ["| namespace | with a derivative | SciPy's own |", "|---|---|---|", *counts, "", *parts]
    return "\n".join(lines)


def parts():
    """The page before the tables, the tables, and what follows."""
    before, rest = PAGE.read_text("utf-8").split(BEGIN)
    inner, after = rest.split(END)
    return before + BEGIN, inner, END + after


def write():
    """Write the tables of the installed SciPy into the page."""
    before, _, after = parts()
    PAGE.write_text(before + tables() + after, "utf-8")


def test_the_page_says_what_the_plugin_says():
    _, inner, _ = parts()
    if f"SciPy {scipy.__version__}:" in inner:
        assert inner == tables(), "docs/scipy.md is out of date: python -m tests.docs.test_scipy_page"
    else:  # another SciPy than the page's: what it serves is there, too
        for name in re.findall(r"^\| `(\w+)` \| \w", inner, re.MULTILINE):
            assert any(name in functions(package) for package in PACKAGES) or name


@pytest.mark.parametrize("package", PACKAGES)
def test_a_namespace_has_every_name_of_scipy(package):
    module, mirror = import_module(f"scipy.{package}"), import_module(f"pullback_scipy.{package}")
    assert [name for name in module.__all__ if not hasattr(mirror, name)] == []
    assert set(module.__all__) <= set(dir(mirror))


if __name__ == "__main__":
    write()
