"""How much of the package a warm gradient enters: a person who follows a value through the code reads so many files.

Statements are counted in the syntax tree, so that comments and docstrings cost nothing. Generated code is not counted:
it belongs to no file.
"""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import pullback as pb

PROGRAMS = {
    "save all": ("pb.grad(lambda x: np.sum(np.sin(x) * y))", 15, 2_197),
    "a loop under binomial": (  # of so few steps in all calls that they are recorded
        "pb.grad(lambda x: np.sum(pb.fori_loop(0, 5, lambda k, u: np.sin(u) * y, x)), policy=pb.Binomial(3))",
        44,  # random states, and what a loop makes of bytes, have files of their own, which are found by their names
        6_450,  # with some room: lines are not to be squeezed into one expression for it
    ),
}
TRACED = """
import sys
import numpy as np
import pullback as pb
x, y = np.arange(5.0), np.ones(5)
gradient = {gradient}
for _ in range(3):
    gradient(x)
entered = set()
def look(frame, event, arg):
    entered.add(frame.f_code.co_filename)
sys.settrace(look)
gradient(x)
sys.settrace(None)
print(*sorted(entered), sep="\\n")
"""


def statements(path: Path) -> int:
    nodes = [node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.stmt)]
    return sum(not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)) for node in nodes)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_warm_gradient_enters_few_files(name):
    gradient, most_files, most_statements = PROGRAMS[name]
    done = subprocess.run(
        [sys.executable, "-c", TRACED.format(gradient=gradient)], capture_output=True, text=True, check=True
    )
    root = Path(pb.__file__).parent
    files = [path for path in map(Path, done.stdout.splitlines()) if path.is_relative_to(root)]
    counts = {path.relative_to(root).as_posix(): statements(path) for path in files}
    assert 0 < len(counts) <= most_files, counts
    assert sum(counts.values()) <= most_statements, counts
