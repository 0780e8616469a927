"""``pullback profile``, ``plan``, ``saved`` and ``draw``."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.commands.running import FUNCTION, run

from pullback import cli
from pullback.commands.command_line_inputs import load_function

PROFILE = ("profile", "model.py:misfit", "--arg", "c=c.npy", "--arg", "data=data.npy", "--repeat", "1")


def test_profile_prints_the_table_for_a_function_of_ones_own(folder):
    result = run(*PROFILE, "--policy", "SaveAll", "--policy", "Binomial(snapshots=3)", "--taylor", "--dot-product")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == "gradient of misfit, by memory policy"
    cells = [line.split()[:3] for line in lines if line.startswith(("SaveAll", "Binomial"))][:2]
    assert cells == [["SaveAll()", "0", "12"], ["Binomial(3)", "3", "33"]]
    assert "predicted = measured to the byte, for every policy" in result.stdout
    assert "[0/10] one plain forward run" in result.stderr


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


def test_profile_writes_a_report_beside_the_table(folder):
    result = run(*PROFILE, "--policy", "SaveAll", "--policy", "Binomial(3)", "--quiet", "--html", "report.html")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("gradient of misfit, by memory policy")
    assert "report: report.html" in result.stderr
    page = Path("report.html").read_text("utf-8")
    assert "model.py:8 holds" in page
    assert "Binomial(3): 12 steps" in page


def test_a_report_that_cannot_be_written_is_refused_before_the_file_is_run(folder):
    Path("model.py").write_text("raise RuntimeError('was run')", "utf-8")
    result = run(*PROFILE, "--html", "no/report.html")
    assert result.exit_code == 2
    assert "no/report.html cannot be written: No such file or directory" in result.stderr
    assert "was run" not in result.output


def test_a_function_that_fails_leaves_the_report_up_to_there(folder):
    Path("model.py").write_text("def misfit(c, data):\n    raise ValueError('half way')\n", "utf-8")
    result = run(*PROFILE, "--quiet", "--html", "report.html")
    assert result.exit_code == 1
    assert isinstance(result.exception, ValueError)
    assert "profile: ValueError: half way" in Path("report.html").read_text("utf-8")


def test_of_an_error_of_the_function_its_own_lines_are_shown(folder, monkeypatch):
    text = "import numpy as np\ndef fails(c):\n    c = np.sin(c) * c\n    return inner(c)\n"
    text += "def inner(c):\n    raise RuntimeError('diverged')\n"
    Path("half.py").write_text(text, "utf-8")
    words = ("profile", "half.py:fails", "--arg", "c=c.npy", "--quiet")
    monkeypatch.delenv("PULLBACK_TRACEBACK", raising=False)
    result = run(*words)
    assert result.exit_code == 1
    lines = result.stderr.splitlines()
    assert [line.split(", ")[1] for line in lines if line.startswith("  File")] == ["line 4", "line 6"]
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[-1].startswith("until it failed, fails held under SaveAll(): ")
    assert "most of it by half.py:3" in lines[-1]
    monkeypatch.setenv("PULLBACK_TRACEBACK", "full")
    assert isinstance(run(*words).exception, RuntimeError)


@pytest.mark.filterwarnings("default")
def test_a_warning_is_one_line_and_comes_once(folder):
    text = "import numpy as np\nimport pullback as pb\n\n\ndef f(c):\n    np.float64(1) / np.zeros(1)\n"
    text += "    for k in pb.steps(9):\n        c = np.sum((k + np.ones((500, c.size))) * c, axis=0)\n"
    text += "    try:\n        float(c[0])\n    except Exception:\n        pass\n"
    text += "    return np.sum(c * c)\n"
    Path("warns.py").write_text(text, "utf-8")
    with pytest.warns(RuntimeWarning, match="divide by zero"):  # the function's own is shown as ever
        result = run("profile", "warns.py:f", "--arg", "c=c.npy", "--policy", "Binomial(1)", "--quiet")
    assert result.exit_code == 0, result.output
    ours = sorted(line for line in result.stderr.splitlines() if "(PB" in line)
    assert len(ours) == 2
    assert ours[0].startswith("Warning: Binomial(1) holds ")
    assert ours[1].startswith("Warning: the program caught an error of pullback, and went on: float() of a tracer")


def test_a_wrong_number_of_bytes_and_a_wrong_policy_are_bad_input(folder):
    result = run("plan", *FUNCTION, "--budget", "banana")
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: --budget='banana' is no number of bytes; write ")
    result = run("plan", *FUNCTION, "--policy", "Binomial(0)")
    assert result.exit_code == 2
    assert result.stderr.count("pullback explain") == 1


def test_the_file_finds_its_neighbours(folder):
    Path("neighbour.py").write_text("factor = 3.0\n", "utf-8")
    Path("uses.py").write_text("from neighbour import factor\ndef f(x):\n    return (factor * x * x).sum()\n", "utf-8")
    before = list(sys.path)
    assert load_function("uses.py:f")(np.ones(2)) == 6.0
    assert sys.path == before


def test_plan_tells_what_a_policy_holds_and_which_to_take(folder):
    np.save("c.npy", np.linspace(0.5, 1.5, 1000))  # beside which Python's own objects are small
    np.save("data.npy", np.ones(1000))
    text = run("plan", *FUNCTION, "--policy", "Binomial(3)").output
    assert text.startswith("Binomial(3): peak ")
    found = json.loads(run("plan", *FUNCTION, "--policy", "Binomial(3)", "--json").output)
    assert found["policy"] == "Binomial(3)"
    assert found["peak_bytes"] == sum(found["bytes_by_reason"].values())
    advice = json.loads(run("plan", *FUNCTION, "--budget", "1 MB", "--json").output)
    assert advice["peak_bytes"] <= advice["budget"] == 1_000_000
    assert "take" in run("plan", *FUNCTION, "--budget", "1 MB").output
    assert advice["cheaper"]["peak_bytes"] < advice["peak_bytes"]  # figures, as those of the policy to take
    refused = run("plan", *FUNCTION, "--budget", "10 B")
    assert refused.exit_code == 1
    assert "too little for this program" in refused.output


def test_saved_lists_what_is_held(folder):
    assert "misfit holds" in run("saved", *FUNCTION).output
    assert "... and " in run("saved", *FUNCTION, "--top", "1").output
    sums = json.loads(run("saved", *FUNCTION, "--by", "line", "--json").output)
    assert sum(group["nbytes"] for group in sums) == json.loads(run("saved", *FUNCTION, "--json").output)["total_bytes"]
    assert "under Binomial(2) holds" in run("saved", *FUNCTION, "--policy", "Binomial(2)").output
    refused = run("saved", *FUNCTION, "--by", "colour")
    assert refused.exit_code == 2
    assert "'colour' is not one of 'line'" in refused.output
    assert "input c " in run("draw", *FUNCTION).output  # the parameter's name, not its number


def test_plan_goes_by_a_shape(folder):
    words = "plan", "model.py:misfit", "--arg", "c=float64[4096, 256]", "--arg", "data=float64[4096,256]"
    found = json.loads(run(*words, "--policy", "Binomial(3)", "--json").output)
    assert found["peak_bytes"] % (4096 * 256 * 8) == 0
    assert found["peak_bytes"] > 0
    assert found["seconds"] is None
    for command, value, said in (("plan", "float65[3]", "no dtype"), ("saved", "float64[3]", "pullback plan alone")):
        refused = run(command, "model.py:misfit", "--arg", f"c={value}", "--arg", "data=data.npy")
        assert refused.exit_code == 2
        assert said in refused.output


def test_draw_tells_all_as_json(folder):
    graph = json.loads(run("draw", *FUNCTION, "--cotangents", "--json").stdout)
    assert graph["saved_bytes"] == sum(slot["nbytes"] for node in graph["nodes"] for slot in node["saved"])
    (loop,) = [node for node in graph["nodes"] if node["name"] == "fori_loop"]
    assert loop["steps"]["n"] == 12
    assert {"multiply", "sin", "add"} <= {node["name"] for node in loop["body"]["nodes"]}
    assert graph["nodes"][-1]["cotangent_norm"] == 1.0
    result = run("draw", "--steps", "6", "--policy", "Binomial(2)", "--json", "--out", "s.svg")
    actions = json.loads(result.stdout)["actions"]
    assert [a["step"] for a in actions if a["action"] == "Reverse"] == [5, 4, 3, 2, 1, 0]
    assert "picture: s.svg" in result.stderr
    assert Path("s.svg").read_text("utf-8").startswith("<svg")


def test_every_command_prints_json():
    def options(command, path):
        for name, each in getattr(command, "commands", {}).items():
            yield from options(each, (*path, name))
        if not hasattr(command, "commands"):
            yield path, {option for parameter in command.params for option in parameter.opts}

    assert [path for path, names in options(cli.commands, ()) if "--json" not in names] == []


def test_draw_writes_schedules_and_graphs(folder):
    assert "S state saved" in run("draw", "--policy", "Binomial(2)", "--steps", "6").output
    assert "picture: s.svg" in run("draw", "--steps", "600", "--policy", "Binomial(2)", "--out", "s.svg").output
    assert Path("s.svg").read_text("utf-8").startswith("<svg")
    assert "fori_loop" in run("draw", *FUNCTION).output
    for name, begin in (("g.dot", "digraph"), ("g.mmd", "flowchart TB"), ("g.svg", "<svg"), ("g.txt", "misfit: ")):
        assert f"picture: {name}" in run("draw", *FUNCTION, "--out", name, "--cotangents").output
        assert Path(name).read_text("utf-8").startswith(begin)
        assert "|ct| " in Path(name).read_text("utf-8")
    assert "operations of a function are drawn as one" in run("draw", *FUNCTION, "--fold", "functions").output
    for words, said in (
        ((*FUNCTION, "--out", "graph.png"), "ends in .svg, .mmd, .dot, .txt"),
        (("--steps", "3", "--out", "schedule.dot"), "ends in .svg"),
        ((*FUNCTION, "--out", "no/graph.dot"), "name a file in a folder that exists"),
        ((), "give one of the two"),
        ((*FUNCTION, "--steps", "3"), "give one of the two"),
        ((*FUNCTION, "--policy", "Binomial(2)"), "give --steps in the place of a function"),
        (("--steps", "3", "--cotangents"), "--cotangents is for the graph of a function"),
    ):
        refused = run("draw", *words)
        assert refused.exit_code == 2
        assert said in refused.output
