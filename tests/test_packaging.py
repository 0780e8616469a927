"""What an installation promises: a light import, declared extras, one version, programs and entry points that exist."""

import re
import subprocess
import sys
import tomllib
from importlib import import_module
from importlib.metadata import distribution, entry_points, version
from pathlib import Path

import pytest

import pullback

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
PLUGINS = {
    "autograd": ("pullback.namespaces", "autograd"),
    "dask": ("pullback.sums", "dask"),
    "fft": ("pullback.primitives", "fft"),
    "linalg": ("pullback.primitives", "linalg"),
    "mpi": ("pullback.primitives", "mpi"),
    "numba": ("pullback.backends", "numba"),
    "scipy": ("pullback.primitives", "scipy"),
}
"""The group and the name of each plugin's entry point."""
BRIDGES = {"jax": "JAX", "torch": "PyTorch"}
"""Plugins without one, which their hosts' programs import; the hosts are not installed by them."""

# What `import pullback` may load: the four dependencies, what optree needs, and the name under which Cython keeps
# numpy.random's state.
ALLOWED = {"attr", "attrs", "numpy", "optree", "pullback", "typing_extensions", "xxhash", "cython_runtime"}


def imported_after(statement: str) -> set[str]:
    """The top-level modules that a fresh interpreter holds after ``statement`` and did not hold before, the standard
    library left out."""
    code = (
        f"import sys; before = set(sys.modules); {statement}; print(*{{m.partition('.')[0] for m in "
        "set(sys.modules) - before})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split()) - set(sys.stdlib_module_names)


def test_import_loads_nothing_but_the_declared_dependencies() -> None:
    # Underscored: numpy and optree load private helpers of the standard library that the list of its modules leaves
    # out.
    assert {name for name in imported_after("import pullback") if not name.startswith("_")} <= ALLOWED


def test_import_leaves_for_later_what_few_programs_need() -> None:
    code = (
        "import sys, numpy; before = set(sys.modules); import pullback; pullback.grad(lambda x: x * x)(1.0); "
        "print(*set(sys.modules) - before)"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "pullback.transforms.derivatives.reverse" in loaded
    few = (
        "instruments.inspect", "testing", "demos", "cli", "loops.functions", "staging.generated", "staging.shadow",
        "staging.calls", "backends", "stores", "scheduling.graphs", "scheduling.machine", "programs.plain",
        "programs.replay", "programs.exact_budget",
    )  # fmt: skip
    later = {name for name in loaded if name.startswith(tuple(f"pullback.{room}." for room in few))}
    # They count the calls.
    assert later == {"pullback.staging.calls.hot_gradients", "pullback.staging.calls.known_functions"}
    assert not {"numpy.random", "hashlib"}.intersection(loaded)


def test_what_is_imported_later_is_listed_and_a_wrong_name_is_refused() -> None:
    assert set(pullback.__all__) <= set(dir(pullback))
    with pytest.raises(AttributeError, match="module 'pullback' has no attribute 'gard'"):
        _ = pullback.gard


@pytest.mark.parametrize("module", ["pullback.testing", "pullback.schedules", "pullback.stores"])
def test_public_modules_need_no_extra(module: str) -> None:
    assert {name for name in imported_after(f"import {module}") if not name.startswith("_")} <= ALLOWED


def test_dependencies_are_the_three() -> None:
    assert {re.split(r"[<>=!~\[; ]", d)[0] for d in PROJECT["dependencies"]} == {"attrs", "numpy", "optree", "xxhash"}


def test_extras_are_installed_as_declared() -> None:
    declared = set(PROJECT["optional-dependencies"])
    own = {"cli", "plot", "fsspec", "blosc2", "zfp", "demo", "test", "bench", "dev", "all"}
    assert declared == own | set(PLUGINS)
    assert set(distribution("pullback").metadata.get_all("Provides-Extra")) == declared


def test_one_version() -> None:
    assert pullback.__version__ == version("pullback") == PROJECT["version"]
    assert f"version: {PROJECT['version']}\n" in (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"## {PROJECT['version']} " in (ROOT / "docs" / "changelog.md").read_text("utf-8")


def test_console_script_exists() -> None:
    (script,) = (e for e in distribution("pullback").entry_points if e.group == "console_scripts")
    assert script.name == "pullback"
    assert callable(script.load())


@pytest.mark.parametrize("plugin", PLUGINS)
def test_a_plugin_is_found_through_its_entry_point(plugin: str) -> None:
    project = tomllib.loads((ROOT / "plugins" / f"pullback-{plugin}" / "pyproject.toml").read_text("utf-8"))["project"]
    group, point = PLUGINS[plugin]
    (found,) = (e for e in entry_points(group=group) if e.name == point)
    assert found.value == project["entry-points"][group][point]
    assert found.dist is not None
    assert found.dist.name == project["name"] == f"pullback-{plugin}"
    assert found.dist.version == project["version"]
    assert group != "pullback.primitives" or isinstance(found.load(), tuple)
    assert (Path(import_module(found.module).__file__ or "").parent / "py.typed").is_file()


def test_every_plugin_of_the_repository_is_tested_here() -> None:
    assert sorted(path.parent.name for path in ROOT.glob("plugins/*/pyproject.toml")) == [
        f"pullback-{plugin}" for plugin in sorted({*PLUGINS, *BRIDGES})
    ]


@pytest.mark.parametrize(("host", "called"), BRIDGES.items())
def test_a_bridge_says_which_host_is_missing(host: str, called: str) -> None:
    project = tomllib.loads((ROOT / "plugins" / f"pullback-{host}" / "pyproject.toml").read_text("utf-8"))["project"]
    assert version(f"pullback-{host}") == project["version"]
    assert (ROOT / "plugins" / f"pullback-{host}" / "src" / f"pullback_{host}" / "py.typed").is_file()
    code = f"import sys; sys.modules[{host!r}] = None; import pullback_{host}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert f"programs of {called}, which is not installed: python -m pip install {host}" in done.stderr


def test_plugins_are_not_imported_before_one_is_needed() -> None:
    assert not {name for name in imported_after("import pullback") if name.startswith("pullback_")}


def test_the_package_is_marked_as_typed() -> None:
    assert (Path(pullback.__file__).parent / "py.typed").is_file()


def test_every_public_name_exists_and_is_listed_once() -> None:
    names = list(pullback.__all__)
    assert sorted(set(names)) == sorted(names)
    assert [name for name in names if not hasattr(pullback, name)] == []


def test_no_public_object_is_named_like_the_package() -> None:
    assert not hasattr(pullback, "pullback")
