"""``pullback explain``, ``coverage``, ``primitives``, ``check`` and ``compare``."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from tests.commands.running import FUNCTION, run

import pullback
from pullback.commands import error_pages as explaining
from pullback.commands import options_and_output
from pullback.commands.error_pages import codes


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


def test_every_public_policy_can_be_written():
    public = (getattr(pullback, name) for name in pullback.__all__)
    kinds = {p for p in public if isinstance(p, type) and issubclass(p, pullback.MemoryPolicy)}
    assert set(options_and_output.known_policies().values()) == kinds - {pullback.MemoryPolicy}


def test_primitives_tell_what_each_rule_saves():
    found = json.loads(run("primitives", "np.exp", "--json").output)
    assert found == [{
        "name": "exp", "by": "pullback", "serves": ["numpy.exp"], "saves": {"x": ["out", "x"]}, "operands": ["x"],
        "params": [],
    }]  # fmt: skip
    [matmul] = json.loads(run("primitives", "matmul", "--json").output)
    assert matmul["by"] == "pullback_linalg"
    assert "x: out or x" in run("primitives", "exp").output
    assert len(json.loads(run("primitives", "--json").output)) > 500
    assert run("primitives", "no_such_thing").exit_code == 2


PLUGIN = """
import numpy as np
import pullback as pb

def square(x):
    return x * x

RIGHT = pb.primitive(square, name="square_it", vjps={"x": lambda ct, x: 2 * x * ct})
WRONG = pb.primitive(square, name="square_wrongly", vjps={"x": lambda ct, x: x * ct})

@pb.primitive(vjps={"x": lambda ct, x, scale: scale * ct})
def scaled(x, *, scale):
    return scale * x

def symmetric(a):
    return np.triu(a.mT, 1) + np.tril(a)

@pb.primitive(vjps={"a": lambda ct, a: 2 * symmetric(a) * ct})
def lower(a):
    return symmetric(a) ** 2
"""


def test_check_finds_the_wrong_rule_of_a_plugin(folder):
    Path("kernels.py").write_text(PLUGIN, "utf-8")
    done = run("check", "kernels.py", "--json")
    assert done.exit_code == 1
    results = {row["primitive"]: row["result"] for row in json.loads(done.output)}
    assert results == {"square_it": "right", "square_wrongly": "wrong", "scaled": "not checked", "lower": "right"}
    text = run("check", "kernels.py").output
    assert "wrong value: the rule of square_wrongly" in text
    assert "missing 1 required keyword-only argument: 'scale'" in text
    good = run("check", "pullback_fft")
    assert good.exit_code == 0
    assert re.search(r"fft\.rfft +right", good.output)
    for target, said in (
        ("no_module_of_this_name", "cannot be imported"), ("json", "no primitive"), ("none.py", "no file"),
    ):  # fmt: skip
        refused = run("check", target)
        assert refused.exit_code == 2
        assert said in refused.output


def test_compare_says_what_has_grown(folder):
    text = run(
        "profile", *FUNCTION, "--repeat", "1", "--policy", "SaveAll", "--policy", "Binomial(2)", "--json", "--quiet"
    ).stdout
    Path("before.json").write_text(text, "utf-8")
    same = run("compare", "before.json", "before.json")
    assert same.exit_code == 0
    assert same.output.count("as before") == 2
    grown = json.loads(text)
    grown["rows"][1]["peak_bytes"] *= 2
    Path("after.json").write_text(json.dumps(grown), "utf-8")
    done = run("compare", "before.json", "after.json", "--json")
    assert done.exit_code == 1
    assert [row["verdict"] for row in json.loads(done.output)] == ["as before", "PEAK GREW"]
    assert run("compare", "before.json", "after.json", "--tolerance", "1").exit_code == 0
    grown["rows"][1]["policy"] = "Binomial(3)"
    grown["rows"][0]["n_forward"] = None
    Path("renamed.json").write_text(json.dumps(grown), "utf-8")
    done = run("compare", "before.json", "renamed.json")  # which a policy that refuses is, too
    assert done.exit_code == 1
    assert [line.split()[-2:] for line in done.output.splitlines() if line.startswith("Binomial")] == [["IS", "GONE"]]
    assert "in renamed.json alone: Binomial(3)" in done.output
    assert "None" not in done.output
    for words, said in (
        (("before.json", "text.npy"), "is no profile"),
        (("none.json", "before.json"), "is no profile"),
    ):
        refused = run("compare", *words)
        assert refused.exit_code == 2
        assert said in refused.output
    Path("other.json").write_text(json.dumps({"rows": [grown["rows"][0] | {"policy": "Recompute()"}]}), "utf-8")
    assert "no policy in common" in run("compare", "before.json", "other.json").output


def test_a_misspelt_code_gets_the_nearest():
    refused = run("explain", "PB2O1")
    assert refused.exit_code == 2
    assert "did you mean PB201?" in refused.output
    assert "did you mean ConversionError?" in run("explain", "conversionerorr").output


def test_coverage_takes_a_name_as_one_writes_it_and_suggests_the_nearest():
    assert run("coverage", "numpy.sin").output == run("coverage", "np.sin").output
    assert "sin: differentiable" in run("coverage", "numpy.sin").output
    refused = run("coverage", "np.einsom")
    assert refused.exit_code == 2
    assert "did you mean einsum?" in refused.output


def test_coverage_as_json():
    assert json.loads(run("coverage", "np.exp", "--json").output)[0]["status"] == "differentiable"
    assert json.loads(run("coverage", "--json").output)["differentiable"] > 100


def test_explain_as_json():
    assert json.loads(run("explain", "PB408", "--json").output)["page"].startswith("# PB408: ShapesOnlyError")
    assert json.loads(run("explain", "--json").output)["ShapesOnlyError"] == "PB408"
