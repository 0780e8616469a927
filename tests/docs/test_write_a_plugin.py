"""docs/write-a-plugin.md, followed to the letter: its three files make a distribution that pullback finds, tests and
uses."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from tests.docs.test_documents import ROOT, blocks

TEXT = (ROOT / "docs" / "write-a-plugin.md").read_text("utf-8")
((_, PROJECT),) = blocks(TEXT, "toml")
(_, MODULE), (_, TESTS) = blocks(TEXT, "python")
((_, COMMANDS),) = blocks(TEXT, "sh")


@pytest.fixture
def plugin(tmp_path):
    """The folder of the plugin, with what an installation adds: the metadata that names the entry points."""
    files = {"pyproject.toml": PROJECT, "pullback_degrees.py": MODULE, "test_pullback_degrees.py": TESTS}
    for name, source in files.items():
        (tmp_path / name).write_text(source, "utf-8")
    project = tomllib.loads(PROJECT)["project"]
    metadata = tmp_path / f"pullback_degrees-{project['version']}.dist-info"
    metadata.mkdir()
    metadata.joinpath("METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n", "utf-8"
    )
    ((group, points),) = project["entry-points"].items()
    metadata.joinpath("entry_points.txt").write_text(
        f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in points.items()), "utf-8"
    )
    return tmp_path


def run(folder: Path, *arguments: str) -> str:
    """What a Python program in ``folder`` prints; fails with all of it if the program fails."""
    path = os.pathsep.join((str(folder), *filter(None, sys.path)))
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_it_has_fewer_than_forty_lines():
    lines = [line for source in (PROJECT, MODULE, TESTS) for line in source.splitlines() if line.strip()]
    assert len(lines) < 40


def test_its_own_tests_pass(plugin):
    assert "8 passed" in run(plugin, "-m", "pytest", "-q", "-p", "no:cacheprovider")


def test_its_tests_fail_when_a_rule_is_wrong(plugin):
    (plugin / "pullback_degrees.py").write_text(MODULE.replace("ct * -DEGREE", "ct * DEGREE"), "utf-8")
    with pytest.raises(AssertionError, match=r"wrong value: the rule of cosdg for 'x'"):
        run(plugin, "-m", "pytest", "-q", "-p", "no:cacheprovider")


def test_its_last_command_prints_the_gradient(plugin):
    program = COMMANDS.splitlines()[-1].removeprefix('python -c "').removesuffix('"')
    assert run(plugin, "-c", program).strip() == "[0.01745329 0.01745329]"


def test_without_its_metadata_the_function_is_unknown(plugin):
    for file in plugin.glob("*.dist-info/*"):
        file.unlink()
    with pytest.raises(AssertionError, match="UnknownFunctionError: no primitive for"):
        run(plugin, "-c", COMMANDS.splitlines()[-1].removeprefix('python -c "').removesuffix('"'))
