"""GradBench's protocol, from the side of a tool: messages are answered, functions run as often as is asked, and timed
each time."""

import json
import time
import traceback
from collections.abc import Iterable, Iterator
from typing import Any

from benchmarks.gradbench.evaluations import EVALUATIONS, Task

NAME = "pullback"


def answers(lines: Iterable[str]) -> Iterator[str]:
    """The answer to each message."""
    for line in lines:
        message = json.loads(line)
        yield json.dumps({"id": message["id"], **answer(message)})


def answer(message: dict[str, Any]) -> dict[str, Any]:
    """What is said besides the number of the message."""
    if message["kind"] == "start":
        return {"tool": NAME}
    if message["kind"] == "define":
        known = message["module"] in EVALUATIONS
        return {"success": known} if known else {"success": False, "error": f"no evaluation {message['module']!r}"}
    if message["kind"] == "evaluate":
        try:
            return evaluated(EVALUATIONS[message["module"]][message["function"]], message["input"])
        except Exception:  # noqa: BLE001 - the evaluation goes on, and shows what went wrong
            return {"success": False, "error": traceback.format_exc()}
    return {}


def evaluated(task: Task, given: Any) -> dict[str, Any]:
    """The output of a function, and the time of each of its runs."""
    runs, seconds = (given["min_runs"], given["min_seconds"]) if isinstance(given, dict) else (1, 0.0)
    args = task.prepare(given)
    timings: list[dict[str, Any]] = []
    elapsed = 0
    while len(timings) < runs or elapsed < seconds * 1e9:
        start = time.perf_counter_ns()
        found = task.function(*args)
        taken = time.perf_counter_ns() - start
        timings.append({"name": "evaluate", "nanoseconds": taken})
        elapsed += taken
    return {"success": True, "output": task.output(found), "timings": timings}
