"""Scripts as the main program of adopted code."""

import sys

import numpy as np
import pytest

import pullback as pb
from pullback.adopting.scripts import run_script

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
