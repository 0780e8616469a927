"""Scripts as the main program of adopted code."""

import pickle
import sys

import numpy as np
import pytest

import pullback as pb
from pullback.adopting.modules.scripts import run_script

TEXT = """
import sys
from dataclasses import dataclass
import numpy as np

@dataclass
class Setup:
    n: int = 4

def f(c):
    u = np.zeros(Setup().n)
    u[1:] = c
    return (u**2).sum()

if __name__ == "__main__":
    RESULT = f(2.0), sys.argv[1:]
"""


def test_a_script_runs_as_python_runs_it_and_its_functions_are_traceable(tmp_path):
    (tmp_path / "script.py").write_text(TEXT)
    main, argv = sys.modules["__main__"], sys.argv
    module = run_script(tmp_path / "script.py", ["--fast"])
    assert sys.modules["__main__"] is main
    assert sys.argv is argv
    assert module.RESULT == (12.0, ["--fast"])
    assert pb.grad(module.f)(2.0) == 12.0
    assert not hasattr(pb.adopt(tmp_path / "script.py"), "RESULT")


def test_a_script_that_is_not_there_is_named():
    with pytest.raises(pb.AdoptionError, match="there is no Python file nowhere"):
        run_script("nowhere.py")


def test_the_command_prints_value_and_gradient(tmp_path):
    from click.testing import CliRunner  # noqa: PLC0415 - the extra `cli`

    from pullback.commands.program_commands import port_command, run_command  # noqa: PLC0415 - as above

    (tmp_path / "script.py").write_text(TEXT)
    np.save(tmp_path / "c.npy", np.linspace(1, 2, 3))
    told = CliRunner().invoke(
        run_command,
        [str(tmp_path / "script.py"), "--grad", "f", "--arg", f"c={tmp_path / 'c.npy'}", "--policy", "Binomial(2)",
         "--save", str(tmp_path / "g.npy")],
    )  # fmt: skip
    assert told.output.splitlines()[:2] == [
        "f = 7.25", "gradient by c: float64[3], norm 5.38516, from 2 to 4"
    ]  # fmt: skip
    np.testing.assert_array_equal(np.load(tmp_path / "g.npy"), [2.0, 3.0, 4.0])
    told = CliRunner().invoke(port_command, [f"{tmp_path / 'script.py'}:f", "--arg", f"c={tmp_path / 'c.npy'}"])
    assert "+    u = np.zeros(Setup().n, like=c)" in told.output


@pytest.mark.parametrize("name", ["heat-1d", "01_heat", "heat v1.2", "class", "heat.old"])
def test_a_file_of_any_name_is_adopted_and_ported(tmp_path, name):
    from pullback.adopting.modules.porting import ported  # noqa: PLC0415 - of the command

    (tmp_path / f"{name}.py").write_text(TEXT)
    copy = pb.adopt(tmp_path / f"{name}.py")
    assert pb.grad(copy.f)(2.0) == 12.0
    assert pb.adopt(tmp_path / f"{name}.py") is copy
    assert type(pickle.loads(pickle.dumps(copy.Setup()))) is copy.Setup  # noqa: S301 - of this test
    assert "+ 0 * c" in ported(str(tmp_path / f"{name}.py"), "f", lambda function: ((2.0,), (0,))).text
    run = run_script(tmp_path / f"{name}.py")
    assert run.RESULT[0] == 12.0


def test_a_module_that_is_asked_for_by_its_name_is_a_copy_where_it_stands_beside_the_file(tmp_path):
    (tmp_path / "rule-of-heat.py").write_text(TEXT)
    (tmp_path / "plain_rule.py").write_text(TEXT)
    (tmp_path / "asks_for_it.py").write_text(
        "from importlib import import_module\n"
        "import importlib\n"
        "heat = import_module('rule-of-heat')\n"
        "also = importlib.import_module('plain_rule')\n"
        "again = __import__('plain_rule')\n"
        "def f(c):\n"
        "    return heat.f(c) + also.f(c) + again.f(c)\n"
    )
    assert pb.grad(pb.adopt(tmp_path / "asks_for_it.py").f)(2.0) == 36.0


def test_a_file_with_the_name_of_a_library_is_refused(tmp_path):
    (tmp_path / "numpy.py").write_text(TEXT)
    with pytest.raises(pb.AdoptionError, match=r"numpy\.py has the name of what adopted code finds in its place"):
        pb.adopt(tmp_path / "numpy.py")


def test_a_copy_that_asks_for_its_version_asks_by_the_name_of_the_original(tmp_path):
    (tmp_path / "asks_for_versions.py").write_text(
        "import importlib.metadata, importlib.util\n"
        "import importlib.metadata as known\n"
        "from importlib import metadata\n"
        "from importlib.metadata import PackageNotFoundError, version\n"
        "NAME = __name__.partition('.')[0] + '.numpy'\n"
        "FOUND = {f(NAME) for f in (version, known.version, metadata.version, importlib.metadata.version)}\n"
        "try:\n"
        "    version(__name__)\n"
        "except PackageNotFoundError as error:\n"
        "    MISSING = str(error)\n"
        "SPEC = importlib.util.find_spec('json').name\n"
    )
    copy = pb.adopt(tmp_path / "asks_for_versions.py")
    assert list(copy.FOUND) == [np.__version__]
    assert copy.MISSING.endswith(" asks_for_versions")
    assert copy.SPEC == "json"
