"""What a run is told by: the same in every process, another where code or data change."""

import ast
import subprocess
import sys
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from functools import partial
from operator import add, itemgetter, mul
from types import MappingProxyType

import numpy as np
import pytest

import pullback as pb
from pullback.resuming.run_keys import told_of

PROGRAM = """
import numpy as np
from pullback.resuming.run_keys import told_of

{blank}SETTINGS = {{"a": 1.5, "names": {{"x", "y", "z"}}, "w": np.arange(3.0)}}
class Model:
    rate = 2
    def step(self, u):
        return u * self.rate if u in {{"p", "q", "r"}} else u
def helper(u):
    return u + {constant}
def body(k, u, model=Model()):
    return [helper(x) for x in model.step(u)], SETTINGS
print(sorted(told_of([("body", body)]).items()))
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
    return told_of([("f", f)])


def with_content(content):
    return lambda k, u: (u, content)


def with_rule(factor, *, forward=1.0):
    """A primitive by whose rule the cotangent is ``factor`` times as large."""

    @pb.primitive
    def same(x):
        return x * forward

    same.vjp("x", fn=lambda ct: ct * factor)
    return same


class Switches:
    def __init__(self, on):
        self.on = on


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
    (lambda u, v: u, lambda u, *, v: u),
    (np.sin, np.cos),
    (abs, float),
    (np.cumsum, np.cumprod),
    (np.linalg, np.fft),
    (partial(add, 2), partial(mul, 2)),
    (partial(np.add, 2), partial(np.add, 3)),
    (itemgetter(0), itemgetter(1)),
    (Fraction(1, 3), Fraction(1, 4)),
    (Decimal("0.1"), Decimal("0.2")),
    (timedelta(1), timedelta(2)),
    (MappingProxyType({"a": 1}), MappingProxyType({"a": 2})),
    (Switches(on=True), Switches(on=False)),
    (with_rule(1.0), with_rule(2.0)),
    (with_rule(1.0), with_rule(1.0, forward=2.0)),
]


@pytest.mark.parametrize(("one", "other"), CONTENTS)
def test_other_contents_are_another_run(one, other):
    assert found(with_content(one)) == found(with_content(one))
    assert found(with_content(one)) != found(with_content(other))
