"""The command line: what it prints, what it writes, and one clear line for every kind of bad input."""

import io
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from rich.console import Console

import pullback
from pullback import cli
from pullback.inspect import error_pages as explaining
from pullback.inspect.command_line_inputs import bind, load_array, load_function, load_value, parse_policy, places
from pullback.inspect.error_pages import codes
from pullback.inspect.tables import Column, Table
from pullback.words.errors import InputFileError

MODEL = """
import numpy as np
import pullback as pb

limit = 3

def misfit(c, data, n=12):
    u = pb.fori_loop(0, n, lambda k, u: u + 0.1 * np.sin(c * u), np.ones(c.shape))
    return np.sum((u - data)**2)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a model and its arrays, which is where the commands run."""
    monkeypatch.chdir(tmp_path)
    Path("model.py").write_text(MODEL, "utf-8")
    np.save("c.npy", np.linspace(0.5, 1.5, 8))
    np.save("data.npy", np.ones(8))
    np.save("words.npy", np.array(["one", "two"]))
    np.save("objects.npy", np.array([{}, None], dtype=object), allow_pickle=True)
    np.savez("several.npz", a=np.ones(2), b=np.ones(3))
    Path("text.npy").write_text("no array", "utf-8")
    Path("empty.npy").write_bytes(b"")
    return tmp_path


def run(*words):
    return CliRunner().invoke(cli.commands, list(words), prog_name="pullback")


PROFILE = ("profile", "model.py:misfit", "--arg", "c=c.npy", "--arg", "data=data.npy", "--repeat", "1")

# ---------------------------------------------------------------------------------------------------------------- texts


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


# -------------------------------------------------------------------------------------------------------------- profile


def test_profile_prints_the_table_for_a_function_of_ones_own(folder):
    result = run(*PROFILE, "--policy", "SaveAll", "--policy", "Binomial(snapshots=3)", "--taylor", "--dot-product")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == "gradient of misfit, by memory policy"
    cells = [line.split()[:3] for line in lines if line.startswith(("SaveAll", "Binomial"))]
    assert cells == [["SaveAll()", "0", "12"], ["Binomial(3)", "3", "33"]]
    assert "predicted = measured to the byte, for every policy" in result.stdout
    assert "[0/8] one plain forward run" in result.stderr


def test_profile_as_json_with_a_number_and_another_parameter(folder):
    result = run(*PROFILE, "--arg", "n=5", "--wrt", "data", "--policy", "SaveAll", "--json", "--quiet")
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    (row,) = json.loads(result.stdout)["rows"]
    assert row["same_bits"] is True


def test_profile_takes_the_default_policies(folder):
    result = run(*PROFILE, "--quiet")
    assert [line.split()[0] for line in result.stdout.splitlines()[5:9]] == [
        "SaveAll()",
        "Recompute()",
        "Binomial(10)",
        "Binomial(30)",
    ]


def test_the_file_finds_its_neighbours(folder):
    Path("neighbour.py").write_text("factor = 3.0\n", "utf-8")
    Path("uses.py").write_text("from neighbour import factor\ndef f(x):\n    return (factor * x * x).sum()\n", "utf-8")
    before = list(sys.path)
    assert load_function("uses.py:f")(np.ones(2)) == 6.0
    assert sys.path == before


# -------------------------------------------------------------------------------------------------------------- explain


@pytest.mark.parametrize("word", ["PB201", "pb201", "ConversionError", "pullback.ConversionError"])
def test_explain_prints_the_page(word):
    result = run("explain", word)
    assert result.exit_code == 0
    assert result.stdout.startswith("# PB201: ConversionError\n")
    assert "What to write instead" in result.stdout


@pytest.mark.parametrize(("name", "code"), codes().items())
def test_every_code_can_be_explained(name, code):
    assert run("explain", code).stdout.startswith(f"# {code}: {name}\n")
    assert f"[{code}]({code}.md)" in run("explain").stdout


def test_the_message_of_an_error_tells_how_to_explain_it():
    with pytest.raises(pullback.NotDifferentiableError) as caught:
        pullback.grad(np.sin)(np.ones(3))
    words = re.search(r"run pullback (explain \w+)\)$", str(caught.value))[1]
    assert run(*words.split()).stdout.startswith("# PB101: NotDifferentiableError")


