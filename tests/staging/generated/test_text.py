"""The generated text: a person can read it, and Python finds its lines."""

import ast
import linecache
from traceback import format_exception

import numpy as np
import pytest
from tests.staging.generated.both_ways import loop_over, measured, the_stage

import pullback as pb

X = np.array([0.3, -0.7, 1.1, 0.2])


@pytest.fixture
def stage():
    measured(loop_over(lambda k, u, x: np.sin(u[1] * u[::-1]) * x - 2.0), X, pb.Binomial(2), "numpy")
    return the_stage()


def test_the_text_is_lines_of_numpy(stage):
    assert stage.record.text == (
        "def record(inputs, captured, constants, buffers, fresh):\n"
        "    v0, = inputs\n"
        "    v1, = captured\n"
        "    v2, = constants\n"
        "    v3 = v0[1]\n"
        "    v4 = v0[::-1]\n"
        "    v5 = v3 * v4\n"
        "    v6 = sin(v5)\n"
        "    v7 = v6 * v1\n"
        "    v8 = v7 - v2\n"
        "    return (v8, ), (v4, v3, v5, v1, v6, ), \n"
    )


@pytest.mark.parametrize("name", ["record", "advance", "reverse", "reverse_own"])
def test_it_stands_in_linecache(stage, name):
    generated = getattr(stage, name)
    assert generated.name == name
    filename = generated.function.__code__.co_filename
    assert filename.startswith("<pullback ")
    assert "".join(linecache.getlines(filename)) == generated.text
    ast.parse(generated.text)


def test_every_line_has_the_line_of_the_body_it_is_computed_for(stage):
    lines = stage.record.text.splitlines()
    computed = {k for k, line in enumerate(lines, 1) if " = " in line and not line.endswith(("inputs", "ured", "ants"))}
    assert computed
    assert all(stage.record.sites[k] for k in computed)


def test_an_error_shows_the_line_of_the_text(stage):
    with pytest.raises(TypeError) as raised:
        stage.record.function([X], [X], [None], (), ())
    assert "v8 = v7 - v2" in "".join(format_exception(raised.value))
