"""From text on the command line to values, and one clear line for every kind of bad input."""

from pathlib import Path

import numpy as np
import pytest
from tests.commands.running import run

import pullback
from pullback.commands import function_commands, options_and_output
from pullback.commands.command_line_inputs import bind, load_arrays, load_function, load_value, parse_policy, places
from pullback.words.errors import InputFileError

PROFILE = ("profile", "model.py:misfit", "--arg", "c=c.npy", "--arg", "data=data.npy", "--repeat", "1")


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda p: None, r"there is no file .*a\.npy; write the path.*numpy\.save"),
        (
            lambda p: np.save(p, np.array([{"a": 1}], dtype=object), allow_pickle=True),
            r"a\.npy holds pickled Python objects.*numeric array",
        ),
        (lambda p: np.save(p, np.array(["text"])), r"a\.npy holds dtype <U4, which is not numeric"),
        (lambda p: Path(p).write_bytes(b"not an array"), r"a\.npy is no \.npy file|a\.npy holds pickled"),
    ],
)
def test_a_bad_npy_file(tmp_path, write, message):
    path = tmp_path / "a.npy"
    write(path)
    with pytest.raises(InputFileError, match=message):
        load_arrays(str(path))


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
    "words.npz": r"words.npz holds dtype <U3, which is not numeric",
    "pickled.npz": r"pickled.npz holds pickled Python objects, which are not loaded",
    ".": r"there is no file \.",
}


@pytest.mark.parametrize("name", BAD_ARRAYS)
def test_bad_array(folder, name):
    with pytest.raises(InputFileError, match=BAD_ARRAYS[name]):
        load_arrays(name)


def test_an_archive_is_a_dict_of_arrays(folder):
    text = "import numpy as np\ndef loss(params, c):\n    return np.sum(np.sin(params['a'] * c[:2]) * params['a'])\n"
    Path("net.py").write_text(text, "utf-8")
    assert {name: array.shape for name, array in load_value("several.npz").items()} == {"a": (2,), "b": (3,)}
    words = ("net.py:loss", "--arg", "params=several.npz", "--arg", "c=c.npy")
    done = run("profile", *words, "--policy", "SaveAll", "--repeat", "1", "--quiet", "--html", "net.html")
    assert done.exit_code == 0, done.output
    assert "gradient of loss" in done.stdout
    assert "{a: float64[2], b: float64[3]}" in Path("net.html").read_text("utf-8")
    assert run("saved", *words).exit_code == 0


def test_a_truncated_array(folder):
    whole = Path("c.npy").read_bytes()
    Path("short.npy").write_bytes(whole[:-8])
    with pytest.raises(InputFileError, match=r"short.npy is no .npy file"):
        load_arrays("short.npy")


BAD_POLICIES = {
    "Binomial(": r"'Binomial\(' is no policy; write one of Binomial, Budget, BudgetPool, Keep, Mixed, Periodic",
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
        parse_policy(text, options_and_output.known_policies())


def test_good_policies():
    known = options_and_output.known_policies()
    assert parse_policy(" Binomial(20) ", known) == pullback.Binomial(20)
    assert parse_policy("Binomial(snapshots=2, online='wmi')", known) == pullback.Binomial(2, online="wmi")
    assert parse_policy("SaveAll", known) == pullback.SaveAll()
    assert repr(parse_policy(" auto", known)) == '"auto"'
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
            function_commands.named_value(text)


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
