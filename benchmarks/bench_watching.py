"""What the instruments cost: nothing to speak of where nobody watches, little where somebody does.

    python benchmarks/bench_watching.py [--quick] [--json PATH]

A clock scatters by more than one part in a hundred, so where nobody watches is counted: the bytecodes that Python
executes in a warm gradient, those of what only asks whether somebody watches (with CALL for each call of it), and their
share. The work on the arrays comes on top of all of these, so the share of the time is smaller still. Where somebody
does watch, ``with pb.profile()``, the bytecodes and the CPU time are compared with those of the same gradient without.

Figures to hold: below 1 % where nobody watches, below 5 % within a profile, at operations on 1e5 elements.
"""

import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

import numpy as np
from harness import arguments, compare, one_thread, print_table, write_json

import pullback as pb
from pullback.memory.in_force import progress_in_force, watchers
from pullback.memory.ledger import Ledger

X = np.linspace(0.1, 1.0, 100_000)
CALL = 16
"""Bytecodes around a call: what loads the function, calls it, and tests what it gives."""
ASKED: frozenset[CodeType] = frozenset(
    function.__code__ for function in (watchers, progress_in_force, Ledger.begins, Ledger.sweeps, Ledger.rests)
)


def plain(x: Any) -> Any:
    for _ in range(33):
        x = np.sin(x) * 1.1 + 0.3
    return np.sum(x)


def marked(x: Any) -> Any:
    for _ in pb.steps(33):
        x = np.sin(x) * 1.1 + 0.3
    return np.sum(x)


def looped(x: Any) -> Any:
    return np.sum(pb.fori_loop(0, 33, lambda _, x: np.sin(x) * 1.1 + 0.3, x))


PROGRAMS: dict[str, Callable[[], Any]] = {
    "99 operations": lambda: pb.grad(plain)(X),
    "33 marked steps, save-all": lambda: pb.grad(marked)(X),
    "33 marked steps, Binomial(3)": lambda: pb.grad(marked, policy=pb.Binomial(3))(X),
    "fori_loop, save-all": lambda: pb.grad(looped)(X),
    "fori_loop, Binomial(3)": lambda: pb.grad(looped, policy=pb.Binomial(3))(X),
}


def counted(call: Callable[[], Any]) -> tuple[int, int]:
    """The bytecodes that a call executes, and those of what asks whether somebody watches."""
    counts = [0, 0]

    def tracer(frame: FrameType, event: str, _: Any) -> Any:
        asked = frame.f_code in ASKED
        if event == "call":
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
            counts[1] += CALL * asked
        elif event == "opcode":
            counts[0] += 1
            counts[1] += asked
        return tracer

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        call()
    finally:
        sys.settrace(before)
    return counts[0], counts[1]


def profiled(call: Callable[[], Any]) -> Callable[[], Any]:
    """The call within a profile."""

    def within() -> Any:
        with pb.profile():
            return call()

    return within


def main() -> None:
    options = arguments("what the instruments cost")
    one_thread()
    rows: list[dict[str, Any]] = []
    for name, call in PROGRAMS.items():
        both = {"off": call, "profile": profiled(call)}
        for each in both.values():
            for _ in range(3):  # functions for steps that repeat are made
                each()
        (n, asked), (n_within, _) = counted(call), counted(both["profile"])
        timed = compare(both, rounds=3 if options.quick else 20, labels={"program": name})
        for row in timed.rows(operations=99, against=["off"]):
            found = dict(row)
            if row.get("candidate", row.get("name")) == "off":
                found |= {"bytecodes": n, "asked": asked, "asked %": 100 * asked / n}
            else:
                found |= {"bytecodes": n_within, "more bytecodes %": 100 * (n_within / n - 1)}
            rows.append(found)
    print_table(rows)
    write_json(options.json, rows)


if __name__ == "__main__":
    main()