def test_explain_of_no_error():
    result = run("explain", "PB999")
    assert result.exit_code == 2
    assert result.stderr == "Error: 'PB999' names no error of pullback; `pullback explain` lists them all\n"


def test_an_installation_has_the_pages_beside_the_package(tmp_path, monkeypatch):
    monkeypatch.setattr(explaining, "PLACES", (tmp_path, tmp_path / "elsewhere"))
    (tmp_path / "index.md").write_text("all", "utf-8")
    (tmp_path / "PB201.md").write_text("one", "utf-8")
    assert (explaining.page_on(None), explaining.page_on("PB201"), explaining.page_on("nothing")) == (
        "all",
        "one",
        None,
    )


# ------------------------------------------------------------------------------------------------------------ bad input

BAD_FUNCTIONS = {
    "model.py": r"'model.py' names no function; write FILE.py:FUNCTION",
    "model.py:": r"names no function",
    "model.py:not-a-name": r"names no function",
    "absent.py:misfit": r"there is no file absent.py",
    "model.py:absent": r"model.py defines no absent",
    "model.py:limit": r"limit in model.py is no function but a int",
    "broken.py:f": r"broken.py cannot be run: SyntaxError",
    "c.npy:f": r"c.npy is not a Python file",
}


@pytest.mark.parametrize("text", BAD_FUNCTIONS)
def test_bad_function(folder, text):
    Path("broken.py").write_text("def f(:\n", "utf-8")
    with pytest.raises(InputFileError, match=BAD_FUNCTIONS[text]):
        load_function(text)


BAD_ARRAYS = {
    "absent.npy": r"there is no file absent.npy; write the path to an array saved with numpy.save",
    "objects.npy": r"objects.npy holds pickled Python objects, which are not loaded",
    "words.npy": r"words.npy holds dtype <U3, which is not numeric",
    "text.npy": r"text.npy holds pickled Python objects|text.npy is no .npy file",
    "empty.npy": r"empty.npy is no .npy file",
    "several.npz": r"several.npz is an archive of several arrays",
    ".": r"there is no file \.",
}


@pytest.mark.parametrize("name", BAD_ARRAYS)
def test_bad_array(folder, name):
    with pytest.raises(InputFileError, match=BAD_ARRAYS[name]):
        load_array(name)


def test_a_truncated_array(folder):
    whole = Path("c.npy").read_bytes()
    Path("short.npy").write_bytes(whole[:-8])
    with pytest.raises(InputFileError, match=r"short.npy is no .npy file"):
        load_array("short.npy")


BAD_POLICIES = {
    "Binomial(": r"'Binomial\(' is no policy; write one of Binomial, Budget, Mixed, Periodic, Recompute, SaveAll",
    "Nonsense(3)": r"'Nonsense\(3\)' is no policy that is known here",
    "Binomial(0)": r"'Binomial\(0\)': snapshots must be at least 1, got 0",
    "Binomial": r"'Binomial' has the wrong arguments \(.*missing",
    "Binomial(3, 4, 5)": r"has the wrong arguments",
    "Binomial(len('ab'))": r"is no policy",
    "__import__('os').getcwd()": r"is no policy",
    "Binomial(*[3])": r"is no policy",
    "Binomial(**{'snapshots': 3})": r"is no policy|wrong arguments",
    "MemoryPolicy()": r"is no policy that is known here",
    "": r"is no policy",
}


@pytest.mark.parametrize("text", BAD_POLICIES)
def test_bad_policy(text):
    with pytest.raises(InputFileError, match=BAD_POLICIES[text]):
        parse_policy(text, cli.known_policies())


def test_good_policies():
    known = cli.known_policies()
    assert parse_policy(" Binomial(20) ", known) == pullback.Binomial(20)
    assert parse_policy("Binomial(snapshots=2, online='wmi')", known) == pullback.Binomial(2, online="wmi")
    assert parse_policy("SaveAll", known) == pullback.SaveAll()
    assert parse_policy("Mixed(7)", known) == pullback.Mixed(7)
    assert parse_policy("Periodic(7, snapshots=2)", known) == pullback.Periodic(7, snapshots=2)


