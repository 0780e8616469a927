"""The command line: its help, its version, and what it says where a library is missing."""

import json
import subprocess
import sys

import pytest
from tests.commands.running import run

import pullback


def test_version():
    assert run("--version").output == f"pullback, version {pullback.__version__}\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "pullback demo wave            the main example"),
        (("demo",), "wave"),
        (("demo", "wave"), "pullback demo wave --dtype float32 --out pictures"),
        (("demo", "digits"), "held"),
        (("explain",), "pullback explain ConversionError"),
        (("profile",), "pullback profile model.py:misfit --arg c=velocity.npy --arg n=400"),
    ],
)
def test_help_has_examples(words, said):
    result = run(*words, "--help")
    assert result.exit_code == 0
    assert said in result.output or words == ("demo", "digits")


def test_without_the_extra_the_command_says_what_to_install():
    code = (
        "import sys; sys.modules['{}'] = None; sys.argv = ['pullback', '--help']; from pullback.cli import main; main()"
    )
    for library in ("click", "rich"):
        done = subprocess.run([sys.executable, "-c", code.format(library)], capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert done.stderr == f"the command line needs {library}, which is missing: install pullback[cli]\n"


def test_python_m_pullback_is_the_command():
    done = subprocess.run([sys.executable, "-m", "pullback", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("pullback, version ")


def test_a_demo_as_json():
    found = json.loads(run("demo", "assimilation", "--cycles", "1", "--json", "--quiet").output)
    assert found["settings"]["policy"] == "SaveAll()"
    assert all(len(run["analysis_rmse"]) == 1 for run in found["runs"])
