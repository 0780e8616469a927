"""What a run is told by: the same in every process, another where code or data change."""

import ast
import subprocess
import sys

import numpy as np
import pytest

from pullback.bodies.reachable import Reachable
from pullback.resuming.keys import _Code

PROGRAM = """
import numpy as np
from pullback.bodies.reachable import Reachable
from pullback.resuming.keys import _Code

{blank}SETTINGS = {{"a": 1.5, "names": {{"x", "y", "z"}}, "w": np.arange(3.0)}}
class Model:
    rate = 2
    def step(self, u):
        return u * self.rate if u in {{"p", "q", "r"}} else u
def helper(u):
    return u + {constant}
def body(k, u, model=Model()):
    return [helper(x) for x in model.step(u)], SETTINGS
code = _Code()
Reachable(told=code.tell).walk([("body", body)])
print(sorted(code.found.items()))
"""


def told(**changes):
    """What is told in this process."""
    space = {"__name__": "program"}
    program = PROGRAM.format(**({"blank": "", "constant": 1} | changes))
    exec(program.replace("print(", "told = ("), space)  # noqa: S102
    return space["told"]


def test_the_same_in_every_process_and_on_other_lines():
    environment = {"PYTHONHASHSEED": "3", "PYTHONPATH": ":".join(filter(None, sys.path))}
    program = PROGRAM.format(blank="\n\n", constant=1).replace("import", "__name__ = 'program'\nimport", 1)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True)
    assert ast.literal_eval(done.stdout) == told()


def test_a_changed_function_is_named():
    before, after = dict(told()), dict(told(constant=2))
    assert [name for name in before if before[name] != after[name]] == ["the code of helper"]


def found(f):
    code = _Code()
    Reachable(told=code.tell).walk([("f", f)])
    return code.found


def with_content(content):
    return lambda k, u: (u, content)


CONTENTS = [
    (1, 2),
    (1, 1.0),
    (0.0, -0.0),
    (np.float32(1), np.float64(1)),
    ("a", "b"),
    ([1, 2], [1, 3]),
    ((1, (2,)), (1, (3,))),
    ({"a": 1}, {"a": 2}),
    ({1, 2}, {1, 3}),
    (np.zeros(3), np.zeros(4)),
    (np.zeros((2, 3)), np.zeros((2, 3), order="F")),
    (np.random.default_rng(1), np.random.default_rng(2)),
    (np.random.RandomState(1), np.random.RandomState(2)),
    (with_content(1), with_content(2)),
    (lambda u: u + 1, lambda u: u + 2),
    (lambda u: u in {1, 2}, lambda u: u in {1, 3}),
]


@pytest.mark.parametrize(("one", "other"), CONTENTS)
def test_other_contents_are_another_run(one, other):
    assert found(with_content(one)) == found(with_content(one))
    assert found(with_content(one)) != found(with_content(other))