def test_bad_arguments(folder):
    found = load_function("model.py:misfit")
    with pytest.raises(InputFileError, match=r"misfit has no parameter 'velocity'; it takes c, data, n"):
        bind(found, {"velocity": 1.0})
    with pytest.raises(InputFileError, match=r"misfit needs a value for c, data; pass --arg c=FILE.npy"):
        bind(found, {"n": 3})
    with pytest.raises(InputFileError, match=r"misfit has no parameter 'm'; it takes c, data, n"):
        places(found, (1.0, 2.0, 3), ["m"])
    with pytest.raises(InputFileError, match=r"no argument of misfit is floating or complex"):
        places(found, (1, 2, 3), [])
    for text in ("c", "c=", "=c.npy", "1c=c.npy"):
        with pytest.raises(InputFileError, match=r"names no value; write NAME=FILE.npy or NAME=NUMBER"):
            cli.named_value(text)


def test_a_function_that_hides_its_parameters(folder):
    Path("hidden.py").write_text(
        "class Hidden:\n    __signature__ = 3\n    def __call__(self, x): return x\nf = Hidden()\n", "utf-8"
    )
    with pytest.raises(InputFileError, match=r"f does not tell its parameters"):
        bind(load_function("hidden.py:f"), {})


def test_numbers_and_files_as_values(folder):
    assert [load_value(text) for text in ("3", "0.5", "1j", "True", "-2")] == [3, 0.5, 1j, True, -2]
    assert load_value("c.npy").shape == (8,)
    with pytest.raises(InputFileError, match=r"there is no file \[1, 2\]"):
        load_value("[1, 2]")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("profile", "absent.py:f"), "there is no file absent.py"),
        (("profile", "model.py:misfit", "--arg", "c=absent.npy"), "there is no file absent.npy"),
        (("profile", "model.py:misfit", "--arg", "c=objects.npy"), "objects.npy holds pickled Python objects"),
        (("profile", "model.py:misfit", "--arg", "c=words.npy"), "words.npy holds dtype <U3, which is not numeric"),
        ((*PROFILE, "--policy", "Binomial(0)"), "snapshots must be at least 1"),
        (("demo", "wave", "--policy", "Nothing"), "'Nothing' is no policy that is known here"),
        (("demo", "wave", "--dtype", "int8"), "'int8' is not one of 'float64', 'float32'"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(folder, words, said):
    result = run(*words)
    assert result.exit_code == 2
    assert said in result.stderr
    assert result.stderr.splitlines()[-1].startswith("Error: ")
    assert "Traceback" not in result.output


def test_other_errors_of_pullback_are_one_line_and_exit_code_1(folder):
    Path("late.py").write_text("def f(x):\n    return float(x.sum())\n", "utf-8")
    result = run("profile", "late.py:f", "--arg", "x=c.npy", "--quiet")
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: ")
    assert len(result.stderr.splitlines()) == 1


# ------------------------------------------------------------------------------------------------------------ terminals


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self):
        return True


POLICY = Column("policy", ("SaveAll()",), text=True)
TABLE = Table(
    "a title",
    (POLICY, Column("snapshots", ("0",)), Column("forward|steps", ("12",)), Column("same|bits", ("yes",))),
    ("a note",),
)


@pytest.mark.parametrize(
    ("width", "said"), [(60, "policy snapshots steps bits"), (30, "forward steps 12"), (10, "----")]
)
def test_a_terminal_gets_the_table_that_fits(monkeypatch, width, said):
    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    cli.show(TABLE)
    printed = screen.getvalue()
    assert "a note" in printed
    assert said in " ".join(re.sub(r"\x1b\[[0-9;]*m", "", printed).split())


def test_a_terminal_gets_a_bar(monkeypatch):
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("TERM", "xterm")
    with cli.progress_bar(quiet=False) as tell:
        tell("the first part", 0, 2)
        tell("the second part", 1, 2)
    assert "the second part" in screen.getvalue()


def test_quiet_shows_nothing():
    with cli.progress_bar(quiet=True) as tell:
        assert tell is None


def test_the_answer_to_same_bits_stands_out():
    table = Table("t", (Column("same|bits", ("yes", "NO")),))
    screen = io.StringIO()
    Console(file=screen, force_terminal=True, color_system="standard", width=80).print(cli.rich_table(table))
    assert "\x1b[32myes" in screen.getvalue().replace(" ", "")
    assert "\x1b[1;31mNO" in screen.getvalue().replace(" ", "")
