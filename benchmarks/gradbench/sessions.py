"""GradBench's evaluations, run and judged by its own programs, with a tool that answers them."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ("pullback", "pytorch", "jax")
PRIMALS = frozenset(("objective", "primal", "cost", "square"))
QUICK: dict[str, list[str]] = {
    "hello": [],
    "lse": ["-n", "2500"],
    "llsq": ["-n", "16", "128"],
    "ode": ["-n", "1000", "-s", "1", "10"],
    "kmeans": ["-k", "10", "-n", "1000", "-d", "8"],
    "det": ["-l", "5", "6"],
    "gmm": ["-d", "2", "10", "-k", "5"],
    "lstm": ["-l", "2", "-c", "100"],
    "ba": ["--min", "1", "--max", "1"],
    "ht": ["--min", "1", "--max", "1"],
    "saddle": [],
    "particle": [],
}


def environment(checkout: Path) -> dict[str, str]:
    """In which evaluations and tools run: they find each other, and use one thread."""
    return os.environ | {"PYTHONPATH": os.pathsep.join([str(checkout / "python" / "gradbench"), str(ROOT)])}


def command(tool: str, checkout: Path) -> list[str]:
    """How a tool is started; those of GradBench look for the evaluations beside themselves."""
    if tool == "pullback":
        return [sys.executable, "-m", "benchmarks.gradbench"]
    return [sys.executable, str(checkout / "python" / "gradbench" / "gradbench" / "tools" / tool / "run.py")]


def session(evaluation: str, tool: str, checkout: Path, words: list[str]) -> Iterator[tuple[Any, Any]]:
    """Each message of the evaluation with what the tool has answered."""
    asks = [sys.executable, "-m", f"gradbench.evals.{evaluation}.run", *words]
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "env": environment(checkout)}
    # Commands of our own, no shell.
    with (
        subprocess.Popen(asks, cwd=checkout, **pipes) as eval_,  # noqa: S603
        subprocess.Popen(command(tool, checkout), cwd=ROOT, **pipes) as tool_,  # noqa: S603
    ):
        assert eval_.stdout and eval_.stdin and tool_.stdout and tool_.stdin  # as the pipes say
        for line in eval_.stdout:
            tool_.stdin.write(line)
            tool_.stdin.flush()
            answer = tool_.stdout.readline()
            if not answer:
                break
            yield json.loads(line), json.loads(answer)
            eval_.stdin.write(answer)
            eval_.stdin.flush()
        tool_.stdin.close()
        if not answer:
            eval_.kill()


def measured(evaluation: str, tool: str, checkout: Path, words: list[str]) -> list[dict[str, Any]]:
    """A row for each input."""
    rows: dict[str, dict[str, Any]] = {}
    asked: dict[int, tuple[str, str]] = {}
    for message, answer in session(evaluation, tool, checkout, words):
        if message["kind"] == "evaluate":
            name, function = str(message.get("description", message["id"])), message["function"]
            nested = evaluation in ("saddle", "particle")
            label = function if nested else name
            row = rows.setdefault(label, {"evaluation": evaluation, "input": label, "tool": tool, "valid": "yes"})
            asked[message["id"]] = label, function
            if not answer["success"]:
                row["valid"] = "failed"
                print(answer.get("error"), file=sys.stderr)
                continue
            seconds = min(t["nanoseconds"] for t in answer.get("timings", [])) / 1e9
            row["primal_ms" if function in PRIMALS else "derivative_ms"] = seconds * 1e3
        elif message["kind"] == "analysis":
            label, function = asked[message["of"]]
            if not message["valid"]:
                rows[label]["valid"] = f"no: {function}"
                print(message.get("error"), file=sys.stderr)
    for row in rows.values():
        if "primal_ms" in row and "derivative_ms" in row:
            row["ratio"] = row["derivative_ms"] / row["primal_ms"]
    return list(rows.values())
