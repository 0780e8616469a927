"""The tool for GradBench: its protocol line by line, and derivatives of its programs against differences, without a
checkout."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from benchmarks.gradbench.evaluations import EVALUATIONS
from benchmarks.gradbench.protocol import answers

RUNS = {"min_runs": 3, "min_seconds": 0.0}
draw = np.random.default_rng(0)
INPUTS = {
    "lse": {"x": draw.random(6).tolist()},
    "llsq": {"x": draw.random(4).tolist(), "n": 9},
    "ode": {"x": draw.random(4).tolist(), "s": 3},
    "det": {"A": draw.random(16).tolist(), "ell": 4},
    "lstm": {
        "main_params": draw.random((4, 8)).tolist(), "extra_params": draw.random((3, 2)).tolist(),
        "state": draw.random((4, 2)).tolist(), "sequence": [[0.0, 1.0], [1.0, 1.0], [1.0, 0.0]],
    },
    "gmm": {
        "alpha": draw.random(2).tolist(), "mu": draw.random((2, 3)).tolist(), "q": draw.random((2, 3)).tolist(),
        "l": draw.random((2, 3)).tolist(), "x": draw.random((5, 3)).tolist(), "m": 1, "gamma": 0.8,
    },
}  # fmt: skip
ACTIVE = {"det": ("A",), "lstm": ("main_params", "extra_params"), "gmm": ("alpha", "mu", "q", "l")}


def answered(message):
    """What the tool says to a message."""
    [line] = answers([json.dumps({"id": 7, **message})])
    answer = json.loads(line)
    assert answer.pop("id") == 7
    return answer


def evaluated(module, function, given):
    answer = answered({"kind": "evaluate", "module": module, "function": function, "input": given})
    assert answer["success"], answer["error"]
    return answer


def test_a_session_over_standard_input_and_output():
    messages = [
        {"id": 0, "kind": "start", "eval": "hello"},
        {"id": 1, "kind": "define", "module": "hello"},
        {"id": 2, "kind": "evaluate", "module": "hello", "function": "square", "input": 3.0},
        {"id": 3, "kind": "analysis", "of": 2, "valid": True},
        {"id": 4, "kind": "evaluate", "module": "hello", "function": "double", "input": 4.0},
    ]
    ended = subprocess.run(
        [sys.executable, "-m", "benchmarks.gradbench"],
        input="".join(json.dumps(message) + "\n" for message in messages),
        cwd=Path(__file__).resolve().parents[2], capture_output=True, text=True, check=True,
    )  # fmt: skip
    start, define, square, analysis, double = map(json.loads, ended.stdout.splitlines())
    assert start == {"id": 0, "tool": "pullback"}
    assert define == {"id": 1, "success": True}
    assert (square["id"], square["success"], square["output"]) == (2, True, 9.0)
    assert [timing["name"] for timing in square["timings"]] == ["evaluate"]
    assert analysis == {"id": 3}
    assert double["output"] == 8.0


def test_what_is_unknown_or_fails_is_said_and_the_session_goes_on():
    assert answered({"kind": "define", "module": "nothing"}) == {
        "success": False, "error": "no evaluation 'nothing'",
    }  # fmt: skip
    failed = answered({"kind": "evaluate", "module": "ode", "function": "primal", "input": {"x": [1.0]} | RUNS})
    assert not failed["success"]
    assert "KeyError" in failed["error"]


def test_a_function_runs_as_often_as_is_asked():
    assert len(evaluated("lse", "primal", INPUTS["lse"] | RUNS)["timings"]) == 3
    long = evaluated("lse", "primal", INPUTS["lse"] | {"min_runs": 1, "min_seconds": 0.01})["timings"]
    assert sum(timing["nanoseconds"] for timing in long) >= 1e7


@pytest.mark.parametrize("module", INPUTS)
def test_a_derivative_is_that_of_differences(module):
    primal, derivative = EVALUATIONS[module]
    found = evaluated(module, derivative, INPUTS[module] | RUNS)["output"]
    gradient = np.concatenate([np.ravel(part) for part in (found.values() if isinstance(found, dict) else found)])
    active, expected, h = ACTIVE.get(module, ("x",)), [], 1e-6

    def value(name, place, change):
        moved = np.array(INPUTS[module][name])
        moved.flat[place] += change
        out = evaluated(module, primal, INPUTS[module] | {name: moved.tolist()} | RUNS)["output"]
        return out[-1] if module == "ode" else out

    for name in active:
        places = range(np.size(INPUTS[module][name]))
        expected += [(value(name, place, h) - value(name, place, -h)) / (2 * h) for place in places]
    np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-7)
